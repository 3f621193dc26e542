"""A text that is being typed, made whole: pieces that do not parse are exchanged for the last text of them that did.

    def f(x):               is read as      def f(x):
        y = torch.exp(x(                        y = torch.exp(x)
        return y                                return y

What is read for a version follows from its text and from what was read for the version before, in which good texts
live on. Statements of that version stand in for a broken piece if they stood between the same neighbours, are gone
from the new text, and have the name of the piece or a line in common with it; without such, what stood in its place
or began with the same words. Where nothing stands in, the piece stays as it was typed and is lost.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from gradguard.source.piece import Chunk, Piece, count_lines, name_of
from gradguard.source.pieces import Reading, class_of, members_of
from gradguard.source.places import Places, Stretch, lines_of, same_lines
from gradguard.source.recover import apart
from gradguard.source.scan import boundaries

MAX_ALIKE = 20
"""Changed pieces that may have a line for it to tell them apart: more than this many have `    return x`."""

_FIRST_WORD = re.compile(r"\s*?([ \t]*)(\w+|\S)")
"""Of a text, with what it is indented by."""


@dataclass(frozen=True, slots=True)
class Mended:
    """What is read in place of a text. `breaks` are those of the text, at their offsets in what is read."""

    text: str
    places: Places
    breaks: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A stretch of the new text: a piece that parses, one that does not, or a class of which some members do not."""

    text: str
    piece: Piece

    @property
    def parses(self) -> bool:
        return not self.piece.errors

    @property
    def partly(self) -> bool:
        return bool(self.piece.errors and self.piece.members)

    @property
    def lost(self) -> bool:
        return bool(self.piece.errors and not self.piece.members)


def mended(reading: Reading, breaks: Collection[int] = ()) -> Mended | None:
    """What is read in place of a text; None where nothing stands in, so that the text itself is."""
    leaves = [_leaves(chunk) for chunk in reading.middle]
    before = [piece for chunk in reading.replaced for piece in chunk.pieces]
    good = _good([leaf for each in leaves for leaf in each], before)
    if not good:
        return None
    made = _Making(good)
    moved: dict[int, int] = {}
    for chunk in reading.head:
        made.stays(chunk.text, chunk.lines)
    for chunk, each in zip(reading.middle, leaves):
        if chunk.offset in breaks:
            moved[chunk.offset] = made.line_start()
        for leaf in each:
            made.leaf(leaf)
    for chunk in reading.tail:
        made.stays(chunk.text, chunk.lines)
    # No chunk starts where the last cell of a notebook is empty.
    end = made.line_start() if breaks else 0
    return Mended(made.text(), made.places(), frozenset(moved.get(each, end) for each in breaks))


class _Making:
    """The text that is read, and its places, while they grow. `good`: what stands in, by the piece."""

    def __init__(self, good: dict[int, str]) -> None:
        self._good = good
        self._size = 0
        self._parts: list[str] = []
        self._stretches: list[Stretch] = []
        self._typed = self._read = 1
        self._lost: list[_Leaf] = []

    def leaf(self, leaf: _Leaf) -> None:
        """What is read for a leaf."""
        parts = apart(leaf.text) if leaf.partly else None
        if parts is not None:
            self.stays(parts.header, count_lines(parts.header))
            for member in leaf.piece.members:
                self.leaf(_Leaf(member.text, member))
        elif leaf.lost:
            self._lost.append(leaf)
        else:
            self.stays(leaf.text, count_lines(leaf.text))

    def stays(self, text: str, lines: int) -> None:
        """A stretch is read as it was typed."""
        if text:
            self._settle()
            self._stay(text, lines)

    def line_start(self) -> int:
        """Offset at which the next line starts; nothing broken reaches across it."""
        self._settle()
        self._end_line()
        return self._size

    def text(self) -> str:
        self._settle()
        return "".join(self._parts)

    def places(self) -> Places:
        # A line end at the very end opens one more, empty line.
        return Places([*self._stretches, Stretch(self._typed, self._read, 1, True)])

    def _settle(self) -> None:
        """Broken pieces below each other are exchanged together: what was one piece may be torn into several."""
        run, self._lost = self._lost, []
        good = [self._good[id(leaf.piece)] for leaf in run if id(leaf.piece) in self._good]
        if not good:
            for leaf in run:
                self._stay(leaf.text, count_lines(leaf.text))
            return
        typed, read = "".join(leaf.text for leaf in run), _joined(good)
        for first, other, lines in same_lines(lines_of(typed), lines_of(read)):
            self._stretches.append(Stretch(self._typed + first, self._read + other, lines, False))
        self._add(read, count_lines(typed), count_lines(read))

    def _stay(self, text: str, lines: int) -> None:
        self._stretches.append(Stretch(self._typed, self._read, lines, True))
        self._add(text, lines, lines)

    def _add(self, text: str, typed: int, read: int) -> None:
        self._end_line()
        self._parts.append(text)
        self._size += len(text)
        self._typed += typed
        self._read += read

    def _end_line(self) -> None:
        if self._parts and not self._parts[-1].endswith(("\n", "\r")):
            # What was the end of its text stands in the middle now.
            self._parts.append("\n")
            self._size += 1


