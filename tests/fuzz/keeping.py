"""What a training or evaluation loop keeps of every pass, and how: the pieces of which `loops.py` builds programs.

Nothing here says whether a piece makes the graph grow. Torch does.
"""

from __future__ import annotations

WITH_GRAPH = ("{loss}", "{loss}", "{loss}", "{loss}.clone()", "{loss}.mean()", "{loss}.float()", "{loss}.cpu()", "{loss} * 2", "{loss}.view(1)", "{loss}.double()", "{out}.max(1).values.mean()", "{out}.softmax(-1).mean()", "({out} - 1).abs().mean()", "{loss}.squeeze()", "{loss} / len(x)", "torch.exp({loss})", "{out}.sum(1).mean()", "({loss} + {loss}) / 2", "{loss}.to(torch.float64)", "{loss}.sqrt()", "-{loss}", "{loss}.unsqueeze(0)", "torch.stack([{loss}, {loss}]).sum()", "sum([{loss}, {loss}])", "{out}", "{out}.cpu()", "{out}.mean(0)", "torch.where({out} > 0, {out}, 0 * {out}).sum()", "{out}[:, 0].mean()", "torch.cat([{out}, {out}]).mean()", "{out}.topk(1).values.sum()", "{out}.gather(1, y[:, None]).mean()", "{loss}.type(torch.float64)", "{loss}.reshape(1)", "{out}.clamp(0, 1).mean()", "max({loss}, {loss} * 2)", "{out}.std()", "{out}.t().mean()")  # fmt: skip
WITHOUT = ("{loss}.detach()", "{loss}.item()", "float({loss})", "{loss}.data", "{loss}.detach().clone()", "{loss}.detach().cpu()", "{out}.argmax(1).float().mean()", "({out}.argmax(1) == y).float().mean()", "{out}.max(1).indices.sum()", "{loss}.tolist()", "{loss}.clone().detach()", "(({out} > 0).sum() / 2)", "{loss}.detach().numpy().mean()", "torch.tensor({loss}.item())", "({out}.detach() - 1).abs().mean()", "{out}.data.mean()", "len({out})", "{loss}.detach().mean() * 2", "round({loss}.item(), 3)", "{loss}.cpu().item()", "{out}.detach().cpu().numpy().sum()", "{out}.shape[0]", "({out}.topk(1).indices == y[:, None]).sum().item()", "torch.tensor([{loss}]).sum()", "{loss}.new_tensor(1.0)", "torch.zeros_like({loss})", "({out}.sign() == 1).float().mean()", "{loss}.float().detach().cpu()", "{out}.argsort(1)[0, 0]", "{out}.isnan().any().float()", "{loss}.mul(2).detach()", "math.log1p({loss}.item() ** 2)", "torch.ones_like({out}).mean()")  # fmt: skip
TEXTS = ('f"{{{loss}:.3f}}"', 'str({loss}.item())', '"%.3f" % {loss}')  # fmt: skip
"""Only where what is kept may be text."""

_SUMS = ("{t} += {v}", "{t} = {t} + {v}", "{t} = 0.9 * {t} + 0.1 * {v}", "{t} += {v} * len(x)", "{t} = {v} + {t}", "{t} -= {v}", "{t} = {v}", "{t} = {t} + ({v}) / 10", "{t} = sum([{t}, {v}])", "{t} = {t} + ({v} - {t}) / (step + 1)", "{t} = {v} * 0.1 + {t} * 0.9")  # fmt: skip
_LISTS = ("{t}.append({v})", "{t} += [{v}]", "{t}.extend([{v}])", "{t}.insert(0, {v})", "{t}.append((step, {v}))", '{t}.append({{"loss": {v}}})', "{t} = {t} + [{v}]", "{t}[:] = [{v}]", "{t} = [{v}]", "{t} = [*{t}, {v}]", "{t} = {t}[-2:] + [{v}]", "{t}.append([{v}, step])", "{t} = [{v}] + {t}", "{t}.extend(each for each in [{v}])", "{t}.append(({v},))", "{t}.append(lambda kept={v}: kept)")  # fmt: skip

