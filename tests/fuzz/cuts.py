"""Training programs in which a value may be cut off on its way to the loss, judged by the gradients parameters get."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from gradguard.findings import Severity
from tests.fuzz.asked import Share
from tests.fuzz.compare import Found, read

CUTS = (
    "{v}.detach()", "{v}.data", "{v}.clone().detach()", "{v}.detach().clone()", "torch.tensor({v}.tolist())", "torch.from_numpy({v}.detach().numpy())", "{v}.detach().requires_grad_()",
    "nn.Parameter({v}.detach())", "{v}.new_tensor({v}.tolist())", "torch.as_tensor({v}.detach().numpy())", "torch.tensor({v}.detach().numpy())", "{v}.detach().mul(2)",
)  # fmt: skip
NUMBERS = ("{v}.item()", "float({v})", "math.exp({v})", "{v}.tolist()", "{v}.detach()", "{v}.data", "torch.tensor({v}.item())", "float({v}.detach())", "numpy.exp({v}.item())")  # fmt: skip
KEPT = ("{v}", "{v}.clone()", "{v}.float()", "{v} * 1", "{v}.view_as({v})", "{v}.exp()", "{v} + {v}.detach()", "torch.stack([{v}]).squeeze(0)", "{v}.to(torch.float32)", "{v}.contiguous()", "{v}.abs()")  # fmt: skip


@dataclass(frozen=True, slots=True)
class CutCase:
    """A program, whether a value on its way to the loss was cut, and how many parameters got no gradient."""

    seed: int
    code: str
    line: int
    cut: bool
    starved: int
    error: str
    findings: tuple[Found, ...]
    crash: str

    @property
    def disagreement(self) -> str:
        """How torch and the checker differ; empty where they agree."""
        told = [f for f in self.findings if f.code == "GG205" and f.severity.rank <= Severity.WARNING.rank]
        if self.crash:
            return "crash"
        if self.error:
            # Nothing in the loss requires grad: the backward raises.
            return "" if told or not self.cut else "broken graph that raises not told"
        if self.cut and self.starved:
            return "" if any(f.on(frozenset({self.line})) for f in told) else "cut not told"
        return "told though every parameter gets a gradient" if told and not self.starved else ""


def cut_program(seed: int) -> tuple[str, int, bool]:
    """The text, the line that cuts (or does not), and whether it does and reaches the loss."""
    rng = random.Random(seed)
    what = rng.choice(("hidden", "scale", "out", "no_grad"))
    cut, flows, other = rng.random() < 0.6, rng.random() < 0.75, rng.random() < 0.25
    forms = (NUMBERS if what == "scale" else CUTS) if cut else KEPT
    form = rng.choice(forms)
    if what == "no_grad":
        making = ["with torch.no_grad():", "    hidden = first(x)  #!"] if cut else ["hidden = first(x)  #!"]
        use = "hidden" if flows else "first(x)"
        body = [*making, f"out = second(torch.tanh({use})) * scale", "print(hidden.mean().item())"]
        if other and flows:
            body.append("out = out + second(torch.tanh(first(x)))")
    elif what == "scale":
        body = ["hidden = torch.tanh(first(x))", f"value = {form.format(v='scale')}  #!"]
        body.append(f"out = second(hidden) * {'value' if flows else 'scale'}")
        body += ["out = out + scale"] if other and flows else []
        body += [] if flows else ["print(value)"]
    else:
        source = "hidden" if what == "hidden" else "out"
        body = ["hidden = torch.tanh(first(x))"]
        if source == "out":
            body.append("out = second(hidden) * scale")
        body.append(f"value = {form.format(v=source)}  #!")
        if source == "hidden":
            body.append(f"out = second({'value' if flows else 'hidden'}) * scale")
            body += ["out = out + hidden.mean()"] if other and flows else []
        elif flows:
            body.append(
                "out = value + 0 * scale.detach()" if not other else "out = value + second(hidden) * scale"
            )
        body += [] if flows else ["print(value.mean())"]
    loss = rng.choice(("out.pow(2).mean()", "F.mse_loss(out, y)", "(out - y).abs().sum()"))
    update = ["optimizer.zero_grad()", f"loss = {loss}", "loss.backward()", "optimizer.step()"]
    draw = ["x, y = torch.rand(4, 3), torch.rand(4, 2)"]
    lines = [
        "import math",
        "import numpy",
        "import torch",
        "import torch.nn as nn",
        "import torch.nn.functional as F",
        "",
    ]
    setup = ["first, second = nn.Linear(3, 4), nn.Linear(4, 2)", "scale = nn.Parameter(torch.ones(()) * 0.5)", "optimizer = torch.optim.SGD([*first.parameters(), *second.parameters(), scale], lr=0.1)"]  # fmt: skip
    inner = ["    " + line for line in (*draw, *body, *update)]
    if rng.random() < 0.5:
        lines += [*setup, "for step in range(3):", *inner]
    else:
        lines += ["def work(first, second, scale, optimizer):", *inner, "", *setup, "for step in range(3):", "    work(first, second, scale, optimizer)"]  # fmt: skip
    line = next(n for n, text in enumerate(lines, 1) if text.endswith("#!"))
    if cut and what == "no_grad":
        line -= 1
    text = "\n".join(text.removesuffix("  #!") for text in lines) + "\n"
    return text, line, cut and flows


def examine_cuts(seed: int) -> CutCase:
    """Measures and reads the program of a seed in this process; imports torch."""
    from tests.oracle.instruments import run_measured

    code, line, cut = cut_program(seed)
    measured = run_measured(code, "")
    starved = sum(len(indices) for indices, _ in measured["without"].values())
    found, _, crash = read(code)
    return CutCase(seed, code, line, cut, starved, measured["error"], found, crash)


def cut_batch(seeds: list[int]) -> list[CutCase]:
    """`examine_cuts` for each seed."""
    return [examine_cuts(seed) for seed in seeds]


def starving(cases: Sequence[CutCase]) -> int:
    """How many programs leave parameters untrained by a cut."""
    return sum(case.cut and case.starved > 0 for case in cases)


def asked(cases: Sequence[CutCase]) -> list[Share]:
    """What is asked of programs that may cut off what trains."""
    differing = sum(bool(case.disagreement) for case in cases)
    return [
        Share("programs with cuts that crash", sum(bool(case.crash) for case in cases), len(cases)),
        Share("programs with cuts that differ", differing, len(cases), 0.01),
    ]


def report(cases: Sequence[CutCase]) -> str:
    """Figures over programs that may cut off what trains, and every one where torch and the checker differ."""
    differing = [case for case in cases if case.disagreement]
    told = [
        f"{len(cases)} programs with cuts: {starving(cases)} leave parameters untrained, {len(differing)} differ"
    ]
    told += [f"seed {case.seed} line {case.line}: {case.disagreement}\n{case.code}" for case in differing]
    return "\n".join(told)
