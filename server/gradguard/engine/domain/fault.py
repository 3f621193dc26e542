"""A fault of the engine itself, as it is told."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that was met, as it is told."""

    node: ast.AST | None
    """The piece of the file that it cost; None where that is part of another file."""
    message: str
    traceback: str = ""
    """For the log; empty where the program is nested more deeply than Python can follow, which is no mistake of ours."""
