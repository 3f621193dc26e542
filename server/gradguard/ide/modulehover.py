"""The hover on modules and optimizers: on a class, and on a name or attribute that the file binds to one.

`self.proj` in `self.proj(y)` is what `self.proj = nn.Linear(...)` of the same class made it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradguard.ide.nodes import At, dotted, statements
from gradguard.ide.wording import Wording, listed
from gradguard.ops.model import ModuleRow
from gradguard.ops.table import Table
from gradguard.source.printable import quotable

STEPS = frozenset({"step", "zero_grad"})
"""Methods on which an optimizer is explained as it is on its name."""


def of_class(row: ModuleRow, shown: str, wording: Wording) -> str:
    """What is said of a class of `torch.nn` or `torch.optim`."""
    key = "optimizer-head" if _optimizer(row) else "module-head"
    return _text(f"**`{shown}`** {wording.text(key)}", _points(row, {}, False, wording))


def of_instance(at: At, tree: ast.Module, known: Table, bound: dict[str, str], wording: Wording) -> str:
    """What is said of the name or attribute under the cursor; empty where the file does not say what it is."""
    node = at.node
    made = _made(node, at, tree)
    if made is None and isinstance(node, ast.Attribute) and node.attr in STEPS:
        made = _made(node.value, at, tree)
        node = node.value
    name = dotted(made.func, bound) if made is not None else None
    row = known.module(name) if name is not None else None
    if made is None or row is None or (node is not at.node and not _optimizer(row)):
        return ""
    shown = ast.unparse(node)
    names = {"self": shown}
    call = at.call()
    if call is not None and row.forms and node is at.node:
        given = [each for each in call.args if not isinstance(each, ast.Starred)]
        names |= {param.name: quotable(ast.unparse(each)) for param, each in zip(row.forms[0].params, given)}
    inplace = any(
        each.arg == "inplace" and isinstance(each.value, ast.Constant) and each.value.value is True
        for each in made.keywords
    )
    return _text(f"**`{shown}`** `{row.name}`", _points(row, names, inplace, wording))


def _made(node: ast.AST, at: At, tree: ast.Module) -> ast.Call | None:
    """The call whose result the file binds to a name or attribute; None where there is none, or several."""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    wanted = ast.unparse(node)
    owner = next((each for each in reversed(at.path) if isinstance(each, ast.ClassDef)), None)
    within = owner if owner is not None and wanted.startswith("self.") else tree
    last = _last(node)
    calls = [
        value
        for target, value in _bindings(within)
        if _last(target) == last and ast.unparse(target) == wanted
    ]
    first = calls[0] if calls else None
    return first if len(calls) == 1 and isinstance(first, ast.Call) else None


def _last(target: ast.expr) -> str:
    return target.id if isinstance(target, ast.Name) else getattr(target, "attr", "")


def _bindings(within: ast.Module | ast.ClassDef) -> Iterator[tuple[ast.expr, ast.expr]]:
    for outer in within.body:
        # Remembered on the statement, which lives as long as its text stays.
        known: tuple[tuple[ast.expr, ast.expr], ...] | None = getattr(outer, "_gradguard_bindings", None)
        if known is None:
            known = tuple(_bound_in(outer))
            outer._gradguard_bindings = known  # type: ignore[attr-defined]
        yield from known


def _bound_in(outer: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    for statement in statements(ast.Module([outer], [])):
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, (ast.Name, ast.Attribute)):
                    yield target, statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            yield statement.target, statement.value


def _points(row: ModuleRow, names: dict[str, str], inplace: bool, wording: Wording) -> list[str]:
    if _optimizer(row):
        return [wording.text("optimizer-writes"), wording.text("optimizer-holds")]
    points = []
    if row.parameters:
        points.append(wording.text("module-parameters", what=listed(name for name, _ in row.parameters)))
    if row.buffers:
        points.append(wording.text("module-buffers", what=listed(name for name, _ in row.buffers)))
    saves = dict.fromkeys(_named(each.role, names) for form in row.forms for each in form.saves)
    if row.container:
        points.append(wording.text("module-container"))
    elif saves:
        points.append(wording.text("module-saves", what=listed(saves)))
    elif row.forms:
        points.append(wording.text("module-saves-nothing"))
    if inplace:
        written = dict.fromkeys(_named(each.role, names) for form in row.forms for each in form.writes)
        points += [wording.text("op-writes", what=what) for what in written]
    return points


def _named(role: str, names: dict[str, str]) -> str:
    """A role in the names of the line: `self.weight` of `self.proj` is `self.proj.weight`."""
    head, dot, rest = role.partition(".")
    return names.get(head, head) + dot + rest


def _optimizer(row: ModuleRow) -> bool:
    return row.name.startswith("torch.optim.")


def _text(head: str, points: list[str]) -> str:
    return "\n".join([head, "", *(f"- {each}" for each in points)]).rstrip()
