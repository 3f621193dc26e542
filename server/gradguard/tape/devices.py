"""Devices that a file names."""

from __future__ import annotations

import ast
import re

from gradguard.source.text import Source

_ACCELERATOR = re.compile(
    r"""["'](?:cuda|mps|xpu|npu|hpu)\b|\.cuda\(|\.to\((?:self\.)?\w*device|\baccelerat"""
)


def named_devices(source: Source) -> frozenset[str]:
    """`accelerator` where the code names one; what comments and docstrings say of devices is for readers."""
    prose: list[range] | None = None
    for found in _ACCELERATOR.finditer(source.text):
        start = source.text.rfind("\n", 0, found.start()) + 1
        if "#" in source.text[start : found.start()]:
            continue
        if prose is None:
            prose = _docstrings(source.tree)
        line = source.text.count("\n", 0, found.start()) + 1
        if not any(line in lines for lines in prose):
            return frozenset({"accelerator"})
    return frozenset()


def _docstrings(tree: ast.Module) -> list[range]:
    """Lines of strings that are statements of their own."""
    lines: list[range] = []
    waiting: list[list[ast.stmt]] = [tree.body]
    while waiting:
        for statement in waiting.pop():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                if isinstance(statement.value.value, str):
                    lines.append(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
            elif isinstance(body := getattr(statement, "body", None), list):
                waiting.append(body)
    return lines
