"""Training loops that read the host in many ways, judged by the dispatches that torch counts on each line."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from gradguard.findings import Severity
from tests.fuzz.asked import Share
from tests.fuzz.compare import Found, read

READS = ("GG301", "GG302", "GG303")
PASSES = 6
HOST = "  #host"
"""Marks a statement that reads on the host only, which torch without a device cannot tell apart."""

STATEMENTS = (
    "v = loss.item()", "v = float(loss)", "v = int(loss)", "v = bool(loss)", "if loss > 3:\n    v = 1", "while loss > 1e9:\n    break", "v = 1 if loss > 0 else 0", "v = loss > 0 and 1",
    "v = not loss", "assert loss > -1e9", "v = f'{loss}'", "v = f'{loss:.3f}'", "v = '%.3f' % loss", "v = '%s' % loss", "v = format(loss, '.3f')", "v = '{:.2f}'.format(loss)", "print(loss)", "print(out)",
    "v = str(loss)", "v = repr(loss)", "for row in out:\n    v = row.mean()", "a, b, *c = y", "v = sum(y)", "v = sum([loss, loss])", "v = 2 ** loss", "v = len(out)", "v = out.shape[0]", "v = out.numel()",
    "v = loss is None", "v = torch.where(mask[:, None], out, 0 * out)", "v = out.masked_fill(mask[:, None], 0.0)", "v = max(loss, loss * 2)", "v = sorted([loss, loss * 2])", "v = min(y)", "v = any(mask)",
    "v = all([loss, loss])", "v = max(3, 4)", "v = numbers[i]", "v = list(range(i))", "v = torch.arange(i + 1)", "v = torch.zeros(i + 1)", "v = out[:i + 1]", "z[i] = 1.0", "v = out[mask]", "v = mask.nonzero()",
    "v = torch.where(mask)", "v = torch.masked_select(out, mask[:, None])", "v = y.unique()", "z[mask] = 0.0", "z[mask] = z[mask] * 2", "v = torch.full((2,), t.item())", "v = math.exp(t)",
    "v = numpy.mean([t.detach()])", "v = torch.equal(out, out)", "v = torch.allclose(out, out)", "v = (out > 0).all()", "assert (out > -1e9).all()", "v = torch.tensor([t, t])", "v = y.tolist()", "v = out.cpu()",
    "v = out.detach().cpu().numpy()", "v = x.repeat_interleave(y, dim=0)", "v = torch.repeat_interleave(x, y, dim=0)", "v = x.repeat_interleave(y + 1 - y, dim=0, output_size=4)", "v = out.topk(1)", "v = out.argmax()", "v = F.cross_entropy(out, y)",
    "v = loss in [1, 2]", "v = torch.isnan(loss)", "if torch.isnan(loss).any():\n    v = 1", "v = nn.utils.clip_grad_norm_(model.parameters(), 1.0)", "v = nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)",
    "v = torch.distributions.Categorical(logits=out)", "v = x.shape == out.shape", "v = x.device", "v = dict(a=loss)", "v = loss.detach()", "v = [loss, t]", "v = loss.cpu().item()", "v = numpy.array(y.cpu())",
    "v = loss.detach().item()", "v = torch.stack([loss, t]).tolist()", "v = list(y)", "v = [row.sum() for row in out]", "v = [each.item() for each in y]", "v = {k: q.item() for k, q in dict(a=loss).items()}",
    "v = loss.__float__()", "v = operator.index(i)", "v = x.clamp(max=t)", "v = x.pow(t)", "v = x * t", "v = torch.randperm(4)", "v = torch.stack([loss, t]).mean()", "v = out.dtype", "v = loss.requires_grad",
    "v = torch.isfinite(out).all()", "v = (out.argmax(1) == y).float().mean()", "v = (out.argmax(1) == y).sum().item()", "v = x.max().item()", "v = [p.grad.norm().item() for p in model.parameters()]",
    "v = max(p.grad.abs().max() for p in model.parameters())", "v = torch.stack([p.grad.abs().max() for p in model.parameters()]).max()", "v = sum(p.grad.norm() for p in model.parameters())", "v = round(loss.item(), 3)",
    "v = torch.linspace(0, 1, 3)", "v = out.new_zeros(3)", "v = loss + 0", "v = loss == 1", "v = loss is not None and 2", "v = isinstance(loss, float)", "v = hasattr(loss, 'grad')", "v = x[0]", "v = x[:, 1:]",
    "v = x[y]", "v = x[torch.arange(4)]", "v = x.gather(1, y[:, None])", "v = x.index_select(0, y)", "v = torch.nonzero(out)", "v = out.detach().flatten().tolist()", "v = torch.argwhere(mask)", "v = mask.sum().item()",
    "v = int(mask.sum())", "v = mask.any().item()", "if mask.any():\n    v = 1", "if mask.sum() > 0:\n    v = 2", "if out.numel() > 0:\n    v = 3", "if len(out) > 2:\n    v = 4", "v = complex(loss)", "v = [1, 2, 3][i]",
    "v = numpy.array([1.0]).item()", "v = float('3.5')", "v = int(step)", "v = f'{step} of {len(out)}'", "print(step)", "v = '%d' % step", "v = max(step, 3)", "v = bool(step)", "v = on_host.item()", "v = float(on_host)",
    "print(on_host)", "if on_host > 0:\n    v = 5", "logs.append(loss.item())", "total += loss.item()", "total += float(loss)", "best = min(best, loss.item())", "v = loss.item() if step % 3 == 0 else None",
    "v = step % 100 == 99 and loss.item()", "if step == 99:\n    v = loss.item()", "if logger.isEnabledFor(10):\n    v = loss.item()", "logger.debug('%s', loss)", "logger.debug(f'{loss}')", "v = f'{loss.item():.3f} {t.item():.3f}'",
    "print(loss.item(), t.item())", "v = (loss.item(), t.item(), i.item())", "v = str(x.shape)", "print(x.shape)", "v = f'{out.shape}'", "v = numpy.float32(3.0).item()", "v = torch.bincount(y)", "v = torch.histc(out)",
    "v = out[i]", "v = x[i, 0]", "v = x.sub(x, alpha=t.item())", "v = torch.sub(x, x, alpha=t.detach())", "v = torch.full((2,), t.detach())", "for a, b in zip(x, out):\n    v = a.sum() + b.sum()", "v = torch.distributions.Normal(t.detach(), 1.0, validate_args=False).log_prob(loss.detach())",
    "v = torch.distributions.Normal(t.detach(), 1.0)", "v = torch.cdist(x, x)", "v = torch.tensor([loss.item(), 1.0])", "v = list(map(float, y))", "v = sorted(y)", "v = max(y)", "v = any([mask[0], mask[1]])", "v = sum(p.pow(2).sum() for p in model.parameters())",
    "v = max(loss.item(), 0.0)", "v = min(3, len(out))", "v = torch.stack([loss, t]).max()", "v = torch.zeros(i + 1, 2)", "v = x.new_zeros(4)", "v = torch.linspace(0, 1, int(i) + 1)", "v = numbers[int(i)]", "v = x.split(2)", "v = x.expand(4, 3)", "v = x.view(4, 3)", "v = out.sum().item() > 0 and 1",
    "loss = loss + out[mask].sum()", "loss = loss + out[y].sum()", "loss = loss + out.masked_fill(mask[:, None], 0.0).sum()", "loss = loss + (out * mask[:, None]).sum()", "loss = loss + F.mse_loss(out[mask, :], 0 * out[mask, :], reduction='sum')", "w = out.clone()\nw[mask] = out[mask] * 2\nloss = loss + w.sum()", "w = out.clone()\nw[mask] = 0.0\nloss = loss + w.sum()",
    "loss = loss + out[out > 0].sum()", "loss = loss + torch.where(mask[:, None], out, 0 * out).sum()", "loss = loss + out[mask.nonzero().squeeze(1)].sum()", "if step > 0 and step % 100 == 0:\n    v = loss.item()", "if loss.item() < -1e9:\n    break", "v = loss.item() if logger.isEnabledFor(10) else 0", "names = {'loss': loss.item(), 't': float(t)}", "print('loss', loss.item())",
    "print(f'{step}: {loss:.4f}')", "v = not mask.any()", "v = (mask & (y > 0)).sum() > 0 or 1", "v = len(mask.nonzero())", "v = x[mask].shape[0]", "v = x[mask, 0].mean()", "v = x[:, 0][mask]", "v = x[0].tolist()", "v = tuple(out.shape)", "v = x.to('cpu')", "v = y.cpu().numpy()", "v = numpy.asarray(y.cpu())", "logs.append(loss.detach())",
    "logs.append(float(loss.detach()))", "v = numpy.zeros(3).sum()", "v = math.sqrt(step + 1.0)", "v = math.sqrt(loss.item() ** 2)", "v = math.isnan(loss)", "v = round(float(loss), 2)", "v = y == 1", "v = loss < 3", "v = 0 < loss < 3", "v = y.equal(y)", "v = torch.unique(y)", "v = x.isnan().any()", "v = x.isnan().any().item()",
    "v = y.max()", "v = F.one_hot(y, 4)", "v = out.std()", "v = out.sort()", "v = torch.cat([x, x])", "v = bool((out > 0).any())", "v = all(mask)", "v = any(p.grad is None for p in model.parameters())", "v = x.shape[0] * 2",
)  # fmt: skip
"""What a pass may do with `loss` and `t` (numbers), `i` (an integer), `out`, `x`, `z`, `y` (classes) and `mask`."""

IMPORTS = "import logging\nimport math\nimport operator\n\nimport numpy\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
SETUP = """
logger = logging.getLogger("run")
{device}
model = nn.Linear(3, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
numbers, logs, total, best = [1, 2, 3, 4], [], 0.0, 1e9
"""
NAMED = ('device = torch.device("cuda" if torch.cuda.is_available() else "cpu")',) * 6 + (
    'device = "cuda" if torch.cuda.is_available() else "cpu"',
)
ON_HOST = ('device = torch.device("cpu")', "device = 'cpu'", "")
"""Programs of which no line reads a device; the last names none."""
DRAW = ("x = torch.rand(4, 3, device=device)", "y = torch.randint(0, 2, (4,)).to(device)")
FORWARD = ("out = model(x)", "loss = F.cross_entropy(out, y)", "t = out.mean()", "i = y[0]", "mask = y > 0", "z = out.detach().clone()", "on_host = torch.rand(1)")  # fmt: skip
TRAIN = ("optimizer.zero_grad()", "loss.backward() #!", "optimizer.step()")
AFTER = (
    "print(loss.item())",
    "v = float(loss)",
    "if total > 3:\n    v = loss.item()",
    "logs.append(loss.item())",
    "if loss.item() < -1e9:\n    break",
    "v = f'{loss:.3f}'",
)
"""What an epoch reads when its steps are done."""


GUARDS = ("#guard", "step % ", "step == 99", "isEnabledFor")
"""Words of a line that is not run on every pass, as is the one below an `if` with them."""


@dataclass(frozen=True, slots=True)
class ReadCase:
    """A program and, for each line of interest, how often torch saw the host read there."""

    seed: int
    code: str
    lines: tuple[int, ...]
    guarded: frozenset[int]
    host: frozenset[int]
    counts: dict[int, int]
    error: str
    findings: tuple[Found, ...]
    crash: str

    @property
    def disagreements(self) -> list[tuple[int, str]]:
        """Lines where torch and the checker differ, and how."""
        if self.error:
            return []
        if self.crash:
            return [(0, "crash")]
        found = []
        for line in self.lines:
            told = [f for f in self.findings if f.code in READS and f.line <= line <= f.end_line]
            count = self.counts.get(line, 0)
            if line in self.guarded or line in self.host or not count:
                if told:
                    found.append((line, "told where nothing is read on every pass"))
            elif count >= PASSES and not told:
                found.append((line, "read on every pass, not told"))
            if len({f.code for f in told}) < len(told):
                found.append((line, "several findings of a rule on a line"))
            if any(f.severity is Severity.ERROR for f in told):
                found.append((line, "told as error"))
        return found


def read_program(seed: int) -> tuple[str, list[int], set[int], set[int]]:
    """The text, the lines that do something with a tensor, those under a guard, those that read the host's own."""
    rng = random.Random(seed)
    chosen = rng.sample(STATEMENTS, rng.randint(3, 6))
    statements: list[str] = []
    for text in chosen:
        mark = HOST if "on_host" in text or "one_hot(y, 4)" in text else ""
        lines = [line + " #!" + (mark if not line.startswith(" ") else "") for line in text.split("\n")]
        if rng.random() < 0.12:
            lines = ["if step % 100 == 99:", *("    " + line + "  #guard" for line in lines)]
        statements += lines
    after = any("grad" in line for line in statements) or rng.random() < 0.5
    body = [*DRAW, *FORWARD, *TRAIN, *statements] if after else [*DRAW, *FORWARD, *statements, *TRAIN]
    layout = rng.choice(("flat", "function", "method", "epochs", "forward"))
    if layout not in ("flat", "epochs"):
        body = [line.replace("    break", "    v = 2") for line in body]
    inside = ["    " + line for line in body]
    loop = f"for step in range({PASSES}):"
    if layout == "flat":
        text = [loop, *inside]
    elif layout == "function":
        text = ["def work(step):", "    global total, best", *inside, "", loop, "    work(step)"]
    elif layout == "method":
        text = ["class Trainer:", "    def training_step(self, step, total, best):", *("    " + line for line in inside), "", "trainer = Trainer()", loop, "    trainer.training_step(step, 0.0, 1e9)"]  # fmt: skip
    elif layout == "forward":
        text = ["class Net(nn.Module):", "    def __init__(self):", "        super().__init__()", "        self.body = nn.Linear(3, 2)", "", "    def forward(self, step, total, best):", *("    " + line.replace("model(", "self.body(") for line in inside), "        return loss", "", "net = Net().to(device)", "model = net.body", "optimizer = torch.optim.SGD(net.parameters(), lr=0.01)", loop, "    net(step, 0.0, 1e9)"]  # fmt: skip
    else:
        read = [line + " #!  #guard" for line in rng.choice(AFTER).split("\n")]
        text = [
            "for epoch in range(2):",
            f"    for step in range({PASSES}):",
            *("    " + line for line in inside),
            *("    " + line for line in read),
        ]
    named = rng.random() < 0.85
    device = rng.choice(NAMED if named else ON_HOST)
    code = IMPORTS + SETUP.format(device=device) + "\n".join(text)
    if not device:
        code = code.replace(", device=device", "").replace(".to(device)", "")
    lines = code.split("\n")
    interest = [n for n, line in enumerate(lines, 1) if " #!" in line]
    guarded = {n for n, line in enumerate(lines, 1) if any(word in line for word in GUARDS)}
    guarded |= {n + 1 for n in guarded if lines[n - 1].lstrip().startswith("if ") and n < len(lines)}
    host = {n for n, line in enumerate(lines, 1) if HOST in line or not named}
    clean = [line.split(" #!")[0] for line in lines]
    return "\n".join(clean) + "\n", interest, guarded, host


def examine_reads(seed: int) -> ReadCase:
    """Measures and reads the program of a seed in this process; imports torch."""
    from tests.oracle.instruments import run_measured

    code, lines, guarded, host = read_program(seed)
    measured = run_measured(code, "")
    counts = {line: sum(what.values()) for line, what in measured["reads"].items()}
    found, _, crash = read(code)
    return ReadCase(
        seed, code, tuple(lines), frozenset(guarded), frozenset(host), counts, measured["error"], found, crash
    )


def read_batch(seeds: list[int]) -> list[ReadCase]:
    """`examine_reads` for each seed."""
    return [examine_reads(seed) for seed in seeds]


def asked(cases: Sequence[ReadCase]) -> list[Share]:
    """What is asked of programs that read the host."""
    judged = [case for case in cases if not case.error]
    lines = sum(len(case.lines) for case in judged)
    differing = sum(len(case.disagreements) for case in judged)
    return [
        Share("programs with host reads that crash", sum(bool(case.crash) for case in cases), len(cases)),
        Share("programs with host reads discarded", len(cases) - len(judged), len(cases), 0.1),
        Share("lines where host reads differ", differing, lines, 0.005),
    ]


def report(cases: Sequence[ReadCase]) -> str:
    """Figures over programs that read the host, and every line where torch and the checker differ."""
    judged = [case for case in cases if not case.error]
    lines = sum(len(case.lines) for case in judged)
    reading = sum(case.counts.get(line, 0) > 0 for case in judged for line in case.lines)
    differing = [(case, line, what) for case in judged for line, what in case.disagreements]
    told = [
        f"{len(cases)} programs with host reads: {lines} lines judged, {reading} read, {len(differing)} differ, "
        f"{len(cases) - len(judged)} discarded"
    ]
    told += [
        f"seed {case.seed} line {line}: {what}: {case.code.splitlines()[line - 1].strip() if line else case.crash[-300:]}"
        for case, line, what in differing
    ]
    return "\n".join(told)
