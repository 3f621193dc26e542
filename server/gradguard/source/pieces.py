"""A file as pieces that are parsed one by one: top-level statements, and the methods of a class that fails.

`ast.parse` knows all or nothing: one open bracket loses the whole tree. Here a mistake loses one piece.

A *chunk* is what the scan sees as one top-level statement with the blank lines and comments below it. Its
*pieces* are normally one: the chunk itself, with its trees at their true lines. A chunk that does not parse is
taken apart further (an open bracket may have swallowed statements), and its pieces say which lines are lost.

Chunks and members of classes whose text did not change keep their trees from version to version: the very same
nodes, moved to their new lines. So a keystroke parses one function and not the file, and what is known about a
node stays known. The price: the version before is used up, as its nodes have the new lines. Reading therefore
comes in two steps: `read` looks and takes nothing, so that a text may be looked at and left; `settled` takes.

The chunks of a text depend on the text alone, however it was reached.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from gradguard.source.moving import moved, moved_piece
from gradguard.source.piece import Chunk, ParseError, Piece, count_lines, name_of, parse
from gradguard.source.recover import apart, regroup
from gradguard.source.scan import boundaries


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text consists of; the version before is not touched yet.

    head, tail: chunks of the version before that stay, `tail` at the lines it had.
    middle: the others, parsed; `known` has for each the chunk of the version before with the same text, if any.
    replaced: what stood between `head` and `tail` in the version before.
    """

    head: Sequence[Chunk]
    middle: Sequence[Chunk]
    known: Sequence[Chunk | None]
    tail: Sequence[Chunk]
    replaced: Sequence[Chunk]

    @property
    def torn(self) -> bool:
        """Whether something does not parse that was not there before."""
        return any(chunk.broken for chunk in self.middle)


def split(text: str, previous: Sequence[Chunk] = (), breaks: Container[int] = ()) -> tuple[Chunk, ...]:
    """The chunks of a text, parsed. `previous` are those of the version before, for reuse."""
    return settled(read(text, previous, breaks))


def read(
    text: str, previous: Sequence[Chunk] = (), breaks: Container[int] = (), *, aligned: bool = True
) -> Reading:
    """Look at a text. `aligned`: nothing but the text decided where the chunks of `previous` end."""
    head, raw, tail = _changed(text, previous if aligned else (), breaks)
    replaced = previous[len(head) : len(previous) - len(tail)]
    same = {chunk.text: chunk for chunk in replaced if not chunk.broken}
    known = [same.pop(chunk.text, None) for chunk in raw]
    kept = {id(chunk) for chunk in known if chunk is not None}
    free = [piece for chunk in replaced if id(chunk) not in kept for piece in chunk.pieces]
    classes = {piece.name: piece for piece in free if class_of(piece) is not None}
    middle: list[Chunk] = []
    run: list[Chunk] = []
    for chunk, found in zip(raw, known):
        before = classes.pop(name_of(chunk.text), None) if found is None else None
        if found is None and before is None:
            run.append(chunk)
            continue
        middle.extend(_parse_all(run))
        run = []
        middle.append(chunk if found is not None else replace(chunk, pieces=tuple(_pieces(chunk, before))))
    middle.extend(_parse_all(run))
    return Reading(head, middle, known, tail, replaced)


def settled(reading: Reading) -> tuple[Chunk, ...]:
    """The chunks that were read, with the nodes of the version before, which is used up by that.

    Nodes are used at one place only, since they have one line: each old piece is given away once.
    """
    fresh = [
        moved(found, chunk.line - found.line, chunk.offset - found.offset)
        if found is not None
        else replace(chunk, pieces=tuple(map(_put_together, chunk.pieces)))
        for chunk, found in zip(reading.middle, reading.known)
    ]
    tail = reading.tail
    if tail and fresh:
        lines, offset = fresh[-1].line + fresh[-1].lines - tail[0].line, fresh[-1].end - tail[0].offset
        if lines or offset:
            tail = [moved(chunk, lines, offset) for chunk in tail]
    return (*reading.head, *fresh, *tail)


