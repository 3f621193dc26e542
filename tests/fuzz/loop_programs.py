"""Training and evaluation loops that keep something of every pass.

Each program has one place where a value of the pass is kept (or not). Whether the graph grows is not known
here: it is measured. Only what happens later is: `used` says that a later backward needs all of it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.fuzz import keeping

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


@dataclass(slots=True)
class _Choice:
    """What was drawn for one program."""

    rng: random.Random
    mode: str
    layout: str
    out: str
    start: str
    keep: str
    value: str
    target: str
    model: str = "model"
    optimizer: str = "optimizer"
    loader: str = "loader"
    classes: list[str] = field(default_factory=list)
    used: bool = False

    def chance(self, share: float) -> bool:
        return self.rng.random() < share


MODES = {"train": 5.0, "eval": 2.5, "no_grad": 1.0, "inference": 0.5, "set_grad": 0.4, "bare": 0.3, "frozen": 0.5, "after": 1.2, "window": 0.7, "retain": 0.7, "closure": 0.6, "thirds": 0.5}  # fmt: skip
LAYOUTS = {"flat": 3.0, "function": 2.0, "trainer": 2.0, "epochs": 2.0, "stepper": 1.5, "helper": 1.0, "lightning": 1.2, "hook": 0.5, "ema": 0.7, "global": 0.4, "nonlocal": 0.4, "micro": 0.5, "main": 0.5}  # fmt: skip
UNTRAINED = ("eval", "no_grad", "inference", "set_grad", "bare", "frozen")
CONTEXTS = {
    "no_grad": "torch.no_grad()",
    "inference": "torch.inference_mode()",
    "set_grad": "torch.set_grad_enabled(False)",
}
USED: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("0.0", "{t} = {t} + {v}", ("{t}",)),
    ("0.0", "{t} += {v}", ("{t}", "{t} / 10")),
    ("[]", "{t}.append({v})", ("sum({t})", "torch.stack({t}).mean()", "sum({t}) / len({t})", "torch.stack([each * 2 for each in {t}]).sum()")),
    ("torch.zeros(())", "{t} = {t} + {v}", ("{t}",)),
    ("{}", "{t}[step] = {v}", ("sum({t}.values())", "torch.stack(list({t}.values())).sum()")),
    ("collections.defaultdict(list)", '{t}["loss"].append({v})', ('sum({t}["loss"])', "sum(sum(each) for each in {t}.values())")),
)  # fmt: skip
"""Accumulators of a later backward: at first, how they grow, the loss made of them."""


def loop_program(seed: int) -> LoopProgram:
    """A loop of ten passes for the seed."""
    rng = random.Random(seed)
    c = _Choice(
        rng, _drawn(rng, MODES), _drawn(rng, LAYOUTS), rng.choice(("out", "pred", "logits")), "", "", "", ""
    )
    if c.layout == "ema" and c.mode != "train":
        c.layout = "flat"
    if c.mode in ("after", "window", "closure") and c.layout in (
        "helper",
        "stepper",
        "lightning",
        "hook",
        "micro",
        "global",
        "nonlocal",
    ):
        c.layout = "flat" if c.mode == "closure" else rng.choice(("flat", "function", "trainer"))
    if c.mode in ("after", "window") and c.layout == "epochs":
        c.layout = "flat"
    c.target = rng.choice(("total", "running", "history", "stats"))
    if c.layout in ("trainer", "stepper", "lightning"):
        c.target, c.model, c.optimizer, c.loader = "self.total", "self.model", "self.optimizer", "self.loader"
    if c.layout == "lightning":
        c.model = "self"
    text = _ema(c) if c.layout == "ema" else _hooked(c) if c.layout == "hook" else _plain(c)
    imports = "".join(f"import {name}\n" for name in keeping.IMPORTS if f"{name}." in text)
    text = f"{imports}import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n{text}"
    return replace(_numbered(text, c.used), label=f"{c.mode}, {c.layout}: {c.start}: {c.keep}")


def _drawn(rng: random.Random, weights: dict[str, float]) -> str:
    return rng.choices(list(weights), list(weights.values()))[0]


def _plain(c: _Choice) -> str:
    """Programs that keep a value by a statement of the pass, or by a meter."""
    rng = c.rng
    c.value = rng.choice(keeping.WITH_GRAPH if c.chance(0.62) else keeping.WITHOUT).format(
        loss="loss", out=c.out
    )
    before: list[str] = []
    kept = c.value
    c.used = c.mode in ("after", "window")
    after: tuple[str, ...] = ()
    if c.used:
        c.start, c.keep, after = rng.choice(USED)
        kept = "loss"
        keep = c.keep.format(t=c.target, v=kept)
    elif c.chance(0.18):
        keep = _meter(c, kept)
    else:
        c.start = rng.choice(list(keeping.KEEP))
        c.keep = rng.choice(keeping.KEEP[c.start])
        if c.start in keeping.TAKES_TEXT and c.chance(0.06):
            kept = rng.choice(keeping.TEXTS).format(loss="loss")
        elif c.chance(0.25):
            carrier, kept = rng.choice(keeping.CARRIERS)
            before = carrier.format(v=c.value).split("\n")
            if "same(" in carrier or "scalar(" in carrier:
                kept = carrier.split("= ")[1].format(v=c.value)
                before = []
        keep = c.keep.format(t=c.target, v=kept)
    lines = [*before, *(line + MARK for line in keep.split("\n"))]
    if not c.used:
        lines = _guarded(c, lines)
        if c.start in keeping.EMPTIED and c.chance(0.14):
            lines += [
                line + MARK if c.start == "0.0" else line
                for line in rng.choice(keeping.EMPTIED[c.start]).format(t=c.target).split("\n")
            ]
        elif c.keep in keeping.READ and kept == "loss" and c.chance(0.3):
            lines += rng.choice(keeping.READ[c.keep]).format(t=c.target).split("\n")
    elif c.mode == "window":
        lines += [
            "if step % 3 == 2:",
            *_indent(_update(c, rng.choice(after).format(t=c.target))),
            f"    {c.target} = {c.start}",
        ]
    helpers = [text for name, text in keeping.HELPERS.items() if any(name in line for line in lines)]
    final = (
        [f"objective = {rng.choice(after).format(t=c.target)}", "objective.backward()"]
        if c.mode == "after"
        else []
    )
    return _laid_out(c, lines, final, helpers)


def _update(c: _Choice, loss: str) -> list[str]:
    return [f"{c.optimizer}.zero_grad()", f"({loss}).backward()", f"{c.optimizer}.step()"]


def _meter(c: _Choice, value: str) -> str:
    """A class that takes the value; gives the call."""
    rng = c.rng
    attribute = rng.choice(list(keeping.CLASSES))
    first, ways, method = keeping.CLASSES[attribute]
    c.keep = rng.choice(ways)
    c.start = "AverageMeter()"
    body = "\n".join(_indent(_indent([line + MARK for line in c.keep.split("\n")])))
    text = "class AverageMeter:\n    def __init__(self):\n" + "\n".join(_indent(_indent(first.split("\n"))))
    text += f"\n\n    def update(self, value, n=1):\n{body}\n"
    if method:
        text += "\n" + "\n".join(_indent([line + MARK for line in method.split("\n")])) + "\n"
    c.classes.append(text)
    if c.chance(0.25):
        c.start = rng.choice(("{'loss': AverageMeter()}", "collections.defaultdict(AverageMeter)", "collections.defaultdict(lambda: AverageMeter())"))  # fmt: skip
        return f'{c.target}["loss"].update({value})'
    return f"{c.target}.update({value})"


def _guarded(c: _Choice, lines: list[str]) -> list[str]:
    roll = c.rng.random()
    guards = ((0.07, "with torch.no_grad():"), (0.11, "if step >= 0:"), (0.16, "if step == 0:"), (0.19, "if step % 2 == 0:"), (0.21, "with torch.enable_grad():"), (0.23, "if loss.item() > -1e9:"), (0.25, "if not torch.isnan(loss):"))  # fmt: skip
    for share, guard in guards:
        if roll < share and not (c.mode == "inference" and "enable" in guard):
            return [guard, *_indent(lines)]
    if roll < 0.27:
        return ["try:", *_indent(lines), "except ValueError:", "    pass"]
    return lines


def _forward(c: _Choice) -> list[str]:
    call = c.rng.choice(("{m}(x)",) * 6 + ("{m}.forward(x)", "apply({m}, x)")).format(m=c.model)
    if call.startswith("apply") and c.layout != "lightning":
        c.classes.append("def apply(model, x):\n    return model(x)\n")
    elif call.startswith("apply"):
        call = "self(x)"
    return [f"{c.out} = {call}", f"loss = {c.rng.choice(keeping.LOSSES).format(out=c.out)}"]


def _body(c: _Choice, lines: list[str]) -> list[str]:
    """The statements of one pass."""
    forward = _forward(c)
    if c.chance(0.08) and not c.used:
        # The value is cut off, or not, before anything is kept of it.
        forward.append(
            c.rng.choice(("loss = loss * 1", "loss = loss + 0.1 * loss.detach()", "shown = loss.item()"))
        )
    if c.mode in (*UNTRAINED, "after", "window"):
        steps = [*forward, *lines]
        if c.chance(0.2) and not c.used:
            steps.append("print(loss.item())")
        return steps
    if c.mode == "closure":
        closure = ["def closure():", *_indent([f"{c.optimizer}.zero_grad()", *forward])]
        inside = c.chance(0.6)
        closure += _indent([*(lines if inside else []), "loss.backward()", "return loss"])
        steps = [*closure, f"loss = {c.optimizer}.step(closure)"]
        if not inside:
            steps += [f"{c.out} = {c.model}(x)", *lines] if any(c.out in line for line in lines) else lines
        elif c.target.isidentifier() and any(line.strip().startswith(f"{c.target} ") for line in lines):
            steps.insert(
                1, f"    global {c.target}" if c.layout in ("flat", "epochs") else f"    nonlocal {c.target}"
            )
        return steps
    backward = "loss.backward(retain_graph=True)" if c.mode == "retain" else "loss.backward()"
    update = [f"{c.optimizer}.step()"]
    if c.mode == "thirds":
        backward = "(loss / 3).backward()"
        update = ["if step % 3 == 2:", f"    {c.optimizer}.step()", f"    {c.optimizer}.zero_grad()"]
    parts = [[f"{c.optimizer}.zero_grad()"] if c.mode != "thirds" else [], forward, [backward], update]
    # Behind the forward, the backward or the step.
    parts.insert(c.rng.choice((2, 3, 4)), lines)
    if c.chance(0.12):
        fresh = c.rng.choice(("parts = []\nparts.append(loss)", "logs = {}\nlogs['loss'] = loss", "last = loss", "loss_value = loss.item()"))  # fmt: skip
        parts.insert(2, fresh.split("\n"))
    return [line for part in parts for line in part]


def _setup(c: _Choice, model: str) -> list[str]:
    optimizer = "torch.optim.LBFGS(model.parameters(), max_iter=2)" if c.mode == "closure" and c.chance(0.4) else c.rng.choice(("torch.optim.SGD(model.parameters(), lr=0.01)",) * 2 + ("torch.optim.Adam(model.parameters())",))  # fmt: skip
    setup = [f"model = {model}", f"optimizer = {optimizer}"]
    if c.mode in UNTRAINED and c.chance(0.8):
        setup.append("model.eval()")
    if c.mode == "frozen":
        setup += c.rng.choice((["model.requires_grad_(False)"], ["for parameter in model.parameters():", "    parameter.requires_grad = False"], ["for parameter in model.parameters():", "    parameter.requires_grad_(False)"]))  # fmt: skip
    return setup


def _laid_out(c: _Choice, lines: list[str], final: list[str], helpers: list[str]) -> str:
    rng = c.rng
    loading, heads = rng.choice(keeping.LOADERS)
    loading = loading.format(n=PASSES)
    heads = tuple(head.format(n=PASSES).replace("loader", c.loader) for head in heads)
    body = _body(c, lines)
    model = rng.choice(keeping.MODELS)
    setup = [*_setup(c, model), *loading.split("\n")]
    top = [*helpers, *c.classes]
    if model == "Net()" and c.layout != "lightning":
        top.append(keeping.NET)
    if "criterion" in "\n".join(body):
        top.append("criterion = nn.CrossEntropyLoss()\n")
    context = CONTEXTS.get(c.mode, "")
    inside = [f"with {context}:", *_indent(body)] if context and c.chance(0.4) else body
    place = "" if not context or inside is not body else rng.choice(("with", "decorator") if c.layout in ("function", "stepper", "helper", "lightning", "trainer", "main") and c.mode != "set_grad" else ("with",))  # fmt: skip
    decorator = [f"@{context}"] if place == "decorator" else []
    bare = ["torch.no_grad()"] if c.mode == "bare" else []

    def loop(inner: list[str]) -> list[str]:
        before = [head for head in heads if not head.startswith((" ", "for", "while"))]
        head = [h for h in heads if h not in before]
        made = [*before, head[0] + "#loop", *head[1:], *_indent(inner)]
        return [f"with {context}:", *_indent(made)] if place == "with" else made

    start = [f"{c.target} = {c.start}"]
    shown = [f"print({c.target})"] if c.chance(0.25) and not final else []
    if c.layout == "flat":
        main = [*setup, *bare, *start, *loop(inside), *final, *shown]
    elif c.layout == "epochs":
        outside = c.chance(0.5)
        main = [*setup, *bare, *(start if outside else []), "for epoch in range(2):", *_indent([*([] if outside else start), *loop(inside)])]  # fmt: skip
    elif c.layout in ("function", "main"):
        returned = f"return {c.target}"
        top.append("\n".join([*decorator, "def run(model, loader, optimizer):", *_indent([*bare, *start, *loop(inside), *final, returned])]) + "\n")  # fmt: skip
        main = [*setup, "result = run(model, loader, optimizer)"]
        if c.layout == "main":
            main = ["def main():", *_indent(main), "", "if __name__ == '__main__':", "    main()"]
    elif c.layout == "trainer":
        run = [*decorator, "def run(self):", *_indent([*bare, *loop(inside), *final])]
        top.append(_class(c, run))
        main = [*setup, "trainer = Trainer(model, optimizer, loader)", "trainer.run()"]
    elif c.layout == "stepper":
        result = rng.choice(("loss", "loss.item()", "None"))
        step = [*decorator, "def train_step(self, step, x, y):", *_indent([*inside, f"return {result}"])]
        top.append(_class(c, step))
        call = rng.choice(("trainer.train_step(step, x, y)", "loss = trainer.train_step(step, x, y)"))
        heads = tuple(head.replace("self.", "") for head in heads)
        place = "with" if place == "with" else ""
        main = [*setup, *bare, "trainer = Trainer(model, optimizer, loader)", *loop([call])]
    elif c.layout == "helper":
        kept_lines = [line for line in body if MARK in line]
        kept = {id(line) for line in lines}
        rest = [line for line in body if id(line) not in kept]
        del kept_lines
        result = rng.choice((f"return loss, {c.out}", f"return loss, {c.out}", f"return loss.detach(), {c.out}", f"return loss, {c.out}.detach()"))  # fmt: skip
        top.append("\n".join([*decorator, "def train_step(model, optimizer, step, x, y):", *_indent([*([f"with {context}:"] if inside is not body else []), *(_indent(rest) if inside is not body else rest), result])]) + "\n")  # fmt: skip
        main = [
            *setup,
            *bare,
            *start,
            *loop([f"loss, {c.out} = train_step(model, optimizer, step, x, y)", *lines]),
            *shown,
        ]
    elif c.layout == "lightning":
        main = _lightning(c, top, setup, inside, lines, decorator, loop, bare)
    elif c.layout == "micro":
        inner = ["for part, label in zip(x.split(2), y.split(2)):", *_indent([line.replace("model(x)", "model(part)") for line in inside])]  # fmt: skip
        inner = [line.replace("forward(x)", "forward(part)").replace("(model, x)", "(model, part)").replace(", y)", ", label)").replace("== y", "== label").replace("y[:", "label[:") for line in inner]  # fmt: skip
        main = [*setup, *bare, *start, *loop(inner), *shown]
    elif c.layout == "global":
        top.append("\n".join([*start, "", *decorator, "def work(model, optimizer, step, x, y):", *_indent([f"global {c.target}", *inside])]) + "\n")  # fmt: skip
        main = [*setup, *bare, *loop(["work(model, optimizer, step, x, y)"]), *shown]
    else:
        work = ["def work(step, x, y):", *_indent([f"nonlocal {c.target}", *inside])]
        top.append("\n".join(["def run(model, loader, optimizer):", *_indent([*bare, *start, "", *work, "", *loop(["work(step, x, y)"]), f"return {c.target}"])]) + "\n")  # fmt: skip
        main = [*setup, "run(model, loader, optimizer)"]
    return "\n".join([*top, *main])


def _class(c: _Choice, method: list[str]) -> str:
    first = [
        "self.model = model",
        "self.optimizer = optimizer",
        "self.loader = loader",
        f"self.total = {c.start}",
    ]
    base = "(nn.Module)" if c.chance(0.15) else ""
    if base:
        first.insert(0, "super().__init__()")
    return "\n".join([f"class Trainer{base}:", "    def __init__(self, model, optimizer, loader):", *_indent(_indent(first)), "", *_indent(method), ""])  # fmt: skip


def _lightning(
    c: _Choice,
    top: list[str],
    setup: list[str],
    inside: list[str],
    lines: list[str],
    decorator: list[str],
    loop: Callable[[list[str]], list[str]],
    bare: list[str],
) -> list[str]:
    """A module with a step that a loop outside calls; what is kept is kept by the module, or by the loop."""
    trains = c.mode not in UNTRAINED
    name = "training_step" if trains else "validation_step"
    collects = c.chance(0.35)
    context = inside[0] if inside and inside[0].startswith("with torch") else ""
    if collects and context:
        inside = [line.removeprefix("    ") for line in inside[1:]]
    drop = {id(line) for line in lines} if collects else set()
    body = [line for line in inside if id(line) not in drop and ".backward(" not in line and "self.optimizer" not in line and line.strip() != "if step % 3 == 2:"]  # fmt: skip
    if collects:
        body = [line for line in body if line not in lines]
    result = c.rng.choice(("loss", "{'loss': loss}", "{'loss': loss, 'log': loss.detach()}"))
    step = [*decorator, f"def {name}(self, step, x, y):", *_indent([*body, f"return {result}"])]
    ends = c.chance(0.3)
    first = [
        "super().__init__()",
        "self.body = nn.Linear(3, 4)",
        "self.head = nn.Linear(4, 2)",
        f"self.total = {c.start}",
    ]
    cls = ["class Lit(nn.Module):", "    def __init__(self):", *_indent(_indent(first)), "", "    def forward(self, x):", "        return self.head(torch.relu(self.body(x)))", "", *_indent(step), ""]  # fmt: skip
    if ends:
        cls += ["    def on_epoch_end(self):", f"        self.total = {c.start}", ""]
    top.append("\n".join(cls))
    setup = ["model = Lit()", *setup[1:]]
    retain = "retain_graph=True" if c.mode == "retain" else ""
    read = "result" if result == "loss" else 'result["loss"]'
    work = [f"result = model.{name}(step, x, y)"]
    if trains:
        work += ["optimizer.zero_grad()", f"loss = {read}", f"loss.backward({retain})", "optimizer.step()"]
    if collects:
        kept = c.rng.choice(("result", read, f"{read}.detach()", f"{read}.item()"))
        c.start, c.keep = "[]", "{t}.append({v})"
        work.insert(c.rng.choice((1, len(work))), f"outputs.append({kept})" + MARK)
    made = [line.replace("self.loader", "loader") for line in loop(work)]
    main = [*setup, *bare, *(["outputs = []"] if collects else [])]
    if c.chance(0.4):
        made = ["for epoch in range(2):", *_indent([*made, *(["model.on_epoch_end()"] if ends else [])])]
    return [*main, *made]


def _hooked(c: _Choice) -> str:
    """A forward hook that keeps what a layer gives."""
    rng = c.rng
    c.start, c.keep = rng.choice((("[]", "{t}.append({v})"), ("{}", "{t}[name] = {v}"), ("collections.defaultdict(list)", "{t}[name].append({v})"), ("{}", "{t}[len({t})] = {v}"), ("{}", "{t}.setdefault(name, []).append({v})")))  # fmt: skip
    c.value = rng.choice(("output", "output", "output.detach()", "output.mean()", "output.detach().mean()", "output.clone()", "output.cpu()", "output.data", "output.abs().mean().item()", "inputs[0]"))  # fmt: skip
    keep = c.keep.format(t=c.target, v=c.value) + MARK
    hook = [
        "def hook_for(name):",
        "    def hook(module, inputs, output):",
        "        " + keep,
        "    return hook",
        "",
    ]
    if rng.random() < 0.3:
        hook = ["def hook(module, inputs, output):", "    " + keep.replace("name", "'body'"), ""]
    register = "model.body.register_forward_hook(hook_for('body'))" if len(hook) == 5 else "model.body.register_forward_hook(hook)"  # fmt: skip
    body = _body(c, [f"{c.target}.clear()"] if c.chance(0.15) else [])
    loop = ["for step, (x, y) in enumerate(loader):#loop", *_indent(body)]
    if c.mode in CONTEXTS:
        loop = [f"with {CONTEXTS[c.mode]}:", *_indent(loop)]
    if c.mode == "bare":
        loop = ["torch.no_grad()", *loop]
    top = [
        *c.classes,
        keeping.NET,
        *(["criterion = nn.CrossEntropyLoss()\n"] if "criterion" in "\n".join(body) else []),
    ]
    loading = keeping.LOADERS[0][0].format(n=PASSES)
    return "\n".join([*top, f"{c.target} = {c.start}", *hook, *_setup(c, "Net()"), register, loading, *loop])


def _ema(c: _Choice) -> str:
    """An average of the parameters, updated after every step."""
    rng = c.rng
    c.start, c.keep = rng.choice(keeping.SHADOWS)
    items = "model.state_dict().items()" if "state_dict" in c.start else "model.named_parameters()"
    update = [f"for name, p in {items}:", "    " + c.keep + MARK]
    if c.chance(0.3):
        update = ["with torch.no_grad():", *_indent(update)]
    decorator = ["@torch.no_grad()"] if c.chance(0.2) else []
    cls = ["class EMA:", "    def __init__(self, model):", f"        self.shadow = {c.start}", "", *_indent([*decorator, "def update(self, model):", *_indent(update)]), ""]  # fmt: skip
    body = _body(c, ["ema.update(model)" + MARK])
    top = [
        *c.classes,
        keeping.NET,
        *(["criterion = nn.CrossEntropyLoss()\n"] if "criterion" in "\n".join(body) else []),
    ]
    loading = keeping.LOADERS[0][0].format(n=PASSES)
    return "\n".join([*top, *cls, *_setup(c, "Net()"), "ema = EMA(model)", loading, "for step, (x, y) in enumerate(loader):#loop", *_indent(body)])  # fmt: skip


def _indent(lines: list[str]) -> list[str]:
    return ["    " + line if line else line for text in lines for line in text.split("\n")]


def _numbered(text: str, used: bool) -> LoopProgram:
    """Takes the marks out of the text and keeps their lines."""
    lines = text.split("\n")
    marked = frozenset(n for n, line in enumerate(lines, 1) if MARK in line)
    loop = next(n for n, line in enumerate(lines, 1) if line.endswith("#loop"))
    clean = [line.replace(MARK, "").removesuffix("#loop") for line in lines]
    return LoopProgram("\n".join(clean).rstrip("\n") + "\n", marked, loop, used)