KEEP: dict[str, tuple[str, ...]] = {
    "0.0": _SUMS,
    "0": _SUMS[:4],
    "torch.zeros(())": (*_SUMS[:3], "{t} = {t}.detach() + {v}", "{t} = torch.add({t}, {v})", "{t} = torch.maximum({t}, {t} + {v})", "{t} = ({t} + {v}).detach()", "{t} = torch.lerp({t}, torch.as_tensor({v}).float(), 0.1)", "{t} = {t}.add({v})", "{t}.copy_(torch.as_tensor({v}).mean())", "{t} = torch.stack([{t}, torch.as_tensor({v}).float().mean()]).sum()", "{t} = {t} + {v}\n{t} = {t}.detach()"),
    "[]": _LISTS,
    "{}": ("{t}[step] = {v}", '{t}.setdefault("loss", []).append({v})', '{t}["loss"] = {v}', "{t}.update(loss={v})", '{t}[f"loss{{step}}"] = {v}', "{t}[step % 2] = {v}", "{t}.setdefault(step, {v})", '{t}.setdefault("first", {v})', '{t}["sum"] = {t}.get("sum", 0.0) + {v}', "{t} |= {{step: {v}}}", "{t} = {{**{t}, step: {v}}}", "{t}.update({{step: {v}}})", '{t}.update({{"loss": {v}}})', '{t}[("loss", step)] = {v}'),
    "collections.defaultdict(list)": ('{t}["loss"].append({v})', '{t}["loss"] = [{v}]', '{t}["loss"] += [{v}]', "{t}[step].append({v})", "for name, kept in {{'loss': {v}}}.items():\n    {t}[name].append(kept)"),
    "collections.defaultdict(float)": ('{t}["loss"] += {v}', '{t}["loss"] = {v}', "{t}[step % 2] += {v}"),
    "collections.defaultdict(collections.Counter)": ('{t}["loss"]["sum"] += {v}', '{t}["loss"][step] = {v}', '{t}["loss"]["sum"] = {v}'),
    "collections.defaultdict(collections.deque)": ('{t}["loss"].append({v})',),
    "collections.defaultdict(lambda: 0.0)": ('{t}["loss"] += {v}', "{t}[step] = {v}"),
    "collections.OrderedDict()": ("{t}[step] = {v}", '{t}["loss"] = {v}'),
    "collections.deque(maxlen=3)": ("{t}.append({v})", "{t}.appendleft({v})"),
    "collections.deque()": ("{t}.append({v})", "{t}.appendleft({v})"),
    "()": ("{t} = ({v},)", "{t} = {t} + ({v},)", "{t} += ({v},)", "{t} = (*{t}, {v})"),
    "None": ("if {t} is None or {v} < {t}:\n    {t} = {v}", "{t} = {v}", "{t} = {v} if {t} is None else {t}", "{t} = {v} if {t} is None else {t} + {v}", "if {t} is None:\n    {t} = {v}\nelse:\n    {t} = {t} + {v}"),
    "torch.zeros(1)": ("{t} = torch.cat([{t}, torch.as_tensor({v}).reshape(-1)])", "{t} = torch.as_tensor({v}).reshape(-1)", "{t} = torch.hstack([{t}, torch.as_tensor({v}).reshape(-1)])"),
    "[0.0] * 20": ("{t}[step] = {v}", "{t}[0] += {v}", "{t}[0] = {v}", "{t}[step % 2] = {v}", "{t}[-1] = {t}[-1] + {v}"),
    "{'loss': 0.0}": ('{t}["loss"] += {v}', '{t}["loss"] = {v}', '{t}["loss"] = {t}["loss"] * 0.9 + {v}', '{t}["loss"] = {v} + {t}["loss"]'),
    "{'loss': [], 'step': []}": ('{t}["loss"].append({v})', '{t}["loss"].append({v})\n{t}["step"].append(step)', '{t}["loss"] = [{v}]', "for name in ('loss',):\n    {t}[name].append({v})"),
    "set()": ("{t}.add({v})",),
    "numpy.empty(20, dtype=object)": ("{t}[step] = {v}", "{t}[0] = {v}"),
    "types.SimpleNamespace(loss=0.0)": ("{t}.loss += {v}", "{t}.loss = {t}.loss + {v}", "{t}.loss = {v}", "setattr({t}, f'loss{{step}}', {v})"),
    "types.SimpleNamespace(losses=[])": ("{t}.losses.append({v})", "{t}.losses = [{v}]", "{t}.losses += [{v}]"),
    "[[], []]": ("{t}[0].append({v})", "{t}[step % 2].append({v})", "{t}[0] = [{v}]"),
    "torch.zeros(20)": ("{t}[step] = torch.as_tensor({v}).mean()", "{t}[0] += torch.as_tensor({v}).mean()"),
}  # fmt: skip
"""How a value is kept, by what the accumulator is at first."""

