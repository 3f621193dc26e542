"""Gradient formulas as a person reads them.

The table keeps torch's own text, which is C++; here it is put into the spelling of Python. `grad.defined() ? f(grad) : ...`
is `f(grad)`: that there is a gradient goes without saying.
"""

from __future__ import annotations

import re

_SPELLINGS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"/\*\s*(\w+)\s*=?\s*\*/\s*", r"\1="),
        (r"(\w+)->", r"\1."),
        (r"std::vector<c10::SymInt>\((\w+)\.size\(\), 0\)", r"[0] * len(\1)"),
        (r"\.sym_sizes\(\)", ".shape"),
        (r"\.back\(\)", "[-1]"),
        (r"\.sym_size\(([^()]*)\)", r".shape[\1]"),
        (r"\.sym_numel\(\)", ".numel()"),
        (r"\.sym_strides\(\)", ".stride()"),
        (r"\.scalar_type\(\)", ".dtype"),
        (r"\.layout\(\)", ".layout"),
        (r"\.to(?:Double|Float|ComplexDouble)\(\)", ""),
        (r"\.isComplex\(\)", ".is_complex()"),
        (r"_symint\(", "("),
        (r"(?:::)?\b(?:at|c10)::", ""),
        (r"\btrue\b", "True"),
        (r"\bfalse\b", "False"),
        (r"\s*&&\s*", " and "),
        (r"\s*\|\|\s*", " or "),
        (r"!(?!=)\s*", "not "),
        (r"\{\s*([^{}]*?)\s*\}", r"[\1]"),
    )
)
_OPEN, _CLOSE = "([{", ")]}"


def readable(formula: str) -> str:
    """The formula in Python's spelling; `input.sym_sizes()` is `input.shape`."""
    text = _chosen(formula.strip())
    for pattern, spelling in _SPELLINGS:
        text = pattern.sub(spelling, text)
    return text


def _chosen(text: str) -> str:
    """Without C++'s conditional operator outside of brackets: the case of an ordinary backward where that is told."""
    while text.startswith("(") and _closing(text) == len(text) - 1:
        text = text[1:-1].strip()
    asked = _outside(text, "?", 0)
    otherwise = _outside(text, ":", asked + 1) if asked >= 0 else -1
    if otherwise < 0:
        return text
    condition = text[:asked].strip()
    yes, no = text[asked + 1 : otherwise].strip(), text[otherwise + 1 :].strip()
    if "GradMode::is_enabled()" in condition:
        return _chosen(no)
    if ".defined()" in condition:
        return _chosen(yes)
    return f"{_chosen(yes)} if {condition} else {_chosen(no)}"


def _outside(text: str, wanted: str, start: int) -> int:
    """Where a character stands outside of brackets, -1 for nowhere; `::` is no colon."""
    depth = 0
    for index in range(start, len(text)):
        letter = text[index]
        depth += (letter in _OPEN) - (letter in _CLOSE)
        if (
            depth == 0
            and letter == wanted
            and ":" not in (text[index - 1 : index], text[index + 1 : index + 2])
        ):
            return index
    return -1


def _closing(text: str) -> int:
    """Where the bracket that the text begins with is closed."""
    depth = 0
    for index, letter in enumerate(text):
        depth += (letter in _OPEN) - (letter in _CLOSE)
        if depth == 0:
            return index
    return -1
