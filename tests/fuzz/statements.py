"""Simple statements of grown programs: leaves, ops, views, in-place writes, containers, backward."""

from __future__ import annotations

import re
from collections.abc import Callable

import torch

from tests.fuzz import calls
from tests.fuzz.calls import SHAPES, Call, sane, tensors_of
from tests.fuzz.live import Place, Writer

COMMON = ("torch.exp", "torch.sigmoid", "torch.tanh", "torch.relu", "torch.sin", "torch.sqrt", "torch.softmax", "torch.matmul", "torch.mul", "torch.add", "torch.div", "torch.pow", "Tensor.exp", "Tensor.sigmoid", "Tensor.clamp", "Tensor.mean", "Tensor.sum", "Tensor.pow", "Tensor.abs", "Tensor.log_softmax", "torch.nn.functional.relu", "torch.nn.functional.gelu", "torch.nn.functional.softmax", "torch.nn.functional.linear", "torch.nn.functional.layer_norm", "torch.nn.functional.mse_loss", "torch.nn.functional.dropout", "torch.nn.functional.leaky_relu", "torch.cat", "torch.stack", "torch.where", "torch.einsum", "Tensor.masked_fill", "torch.bmm", "torch.norm", "Tensor.norm", "torch.nn.functional.cross_entropy", "torch.nn.functional.silu", "torch.nn.functional.normalize", "torch.nn.functional.softplus", "Tensor.gather", "Tensor.max", "torch.cumsum", "torch.log", "torch.nn.functional.elu")  # fmt: skip
"""Taken for half of the calls; the other half is drawn from all of the table."""

COMMON_WRITES = ("Tensor.add_", "Tensor.mul_", "Tensor.sub_", "Tensor.div_", "Tensor.zero_", "Tensor.clamp_", "Tensor.relu_", "Tensor.sigmoid_", "Tensor.tanh_", "Tensor.exp_", "Tensor.fill_", "Tensor.copy_", "Tensor.masked_fill_", "Tensor.index_add_", "Tensor.scatter_", "Tensor.sqrt_", "Tensor.addcmul_", "Tensor.normal_", "Tensor.uniform_", "Tensor.neg_", "torch.relu_", "torch.nn.functional.relu", "torch.nn.functional.leaky_relu", "torch.nn.functional.dropout", "torch.nn.functional.elu", "torch.nn.functional.silu")  # fmt: skip

FRESH = {
    "M": ("torch.rand(3, 3)", "torch.ones(3, 3)", "torch.eye(3)", "torch.full((3, 3), 0.5)"),
    "V": ("torch.rand(3)", "torch.tensor([0.2, 0.4, 0.6])", "torch.ones(3)"),
    "S": ("torch.tensor(0.5)", "torch.rand(())"),
    "B": ("torch.rand(2, 3, 3)", "torch.ones(2, 3, 3)"),
    "X": ("torch.rand(2, 3, 4)",),
    "Y": ("torch.rand(3, 3, 2)",),
    "C": ("torch.rand(1, 2, 4, 4)",),
    "W": ("torch.rand(2, 2, 3, 3)",),
    "I": ("torch.tensor([0, 2, 1])", "torch.arange(3)", "torch.randint(0, 3, (3,))"),
    "J": ("torch.randint(0, 3, (3, 3))", "torch.tensor([[0, 1, 2], [2, 1, 0], [1, 1, 1]])"),
    "K": ("torch.rand(3, 3) > 0.5", "torch.eye(3).bool()", "torch.ones(3, 3).tril().bool()"),
}
NUMBERS = ("2", "0.5", "3", "1.5", "0.1")


def fill(w: Writer, letter: str) -> str:
    """An expression for a slot: a tensor in sight, else a new constant."""
    kind, shape = SHAPES[letter]
    grad = True if kind == "f" and w.rng.random() < 0.6 else None
    place = w.pick(kind, shape, grad=grad) or w.pick(kind, shape)
    if place is None or w.rng.random() < 0.1:
        place = w.pick(kind, rank=len(shape)) or place
    if place is not None and w.rng.random() < 0.95:
        return place.text
    if letter == "B" and w.rng.random() < 0.5 and (flat := w.pick("f", (3, 3))):
        return w.rng.choice((f"torch.stack([{flat.text}, {flat.text}])", f"{flat.text}.expand(2, 3, 3)"))
    text = w.rng.choice(FRESH[letter])
    return f"({text})" if " > " in text else text