TAKES_TEXT = frozenset({"[]", "{}", "collections.deque()", "collections.defaultdict(list)", "{'loss': [], 'step': []}", "()", "set()"})  # fmt: skip

EMPTIED: dict[str, tuple[str, ...]] = {
    "[]": ("if len({t}) > 3:\n    {t}.pop(0)", "{t}.clear()", "del {t}[:]", "if step % 3 == 2:\n    {t}.clear()", "{t} = []", "{t} = {t}[-3:]", "if len({t}) >= 4:\n    {t} = []", "if len({t}) > 2:\n    del {t}[0]", "{t}.pop()", "while len({t}) > 2:\n    {t}.pop(0)"),
    "{}": ("{t}.clear()", "{t} = {{}}", "if len({t}) > 3:\n    {t}.clear()"),
    "collections.deque()": ("if len({t}) > 3:\n    {t}.popleft()", "{t}.clear()", "while len({t}) > 2:\n    {t}.popleft()"),
    "collections.defaultdict(list)": ("{t}.clear()", '{t}["loss"].clear()', '{t}["loss"] = []'),
    "0.0": ("if step % 3 == 2:\n    {t} = 0.0", "{t} = 0.0", "{t} = float({t})", "if step % 2 == 1:\n    {t} = torch.as_tensor({t}).detach()"),
    "{'loss': [], 'step': []}": ('{t}["loss"].clear()', '{t} = {{"loss": [], "step": []}}', "for kept in {t}.values():\n    kept.clear()"),
    "set()": ("{t}.clear()",),
}  # fmt: skip
"""What takes it out again, at the end of a pass."""

READ = {
    "{t}.append({v})": ("average = sum({t}) / len({t})", "last = {t}[-1]", "count = len({t})", "shown = [float(each) for each in {t}]", "average = torch.stack([torch.as_tensor(each) for each in {t}]).mean()"),
    "{t} += [{v}]": ("average = sum({t}) / len({t})", "average = numpy.mean([float(each) for each in {t}])"),
    "{t} += {v}": ("average = {t} / (step + 1)", "print(float({t}))", "average = torch.as_tensor({t}).item()", "average = f'{{float({t}):.3f}}'"),
    "{t}[step] = {v}": ("names = list({t})", "count = len({t})"),
}  # fmt: skip
"""What looks at it in the same pass."""

