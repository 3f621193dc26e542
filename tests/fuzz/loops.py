"""Training and evaluation loops that keep something of every pass, judged by what stays alive.

Each program has one place where a value of the pass is kept (or not). Whether the graph grows is not known
here: it is measured. Only what happens after the loop is: `used` says that a later backward needs all of it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from gradguard.findings import Severity
from tests.fuzz.compare import Found, read

KEEPING = ("GG201", "GG202")
MARK = "  #!"
PASSES = 10


@dataclass(frozen=True, slots=True)
class LoopProgram:
    """`lines`: where the value is kept, as statement and as call. `loop`: line of the innermost loop."""

    code: str
    lines: frozenset[int]
    loop: int
    used: bool
    label: str = ""
    """How the value is kept, for grouping."""


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
        return _growing(self.nodes[-PASSES:])

    @property
    def grows_by_epoch(self) -> bool:
        """More is alive after the second epoch than after the first: telling it is right, not telling it too."""
        return len(self.nodes) > PASSES and self.nodes[-1] > self.nodes[PASSES - 1]

    @property
    def fast(self) -> bool:
        """Tensors saved for backward stay alive as well, not only nodes."""
        return _growing(self.saved[-PASSES:])

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
            if self.fast != any(f in loud for f in here):
                return (
                    "leak of activations told as information"
                    if self.fast
                    else "leak of nodes told as warning"
                )
            return ""
        if loud:
            return (
                "warning where the sum is differentiated"
                if self.program.used
                else "warning where nothing grows"
            )
        return "information where nothing grows" if told and not self.program.used else ""


def _growing(samples: tuple[int, ...]) -> bool:
    """Whether every third of the passes ends higher than the one before."""
    third = len(samples) // 3
    return third > 0 and samples[-1] > samples[-1 - third] > samples[-1 - 2 * third]


# Pieces


WITH_GRAPH = ("{loss}", "{loss}", "{loss}", "{loss}.clone()", "{loss}.mean()", "{loss}.float()", "{loss}.cpu()", "{loss} * 2", "{loss}.view(1)", "{loss}.double()", "{out}.max(1).values.mean()", "{out}.softmax(-1).mean()", "({out} - 1).abs().mean()", "{loss}.squeeze()", "{loss} / len(x)", "torch.exp({loss})", "{out}.sum(1).mean()", "({loss} + {loss}) / 2", "{loss}.to(torch.float64)")  # fmt: skip
WITHOUT = ("{loss}.detach()", "{loss}.item()", "float({loss})", "{loss}.data", "{loss}.detach().clone()", "{loss}.detach().cpu()", "{out}.argmax(1).float().mean()", "({out}.argmax(1) == y).float().mean()", "{out}.max(1).indices.sum()", "{loss}.tolist()", "{loss}.clone().detach()", "(({out} > 0).sum() / 2)", "{loss}.detach().numpy().mean()", "torch.tensor({loss}.item())", "({out}.detach() - 1).abs().mean()", "{out}.data.mean()", "len({out})", "{loss}.detach().mean() * 2")  # fmt: skip

KEEP: dict[str, tuple[str, ...]] = {
    "0.0": ("{t} += {v}", "{t} = {t} + {v}", "{t} = 0.9 * {t} + 0.1 * {v}", "{t} += {v} * len(x)", "{t} = {v} + {t}", "{t} -= {v}", "{t} = {v}", "{t} = {t} + ({v}) / 10"),
    "torch.zeros(())": ("{t} = {t} + {v}", "{t} += {v}", "{t} = {t}.detach() + {v}", "{t} = torch.add({t}, {v})", "{t} = torch.maximum({t}, {t} + {v})"),
    "[]": ("{t}.append({v})", "{t} += [{v}]", "{t}.extend([{v}])", "{t}.insert(0, {v})", "{t}.append((step, {v}))", '{t}.append({{"loss": {v}}})', "{t} = {t} + [{v}]", "{t}[:] = [{v}]", "{t} = [{v}]", "{t} = [*{t}, {v}]", "{t} = {t}[-2:] + [{v}]"),
    "{}": ("{t}[step] = {v}", '{t}.setdefault("loss", []).append({v})', '{t}["loss"] = {v}', "{t}.update(loss={v})", '{t}[f"loss{{step}}"] = {v}', "{t}[step % 2] = {v}"),
    "collections.defaultdict(list)": ('{t}["loss"].append({v})', '{t}["loss"] = [{v}]', '{t}["loss"] += [{v}]'),
    "collections.deque(maxlen=3)": ("{t}.append({v})",),
    "collections.deque()": ("{t}.append({v})",),
    "()": ("{t} = ({v},)", "{t} = {t} + ({v},)", "{t} += ({v},)"),
    "None": ("if {t} is None or {v} < {t}:\n    {t} = {v}", "{t} = {v}", "{t} = {v} if {t} is None else {t}"),
    "torch.zeros(1)": ("{t} = torch.cat([{t}, torch.as_tensor({v}).reshape(1)])", "{t} = torch.as_tensor({v}).reshape(1)"),
    "[0.0] * 20": ("{t}[step] = {v}", "{t}[0] += {v}", "{t}[0] = {v}", "{t}[step % 2] = {v}"),
    "{'loss': 0.0}": ('{t}["loss"] += {v}', '{t}["loss"] = {v}', '{t}["loss"] = {t}["loss"] * 0.9 + {v}'),
}  # fmt: skip
"""How a value is kept, by what the accumulator is at first."""

METER = """class AverageMeter:
    def __init__(self):
        self.{a} = {start}

    def update(self, value, n=1):
        {keep}