def _changed(
    text: str, previous: Sequence[Chunk], breaks: Container[int]
) -> tuple[Sequence[Chunk], list[Chunk], Sequence[Chunk]]:
    """Chunks kept before the change, the unparsed ones of the change, and those kept behind it."""
    if not previous or breaks:
        return (), list(_raw(text, 0, 1, (), breaks, ())), ()
    prefix = 0
    for chunk in previous:
        if not text.startswith(chunk.text, prefix):
            break
        prefix += len(chunk.text)
    # The chunk before the change is scanned again: the line below it decides where it ends.
    kept = 0
    while kept < len(previous) - 1 and previous[kept + 1].end <= prefix:
        kept += 1
    begin, line = previous[kept].offset, previous[kept].line
    suffix = 0
    for chunk in reversed(previous):
        if not text.endswith(chunk.text, begin, len(text) - suffix):
            break
        suffix += len(chunk.text)
    delta = len(text) - previous[-1].end
    resume = {
        chunk.offset + delta: index
        for index, chunk in enumerate(previous)
        if index > kept and chunk.offset >= previous[-1].end - suffix
    }
    fresh = list(_raw(text, begin, line, resume, breaks, previous[kept + 1 :]))
    end = fresh[-1].end if fresh else begin
    tail = previous[resume[end] :] if end in resume else ()
    return previous[:kept], fresh, tail


def _raw(
    text: str, begin: int, line: int, stops: Container[int], breaks: Container[int], old: Sequence[Chunk]
) -> Iterator[Chunk]:
    """Unparsed chunks from `begin`, up to the first boundary among `stops`. `old`: some that need no second scan."""
    starts: dict[str, list[int]] | None = None
    scan = boundaries(text, begin, breaks=breaks)
    while begin < len(text) or not text:
        end = next(scan, len(text))
        part = text[begin:end]
        lines = count_lines(part)
        yield Chunk(line, lines, begin, part)
        begin, line = end, line + lines
        if end in stops or not text:
            return
        if starts is None:
            starts = {}
            for index, chunk in enumerate(old):
                starts.setdefault(_head(chunk.text), []).append(index)
        again = False
        while (found := _unchanged(text, begin, old, starts)) is not None:
            yield Chunk(line, found.lines, begin, found.text)
            begin, line, again = begin + len(found.text), line + found.lines, True
            if begin in stops:
                return
        if again:
            scan = boundaries(text, begin, breaks=breaks)


def _unchanged(text: str, begin: int, old: Sequence[Chunk], starts: dict[str, list[int]]) -> Chunk | None:
    """The chunk that stands at a boundary as it stood before; the line below it decides where it ends."""
    for index in starts.get(_head(text, begin), ()):
        if not text.startswith(old[index].text, begin):
            continue
        end = begin + len(old[index].text)
        if index + 1 == len(old):
            if end == len(text):
                return old[index]
        elif end < len(text) and _head(text, end) == _head(old[index + 1].text):
            return old[index]
    return None


def _head(text: str, begin: int = 0) -> str:
    end = text.find("\n", begin)
    return text[begin : end if end >= 0 else len(text)]


def _parse_all(raw: Sequence[Chunk]) -> list[Chunk]:
    """Parse neighbouring chunks together, which is quickest, and one by one only where that fails."""
    if len(raw) > 1:
        body, error = parse("".join(chunk.text for chunk in raw), raw[0].line)
        if error is None:
            shares = list(_shared_out([(chunk.line, chunk.lines, chunk.text) for chunk in raw], body))
            # A cell of a notebook may be indented, which does not make it the rest of the cell above.
            if all(_ends_within(piece) for piece in shares):
                return [replace(chunk, pieces=(piece,)) for chunk, piece in zip(raw, shares)]
    return [replace(chunk, pieces=tuple(_pieces(chunk))) for chunk in raw]


def _shared_out(places: Iterable[tuple[int, int, str]], body: Sequence[ast.stmt]) -> Iterator[Piece]:
    """Pieces (line, lines, text) with their share of the statements of all of them."""
    at = 0
    for line, lines, text in places:
        first = at
        while at < len(body) and _first_line(body[at]) < line + lines:
            at += 1
        yield Piece(line, lines, text, tuple(body[first:at]))


def _ends_within(piece: Piece) -> bool:
    return not piece.body or (piece.body[-1].end_lineno or 0) < piece.line + piece.lines


def _first_line(statement: ast.stmt) -> int:
    first: int = min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))])
    return first


