"""Marks that stay the same when lines above a finding come and go.

A mark is made of the file, the rule and the text of the line without its indentation. Equal lines are
counted, so that a third copy of a known mistake is new.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence

from gradguard.findings import Finding

LineOf = Callable[[str, int], str]
"""Text of a line (from 1) of the file at a path as shown; empty when it cannot be had."""


def fingerprints(
    findings: Sequence[Finding], line_of: LineOf, named: Callable[[str], str] = lambda path: path
) -> list[str]:
    """One mark for each finding, all different. `named` gives the name by which a file is known."""
    seen: Counter[tuple[str, str, str]] = Counter()
    marks = []
    for finding in findings:
        key = (named(finding.path), finding.code, " ".join(line_of(finding.path, finding.span.line).split()))
        text = "\0".join((*key, str(seen[key])))
        seen[key] += 1
        marks.append(hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest())
    return marks