_KNOWN = Piece(1, 1, "")
"""Of a chunk that parses as it did in the version before."""


def _leaves(chunk: Chunk) -> list[_Leaf]:
    if not chunk.pieces:
        return [_Leaf(chunk.text, _KNOWN)]
    leaves: list[_Leaf] = []
    for piece in chunk.pieces:
        if piece.errors or len(chunk.pieces) == 1:
            leaves.append(_Leaf(piece.text, piece))
            continue
        # What was taken apart in another way than statements are: as those, so that they are found again.
        starts = [0, *boundaries(piece.text)]
        leaves += [
            _Leaf(piece.text[begin:end], piece) for begin, end in zip(starts, [*starts[1:], len(piece.text)])
        ]
    return leaves


def _good(leaves: Sequence[_Leaf], before: Sequence[Piece]) -> dict[int, str]:
    """The texts that stand in for broken pieces, by the piece (members of classes included)."""
    if all(leaf.parses for leaf in leaves) or not before:
        return {}
    good: dict[int, str] = {}
    gaps = _gaps(leaves, before)
    there = Counter(leaf.text for now, _ in gaps for leaf in now if leaf.parses)
    for now, old in gaps:
        for leaf in now:
            if leaf.partly:
                good.update(_members(leaf, old))
        if not any(leaf.lost for leaf in now):
            continue
        # What never was good is no good text.
        gone = [piece for piece in old if not _taken(there, piece.text) and (piece.body or not piece.errors)]
        given, left = _given(now, gone)
        for index, leaf in enumerate(now):
            if leaf.lost and index not in given:
                found = _alike(index, left, now, old)
                left = [piece for piece in left if not any(piece is one for one in found)]
                if found:
                    given[index] = found
        good.update(
            (id(now[index].piece), _joined([piece.text for piece in run]))
            for index, run in given.items()
            if now[index].lost
        )
    return good


def _gaps(leaves: Sequence[_Leaf], before: Sequence[Piece]) -> list[tuple[Sequence[_Leaf], Sequence[Piece]]]:
    """Stretches of both versions between neighbours that did not change."""
    matcher = difflib.SequenceMatcher(None, [leaf.text for leaf in leaves], [piece.text for piece in before])
    return [
        (leaves[first:last], before[begin:end])
        for kind, first, last, begin, end in matcher.get_opcodes()
        if kind != "equal"
    ]


def _taken(there: Counter[str], text: str) -> bool:
    """Whether a text stands elsewhere now; each of those counts once."""
    there[text] -= 1
    return there[text] >= 0


def _given(now: Sequence[_Leaf], old: Sequence[Piece]) -> tuple[dict[int, list[Piece]], list[Piece]]:
    """Pieces of the version before by the index of what became of them, and those that have nothing in common with any.

    That is what has their name and most of their lines; if it parses, they are of no more use.
    """
    names = [name_of(leaf.text) for leaf in now]
    having: dict[str, list[int]] = {}
    for index, leaf in enumerate(now):
        for line in _lines(leaf.text):
            having.setdefault(line, []).append(index)
    rare = {line: found for line, found in having.items() if len(found) <= MAX_ALIKE}
    given: dict[int, list[Piece]] = {}
    left: list[Piece] = []
    for piece in old:
        shared = Counter(index for line in _lines(piece.text) for index in rare.get(line, ()))
        name = piece.name
        likely = set(shared) | {index for index, each in enumerate(names) if name and each == name}
        if likely:
            best = max(
                likely,
                key=lambda one: (bool(name) and names[one] == name, shared[one], now[one].parses, -one),
            )
            given.setdefault(best, []).append(piece)
        elif piece.body:
            left.append(piece)
    return given, left


def _lines(text: str) -> set[str]:
    return {line for line in lines_of(text) if line.strip()}


def _members(leaf: _Leaf, old: Sequence[Piece]) -> dict[int, str]:
    """What stands in for members of a class that parses in part."""
    classes = [piece for piece in old if class_of(piece) is not None]
    named = [piece for piece in classes if piece.name == leaf.piece.name] or classes
    if not named:
        return {}
    mine, theirs = apart(leaf.text), apart(named[0].text)
    if mine is None or theirs is None or mine.indent != theirs.indent:
        return {}
    return _good([_Leaf(member.text, member) for member in leaf.piece.members], members_of(named[0]))


def _alike(index: int, left: Sequence[Piece], now: Sequence[_Leaf], old: Sequence[Piece]) -> list[Piece]:
    """What a piece was that has neither name nor line in common with anything before.

    That is what stood in its place, where as many did; else those with the first words of its lines, in order.
    """
    if len(now) == len(old) and any(piece is old[index] for piece in left):
        return [old[index]]
    words = [match.groups() for line in lines_of(now[index].text) if (match := _FIRST_WORD.match(line))]
    found: list[Piece] = []
    at = 0
    for piece in left:
        word = _FIRST_WORD.match(piece.text)
        if word is not None and word.groups() in words[at:]:
            at = words.index(word.groups(), at) + 1
            found.append(piece)
    return found


def _joined(texts: Sequence[str]) -> str:
    """Whole lines below each other."""
    return "".join(text if text.endswith(("\n", "\r")) else text + "\n" for text in texts[:-1]) + texts[-1]
