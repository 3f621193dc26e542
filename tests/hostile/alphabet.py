"""Text that acts where it is printed, and what must hold of anything that was."""

from __future__ import annotations

import re
import unicodedata

from hypothesis import strategies as st

PARTS = (
    "\n", "\r", "\r\n", "\t", "\0", "\x07", "\x08", "\x0b", "\x0c", "\x1b", "\x1b[2J", "\x1b]0;title\x07", "\x7f", "\x85",
    "\x9b31m", "\u2028", "\u2029", "\u202e", "\u2066", "\u200b", "\ufeff", "\U000e0041", "\udc9b", "\udcff",
    "::error ::", "::error file=a.py,line=1::", "::add-mask::", "::stop-commands::x", "##[error]", "##[group]", "##[add-mask]",
    "##vso[task.setvariable variable=PATH]", "##teamcity[buildStop comment='x']", "section_start:1:x\r\x1b[0K",
    " ", "\xa0", "\u3000", "#", "##", ":", "::", "[", "]", "%0A", "%25", "`", "``", "'", '"', "\\", "<b>", "&lt;", "](x)",
    "![x](https://a.example)", "[x](command:quit)", "a", "b.py", "한국어", "é", "🏴\u200d☠️", "{0}", "[bold]",
)  # fmt: skip

TEXTS = st.lists(st.sampled_from(PARTS), max_size=8).map("".join)

_SEEN = frozenset(
    "\u200c\u200d\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)
"""Joiners, which shape the letters around them, and signs around numbers."""
_MADE_BY_US = re.compile(r"\x1b\[[\d;]*m")


def acting(text: str, keep: str = "\n") -> list[str]:
    """The characters that a terminal would act on."""
    return [
        char
        for char in text
        if char not in keep and char not in _SEEN and unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp")
    ]


def without_colours(text: str) -> str:
    return _MADE_BY_US.sub("", text)


def commands(text: str) -> list[str]:
    """The lines that the runner of GitHub (`ActionCommand.TryParseV2`, `TryParse`), of Azure or TeamCity obeys."""
    return [line for line in re.split(r"[\r\n]", text) if _is_command(line)]


def _is_command(line: str) -> bool:
    start = line.lstrip()
    if start.startswith("::") and "::" in start[2:]:
        return True
    return any(at >= 0 and "]" in line[at:] for at in map(line.find, ("##[", "##vso[", "##teamcity[")))
