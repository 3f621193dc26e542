"""Loop programs judged by what stays alive, pass after pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gradguard.findings import Severity
from tests.fuzz.asked import Share, percent
from tests.fuzz.compare import Found, read
from tests.fuzz.loop_programs import PASSES, LoopProgram, loop_program

KEEPING = ("GG201", "GG202")


@dataclass(frozen=True, slots=True)
class LoopCase:
    """A loop program, measured and read."""

    seed: int
    program: LoopProgram
    error: str
    nodes: tuple[int, ...]
    saved: tuple[int, ...]
    findings: tuple[Found, ...]
    crash: str

    @property
    def grows(self) -> bool:
        """Every pass adds something, in the first epoch at least."""
        return _growing(self.nodes[:PASSES]) or _growing(self.nodes[-PASSES:])

    @property
    def grows_by_epoch(self) -> bool:
        """More is alive after the second epoch than after the first: telling it is right, not telling it too."""
        return len(self.nodes) > PASSES and self.nodes[-1] > self.nodes[PASSES - 1]

    @property
    def fast(self) -> bool:
        """Tensors saved for backward stay alive as well, not only nodes."""
        return _growing(self.saved[:PASSES]) or _growing(self.saved[-PASSES:])

    @property
    def disagreement(self) -> str:
        if self.error:
            return ""
        if self.crash:
            return "crash"
        told = [f for f in self.findings if f.code in KEEPING]
        loud = [f for f in told if f.severity.rank <= Severity.WARNING.rank]
        if self.grows and not self.program.used:
            here = [f for f in told if f.on(self.program.lines)]
            if not here:
                return "leak told at another line" if told else "leak not found"
            # Nodes alone are a warning, too, where the loop lasts as long as the run.
            if self.fast and not any(f in loud for f in here):
                return "leak of activations told as information"
            return ""
        if self.grows_by_epoch and not self.program.used:
            return ""
        if loud:
            return (
                "warning where the sum is differentiated"
                if self.program.used
                else "warning where nothing grows"
            )
        return "information where nothing grows" if told and not self.program.used else ""


def _growing(samples: tuple[int, ...]) -> bool:
    """Whether every third of the passes reaches higher than the one before."""
    third = len(samples) // 3
    if not third:
        return False
    first, middle, last = samples[: -2 * third], samples[-2 * third : -third], samples[-third:]
    return max(last) > max(middle) > max(first)


def examine_loop(seed: int) -> LoopCase:
    """Measures and reads the program of a seed in this process; imports torch."""
    from tests.oracle.instruments import run_measured

    program = loop_program(seed)
    measured = run_measured(program.code, "")
    samples = measured["loops"].get(program.loop, [])
    found, _, crash = read(program.code)
    nodes, saved = tuple(n for _, n in samples), tuple(b for b, _ in samples)
    return LoopCase(seed, program, measured["error"], nodes, saved, found, crash)


def loop_batch(seeds: list[int]) -> list[LoopCase]:
    """`examine_loop` for each seed."""
    return [examine_loop(seed) for seed in seeds]


def leaking(cases: Sequence[LoopCase]) -> list[LoopCase]:
    """Loops in which more is alive after each pass, and for no later backward."""
    return [case for case in cases if not case.error and case.grows and not case.program.used]


def unseen(cases: Sequence[LoopCase]) -> list[LoopCase]:
    """Leaking loops of which that is not told at its line."""
    return [
        case for case in leaking(cases) if case.disagreement.startswith(("leak not", "leak told", "crash"))
    ]


def asked(cases: Sequence[LoopCase]) -> list[Share]:
    """What is asked of loops."""
    judged = [case for case in cases if not case.error]
    told = [case for case in judged if case.disagreement.startswith(("warning", "information"))]
    weight = [case for case in judged if case.disagreement.startswith("leak of")]
    return [
        Share("loops that crash", sum(bool(case.crash) for case in cases), len(cases)),
        Share("loops discarded", len(cases) - len(judged), len(cases), 0.02),
        Share("leaks not found", len(unseen(cases)), len(leaking(cases)), 0.01),
        Share("leaks told with another weight", len(weight), len(leaking(cases)), 0.01),
        Share("loops told of that keep nothing", len(told), len(judged), 0.01),
    ]


def report(cases: Sequence[LoopCase]) -> str:
    """Figures over loop programs, and the shortest program of each kind of difference."""
    judged = [case for case in cases if not case.error]
    leaks = leaking(cases)
    counts = Counter(case.disagreement for case in judged if case.disagreement)
    lines = [
        f"{len(cases)} loops: {len(leaks)} leak ({sum(case.fast for case in leaks)} activations), "
        f"{sum(case.program.used for case in judged)} summed for a later backward, {len(cases) - len(judged)} discarded",
        f"leaks found {percent(len(leaks) - len(unseen(cases)), len(leaks))}; differences {dict(counts)}",
    ]
    groups: dict[tuple[str, str], list[LoopCase]] = {}
    for case in judged:
        if case.disagreement:
            groups.setdefault((case.disagreement, case.program.label), []).append(case)
    for (what, label), found in sorted(groups.items(), key=lambda item: -len(item[1])):
        case = min(found, key=lambda each: len(each.program.code))
        lines.append(
            f"\n== {len(found)} x {what} | {label}   seed {case.seed}, kept at {sorted(case.program.lines)}, nodes {case.nodes[-PASSES:]}"
        )
        lines += [f"{n:3} {line}" for n, line in enumerate(case.program.code.rstrip().split("\n"), 1)]
        lines += [
            f"checker: {f.severity.value} {f.code} line {f.line}: {f.message[:160]}" for f in case.findings
        ]
        lines += [case.crash[-600:]] if case.crash else []
    return "\n".join(lines)
