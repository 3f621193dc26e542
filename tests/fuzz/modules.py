"""Modules, optimizers and training loops of grown programs."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from torch import nn

from tests.fuzz.blocks import branch, compound, loop, place, some, written
from tests.fuzz.calls import SHAPES, layers
from tests.fuzz.live import Frame, Model, Unusable, Writer
from tests.fuzz.statements import any_write, loss_text, made, number, simple

HAND_LAYERS = ("nn.Linear(3, 3)", "nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))", "nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True), nn.Linear(3, 3))", "nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 3))", "nn.Sequential(nn.Linear(3, 3), nn.Sigmoid(), nn.ReLU(inplace=True))", "nn.ReLU(inplace=True)", "nn.ReLU()", "nn.BatchNorm1d(3)", "nn.LayerNorm(3)", "nn.Dropout(0.5)", "nn.Tanh()", "nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.ReLU(inplace=True))", "nn.Softmax(dim=-1)", "nn.LeakyReLU(0.1, inplace=True)", "nn.Identity()", "nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Hardtanh(inplace=True))")  # fmt: skip
OPTIMIZERS = ("torch.optim.SGD({p}, lr=0.1)", "torch.optim.SGD({p}, lr=0.1, momentum=0.9)", "torch.optim.Adam({p}, lr=0.01)", "torch.optim.AdamW({p})", "torch.optim.RMSprop({p}, lr=0.01)", "torch.optim.Adagrad({p})", "torch.optim.Adam({p}, lr=0.01, foreach=True)")  # fmt: skip
CLASSES = ("Net", "Block", "Encoder", "Head", "Cell", "Model")


def module(w: Writer) -> bool:
    """A class with parameters, layers and perhaps state, and its first call."""
    x = w.pick("f", (3, 3), stale=True)
    if x is None:
        return False
    name = next((n for n in w.rng.sample(CLASSES, len(CLASSES)) if n not in w.base), None)
    if name is None:
        return False
    attributes, layer_places, places = _attributes(w)
    init = ["def __init__(self):", "    super().__init__()", *("    " + line for line in attributes)]
    header = f"class {name}(nn.Module):"
    indented = ["    " + line for line in init]
    exec(compile("\n".join([header, *indented]), "program.py", "exec"), w.base)
    instance_name = w.fresh(w.rng.choice(("model", "net", "block", "cell")))
    instance = w.base[name]()
    w.frame.space[name] = w.base[name]
    w.frame.know(instance_name, instance)
    w.emit(f"{instance_name} = {name}()")
    if w.rng.random() < 0.15:
        w.run(f"{instance_name}.eval()")

    param = w.rng.choice(("x", "inp", "h"))
    caller, kept_layers = w.frame, w.layers
    w.frame, w.layers = Frame({**w.base, "self": instance}, places=places), layer_places
    w.frame.know(param, x.tensor)
    answer: list[tuple[torch.Tensor, str]] = []
    no_grad = w.rng.random() < 0.03
    with torch.no_grad() if no_grad else nullcontext():
        body, failure = written(w, lambda: _forward(w, answer))
    w.frame, w.layers = caller, kept_layers
    result, returned = answer[0] if answer else (None, param)
    forward = (["@torch.no_grad()"] if no_grad else []) + [f"def forward(self, {param}):"]
    forward += ["    " + line for line in [*body, f"return {returned}"]]
    text = "\n".join([header, *indented, "", *("    " + line for line in forward)])
    w.head.append(text)
    exec(compile(text, "program.py", "exec"), w.base)
    instance.__class__ = w.base[name]
    w.frame.space[name] = w.base[name]
    target = w.target(result) if result is not None else w.fresh("out")
    w.emit(f"{target} = {instance_name}({x.text})")
    if failure is not None:
        raise failure
    assert result is not None
    w.frame.know(target, result)
    w.models.append(Model(instance_name, tuple(x.tensor.shape)))
    return True


def _attributes(w: Writer) -> tuple[list[str], list[tuple[str, str]], list[str]]:
    """Lines of `__init__`, layers as (expression, slot letter), and expressions that give tensors."""
    lines: list[str] = []
    layer_places: list[tuple[str, str]] = []
    places: list[str] = []
    for i in range(w.rng.randint(1, 4)):
        stem = w.rng.choice(("fc", "act", "norm", "proj", "layer", "conv"))
        if w.rng.random() < 0.6:
            text, letter = w.rng.choice(HAND_LAYERS), "M"
        else:
            choice = w.rng.choice([layer for layer in layers() if layer.letter in "MB"])
            text, letter = choice.text, choice.letter
        lines.append(f"self.{stem}{i} = {text}")
        layer_places.append((f"self.{stem}{i}", letter))
    if w.rng.random() < 0.3:
        lines.append("self.blocks = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])")
        layer_places += [("self.blocks[0]", "M"), ("self.blocks[1]", "M")]
    for attribute, text, chance in (
        ("w", "nn.Parameter(torch.rand(3, 3))", 0.5),
        ("scale", "nn.Parameter(torch.ones(3))", 0.3),
        ("state", "torch.zeros(3, 3)", 0.2),
    ):
        if w.rng.random() < chance:
            lines.append(f"self.{attribute} = {text}")
            places.append(f"self.{attribute}")
    if w.rng.random() < 0.35:
        lines.append('self.register_buffer("running", torch.zeros(3, 3))')
        places.append("self.running")
    lines.append(f"self.residual = {w.rng.random() < 0.5}")
    return lines, layer_places, places


def _forward(w: Writer, answer: list[tuple[torch.Tensor, str]]) -> None:
    for _ in range(w.rng.randint(1, 3)):
        made(w, "layer call", layer_call)
        if w.rng.random() < 0.6:
            simple(w)
        if w.rng.random() < 0.2:
            made(w, "module state", module_state)
        if w.rng.random() < 0.2:
            made(w, "branch", branch)
    result = w.pick("f", (3, 3), grad=True) or w.pick("f", grad=True) or w.pick("f", stale=True)
    if result is None:
        raise Unusable("nothing to return")
    answer.append((result.tensor, result.text))


def layer_call(w: Writer) -> bool:
    """`h = self.fc(h)`"""
    if not w.layers:
        return False
    text, letter = w.rng.choice(w.layers)
    x = w.pick("f", SHAPES[letter][1])
    if x is None:
        x = w.pick("f", (3, 3))
        if x is None or letter != "B":
            return False
        argument = f"torch.stack([{x.text}, {x.text}])"
    else:
        argument = x.text
    writes = "inplace" in repr(eval(text, w.frame.space))
    if writes and x.leaf and x.grad and not (w.style.raising and w.style.early):
        return False
    call = f"{text}({argument})"
    try:
        value = eval(call, w.frame.space)
    except Exception as error:
        w.refused(f"{w.fresh()} = {call}", error, certain=writes)
        return False
    if not isinstance(value, torch.Tensor):
        return False
    target = w.target(value)
    w.frame.know(target, value)
    w.emit(f"{target} = {call}")
    return True


def module_state(w: Writer) -> bool:
    """What a module keeps between calls."""
    if not w.frame.places:
        return False
    forms = [p for p in w.frame.places if p in ("self.state", "self.running")]
    a = w.pick("f", (3, 3))
    if not forms or a is None:
        return False
    state = w.rng.choice(forms)
    text = w.rng.choice(("{s} = {a}.detach()", "{s} = {a}", "{s}.add_({a}.detach())", "{s}.mul_(0.9).add_({a}.detach() * 0.1)", "{s} = 0.9 * {s} + 0.1 * {a}.detach()", "{s}.copy_({a}.detach())", "{s} += {a}.detach()", "{s}[0] = {a}[0].detach()", "{s} = {s} + {a}", "with torch.no_grad():\n    {s}.mul_({n}).add_({a})", "{s} = {s}.detach()")).format(s=state, a=a.text, n=number(w))  # fmt: skip
    return w.run(text)


def model_again(w: Writer) -> bool:
    """A model called once more."""
    if not w.models:
        return False
    model = w.rng.choice(w.models)
    x = w.pick("f", model.shape)
    if x is None:
        return False
    call = f"{model.name}({x.text})"
    try:
        value = eval(call, w.frame.space)
    except Exception as error:
        w.refused(call, error, certain=True)
        return False
    target = w.target(value)
    w.frame.know(target, value)
    w.emit(f"{target} = {call}")
    return True


def model_write(w: Writer) -> bool:
    """What people do to a model's parameters by hand."""
    if not w.models:
        return False
    name = w.rng.choice(w.models).name
    text = w.rng.choice(("with torch.no_grad():\n    for p in {m}.parameters():\n        p.mul_({n})", "for p in {m}.parameters():\n    p.data.mul_({n})", "nn.utils.clip_grad_norm_({m}.parameters(), 1.0)", "{m}.zero_grad()", "{m}.train()", "{m}.eval()", "with torch.no_grad():\n    for p in {m}.parameters():\n        if p.grad is not None:\n            p -= 0.1 * p.grad", "for p in {m}.parameters():\n    nn.init.constant_(p, {n})", "for p in {m}.parameters():\n    p.requires_grad_(False)", "{m}.load_state_dict({m}.state_dict())")).format(m=name, n=number(w))  # fmt: skip
    if "requires_grad_(False)" in text and w.rng.random() < 0.8:
        return False
    return w.run(text, certain=True)


