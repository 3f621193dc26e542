"""What stands at a position of a source, and which public name of torch an expression means."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gradguard.source.blocks import blocks
from gradguard.source.text import Source

_ALIASES = {"torch.nn.functional": "torch.nn.functional"}


@dataclass(frozen=True, slots=True)
class At:
    """The expression under the cursor, from the outermost node that contains it to the innermost."""

    path: tuple[ast.AST, ...]

    @property
    def node(self) -> ast.AST:
        """The innermost node."""
        return self.path[-1]

    def call(self) -> ast.Call | None:
        """The call whose function is under the cursor: of `torch.exp(x)` the cursor is on `torch.exp`."""
        for outer, inner in zip(reversed(self.path[:-1]), reversed(self.path)):
            if isinstance(outer, ast.Call) and outer.func is inner:
                return outer
            if not isinstance(outer, ast.Attribute):
                return None
        return None


def at(source: Source, line: int, column: int) -> At | None:
    """What stands at a position; None outside every statement."""
    text = source.line(line)
    byte = len(text[: column - 1].encode("utf-8", "surrogatepass"))
    if line == 1 and text.startswith("\ufeff"):
        byte -= 2
    path: list[ast.AST] = []
    node: ast.AST = source.tree
    while True:
        inner = _child(node, line, byte)
        if inner is None:
            return At(tuple(path)) if path else None
        path.append(inner)
        node = inner


def _child(node: ast.AST, line: int, byte: int) -> ast.AST | None:
    """The child that covers a position. Children without a place (arguments, contexts) are looked through."""
    for child in ast.iter_child_nodes(node):
        first = getattr(child, "lineno", None)
        if first is None:
            found = _child(child, line, byte)
            if found is not None:
                return found
            continue
        decorators = getattr(child, "decorator_list", ())
        if decorators:
            decorator: ast.AST | None = next((each for each in decorators if _covers(each, line, byte)), None)
            if decorator is not None:
                return decorator
        if _covers(child, line, byte):
            return child
    return None


def _covers(node: ast.AST, line: int, byte: int) -> bool:
    start = (node.lineno, node.col_offset)  # type: ignore[attr-defined]
    end = (node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
    return start <= (line, byte) <= end


def imports(tree: ast.Module) -> dict[str, str]:
    """Names that imports bind, anywhere in the file, with what they stand for."""
    # Remembered on the tree itself, which is made anew for each version.
    known: dict[str, str] | None = getattr(tree, "_gradguard_imports", None)
    if known is not None:
        return known
    bound: dict[str, str] = {}
    for node in statements(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    bound[alias.asname] = alias.name
                else:
                    head = alias.name.split(".")[0]
                    bound[head] = head
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                bound[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    tree._gradguard_imports = bound  # type: ignore[attr-defined]
    return bound


def statements(tree: ast.Module | ast.ClassDef) -> Iterator[ast.stmt]:
    """Every statement within, in no order; expressions are not looked into, which is most of a walk."""
    stack: list[list[ast.stmt]] = [tree.body]
    while stack:
        for node in stack.pop():
            yield node
            stack.extend(blocks(node))


def dotted(node: ast.AST, bound: dict[str, str]) -> str | None:
    """The public name that a chain of attributes means: `F.relu` is `torch.nn.functional.relu`."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in bound:
        return None
    return ".".join((bound[node.id], *reversed(parts)))