"""
STARTS = {"0.0": ("self.{a} += value * n", "self.{a} = self.{a} + value", "self.{a} = value", "self.{a} = 0.9 * self.{a} + 0.1 * value"), "[]": ("self.{a}.append(value)", "self.{a} = [value]", "self.{a}.append(float(value))", "self.{a} += [value]")}  # fmt: skip

MODELS = (
    "nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))",
    "nn.Linear(3, 2)",
    "nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(inplace=True), nn.Linear(4, 2))",
    "Net()",
)
NET = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))
"""
LOSSES = ("F.cross_entropy({out}, y)", "F.mse_loss({out}, torch.zeros_like({out}))", "{out}.pow(2).mean()", "({out} * {out}).sum()", "criterion({out}, y)")  # fmt: skip


def loop_program(seed: int) -> LoopProgram:
    """A loop of ten passes for the seed."""
    rng = random.Random(seed)
    mode = rng.choices(
        ("train", "eval", "no_grad", "inference", "after", "retain"), [5, 2.5, 1.5, 0.5, 1.5, 0.7]
    )[0]
    layout = rng.choice(("flat", "function", "trainer", "epochs", "flat"))
    out = rng.choice(("out", "pred", "logits"))
    start, keep, keepers = _keeping(rng, mode, layout)
    values = WITH_GRAPH if rng.random() < 0.6 or mode == "after" else WITHOUT
    value = rng.choice(values).format(loss="loss", out=out)
    if mode == "after":
        start, keep, value = rng.choice((("0.0", "{t} = {t} + {v}", "loss"), ("0.0", "{t} += {v}", "loss"), ("[]", "{t}.append({v})", "loss"), ("torch.zeros(())", "{t} = {t} + {v}", "loss")))  # fmt: skip
        keepers = []
    target = {"trainer": "self.total"}.get(layout, rng.choice(("total", "running", "history", "stats")))
    keeping = keep.format(t=target, v=value)
    if keepers:
        keeping = f"{target}.update({value})"
        start = "AverageMeter()"
    keeping = "\n".join(line + MARK for line in keeping.split("\n"))
    keeping = _guarded(rng, keeping, mode)
    body = _body(rng, mode, out, keeping)
    lines = _laid_out(rng, layout, mode, start, target, body, keepers)
    label = f"{mode}: {start}: {keep or keepers[-2].strip().removesuffix(MARK)}"
    return replace(_numbered("\n".join(lines), mode == "after"), label=label)


def _keeping(rng: random.Random, mode: str, layout: str) -> tuple[str, str, list[str]]:
    """What the accumulator is, how it is written, and the text of a class that does it."""
    if rng.random() < 0.15:
        start = rng.choice(list(STARTS))
        attribute = "sum" if start == "0.0" else "values"
        keep = rng.choice(STARTS[start]).format(a=attribute) + MARK
        return start, "", METER.format(a=attribute, start=start, keep=keep).split("\n")
    start = rng.choice(list(KEEP))
    return start, rng.choice(KEEP[start]), []


def _guarded(rng: random.Random, keeping: str, mode: str) -> str:
    roll = rng.random()
    inner = "\n".join("    " + line for line in keeping.split("\n"))
    if roll < 0.08 and mode != "after":
        return f"with torch.no_grad():\n{inner}"
    if roll < 0.14:
        return f"if step >= 0:\n{inner}"
    if roll < 0.2 and mode != "after":
        return f"if step == 0:\n{inner}"
    return keeping