def call(w: Writer, choice: Call) -> str:
    """Source of the call with its slots filled."""
    return choice.text.format(*(fill(w, letter) for letter in choice.slots))


def draw(w: Writer, *, inplace: bool) -> Call:
    """A call of the wanted kind."""
    known = calls.patterns(inplace=inplace)
    common = COMMON_WRITES if inplace else COMMON
    pool = [n for n in common if n in known] if w.rng.random() < 0.5 else list(known)
    name = w.rng.choice(pool)
    return calls.call(name, w.rng.choice(known[name]))


def expression(w: Writer, depth: int = 0) -> str | None:
    """An expression that gives a tensor or several, perhaps nested."""
    roll = w.rng.random()
    if roll < 0.3:
        a = w.pick("f", grad=True) or w.pick("f")
        if a is None:
            return None
        b = w.pick("f", tuple(a.tensor.shape)) or a
        return w.rng.choice(OPERATORS).format(a=a.text, b=b.text, n=number(w))
    for _ in range(6):
        choice = draw(w, inplace=False)
        if any(w.pick(*SHAPES[letter], grad=True) for letter in choice.slots) or w.rng.random() < 0.05:
            break
    text = call(w, choice)
    w.ops[choice.name] += 1
    if depth < 2 and w.rng.random() < 0.2:
        value = w.value(text)
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            return w.rng.choice(OUTER).format(a=text, n=number(w))
    return text


OPERATORS = ("{a} + {b}", "{a} * {b}", "{a} - {b}", "{a} / ({b} + 1)", "{a} * {n}", "{n} * {a}", "{a} + {n}", "{a} ** 2", "-{a}", "{a} / {n}", "{n} / ({a} + 2)", "1 - {a}", "{a} * {a}", "abs({a})", "{a} @ {b}", "{a} * {b} + {a}", "({a} - {b}) ** 2")  # fmt: skip
OUTER = ("({a}) * {n}", "({a}).exp()", "({a}).sum()", "torch.sigmoid({a})", "({a}).tanh() + {n}", "({a}) ** 2", "({a}).relu()", "({a}).mean()")  # fmt: skip


def number(w: Writer) -> str:
    names = [n for n in w.frame.names if type(w.frame.space.get(n)) in (int, float)]
    if names and w.rng.random() < 0.4:
        return w.rng.choice(names)
    return w.rng.choice(NUMBERS)


# Values


def leaf(w: Writer) -> bool:
    letter = w.rng.choice("MMMMMVVBXCS" if w.rng.random() < 0.7 else "MMV")
    shape = SHAPES[letter][1]
    size = ", ".join(map(str, shape)) or "()"
    shift = w.rng.choice(("", "", "", " + 0.5"))
    forms = [
        f"torch.rand({size}, requires_grad=True)",
        f"torch.rand({size}).requires_grad_()",
        f"nn.Parameter(torch.rand({size}){shift})",
    ]
    if len(shape) == 2:
        forms += [
            "torch.ones(3, 3, requires_grad=True)",
            "torch.eye(3).requires_grad_(True)",
            "nn.Parameter(torch.full((3, 3), 0.3))",
        ]
    return w.assign(w.fresh(), w.rng.choice(forms))


def constant(w: Writer) -> bool:
    letter = w.rng.choice("MMVIKKJIBS")
    kind = SHAPES[letter][0]
    stem = {"b": "mask", "i": "idx", "f": None}[kind]
    return w.assign(w.fresh(stem), w.rng.choice(FRESH[letter]))


def plain(w: Writer) -> bool:
    stem, text = w.rng.choice((("scale", "0.5"), ("lr", "0.1"), ("steps", "3"), ("n", "2"), ("flag", "True"), ("verbose", "False"), ("mode", '"train"'), ("alpha", "0.9"), ("use_skip", "True"), ("dim", "3")))  # fmt: skip
    name = w.fresh(stem)
    w.frame.know(name, eval(text))
    w.emit(f"{name} = {text}")
    return True


