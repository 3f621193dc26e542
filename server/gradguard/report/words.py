"""The terminal's own words, in each language. What rules say is translated by whoever has their catalogue."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

ENGLISH, KOREAN = "en", "ko"
LANGUAGES = (ENGLISH, KOREAN)

TEXTS: dict[str, tuple[str, str]] = {
    "error": ("error", "오류"),
    "warning": ("warning", "경고"),
    "information": ("information", "정보"),
    "hint": ("hint", "힌트"),
    "fix": ("fix: {title}", "수정: {title}"),
    "safe": ("safe: --fix", "안전함: --fix"),
    "unsafe": ("may change numbers: --fix --unsafe-fixes", "값이 달라질 수 있음: --fix --unsafe-fixes"),
    "manual": ("by hand", "직접 수정"),
    "none": ("no findings", "발견한 문제 없음"),
    "found": ("{count} ({parts})", "문제 {count}({parts})"),
    "read": (" in {files} using torch of {all} read", ", 읽은 파일 {all}개 중 torch를 쓰는 {files}"),
    "callers": (" with {files} importing them", ", 이를 import하는 {files} 포함"),
    "unread": ("; {parts} not read", "; {parts} 읽지 못함"),
    "fixed": ("; {count} fixed", "; {count}개 고침"),
    "hidden": ("; {count} in the baseline", "; 기준선에 {count}개"),
    "faults": (
        "{places} not analysed because of an internal error; --verbose shows it, please report it",
        "내부 오류로 분석하지 못한 곳 {places}. --verbose로 볼 수 있으며, 알려 주시기 바랍니다",
    ),
    "limits": (
        "{places} not analysed to the end; --verbose lists them",
        "끝까지 분석하지 못한 곳 {places}. --verbose로 볼 수 있습니다",
    ),
    "next-safe": (
        "next: add --diff to see the safe fixes ({count}), --fix to apply them",
        "다음: --diff를 붙이면 안전한 수정({count}개)을 보여 주고, --fix를 붙이면 고칩니다",
    ),
    "next-explain": ("next: gradguard explain {code}", "다음: gradguard explain {code}"),
    "nothing": ("nothing found", "발견한 문제 없음"),
    "watched": (
        "{found}; watched {operators} operators{where} in {seconds} s, {own} s of them spent by the monitor{light}",
        "{found}; {seconds}초 동안 연산 {operators}개{where}를 지켜보았으며, 그중 {own}초를 모니터가 썼습니다{light}",
    ),
    "host-reads": (
        "Host reads (an accelerator would make the host wait):",
        "호스트가 읽는 곳(가속기에서는 호스트가 기다립니다):",
    ),
}
"""Texts by key, English and Korean, with the same fields."""

COUNTED: dict[str, tuple[str, str, str]] = {
    "finding": ("finding", "findings", "개"),
    "file": ("file", "files", "파일 {count}개"),
    "folder": ("folder", "folders", "폴더 {count}개"),
    "place": ("place", "places", "{count}곳"),
    "error": ("error", "errors", "오류 {count}개"),
    "warning": ("warning", "warnings", "경고 {count}개"),
    "information": ("information", "information", "정보 {count}개"),
    "hint": ("hint", "hints", "힌트 {count}개"),
}
"""What is counted: one, several, and how Korean counts it."""


def _same(message: str) -> str:
    return message


@dataclass(frozen=True, slots=True)
class Words:
    """The words of one language. `say` translates what rules and fixes say."""

    language: str = ENGLISH
    say: Callable[[str], str] = _same

    def text(self, key: str, /, **fields: object) -> str:
        """A text with its fields filled in."""
        return TEXTS[key][LANGUAGES.index(self.language)].format_map(fields)

    def counted(self, count: int, what: str) -> str:
        """A count with its word."""
        one, many, korean = COUNTED[what]
        if self.language == KOREAN:
            return korean.format(count=count) if "{count}" in korean else f"{count}{korean}"
        return f"{count} {one if count == 1 else many}"


def language(words: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> str:
    """The language that the user wants: `--lang`, else that of the system's messages."""
    environment = os.environ if environment is None else environment
    for place, word in enumerate(words):
        if word == "--":
            break
        given = word.removeprefix("--lang=") if word.startswith("--lang=") else ""
        if word == "--lang":
            given = next(iter(words[place + 1 :]), "")
        if given in LANGUAGES:
            return given
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if environment.get(name):
            return KOREAN if environment[name].startswith(KOREAN) else ENGLISH
    return ENGLISH
