"""Makes a disagreement small: statements are taken away while torch and checker still differ in the same way."""

from __future__ import annotations

import ast
import copy
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.fuzz.compare import Case, examine

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures" / "fuzz"


def shrunk(case: Case) -> Case:
    """The smallest case found with the same outcome, rule and signature; imports torch."""
    start = examine(ast.unparse(ast.parse(case.code)), case.seed)
    if not _same(start, case):
        return case
    best = start

    def still(code: str) -> bool:
        nonlocal best
        try:
            smaller = examine(code, case.seed)
        except (SyntaxError, ValueError):
            return False
        if not _same(smaller, case) or len(smaller.culprits) > len(best.culprits):
            return False
        best = smaller
        return True

    reduce(best.code, still)
    return best


def _same(a: Case, b: Case) -> bool:
    return (a.outcome, a.rule, a.signature) == (b.outcome, b.rule, b.signature)


def reduce(code: str, still: Callable[[str], bool]) -> str:
    """Applies simplifications that `still` allows: statements away (many first), blocks to bodies, calls to parts."""
    before = ""
    while before != code:
        before = code
        size = max(len(list(_paths(ast.parse(code)))) // 2, 1)
        while size >= 1:
            code = _each(code, still, lambda tree, i, size=size: _chunk(tree, i, size))
            size //= 2
        code = _each(code, still, _unwrapped)
        code = _each(code, still, _simpler_expression)
    return code


Edit = Callable[[ast.Module, int], "ast.Module | None"]


def _each(code: str, still: Callable[[str], bool], edit: Edit) -> str:
    """Tries an edit at every place; None from `edit` says that there are no more places."""
    index = 0
    while True:
        edited = edit(ast.parse(code), index)
        if edited is None:
            return code
        smaller = ast.unparse(ast.fix_missing_locations(edited))
        if smaller != code and still(smaller):
            code = smaller
        else:
            index += 1


def _chunk(tree: ast.Module, index: int, size: int) -> ast.Module | None:
    paths = list(_paths(tree))[index * size : (index + 1) * size]
    return _drop(tree, paths) if paths else None


def _unwrapped(tree: ast.Module, index: int) -> ast.Module | None:
    paths = list(_paths(tree))
    return _unwrap(tree, paths[index]) if index < len(paths) else None


Path_ = tuple[tuple[str, int], ...]


def _paths(node: ast.AST, here: Path_ = ()) -> Iterator[Path_]:
    """Where each statement is: fields and indices from the root; later ones first, so that users go before makers."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if isinstance(block, list):
            for i in reversed(range(len(block))):
                if (
                    isinstance(block[i], ast.stmt)
                    and not isinstance(block[i], ast.Pass)
                    and not _starts(block[i])
                ):
                    yield (*here, (field, i))
                    yield from _paths(block[i], (*here, (field, i)))


def _starts(node: ast.stmt) -> bool:
    """`main()`: without it nothing runs, while the checker reads functions that nobody calls."""
    return (
        "main" in (ast.unparse(node.test) if isinstance(node, ast.If) else "")
        or ast.unparse(node) == "main()"
    )


def _parent(tree: ast.AST, path: Path_) -> tuple[list[ast.stmt], int]:
    node: ast.AST = tree
    for field, i in path[:-1]:
        node = getattr(node, field)[i]
    field, i = path[-1]
    return getattr(node, field), i


def _drop(tree: ast.Module, paths: list[Path_]) -> ast.Module:
    new = copy.deepcopy(tree)
    for path in sorted(paths, key=lambda p: [i for _, i in p], reverse=True):
        block, i = _parent(new, path)
        block[i] = ast.Pass()
    _tidy(new)
    return new


def _tidy(node: ast.AST) -> None:
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            for inner in block:
                _tidy(inner)
            kept = [s for s in block if not isinstance(s, ast.Pass)]
            needed = field == "body" and not isinstance(node, ast.Module)
            block[:] = kept or ([ast.Pass()] if needed else [])


def _unwrap(tree: ast.Module, path: Path_) -> ast.Module:
    new = copy.deepcopy(tree)
    block, i = _parent(new, path)
    node = block[i]
    if isinstance(node, (ast.With, ast.If, ast.For, ast.While)):
        block[i : i + 1] = node.body
    return new


def _simpler_expression(tree: ast.Module, index: int) -> ast.Module | None:
    """The tree with one expression replaced by a part of it; None if there is no such place."""
    places: list[tuple[ast.expr, ast.expr]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp):
            places += [(node, node.left), (node, node.right)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if not (isinstance(node.func.value, ast.Name) and node.func.value.id in ("torch", "F", "nn")):
                places.append((node, node.func.value))
    if index >= len(places):
        return None
    old, new = places[index]
    edited: ast.Module = _Replace(old, new).visit(tree)
    return edited


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.expr) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)


def fixture_text(case: Case) -> str:
    """The program with a mark on each culprit line, and nothing where torch runs it rightly."""
    lines = case.code.rstrip("\n").split("\n")
    if case.outcome in ("raises", "silent"):
        for number in sorted(case.culprits):
            lines[number - 1] += f"  # expect: {_code(case, lines[number - 1])}"
    return "\n".join(lines) + "\n"


def _code(case: Case, line: str) -> str:
    """The rule that speaks of a culprit: the checker's word if it has a finding there, else what the error says."""
    number = next(n for n, text in enumerate(case.code.split("\n"), 1) if text == line)
    for found in case.findings:
        if found.counts and found.line <= number <= found.end_line:
            return found.code
    if ".step(" in line:
        return "GG106"
    return "GG105" if case.outcome == "silent" else case.rule


def save(case: Case) -> Path:
    """Writes the fixture, named by what it shows and its text."""
    FIXTURES.mkdir(parents=True, exist_ok=True)
    text = fixture_text(case)
    stem = {"ok": "right", "raises": f"raises_{case.rule.lower()}", "silent": "silent"}[case.outcome]
    path = FIXTURES / f"{stem}_{hashlib.sha256(text.encode()).hexdigest()[:8]}.py"
    path.write_text(text)
    return path
