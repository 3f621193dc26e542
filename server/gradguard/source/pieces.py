"""A file as pieces that are parsed one by one: top-level statements, and the methods of a class that fails.

`ast.parse` knows all or nothing: one open bracket loses the whole tree. Here a mistake loses one piece.

A *chunk* is what the scan sees as one top-level statement with the blank lines and comments below it. Its
*pieces* are normally one: the chunk itself, with its trees at their true lines. A chunk that does not parse is
taken apart further (an open bracket may have swallowed statements), and its pieces say which lines are lost.

Chunks and members of classes whose text did not change keep their trees from version to version: the very same
nodes, moved to their new lines. So a keystroke parses one function and not the file, and what is known about a
node stays known. The price: the version before is used up, as its nodes have the new lines.

The chunks of a text depend on the text alone, however it was reached, except for stand-ins: the trees that a
piece had before it stopped parsing, which keep the rest of the file's view of it stable while it is typed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace

from gradguard.source.moving import clamp, moved, moved_piece
from gradguard.source.piece import Chunk, ParseError, Piece, count_lines, name_of, parse
from gradguard.source.recover import apart, regroup
from gradguard.source.scan import boundaries

_FIRST_WORD = re.compile(r"\s*(\w+|\S)")


def split(text: str, previous: Sequence[Chunk] = (), breaks: Container[int] = ()) -> tuple[Chunk, ...]:
    """The chunks of a text, parsed. `previous` are those of the version before, for reuse and stand-ins."""
    head, raw, tail = _changed(text, previous, breaks)
    fresh = _parse_changed(raw, previous[len(head) : len(previous) - len(tail)])
    if tail and raw:
        lines, offset = raw[-1].line + raw[-1].lines - tail[0].line, raw[-1].end - tail[0].offset
        if lines or offset:
            tail = [moved(chunk, lines, offset) for chunk in tail]
    return (*head, *fresh, *tail)


def _changed(
    text: str, previous: Sequence[Chunk], breaks: Container[int]
) -> tuple[Sequence[Chunk], list[Chunk], Sequence[Chunk]]:
    """Chunks kept before the change, the unparsed ones of the change, and those kept behind it."""
    if not previous or breaks:
        return (), list(_raw(text, 0, 1, (), breaks)), ()
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
    fresh = list(_raw(text, begin, line, resume, breaks))
    end = fresh[-1].end if fresh else begin
    tail = previous[resume[end] :] if end in resume else ()
    return previous[:kept], fresh, tail


def _raw(text: str, begin: int, line: int, stops: Container[int], breaks: Container[int]) -> Iterator[Chunk]:
    """Unparsed chunks from `begin`, up to the first boundary among `stops`."""
    for end in boundaries(text, begin, breaks=breaks):
        part = text[begin:end]
        lines = count_lines(part)
        yield Chunk(line, lines, begin, part)
        begin, line = end, line + lines
        if end in stops:
            return
    if begin < len(text) or not text:
        yield Chunk(line, count_lines(text[begin:]), begin, text[begin:])


def _parse_changed(raw: Sequence[Chunk], replaced: Sequence[Chunk]) -> list[Chunk]:
    """Parse the chunks of a change, with the nodes they had where their texts are the same.

    Nodes are used at one place only, since they have one line: each old piece is given away once.
    """
    same = {chunk.text: chunk for chunk in replaced if not chunk.broken}
    known = [same.pop(chunk.text, None) for chunk in raw]
    kept = {id(chunk) for chunk in known if chunk is not None}
    window = [piece for chunk in replaced for piece in chunk.pieces]
    free = {id(piece): piece for chunk in replaced if id(chunk) not in kept for piece in chunk.pieces}
    classes = {piece.name: piece for piece in free.values() if _class_of(piece) is not None}
    out: list[Chunk] = []
    run: list[Chunk] = []
    for chunk, found in zip(raw, known):
        before = classes.pop(name_of(chunk.text), None) if found is None else None
        if found is None and before is None:
            run.append(chunk)
            continue
        out.extend(_parse_all(run))
        run = []
        if found is not None:
            out.append(moved(found, chunk.line - found.line, chunk.offset - found.offset))
        else:
            free.pop(id(before))
            out.append(replace(chunk, pieces=tuple(_pieces(chunk, before))))
    out.extend(_parse_all(run))
    if not window or not any(chunk.broken for chunk in out):
        return out
    now = [piece for chunk in out for piece in chunk.pieces]
    return [
        replace(chunk, pieces=tuple(_remembered(piece, now, window, free) for piece in chunk.pieces))
        if chunk.broken
        else chunk
        for chunk in out
    ]


def _parse_all(raw: Sequence[Chunk]) -> list[Chunk]:
    """Parse neighbouring chunks together, which is quickest, and one by one only where that fails."""
    if len(raw) > 1:
        body, error = parse("".join(chunk.text for chunk in raw), raw[0].line)
        if error is None:
            shares = _shared_out([(chunk.line, chunk.lines, chunk.text) for chunk in raw], body)
            return [replace(chunk, pieces=(piece,)) for chunk, piece in zip(raw, shares)]
    return [replace(chunk, pieces=tuple(_pieces(chunk))) for chunk in raw]


def _shared_out(places: Iterable[tuple[int, int, str]], body: Sequence[ast.stmt]) -> Iterator[Piece]:
    """Pieces (line, lines, text) with their share of the statements of all of them."""
    at = 0
    for line, lines, text in places:
        first = at
        while at < len(body) and _first_line(body[at]) < line + lines:
            at += 1
        yield Piece(line, lines, text, tuple(body[first:at]), good=text)


def _first_line(statement: ast.stmt) -> int:
    first: int = min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))])
    return first


def _pieces(chunk: Chunk, before: Piece | None = None) -> list[Piece]:
    """The chunk as one piece, or taken apart in the way that loses the fewest lines.

    before: the class that it was in the version before.
    """
    whole = _piece(chunk.text, chunk.line, before)
    best = [whole]
    if not whole.errors:
        return best
    for starts in regroup(chunk.text):
        parts: list[Piece] = []
        line = chunk.line
        for begin, end in zip([0, *starts], [*starts, len(chunk.text)]):
            text = chunk.text[begin:end]
            # Nodes that `whole` took over are at their lines already.
            mine = whole if whole.members and name_of(text) == whole.name else None
            parts.append(_piece(text, line, mine))
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
        return Piece(line, count_lines(text), text, tuple(body), good=text)
    return _class_piece(text, line) or Piece(line, count_lines(text), text, errors=(error,))


def _class_piece(text: str, line: int, before: Piece | None = None) -> Piece | None:
    """A class put together from its members; None where the text is no class with a header that parses.

    before: the same class in the version before. Members with the same text and line keep their nodes, and
    those that stopped parsing are what they were.
    """
    parts = apart(text)
    if parts is None:
        return None
    shell, error = parse(parts.header + parts.indent + "pass\n", line)
    node = shell[0] if error is None and len(shell) == 1 else None
    if not isinstance(node, ast.ClassDef):
        return None
    old = _members_of(before) if before is not None else ()
    known: dict[str, Piece] = {member.text: member for member in old if not member.errors}
    head_lines = count_lines(parts.header)
    at = line + head_lines
    found: list[Piece] = []
    for member in parts.members:
        same = known.pop(member, None)
        if same is not None:
            found.append(moved_piece(same, at - same.line))
        else:
            found.append(_member(parts.header, head_lines, line, at, member))
        at += found[-1].lines
    if all(member.errors for member in found):
        return None
    if any(member.errors for member in found):
        free = {id(member): member for member in old if member.errors or known.get(member.text) is member}
        found = [_remembered(member, found, old, free, parts.header, line) for member in found]
    body = [statement for member in found for statement in member.body]
    node.body = body
    node.end_lineno, node.end_col_offset = body[-1].end_lineno, body[-1].end_col_offset
    errors = tuple(error for member in found for error in member.errors)
    good = text if not errors else before.good if before is not None else None
    return Piece(line, count_lines(text), text, (node,), errors, good, tuple(found))


def _member(header: str, head_lines: int, line: int, at: int, text: str) -> Piece:
    """A member that starts in line `at` of a class that starts in `line`."""
    lines = count_lines(text)
    parsed, error = parse(header + "\n" * (at - line - head_lines) + text, line)
    node = parsed[0] if len(parsed) == 1 else None
    if isinstance(node, ast.ClassDef):
        return Piece(at, lines, text, tuple(node.body), good=text)
    last = at + lines - 1
    where, message = (error.line, error.message) if error else (at, "not a part of the class")
    return Piece(at, lines, text, errors=(ParseError(min(max(where, at), last), message, at, last),))


def _class_of(piece: Piece) -> ast.ClassDef | None:
    node = piece.body[0] if len(piece.body) == 1 else None
    return node if isinstance(node, ast.ClassDef) else None


def _members_of(piece: Piece) -> tuple[Piece, ...]:
    """The members of a class piece, as pieces; none where it was never whole or cannot be taken apart."""
    if piece.members:
        return piece.members
    node, parts = _class_of(piece), apart(piece.text)
    if node is None or parts is None or piece.errors:
        return ()
    places = []
    line = piece.line + count_lines(parts.header)
    for text in parts.members:
        places.append((line, count_lines(text), text))
        line += count_lines(text)
    return tuple(_shared_out(places, node.body))


def _remembered(
    piece: Piece,
    now: Sequence[Piece],
    window: Sequence[Piece],
    free: dict[int, Piece],
    header: str = "",
    line: int = 0,
) -> Piece:
    """The piece, with the trees of what it was if it stopped parsing.

    free: old pieces whose nodes nobody took yet. header, line: of the class that it is a member of.
    """
    if not piece.errors or piece.body:
        return piece
    before = _counterpart(piece, now, window)
    if before is None or before.good is None:
        return piece
    last = piece.line + piece.lines - 1
    if before.body and free.pop(id(before), None) is not None:
        stays = moved_piece(before, piece.line - before.line).body
        for statement in stays:
            clamp(statement, last)
        return replace(piece, body=stays, good=before.good)
    if header:
        again = _member(header, count_lines(header), line, piece.line, before.good)
        body, wrong = list(again.body), bool(again.errors)
    else:
        body, error = parse(before.good, piece.line)
        wrong = error is not None
    if wrong:
        return piece
    for statement in body:
        clamp(statement, last)
    return replace(piece, body=tuple(body), good=before.good)


def _counterpart(piece: Piece, now: Sequence[Piece], window: Sequence[Piece]) -> Piece | None:
    """What a piece was in the version before."""
    candidates = [each for each in window if each.good is not None and each.name == piece.name]
    if piece.name or not candidates:
        return candidates[0] if candidates else None
    if len(now) == len(window):
        same_place = window[next(index for index, each in enumerate(now) if each is piece)]
        return same_place if any(each is same_place for each in candidates) else None
    word = _FIRST_WORD.match(piece.text)
    for candidate in candidates:
        other = _FIRST_WORD.match(candidate.text)
        if word and other and word.group(1) == other.group(1):
            return candidate
    return None
