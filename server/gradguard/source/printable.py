"""Text of others made fit to be shown: names of files, expressions of a program, messages that quote either.

A terminal obeys control characters, and what runs a build obeys commands in the lines that a step prints. Whatever was
not written by us goes through here on its way out, so that it is shown and never obeyed. Korean, accents and emoji stay
as they are.
"""

from __future__ import annotations

import re

_UNSEEN = (
    "\x00-\x1f\x7f-\x9f"  # line ends, escape, bell
    "\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # line ends, directions, nothing
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"  # layout, tags
    "\ud800-\udc9f\udd00-\udfff"  # half a character
)
"""What acts and shows nothing of itself. U+200C and U+200D join letters and emoji, which do not look the same without.
Letters of a name that is no UTF-8 (U+DCA0 to U+DCFF, as Python has them) are for who encodes: a file may keep the name.
"""

_BLANK = " \xa0\u1680\u2000-\u200a\u202f\u205f\u3000"

# GitHub obeys `::name ...::` at the start of a line, blanks aside, and `##[name ...]` wherever it stands, as Azure does
# `##vso[...]` and TeamCity `##teamcity[...]`. A backslash between keeps either from being one.
_ONE_LINE = re.compile(rf"[{_UNSEEN}]|(?P<obeyed>\A[{_BLANK}]*(?=::)|##(?=\w*\[))")
_LINES = re.compile(rf"(?![\n\t])[{_UNSEEN}]|(?P<obeyed>^[\t{_BLANK}]*(?=::)|##(?=\w*\[))", re.MULTILINE)
_JSON = re.compile(rf"(?!\n)[{_UNSEEN}]|(?<=#)#(?=\w*\[)")

_KNOWN_AS = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def printable(text: str) -> str:
    r"""One line that can be printed: a line end in it is `\n`, an escape `\x1b`, `::error` at its start `\::error`."""
    return _ONE_LINE.sub(_shown, text)


def printable_lines(text: str) -> str:
    """The same for a text of several lines, which stay lines, and tabs tabs."""
    return _LINES.sub(_shown, text)


def printable_json(text: str) -> str:
    """JSON that says the same, and can be printed."""
    return _JSON.sub(_in_json, text)


def quotable(text: str) -> str:
    """A stretch of a program as messages have it: one line that can stand between backquotes."""
    return printable(" ".join(text.split())).replace("`", "'")


def _shown(match: re.Match[str]) -> str:
    text = match.group()
    if match["obeyed"] is not None:
        return text + "\\"
    number = ord(text)
    if 0xDC80 <= number < 0xDCA0:  # a control character of a name that is no UTF-8
        number -= 0xDC00
    if text in _KNOWN_AS:
        return _KNOWN_AS[text]
    return (
        rf"\x{number:02x}"
        if number < 0x100
        else rf"\u{number:04x}"
        if number < 0x10000
        else rf"\U{number:08x}"
    )


def _in_json(match: re.Match[str]) -> str:
    units = match.group().encode("utf-16-be", "surrogatepass")
    return "".join(rf"\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
