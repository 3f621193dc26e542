"""Where another name must see a write, a new tensor is not offered as safe; what is safe, torch finds right."""

from __future__ import annotations

import pytest

from gradguard.check.api import check
from gradguard.check.settings import Settings
from gradguard.findings import Applicability
from gradguard.source.text import Source
from tests.fixes.judging import fixed
from tests.oracle import shared_pool

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\nx = torch.rand(3, 3, requires_grad=True)\n"
ANEW = ("out-of-place", "clone-before", "masked-write", "index-put", "drop-inplace", "stack-rows")

SEEN = {
    "another name": "y = x.exp()\nz = y\ny += 1\n(y + z).sum().backward()",
    "a view of it": "y = x.exp()\nrow = y[0]\ny.mul_(2)\n(y.sum() + row.sum()).backward()",
    "its base": "base = x.exp()\ny = base[0]\ny += 1\nbase.sum().backward()",
    "a reshaped view": "y = x.exp()\nflat = y.view(-1)\ny.add_(1)\nflat.sum().backward()",
    "a transposed view of a view": "y = x.exp()\nt = y[:2].T\ny[0] = 0\nt.sum().backward()",
    "a detached view": "y = x.exp()\nshown = y.detach()\ny.add_(1)\ny.sum().backward()\nprint(shown)",
    "a list": "y = x.exp()\nkept = [y]\ny += 1\n(y + kept[0]).sum().backward()",
    "a dictionary": "y = x.exp()\nkept = {'y': y}\ny.add_(1)\nkept['y'].sum().backward()",
    "a tuple in a list": "y = x.exp()\nkept = [(1, y)]\ny.add_(1)\nkept[0][1].sum().backward()",
    "an appended item": "kept = []\ny = x.exp()\nkept.append(y)\ny.add_(1)\nkept[0].sum().backward()",
    "an attribute": "class A: pass\na = A()\ny = x.exp()\na.y = y\ny.add_(1)\na.y.sum().backward()",
    "two attributes": "class A: pass\na, b = A(), A()\na.y = b.y = x.exp()\na.y.add_(1)\nb.y.sum().backward()",
    "an attribute of a module": (
        "class Net(nn.Module):\n    def forward(self, x):\n        y = x.exp()\n        self.last = y\n        y += 1\n"
        "        return y\n\n\nnet = Net()\nout = net(x)\n(out + net.last).sum().backward()"
    ),
    "the caller": "def f(y):\n    y.add_(1)\n\n\ny = x.exp()\nf(y)\ny.sum().backward()",
    "the caller, by keyword": "def f(*, y):\n    y += 1\n\n\nz = x.exp()\nf(y=z)\nz.sum().backward()",
    "the caller's caller": (
        "def g(t):\n    t.add_(1)\n\n\ndef f(y):\n    g(y)\n\n\ny = x.exp()\nf(y)\ny.sum().backward()"
    ),
    "the caller's list": "def f(ys):\n    ys[0].add_(1)\n\n\ny = x.exp()\nf([y])\ny.sum().backward()",
    "a closure": "y = x.exp()\n\n\ndef show():\n    return y.sum()\n\n\nz = y\nz.add_(1)\nshow().backward()",
    "an enclosing function": (
        "def f(x):\n    y = x.exp()\n\n    def bump(t):\n        t.add_(1)\n\n    bump(y)\n    return y\n\n\nf(x).sum().backward()"
    ),
    "a lambda's default": "y = x.exp()\nshow = lambda t=y: t.sum()\ny.add_(1)\nshow().backward()",
    "a partial": (
        "from functools import partial\ny = x.exp()\nshow = partial(torch.sum, y)\ny.add_(1)\nshow().backward()"
    ),
    "a global of the caller": (
        "y = x.exp()\n\n\ndef f(t):\n    t.mul_(2)\n    return t.sum()\n\n\n(f(y) + y.sum()).backward()"
    ),
    "what a function returned": "def same(t):\n    return t\n\n\ny = x.exp()\nz = same(y)\nz.add_(1)\ny.sum().backward()",
    "what a function returned a view of": (
        "def top(t):\n    return t[0]\n\n\ny = x.exp()\nz = top(y)\nz.add_(1)\ny.sum().backward()"
    ),
    "the name of out=": "y = x.exp()\nz = y\ntorch.add(x.detach(), 1, out=y.detach())\n(z + y).sum().backward()",
    "an iterator's element": "ys = [x.exp(), x.tanh()]\nfor y in ys:\n    y.add_(1)\n(ys[0] + ys[1]).sum().backward()",
    "an element of a zip": (
        "ys = [x.exp()]\nfor y, k in zip(ys, [1]):\n    y.mul_(2)\nys[0].sum().backward()"
    ),
    "einsum of one operand": "y = x.exp()\nt = torch.einsum(y, (1, 0))\ny[0] = 1\n(t.sum() + y.sum()).backward()",
    "a tuple, which cannot take another": "pair = (x.exp(), 1)\npair[0].add_(1)\npair[0].sum().backward()",
    "a tuple in a list, by an index": "pairs = [(x.exp(), 1)]\npairs[0][0][0] = 1\npairs[0][0].sum().backward()",
    "expanded memory": "y = x.exp()\nwide = y.expand(2, 3, 3)\ny.add_(1)\nwide.sum().backward()",
    "the module's input": (
        "act = nn.Sequential(nn.ReLU(inplace=True))\ny = x.exp()\nz = act(y)\n(y * z).sum().backward()"
    ),
    "the argument of a flag": "y = x.exp()\nold = y\nz = F.relu(y, inplace=True)\n(old + z).sum().backward()",
    "a NumPy array": "y = x.exp()\narray = y.detach().numpy()\ny.add_(1)\ny.sum().backward()\nprint(array.sum())",
    "a class attribute": "class A: pass\nA.y = x.exp()\ny = A.y\ny.add_(1)\nA.y.sum().backward()",
    "a generator": (
        "def rows(t):\n    yield t\n    yield t[0]\n\n\ny = x.exp()\nfor row in rows(y):\n    row.add_(1)\ny.sum().backward()"
    ),
    "a bound method of it": "y = x.exp()\nf = y.sum\ny += 1\nf().backward()",
    "an attribute of a function": "def keep(t):\n    keep.last = t\n\n\ny = x.exp()\nkeep(y)\ny += 1\n(y + keep.last).sum().backward()",
    "an iterator that waits": "y = x.exp()\nit = iter([y])\ny += 1\nnext(it).sum().backward()",
    "an enumeration that waits": "y = x.exp()\nit = enumerate([y])\ny += 1\nnext(it)[1].sum().backward()",
    "a map that waits": "y = x.exp()\nit = map(lambda t: t * 2, [y])\ny += 1\nnext(it).sum().backward()",
    "a generator expression that waits": "y = x.exp()\nit = (t * 2 for t in [y])\ny += 1\nnext(it).sum().backward()",
    "a generator function that waits": "def twice(t):\n    yield t * 2\n\n\ny = x.exp()\nit = twice(y)\ny += 1\nnext(it).sum().backward()",
    "an iterator that repeats": "import itertools\nit = itertools.cycle([x.exp()])\na = next(it)\na += 1\n(a + next(it)).sum().backward()",
    "a list of the same tensor twice": "total = 0\nfor y in [x.exp()] * 2:\n    y += 1\n    total = total + y.sum()\ntotal.backward()",
    "what a generator gave before, unpacked": "def rows(t):\n    y = t.exp()\n    for i in range(2):\n        y += 1\n        yield y\n\n\na, b = rows(x)\n(a * b).sum().backward()",
    "what a generator gave before, in a list": "def rows(t):\n    y = t.exp()\n    for i in range(2):\n        y += 1\n        yield y\n\n\ntorch.stack(list(rows(x))).sum().backward()",
    "what a generator gave before, in a comprehension": "def rows(t):\n    y = t.exp()\n    for i in range(2):\n        y += 1\n        yield y\n\n\ntorch.stack([row for row in rows(x)]).sum().backward()",
    "what a generator gave before, as arguments": "def rows(t):\n    y = t.exp()\n    for i in range(2):\n        y += 1\n        yield y\n\n\ntorch.mul(*rows(x)).sum().backward()",
    "a generator that waits for its turn": "def rows(t):\n    y = t.exp()\n    yield y\n    yield y * 2\n\n\ntotal = 0\nfor row in rows(x):\n    row.add_(1)\n    total = total + row.sum()\ntotal.backward()",
    "the left operand": "y = x.exp()\n\n\ndef up():\n    global y\n    y += 1\n    return y\n\n\n(up() * up()).sum().backward()",
    "an earlier argument": "y = x.exp()\n\n\ndef up():\n    global y\n    y += 1\n    return y\n\n\ntorch.mul(up(), other=up()).sum().backward()",
    "the receiver": "class Cell:\n    def __init__(self):\n        self.h = x.exp()\n\n    def up(self):\n        self.h += 1\n        return self.h\n\n\ncell = Cell()\ncell.up().mul(cell.up()).sum().backward()",
    "an earlier value of a dictionary": "y = x.exp()\n\n\ndef up():\n    global y\n    y += 1\n    return y\n\n\n{1: up(), 2: up()}[1].sum().backward()",
    "a queue": "import queue\nwaiting = queue.Queue()\ny = x.exp()\nwaiting.put(y)\ny += 1\n(y + waiting.get()).sum().backward()",
    "a mapping of another library": "from collections import ChainMap\ny = x.exp()\nkept = ChainMap({'y': y})\ny += 1\n(y + kept['y']).sum().backward()",
    "a dictionary with the same value everywhere": "y = x.exp()\nkept = dict.fromkeys('ab', y)\ny += 1\n(y + kept['b']).sum().backward()",
    "a class of its own kind of list": "class Rows(list):\n    pass\n\n\ny = x.exp()\nkept = Rows([y])\ny += 1\n(y + kept[0]).sum().backward()",
    "an operator of its own": "class Log:\n    def __init__(self):\n        self.all = []\n\n    def __iadd__(self, t):\n        self.all.append(t)\n        return self\n\n\ny = x.exp()\nlog = Log()\nlog += y\ny += 1\nlog.all[0].sum().backward()",
    "a weak reference": "import weakref\ny = x.exp()\nref = weakref.ref(y)\ny += 1\n(y + ref()).sum().backward()",
    "a method that is called later": "import operator\ny = x.exp()\ntimes = operator.methodcaller('mul', y)\ny += 1\n(y + times(x)).sum().backward()",
    "a context": "import contextlib\ny = x.exp()\nheld = contextlib.nullcontext(y)\ny += 1\nwith held as z:\n    z.sum().backward()",
    "a cache": "import functools\n\n\n@functools.cache\ndef table():\n    return x.exp()\n\n\ny = table()\ny += 1\n(y + table()).sum().backward()",
    "globals()": "y = x.exp()\nglobals()['z'] = y\ny += 1\n(y + z).sum().backward()",
    "a name of a comprehension": "y = x.exp()\n[z := t for t in [y]]\ny += 1\nz.sum().backward()",
    "its storage": "y = x.exp()\nbytes_ = y.untyped_storage()\ny += 1\ny.sum().backward()\nprint(torch.tensor([]).set_(bytes_, 0, (9,)))",
    "its address": "y = x.exp()\nwhere = y.data_ptr()\ny += 1\ny.sum().backward()\nprint(where == y.data_ptr())",
    "its identity": "y = x.exp()\nseen = id(y)\ny += 1\ny.sum().backward()\nprint(seen == id(y))",
    "its own attributes": "y = x.exp()\ny.scale = 2\ny += 1\n(y * y.scale).sum().backward()",
    "its base, asked for": "y = x.exp()[0]\ny += 1\ny._base.sum().backward()",
    "its strides": "y = x.exp()[:, ::2]\ny += 1\ny.sum().backward()\nprint(y.stride())",
    "memory around it": "y = x.exp()[:, 1:]\ny += 1\ny.as_strided((4,), (1,)).sum().backward()",
    "a class body": "class A:\n    y = x.exp()\n    y.add_(1)\n    total = y.sum()\n\n\nA.total.backward()",
    "a class body's other name": "class A:\n    y = x.exp()\n    z = y\n    y += 1\n    total = (y + z).sum()\n\n\nA.total.backward()",
    "a class that is told of each op": (
        "class T(torch.Tensor):\n    calls = []\n\n    @classmethod\n    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
        "        T.calls.append(func)\n        return super().__torch_function__(func, types, args, kwargs or {})\n\n\n"
        "y = x.as_subclass(T).exp()\ny.add_(1)\ny.sum().backward()\nprint(len(T.calls))"
    ),
    "who asks for the flag": (
        "act = nn.ReLU(inplace=True)\nnet = nn.Sequential(nn.Sigmoid(), act)\nnet(x).sum().backward()\nprint(act.inplace)"
    ),
    "how it lies, asked for": "y = x.exp()[:, ::2]\ny.mul_(2)\ny.sum().backward()\nprint(y.is_contiguous())",
    "its own names": "class A: pass\na = A()\ny = x.exp()\na.__dict__['y'] = y\ny += 1\n(y + a.y).sum().backward()",
    "its own names, many at once": "class A: pass\na = A()\ny = x.exp()\nvars(a).update(y=y)\ny += 1\n(y + a.y).sum().backward()",
    "the running names": "y = x.exp()\nvars()['z'] = y\ny += 1\n(y + z).sum().backward()",
    "an attribute of whatever name": (
        "from dataclasses import dataclass, fields\n\n\n@dataclass\nclass A:\n    y: object\n\n\na = A(x.exp())\n"
        "b = [getattr(a, field.name) for field in fields(a)]\na.y.add_(1)\n(a.y + b[0]).sum().backward()"
    ),
    "an object that refuses another": (
        "from dataclasses import dataclass\n\n\n@dataclass(frozen=True)\nclass A:\n    y: object\n\n\na = A(x.exp())\n"
        "a.y.add_(1)\na.y.sum().backward()"
    ),
    "an object that counts what is bound": (
        "class A:\n    def __init__(self):\n        self.__dict__['n'] = 0\n        self.y = x.exp()\n\n"
        "    def __setattr__(self, name, value):\n        self.__dict__['n'] += 1\n        self.__dict__[name] = value\n\n\n"
        "a = A()\na.y.add_(1)\na.y.sum().backward()\nprint(a.n)"
    ),
    "a library": "y = x.exp()\ntorch.kept = y\ny += 1\n(y + torch.kept).sum().backward()",
    "the builtins": "import builtins\ny = x.exp()\nbuiltins.kept = y\ny += 1\n(y + kept).sum().backward()",
    "a thread": (
        "import threading\nkept = []\ny = x.exp()\nthread = threading.Thread(target=lambda: kept.append(y))\nthread.start()\n"
        "thread.join()\ny += 1\n(y + kept[0]).sum().backward()"
    ),
    "a thread's function": (
        "import threading\nkept = []\n\n\ndef keep():\n    kept.append(state.y)\n\n\nclass A: pass\nstate = A()\n"
        "thread = threading.Thread(target=keep)\nstate.y = x.exp()\nthread.start()\nthread.join()\nstate.y += 1\n"
        "(state.y + kept[0]).sum().backward()"
    ),
    "whoever calls back": (
        "import atexit\ny = x.exp()\natexit.register(lambda: print(z.sum()))\nz = y.tanh()\nz += 1\nz.sum().backward()\nold = z"
    ),
    "a buffer": (
        "buffer = bytearray(12)\nw = torch.frombuffer(buffer, dtype=torch.float32)\nout = (x * w).sum()\nw += 1\n"
        "out.backward()\nprint(bytes(buffer))"
    ),
    "a capsule": (
        "from torch.utils.dlpack import from_dlpack, to_dlpack\ny = x.exp()\nz = from_dlpack(to_dlpack(y.detach()))\ny += 1\n"
        "y.sum().backward()\nprint(z.sum())"
    ),
    "a tensor set to it": "y = x.exp()\nz = torch.empty(0)\nz.set_(y.detach())\ny += 1\ny.sum().backward()\nprint(z.sum())",
    "the data of another": "y = x.exp()\nz = torch.empty(0)\nz.data = y.data\ny += 1\ny.sum().backward()\nprint(z.sum())",
    "other processes": (
        "y = x.exp().detach().share_memory_()\nout = (x * y).sum()\ny += 1\nout.backward()\nprint(y.is_shared())"
    ),
    "what is about to be returned": (
        "def f():\n    y = x.exp()\n    try:\n        return y\n    finally:\n        y.mul_(2)\n\n\nf().sum().backward()"
    ),
    "what is returned from a context": (
        "from contextlib import contextmanager\n\n\n@contextmanager\ndef doubled(t):\n    yield\n    t.mul_(2)\n\n\n"
        "def f():\n    y = x.exp()\n    with doubled(y):\n        return y\n\n\nf().sum().backward()"
    ),
}  # fmt: skip
"""Who sees the write -> the program. The first write to a saved tensor is what must not become a new tensor unasked."""