# Ops and views


def op(w: Writer) -> bool:
    text = expression(w)
    if text is None:
        return False
    value = w.value(text)
    found = tensors_of(value)
    if not found:
        return False
    if isinstance(value, torch.Tensor):
        return w.assign(w.target(value), text)
    if w.rng.random() < 0.5 or len(found) != len(value) or type(value) not in (tuple, list):
        index = w.rng.randrange(len(found)) if len(found) == len(value) else 0
        return w.assign(w.fresh(), f"{text}[{index}]")
    return unpack(w, text, value)


def unpack(w: Writer, text: str, value: list[torch.Tensor] | tuple[torch.Tensor, ...]) -> bool:
    names = [w.fresh() for _ in value]
    if len(set(names)) < len(names):
        names = [f"{names[0]}_{i}" for i in range(len(names))]
    return bind_all(w, names, text)


def bind_all(w: Writer, names: list[str], text: str) -> bool:
    """`a, b = text`"""
    value = w.value(text)
    if value is None:
        return False
    items = list(value)
    if len(items) != len(names):
        return False
    for name, item in zip(names, items):
        w.frame.know(name, item)
    w.emit(f"{', '.join(names)}{',' if len(names) == 1 else ''} = {text}")
    return True


VIEWS = ("{a}[0]", "{a}[1]", "{a}[-1]", "{a}[:2]", "{a}[..., 0]", "{a}[:, 0]", "{a}[:, 1:]", "{a}[None]", "{a}.view(-1)", "{a}.reshape(-1)", "{a}.t()", "{a}.T", "{a}.mT", "{a}.transpose(0, 1)", "{a}.unsqueeze(0)", "{a}.squeeze()", "{a}.flatten()", "{a}.view({shape})", "{a}.narrow(0, 0, 2)", "{a}.select(0, 1)", "{a}.diagonal()", "{a}.expand(2, {shape})", "{a}.contiguous()", "{a}.float()", "{a}.to(torch.float32)", "{a}.cpu()", "{a}.clone()", "{a}.detach()", "{a}.detach()", "{a}.view_as({a})", "{a}.T.contiguous()", "{a}.swapaxes(0, 1)", "torch.atleast_2d({a})", "{a}[::2]", "{a}.data", "{a}.permute(1, 0)", "{a}.t().reshape(-1)", "torch.as_tensor({a})", "{a}.type_as({a})", "{a}.double()", "{a}.requires_grad_()", "torch.squeeze({a})", "{a}.unfold(0, 2, 1)", "{a}.real", "{a}[[0, 1]]", "{a}[torch.tensor([0, 1])]", "{a}[{a} > 0.5]", "{a}.expand_as({a})", "torch.broadcast_to({a}, (2, {shape}))", "torch.select({a}, 0, 0)")  # fmt: skip
MANY_VIEWS = ("{a}.unbind(0)", "{a}.chunk(3)", "{a}.split(1)", "torch.unbind({a})", "{a}", "torch.chunk({a}, 3, dim=-1)", "{a}.tensor_split(3)", "torch.split({a}, [1, 2])", "{a}.unbind(-1)", "torch.split({a}, 2)")  # fmt: skip


def view(w: Writer) -> bool:
    a = w.pick("f", stale=True) if w.rng.random() < 0.5 else w.pick("f", grad=True)
    if a is None:
        return False
    form = w.rng.choice(VIEWS)
    if form == "{a}.data" and w.rng.random() > w.style.hidden:
        return False
    if "requires_grad_" in form and (not a.leaf or a.tensor.is_inference()):
        return False
    shape = ", ".join(map(str, a.tensor.shape))
    text = form.format(a=a.text, shape=shape)
    if ", )" in text or ("()" in text.replace(")()", "") and not shape and "view(" in text):
        return False
    value = w.value(text)
    return isinstance(value, torch.Tensor) and w.assign(w.target(value), text)


