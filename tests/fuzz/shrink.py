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
    """Applies every simplification that `still` allows until none does."""
    changed = True
    while changed:
        changed = False
        for candidate in _smaller(code):
            if candidate != code and still(candidate):
                code = candidate
                changed = True
                break
    return code


def _smaller(code: str) -> Iterator[str]:
    """Simpler programs: without some statements (many first), blocks replaced by their bodies, calls by parts."""
    tree = ast.parse(code)
    paths = list(_paths(tree))
    size = len(paths) // 2
    while size >= 1:
        for start in range(0, len(paths), size):
            yield _unparse(_drop(tree, paths[start : start + size]))
        size //= 2
    for path in paths:
        yield _unparse(_unwrap(tree, path))
    count = sum(1 for _ in ast.walk(tree))
    for index in range(count):
        for edited in _simpler_expressions(tree, index):
            yield _unparse(edited)


Path_ = tuple[tuple[str, int], ...]


def _paths(node: ast.AST, here: Path_ = ()) -> Iterator[Path_]:
    """Where each statement is: fields and indices from the root; later ones first, so that users go before makers."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if isinstance(block, list):
            for i in reversed(range(len(block))):
                if isinstance(block[i], ast.stmt) and not isinstance(block[i], ast.Pass):
                    yield (*here, (field, i))
                    yield from _paths(block[i], (*here, (field, i)))


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


def _simpler_expressions(tree: ast.Module, index: int) -> Iterator[ast.Module]:
    """The tree with one expression replaced by one of its parts."""
    node = next(n for i, n in enumerate(ast.walk(tree)) if i == index)
    if not isinstance(node, (ast.BinOp, ast.Call)):
        return
    parts: list[ast.expr] = []
    if isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    elif isinstance(node.func, ast.Attribute) and not isinstance(node.func.value, ast.Name):
        parts = [node.func.value]
    for part in parts:
        new = copy.deepcopy(tree)
        target = next(n for i, n in enumerate(ast.walk(new)) if i == index)
        yield ast.fix_missing_locations(_Replace(target, copy.deepcopy(part)).visit(new))


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.expr) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)


def _unparse(tree: ast.Module) -> str:
    return ast.unparse(ast.fix_missing_locations(tree))


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
