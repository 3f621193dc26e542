"""Graphs that may be recorded, retained or doubled for nothing, judged by what torch later does with their nodes."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from gradguard.findings import Severity
from tests.fuzz.asked import Share
from tests.fuzz.compare import Found, read
from tests.fuzz.needless_programs import needless_program

CODES = ("GG204", "GG206", "GG207")


@dataclass(frozen=True, slots=True)
class NeedlessCase:
    """A program, and the lines of its forward and backward calls by what torch saw of them.

    unused: forwards that record what nobody ever differentiates, on every pass; quiet: on every pass in eval mode. must: those of them that no loop
    trains around, or whose network is evaluated. target: differentiated, through a network that no optimizer holds.
    retained: backwards that keep their graph; again: those whose graph was walked again; needed: those that torch
    cannot do without. doubled: backwards that make a graph of the gradients; leaks: more is alive after every pass.
    """

    seed: int
    code: str
    error: str
    unused: frozenset[int] = frozenset()
    quiet: frozenset[int] = frozenset()
    must: frozenset[int] = frozenset()
    target: frozenset[int] = frozenset()
    bare: frozenset[int] = frozenset()
    retained: frozenset[int] = frozenset()
    again: frozenset[int] = frozenset()
    needed: frozenset[int] = frozenset()
    doubled: frozenset[int] = frozenset()
    leaks: bool = False
    findings: tuple[Found, ...] = ()
    crash: str = ""

    @property
    def needless(self) -> frozenset[int]:
        """Backwards that keep their graph for nothing."""
        return self.retained - self.again - self.needed

    @property
    def disagreements(self) -> list[tuple[int, str]]:
        """Lines where torch and the checker differ, and how."""
        if self.error:
            return []
        if self.crash:
            return [(0, "crash")]
        told = {code: [f for f in self.findings if f.code == code] for code in CODES}
        found = [
            (f.line, "told as error or warning")
            for f in told["GG204"]
            if f.severity is not Severity.INFORMATION
        ]
        fine = self.unused | self.quiet | self.target | self.bare
        found += [(f.line, "graph told unused that is used") for f in told["GG204"] if not f.on(fine)]
        found += [(f.line, "needed retain_graph told") for f in told["GG206"] if f.on(self.needed) or not f.on(self.retained)]  # fmt: skip
        wanted = [("GG204", self.must | self.target | self.bare, "unused graph not told")]
        wanted += [("GG206", self.needless, "needless retain_graph not told")]
        wanted += [("GG207", self.doubled if self.leaks else frozenset(), "cycle not told")]
        for code, lines, what in wanted:
            found += [
                (line, what) for line in sorted(lines) if not any(f.on(frozenset({line})) for f in told[code])
            ]
        if not self.leaks:
            found += [(f.line, "cycle told that is broken") for f in told["GG207"]]
        return found


def examine_needless(seed: int) -> NeedlessCase:
    """Measures and reads the program of a seed in this process; imports torch."""
    return examined(needless_program(seed), seed)


def examined(code: str, seed: int = 0) -> NeedlessCase:
    """What torch and the checker say of a program."""
    from tests.fuzz.usage import Usage
    from tests.oracle.instruments import run_measured
    from tests.oracle.programs import execute

    usage = Usage()
    ran = execute(code, inside=usage.watching)
    if ran.raised is not None:
        return NeedlessCase(seed, code, f"{ran.raised.type}: {ran.raised.text}")
    tree = ast.parse(code)
    trained = _trained(tree)
    by_line = {f.line: [g for g in usage.forwards if g.line == f.line] for f in usage.forwards}
    recording = {line: calls for line, calls in by_line.items() if any(c.recorded for c in calls)}
    unused = {line for line, calls in recording.items() if not any(c.walked for c in calls)}
    quiet = set()
    for line, calls in recording.items():
        evaluated = [c for c in calls if c.recorded and not c.in_training]
        if evaluated and not any(c.walked for c in evaluated):
            quiet.add(line)
    must = {n for n in unused if n not in trained or not any(c.in_training for c in recording[n])}
    target = {
        line
        for line, calls in recording.items()
        for module in {id(c.module) for c in calls}
        if all(c.walked and usage.foreign(c) and not c.fed for c in calls if id(c.module) == module)
    }
    retained = frozenset(kept.line for kept in usage.retained)
    again = frozenset(kept.line for kept in usage.retained if kept.walked_again)
    needed = frozenset(
        line for line in retained if execute(_without_retaining(code, line)).raised is not None
    )
    doubled = _doubled(tree)
    leaks = False
    if doubled:
        loops = run_measured(code, "")["loops"].values()
        leaks = any(_grows([n for _, n in samples]) for samples in loops)
    looped = _looped(tree)
    found, _, crash = read(code)
    return NeedlessCase(
        seed, code, "", frozenset(unused), frozenset(quiet), frozenset(must & looped), frozenset(target & looped), _bare(tree), retained, again, needed, doubled, leaks, found, crash,
    )  # fmt: skip


def _grows(nodes: list[int]) -> bool:
    return len(nodes) > 2 and all(a < b for a, b in pairwise(nodes[1:]))


def _loops(tree: ast.Module) -> list[ast.AST]:
    return [node for node in ast.walk(tree) if isinstance(node, (ast.For, ast.While, ast.comprehension))]


def _looped(tree: ast.Module) -> set[int]:
    """Lines of loops, and of functions: all of these are called in one."""
    inside = [*_loops(tree), *(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))]
    return {part.lineno for node in inside for part in ast.walk(node) if isinstance(part, ast.expr)}


def _trained(tree: ast.Module) -> set[int]:
    """Lines that run in a loop with a backward in it; those of a function without a loop may."""
    found = {
        part.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and not _loops(ast.Module([node], []))
        for part in ast.walk(node)
        if isinstance(part, ast.expr)
    }
    for node in [*_loops(tree), *(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))]:
        parts = list(ast.walk(node))
        if any(isinstance(p, ast.Attribute) and p.attr in ("backward", "step") for p in parts):
            found.update(p.lineno for p in parts if isinstance(p, ast.expr))
    return found


def _bare(tree: ast.Module) -> frozenset[int]:
    """Statements that make a context and enter it nowhere."""
    calls = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ]
    return frozenset(call.lineno for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr in ("no_grad", "inference_mode"))  # fmt: skip


def _doubled(tree: ast.Module) -> frozenset[int]:
    """Lines of `backward(create_graph=True)`."""
    return frozenset(
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "backward"
        and any(
            k.arg == "create_graph" and isinstance(k.value, ast.Constant) and k.value.value
            for k in node.keywords
        )
    )


def _without_retaining(code: str, line: int) -> str:
    """The program with the graph freed by the backward of a line."""
    lines = code.split("\n")
    tree = ast.parse(lines[line - 1].strip())
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            node.keywords = [k for k in node.keywords if k.arg != "retain_graph"]
    text = lines[line - 1]
    lines[line - 1] = text[: len(text) - len(text.lstrip())] + ast.unparse(tree)
    return "\n".join(lines)


def needless_batch(seeds: list[int]) -> list[NeedlessCase]:
    """`examine_needless` for each seed."""
    return [examine_needless(seed) for seed in seeds]


def asked(cases: Sequence[NeedlessCase]) -> list[Share]:
    """What is asked of programs with graphs that may serve nothing."""
    judged = [case for case in cases if not case.error]
    differing = sum(bool(case.disagreements) for case in judged)
    return [
        Share("programs with graphs that crash", sum(bool(case.crash) for case in cases), len(cases)),
        Share("programs with graphs discarded", len(cases) - len(judged), len(cases), 0.15),
        Share("programs with graphs that differ", differing, len(judged), 0.01),
    ]


def report(cases: Sequence[NeedlessCase]) -> str:
    """Figures over programs with graphs that may serve nothing, and every line where torch and the checker differ."""
    judged = [case for case in cases if not case.error]
    wanted = [
        f"{sum(bool(getattr(case, name)) for case in judged)} {words}"
        for name, words in (("must", "evaluate with a graph"), ("target", "ask a target for one"), ("needless", "retain one"), ("leaks", "leak a doubled one"))
    ]  # fmt: skip
    differing = [(case, line, what) for case in judged for line, what in case.disagreements]
    told = [
        f"{len(cases)} programs with graphs: {', '.join(wanted)}, {len(differing)} differ, {len(cases) - len(judged)} discarded"
    ]
    told += [
        f"seed {case.seed} line {line}: {what}\n{case.code}{case.crash[-300:]}"
        for case, line, what in differing
    ]
    return "\n".join(told)