def many_views(w: Writer) -> bool:
    a = w.pick("f", rank=2)
    if a is None or a.broken:
        return False
    text = w.rng.choice(MANY_VIEWS).format(a=a.text)
    value = w.value(text)
    if value is None or len(value) > 3:
        return False
    if w.rng.random() < 0.25:
        name = w.fresh(w.rng.choice(("parts", "rows", "chunks")))
        if isinstance(value, torch.Tensor):
            text = f"list({text})"
        return w.assign(name, text)
    return unpack(w, text, list(value))


# Containers


def container(w: Writer) -> bool:
    a, b = w.pick("f"), w.pick("f", stale=True)
    if a is None or b is None:
        return False
    stem, text = w.rng.choice((("pair", "[{a}, {b}]"), ("items", "[{a}, {b}]"), ("pack", "({a}, {b})"), ("cache", '{{"h": {a}, "k": {b}}}'), ("ctx", "SimpleNamespace(h={a}, k={b})"), ("batch", "dict(x={a}, y={b})"), ("rows", "[t for t in {a}]"), ("powers", "[{a} * i for i in range(1, 3)]"), ("nested", "[({a}, {b})]"), ("history", "[]"), ("acts", "[{a}.exp(), {b} * 2]")))  # fmt: skip
    if "for t in" in text and not 0 < a.tensor.dim() < 3:
        return False
    text = text.format(a=a.text, b=b.text)
    value = w.value(text)
    if value is None and text != "[]":
        return False
    name = w.fresh(stem)
    return w.assign(name, text)


def container_use(w: Writer) -> bool:
    names = [n for n in w.frame.names if isinstance(w.frame.space.get(n), (list, dict)) or type(w.frame.space.get(n)).__name__ == "SimpleNamespace"]  # fmt: skip
    a = w.pick("f")
    if not names or a is None:
        return False
    name = w.rng.choice(names)
    value = w.frame.space[name]
    if isinstance(value, list):
        form = w.rng.choice(
            ("{n}.append({a})", "{n}.insert(0, {a})", "{n}[0] = {a}", "{n} += [{a}]", "{n}.extend([{a}])")
        )
        if "[0] =" in form and not value:
            return False
        if form == "{n}[0] = {a}" and not w.keeps_shape(name, value[0]) and name in w.frame.fixed:
            return False
        return w.run(form.format(n=name, a=a.text))
    if isinstance(value, dict):
        key = w.rng.choice(("h", "extra", "x"))
        form = w.rng.choice(('{n}["{k}"] = {a}', "{n}.update({k}={a})", '{n}.setdefault("{k}", {a})'))
        old = value.get(key)
        if w.frame.fixed and isinstance(old, torch.Tensor) and old.shape != a.tensor.shape:
            return False
        return w.run(form.format(n=name, k=key, a=a.text))
    if w.frame.fixed and value.h.shape != a.tensor.shape:
        return False
    return w.run(f"{name}.h = {a.text}")


def alias(w: Writer) -> bool:
    a = w.pick("f", stale=True)
    if a is None:
        return False
    if w.rng.random() < 0.3 and (b := w.pick("f")):
        return bind_all(w, [w.fresh(), w.fresh("other")], f"{a.text}, {b.text}")
    return w.assign(w.fresh(), a.text)


# Writes


def goes_well(w: Writer, statement: str, place: Place) -> bool:
    """Whether the write, done to a copy, keeps the numbers and the shape in bounds."""
    copy = place.tensor.detach().clone()
    space = {**w.frame.space, "_copy": copy}
    text = re.sub(re.escape(place.text) + r"(?![\w])", "_copy", statement)
    state = torch.get_rng_state()
    try:
        with torch.no_grad():
            exec(compile(text, "trial", "exec"), space)
    except Exception:
        # A refusal of autograd cannot show on a copy: let the real statement decide.
        return "_copy" not in text
    finally:
        torch.set_rng_state(state)
    after = space["_copy"]
    keeps = place.tensor.shape == after.shape or not w.frame.fixed
    return keeps and sane(after)


