"""What stands at a place of a source file: statements, expressions and the names in them."""

from __future__ import annotations

import ast
import io
import linecache
from collections.abc import Iterator
from functools import cached_property, lru_cache

from gradguard.disk.reading import read_or_none
from gradguard.findings import Span
from gradguard.runtime.frames import Place
from gradguard.source.printable import quotable

Function = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def _lines(path: str) -> list[str]:
    """Lines with their ends. What is no file, such as a cell of a notebook, Python knows from when it ran."""
    if path in linecache.cache:
        return linecache.getlines(path)
    lines = io.StringIO(read_or_none(path), newline=None).readlines()
    return lines if not lines or lines[-1].endswith("\n") else [*lines[:-1], lines[-1] + "\n"]


class File:
    """Lines and tree of one file; the tree is empty if the file cannot be read or parsed."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lines = _lines(path)
        try:
            self.tree: ast.AST = ast.parse("".join(self.lines))
        except (SyntaxError, ValueError):
            self.tree = ast.Module(body=[], type_ignores=[])
        self._parents: dict[ast.AST, ast.AST] | None = None

    @property
    def parents(self) -> dict[ast.AST, ast.AST]:
        if self._parents is None:
            self._parents = {
                child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)
            }
        return self._parents

    @cached_property
    def looped(self) -> set[int]:
        """Lines that may run more than once for one run of their function."""
        found: set[int] = set()
        # What lies further in comes later.
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.For, ast.While, ast.AsyncFor)):
                found.update(range(node.lineno + 1, (node.end_lineno or node.lineno) + 1))
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.difference_update(range(node.lineno + 1, (node.end_lineno or node.lineno) + 1))
        return found

    def line(self, number: int) -> str:
        return self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""

    def column(self, line: int, utf8: int) -> int:
        """Code points, from 1, of a 0-based utf-8 byte column."""
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return len(text.encode()[:utf8].decode(errors="ignore")) + 1

    def statement(self, line: int) -> ast.stmt | None:
        """The innermost statement that covers a line."""
        best: ast.stmt | None = None
        for node in ast.walk(self.tree):
            if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
                if best is None or node.lineno >= best.lineno:
                    best = node
        return best

    def expression(self, place: Place) -> ast.expr | None:
        """The expression whose instruction this is; None before Python 3.11."""
        line, end_line, column, end_column = place.position
        if column < 0:
            return None
        for node in ast.walk(self.tree):
            if (
                isinstance(node, ast.expr)
                and (node.lineno, node.col_offset) == (line, column)
                and (node.end_lineno, node.end_col_offset) == (end_line, end_column)
            ):
                return node
        return None

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around `node`, from the inside."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def text(self, node: ast.AST) -> str:
        return ast.get_source_segment("".join(self.lines), node) or ""


@lru_cache(maxsize=512)
def file(path: str) -> File:
    return File(path)


def span_of(place: Place) -> Span:
    """The expression at the place, else its whole line."""
    source = file(place.path)
    line, end_line, column, end_column = place.position
    line = max(line, 1)
    if column < 0:
        return whole_line(place.path, line)
    return Span(line, source.column(line, column), end_line, source.column(end_line, end_column))


def whole_line(path: str, line: int) -> Span:
    source = file(path)
    raw = source.lines[line - 1].rstrip("\n") if 0 < line <= len(source.lines) else ""
    indent = len(raw) - len(raw.lstrip())
    return Span(line, indent + 1, line, max(len(raw.rstrip()), indent) + 1)


def target_text(place: Place, *, argument: bool = False) -> str:
    """What the statement at a place writes to, as written: `p.data` in `p.data.clamp_(0)`; empty if unclear.

    argument: it calls a function that writes its first argument.
    """
    source = file(place.path)
    expression = source.expression(place)
    if isinstance(expression, ast.Call) and argument:
        return quotable(source.text(expression.args[0])) if expression.args else ""
    if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute):
        return quotable(source.text(expression.func.value))
    statement = source.statement(place.line)
    if isinstance(statement, ast.AugAssign):
        return quotable(source.text(statement.target))
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        return quotable(source.text(statement.targets[0]))
    return ""


def call_names(place: Place) -> set[str]:
    """Last parts of the names of the calls that start on the line, such as `item` of `loss.item()`."""
    return {name for name in map(called_name, calls_at(place)) if name}


def called_name(call: ast.Call) -> str:
    """The last part of what is called by name, else nothing."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def calls_at(place: Place) -> list[ast.Call]:
    """The call at the place; without positions, all calls of its line."""
    source = file(place.path)
    if place.position[2] >= 0:
        expression = source.expression(place)
        return [expression] if isinstance(expression, ast.Call) else []
    line = place.line
    return [n for n in ast.walk(source.tree) if isinstance(n, ast.Call) and n.lineno == line]


