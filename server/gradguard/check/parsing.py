"""Settings from a table of plain values, such as parsed TOML or an editor's JSON.

Nothing here raises on bad input: what is right is taken, what is wrong becomes a `Problem` that names the
key and, where one is near, the name that was meant.
"""

from __future__ import annotations

import difflib
import re
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from gradguard.check.catalogue import Catalogue, catalogue
from gradguard.check.patterns import compiled
from gradguard.check.settings import Kind, Layer, Level, Option, options

VERSION = re.compile(r"\d+\.\d+([.+-]?\w)*")

TOLD = 50
"""Problems of one table that are told; the others are counted."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong in the settings. `line` counts from 1, 0 where it is not known.

    column, end_column: the stretch of that line, as those of findings. text: the whole line.
    """

    where: str
    key: str
    message: str
    line: int = 0
    column: int = 1
    end_column: int = 1
    text: str = ""

    def __str__(self) -> str:
        place = f"{self.where}:{self.line}" if self.line else self.where
        return ": ".join(part for part in (place, self.key, self.message) if part)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A layer of settings and what was wrong with it."""

    layer: Layer
    problems: tuple[Problem, ...] = ()


def parse(
    data: Mapping[str, Any], where: str, *, editor: bool = False, rules: Callable[[], Catalogue] = catalogue
) -> Parsed:
    """Read a table of settings. `where` names the origin in problems; `editor` says how keys are spelled.

    `rules` is called only when a value names rules, so that reading the rest loads none of them.
    """
    known = {
        (option.editor_key if editor else option.key): (name, option)
        for name, option in options().items()
        if editor or not option.editor_only
    }
    layer: dict[str, Any] = {}
    reader = _Reader(where, rules)
    for key, value in data.items():
        if key not in known:
            reader.add(key, partial(_unknown_key, key, known, editor))
            continue
        name, option = known[key]
        read = reader.read(key, option, value)
        if read is not None:
            layer[name] = read
    return Parsed(layer, reader.problems())


def version_problem(text: str) -> str | None:
    """Why this is no torch version, or None when it is one."""
    if text == "auto" or (len(text) <= 100 and VERSION.fullmatch(text)):
        return None
    return f'"{shortened(text)}" is no torch version; write "auto" or one such as "2.6"'


def shortened(text: str) -> str:
    """A text as it is quoted in a message."""
    return text if len(text) <= 100 else text[:97] + "..."


class _Reader:
    """Reads one value after the other into the form that `Settings` holds; None where nothing could be taken."""

    def __init__(self, where: str, rules: Callable[[], Catalogue]) -> None:
        self._where = where
        self._rules = rules
        self._told: list[Problem] = []
        self._untold = 0

    def problems(self) -> tuple[Problem, ...]:
        """What was wrong, and how much more than can be told."""
        if not self._untold:
            return tuple(self._told)
        return *self._told, Problem(self._where, "", f"and {self._untold} more problems")

    def add(self, key: str, message: Callable[[], str]) -> None:
        """Note a problem; its message is made only when it is told."""
        if len(self._told) < TOLD:
            self._told.append(Problem(self._where, key, message()))
        else:
            self._untold += 1

    def read(self, key: str, option: Option, value: Any) -> Any:
        match option.kind:
            case Kind.BOOL:
                if isinstance(value, bool):
                    return value
                self._wrong(key, value, "true or false")
            case Kind.CHOICE:
                allowed = [choice for choice, _ in option.choices]
                if value in allowed:
                    return value
                self._wrong(key, value, " or ".join(f'"{choice}"' for choice in allowed))
            case Kind.VERSION:
                return self._version(key, value)
            case Kind.STRINGS:
                return self._strings(key, value)
            case Kind.PATTERNS:
                return self._patterns(key, value)
            case Kind.RULES:
                return self._selectors(key, value, choose=key == "select")
            case Kind.LEVELS:
                return self._levels(key, value)
            case Kind.RULES_BY_GLOB:
                return self._by_glob(key, value)
        return None

    def _version(self, key: str, value: Any) -> str | None:
        if not isinstance(value, str):
            self._wrong(key, value, 'a version in quotes, such as "2.6"')
            return None
        problem = version_problem(value)
        if problem:
            self.add(key, lambda: problem)
            return None
        return value

    def _strings(self, key: str, value: Any) -> tuple[str, ...] | None:
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            self._wrong(key, value, "a list of strings")
            return None
        return tuple(value)

    def _patterns(self, key: str, value: Any) -> tuple[str, ...] | None:
        texts = self._strings(key, value)
        if texts is None:
            return None
        refused = compiled(texts).refused
        for text, why in refused.items():
            self.add(key, partial(_no_pattern, text, why))
        return tuple(text for text in texts if text not in refused)

    def _selectors(self, key: str, value: Any, *, choose: bool = False) -> tuple[str, ...] | None:
        texts = self._strings(key, value)
        if texts is None:
            return None
        rules = self._rules() if texts else None
        codes: set[str] = set()
        for text in dict.fromkeys(texts):
            assert rules is not None
            found = rules.choose(text) if choose else rules.resolve(text)
            if not found:
                self.add(key, partial(rules.unknown, shortened(text)))
            codes |= found
        return tuple(sorted(codes))

    def _levels(self, key: str, value: Any) -> tuple[tuple[str, Level], ...] | None:
        if not isinstance(value, Mapping):
            self._wrong(key, value, 'a table from rule to level, such as GG301 = "off"')
            return None
        words = [level.value for level in Level]
        rules = self._rules() if value else None
        levels: dict[str, Level] = {}
        # A prefix is laid first so that a rule's own level wins however the table is ordered.
        found = [(selector, rules.choose(selector), word) for selector, word in value.items() if rules]
        for selector, codes, word in sorted(found, key=lambda each: -len(each[1])):
            at = f"{key}.{selector}"
            if not codes:
                assert rules is not None
                self.add(at, partial(rules.unknown, shortened(selector)))
            elif word not in words:
                self._wrong(at, word, ", ".join(f'"{each}"' for each in words))
            else:
                levels.update(dict.fromkeys(codes, Level(word)))
        return tuple(sorted(levels.items()))

    def _by_glob(self, key: str, value: Any) -> tuple[tuple[str, tuple[str, ...]], ...] | None:
        if not isinstance(value, Mapping):
            self._wrong(key, value, "a table from file pattern to a list of rules")
            return None
        read = []
        refused = compiled(tuple(value)).refused
        for glob, selectors in value.items():
            codes = self._selectors(f"{key}.{glob}", selectors)
            if glob in refused:
                self.add(f"{key}.{glob}", partial(_no_pattern, glob, refused[glob]))
            elif codes is not None:
                read.append((glob, codes))
        return tuple(read)

    def _wrong(self, key: str, value: Any, wanted: str) -> None:
        self.add(key, lambda: f"expected {wanted}, found {_show(value)}")


def _no_pattern(text: str, why: str) -> str:
    return f'"{shortened(text)}" is no pattern as in .gitignore: {why}'


def _show(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{shortened(value)}"'
    if isinstance(value, Mapping):
        return "a table"
    try:
        text = _REPR.repr(value)
    except ValueError:  # Python does not write numbers of thousands of digits
        return "a huge number"
    return text if len(text) <= 40 else text[:37] + "..."


_REPR = reprlib.Repr()
_REPR.maxlevel = 3
_REPR.maxstring = _REPR.maxlong = _REPR.maxother = 40


def _unknown_key(key: str, known: Mapping[str, tuple[str, Option]], editor: bool) -> str:
    for spelled, (_, option) in known.items():
        if key.replace("_", "-").lower() in (option.key, option.editor_key.lower()):
            return f'unknown key; it is spelled "{spelled}" here'
    only_editor = [option.editor_key for option in options().values() if option.editor_only]
    if not editor and (key in only_editor or key in {o.key for o in options().values() if o.editor_only}):
        return "this can be set in the editor only"
    close = difflib.get_close_matches(key, list(known), n=1, cutoff=0.6)
    if close:
        return f'unknown key; did you mean "{close[0]}"?'
    return f"unknown key; known are {', '.join(sorted(known))}"