def writable(w: Writer, kind: str = "f") -> Place | None:
    """A tensor to write to; leaves that require grad seldom, as torch refuses them."""
    for _ in range(4):
        place = w.pick(kind, stale=True)
        if place is None:
            return None
        leafy = place.leaf and place.grad and torch.is_grad_enabled()
        if not leafy or w.rng.random() < (0.3 if w.style.early else 0.05):
            return place
    return None


def write_call(w: Writer) -> bool:
    choice = draw(w, inplace=True)
    place = writable(w)
    if place is None:
        return False
    rest = [fill(w, letter) for letter in choice.slots[1:]]
    text = choice.text.format(place.text, *rest)
    if not goes_well(w, text, place):
        return False
    w.ops[choice.name] += 1
    if w.rng.random() < 0.15:
        value = w.target(place.tensor)
        statement = f"{value} = {text}"
        if w.run(statement):
            w.frame.know(value, w.frame.space[value])
            return True
        return False
    return w.run(text)


def write_augmented(w: Writer) -> bool:
    place = writable(w)
    if place is None:
        return False
    other = w.pick("f", tuple(place.tensor.shape)) if w.rng.random() < 0.5 else None
    symbol = w.rng.choice(("+=", "+=", "-=", "*=", "*=", "/=", "**="))
    right = other.text if other and symbol != "**=" else number(w)
    subscript = w.rng.choice(("", "", "", "[0]", "[:, 0]", "[1:]", "[..., 0]", "[-1]", "[:]"))
    if subscript:
        right = number(w)
        if place.tensor.dim() < 1 or ("," in subscript and place.tensor.dim() < 2):
            return False
    statement = f"{place.text}{subscript} {symbol} {right}"
    if re.search(r"\(.*\) *$", place.text) and not subscript:
        return False
    return goes_well(w, statement, place) and w.run(statement)


def write_index(w: Writer) -> bool:
    place = writable(w)
    if place is None or place.tensor.dim() == 0:
        return False
    subscript = w.rng.choice(
        ("[0]", "[1]", "[:, 0]", "[:1]", "[...]", "[:]", "[mask]", "[0, 0]", "[idx]", "[-1]")
    )
    value = number(w) if w.rng.random() < 0.5 else None
    if "mask" in subscript:
        mask = w.pick("b", tuple(place.tensor.shape))
        subscript = f"[{mask.text}]" if mask and w.rng.random() < 0.6 else f"[{place.text} > 0.5]"
        value = value or "0.0"
    if "idx" in subscript:
        index = w.pick("i", (3,))
        subscript = f"[{index.text}]" if index else "[torch.tensor([0, 1])]"
    if value is None:
        part = w.value(f"{place.text}{subscript}")
        if not isinstance(part, torch.Tensor):
            return False
        source = w.pick("f", tuple(part.shape))
        if source is None:
            whole = w.pick("f", tuple(place.tensor.shape))
            value = f"{whole.text}{subscript}" if whole and "mask" not in subscript else number(w)
        else:
            value = w.rng.choice(("{s}", "{s} * 2", "{s}.exp()", "{s}.detach()", "torch.tanh({s})")).format(
                s=source.text
            )
    statement = f"{place.text}{subscript} = {value}"
    return goes_well(w, statement, place) and w.run(statement)


HIDDEN = ("{a}.data.add_({n})", "{a}.data[0] = {n}", "{a}.data *= {n}", "{a}.data.mul_({b})", "{a}.data = {b}.clone()", "{a}.detach().numpy()[0] = {n}", "{a}.data.zero_()", "{a}.data.copy_({b})", "{a}.data -= 0.1 * {b}", "{a}.data.clamp_(0.1, 0.5)", "{a}.detach().numpy()[...] *= {n}")  # fmt: skip