ALONE = {
    "the only name": "y = x.exp()\ny += 1\ny.sum().backward()",
    "a name that was given up": "y = x.exp()\nz = y\nz = None\ny += 1\ny.sum().backward()",
    "a view that was given up": "y = x.exp()\nrow = y[0]\ndel row\ny.mul_(2)\ny.sum().backward()",
    "an attribute alone": "class A: pass\na = A()\na.y = x.exp()\na.y += 1\na.y.sum().backward()",
    "a result of its own": "def f(t):\n    y = t.exp()\n    y += 1\n    return y\n\n\nf(x).sum().backward()",
    "a clone is held": "y = x.exp()\nold = y.clone()\ny += 1\n(y + old).sum().backward()",
    "an element that a generator gave": "def rows(t):\n    for i in range(2):\n        yield t.exp()\n\n\ntotal = 0\nfor row in rows(x):\n    row += 1\n    total = total + row.sum()\ntotal.backward()",
    "a generator's own": "def rows(t):\n    y = t.exp()\n    for i in range(2):\n        y += 1\n        yield y.sum()\n\n\nsum(rows(x)).backward()",
    "summed in a comprehension": "def rows(t):\n    y = t.exp()\n    for i in range(2):\n        y += 1\n        yield y\n\n\nsum([row.sum() for row in rows(x)]).backward()",
    "a state that is read between": "class Cell:\n    def __init__(self):\n        self.h = x.exp()\n\n    def up(self):\n        self.h += 1\n        return self.h.sum()\n\n\ncell = Cell()\n(cell.up() * cell.up()).backward()",
    "a library under a name that is hidden elsewhere": (
        "def f(torch):\n    return torch\n\n\ny = x.exp()\nz = x.detach()\nm = z > 0.5\ny[m] = z[m]\ny.sum().backward()"
    ),
    "an operator of an object that counts what is bound": (
        "class A:\n    def __setattr__(self, name, value):\n        self.__dict__[name] = value\n\n\n"
        "a = A()\na.y = x.exp()\na.y += 1\na.y.sum().backward()"
    ),
    "a function given away that reads others": (
        "import atexit\natexit.register(lambda: print(x))\ny = x.exp()\ny += 1\ny.sum().backward()"
    ),
    "an object given away that does not hold it": (
        "import atexit\nclass A: pass\na = A()\natexit.register(print, a)\ny = x.exp()\ny += 1\ny.sum().backward()\na.y = y"
    ),
    "what is returned is another": (
        "def f():\n    y = x.exp()\n    try:\n        return y.sum()\n    finally:\n        y.mul_(2)\n\n\nf().backward()"
    ),
    "an own copy of a view": "y = x[:, ::2].clone().exp()\ny += 1\ny.sum().backward()\nprint(y.stride())",
    "a contiguous mask": "y = x.exp()\nm = y > 1.5\ny[m] = torch.ones(3, 3)[m]\ny.view(-1).sum().backward()",
}  # fmt: skip


