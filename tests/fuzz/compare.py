"""What torch does with a program against what the checker says of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.metadata import version

from gradguard.findings import Severity
from tests.fuzz.asked import Share, percent

MINE = re.compile(r"GG1\d\d|GG203|GG205")
"""Rules about errors and wrong gradients; the others speak of memory and speed, which is judged elsewhere."""


@dataclass(frozen=True, slots=True)
class Found:
    """A finding of the checker, as far as it is compared."""

    code: str
    severity: Severity
    line: int
    end_line: int
    message: str

    @property
    def counts(self) -> bool:
        """It foresees an error or a wrong gradient."""
        return self.severity.rank <= Severity.WARNING.rank and MINE.fullmatch(self.code) is not None

    def on(self, lines: frozenset[int]) -> bool:
        return any(self.line <= line <= self.end_line for line in lines)


@dataclass(frozen=True, slots=True)
class Case:
    """One program, judged and read."""

    seed: int
    code: str
    outcome: str
    rule: str
    error: str
    line: int | None
    culprits: frozenset[int]
    findings: tuple[Found, ...]
    limits: int
    crash: str
    lucky: bool = False
    """Right by chance: backward used a tensor that had been written after it was saved."""
    kinds: Counter[str] = field(default_factory=Counter)
    ops: Counter[str] = field(default_factory=Counter)

    @property
    def disagreement(self) -> str:
        """How checker and torch differ; empty where they agree."""
        if self.crash:
            return "crash"
        errors = [f for f in self.findings if f.severity is Severity.ERROR]
        told = [f for f in self.findings if f.counts]
        if self.outcome == "ok":
            if errors:
                return "false error"
            doubtful = told and not (self.lucky and all(f.code == "GG105" for f in told))
            return "false warning" if doubtful else ""
        if self.outcome == "silent":
            return "" if told else "silent not found"
        if self.outcome == "raises":
            if not told:
                return "raise not found"
            if not errors:
                return "raise found as warning only"
            if not any(f.on(self.culprits) for f in told):
                return "raise found at another line"
        return ""

    @property
    def signature(self) -> str:
        """What disagreements of one kind have in common."""
        node = re.search(r"is output \d+ of (\w+)", self.error)
        codes = sorted({f"{f.code} {f.severity.value}" for f in self.findings if f.counts})
        crash = self.crash.strip().split("\n")[-1] if self.crash else ""
        parts = [self.disagreement, self.rule, node.group(1) if node else "", ", ".join(codes), crash]
        return " | ".join(part for part in parts if part)


@lru_cache(maxsize=1)
def installed() -> str:
    """The version of torch that judges; the checker must speak of the same one."""
    return ".".join(version("torch").split(".")[:2])


def read(code: str) -> tuple[tuple[Found, ...], int, str]:
    """The checker's findings, how often it stopped early, and its traceback if it broke."""
    from gradguard.check.api import check
    from gradguard.check.settings import Settings
    from gradguard.source.text import Source

    report = check(Source("program.py", code), Settings(torch=installed()))
    found = tuple(Found(f.code, f.severity, f.span.line, f.span.end_line, f.message) for f in report.findings)
    return found, len(report.limits), report.crash


def examine(code: str, seed: int = 0) -> Case:
    """Judges and reads one program in this process; imports torch."""
    from tests.fuzz.culprit import culprits, needed
    from tests.fuzz.verdict import judge, seed_quickly

    seed_quickly()
    verdict = judge(code)
    lines = culprits(code, verdict) if verdict.outcome in ("raises", "silent") else set()
    if verdict.outcome == "silent" and not lines:
        # Gradients differ though nothing is written: an op that saves a tensor before it fills it.
        verdict = replace(verdict, outcome="discard")
    found, limits, crash = read(code) if verdict.outcome != "discard" else ((), 0, "")
    told = {line for f in found if f.counts for line in range(f.line, f.end_line + 1)}
    if verdict.rule == "GG101" and told and not told & lines:
        lines |= needed(code, verdict, told)
    return Case(
        seed,
        code,
        verdict.outcome,
        verdict.rule,
        verdict.error,
        verdict.line,
        frozenset(lines),
        found,
        limits,
        crash,
        verdict.lucky,
    )