def optimizer(w: Writer) -> str | None:
    """`opt = torch.optim...` over the models or the leaves in sight; its name."""
    if w.models and w.rng.random() < 0.85:
        parameters = f"{w.rng.choice(w.models).name}.parameters()"
    else:
        leaves = [p.text for p in w.places() if p.leaf and p.grad]
        if not leaves:
            return None
        parameters = f"[{', '.join(w.rng.sample(leaves, min(2, len(leaves))))}]"
    name = w.fresh(w.rng.choice(("opt", "optimizer")))
    text = w.rng.choice(OPTIMIZERS)
    if w.rng.random() < w.style.hidden:
        text = "torch.optim.Adam({p}, lr=0.1, fused=True)"
    text = text.format(p=parameters)
    try:
        w.frame.know(name, eval(text, w.frame.space))
    except ValueError:
        return None
    w.emit(f"{name} = {text}")
    return name


def training_loop(w: Writer) -> bool:
    """The usual loop: forward, loss, zero_grad, backward, step, with whatever people put between."""
    if not w.models and not made(w, "module", module):
        return False
    opt = optimizer(w)
    if opt is None:
        return False
    index = w.fresh("step")
    data = w.rng.random() < 0.6
    hold = w.rng.random() < 0.15
    if hold:
        loss = loss_text(w)
        hold = bool(loss) and w.assign(w.fresh("kept"), str(loss))
    total = w.fresh("running") if w.rng.random() < 0.3 else None
    if total:
        w.frame.know(total, 0.0)
        w.emit(f"{total} = 0.0")

    def body() -> None:
        if data:
            w.assign(w.fresh("inp"), "torch.rand(3, 3)")
        w.stale.clear()
        if not made(w, "model call", model_again):
            return
        some(w, 0, 3)()
        if w.rng.random() < 0.15:
            made(w, "compound in loop", compound)
        if w.rng.random() < 0.15:
            made(w, "model call", model_again)
        text = loss_text(w)
        if text is None:
            return
        loss = w.fresh("loss")
        if not w.assign(loss, text):
            return
        steps = [f"{opt}.zero_grad()", f"{loss}.backward()", f"{opt}.step()"]
        if w.rng.random() < 0.08:
            steps[1] = f"{loss}.backward(retain_graph=True)"
        if w.rng.random() < 0.1:
            steps[0] = f"{opt}.zero_grad(set_to_none=False)"
        if w.rng.random() < 0.1:
            steps = [steps[1], steps[2], steps[0]]
        if w.rng.random() < 0.06:
            steps = [steps[2], steps[1]]
        if w.rng.random() < 0.1:
            steps.insert(w.rng.randrange(3), f"{opt}.step()")
        for text in steps:
            w.run(text, certain=True)
            if w.rng.random() < 0.08:
                any_write(w)
        if total:
            w.run(
                w.rng.choice(
                    (f"{total} += {loss}.item()", f"{total} += {loss}.detach()", f"{total} += float({loss})")
                )
            )
        if w.rng.random() < 0.3:
            some(w, 1, 2)()

    count = w.rng.choice((2, 3))
    loop(w, f"for {index} in range({count}):", [index], range(count), body)
    w.stale.extend(p.tensor for p in w.places() if p.grad and not p.leaf)
    return True


