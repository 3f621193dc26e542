"""A fault in the engine itself, as the report names it."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: the piece of the program that is not analysed because of it, and the words for the report."""

    node: ast.AST | None
    """The piece of the file that is not analysed; None if the piece lies in another file."""
    message: str
    traceback: str = ""
    """For the log; empty where the program is nested more deeply than Python can follow, which is no mistake of ours."""
