"""Errors that the program catches itself.

What a statement raises passes no hook of torch's. So the user's files are compiled with one call at the start of each
`except` that may catch an error of torch; lines and columns stay what they are, and it costs nothing. Code that was
compiled before, such as that around `gradguard.monitor()`, has no such calls: there the tracer follows errors.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from types import CodeType, FrameType
from typing import Any

NAME = "__gradguard_caught__"
# Code may be sent to a process that has no such name.
CALL = f"try:\n    {NAME}()\nexcept NameError:\n    pass\n"


def compiled(source: bytes, path: str) -> CodeType:
    """The code of a file, with the calls. Raises SyntaxError or ValueError as `compile` does."""
    tree = ast.parse(source, path)
    try:
        tree = _Calls().visit(tree)
    except RecursionError:
        return compile(source, path, "exec", dont_inherit=True)
    return compile(tree, path, "exec", dont_inherit=True)


@contextlib.contextmanager
def told(
    caught: Callable[[BaseException, FrameType], None], is_user_file: Callable[[str], bool]
) -> Iterator[None]:
    """Inside, `caught` is called with every error that a handler of the user's files or `suppress` catches."""
    get_code, leave = SourceFileLoader.get_code, contextlib.suppress.__exit__

    def here() -> None:
        error = sys.exc_info()[1]
        if error is not None:
            caught(error, sys._getframe(1))

    def with_calls(self: SourceFileLoader, name: str) -> CodeType | None:
        path = self.get_filename(name)
        if type(self) is SourceFileLoader and is_user_file(path):
            return compiled(self.get_data(path), path)
        return get_code(self, name)

    def suppressing(self: Any, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if error is not None:
            caught(error, sys._getframe(1))
        return bool(leave(self, kind, error, trace))

    setattr(builtins, NAME, here)
    SourceFileLoader.get_code = with_calls  # type: ignore[assignment, method-assign]
    contextlib.suppress.__exit__ = suppressing  # type: ignore[method-assign]
    try:
        yield
    finally:
        SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
        contextlib.suppress.__exit__ = leave  # type: ignore[method-assign]


class _Calls(ast.NodeTransformer):
    """Puts the calls in."""

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        self.generic_visit(node)
        if _may_catch(node.type):
            call = ast.parse(CALL).body[0]
            for part in ast.walk(call):
                ast.copy_location(part, node)
            node.body.insert(0, call)
        return node


def _may_catch(kinds: ast.expr | None) -> bool:
    """Whether an error of torch can be of these kinds, as far as their names tell."""
    listed = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
    for kind in listed:
        known = getattr(builtins, kind.id, None) if isinstance(kind, ast.Name) else None
        if not isinstance(known, type) or issubclass(RuntimeError, known):
            return True
    return False
