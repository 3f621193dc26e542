"""Patterns of .gitignore, matched in a time that grows with the name and the patterns alone, whatever they are.

What a pattern means is what pathspec makes of it. But the regular expression that it makes tries every way to
share out a name over stars, which never ends for `*a*a*a*a...`, and a file of many patterns costs each name one
search a pattern. Here the expressions of all patterns become one automaton that is in all its states at once: a
state is a bit of one long number, and a character of a name is a few operations on it, for all patterns together.

    *.py        ^(?:.+/)?[^/]*\\.py(?:(?P<ps_d>/)|$)       state 2 stays for all but `/`, and `.` leads on to 3

As in git, and other than in the expressions, `[...]` never stands for a `/`, and a line end is as any character.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache

LONGEST = 10_000
"""Characters of a pattern."""
MOST_SETS = 256
"""Different `[...]` in the patterns that are matched together: each is asked for every new character of a name."""
_KEPT = 512
"""Characters for which is kept where they lead."""

_PIECE = re.compile(
    r"(?P<below>\^\(\?:\.\+/\)\?)|(?P<start>\^)|(?P<between>\(\?:/\.\+\)\?)|(?P<star>\[\^/\]\*)"
    r"|(?P<many>\[\^/\]\+)|(?P<one>\[\^/\])|(?P<end>\(\?:\(\?P<ps_d>/\)\|\$\))|(?P<folder>\(\?P<ps_d>/\))"
    r"|(?P<set>\[\^?\]?[^\]]*\])|(?P<all>\.)|\\(?P<escaped>.)|(?P<plain>[^\\])",
    re.DOTALL,
)
"""Everything that pathspec's expressions are made of."""


class BadPattern(ValueError):
    """Not a pattern, nor one for git; the message says why."""


class TooMuch(BadPattern):
    """A pattern, but more than is taken."""


@lru_cache(maxsize=8)
def compiled(texts: tuple[str, ...]) -> Patterns:
    """Patterns that are asked for again and again, such as those of the settings."""
    return Patterns(texts)