def write_hidden(w: Writer) -> bool:
    place = w.pick("f", stale=True)
    if place is None:
        return False
    other = w.pick("f", tuple(place.tensor.shape)) or place
    form = w.rng.choice(HIDDEN)
    if "[0]" in form and place.tensor.dim() == 0:
        return False
    statement = form.format(
        a=place.text, b=f"{other.text}.detach()" if ".data =" in form else other.text, n=number(w)
    )
    if statement.count(" -= ") or " *= " in statement:
        statement = statement.replace(f"{other.text}", f"{other.text}") if other is place else statement
    if other.grad and ".data =" not in form and "{b}" in form:
        statement = form.format(a=place.text, b=f"{other.text}.detach()", n=number(w))
    return goes_well(w, statement, place) and w.run(statement)


SEEN = ("{a}.detach().add_({n})", "{a}.detach()[0] = {n}", "{a}.detach().mul_({n})", "nn.init.zeros_({a})", "nn.init.constant_({a}, {n})", "nn.init.normal_({a}, std=0.1)", "nn.init.xavier_uniform_({a})", "nn.init.uniform_({a})", "{a}.t_()", "{a}.unsqueeze_(0)", "{a}.squeeze_()", "{a}[0].add_({n})", "{a}.view(-1).mul_({n})", "{a}.T.add_({n})", "{a}.diagonal().fill_({n})", "{a}[:, 0].exp_()", "{a}[:2].zero_()", "{a}.select(0, 0).sub_({n})", "{a}.copy_({b})", "{a}.set_({b}.detach().clone())", "{a}.transpose_(0, 1)", "nn.ReLU(inplace=True)({a})", "nn.LeakyReLU(0.1, inplace=True)({a})", "nn.Dropout(0.5, inplace=True)({a})", "F.relu_({a})", "torch.sigmoid_({a})", "torch.clamp_({a}, 0.1, 0.9)", "torch._foreach_mul_([{a}], {n})", "torch._foreach_add_([{a}], [{b}])", "nn.init.ones_({a})", "{a}.requires_grad_()", "{a}.data", "nn.Hardtanh(0.0, 1.0, inplace=True)({a})", "operator.iadd({a}, {n})", "{a}.__imul__({n})", "nn.init.trunc_normal_({a}, std=0.1)")  # fmt: skip


def write_idiom(w: Writer) -> bool:
    place = writable(w)
    if place is None:
        return False
    other = w.pick("f", tuple(place.tensor.shape)) or place
    form = w.rng.choice(SEEN)
    if "set_(" in form or form.startswith("operator"):
        return False
    if "requires_grad_" in form and not (place.leaf and not place.tensor.is_inference()):
        return False
    statement = form.format(a=place.text, b=other.text, n=number(w))
    if "nn.init" in form and place.grad and not place.leaf and w.rng.random() < 0.5:
        return False
    return goes_well(w, statement, place) and w.run(statement)


OUT = ("torch.add({a}, {n}, out={t})", "torch.mul({a}, {b}, out={t})", "torch.exp({a}, out={t})", "torch.sigmoid({a}, out={t})", "torch.sub({a}, {b}, out={t})", "torch.matmul({a}, {b}, out={t})", "torch.abs({a}, out={t})", "torch.clamp({a}, 0.1, 0.9, out={t})")  # fmt: skip


def write_out(w: Writer) -> bool:
    """`out=` is only allowed where nothing requires grad or grad mode is off."""
    grad = None if not torch.is_grad_enabled() else False
    place = w.pick("f", grad=grad, stale=True)
    if place is None:
        return False
    shape = tuple(place.tensor.shape)
    a, b = w.pick("f", shape, grad=grad, stale=True), w.pick("f", shape, grad=grad, stale=True)
    if a is None or b is None:
        return False
    statement = w.rng.choice(OUT).format(a=a.text, b=b.text, n=number(w), t=place.text)
    if "matmul" in statement and place.tensor.dim() != 2:
        return False
    return goes_well(w, statement, place) and w.run(statement)


def write_index_tensor(w: Writer) -> bool:
    """Writes to what ops keep besides floats: index tensors and masks."""
    place = w.pick(w.rng.choice("ib"))
    if place is None:
        return False
    forms = ("{a}.zero_()", "{a}[0] = {z}", "{a}.fill_({z})", "{a}.clamp_(0, 1)", "{a} *= 1") if place.kind == "i" else ("{a}.fill_({z})", "{a}[0] = {z}", "{a}.logical_not_()", "{a} |= {a}")  # fmt: skip
    zero = "1" if place.kind == "i" else w.rng.choice(("True", "False"))
    statement = w.rng.choice(forms).format(a=place.text, z=zero)
    return goes_well(w, statement, place) and w.run(statement)


