"""A file with its in-place writes undone, so that only what is made of it writes in place."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from gradguard.check.workspace import EMPTY, Workspace
from gradguard.engine import analyse
from gradguard.engine.domain.sharing import NOBODY, Sharing
from gradguard.findings import Applicability, FixPlan
from gradguard.fixes import api
from gradguard.fixes.edit import applied, collide
from gradguard.ops import table
from gradguard.source.text import Source

MAX_ROUNDS = 8


def undone(source: Source, lines: range, workspace: Workspace = EMPTY, *, tensors: Iterable[str] = ()) -> str:
    """The text with every in-place write that stands on these lines made into a new tensor, as far as there is a way.

    `tensors`: names that are tensors there although nothing in the text says so.
    """
    names = frozenset(tensors)
    for again in range(MAX_ROUNDS):
        sharing = analyse(source, table.load(None), workspace, every_write=True).sharing
        mine = {id(node) for node in ast.walk(source.tree)}
        written = [node for node in sharing if id(node) in mine and _line(node) in lines]
        written += [
            node for node in _augmented(source, names) if _line(node) in lines and node not in sharing
        ]
        edits: list[api.Edit] = []
        for node in sorted(written, key=_line):
            plan = _undoing(node, source, sharing.get(node, NOBODY))
            # A write that has been given a clone is still a write: once is enough.
            if plan is None or (again and plan.kind == "clone-before"):
                continue
            made = api.edits(plan, source) or ()
            if not any(collide(one.span, other.span) for one in made for other in edits):
                edits.extend(made)
        if not edits:
            break
        text = applied(source, edits)
        lines = range(lines.start, lines.stop + text.count("\n") - source.text.count("\n"))
        source = Source(source.path, text)
    return source.text


def _augmented(source: Source, names: frozenset[str]) -> list[ast.AST]:
    return [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id in names
    ]


def _undoing(node: ast.AST, source: Source, sharing: Sharing) -> FixPlan | None:
    span = source.span(node)
    kind, name = "clone-before", None
    if isinstance(node, ast.AugAssign):
        if isinstance(node.target, (ast.Name, ast.Attribute)):
            kind, name = "out-of-place", ast.unparse(node.target)
        else:
            name, _ = _place_of(node.target, sharing.slots)
    elif isinstance(node, ast.Assign):
        target = next((each for each in node.targets if isinstance(each, ast.Subscript)), None)
        name, _ = _place_of(target, sharing.slots) if target is not None else (None, False)
    elif isinstance(node, ast.Call):
        if any(keyword.arg == "inplace" for keyword in node.keywords) and isinstance(
            node.func, ast.Attribute
        ):
            if node.func.attr[:1].isupper():
                return FixPlan("drop-inplace", "", Applicability.SAFE, span)
        found = [_place_of(each, sharing.slots) for each in _written(node)]
        name, whole = next((each for each in found if each[0]), ("" if not sharing.slots else None, True))
        kind = "out-of-place" if whole else kind
    return FixPlan(kind, "", Applicability.SAFE, span, (("name", name),)) if name is not None else None


def _written(call: ast.Call) -> Iterator[ast.expr]:
    """What a call may write: `out=`, the receiver of its first method, its first argument."""
    yield from (keyword.value for keyword in call.keywords if keyword.arg == "out")
    root: ast.expr = call
    while (
        isinstance(root, ast.Call) and isinstance(root.func, ast.Attribute) and root.func.attr.endswith("_")
    ):
        root = root.func.value
    if root is not call:
        yield root
    yield from call.args[:1]


def _place_of(node: ast.expr, slots: frozenset[str]) -> tuple[str | None, bool]:
    """The place that an expression names, or names a part or view of; whether it is all of it."""
    whole = True
    while True:
        text = ast.unparse(node)
        if text in slots:
            return text, whole
        if isinstance(node, (ast.Subscript, ast.Attribute)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return None, False
        whole = False


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)