class Patterns:
    """The patterns of one file or setting, in their order. What is no pattern matches nothing."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.refused: dict[str, str] = {}
        """What is no pattern, and why."""
        self.too_much: list[str] = []
        """What of that would be one for git."""
        builder = _Builder()
        ends: dict[str, int] = {}
        for text in reversed(dict.fromkeys(reversed(texts))):  # of equal patterns the last one decides
            try:
                found = _read(text)
                if found is not None:
                    ends[text] = builder.add(*found)
            except BadPattern as error:
                self.refused[text] = str(error)
                if isinstance(error, TooMuch):
                    self.too_much.append(text)
        self._ends = ends
        self._texts, self._last_states = list(ends), list(ends.values())
        self._size = size = builder.size
        self._literals = builder.literals
        self._sets = [(each, _mask(states, size)) for each, states in builder.sets.items()]
        self._loops = _mask(builder.loops, size)
        self._loops_anywhere = _mask(builder.loops_anywhere, size)
        self._by_any = _mask(builder.by_any, size)
        self._by_name = _mask(builder.by_name, size) | self._by_any
        self._next = _mask(builder.next, size)
        self._over = _mask(builder.over, size)
        self._at_end = _mask(builder.at_end, size)
        self._at_folder = _mask(builder.at_folder, size)
        self._at_slash = _mask(builder.at_slash, size)
        self._leads: dict[str, int] = {}
        self._initial = _mask(builder.initial, size), 0, 0
        self._before = "", self._initial

    def __bool__(self) -> bool:
        """Whether any pattern can match."""
        return bool(self._ends)

    def verdict(self, name: str) -> bool | None:
        """Whether the last pattern that has a say leaves a name out: False when it takes it back, None when none has.

        A name is relative to where the patterns stand, with slashes, and one at its end for a folder.
        """
        itself, above = self._matching(name)
        found = itself or above
        if not found:
            return None
        index = bisect_right(self._last_states, found.bit_length() - 1) - 1
        return not self._texts[index].startswith("!")

    def found(self, name: str) -> int:
        """The patterns that match a name, for `mask` to tell which they are."""
        itself, above = self._matching(name)
        return itself | above

    def mask(self, texts: Iterable[str]) -> int:
        """What `found` shares a bit with when one of these patterns leaves a name out."""
        states = [self._ends[text] for text in texts if text in self._ends and not text.startswith("!")]
        return _mask(states, self._size)

    def _matching(self, name: str) -> tuple[int, int]:
        """Last states of the patterns that match the name itself, and of those that match a folder above it.

        A pattern that does both is among both; the latter decide only where no pattern matches the name itself.
        """
        folder, slash, rest = name.rpartition("/")
        states = self._initial
        if slash and rest:
            before = self._before
            if before[0] != folder:  # names are asked for folder by folder, from above
                known = before[0] + "/"
                if known != "/" and folder.startswith(known):
                    states = self._follow(folder[len(known) :] + "/", before[1])
                else:
                    states = self._follow(folder + "/", states)
                before = self._before = folder, states
            states, name = before[1], rest
        at, itself, above = self._follow(name, states)
        return itself | (at & self._at_end), above

    def _follow(self, name: str, states: tuple[int, int, int]) -> tuple[int, int, int]:
        at, itself, above = states
        next_, over = self._next, self._over
        for character in name:
            if not at:
                break
            lead = self._leads.get(character)
            if lead is None:
                lead = self._lead(character)
            if character == "/":
                itself |= at & self._at_slash
                above |= at & self._at_folder
                at = ((at & lead) << 1) | (at & self._loops_anywhere)
            else:
                at = ((at & lead) << 1) | (at & self._loops)
            if over:
                at |= ((at & next_) << 1) | ((at & over) << 3)
        return at, itself, above

    def _lead(self, character: str) -> int:
        """The states that a character leads on from."""
        lead = _mask(self._literals.get(character, ()), self._size)
        if character == "/":
            lead |= self._by_any
        else:
            lead |= self._by_name
            for each, mask in self._sets:
                if each.holds(character):
                    lead |= mask
        if len(self._leads) >= _KEPT:
            self._leads = {}
        self._leads[character] = lead
        return lead


class _Set:
    """The characters of a `[...]`."""

    def __init__(self, text: str) -> None:
        """Raises BadPattern."""
        inside = text[1:-1].replace("\\\\", "\\")
        self.without = inside.startswith("^")
        inside = inside[self.without :]
        ranges = []
        index = 0
        while index < len(inside):
            first = last = inside[index]
            index += 1
            if inside[index : index + 1] == "-" and index + 1 < len(inside):
                last = inside[index + 1]
                index += 2
            if last < first:
                raise BadPattern(f"in [{first}-{last}] the first comes after the last")
            ranges.append((first, last))
        self._starts: list[str] = []
        self._ends: list[str] = []
        for first, last in sorted(ranges):
            if self._ends and first <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], last)
            else:
                self._starts.append(first)
                self._ends.append(last)

    def holds(self, character: str) -> bool:
        index = bisect_right(self._starts, character) - 1
        return (index >= 0 and character <= self._ends[index]) is not self.without


class _Builder:
    """States of all patterns, one pattern after the other: a pattern's last state leads nowhere."""

    def __init__(self) -> None:
        self.size = 0
        self.initial: list[int] = []
        self.loops: list[int] = []
        """States that stay for every character but `/`."""
        self.loops_anywhere: list[int] = []
        """States that stay for every character; in `loops` as well."""
        self.by_any: list[int] = []
        """States that every character leads on from."""
        self.by_name: list[int] = []
        """States that every character but `/` leads on from."""
        self.literals: defaultdict[str, list[int]] = defaultdict(list)
        self.sets: dict[_Set, list[int]] = {}
        self.next: list[int] = []
        """States that stand for the next one as well."""
        self.over: list[int] = []
        """States that stand for the third after them as well."""
        self.at_end: list[int] = []
        """Last states that match at the end of a name."""
        self.at_folder: list[int] = []
        """Last states that match at a `/`, the folder before it."""
        self.at_slash: list[int] = []
        """Last states that match at a `/`, what is below it."""
        self._sets: dict[str, _Set] = {}

    def add(self, pieces: list[re.Match[str]], sets: dict[str, _Set]) -> int:
        """Add the pieces of an expression and return the last state. Raises TooMuch."""
        if len(self._sets.keys() | sets.keys()) > MOST_SETS:
            raise TooMuch(f"there are more than {MOST_SETS} different [...]")
        for text, made in sets.items():
            self.sets.setdefault(self._sets.setdefault(text, made), [])
        at = self.size
        if pieces[0].lastgroup in ("start", "below"):
            self.initial.append(at)
        for piece in pieces[:-1]:
            match piece.lastgroup:
                case "below":
                    self.by_any.append(at)
                    self._stay(at + 1)
                    self.literals["/"].append(at + 1)
                    self.initial.append(at + 2)
                    at += 2
                case "between":
                    self.literals["/"].append(at)
                    self.by_any.append(at + 1)
                    self._stay(at + 2)
                    self.next.append(at + 2)
                    self.over.append(at)
                    at += 3
                case "star":
                    self.loops.append(at)
                case "many":
                    self.by_name.append(at)
                    self.loops.append(at + 1)
                    at += 1
                case "one":
                    self.by_name.append(at)
                    at += 1
                case "set":
                    self.sets[self._sets[piece.group()]].append(at)
                    at += 1
                case "escaped" | "plain":
                    self.literals[piece.group(piece.lastgroup)].append(at)
                    at += 1
        last = pieces[-1]
        if len(pieces) == 1:  # all there is, or all that lies in a folder
            self.initial.append(at)
            if last.lastgroup == "all":
                self.by_any.append(at)
                at += 1
            self._stay(at)
        match last.lastgroup:
            case "end":
                self.at_end.append(at)
                self.at_folder.append(at)
            case "folder":
                self.at_folder.append(at)
            case "all":
                self.at_end.append(at)
            case _:
                self.at_slash.append(at)
        self.size = at + 1
        return at

    def _stay(self, state: int) -> None:
        self.loops.append(state)
        self.loops_anywhere.append(state)


def _read(text: str) -> tuple[list[re.Match[str]], dict[str, _Set]] | None:
    """The pieces of a pattern's expression and its sets; None for a pattern without one. Raises BadPattern."""
    # Most runs match no pattern.
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    if len(text) > LONGEST and not text.startswith("#"):
        raise TooMuch(f"it is longer than {LONGEST:,} characters")
    try:
        expression, include = GitIgnoreSpecPattern.pattern_to_regex(text)
    except ValueError:
        raise BadPattern(_why(text)) from None
    if include is None or expression is None:
        return None
    pieces = list(_PIECE.finditer(expression))
    sets = {each.group(): _Set(each.group()) for each in pieces if each.lastgroup == "set"}
    return pieces, sets


def _why(text: str) -> str:
    if text.rstrip().endswith("\\"):
        return "nothing follows the backslash at its end"
    if text.strip() == "!":
        return 'nothing follows its "!"'
    return "pathspec cannot read it"


def _mask(positions: Iterable[int], size: int) -> int:
    """The number with these bits."""
    data = bytearray(size // 8 + 1)
    for position in positions:
        data[position >> 3] |= 1 << (position & 7)
    return int.from_bytes(data, "little")
