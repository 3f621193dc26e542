"""How public names of torch relate: an operator to its method, an in-place callable to its partner."""

from __future__ import annotations

from collections.abc import Container

INPLACE_OPERATORS = frozenset(
    [
        "add",
        "sub",
        "mul",
        "truediv",
        "div",
        "floordiv",
        "mod",
        "pow",
        "and",
        "or",
        "xor",
        "lshift",
        "rshift",
        "matmul",
    ],
)
"""Bare names of the operators that Python writes with an equals sign as well."""


def partners(name: str, known: Container[str]) -> tuple[str, str]:
    """(`inplace`, `inplace_of`): the partner of an out-of-place name and of an in-place one, where known."""
    head, _, last = name.rpartition(".")
    bare = last.strip("_")
    if head == "operator" or last.startswith("__"):
        around = ("", "") if head == "operator" else ("__", "__")

        def spell(word: str) -> str:
            return f"{head}.{around[0]}{word}{around[1]}"

        if bare in INPLACE_OPERATORS:
            return (spell(f"i{bare}") if spell(f"i{bare}") in known else "", "")
        if bare[:1] == "i" and bare[1:] in INPLACE_OPERATORS:
            outer = (w for w in (spell(bare[1:]), f"{spell(bare[1:])}_") if w in known)
            return "", next(outer, "")
        return "", ""
    if last.endswith("_"):
        return "", f"{head}.{last[:-1]}" if f"{head}.{last[:-1]}" in known else ""
    return (f"{name}_" if f"{name}_" in known else ""), ""
