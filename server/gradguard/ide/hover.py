"""What is said about the thing under the cursor: a finding, an ignore comment, an op, a variable.

Markdown with a short first line. A finding comes first, what the op or variable is comes below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradguard.check import ignores
from gradguard.check.catalogue import catalogue
from gradguard.findings import Applicability, Finding, Span
from gradguard.ide import nodes, ophover, varhover
from gradguard.ide.analysis import Analysis
from gradguard.ide.pages import link, page
from gradguard.ide.wording import Wording, inline

if TYPE_CHECKING:
    from gradguard.engine.domain.facts import Facts

RULE = "\n\n---\n\n"


@dataclass(frozen=True, slots=True)
class Hover:
    """Markdown about a stretch of the program."""

    text: str
    span: Span


def hover(
    analysis: Analysis,
    shown: Iterable[Finding],
    line: int,
    column: int,
    wording: Wording,
    facts: Facts | None = None,
    *,
    above: bool = False,
) -> Hover | None:
    """What is said at a position; None where there is nothing to say. `facts` are worth having for variables.

    above: the editor itself shows the messages of what is `shown` above the hover, so that they are not said again.
    """
    shown = tuple(shown)
    path = analysis.source.path
    here = [
        each for each in (*shown, *analysis.possible) if each.path == path and covers(each.span, line, column)
    ]
    parts = [_finding(each, wording, said=above and each in shown) for each in here[:3]]
    span = here[0].span if here else None
    comment = None if here else _ignore(analysis, line, column, wording)
    if comment is not None:
        return comment
    if analysis.settings.hover:
        at = nodes.at(analysis.source, line, column)
        about = None
        if at is not None:
            about = ophover.hover(analysis, at, wording) or varhover.hover(analysis, at, facts, wording)
        if about is not None:
            parts.append(about.text)
            span = span or about.span
    if not parts or span is None:
        return None
    return Hover(RULE.join(parts), span)


def covers(span: Span, line: int, column: int) -> bool:
    """Whether a stretch covers a position, its end included (the cursor stands behind the last character)."""
    return (span.line, span.column) <= (line, column) <= (span.end_line, span.end_column)


def plain(markdown: str) -> str:
    """Markdown for clients that show none."""
    text = re.sub(r"^```\w*\n?|^---\n", "", markdown, flags=re.MULTILINE)
    text = re.sub(r"\[([^\]]+)\]\(([^)]+)\)", r"\1 (\2)", text)
    return re.sub(r"\*\*|`", "", text)


def explain(code_or_name: str, wording: Wording) -> tuple[str, str] | None:
    """Title and page of a rule; None for an unknown one."""
    rule = catalogue().rule(code_or_name)
    text = page(rule.name, wording.language) if rule else None
    return (f"{rule.code} {rule.name}", text) if rule and text else None


def _finding(finding: Finding, wording: Wording, *, said: bool) -> str:
    certainty = wording.text(f"certainty-{finding.certainty.value}")
    head = f"**{finding.code}** [{finding.name}]({link(finding.name)}) · {certainty}"
    lines = [head] if said else [head, "", inline(wording.message(finding.message))]
    why = why_it_matters(finding.name, wording.language)
    if why:
        lines += ["", f"*{wording.text('why')}* {why}"]
    if finding.notes:
        lines += ["", wording.text("torch-says"), "", "```text", *finding.notes, "```"]
    for plan in finding.fixes[:2]:
        key = "fix" if plan.applicability is Applicability.SAFE else f"fix-{plan.applicability.value}"
        lines += ["", wording.text(key, title=inline(wording.message(plan.title)))]
    return "\n".join(lines)


def why_it_matters(name: str, language: str) -> str:
    """First paragraph of why autograd minds, from the rule's page; empty where it has none.

    Translated pages keep the sections of the English one, in its order.
    """
    text, english = page(name, language), page(name)
    if not text or not english:
        return ""
    titles = [title.strip() for title in re.findall(r"^## (.+)$", english, re.MULTILINE)]
    bodies = re.split(r"^## .+$", text, flags=re.MULTILINE)[1:]
    body = dict(zip(titles, bodies)).get("Why autograd minds", "")
    return " ".join(body.strip().split("\n\n")[0].split())


def _ignore(analysis: Analysis, line: int, column: int, wording: Wording) -> Hover | None:
    source = analysis.source
    for comment in ignores.read(source, catalogue).comments:
        if not covers(comment.span, line, column):
            continue
        for selector in comment.selectors:
            if covers(selector.span, line, column) and len(selector.codes) == 1:
                found = explain(next(iter(selector.codes)), wording)
                if found is not None:
                    return Hover(found[1], selector.span)
        if len(comment.selectors) == 1 and len(comment.selectors[0].codes) == 1:
            found = explain(next(iter(comment.selectors[0].codes)), wording)
            if found is not None:
                return Hover(found[1], comment.span)
        key = "ignores-file" if comment.whole_file else "ignores-line"
        rules = ", ".join(f"`{each.text}`" for each in comment.selectors) or wording.text("every-rule")
        return Hover(wording.text(key, rules=rules), comment.span)
    return None