def guarding_no_grad(place: Place) -> int | None:
    """Line of the `with torch.no_grad()` around a place, or of the decorator of its function."""
    source = file(place.path)
    statement = source.statement(place.line)
    if statement is None:
        return None
    for node in (statement, *source.above(statement)):
        if isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                if _turns_grad_off(item.context_expr):
                    return node.lineno
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for decorator in node.decorator_list:
                if _turns_grad_off(decorator):
                    return decorator.lineno
            return None
    return None


def _turns_grad_off(node: ast.expr) -> bool:
    text = ast.unparse(node)
    return "no_grad" in text or "inference_mode" in text or "set_grad_enabled(False" in text


def carried_names(statement: ast.stmt | None) -> set[str]:
    """Names and attributes that a statement both reads and binds: `h` in `y, h = net(x, h)`."""
    if isinstance(statement, ast.AugAssign):
        return {ast.unparse(statement.target)}
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
        return set()
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    bound = {
        ast.unparse(node)
        for target in targets
        for node in ast.walk(target)
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript))
        and isinstance(getattr(node, "ctx", None), ast.Store)
    }
    read = {
        ast.unparse(node)
        for node in ast.walk(statement.value)
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript))
    }
    return bound & read


def loaded_names(node: ast.AST) -> set[str]:
    """Plain names that are read in a statement."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def loops_around(place: Place) -> list[tuple[int, int]]:
    """First and last lines of the loops around a place within its function, from the inside."""
    source = file(place.path)
    statement = source.statement(place.line)
    found: list[tuple[int, int]] = []
    if statement is None:
        return found
    for node in (statement, *source.above(statement)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            break
        if isinstance(node, (ast.For, ast.While, ast.AsyncFor)) and node.lineno <= place.line:
            found.append((node.lineno, node.end_lineno or node.lineno))
    return found


def stores_named(path: str, key: str) -> list[int]:
    """Lines that store a gradient under a key or attribute: `state["key"] = p.grad`, `self.key = p.grad`."""
    lines = []
    for node in ast.walk(file(path).tree):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            named = (
                isinstance(target, ast.Subscript)
                and isinstance(target.slice, ast.Constant)
                and target.slice.value == key
            ) or (isinstance(target, ast.Attribute) and target.attr == key)
            if named and any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in ast.walk(node.value)):
                lines.append(node.lineno)
    return lines


def stores_into(path: str, name: str) -> list[int]:
    """Lines that call `append`, `add`, `extend` or `update` on a name or attribute, or assign to one of its items."""
    found = []
    for node in ast.walk(file(path).tree):
        target: ast.expr | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("append", "add", "extend", "update", "insert", "appendleft", "setdefault"):
                target = node.func.value
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            target = node.targets[0].value
        while isinstance(target, ast.Subscript):
            target = target.value
        if (isinstance(target, ast.Name) and target.id == name) or (
            isinstance(target, ast.Attribute) and target.attr == name
        ):
            found.append(target.lineno)
    return found