def step_between(w: Writer) -> bool:
    """One optimizer step by hand outside a loop."""
    names = [n for n in w.frame.names if isinstance(w.frame.space.get(n), torch.optim.Optimizer)]
    if not names:
        return optimizer(w) is not None
    name = w.rng.choice(names)
    return w.run(w.rng.choice((f"{name}.step()", f"{name}.step()", f"{name}.zero_grad()")), certain=True)


def bare_update(w: Writer) -> bool:
    """Gradient descent by hand on a leaf."""
    leaves = [p for p in w.places() if p.leaf and p.tensor.grad is not None and p.text.isidentifier()]
    if not leaves:
        return False
    p = w.rng.choice(leaves).text
    lines = [f"{p} -= 0.1 * {p}.grad", *([f"{p}.grad.zero_()"] if w.rng.random() < 0.5 else [])]
    place(w, "with torch.no_grad():", lines)
    try:
        with torch.no_grad():
            exec("\n".join(lines), w.frame.space)
    except RuntimeError as error:
        # A gradient may be a tensor that torch lets nobody write: zeros without memory.
        raise Unusable from error
    return True


def recurrent(w: Writer) -> bool:
    """State carried from one pass to the next, with or without a backward inside."""
    cell, h, index = w.fresh("cell"), w.fresh("h"), w.fresh("t")
    kind = w.rng.choice(("nn.GRUCell(3, 3)", "nn.RNNCell(3, 3)", "nn.Linear(3, 3)"))
    w.frame.know(cell, eval(kind, {"nn": nn}))
    w.emit(f"{cell} = {kind}")
    w.assign(h, w.rng.choice(("torch.zeros(3, 3)", "torch.rand(3, 3)")))
    call = f"{cell}({h})" if "Linear" in kind else f"{cell}(torch.rand(3, 3), {h})"
    inside = w.rng.random() < 0.5
    cut = w.rng.random() < (0.4 if w.style.raising else 0.9) if inside else w.rng.random() < 0.2
    early_cut = w.rng.random() < 0.5
    loss = w.fresh("loss")
    if not inside:
        w.frame.know(loss, 0)
        w.emit(f"{loss} = 0")

    def body() -> None:
        if cut and early_cut:
            w.assign(h, f"{h}.detach()")
        w.assign(h, w.rng.choice(("{c}", "torch.tanh({c})", "{c} * 0.5", "{c} + {h}")).format(c=call, h=h))
        some(w, 0, 2)()
        if inside:
            w.assign(loss, f"{h}.pow(2).sum()")
            w.run(f"{loss}.backward()", certain=True)
        else:
            w.run(f"{loss} = {loss} + {h}.pow(2).sum()", certain=True)
        if cut and not early_cut:
            w.run(
                w.rng.choice(
                    (
                        f"{h} = {h}.detach()",
                        f"{h}.detach_()",
                        f"{h} = {h}.detach().clone()",
                        f"{h} = {h}.data",
                    )
                )
            )

    count = w.rng.choice((2, 3))
    loop(w, f"for {index} in range({count}):", [index], range(count), body)
    if not inside:
        w.frame.know(loss, w.frame.space[loss])
        w.run(f"{loss}.backward()", certain=True)
    return True
