"""Marks that stay the same when lines above a finding come and go.

A mark is made of the file, the rule and the text of the line without its indentation. Equal lines are
counted, so that a third copy of a known mistake is new.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence

from gradguard.findings import Finding
from gradguard.report.findings import LineOf


def fingerprints(
    findings: Sequence[Finding], line_of: LineOf, named: Callable[[str], str] = lambda path: path
) -> list[str]:
    """One mark for each finding, all different. `named` gives the name by which a file is known."""
    seen: Counter[bytes] = Counter()
    begun: dict[tuple[str, str, int], hashlib.blake2b] = {}
    marks = []
    for finding in findings:
        place = finding.path, finding.code, finding.span.line
        if place not in begun:
            # A line may be very long, and have very many findings.
            text = " ".join(line_of(finding.path, finding.span.line).split())
            key = "\0".join((named(finding.path), finding.code, text, ""))
            begun[place] = hashlib.blake2b(key.encode(errors="surrogatepass"), digest_size=16)
        mark = begun[place].copy()
        alike = mark.digest()
        mark.update(str(seen[alike]).encode())
        seen[alike] += 1
        marks.append(mark.hexdigest())
    return marks