# Backward

LOSSES = ("{a}.sum()", "({a} * {a}).sum()", "{a}.mean()", "{a}.pow(2).sum()", "{a}.square().mean()", "{a}.exp().sum()", "torch.sum({a})", "{a}.abs().mean()", "F.mse_loss({a}, torch.zeros_like({a}))", "{a}.norm()")  # fmt: skip


def loss_text(w: Writer) -> str | None:
    """A scalar that depends on one to three tensors in sight."""
    terms: list[str] = []
    for _ in range(w.rng.choice((1, 2, 2, 3, 4)) + 3 * (w.style.hidden > 0.5)):
        place = w.pick("f", grad=True)
        if place is None or (place.leaf and w.rng.random() < 0.8) or place.broken:
            continue
        form = w.rng.choice(LOSSES) if w.rng.random() < 0.6 else "{a}.sum()"
        terms.append(form.format(a=place.text))
    return " + ".join(dict.fromkeys(terms)) or None


def backward(w: Writer, last: bool = False) -> bool:
    """Computes a loss and goes backward through it, one way or another."""
    text = loss_text(w)
    if text is None or not torch.is_grad_enabled():
        return False
    loss = w.value(text)
    if not isinstance(loss, torch.Tensor) or not loss.requires_grad:
        return False
    retain = not last and w.rng.random() < 0.3
    keep = "retain_graph=True" if retain else ""
    roll = w.rng.random()
    if roll < 0.3:
        statement = (
            f"({text}).backward({keep})"
            if not re.fullmatch(r"[\w.]+\(\)", text)
            else f"{text}.backward({keep})"
        )
    elif roll < 0.8:
        name = w.fresh("loss")
        if not w.assign(name, text):
            return False
        if w.rng.random() < 0.15:
            w.run(f"print({name}.item())")
        if w.style.writes > 0.2 and w.rng.random() < 0.3:
            any_write(w)
        statement = w.rng.choice((f"{name}.backward({keep})", f"{name}.backward({keep})", f"torch.autograd.backward({name}{', ' if keep else ''}{keep})"))  # fmt: skip
    else:
        leaves = [p for p in w.places() if p.leaf and p.grad]
        if not leaves:
            return False
        wanted = w.rng.choice(leaves).text
        create = ", create_graph=True" if w.rng.random() < 0.3 else ""
        statement = f"torch.autograd.grad({text}, {wanted}{create}, allow_unused=True)"
        retain = retain or bool(create)
    before = [p.tensor for p in w.places() if p.grad and not p.leaf]
    if not w.run(statement, certain=True):
        return False
    if not retain:
        w.stale.extend(before)
    return True


def gradient_use(w: Writer) -> bool:
    """What people do with `.grad`."""
    leaves = [p for p in w.places() if p.leaf and p.tensor.grad is not None]
    if not leaves:
        return False
    a = w.rng.choice(leaves).text
    forms = [
        f"{a}.grad.zero_()",
        f"{a}.grad = None",
        f"{a}.grad.mul_(0.5)",
        f"nn.utils.clip_grad_norm_([{a}], 1.0)",
        f"nn.utils.clip_grad_value_([{a}], 0.5)",
    ]
    if not w.frame.fixed:
        forms.append(f"with torch.no_grad():\n    {a} -= 0.1 * {a}.grad")
        forms.append(f"with torch.no_grad():\n    {a}.sub_({a}.grad, alpha=0.1)")
    return w.run(w.rng.choice(forms))


