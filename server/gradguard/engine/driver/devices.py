"""Devices that a file names."""

from __future__ import annotations

import ast
import re

from gradguard.source.blocks import touching
from gradguard.source.text import Source

_ACCELERATOR = re.compile(
    r"""["'](?:cuda|mps|xpu|npu|hpu)\b|\.cuda\(|\.to\((?:self\.)?\w*device|\baccelerat"""
)


def named_devices(source: Source) -> frozenset[str]:
    """`accelerator` where the code names one; what comments and docstrings say of devices is for readers."""
    for found in _ACCELERATOR.finditer(source.text):
        start = source.text.rfind("\n", 0, found.start()) + 1
        if "#" in source.text[start : found.start()]:
            continue
        if not _in_docstring(source.tree, source.text.count("\n", 0, found.start()) + 1):
            return frozenset({"accelerator"})
    return frozenset()


def _in_docstring(tree: ast.Module, line: int) -> bool:
    """Whether a line belongs to a string that is a statement of its own."""
    waiting: list[list[ast.stmt]] = [tree.body]
    while waiting:
        block = waiting.pop()
        for index in touching(block, line, line):
            statement = block[index]
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                if isinstance(statement.value.value, str):
                    return True
            elif isinstance(body := getattr(statement, "body", None), list):
                waiting.append(body)
    return False
