"""Comments that silence findings, and which of them silence nothing.

`# gradguard: ignore` silences every rule for the statement it stands on (any line of it);
`# gradguard: ignore[GG101, item-in-loop] reason` only those rules; `# gradguard: ignore-file[...]`, anywhere
in the file, does the same for the whole file. The head of a compound statement (`with`, `for`, `def`) counts
as a statement of its own, its body does not.

A comment in a function may be needed for what another file does with that function; so only comments
outside of functions are removed as safe fixes, and a run over all files knows better than one over some.

Text that looks like such a comment inside a string is no comment: lines are told apart by the tokenizer,
and by a plain search only behind the point where a half-typed file stops it.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from gradguard.check.catalogue import Catalogue
from gradguard.findings import Applicability, Certainty, Finding, FixPlan, Severity, Span
from gradguard.source.text import Source

MARK = "gradguard:"
UNUSED = ("GG901", "unused-ignore")

_COMMENT = re.compile(
    r"#\s*gradguard:\s*(?P<what>ignore-file|ignore)(?![\w-])(?P<list>\s*\[(?P<codes>[^\]]*)\])?",
    re.IGNORECASE,
)
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


@dataclass(slots=True)
class Ignores:
    """The comments of one file, and which of them were needed so far."""

    comments: tuple[Ignore, ...] = ()
    _rows: dict[int, list[Ignore]] = field(default_factory=dict)
    _statements: Callable[[int], tuple[int, int]] = lambda line: (line, line)
    _used: set[tuple[Span, Span | None]] = field(default_factory=set)

    @property
    def everything(self) -> bool:
        """Whether the whole file is left alone."""
        return any(each.whole_file and not each.listed for each in self.comments)

    @property
    def needed(self) -> frozenset[Span]:
        """Places of the comments that silenced something so far."""
        return frozenset(span for span, _ in self._used)

    def silences(self, finding: Finding) -> bool:
        """Whether a comment silences this finding; remembers that it was needed.

        A finding about a comment is silenced by name only, else no bare comment could ever be called idle.
        """
        silenced = False
        first, last = self._statements(finding.span.line)
        near = (each for line in range(first, last + 1) for each in self._rows.get(line, ()))
        for comment in (*near, *(each for each in self.comments if each.whole_file)):
            for selector in comment.silencing(finding.code):
                if selector is None and finding.code == UNUSED[0]:
                    continue
                self._used.add((comment.span, selector.span if selector else None))
                silenced = True
        return silenced

    def unused(self, source: Source, rules: Catalogue, running: frozenset[str]) -> Iterator[Finding]:
        """Findings for comments that silenced nothing, among the rules that ran."""
        all_ran = running >= {rule.code for rule in rules.rules if rule.on}
        for comment in self.comments:
            safe = not _in_function(source, comment.span.line)
            if not comment.listed:
                if not comment.whole_file and all_ran and (comment.span, None) not in self._used:
                    yield _unused(
                        source.path, comment.span, "this comment silences nothing", comment, "", safe
                    )
                continue
            idle = []
            for selector in comment.selectors:
                if not selector.codes:
                    idle.append((selector, rules.unknown(selector.text), True))
                elif selector.codes <= running and (comment.span, selector.span) not in self._used:
                    idle.append((selector, f"`{selector.text}` silences nothing here", safe))
            whole = len(idle) == len(comment.selectors)
            if not comment.selectors:
                yield _unused(source.path, comment.span, "this comment names no rule", comment, "", True)
            for selector, message, sure in idle:
                at = comment.span if whole else selector.span
                yield _unused(source.path, at, message, comment, "" if whole else selector.text, sure)


def read(source: Source, rules: Callable[[], Catalogue]) -> Ignores:
    """The comments of a file. Costs one search of the text where there are none."""
    if MARK not in source.text.lower():
        return Ignores()
    comments = tuple(
        _parse(line, column, match, rules)
        for line, column, text in _comments(source.text)
        for match in _COMMENT.finditer(text)
    )
    rows: dict[int, list[Ignore]] = {}
    for comment in comments:
        if not comment.whole_file:
            rows.setdefault(comment.span.line, []).append(comment)
    return Ignores(comments, rows, source.statement_lines)


def _parse(line: int, column: int, match: re.Match[str], rules: Callable[[], Catalogue]) -> Ignore:
    start = column + match.start()
    span = Span(line, start, line, column + match.end())
    selectors = []
    if match["list"]:
        inside = column + match.start("codes")
        for word in _WORD.finditer(match["codes"]):
            at = Span(line, inside + word.start(), line, inside + word.end())
            selectors.append(Selector(word.group(), rules().resolve(word.group()), at))
    return Ignore(match["what"].lower() == "ignore-file", span, tuple(selectors), bool(match["list"]))


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


def _in_function(source: Source, line: int) -> bool:
    """Whether other files may call the code on this line, so that a finding there may show only from them."""
    return any(
        isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.lineno <= line <= (node.end_lineno or line)
        for node in ast.walk(source.tree)
    )


def _unused(path: str, span: Span, message: str, comment: Ignore, selector: str, safe: bool) -> Finding:
    code, name = UNUSED
    title = f"Remove `{selector}` from the comment" if selector else "Remove the comment"
    safety = Applicability.SAFE if safe else Applicability.UNSAFE
    fix = FixPlan("remove-ignore", title, safety, comment.span, (("selector", selector),))
    return Finding(path, span, code, name, Severity.INFORMATION, Certainty.CERTAIN, message, fixes=(fix,))