RISKY = (
    "{v} = {a}.expand(2, {shape})\n{v}.add_({n})", "{v} = torch.rand(3, 1).expand(3, 3)\n{v} += {n}", "with torch.no_grad():\n    {v} = {a}[0]\n{v}.mul_({n})", "with torch.no_grad():\n    {v} = {a}.view(-1)\n{v}[0] = {n}",
    "with torch.inference_mode():\n    {v} = torch.rand({shape})\n{u} = {a} * {v}", "with torch.inference_mode():\n    {v} = torch.rand({shape})\n{v}.add_({n})", "with torch.inference_mode():\n    {v} = torch.rand({shape})\n{u} = {a} + {v}",
    "{v}, *{u} = {a}.unbind(0)\n{v}.add_({n})", "{v} = {a}.chunk(3)[0]\n{v} *= {n}", "for {v} in {a}:\n    {v}.mul_({n})", "{v} = {a}.unbind(0)\n{a}.add_({n})\n{u} = {v}[0].exp()", "{v} = {a}.expand_as({a})\n{v}.add_({n})", "{v} = {a}.split(1)[0].squeeze(0)\n{v}.zero_()",
    "{v} = {a}.unsqueeze(0).expand(1, {shape})\n{v}.mul_({n})", "{v} = torch.broadcast_to({a}, (2, {shape})).clone()\n{v}.mul_({n})", "with torch.no_grad():\n    {v} = {a}.detach()\n{v}.mul_({n})", "with torch.no_grad():\n    {v} = {a}[0]\n    {v}.mul_({n})", "{v} = torch.meshgrid(torch.rand(3), torch.rand(3), indexing=\"ij\")[0]\n{v}[0] = {n}",
)  # fmt: skip
"""Refused by torch in some states of `a` and fine in others: expanded, multi-output, no_grad and inference tensors."""


def risky(w: Writer) -> bool:
    a = w.pick("f", stale=True)
    if a is None or not a.tensor.dim() or w.frame.fixed:
        return False
    form = w.rng.choice(RISKY)
    shape = ", ".join(map(str, a.tensor.shape))
    if a.leaf and a.grad and not w.style.raising and "expand" not in form:
        return False
    v, u = w.fresh(), w.fresh("other")
    *before, last = form.format(a=a.text, v=v, u=u, shape=shape, n=number(w)).split("\n")
    if last.startswith("    "):
        before, last = [], "\n".join([*before, last])
    if before:
        text = "\n".join(before)
        if not w.run(text):
            return False
        w.frame.know(v, w.frame.space[v])
    if not w.run(last, certain=last.startswith("for")):
        return True
    for name in (v, u):
        if name in w.frame.space and re.search(rf"\b{name} =", last):
            w.frame.know(name, w.frame.space[name])
    return True


Maker = Callable[[Writer], bool]
READS: tuple[tuple[str, float, Maker], ...] = (
    ("op", 8, op),
    ("view", 3, view),
    ("several views", 0.8, many_views),
    ("container", 0.8, container),
    ("container use", 0.8, container_use),
    ("alias", 0.6, alias),
    ("leaf", 0.5, leaf),
    ("constant", 0.7, constant),
    ("plain value", 0.4, plain),
)
WRITES: tuple[tuple[str, float, Maker], ...] = (
    ("in-place call", 4, write_call),
    ("augmented", 3, write_augmented),
    ("index write", 2, write_index),
    ("write idiom", 2.5, write_idiom),
    ("out=", 0.5, write_out),
    ("index tensor write", 0.6, write_index_tensor),
    ("risky views", 0.8, risky),
)


def any_write(w: Writer) -> bool:
    if w.rng.random() < w.style.hidden:
        return made(w, "hidden write", write_hidden)
    name, _, maker = w.rng.choices(WRITES, [weight for _, weight, _ in WRITES])[0]
    return made(w, name, maker)


def any_read(w: Writer) -> bool:
    name, _, maker = w.rng.choices(READS, [weight for _, weight, _ in READS])[0]
    return made(w, name, maker)


def made(w: Writer, name: str, maker: Maker) -> bool:
    """Runs a maker and counts it if it wrote something."""
    before = w.count
    try:
        return maker(w)
    finally:
        if w.count > before:
            w.kinds[name] += 1


def simple(w: Writer) -> bool:
    """One simple statement."""
    if w.rng.random() < w.style.writes:
        return any_write(w)
    return any_read(w)
