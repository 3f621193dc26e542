"""A stretch of whole statements as a libcst tree, and the edits that a changed tree amounts to.

Only the statements a fix needs are parsed: the smallest run of lines of one block that holds them all. An
indented run is read under a line `if 1:`, so that its own indentation, comments and line ends stay what they
are. Positions are those of the file.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeGuard, TypeVar, cast

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, ParentNodeProvider, PositionProvider

from gradguard.findings import Span
from gradguard.fixes.edit import Edit, changes
from gradguard.fixes.edit import lines as lines_of
from gradguard.fixes.extent import extent
from gradguard.source.lines import LineIndex
from gradguard.source.scan import string_lines
from gradguard.source.text import BOM, Source

Node = TypeVar("Node", bound=cst.CSTNode)
Change = Callable[[cst.CSTNode], "cst.CSTNode | cst.FlattenSentinel[cst.CSTNode] | cst.RemovalSentinel"]
Small = cst.BaseSmallStatement


class Region:
    """Lines `first` to `last` of a file. `of` is the way to make one."""

    def __init__(self, source: Source, first: int, last: int) -> None:
        """Raises cst.ParserSyntaxError, or ValueError where libcst does not give the text back as it was."""
        self.source = source
        self.first, self.last = first, last
        start, end = source.lines.start(first), source.lines.start(last + 1)
        text = source.text[start:end]
        self.indent = source.indent
        """What a new block is indented by."""
        self._bom = BOM if first == 1 and text.startswith(BOM) else ""
        text = self._without_feeds(text[len(self._bom) :])
        self._plain = source.lines
        if self._feeds:
            self._plain = LineIndex(source.text[: start + len(self._bom)] + text + source.text[end:])
        # Lines that end in nothing but carriage returns are read as others are: libcst drops the last of them.
        self._returns = source.lines.line_end == "\r" and "\n" not in text
        text = text.replace("\r", "\n") if self._returns else text
        newline = "\n" if self._returns else source.lines.line_end
        indented = text[:1] in " \t"
        self._head = f"if 1:{newline}" if indented else ""
        self._tree = _parsed(self._head + text, newline, self.indent)
        self.module = self._tree.module
        self._shift = 1 + bool(self._head) - first
        self._changes: dict[cst.CSTNode, list[Change]] = {}

    def _place(self, span: Span) -> Place:
        """A stretch of the file as the tree counts lines and columns."""
        return (
            span.line + self._shift,
            span.column - self._ahead(span.line),
            span.end_line + self._shift,
            span.end_column - self._ahead(span.end_line),
        )

    def _ahead(self, line: int) -> int:
        """What is to be added to a column of the tree."""
        return 1 + self._feeds.get(line, 0) + (len(self._bom) if line == 1 else 0)

    def _without_feeds(self, text: str) -> str:
        """The text without form feeds at the start of lines, which libcst would lose; `_feeds` counts them."""
        self._feeds: dict[int, int] = {}
        if "\f" not in text:
            return text
        kept = []
        inside = string_lines(text)
        for number, line in enumerate(lines_of(text)):
            rest = line if number in inside else line.lstrip("\f")
            if rest != line:
                self._feeds[self.first + number] = len(line) - len(rest)
            kept.append(rest)
        return "".join(kept)

    @classmethod
    def of(cls, source: Source, spans: Iterable[Span], *, whole: bool = False) -> Region | None:
        """The smallest region that holds all spans; with `whole`, the function (or the file) around them."""
        found = extent(source, list(spans), whole=whole)
        if found is None:
            return None
        try:
            return cls(source, *found)
        except (cst.ParserSyntaxError, ValueError, RecursionError):
            return None

    def find(self, span: Span, kind: Callable[..., Node]) -> Node | None:
        """The outermost node of a kind that takes up exactly this stretch."""
        return next((node for node in self._tree.at.get(self._place(span), ()) if _is(node, kind)), None)

    def span(self, node: cst.CSTNode) -> Span:
        """Where a node of the original tree stands in the file."""
        where = self._tree.places[node]
        line, end_line = where[0] - self._shift, where[2] - self._shift
        return Span(line, where[1] + self._ahead(line), end_line, where[3] + self._ahead(end_line))

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node around."""
        return self._tree.parents.get(node)

    def around(self, node: cst.CSTNode, kind: Callable[..., Node]) -> Node | None:
        """The nearest node of a kind around, or the node itself."""
        at: cst.CSTNode | None = node
        while at is not None:
            if _is(at, kind):
                return at
            at = self.parent(at)
        return None

    def within(self, node: cst.CSTNode, kind: Callable[..., Node]) -> Iterator[Node]:
        """Nodes of a kind inside a node, itself included, in reading order."""
        if _is(node, kind):
            yield node
        for child in node.children:
            yield from self.within(child, kind)

    def change(self, node: cst.CSTNode, how: Change) -> None:
        """Note a change; changes of nested nodes are made from the inside out."""
        self._changes.setdefault(node, []).append(how)

    def replace(self, node: cst.CSTNode, new: cst.CSTNode) -> None:
        """Put another node in the place of a node. A statement keeps its semicolon."""
        if isinstance(node, Small) and isinstance(new, Small):
            new = new.with_changes(semicolon=node.semicolon)
        self.change(node, lambda _: new)

    def before(self, statement: Small | cst.BaseStatement, *new: str) -> None:
        """Insert simple statements before a statement."""
        self._beside(statement, new, after=False)

    def after(self, statement: Small | cst.BaseStatement, *new: str) -> None:
        """Insert simple statements behind a statement."""
        self._beside(statement, new, after=True)

    def _beside(self, statement: cst.CSTNode, new: tuple[str, ...], *, after: bool) -> None:
        line = self.parent(statement) if isinstance(statement, Small) else statement
        if isinstance(line, cst.SimpleStatementSuite) or (
            isinstance(line, cst.SimpleStatementLine) and len(line.body) > 1 and isinstance(statement, Small)
        ):
            smalls = [_small(text) for text in new]

            def flat_small(updated: cst.CSTNode) -> cst.FlattenSentinel[cst.CSTNode]:
                return cst.FlattenSentinel([updated, *smalls] if after else [*smalls, updated])

            self.change(statement, flat_small)
            return
        lines = [cst.SimpleStatementLine([_small(text)]) for text in new]

        def flat(updated: cst.CSTNode) -> cst.FlattenSentinel[cst.CSTNode]:
            if after:
                return cst.FlattenSentinel([updated, *lines])
            leading = getattr(updated, "leading_lines", ())
            head = [lines[0].with_changes(leading_lines=leading), *lines[1:]]
            return cst.FlattenSentinel([*head, updated.with_changes(leading_lines=())])

        assert line is not None
        self.change(line, flat)

    def edits(self) -> tuple[Edit, ...] | None:
        """What the noted changes do to the file; None where they do nothing."""
        changed = self.module.visit(_Changer(self._changes, self._tree.parents))
        assert isinstance(changed, cst.Module)
        code = changed.code
        if not code.startswith(self._head):
            return None
        start, end = self._plain.start(self.first), self._plain.start(self.last + 1)
        code = code[len(self._head) :]
        made = changes(
            self._plain, start, end, self._bom + (code.replace("\n", "\r") if self._returns else code)
        )
        return tuple(Edit(self._in_the_file(edit.span), edit.replacement) for edit in made) or None

    def _in_the_file(self, span: Span) -> Span:
        column = span.column + self._feeds.get(span.line, 0)
        return Span(span.line, column, span.end_line, span.end_column + self._feeds.get(span.end_line, 0))


