"""The words of the editor's texts in the reader's language.

One catalogue holds a file for each language: `texts`, templates by key, and `messages`, translations of what
rules say. Rules speak English with names in it, so their messages are matched against English templates and
said again with the same names. What has no translation stays English.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from importlib import resources
from typing import Any

from gradguard.source.printable import printable

ENGLISH = "en"
LANGUAGES = (ENGLISH, "ko")

LONGEST = 1000
"""Characters of a message that is looked for among the templates, some of which take long to be ruled out."""
_VALUE = r"(?:`[^`]*`|[^`])+?"
"""What a field stands for: never one half of a name in backquotes."""
_FIELD = re.compile(r"\{(\w+)\}")
_PARTICLE = re.compile(r"(?P<before>[가-힣])(?P<closed>이|을|은|과)\((?P<open>가|를|는|와)\)")
_LIVE = re.compile(r"[\\\[<&]")


class Wording:
    """Texts in one language."""

    def __init__(self, language: str) -> None:
        self.language = language if language in LANGUAGES else ENGLISH
        self._texts = load(self.language)["texts"]
        self._fallback = load(ENGLISH)["texts"]

    def text(self, key: str, /, **fields: object) -> str:
        """A text of the catalogue with its fields filled in. Raises KeyError for an unknown key."""
        template: str = self._texts.get(key) or self._fallback[key]
        return (
            template.format_map({name: str(value) for name, value in fields.items()}) if fields else template
        )

    def message(self, message: str) -> str:
        """What a rule said, in this language."""
        return translated(message, self.language)


def listed(names: Iterable[str]) -> str:
    """Names of a program in a row, each as code."""
    return ", ".join(f"`{name}`" for name in names)


def inline(text: str) -> str:
    """A message as Markdown: what stands in backquotes is code, the rest is text and neither link, picture nor HTML."""
    text = re.sub("`+", "`", printable(text))
    if text.count("`") % 2:  # the last one opens nothing
        text = "'".join(text.rsplit("`", 1))
    parts = enumerate(text.split("`"))
    return "`".join(part if index % 2 else _LIVE.sub(r"\\\g<0>", part) for index, part in parts)


@lru_cache(maxsize=4096)
def translated(message: str, language: str) -> str:
    """A rule's message in a language; itself where no template fits it."""
    if language == ENGLISH or len(message) > LONGEST:
        return message
    for pattern, template in _patterns(language):
        match = pattern.fullmatch(message)
        if match:
            return _settled(
                template.format_map(
                    {name: translated(value, language) for name, value in match.groupdict().items()}
                )
            )
    return message


def _settled(text: str) -> str:
    """The same with the particles that the syllable before them decides: `결과이(가)` is `결과가`."""

    def particle(match: re.Match[str]) -> str:
        closed = (ord(match["before"]) - ord("가")) % 28 != 0
        return match["before"] + (match["closed"] if closed else match["open"])

    return _PARTICLE.sub(particle, text)


@lru_cache(maxsize=len(LANGUAGES))
def load(language: str) -> dict[str, Any]:
    """The catalogue's file for a language. Raises ValueError where it is damaged."""
    text = (
        resources.files("gradguard.ide").joinpath("catalogue").joinpath(f"{language}.json").read_text("utf-8")
    )
    data = json.loads(text)
    if not isinstance(data, dict) or not isinstance(data.get("texts"), dict):
        raise ValueError(f"catalogue/{language}.json: no table of texts")
    return data


def pattern(template: str) -> re.Pattern[str]:
    """What matches the messages made from a template; a field named twice must be the same both times."""
    out, at = [], 0
    seen: set[str] = set()
    for field in _FIELD.finditer(template):
        out.append(re.escape(template[at : field.start()]))
        name = field.group(1)
        out.append(f"(?P={name})" if name in seen else f"(?P<{name}>{_VALUE})")
        seen.add(name)
        at = field.end()
    out.append(re.escape(template[at:]))
    return re.compile("".join(out), re.DOTALL)


@lru_cache(maxsize=len(LANGUAGES))
def _patterns(language: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    messages: dict[str, str] = load(language).get("messages", {})
    # The longest first: a template that is the start of another must not take its messages.
    ordered = sorted(messages.items(), key=lambda each: -len(_FIELD.sub("", each[0])))
    return tuple((pattern(english), other) for english, other in ordered)
