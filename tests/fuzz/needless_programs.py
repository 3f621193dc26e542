"""Loops that may record, retain or double a graph for nothing: evaluation, target networks, second backwards.

Nothing here says whether they do. Torch does.
"""

from __future__ import annotations

import random
import re

SILENCERS = (
    "", "", "", "", "bare", "bare inference", "with", "with inside", "decorator", "decorator inference", "plain decorator", "statement", "set_grad", "frozen", "phase", "context", "enter",
)  # fmt: skip
"""How recording is switched off, or not."""

MODELS = (
    "nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))", "nn.Linear(3, 2)", "Net()", "Net()", "nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.2), nn.Linear(4, 2))",
)  # fmt: skip
NET = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 4)
        self.head = nn.Linear(4, 2)

    def features(self, x):
        return torch.relu(self.body(x))

    def forward(self, x):
        return self.head(self.features(x))

"""
USES = (
    "hits += (out.argmax(1) == y).sum().item()", "hits += (out.argmax(1) == y).float().mean()", "total += F.cross_entropy(out, y).item()", "total += float(F.mse_loss(out, torch.zeros_like(out)))",
    "preds.append(out.argmax(1))", "preds.append(out.detach().cpu())", "preds.extend(out.argmax(1).tolist())", "loss = F.cross_entropy(out, y)\ntotal += loss.item()", "print(out.mean().item())",
    "probs = out.softmax(-1)\npreds.append(probs.max(1).indices)", "total += F.cross_entropy(out, y).detach()", "hits += int((out > 0).sum())", "preds.append(out.data.numpy())", "worst = max(worst, out.max().item())",
    "_, guess = torch.max(out, 1)\nhits += guess.eq(y).sum().item()", "total += meter(out, y)", "loss = meter(out, y)\nhits += 1", "hits += (torch.sigmoid(out) > 0.5).any().item()",
)  # fmt: skip
"""What an evaluation does with what a network gives."""

METER = "def meter(out, y):\n    return F.cross_entropy(out, y).item()\n\n"
CALLS = ("{m}(x)",) * 6 + ("predict({m}, x)", "{m}(x).squeeze()", "{m}(x).clone()")
PREDICT = "def predict(net, x):\n    return net(x)\n\n"
HEAD = "import contextlib\n\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"
LOADER = "loader = [(torch.rand(4, 3), torch.randint(0, 2, (4,))) for _ in range(4)]"
LOADERS = (
    (LOADER, "for x, y in loader:"),
    (LOADER, "for step, (x, y) in enumerate(loader):"),
    ("loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.rand(16, 3), torch.randint(0, 2, (16,))), batch_size=4)", "for x, y in loader:"),
    (LOADER, "for batch in loader:\n    x, y = batch"),
)  # fmt: skip

TARGETS = (
    "target(x2)", "target(x2).detach()", "target(x2).max(1)[0]", "target(x2).max(1).values.detach()", "online(x2).max(1)[0]", "online(x2).max(1)[0].detach()", "target(x2).softmax(-1)",
    "target(x2).gather(1, online(x2).argmax(1, keepdim=True)).squeeze(1)", "silent(target(x2))",
)  # fmt: skip
WANTED = (
    "q = online(x).gather(1, y[:, None]).squeeze(1)\nwanted = 1 + 0.9 * future\nloss = F.mse_loss(q, wanted.reshape(-1)[:4])", "loss = (online(x).max(1).values - future.reshape(-1)[:4]).pow(2).mean()", "loss = F.smooth_l1_loss(online(x).reshape(-1)[:4], future.reshape(-1)[:4])",
    "loss = F.mse_loss(online(x).sum(), future.sum())",
)  # fmt: skip
SOFT = (
    "for p, q in zip(target.parameters(), online.parameters()):\n    p.data.mul_(0.9).add_(q.data, alpha=0.1)", "target.load_state_dict(online.state_dict())", "with torch.no_grad():\n    for p, q in zip(target.parameters(), online.parameters()):\n        p.copy_(0.9 * p + 0.1 * q)", "",
    "if step % 2 == 1:\n    target.load_state_dict(online.state_dict())",
)  # fmt: skip
RETAINED = (
    "loss.backward({r})", "first.backward({r})\nsecond.backward()", "first.backward({r})\nsecond.backward({r})", "(first + second).backward({r})", "loss.backward({r})\nother(x[:, :2]).sum().backward()",
    "loss.backward({r})\ngrads = torch.autograd.grad(first, list(model.parameters()), allow_unused=True)", "grads = torch.autograd.grad(loss, list(model.parameters()), {r})\nloss.backward()", "for part in (first, second):\n    part.backward({r})",
    "loss.backward({r})\nout.mean().backward()", "torch.autograd.backward(loss, {r})", "torch.autograd.backward([first, second], {r})", "grads = torch.autograd.grad(loss, list(model.parameters()), {r})", "first.backward({r})\nother(out.detach()).sum().backward()",
    "for k, part in enumerate((first, second)):\n    part.backward(retain_graph=k == 0)", "fake.mean().backward({r})\n(other(fake).mean() + loss).backward()", "other(fake.detach()).mean().backward({r})\n(other(fake).mean() + loss).backward()", "loss.backward({r})\nscaled(loss)",
)  # fmt: skip
DOUBLED = (
    "loss.backward(create_graph=True)", "loss.backward(create_graph=True)\npenalty = sum(p.grad.pow(2).sum() for p in model.parameters() if p.grad is not None)\npenalty.backward()", "grads = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)\npenalty = sum(g.pow(2).sum() for g in grads)\n(loss + penalty).backward()",
    "torch.autograd.backward(loss, create_graph=True)", "loss.backward(create_graph=False)", "loss.backward(create_graph=True)\noptimizer.step()", "grads = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)\nnorm = sum(g.norm() for g in grads).item()\nloss.backward()",
)  # fmt: skip
RESETS = (
    "", "", "optimizer.zero_grad()", "model.zero_grad()", "for p in model.parameters():\n    p.grad = None", "optimizer.zero_grad(set_to_none=True)", "optimizer.zero_grad(set_to_none=False)", "for p in model.parameters():\n    p.grad.zero_()", "del loss", "for p in model.parameters():\n    p.grad.detach_()",
)  # fmt: skip
KINDS = {"evaluation": 5.0, "training": 1.5, "target": 3.0, "retained": 3.0, "doubled": 1.2}


def needless_program(seed: int) -> str:
    """The text of a program."""
    rng = random.Random(seed)
    kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
    body = {"evaluation": _evaluation, "training": _training, "target": _target, "retained": _retained, "doubled": _doubled}[kind](rng)  # fmt: skip
    helpers = "".join(text for name, text in (("Net()", NET), ("predict(", PREDICT), ("meter(", METER), ("silent(", "def silent(value):\n    return value.detach()\n\n"), ("scaled(", "def scaled(value):\n    return value * 2\n\n")) if name in body)  # fmt: skip
    return f"{HEAD}{helpers}{body}\n"


def _indent(lines: list[str]) -> list[str]:
    return ["    " + line if line else line for text in lines for line in text.split("\n")]


def _look(rng: random.Random, model: str) -> list[str]:
    """A forward and what is read off it."""
    use = rng.choice(USES)
    call = rng.choice(CALLS).format(m=model)
    if rng.random() < 0.1:
        return [f"hits += ({call}.argmax(-1) == y).sum().item()"]
    return [f"out = {call}", *use.split("\n")]


COUNTS = ["hits, total, worst, preds = 0, 0.0, -1e9, []"]
CONTEXTS = ("torch.no_grad()", "torch.no_grad()", "torch.inference_mode()", "torch.set_grad_enabled(False)", "torch.autograd.no_grad()", "torch.inference_mode(True)", "torch.inference_mode(mode=False)", "torch.set_grad_enabled(True)")  # fmt: skip


def _silenced(rng: random.Random, how: str, loop: list[str], head: int, model: str) -> list[str]:
    """The loop with recording switched off in a way that needs no function around it; `head` lines are its own."""
    context = rng.choice(CONTEXTS)
    if how == "with":
        return [f"with {context}:", *_indent(loop)]
    if how == "with inside":
        return [*loop[:head], f"    with {context}:", *_indent(loop[head:])]
    if how == "bare":
        return [rng.choice(("torch.no_grad()", "torch.no_grad()", "torch.autograd.no_grad()")), *loop]
    if how == "bare inference":
        return ["torch.inference_mode()", *loop]
    if how == "statement":
        return ["torch.set_grad_enabled(False)", *loop, "torch.set_grad_enabled(True)"]
    if how == "set_grad":
        return [
            f"train = {rng.choice(('True', 'False'))}",
            "with torch.set_grad_enabled(train):",
            *_indent(loop),
        ]
    if how == "frozen":
        freezing = rng.choice(("{m}.requires_grad_(False)", "for p in {m}.parameters():\n    p.requires_grad = False", "for p in {m}.parameters():\n    p.requires_grad_(False)", "next({m}.parameters()).requires_grad_(False)"))  # fmt: skip
        return [*freezing.format(m=model).split("\n"), *loop]
    if how == "context":
        chosen = rng.choice(("torch.no_grad() if quiet else contextlib.nullcontext()", "contextlib.nullcontext() if quiet else torch.no_grad()"))  # fmt: skip
        return [f"quiet = {rng.choice(('True', 'False'))}", f"with {chosen}:", *_indent(loop)]
    if how == "enter":
        return [
            "with contextlib.ExitStack() as stack:",
            f"    stack.enter_context({context})",
            *_indent(loop),
        ]
    return loop


UPDATE = ["optimizer.zero_grad()", "loss.backward()", "optimizer.step()"]


def _evaluation(rng: random.Random) -> str:
    how = rng.choice(SILENCERS)
    loading, head = rng.choice(LOADERS)
    layout = rng.choice(("flat", "function", "method", "epochs", "comprehension", "lightning"))
    model = "self.model" if layout == "method" else "self" if layout == "lightning" else "model"
    mode = [f"{model}.eval()"] if rng.random() < 0.75 and layout != "lightning" else []
    heads = head.split("\n")
    loop = [*heads, *_indent(_look(rng, model))]
    decorated = {"decorator": "@torch.no_grad()", "decorator inference": "@torch.inference_mode()", "plain decorator": "@torch.no_grad"}  # fmt: skip
    setup = [f"model = {rng.choice(MODELS)}", *loading.split("\n")]
    if how in decorated and layout in ("flat", "comprehension"):
        how = ""
    if layout == "comprehension":
        mode = mode or []
        made = rng.choice(("preds = [model(x).argmax(1) for x, _ in loader]", "hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)", "hits = sum(int(model(x).argmax(1)[0]) for x, y in loader)"))  # fmt: skip
        return "\n".join(
            [*setup, *mode, *_silenced(rng, how if how != "with inside" else "with", [made], 0, "model")]
        )
    if layout == "flat":
        return "\n".join([*setup, *COUNTS, *mode, *_silenced(rng, how, loop, len(heads), model)])
    trained = rng.random() < 0.6
    training = ["for x, y in loader:", "    loss = F.cross_entropy(model(x), y)", *_indent(UPDATE)]
    optimizer = ["optimizer = torch.optim.SGD(model.parameters(), lr=0.01)"] if trained else []
    decorator = [decorated[how]] if how in decorated else []
    quiet = _silenced(rng, how, loop, len(heads), model)
    result = rng.choice(("return hits", "return total", "return hits / 4, total", "pass", "return preds"))
    if layout == "function":
        work = [*decorator, "def evaluate(model, loader):", *_indent([*COUNTS, *mode, *quiet, result]), ""]
        main = [
            "for epoch in range(2):",
            *_indent([*(training if trained else []), "evaluate(model, loader)"]),
        ]
        return "\n".join([*work, *setup, *optimizer, *main])
    if layout == "method":
        cls = ["class Trainer:", "    def __init__(self, model, loader):", "        self.model, self.loader = model, loader", ""]  # fmt: skip
        quiet = [line.replace(" loader", " self.loader").replace("(loader", "(self.loader") for line in quiet]
        cls += _indent([*decorator, "def validate(self):", *_indent([*COUNTS, *mode, *quiet, result]), ""])
        main = ["for epoch in range(2):", *_indent([*(training if trained else []), "trainer.validate()"])]
        return "\n".join([*cls, *setup, *optimizer, "trainer = Trainer(model, loader)", *main])
    if layout == "lightning":
        step = [*decorator, "def validation_step(self, batch):", *_indent(["x, y = batch", *COUNTS, *_look(rng, "self"), result])]  # fmt: skip
        cls = ["class Lit(nn.Module):", "    def __init__(self):", "        super().__init__()", "        self.body = nn.Linear(3, 2)", "", "    def forward(self, x):", "        return self.body(x)", "", *_indent(step), ""]  # fmt: skip
        called = ["for batch in loader:", "    model.validation_step(batch)"]
        ways = how if how not in decorated else ""
        evaluating = _silenced(rng, ways, called, 1, "model")
        mode = ["model.eval()"] if rng.random() < 0.7 else []
        return "\n".join([*cls, "model = Lit()", *loading.split("\n"), *optimizer, *(training if trained else []), *mode, *evaluating])  # fmt: skip
    again = ["model.train()"] if mode else []
    inner = [*again, *(training if trained else []), *COUNTS, *mode, *quiet]
    return "\n".join([*setup, *optimizer, "for epoch in range(2):", *_indent(inner)])


def _training(rng: random.Random) -> str:
    """Training loops with a second look at the network, and loops that train in one phase only."""
    setup = [
        f"model = {rng.choice(MODELS)}",
        "optimizer = torch.optim.Adam(model.parameters())",
        LOADER,
        *COUNTS,
    ]
    if rng.random() < 0.5:
        context = rng.choice(('torch.set_grad_enabled(phase == "train")', 'torch.set_grad_enabled(phase == "train")', "contextlib.nullcontext()", 'torch.enable_grad() if phase == "train" else torch.no_grad()', 'torch.inference_mode(phase != "train")'))  # fmt: skip
        mode = ['model.train(phase == "train")'] if rng.random() < 0.4 else ['if phase == "train":', "    model.train()", "else:", "    model.eval()"]  # fmt: skip
        step = ['if phase == "train":', *_indent(UPDATE)]
        inside = rng.random() < 0.5
        forward = ["out = model(x)", "loss = F.cross_entropy(out, y)", *(step if inside else [])]
        body = [f"with {context}:", *_indent(forward), *([] if inside else step), "total += loss.item()"]
        loop = ["for x, y in loader:", *_indent(body)]
        return "\n".join([*setup, "for epoch in range(2):", '    for phase in ("train", "val"):', *_indent(_indent([*mode, *loop]))])  # fmt: skip
    look = _look(rng, "model")
    look = [re.sub(r"\bloss\b", "shown", line) for line in look]
    quiet = ["with torch.no_grad():", *_indent(look)] if rng.random() < 0.4 else look
    body = ["loss = F.cross_entropy(model(x), y)", *UPDATE]
    if rng.random() < 0.3:
        quiet = ["if step % 2 == 0:", *_indent(quiet)]
    if rng.random() < 0.25:
        quiet = ["model.eval()", *quiet, "model.train()"]
    return "\n".join([*setup, "for step, (x, y) in enumerate(loader):", *_indent([*body, *quiet] if rng.random() < 0.6 else [*quiet, *body])])  # fmt: skip


def _target(rng: random.Random) -> str:
    """A network that is trained and one that follows it."""
    made = rng.choice(("target = {m}", "target = {m}\ntarget.load_state_dict(online.state_dict())", "target = copy.deepcopy(online)", "target = copy.deepcopy(online)\ntarget.eval()", "target = copy.deepcopy(online).requires_grad_(False)", "target = {m}\nfor p in target.parameters():\n    p.requires_grad = False"))  # fmt: skip
    model = rng.choice(MODELS[:4])
    owned = rng.choice(
        ("online.parameters()",) * 4 + ("list(online.parameters()) + list(target.parameters())",)
    )
    setup = ["import copy", "", f"online = {model}", *made.format(m=model).split("\n"), f"optimizer = torch.optim.Adam({owned})"]  # fmt: skip
    future = [f"future = {rng.choice(TARGETS)}"]
    how = rng.random()
    if how < 0.35:
        future = [f"with {rng.choice(('torch.no_grad()', 'torch.inference_mode(False)', 'torch.set_grad_enabled(False)'))}:", *_indent(future)]  # fmt: skip
    elif how < 0.45:
        future = ["torch.no_grad()", *future]
    elif how < 0.55:
        # Where the target's input comes from what is trained, its graph is needed.
        future = [
            line.replace("x2)", "online.body(x2) if False else x2 * online(x2).mean())") for line in future
        ]
    body = ["x, x2, y = torch.rand(4, 3), torch.rand(4, 3), torch.randint(0, 2, (4,))"]
    wanted = rng.choice(WANTED).split("\n")
    learn = [*future, *wanted, *UPDATE]
    if rng.random() < 0.35:
        work = ["def learn(online, target, optimizer, x, x2, y):", *_indent(learn), ""]
        learn = ["learn(online, target, optimizer, x, x2, y)"]
    elif rng.random() < 0.35:
        named = [line.replace("online(", "self.online(").replace("target(", "self.target(").replace("optimizer.", "self.optimizer.").replace("online.body", "self.online.body") for line in learn]  # fmt: skip
        work = ["class Agent:", "    def __init__(self, online, target, optimizer):", "        self.online, self.target, self.optimizer = online, target, optimizer", "", "    def learn(self, x, x2, y):", *_indent(_indent(named)), ""]  # fmt: skip
        setup.append("agent = Agent(online, target, optimizer)")
        learn = ["agent.learn(x, x2, y)"]
    else:
        work = []
    soft = rng.choice(SOFT)
    return "\n".join([*work, *setup, "for step in range(4):", *_indent([*body, *learn, *(soft.split("\n") if soft else [])])])  # fmt: skip


def _retained(rng: random.Random) -> str:
    """Backward calls that keep their graph, with or without another behind them."""
    retain = rng.choice(("retain_graph=True",) * 9 + ("retain_graph=False", ""))
    lines = rng.choice(RETAINED).format(r=retain).replace(", )", ")").split("\n")
    setup = [f"model = {rng.choice(MODELS[:4])}", "other = nn.Linear(2, 1)", "optimizer = torch.optim.SGD([*model.parameters(), *other.parameters()], lr=0.01)", LOADER, "kept, total = [], 0.0"]  # fmt: skip
    first = rng.choice(
        ("out.pow(2).mean()", "out[:, 0].exp().mean()", "out[:, 0].sum()", "F.cross_entropy(out, y)")
    )
    body = ["out = model(x)", *(["fake = torch.tanh(out)"] if any("fake" in line for line in lines) else []), f"first = {first}", f"second = {rng.choice(('out.std()', 'out[:, 1].mean()', 'F.l1_loss(out, torch.zeros_like(out))'))}", "loss = first + second"]  # fmt: skip
    inner = [*body, "optimizer.zero_grad()", *lines, "optimizer.step()"]
    keeping = rng.random()
    if keeping < 0.15:
        inner.append("kept.append(loss)")
    elif keeping < 0.25:
        inner.append("total += loss")
    elif keeping < 0.4:
        inner.append("total += loss.item()")
    if rng.random() < 0.35:
        result = rng.choice(("pass", "return loss.item()", "return loss.detach()"))
        work = ["def learn(model, other, optimizer, x, y, kept, total):", *_indent([*inner, result]), ""]
        return "\n".join([*work, *setup, "for x, y in loader:", "    learn(model, other, optimizer, x, y, kept, total)"])  # fmt: skip
    return "\n".join([*setup, "for x, y in loader:", *_indent(inner)])


def _doubled(rng: random.Random) -> str:
    """Gradients with a graph of their own."""
    lines = rng.choice(DOUBLED).split("\n")
    reset, early = rng.choice(RESETS).split("\n"), rng.random() < 0.3
    setup = [f"model = {rng.choice(MODELS[:4])}", "optimizer = torch.optim.SGD(model.parameters(), lr=0.001)", LOADER * 1]  # fmt: skip
    body = ["loss = model(x).pow(2).sum().exp()"]
    reset = [line for line in reset if line]
    inner = [*(reset if early else []), *body, *lines, *([] if early else reset)]
    if early:
        inner = [line.replace("p.grad.", "p.grad is not None and p.grad.") for line in inner]
    return "\n".join([*setup, "for x, y in loader:", *_indent(inner)])