def _pieces(chunk: Chunk, before: Piece | None = None) -> list[Piece]:
    """The chunk as one piece, or taken apart in the way that loses the fewest lines.

    before: the class that it was in the version before.
    """
    best = [_piece(chunk.text, chunk.line, before)]
    if not best[0].errors:
        return best
    for starts in regroup(chunk.text):
        parts: list[Piece] = []
        line, mine = chunk.line, before
        for begin, end in zip([0, *starts], [*starts, len(chunk.text)]):
            text = chunk.text[begin:end]
            named = mine is not None and name_of(text) == mine.name
            parts.append(_piece(text, line, mine if named else None))
            mine = None if named else mine
            line += parts[-1].lines
        if _lost(parts) < _lost(best):
            best = parts
    return best


def _lost(pieces: Sequence[Piece]) -> int:
    return sum(error.last - error.first + 1 for piece in pieces for error in piece.errors)


def _piece(text: str, line: int, before: Piece | None = None) -> Piece:
    """One piece, a class with those of its members that parse. `before`: see `_class_piece`."""
    known = _class_piece(text, line, before) if before is not None else None
    if known is not None:
        return known
    body, error = parse(text, line)
    if error is None:
        return Piece(line, count_lines(text), text, tuple(body))
    return _class_piece(text, line) or Piece(line, count_lines(text), text, errors=(error,))


def _class_piece(text: str, line: int, before: Piece | None = None) -> Piece | None:
    """A class as its members, to be put together; None where the text is no class with a header that parses.

    before: the same class in the version before, whose members are found again by their text, where they were.
    """
    parts = apart(text)
    if parts is None:
        return None
    shell, error = parse(parts.header + parts.indent + "pass\n", line)
    node = shell[0] if error is None and len(shell) == 1 else None
    if not isinstance(node, ast.ClassDef):
        return None
    old = members_of(before) if before is not None else ()
    known: dict[str, Piece] = {member.text: member for member in old if not member.errors}
    head_lines = count_lines(parts.header)
    at = line + head_lines
    found: list[Piece] = []
    for member in parts.members:
        same = known.pop(member) if member in known else None
        found.append(same or _member(parts.header, head_lines, line, at, member))
        at += found[-1].lines
    if all(member.errors for member in found):
        return None
    errors = tuple(error for member in found for error in member.errors)
    return Piece(line, count_lines(text), text, (node,), errors, tuple(found))


def _put_together(piece: Piece) -> Piece:
    """A class with its members at their lines and in its tree; any other piece as it is."""
    node = class_of(piece)
    if not piece.members or node is None:
        return piece
    at = piece.line + piece.lines - sum(member.lines for member in piece.members)
    found: list[Piece] = []
    for member in piece.members:
        found.append(moved_piece(member, at - member.line))
        at += member.lines
    node.body = [statement for member in found for statement in member.body]
    last = node.body[-1]
    node.end_lineno, node.end_col_offset = last.end_lineno, last.end_col_offset
    return replace(piece, members=tuple(found))


def _member(header: str, head_lines: int, line: int, at: int, text: str) -> Piece:
    """A member that starts in line `at` of a class that starts in `line`."""
    lines = count_lines(text)
    if header.endswith("\r"):
        # Together with the blank lines below it would be one line end.
        header = header[:-1] + "\n"
    parsed, error = parse(header + "\n" * (at - line - head_lines) + text, line)
    node = parsed[0] if len(parsed) == 1 else None
    if isinstance(node, ast.ClassDef):
        return Piece(at, lines, text, tuple(node.body))
    last = at + lines - 1
    where, message = (error.line, error.message) if error else (at, "not a part of the class")
    return Piece(at, lines, text, errors=(ParseError(min(max(where, at), last), message, at, last),))


def class_of(piece: Piece) -> ast.ClassDef | None:
    """The class that a piece is; None where it is something else."""
    node = piece.body[0] if len(piece.body) == 1 else None
    return node if isinstance(node, ast.ClassDef) else None


def members_of(piece: Piece) -> tuple[Piece, ...]:
    """The members of a class piece, as pieces; none where it was never whole or cannot be taken apart."""
    if piece.members:
        return piece.members
    node, parts = class_of(piece), apart(piece.text)
    if node is None or parts is None or piece.errors:
        return ()
    places = []
    line = piece.line + count_lines(parts.header)
    for text in parts.members:
        places.append((line, count_lines(text), text))
        line += count_lines(text)
    return tuple(_shared_out(places, node.body))