def _body(rng: random.Random, mode: str, out: str, keeping: str) -> list[str]:
    """The statements of one pass."""
    forward = [f"{out} = model(x)", f"loss = {rng.choice(LOSSES).format(out=out)}"]
    if mode in ("eval", "no_grad", "inference", "after"):
        steps = [*forward, keeping]
        if rng.random() < 0.2 and mode != "after":
            steps.append("print(loss.item())")
        return steps
    backward = "loss.backward(retain_graph=True)" if mode == "retain" else "loss.backward()"
    steps = ["optimizer.zero_grad()", *forward, backward, "optimizer.step()"]
    # Behind the forward, the backward or the step.
    steps.insert(rng.choice((3, 4, 5)), keeping)
    if rng.random() < 0.15:
        fresh = rng.choice(
            ("parts = []\nparts.append(loss)", "logs = {}\nlogs['loss'] = loss", "last = loss")
        )
        steps.insert(3, fresh)
    return steps


def _laid_out(
    rng: random.Random, layout: str, mode: str, start: str, target: str, body: list[str], keepers: list[str]
) -> list[str]:
    model = rng.choice(MODELS)
    whole = "\n".join(body)
    head = ["import torch", "import torch.nn as nn", "import torch.nn.functional as F"]
    if "collections" in start:
        head.insert(0, "import collections")
    head.append("")
    if model == "Net()":
        head += [*NET.split("\n")]
    head += keepers
    setup = [f"model = {model}", "optimizer = torch.optim.SGD(model.parameters(), lr=0.01)"]
    setup.append(f"loader = [(torch.rand(4, 3), torch.randint(0, 2, (4,))) for _ in range({PASSES})]")
    if "criterion" in whole:
        setup.append("criterion = nn.CrossEntropyLoss()")
    if mode in ("eval", "no_grad", "inference"):
        setup.append("model.eval()")
    context = {"no_grad": "torch.no_grad()", "inference": "torch.inference_mode()"}.get(mode)
    after = (
        [] if mode != "after" else ["loss = sum({t})" if start == "[]" else "loss = {t}", "loss.backward()"]
    )
    if mode == "after" and start == "[]":
        after[0] = rng.choice(("loss = sum({t})", "loss = torch.stack({t}).mean()"))
    after = [line.format(t=target) for line in after]
    loop = ["for step, (x, y) in enumerate(loader):#loop", *_indent(body)]
    if context and rng.random() < 0.5:
        loop = [loop[0], f"    with {context}:", *_indent(loop[1:])]
    elif context and layout != "function":
        loop = [f"with {context}:", *_indent(loop)]
    decorator = (
        [f"@{context}"]
        if context and layout == "function" and f"with {context}" not in "\n".join(loop)
        else []
    )
    if layout == "trainer":
        loop = (
            "\n".join(loop)
            .replace("model(", "self.model(")
            .replace("optimizer.", "self.optimizer.")
            .replace("loader", "self.loader")
            .split("\n")
        )
        return [
            *head, "class Trainer:", "    def __init__(self, model, optimizer, loader):", "        self.model = model", "        self.optimizer = optimizer", "        self.loader = loader", f"        self.total = {start}", "", "    def run(self):", *_indent(_indent([*loop, *after])), "", *setup, "trainer = Trainer(model, optimizer, loader)", "trainer.run()",
        ]  # fmt: skip
    if layout == "function":
        return [*head, *decorator, "def run(model, loader, optimizer):", *_indent([f"{target} = {start}", *loop, *after, f"return {target}"]), "", *setup, "result = run(model, loader, optimizer)"]  # fmt: skip
    if layout == "epochs" and mode != "after":
        outside = rng.random() < 0.5
        inner = ([] if outside else [f"{target} = {start}"]) + loop
        return [
            *head,
            *setup,
            *([f"{target} = {start}"] if outside else []),
            "for epoch in range(2):",
            *_indent(inner),
        ]
    return [
        *head,
        *setup,
        f"{target} = {start}",
        *loop,
        *after,
        *([f"print({target})"] if rng.random() < 0.3 else []),
    ]


def _indent(lines: list[str]) -> list[str]:
    return ["    " + line if line else line for text in lines for line in text.split("\n")]


def _numbered(text: str, used: bool) -> LoopProgram:
    """Takes the marks out of the text and keeps their lines."""
    lines = text.split("\n")
    marked = frozenset(n for n, line in enumerate(lines, 1) if MARK in line)
    loop = next(n for n, line in enumerate(lines, 1) if line.endswith("#loop"))
    clean = [line.replace(MARK, "").removesuffix("#loop") for line in lines]
    return LoopProgram("\n".join(clean).rstrip("\n") + "\n", marked, loop, used)


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
