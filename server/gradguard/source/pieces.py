"""A file as pieces that are parsed one by one: top-level statements, and the methods of a class that fails.

`ast.parse` knows all or nothing: one open bracket loses the whole tree. Here a mistake loses one piece.

A *chunk* is what the scan sees as one top-level statement with the blank lines and comments below it. Its
*pieces* are normally one: the chunk itself, with its trees at their true lines. A chunk that does not parse is
taken apart further (an open bracket may have swallowed statements), and its pieces say which lines are lost.
Chunks that did not change between two versions of a text keep their trees (the very same nodes), so that a
keystroke parses one chunk and not the file.

The chunks of a text depend on the text alone, however it was reached, except for stand-ins: the trees that a
piece had before it stopped parsing, which keep the rest of the file's view of it stable while it is typed.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace

from gradguard.source.recover import members, regroup
from gradguard.source.scan import boundaries

_REFUSED = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)
"""What `ast.parse` raises for text it cannot parse, NUL bytes, lone surrogates and deep nesting included."""

_NAMED = re.compile(
    r"(?:(?:[ \t]*@[^\r\n]*|[ \t]*#[^\r\n]*|[ \t]*)(?:\r\n|\n|\r))*[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)"
)
_FIRST_WORD = re.compile(r"\s*(\w+|\S)")
_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class ParseError:
    """Why the lines from `first` to `last` have no tree; `line` and `message` are the parser's own."""

    line: int
    message: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Lines that are parsed together.

    line: the first of them. body: statements at their lines; stand-ins where it does not parse but did before.
    errors: empty when all of it parses. good: the last text of it that parsed, None when it never did.
    """

    line: int
    lines: int
    text: str
    body: tuple[ast.stmt, ...] = ()
    errors: tuple[ParseError, ...] = ()
    good: str | None = None

    @property
    def name(self) -> str:
        """Name of the function or class that it defines, else empty."""
        return name_of(self.text)


@dataclass(frozen=True, slots=True)
class Chunk:
    """One top-level statement as the scan sees it."""

    line: int
    lines: int
    offset: int
    text: str
    pieces: tuple[Piece, ...] = ()

    @property
    def end(self) -> int:
        """Offset behind its last character."""
        return self.offset + len(self.text)

    @property
    def broken(self) -> bool:
        """Whether any of its lines has no tree."""
        return any(piece.errors for piece in self.pieces)


def name_of(text: str) -> str:
    """Name of the function or class that a text defines, else empty."""
    match = _NAMED.match(text)
    return match.group(1) if match else ""


def parse(text: str, line: int) -> tuple[list[ast.stmt], ParseError | None]:
    """Statements of a text whose first line has this number; never raises.

    Blank lines in front put the nodes at their lines: much cheaper than moving nodes afterwards.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse("\n" * (line - 1) + text).body, None
    except _REFUSED as error:
        at = getattr(error, "lineno", None) or line
        last = line + count_lines(text) - 1
        message = getattr(error, "msg", None) or str(error) or type(error).__name__
        return [], ParseError(min(max(at, line), last), message, line, last)


def count_lines(text: str) -> int:
    """Lines that a text takes; a line end at the very end opens no further one."""
    ends = text.count("\n") if "\r" not in text else len(_LINE_END.findall(text))
    return max(1, ends + (not text.endswith(("\n", "\r"))))


def split(text: str, previous: Sequence[Chunk] = (), breaks: Container[int] = ()) -> tuple[Chunk, ...]:
    """The chunks of a text, parsed. `previous` are those of the version before, for reuse and stand-ins."""
    head, raw, tail = _changed(text, previous, breaks)
    fresh = _parse_all(raw)
    if previous:
        window = [
            piece for chunk in previous[len(head) : len(previous) - len(tail)] for piece in chunk.pieces
        ]
        fresh = [_with_stand_ins(chunk, fresh, window) if chunk.broken else chunk for chunk in fresh]
    if tail and raw:
        line, offset = raw[-1].line + raw[-1].lines, raw[-1].end
        if tail[0].line != line:
            tail = _moved(tail, line, offset)
        elif tail[0].offset != offset:
            delta = offset - tail[0].offset
            tail = [replace(chunk, offset=chunk.offset + delta) for chunk in tail]
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


def _parse_all(raw: list[Chunk]) -> list[Chunk]:
    """Parse neighbouring chunks together, which is quickest, and one by one only where that fails."""
    if len(raw) > 1:
        body, error = parse("".join(chunk.text for chunk in raw), raw[0].line)
        if error is None:
            return list(_shared_out(raw, body))
    return [replace(chunk, pieces=tuple(_pieces(chunk))) for chunk in raw]


def _shared_out(raw: list[Chunk], body: list[ast.stmt]) -> Iterator[Chunk]:
    at = 0
    for chunk in raw:
        first = at
        end = chunk.line + chunk.lines
        while at < len(body) and body[at].lineno < end:
            at += 1
        piece = Piece(chunk.line, chunk.lines, chunk.text, tuple(body[first:at]), good=chunk.text)
        yield replace(chunk, pieces=(piece,))


