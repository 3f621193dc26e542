"""Random functions that write in place, each with a twin that computes the same and writes nothing; torch judges both.

A twin follows the meaning of a write: all names of a tensor, and all views of it, see the new values. A write that autograd
does not record gives new values and keeps the old history (`Put`).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

HEAD = """\
import asyncio
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from types import SimpleNamespace

import torch
import torch.nn.functional as F

Pair = namedtuple("Pair", "first second")


@dataclass
class Data:
    first: torch.Tensor
    second: object


class Held:
    def __init__(self, first, second):
        self.first, self.second = first, second


class Output(OrderedDict):
    def __getattr__(self, name):
        return self[name]


class Put(torch.autograd.Function):
    @staticmethod
    def forward(ctx, old, new):
        return new.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad, None


"""

READS = ["exp", "sigmoid", "tanh", "sin", "relu", "square", "cos"]
COMPLEX_READS = ["exp", "sin", "square", "cos", "tanh"]
DTYPES = ["float32"] * 5 + ["float64"] * 2 + ["complex64", "complex128", "int64", "bfloat16"]

LEAVES = {
    "argument": ("x, w", "w", "w={t}"),
    "copied": ("x, w", "w", "w={t}.clone()"),
    "default": ("x, w={t}", "w", ""),
    "global": ("x", "W", ""),
    "list": ("x, ws", "ws[1]", "ws=[None, {t}]"),
    "mapping": ("x, ws", 'ws["deep"].first', 'ws={{"deep": Held({t}, 1)}}'),
    "attribute": ("self, x", "self.weight", "self=Owner()"),
    "parameter": ("self, x", "self.lin.weight", "self=Owner()"),
    "closure": ("x", "around", ""),
}
RESULTS = {
    "plain": ("{a}", ["r"]),
    "tuple": ("({a}, [{b}])", ["r[0]", "r[1][0]"]),
    "dict": ('{{"a": {a}, "b": {{"c": {b}}}}}', ['r["a"]', 'r["b"]["c"]']),
    "dataclass": ("Data({a}, {b})", ["r.first", "r.second"]),
    "namedtuple": ("Pair({a}, Data({b}, 3))", ["r.first", "r.second.first"]),
    "namespace": ("SimpleNamespace(a={a}, n=2, b={b})", ["r.a", "r.b"]),
    "object": ("Held([{a}], {b})", ["r.first[0]", "r.second"]),
    "output": ("Output(loss={a}, logits={b})", ["r.loss", "r.logits"]),
    "number": ("{a}.detach().abs().sum().item()", ["r"]),
    "truth": ("({a}.detach().abs() > 1, {b})", ["r[0]", "r[1]"]),
}
KINDS = ["plain"] * 4 + ["async", "generator", "method", "property", "nested"]


@dataclass
class Tensor:
    """One tensor of the program: its names, and its views by name with what makes them."""

    names: list[str]
    views: dict[str, str] = field(default_factory=dict)


@dataclass
class Case:
    """A function, its twin, and how the judge calls them and reads what they give."""

    text: str
    twin: str
    function: str
    inputs: str
    call: str
    reads: list[str]
    leaf: str
    against: bool
    seed: int


VIEWS = {
    "{n}[0]": "torch.select_scatter({n}, {new}, 0, 0)",
    "{n}[:, 1]": "torch.select_scatter({n}, {new}, 1, 1)",
    "{n}[1:]": "torch.slice_scatter({n}, {new}, 0, 1)",
    "{n}.view(-1)": "{new}.view(3, 4)",
    "{n}.t()": "{new}.t()",
    "{n}.narrow(1, 0, 2)": "torch.slice_scatter({n}, {new}, 1, 0, 2)",
}
RECORDED = [
    ("{v} += {c}", "{v} + {c}"),
    ("{v} *= {c}", "{v} * {c}"),
    ("{v}.mul_({c})", "{v} * {c}"),
    ("{v}.mul_({c}).add_(1)", "{v} * {c} + 1"),
    ("{v}.add_({v})", "{v} + {v}"),
    ("{v}[0] = {c}", "torch.cat([torch.full_like({v}[:1], {c}), {v}[1:]])"),
    ("{v}[...] = {v} * {c}", "{v} * {c}"),
    ("{v}.copy_({v} * {c})", "{v} * {c}"),
    ("{v}.zero_()", "{v}.masked_fill(torch.ones_like({v}, dtype=torch.bool), 0)"),
]
FLOATING = [
    ("{v}.exp_()", "{v}.exp()"),
    ("{v}.tanh_().mul_({c})", "{v}.tanh() * {c}"),
    ("torch.sin_({v})", "{v}.sin()"),
    ("{v} /= {c}", "{v} / {c}"),
    ("{v}.sqrt_()", "{v}.sqrt()"),
]
REAL = [
    ("{v}.relu_()", "{v}.relu()"),
    ("F.relu({v}, inplace=True)", "{v}.relu()"),
    ("{v}.sigmoid_()", "{v}.sigmoid()"),
    ("{v}[{v} > 0] = {c}", "torch.where({v} > 0, torch.full_like({v}, {c}), {v})"),
    ("{v}.clamp_(min=0.1)", "{v}.clamp(min=0.1)"),
    ("{v}[0] = float('inf')", "torch.cat([torch.full_like({v}[:1], float('inf')), {v}[1:]])"),
    ("{v}.masked_fill_({v} < 0, float('nan'))", "{v}.masked_fill({v} < 0, float('nan'))"),
]
UNRECORDED = [
    ("with torch.no_grad():\n        {v}.mul_({c})", "{v} * {c}"),
    ("{v}.data.mul_({c})", "{v} * {c}"),
    ("{v}.data[0] = {c}", "torch.cat([torch.full_like({v}[:1], {c}), {v}[1:]])"),
    ("{v}.detach().add_({c})", "{v} + {c}"),
]
NUMPY = [("{v}.detach().numpy()[...] = {c}", "torch.full_like({v}, {c})")]
REFUSED = [
    (
        "a, b = {n}.chunk(2, 1)\n    a.mul_({c})\n    {n} = a * b",
        "a, b = {n}.chunk(2, 1)\n    {n} = (a * {c}) * b",
    ),
    ("e = {n}[:1].expand(3, 4)\n    e += {c}\n    {n} = e * 1", "{n} = {n}[:1].expand(3, 4) + {c}"),
    ("for row in {n}:\n        row.add_({c})", "{n} = {n} + {c}"),
    ("torch.add({n}, {c}, out={n})", "{n} = {n} + {c}"),
]


def grown(seed: int) -> Case:
    """The function of a seed."""
    return _Grower(seed).grow()


class _Grower:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.own: list[str] = []
        self.twin: list[str] = []
        self.count = 0
        self.kept: list[str] = []

    def grow(self) -> Case:
        pick = self.random.choice
        self.dtype = pick(DTYPES)
        self.whole = self.dtype == "int64"
        kind = pick(KINDS)
        where = pick([name for name in LEAVES if name not in ("attribute", "parameter", "closure")])
        if kind in ("method", "property"):
            where = pick(["attribute", "parameter"])
        elif kind == "nested":
            where = "closure"
        signature, leaf, given = LEAVES[where]
        made = self._made()
        signature = signature.format(t=made)
        given = given.format(t=made)
        start = pick(["{l} * 2", "{l} + x", "({l} * x).{r}()", "{l} * 1"])
        if kind == "property":
            signature, start = "self", start.replace("x", "3")
        line = f"h = {start.format(l=leaf, r=self._read())}"
        self._both(line)
        self.tensors = [Tensor(["h"])]
        for _ in range(self.random.randint(1, 4)):
            self._step()
        if self.own == self.twin:
            self._write(self.tensors[0], self.tensors[0].names[0])
        if self.random.random() < 0.05 and kind != "property" and "x" in signature:
            self._both_but("x.mul_(2)", "pass")
            self._both("h = h + x")
        result = pick(list(RESULTS))
        first, second = self.tensors[-1].names[0], pick(self.kept or [self.tensors[0].names[0]])
        shape, reads = RESULTS[result]
        if not self.kept and self.random.random() < 0.05:
            shape, reads = "None", []
        returned = shape.format(a=first, b=second)
        return self._case(kind, where, signature, leaf, given, returned, reads)

    # Statements

    def _both(self, line: str) -> None:
        self._both_but(line, line)

    def _both_but(self, own: str, twin: str) -> None:
        self.own.append(own)
        self.twin.append(twin)

    def _read(self) -> str:
        if self.whole:
            return self.random.choice(["square", "abs"])
        return self.random.choice(COMPLEX_READS if "complex" in self.dtype else READS)

    def _made(self) -> str:
        if self.whole:
            return "torch.arange(12).view(3, 4)"
        if self.random.random() < 0.1:
            return f"(torch.arange(12.).view(3, 4) / 9).to(torch.{self.dtype})"
        return f"(torch.arange(12.).view(3, 4) / 9).to(torch.{self.dtype}).requires_grad_()"

    def _step(self) -> None:
        chance = self.random.random()
        tensor = self.random.choice(self.tensors)
        name = self.random.choice(tensor.names)
        self.count += 1
        if chance < 0.2:
            new = f"h{self.count}"
            self._both(f"{new} = {name}.{self._read()}()")
            self.tensors.append(Tensor([new]))
        elif chance < 0.32:
            self._both(f"k{self.count} = {name}.{self._read()}()")
            self.kept.append(f"k{self.count}")
        elif chance < 0.4:
            self._both(f"n{self.count} = {name}")
            tensor.names.append(f"n{self.count}")
        elif chance < 0.5:
            made = self.random.choice(list(VIEWS))
            self._both(f"v{self.count} = {made.format(n=name)}")
            tensor.views[f"v{self.count}"] = made
        elif chance < 0.54 and not self.whole:
            own, twin = self.random.choice(REFUSED)
            # The other names keep the old tensor, and are not read any more.
            del tensor.names[1:], tensor.names[0]
            tensor.names.append(name)
            tensor.views.clear()
            constant = self.random.choice(["2", "0.5"])
            self._both_but(own.format(n=name, c=constant), twin.format(n=name, c=constant))
        else:
            self._write(tensor, name)

    def _write(self, tensor: Tensor, name: str) -> None:
        constant = self.random.choice(["2", "3"] if self.whole else ["2", "0.5", "1.5"])
        view = self.random.choice([*tensor.views, "", ""])
        plain = [*RECORDED, *([] if self.whole else FLOATING)]
        if not self.whole and "complex" not in self.dtype:
            plain += REAL
        unrecorded = self.random.random() < 0.2
        pool = plain
        if unrecorded:
            pool = UNRECORDED if self.dtype == "bfloat16" else UNRECORDED + NUMPY
        own, new = self.random.choice(pool)
        target = view or name
        value = f"({new.format(v=target, c=constant)}).to({target}.dtype)"
        if unrecorded:
            value = f"Put.apply({target}, ({value}).detach())"
        lines = [f"_new = {value}"]
        if view:
            made = tensor.views[view]
            lines.append(f"_new = {VIEWS[made].format(n=name, new='_new')}")
        lines += [f"{each} = _new" for each in tensor.names]
        lines += [f"{each} = {made.format(n=name)}" for each, made in tensor.views.items()]
        self._both_but(own.format(v=target, c=constant), "\n    ".join(lines))

    # Texts

    def _case(
        self, kind: str, where: str, signature: str, leaf: str, given: str, returned: str, reads: list[str]
    ) -> Case:
        x = "torch.arange(3, 7)" if self.whole else f"(torch.arange(4.) / 5).to(torch.{self.dtype})"
        inputs = ", ".join(each for each in (given, "" if kind == "property" else f"x={x}") if each)
        name = {"nested": "around_it.f", "method": "Owner.f", "property": "Owner.f"}.get(kind, "f")
        parameters = ", ".join(each for each in signature.split(", ") if each)
        if "=" in parameters:
            # A tensor in the signature has commas of its own.
            parameters = signature
        call = {"async": "asyncio.run(m.f({a}))", "generator": "list(m.f({a}))[-1]", "plain": "m.f({a})"}.get(
            kind, ""
        )
        leaf = {"global": "m.W", "default": "m.f.__defaults__[0]", "closure": "kept[0]"}.get(where, leaf)
        if kind == "method":
            call = "self.f(x=x)"
        elif kind == "property":
            call = "self.f"
        elif kind == "nested":
            call = "m.around_it(kept)(x=x)"
        against = self.random.random() < 0.15
        texts = [
            HEAD + self._around(kind, where, parameters, inputs, lines, returned)
            for lines in (self.own, self.twin)
        ]
        return Case(texts[0], texts[1], name, inputs, call, reads, leaf, against, self.seed)

    def _around(
        self, kind: str, where: str, parameters: str, inputs: str, lines: list[str], returned: str
    ) -> str:
        made = self._leaf_text
        body = "\n    ".join([*lines, f"yield {returned}" if kind == "generator" else f"return {returned}"])
        comment = f"# gradguard: inputs {inputs}\n" if inputs else ""
        text = f"{comment}{'async ' if kind == 'async' else ''}def f({parameters}):\n    {body}\n"
        if where == "global":
            text = f"W = {made}\n\n\n{text}"
        if kind in ("method", "property"):
            weight = f"self.weight = {made}"
            if where == "parameter":
                weight = (
                    "self.lin = torch.nn.Linear(4, 3)\n        "
                    f"self.lin.weight = torch.nn.Parameter({made}.detach(), requires_grad={made}.requires_grad)"
                )
            decorator = "@property\n" if kind == "property" else ""
            inner = (f"{comment}{decorator}{text[len(comment) :]}").replace("\n", "\n    ").rstrip()
            text = (
                "class Owner(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                f"        {weight}\n\n    {inner}\n"
            )
        elif kind == "nested":
            inner = text.replace("\n", "\n    ").rstrip()
            text = (
                "# gradguard: inputs kept=[]\ndef around_it(kept):\n"
                f"    around = {made}\n    kept.append(around)\n\n    {inner}\n\n    return f\n"
            )
        return text

    @property
    def _leaf_text(self) -> str:
        state = random.Random(self.seed + 1)
        grad = "" if self.whole or state.random() < 0.1 else ".requires_grad_()"
        start = "torch.arange(12)" if self.whole else "(torch.arange(12.) / 9)"
        return f"{start}.view(3, 4).to(torch.{self.dtype}){grad}"