CARRIERS = (
    ("value = {v}", "value"),
    ('logs = {{"loss": {v}, "step": step}}', 'logs["loss"]'),
    ("value, count = {v}, len(x)", "value"),
    ("parts = [{v}]", "parts[0]"),
    ("parts = [{v}, {v}]", "sum(parts)"),
    ("logs = {{'loss': {v}}}\nlogs = {{name: torch.as_tensor(each).detach() for name, each in logs.items()}}", 'logs["loss"]'),
    ("logs = {{'loss': {v}}}\nlogs = {{name: each for name, each in logs.items()}}", 'logs["loss"]'),
    ("logs = dict(loss={v})", 'logs.get("loss")'),
    ("value = {v}\nvalue = torch.as_tensor(value)\nvalue = value.detach()", "value"),
    ("result = types.SimpleNamespace(loss={v})", "result.loss"),
    ("result = Result({v}, step)", "result.loss"),
    ("value = same({v})", "value"),
    ("value = scalar({v})", "value"),
    ("pair = ({v}, step)\nvalue, _ = pair", "value"),
    ("value = torch.as_tensor({v})\nwith torch.no_grad():\n    value = value * 2", "value"),
    ("value = functools.reduce(torch.add, [torch.as_tensor({v}), torch.zeros(())])", "value"),
)  # fmt: skip
"""Statements that pass a value on, and where it is then."""
HELPERS = {
    "Result(": 'Result = collections.namedtuple("Result", "loss step")\n',
    "same(": "def same(value):\n    return value\n",
    "scalar(": "def scalar(value):\n    return value.item() if torch.is_tensor(value) else float(value)\n",
}
IMPORTS = ("collections", "types", "numpy", "math", "functools", "dataclasses")

CLASSES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "sum": ("self.sum = 0.0\nself.count = 0", ("self.sum += value * n\nself.count += n", "self.sum = self.sum + value", "self.sum = value", "self.sum = 0.9 * self.sum + 0.1 * value", "self.sum += float(value) * n", "self.sum = (self.sum + value)\nif torch.is_tensor(self.sum):\n    self.sum = self.sum.detach()", "if torch.is_tensor(value):\n    value = value.detach()\nself.sum += value", "if torch.is_tensor(value):\n    value = value.item()\nself.sum += value", "self.sum = self.decayed(value)"), "def decayed(self, value):\n    return 0.9 * self.sum + 0.1 * value"),
    "values": ("self.values = []", ("self.values.append(value)", "self.values = [value]", "self.values.append(float(value))", "self.values += [value]", "self.values.append(value)\nself.values = self.values[-3:]", "self.keep(value)", "self.values.append((value, n))"), "def keep(self, value):\n    self.values.append(value)"),
    "named": ("self.named = collections.defaultdict(list)", ('self.named["loss"].append(value)', 'self.named["loss"] = [value]', "for name, each in {'loss': value}.items():\n    self.named[name].append(each)"), ""),
    "window": ("self.window = collections.deque(maxlen=3)\nself.total = 0.0", ("self.window.append(value)", "self.window.append(value)\nself.total += value", "self.total += value"), ""),
    "average": ("self.average = None", ("self.average = value if self.average is None else 0.9 * self.average + 0.1 * value", "if self.average is None:\n    self.average = value\nelse:\n    self.average = 0.9 * self.average + 0.1 * value", "self.average = value"), ""),
    "shown": ("self.shown = {}", ('self.shown["loss"] = value', 'self.shown["loss"] = self.shown.get("loss", 0.0) + value', "self.shown.setdefault('loss', []).append(value)", "self.shown.update(loss=value)"), ""),
}  # fmt: skip
"""Meters: what they hold at first, how they take a value, another method."""