def _pieces(chunk: Chunk) -> Iterator[Piece]:
    whole = _piece(chunk.text, chunk.line)
    if not whole.errors or whole.body:
        yield whole
        return
    for starts in regroup(chunk.text):
        parts = []
        line = chunk.line
        for begin, end in zip([0, *starts], [*starts, len(chunk.text)]):
            parts.append(_piece(chunk.text[begin:end], line))
            line += parts[-1].lines
        if any(not part.errors or part.body for part in parts):
            yield from parts
            return
    yield whole


def _piece(text: str, line: int) -> Piece:
    """One piece, a class with those of its members that parse."""
    lines = count_lines(text)
    body, error = parse(text, line)
    if error is None:
        return Piece(line, lines, text, tuple(body), good=text)
    apart = members(text)
    if apart is None:
        return Piece(line, lines, text, errors=(error,))
    node: ast.ClassDef | None = None
    errors: list[ParseError] = []
    at = line + count_lines(apart.header)
    for member in apart.members:
        size = count_lines(member)
        padding = "\n" * (at - line - count_lines(apart.header))
        found, wrong = parse(apart.header + padding + member, line)
        first = found[0] if len(found) == 1 else None
        if not isinstance(first, ast.ClassDef):
            where = wrong or error
            last = at + size - 1
            errors.append(ParseError(min(max(where.line, at), last), where.message, at, last))
        elif node is None:
            node = first
        else:
            node.body.extend(first.body)
            node.end_lineno, node.end_col_offset = first.end_lineno, first.end_col_offset
        at += size
    if node is None:
        return Piece(line, lines, text, errors=(error,))
    return Piece(line, lines, text, (node,), tuple(errors) or (error,))


def _with_stand_ins(chunk: Chunk, fresh: Sequence[Chunk], window: list[Piece]) -> Chunk:
    """The chunk, with pieces that stopped parsing given the trees of what they were."""
    now = [piece for each in fresh for piece in each.pieces]
    pieces = []
    for piece in chunk.pieces:
        before = _counterpart(piece, now, window) if piece.errors else None
        pieces.append(_standing_in(piece, before.good) if before and before.good is not None else piece)
    return replace(chunk, pieces=tuple(pieces))


def _counterpart(piece: Piece, now: list[Piece], window: list[Piece]) -> Piece | None:
    """What a piece was in the version before."""
    candidates = [each for each in window if each.good is not None and each.name == piece.name]
    if piece.name or not candidates:
        return candidates[0] if candidates else None
    if len(now) == len(window):
        same_place = window[now.index(piece)]
        return same_place if same_place in candidates else None
    word = _FIRST_WORD.match(piece.text)
    for candidate in candidates:
        other = _FIRST_WORD.match(candidate.text)
        if word and other and word.group(1) == other.group(1):
            return candidate
    return None


def _standing_in(piece: Piece, good: str) -> Piece:
    parsed, error = parse(good, piece.line)
    if error is not None:
        return piece
    if piece.body:
        parsed = _completed(piece, parsed)
    last = piece.line + piece.lines - 1
    for statement in parsed:
        _clamp(statement, last)
    return replace(piece, body=tuple(parsed), good=good)


def _completed(piece: Piece, before: list[ast.stmt]) -> list[ast.stmt]:
    """A class of which some members parse, with the others as they were."""
    node, old = piece.body[0], before[0] if before else None
    if not isinstance(node, ast.ClassDef) or not isinstance(old, ast.ClassDef):
        return list(piece.body)
    lines = piece.text.splitlines(keepends=True) if "\r" not in piece.text else _LINE_END.split(piece.text)
    lost: dict[str, ParseError] = {}
    for error in piece.errors:
        text = "\n".join(
            line.rstrip("\n") for line in lines[error.first - piece.line : error.last - piece.line + 1]
        )
        lost[name_of(text)] = error
    missing = []
    for function in old.body:
        wrong = (
            lost.get(function.name) if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
        )
        if wrong is not None:
            ast.increment_lineno(function, wrong.first - function.lineno)
            _clamp(function, wrong.last)
            missing.append(function)
    whole = ast.ClassDef(**{name: getattr(node, name) for name in (*node._fields, *node._attributes)})
    whole.body = sorted([*node.body, *missing], key=lambda each: each.lineno)
    return [whole]


def _clamp(statement: ast.stmt, last: int) -> None:
    """Keep stand-in nodes inside the lines of their piece, so that nothing is said about lines below it."""
    if (statement.end_lineno or 0) <= last:
        return
    for node in ast.walk(statement):
        if getattr(node, "lineno", 0) > last:
            node.lineno = last  # type: ignore[attr-defined]
        if (getattr(node, "end_lineno", 0) or 0) > last:
            node.end_lineno = last  # type: ignore[attr-defined]


def _moved(chunks: Sequence[Chunk], line: int, offset: int) -> list[Chunk]:
    """The same texts at other lines: good ones parsed again in one go, broken ones with their stand-ins."""
    out: list[Chunk] = []
    run: list[Chunk] = []
    for old in chunks:
        chunk = Chunk(line, old.lines, offset, old.text)
        line += old.lines
        offset += len(old.text)
        if not old.broken:
            run.append(chunk)
            continue
        out.extend(_parse_all(run))
        run = []
        pieces = [
            _standing_in(piece, before.good) if piece.errors and before.good is not None else piece
            for piece, before in zip(_pieces(chunk), old.pieces)
        ]
        out.append(replace(chunk, pieces=tuple(pieces)))
    out.extend(_parse_all(run))
    return out
