"""Devices that a file names."""

from __future__ import annotations

import ast
import re

from gradguard.source.blocks import touching
from gradguard.source.text import Source

_ACCELERATOR = re.compile(
    r"""["'](?:cuda|mps|xpu|npu|hpu)\b|\.cuda\(|\.to\((?:self\.)?\w*device|\baccelerat"""
)
_DEFAULT = re.compile(r"\bset_default_(?:device|tensor_type)\b|\bwith torch\.device\b")


def named_devices(source: Source) -> frozenset[str]:
    """`accelerator` where the code names one, `default` where it sets the device of what is made without one.

    What comments and docstrings say of devices is for readers.
    """
    patterns = {"accelerator": _ACCELERATOR, "default": _DEFAULT}
    return frozenset(name for name, pattern in patterns.items() if _names(source, pattern))


def _names(source: Source, pattern: re.Pattern[str]) -> bool:
    for found in pattern.finditer(source.text):
        start = source.text.rfind("\n", 0, found.start()) + 1
        if "#" in source.text[start : found.start()]:
            continue
        if not _in_docstring(source.tree, source.text.count("\n", 0, found.start()) + 1):
            return True
    return False


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