def examine_all(codes: Sequence[str]) -> list[Case]:
    """`examine` for each program."""
    return [examine(code) for code in codes]


def batch(seeds: Sequence[int]) -> list[Case]:
    """Grows, judges and reads a program for each seed."""
    from tests.fuzz.generate import grow
    from tests.fuzz.verdict import seed_quickly

    seed_quickly()
    cases: list[Case] = []
    for seed in seeds:
        grown = grow(seed)
        cases.append(replace(examine(grown.text, seed), kinds=grown.kinds, ops=grown.ops))
    return cases


@dataclass(slots=True)
class Tally:
    """Counts over many cases."""

    outcomes: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    disagreements: Counter[str] = field(default_factory=Counter)
    at_culprit: int = 0
    by_error: int = 0
    no_culprit: int = 0
    limits: int = 0
    other_warnings: Counter[str] = field(default_factory=Counter)
    stray_errors: int = 0
    """Errors on other lines of programs that raise; only a hint, as the program ended before they were put to the test."""
    kinds: Counter[str] = field(default_factory=Counter)
    ops: Counter[str] = field(default_factory=Counter)

    def add(self, case: Case) -> None:
        self.outcomes[case.outcome] += 1
        self.disagreements[case.disagreement] += 1
        self.kinds += case.kinds
        self.ops += case.ops
        self.limits += bool(case.limits)
        if case.outcome == "ok":
            self.other_warnings.update(
                {f.code for f in case.findings if not f.counts and f.severity.rank <= Severity.WARNING.rank}
            )
        if case.outcome == "raises":
            self.rules[case.rule] += 1
            self.no_culprit += not case.culprits
            told = [f for f in case.findings if f.counts]
            self.at_culprit += any(f.on(case.culprits) for f in told)
            self.by_error += any(f.severity is Severity.ERROR for f in told)
            self.stray_errors += any(f.severity is Severity.ERROR and not f.on(case.culprits) for f in told)

    @classmethod
    def of(cls, cases: Iterable[Case]) -> Tally:
        """The counts of these cases."""
        tally = cls()
        for case in cases:
            tally.add(case)
        return tally

    @property
    def asked(self) -> list[Share]:
        """What is asked of them."""
        raising, right, silent = (self.outcomes[o] for o in ("raises", "ok", "silent"))
        differ = self.disagreements
        return [
            Share("crashes", differ["crash"], self.outcomes.total()),
            Share("errors in right programs", differ["false error"], right),
            Share("right programs that are warned of", differ["false warning"], right, 0.01),
            Share("raising programs not found", differ["raise not found"], raising, 0.005),
            Share("raising programs not found at a culprit line", raising - self.at_culprit, raising, 0.01),
            Share("silently wrong programs not found", differ["silent not found"], silent, 0.05),
        ]

    def report(self) -> str:
        """The figures, a line for each outcome."""
        total = self.outcomes.total()
        raising, right, silent = (self.outcomes[o] for o in ("raises", "ok", "silent"))
        missed = self.disagreements["raise not found"]
        crashes = self.disagreements["crash"]
        lines = [
            f"{total} programs: {raising} raise, {right} right, {silent} silently wrong, {self.outcomes['discard']} discarded "
            f"({percent(self.outcomes['discard'], total)})",
            f"raise:  found {percent(raising - missed, raising)}, as error {percent(self.by_error, raising)}, "
            f"at a culprit line {percent(self.at_culprit, raising)}  [{self.no_culprit} without a known culprit, {self.stray_errors} with an error elsewhere too]",
            f"right:  {self.disagreements['false error']} errors, warnings {self.disagreements['false warning']} ({percent(self.disagreements['false warning'], right)}); "
            f"warnings of other families {dict(self.other_warnings)}",
            f"silent: found {percent(silent - self.disagreements['silent not found'], silent)}",
            f"rules of the errors: {dict(self.rules.most_common())}",
            f"checker: {crashes} crashes, stopped early in {self.limits}",
            f"variety: {len(self.ops)} ops, {len(self.kinds)} kinds of statement",
        ]
        return "\n".join(lines)


def report(cases: Iterable[Case]) -> str:
    """The figures of these cases."""
    return Tally.of(cases).report()


def asked(cases: Iterable[Case]) -> list[Share]:
    """What is asked of these cases."""
    return Tally.of(cases).asked