SHADOWS = (
    ("{n: p.clone() for n, p in model.named_parameters()}", "self.shadow[name] = 0.9 * self.shadow[name] + 0.1 * p"),
    ("{n: p.clone().detach() for n, p in model.named_parameters()}", "self.shadow[name] = 0.9 * self.shadow[name] + 0.1 * p"),
    ("{n: p.detach().clone() for n, p in model.named_parameters()}", "self.shadow[name] = 0.9 * self.shadow[name] + 0.1 * p.detach()"),
    ("{n: p.data.clone() for n, p in model.named_parameters()}", "self.shadow[name] = 0.9 * self.shadow[name] + 0.1 * p.data"),
    ("{n: p.data.clone() for n, p in model.named_parameters()}", "self.shadow[name].mul_(0.9).add_(p.data, alpha=0.1)"),
    ("{n: p.data.clone() for n, p in model.named_parameters()}", "self.shadow[name].mul_(0.9).add_(p, alpha=0.1)"),
    ("{n: p.clone() for n, p in model.state_dict().items()}", "self.shadow[name] = torch.lerp(self.shadow[name], p, 0.1)"),
    ("{n: p.data.clone() for n, p in model.named_parameters()}", "self.shadow[name] += 0.1 * (p - self.shadow[name])"),
    ("{n: p.data.clone() for n, p in model.named_parameters()}", "self.shadow[name] = p.clone()"),
    ("{n: p.data.clone() for n, p in model.named_parameters()}", "self.shadow[name].copy_(p.data)"),
)  # fmt: skip
"""Averages of parameters: first value and update."""

MODELS = (
    "nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))",
    "nn.Linear(3, 2)",
    "nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(inplace=True), nn.Linear(4, 2))",
    "Net()",
    "Net()",
    "nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.GELU(), nn.Dropout(0.1), nn.Linear(4, 2))",
)
NET = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))
"""
LOSSES = ("F.cross_entropy({out}, y)", "F.mse_loss({out}, torch.zeros_like({out}))", "{out}.pow(2).mean()", "({out} * {out}).sum()", "criterion({out}, y)", "F.nll_loss(F.log_softmax({out}, -1), y)", "F.l1_loss({out}, torch.ones_like({out}))")  # fmt: skip

LOADERS = (
    ("loader = [(torch.rand(4, 3), torch.randint(0, 2, (4,))) for _ in range({n})]", ("for step, (x, y) in enumerate(loader):",)),
    ("loader = [(torch.rand(4, 3), torch.randint(0, 2, (4,))) for _ in range({n})]", ("for step, (x, y) in enumerate(loader):",)),
    ("dataset = torch.utils.data.TensorDataset(torch.rand({n} * 4, 3), torch.randint(0, 2, ({n} * 4,)))\nloader = torch.utils.data.DataLoader(dataset, batch_size=4)", ("for step, (x, y) in enumerate(loader):",)),
    ("dataset = torch.utils.data.TensorDataset(torch.rand({n} * 4, 3), torch.randint(0, 2, ({n} * 4,)))\nloader = torch.utils.data.DataLoader(dataset, batch_size=4, shuffle=True)", ("for step, batch in enumerate(loader):", "    x, y = batch")),
    ("loader = [(torch.rand(4, 3), torch.randint(0, 2, (4,))) for _ in range({n})]", ("for step in range(len(loader)):", "    x, y = loader[step]")),
    ("loader = None", ("for step in range({n}):", "    x, y = torch.rand(4, 3), torch.randint(0, 2, (4,))")),
    ("loader = [(torch.rand(4, 3), torch.randint(0, 2, (4,))) for _ in range({n})]", ("batches = iter(loader)", "for step in range({n}):", "    x, y = next(batches)")),
    ("loader = None", ("step = -1", "while step < {n} - 1:", "    step += 1", "    x, y = torch.rand(4, 3), torch.randint(0, 2, (4,))")),
    ("def batches():\n    for _ in range({n}):\n        yield torch.rand(4, 3), torch.randint(0, 2, (4,))\n\nloader = batches", ("for step, (x, y) in enumerate(loader(), 1):",)),
    ("loader = [(torch.rand(4, 3), torch.randint(0, 2, (4,))) for _ in range({n})]", ("for step, (x, y) in zip(range({n}), loader):",)),
)  # fmt: skip
"""What gives the batches, and the head of the loop."""
