"""What a text expects of the checker, in comments on its lines, and what the checker makes of it.

x.add_(1)  # expect: GG101, GG102     these findings begin on this line
x.add_(1)  # error                    on the page of a rule: that rule
"""

from __future__ import annotations

import re
from collections import Counter

from gradguard.check import api
from gradguard.check.settings import Settings
from gradguard.findings import Finding, Severity
from gradguard.source.text import Source

EXPECT = re.compile(r"#\s*expect:\s*(GG\d{3}(?:\s*,\s*GG\d{3})*)")
ERROR = re.compile(r"#\s*error\b")
LOUD = (Severity.ERROR, Severity.WARNING)

Marks = Counter[tuple[int, str]]


def expected(text: str, error: str = "") -> Marks:
    """(line, code) of every mark; `error` is the code that a bare `# error` stands for."""
    marks: Marks = Counter()
    for number, line in enumerate(text.splitlines(), 1):
        for match in EXPECT.finditer(line):
            for code in re.findall(r"GG\d{3}", match.group(1)):
                marks[number, code] += 1
        if error and ERROR.search(line):
            marks[number, error] += 1
    return marks


def findings(text: str, settings: Settings | None = None, path: str = "program.py") -> tuple[Finding, ...]:
    """What the checker reports; the analysis must not have stopped early."""
    report = api.check(Source(path, text), settings or Settings())
    assert not report.crash, report.crash
    assert not report.limits, report.limits
    return report.findings


def disagreement(text: str, found: tuple[Finding, ...], marks: Marks) -> list[str]:
    """What is missing or too much. Findings below a warning count only where a mark asks for them."""
    seen = Counter((f.span.line, f.code) for f in found)
    loud = Counter((f.span.line, f.code) for f in found if f.severity in LOUD)
    lines = text.splitlines()
    told = [f"missing {code} at {line}: {lines[line - 1].strip()}" for line, code in (marks - seen)]
    for finding in found:
        key = (finding.span.line, finding.code)
        if loud[key] and key not in marks:
            told.append(f"not expected {finding.code} at {key[0]}: {finding.message}")
    return told