def offered(body: str) -> list[tuple[str, Applicability]]:
    """Kinds that make a new tensor, as offered for all findings of a program."""
    report = check(Source("program.py", HEAD + body + "\n"), Settings())
    assert report.findings
    return [
        (plan.kind, plan.applicability)
        for finding in report.findings
        for plan in finding.fixes
        if plan.kind in ANEW
    ]


@pytest.mark.parametrize("who", SEEN)
def test_somebody_sees_it(who: str) -> None:
    assert [kind for kind, how in offered(SEEN[who]) if how is Applicability.SAFE] == []


@pytest.mark.parametrize("who", ALONE)
def test_nobody_else_sees_it(who: str) -> None:
    assert Applicability.SAFE in [how for _, how in offered(ALONE[who])]


def test_what_is_safe_is_right() -> None:
    programs = []
    for body in (*SEEN.values(), *ALONE.values()):
        text = HEAD + body + "\n"
        done, _ = fixed(text)
        programs.append((text, done.after, True))
    assert sum(before != after for before, after, _ in programs) > len(programs) // 2
    answers = shared_pool().call("tests.fixes.judging:verdicts", timeout=600, programs=programs)
    wrong = {body: found for body, found in zip((*SEEN, *ALONE), answers) if found}
    assert wrong == {}