def _is(node: cst.CSTNode, kind: Callable[..., Node]) -> TypeGuard[Node]:
    # Abstract classes are no `type[Node]`, so a class is taken as what it makes.
    return isinstance(node, cast("type[Node]", kind))


class _Changer(cst.CSTTransformer):
    def __init__(
        self, changes: dict[cst.CSTNode, list[Change]], parents: Mapping[cst.CSTNode, cst.CSTNode]
    ) -> None:
        super().__init__()
        self.changes = changes
        self._led_to: set[cst.CSTNode] = set()
        for node in changes:
            at = parents.get(node)
            while at is not None and at not in self._led_to:
                self._led_to.add(at)
                at = parents.get(at)

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Only what leads to a change is looked through."""
        return node in self._led_to

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        made: object = super().on_leave(original_node, updated_node)
        for how in self.changes.get(original_node, ()):
            if isinstance(made, cst.FlattenSentinel):
                nodes = list(made)
                at = next(i for i, node in enumerate(nodes) if node is updated_node or i == len(nodes) - 1)
                inner = how(nodes[at])
                parts = list(inner) if isinstance(inner, cst.FlattenSentinel) else [inner]
                made = cst.FlattenSentinel([*nodes[:at], *parts, *nodes[at + 1 :]])
            elif isinstance(made, cst.CSTNode):
                made = how(made)
        return made  # type: ignore[return-value]


Place = tuple[int, int, int, int]
"""First line and column of a node, and those behind it."""


@dataclass(frozen=True, slots=True, eq=False)
class _Tree:
    """A text as a tree. Nobody changes it, so that all fixes of a place share it."""

    module: cst.Module
    places: Mapping[cst.CSTNode, Place]
    parents: Mapping[cst.CSTNode, cst.CSTNode]
    at: Mapping[Place, list[cst.CSTNode]]


@functools.lru_cache(maxsize=4)
def _parsed(text: str, newline: str, indent: str) -> _Tree:
    """Raises as `Region` does."""
    config = cst.PartialParserConfig(default_newline=newline, default_indent=indent)
    module = cst.parse_module(text, config=config)
    if module.code != text:
        raise ValueError("not given back as it was")
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
    resolved = wrapper.resolve_many([PositionProvider, ParentNodeProvider])
    positions = cast("Mapping[cst.CSTNode, CodeRange]", resolved[PositionProvider])
    places = {
        node: (where.start.line, where.start.column, where.end.line, where.end.column)
        for node, where in positions.items()
    }
    at: dict[Place, list[cst.CSTNode]] = {}
    for node, place in places.items():
        at.setdefault(place, []).append(node)
    parents = cast("Mapping[cst.CSTNode, cst.CSTNode]", resolved[ParentNodeProvider])
    return _Tree(wrapper.module, places, parents, at)


def _small(text: str) -> Small:
    line = cst.parse_statement(text)
    assert isinstance(line, cst.SimpleStatementLine)
    return line.body[0]
