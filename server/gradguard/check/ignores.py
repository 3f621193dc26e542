"""Comments that silence findings, and which of them silence nothing.

`# gradguard: ignore` silences every rule for the statement it stands on (any line of it);
`# gradguard: ignore[GG101, item-in-loop] reason` only those rules; `# gradguard: ignore-file[...]`, anywhere
in the file, does the same for the whole file. The head of a compound statement (`with`, `for`, `def`) counts
as a statement of its own, its body does not.

A comment in a function may be needed for what another file does with that function; so only comments
outside of functions are removed as safe fixes, and a run over all files knows better than one over some.

Text that looks like such a comment inside a string is no comment: lines are told apart by the tokenizer,
and by a plain search only behind the point where a half-typed file stops it.

The work grows with the length of the text, however many comments and findings there are: what the comments of a
statement do to a rule is found out once.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from gradguard.check.catalogue import Catalogue, quoted
from gradguard.findings import Applicability, Certainty, Finding, FixPlan, Severity, Span
from gradguard.source.blocks import blocks
from gradguard.source.text import Source

MARK = "gradguard:"
UNUSED = ("GG901", "unused-ignore")

MOST_HINTS = 100
"""Unknown rules of a file for which it is looked up which one was meant."""

_COMMENT = re.compile(r"#\s*gradguard:\s*(?P<what>ignore-file|ignore)(?![\w-])", re.IGNORECASE)
_OPENS = re.compile(r"\s*\[")
_WORD = re.compile(r"[^,\s]+")


@dataclass(frozen=True, slots=True)
class Selector:
    """One rule named between the brackets of a comment. `codes` is empty when no such rule is known."""

    text: str
    codes: frozenset[str]
    span: Span


@dataclass(frozen=True, slots=True)
class Ignore:
    """One comment. Without selectors it silences every rule."""

    whole_file: bool
    span: Span
    selectors: tuple[Selector, ...] = ()
    listed: bool = False
    """Whether brackets were written, if only empty ones (which silence nothing)."""

    def silencing(self, code: str) -> Iterator[Selector | None]:
        """The selectors that silence this rule; None stands for the comment without brackets."""
        if not self.listed:
            yield None
        for selector in self.selectors:
            if code in selector.codes:
                yield selector


_Lines = tuple[int, int]


@dataclass(slots=True)
class Ignores:
    """The comments of one file, and which of them were needed so far."""

    comments: tuple[Ignore, ...] = ()
    """In the order of the text."""
    _statements: Callable[[int], _Lines] = lambda line: (line, line)
    _used: set[tuple[Span, Span | None]] = field(default_factory=set)
    _for_lines: tuple[Ignore, ...] = field(init=False)
    _for_file: tuple[Ignore, ...] = field(init=False)
    _lines: list[int] = field(init=False)
    """Of those that are for lines."""
    everything: bool = field(init=False)
    """Whether the whole file is left alone."""
    _known: dict[tuple[str, _Lines], bool] = field(default_factory=dict)
    """Whether a rule is silenced for a statement."""

    def __post_init__(self) -> None:
        self._for_lines = tuple(each for each in self.comments if not each.whole_file)
        self._for_file = tuple(each for each in self.comments if each.whole_file)
        self._lines = [each.span.line for each in self._for_lines]
        self.everything = any(not each.listed for each in self._for_file)

    @property
    def needed(self) -> frozenset[Span]:
        """Places of the comments that silenced something so far."""
        return frozenset(span for span, _ in self._used)

    def silences(self, finding: Finding) -> bool:
        """Whether a comment silences this finding; remembers that it was needed.

        A finding about a comment is silenced by name only, else no bare comment could ever be called idle.
        """
        if not self.comments:
            return False
        lines = self._statements(finding.span.line)
        known = self._known.get((finding.code, lines))
        if known is None:
            near = bisect_left(self._lines, lines[0]), bisect_right(self._lines, lines[1])
            known = self._use(self._for_lines[slice(*near)], finding.code)
            known = self._in_file(finding.code) or known
            self._known[finding.code, lines] = known
        return known

    def _in_file(self, code: str) -> bool:
        key = code, _WHOLE
        if key not in self._known:
            self._known[key] = self._use(self._for_file, code)
        return self._known[key]

    def _use(self, comments: Iterable[Ignore], code: str) -> bool:
        silenced = False
        for comment in comments:
            for selector in comment.silencing(code):
                if selector is None and code == UNUSED[0]:
                    continue
                self._used.add((comment.span, selector.span if selector else None))
                silenced = True
        return silenced

    def unused(self, source: Source, rules: Catalogue, running: frozenset[str]) -> Iterator[Finding]:
        """Findings for comments that silenced nothing, among the rules that ran."""
        all_ran = running >= {rule.code for rule in rules.rules if rule.on}
        functions = _Functions(source.tree)
        hints = MOST_HINTS
        for comment in self.comments:
            safe = comment.span.line not in functions
            if not comment.listed:
                if not comment.whole_file and all_ran and (comment.span, None) not in self._used:
                    yield _unused(source.path, comment, None, "this comment silences nothing", safe)
                continue
            idle: dict[str, tuple[Selector, str, bool]] = {}
            used = False
            for selector in comment.selectors:
                if selector.text in idle:
                    continue  # one fix removes them all
                if not selector.codes:
                    hints -= 1
                    idle[selector.text] = selector, rules.unknown(selector.text, hint=hints >= 0), True
                elif selector.codes <= running and (comment.span, selector.span) not in self._used:
                    idle[selector.text] = selector, f"`{selector.text}` silences nothing here", safe
                else:
                    used = True
            if not comment.selectors:
                yield _unused(source.path, comment, None, "this comment names no rule", True)
            for selector, message, sure in idle.values():
                yield _unused(source.path, comment, selector if used else None, message, sure)


_WHOLE = (0, 0)
"""Stands for the lines of a comment that is for the whole file."""


def read(source: Source, rules: Callable[[], Catalogue]) -> Ignores:
    """The comments of a file. Costs one search of the text where there are none."""
    if MARK not in source.text.lower():
        return Ignores()
    return Ignores(
        tuple(
            comment
            for line, column, text in _comments(source.text)
            for comment in _parsed(line, column, text, rules)
        ),
        source.statement_lines,
    )


def _parsed(line: int, column: int, text: str, rules: Callable[[], Catalogue]) -> Iterator[Ignore]:
    """What is said in the text of one comment, which starts at this place."""
    at = 0
    closed = True
    while (match := _COMMENT.search(text, at)) is not None:
        at = match.end()
        opened = _OPENS.match(text, at) if closed else None
        end = text.find("]", opened.end()) if opened else -1
        # Where one list is not closed, no later one is.
        closed = closed and (opened is None or end >= 0)
        selectors: list[Selector] = []
        if opened is not None and end >= 0:
            for word in _WORD.finditer(text, opened.end(), end):
                span = Span(line, column + word.start(), line, column + word.end())
                selectors.append(Selector(word.group(), rules().resolve(word.group()), span))
            at = end + 1
        span = Span(line, column + match.start(), line, column + at)
        yield Ignore(match["what"].lower() == "ignore-file", span, tuple(selectors), end >= 0)


def _comments(text: str) -> Iterator[tuple[int, int, str]]:
    """Line, column (both from 1) and text of each comment that has the mark."""
    reached = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            reached = token.end[0]
            if token.type == tokenize.COMMENT and MARK in token.string.lower():
                yield token.start[0], token.start[1] + 1, token.string
    except (tokenize.TokenError, SyntaxError, ValueError):
        for number, line in enumerate(io.StringIO(text, newline=""), 1):
            at = line.find("#")
            if number > reached and at >= 0 and MARK in line.lower():
                yield number, at + 1, line[at:].rstrip("\r\n")


class _Functions:
    """The lines of functions: other files may call the code there, so that a finding may show only from them."""

    def __init__(self, tree: ast.Module) -> None:
        found: list[_Lines] = []
        waiting: list[ast.stmt] = list(tree.body)
        while waiting:
            statement = waiting.pop()
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.append((statement.lineno, statement.end_lineno or statement.lineno))
            else:
                for block in blocks(statement):
                    waiting += block
        found.sort()
        self._first = [first for first, _ in found]
        self._last = list(accumulate((last for _, last in found), max))

    def __contains__(self, line: int) -> bool:
        at = bisect_right(self._first, line)
        return at > 0 and line <= self._last[at - 1]


def _unused(path: str, comment: Ignore, selector: Selector | None, message: str, safe: bool) -> Finding:
    """A finding about a comment, or about one of its selectors."""
    code, name = UNUSED
    at = selector.span if selector else comment.span
    title = f"Remove `{quoted(selector.text)}` from the comment" if selector else "Remove the comment"
    safety = Applicability.SAFE if safe else Applicability.UNSAFE
    data = (("selector", selector.text if selector else ""),)
    fix = FixPlan("remove-ignore", title, safety, comment.span, data)
    return Finding(path, at, code, name, Severity.INFORMATION, Certainty.CERTAIN, message, fixes=(fix,))
