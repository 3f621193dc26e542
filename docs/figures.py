"""How sure we are: counts of what the checker finds in programs whose truth torch has told."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradguard.check import api
from gradguard.check.settings import Settings
from gradguard.findings import Finding, Severity
from gradguard.source.text import Source

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "fixtures"
LOUD = (Severity.ERROR, Severity.WARNING)


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts over the recorded cases and facts.

    mistakes, found: marked lines of the cases, and how many the checker reports. clean, alarmed: cases without a
    mistake, and how many of them get a warning or an error. facts, agreed: small programs that raise, are silently
    wrong or are right, and how many the checker judges so; false_errors: errors in those that are right.
    """

    cases: int
    mistakes: int
    found: int
    clean: int
    alarmed: int
    facts: int
    agreed: int
    false_errors: int


def measure() -> Figures:
    """Check every case and fact."""
    cases = mistakes = found = clean = alarmed = 0
    for manifest in sorted(FIXTURES.glob("cases/*/manifest.jsonl")):
        for line in manifest.read_text("utf-8").splitlines():
            case = json.loads(line)
            findings = _findings((manifest.parent / case["file"]).read_text("utf-8"))
            cases += 1
            seen = {(finding.span.line, finding.code) for finding in findings}
            for expect in _mistakes(case["expect"]):
                lines = [expect["line"], *expect.get("alt_lines", ())]
                mistakes += 1
                found += any((number, expect["code"]) in seen for number in lines)
            if not case["expect"]:
                tolerated = {(each["line"], each["code"]) for each in case.get("tolerate", ())}
                loud = [f for f in findings if f.severity in LOUD and (f.span.line, f.code) not in tolerated]
                clean += 1
                alarmed += bool(loud)
    header, *facts = ((FIXTURES / "facts.jsonl").read_text("utf-8")).splitlines()
    prelude = json.loads(header)["prelude"]
    agreed = false_errors = 0
    for line in facts:
        fact = json.loads(line)
        loud = [f for f in _findings(prelude + fact["code"]) if f.severity in LOUD]
        errors = [f for f in loud if f.severity is Severity.ERROR]
        false_errors += fact["outcome"] == "ok" and bool(errors)
        agreed += bool(loud) == (fact["outcome"] != "ok")
    return Figures(cases, mistakes, found, clean, alarmed, len(facts), agreed, false_errors)


def _mistakes(expected: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A carried state counts once: its cause, for which the backward that raises is as good."""
    primary = [each["line"] for each in expected if each.get("role") == "primary"]
    causes = [each for each in expected if each.get("role") == "cause"]
    if not causes:
        return expected
    told = [{**each, "alt_lines": [*each.get("alt_lines", ()), *primary]} for each in causes]
    return told + [each for each in expected if "role" not in each]


def _findings(text: str) -> tuple[Finding, ...]:
    return api.check(Source("program.py", text), Settings()).findings


if __name__ == "__main__":
    print(measure())
