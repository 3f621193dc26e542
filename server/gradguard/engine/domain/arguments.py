"""The arguments of one call."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from gradguard.engine.domain.tensors import Place
from gradguard.engine.domain.values import Value


@dataclass(slots=True)
class Call:
    """Arguments of one call, with the expressions they came from."""

    args: list[Value]
    kwargs: dict[str, Value]
    place: Place
    exprs: list[ast.AST | None]
    kwexprs: dict[str, ast.AST | None]
    name: str = ""
    """Last part of the callee's own name, whatever the program calls it."""
    open_args: bool = False
    """A `*args` or `**kwargs` of unknown content was passed."""

    def get(self, index: int, name: str, default: Value = None) -> Value:
        """Argument by position or name."""
        if index < len(self.args):
            return self.args[index]
        return self.kwargs.get(name, default)

    def expr(self, index: int, name: str = "") -> ast.AST | None:
        """Expression of an argument."""
        if index < len(self.exprs):
            return self.exprs[index]
        return self.kwexprs.get(name)
