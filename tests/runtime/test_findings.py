"""Faults that no recorded case has, each beside a near twin that is right."""

from __future__ import annotations

import pytest
from tests.oracle import judge
from tests.oracle.pool import Died, shared_pool
from tests.runtime.watching import RUN

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\nimport numpy as np\n"
FIRST = HEAD.count("\n") + 1

# name: (program, outcome under torch, findings as (line of the program, code)).
PROGRAMS: dict[str, tuple[str, str, set[tuple[int, str]]]] = {
    "data of a convolution's weight replaced": (
        "c = nn.Conv1d(1, 1, 1)\nx = torch.rand(1, 1, 4, requires_grad=True)\ny = c(x).sum()\n"
        "c.weight.data = torch.rand(1, 1, 1)\ny.backward()\n",
        "silent",
        {(4, "GG105")},
    ),
    "data replaced before the forward": (
        "c = nn.Conv1d(1, 1, 1)\nx = torch.rand(1, 1, 4, requires_grad=True)\nc.weight.data = torch.rand(1, 1, 1)\n"
        "y = c(x).sum()\ny.backward()\n",
        "ok",
        set(),
    ),
    "kept in the array of an attribute": (
        "net = nn.Linear(4, 1)\nclass Log: pass\nlog = Log()\nlog.kept = np.empty(8, dtype=object)\nfor i in range(8):\n    loss = net(torch.rand(2, 4)).sum()\n    loss.backward()\n    log.kept[i] = loss\n",
        "ok",
        {(8, "GG202")},
    ),
    "two kept in the array of an attribute": (
        "net = nn.Linear(4, 1)\nclass Log: pass\nlog = Log()\nlog.kept = np.empty(8, dtype=object)\nfor i in range(8):\n    loss = net(torch.rand(2, 4)).sum()\n    loss.backward()\n    log.kept[i % 2] = loss\n",
        "ok",
        set(),
    ),
    "views without grad kept in a dictionary": (
        "net = nn.Linear(4, 1)\nkept = {}\nfor i in range(8):\n    loss = net(torch.rand(2, 4)).sum()\n    loss.backward()\n    with torch.no_grad():\n        kept[i] = loss.view(1)\n",
        "ok",
        {(7, "GG202")},
    ),
    "values without grad kept in a dictionary": (
        "net = nn.Linear(4, 1)\nkept = {}\nfor i in range(8):\n    loss = net(torch.rand(2, 4)).sum()\n    loss.backward()\n    with torch.no_grad():\n        kept[i] = loss * 1\n",
        "ok",
        set(),
    ),
    "added up once in a while": (
        "net = nn.Linear(4, 1)\ntotal = 0.0\nfor i in range(8):\n    loss = net(torch.rand(2, 4)).sum()\n    loss.backward()\n    if i % 3 == 0:\n        total = total + loss\n",
        "ok",
        {(7, "GG201")},
    ),
    "output kept on the context of a function": (
        "class E(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        y = x.exp()\n        ctx.y = y\n        return y\n    @staticmethod\n    def backward(ctx, g):\n        return g * ctx.y\nE.apply(torch.rand(3, requires_grad=True)).sum().backward()\n",
        "ok",
        {(5, "GG208")},
    ),
    "view of an output kept on the context of a function": (
        "class E(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        y = x.exp()\n        ctx.kept = {'y': y.view(-1)}\n        return y\n    @staticmethod\n    def backward(ctx, g):\n        return g * ctx.kept['y']\nE.apply(torch.rand(3, requires_grad=True)).sum().backward()\n",
        "ok",
        {(5, "GG208")},
    ),
    "output taken off the context of a function by backward": (
        "class E(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        y = x.exp()\n        ctx.y, ctx.x = y, x\n        return y\n    @staticmethod\n    def backward(ctx, g):\n        y, ctx.y = ctx.y, None\n        return g * y\nE.apply(torch.rand(3, requires_grad=True)).sum().backward()\n",
        "ok",
        set(),
    ),
    "written since the context of a function keeps it": (
        "class E(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, s):\n        ctx.x = x\n        return x * s\n    @staticmethod\n    def backward(ctx, g):\n        return None, g * ctx.x.view(-1)\nw, h = torch.rand(3, requires_grad=True), torch.ones(3)\ny = E.apply(h, w)\nh.mul_(2)\ny.sum().backward()\n",
        "ok",
        {(11, "GG105")},
    ),
    "written since the context of a function keeps it for its size": (
        "class E(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, s):\n        ctx.x = x\n        return x * s\n    @staticmethod\n    def backward(ctx, g):\n        return None, (g + torch.zeros_like(ctx.x)).view(ctx.x.shape)\nw, h = torch.rand(3, requires_grad=True), torch.ones(3)\ny = E.apply(h, w)\nh.mul_(2)\ny.sum().backward()\n",
        "ok",
        set(),
    ),
    "hook registered on a module by every pass": (
        "net = nn.Linear(3, 3)\nseen = []\nfor i in range(8):\n    net.register_forward_hook(lambda m, a, o: seen.append(i))\n    net(torch.rand(2, 3)).sum().backward()\n",
        "ok",
        {(4, "GG209")},
    ),
    "hook registered on a parameter by every pass": (
        "w = nn.Parameter(torch.rand(3))\nfor i in range(8):\n    w.grad = None\n    w.register_hook(lambda g: g / 2)\n    w.sum().backward()\n",
        "ok",
        {(4, "GG209")},
    ),
    "hook registered by every pass and removed": (
        "net = nn.Linear(3, 3)\nseen = []\nfor i in range(8):\n    handle = net.register_forward_hook(lambda m, a, o: seen.append(i))\n    net(torch.rand(2, 3)).sum().backward()\n    handle.remove()\n",
        "ok",
        set(),
    ),
    "hook registered on a tensor of every pass": (
        "w = nn.Parameter(torch.rand(3))\nfor i in range(8):\n    h = w * 2\n    h.register_hook(lambda g: g / 2)\n    h.sum().backward()\n",
        "ok",
        set(),
    ),
    "one sum kept for long": (
        "net = nn.Linear(4, 1)\ntotal = loss = 0.0\nfor i in range(8):\n    loss = net(torch.rand(2, 4)).sum()\n    loss.backward()\n    if i == 1:\n        total = loss + loss\n",
        "ok",
        set(),
    ),
    "accumulated in a dictionary by turns": (
        "net = nn.Linear(4, 1)\nsums = {'a': 0.0, 'b': 0.0}\nfor i in range(8):\n    loss = net(torch.rand(2, 4)).sum()\n    loss.backward()\n    sums['ab'[i % 2]] = sums['ab'[i % 2]] + loss\n",
        "ok",
        {(6, "GG202")},
    ),
    "accumulated in two objects by turns": (
        "class Mean:\n    total = 0.0\n    def add(self, x):\n        self.total = self.total + x\n\nnet = nn.Linear(4, 1)\nmeans = [Mean(), Mean()]\nfor i in range(6):\n    loss = net(torch.rand(2, 4)).sum()\n    loss.backward()\n    means[i % 2].add(loss)\n",
        "ok",
        {(4, "GG201")},
    ),
    "sums of two passes kept by turns": (
        "net = nn.Linear(4, 1)\nsums = {0: 0.0, 1: 0.0}\nfor i in range(12):\n    loss = net(torch.rand(2, 4)).sum()\n    loss.backward()\n    if i % 4 < 2:\n        sums[i % 2] = 0.0\n    sums[i % 2] = sums[i % 2] + loss\n",
        "ok",
        set(),
    ),
    "read in a function that a loop calls": (
        "def value(x):\n    y = x * 2\n    return y.item()\n\nd = torch.device('cpu')\nfor i in range(5):\n    value(torch.rand((), device=d))\n",
        "ok",
        {(3, "GG301")},
    ),
    "read in a function that a loop calls once in a while": (
        "def value(x):\n    y = x * 2\n    return y.item()\n\nd = torch.device('cpu')\nfor i in range(12):\n    x = torch.rand((), device=d)\n    if i % 3 == 0:\n        value(x)\n",
        "ok",
        set(),
    ),
    "read beside a function with a loop of its own": (
        "def layers(x):\n    for _ in range(3):\n        x = x * 2\n    return x\n\nd = torch.device('cpu')\nfor i in range(5):\n    x = layers(torch.rand((), device=d))\n    x.item()\n",
        "ok",
        {(9, "GG301")},
    ),
    "read for each part while two are built": (
        "d = torch.device('cpu')\nclass Part:\n    def __init__(self):\n        self.top = max(w.max().item() for w in torch.rand(4, 2, device=d))\n\nfor _ in range(2):\n    Part()\n",
        "ok",
        set(),
    ),
    "one_hot of no width by its name": (
        "d = torch.device('cpu')\nwidth = -1\nx = torch.arange(3, device=d)\nfor i in range(5):\n    y = F.one_hot(x, num_classes=width)\n",
        "ok",
        {(5, "GG302")},
    ),
    "one_hot of a width by its name": (
        "d = torch.device('cpu')\nwidth = 3\nx = torch.arange(3, device=d)\nfor i in range(5):\n    y = F.one_hot(x, width) + F.one_hot(num_classes=4 - 1, input=x)\n",
        "ok",
        set(),
    ),
    "one_hot of no width every second pass": (
        "d = torch.device('cpu')\nx = torch.arange(3, device=d)\nfor i in range(8):\n    z = x + 1\n    if i % 2:\n        y = F.one_hot(x)\n",
        "ok",
        set(),
    ),
    "mask of what is put in read again in backward": (
        "d = torch.device('cpu')\nm = torch.tensor([True, False, True], device=d)\nv = torch.rand(2, requires_grad=True)\nfor i in range(4):\n    x = torch.rand(3)\n    x[m] = v\n    y = x * 2\n    y.sum().backward()\n",
        "ok",
        {(6, "GG302"), (8, "GG302")},
    ),
    "mask of one value with a gradient read in backward only": (
        "d = torch.device('cpu')\nm = torch.tensor([True, False, True], device=d)\nv = torch.rand((), requires_grad=True)\nfor i in range(4):\n    x = torch.rand(3)\n    x[m] = v\n    x.sum().backward()\n",
        "ok",
        {(7, "GG302")},
    ),
    "mask of several values without a gradient read again in backward": (
        "d = torch.device('cpu')\nm = torch.tensor([True, False, True], device=d)\nw = torch.rand(3, requires_grad=True)\nfor i in range(4):\n    x = w * 2\n    x[m] = torch.rand(2)\n    torch.autograd.grad(x.sum(), w)\n",
        "ok",
        {(6, "GG302"), (7, "GG302")},
    ),
    "mask of masked_select not read in backward": (
        "d = torch.device('cpu')\nm = torch.tensor([True, False, True], device=d)\nw = torch.rand(3, requires_grad=True)\nfor i in range(4):\n    x = (w * 2).masked_select(m)\n    x.sum().backward()\n",
        "ok",
        {(5, "GG302")},
    ),
    "mask that backward does not come by": (
        "d = torch.device('cpu')\nm = torch.tensor([True, False, True], device=d)\nw = torch.rand(3, requires_grad=True)\nfor i in range(4):\n    x = (w * 2)[m]\n    (w * 3).sum().backward()\n",
        "ok",
        {(5, "GG302")},
    ),
    "written in a closure that is partly applied": (
        "import functools\nw = torch.rand(3, requires_grad=True)\no = torch.optim.SGD([w], 0.1)\ny = w.exp()\ndef closure(t):\n    t.add_(1)\n    return t.sum()\n\no.step(functools.partial(closure, y))\ny.sum().backward()\n",
        "raises",
        {(6, "GG101")},
    ),
    "written in a decorated closure of an optimizer of the program": (
        "class Own(torch.optim.SGD):\n    def step(self, closure):\n        return super().step(closure)\n\nclass Task:\n    def loss(self):\n        y.add_(1)\n        return y.sum()\n\nw = torch.rand(3, requires_grad=True)\no = Own([w], 0.1)\ny = w.exp()\no.step(closure=torch.enable_grad()(Task().loss))\ny.sum().backward()\n",
        "raises",
        {(7, "GG101")},
    ),
    "written in a helper of an optimizer of the program": (
        "def change(p):\n    p.add_(1)\n\nclass Own(torch.optim.Optimizer):\n    @torch.no_grad()\n    def step(self, closure=None):\n        for p in self.param_groups[0]['params']:\n            change(p)\n\nw = torch.rand(3, requires_grad=True)\no = Own([w], {})\ny = (w * w).sum()\no.step(lambda: 0)\ny.backward()\n",
        "raises",
        {(13, "GG106")},
    ),
    "optimizer that steps in the closure of another": (
        "w, v = torch.rand(3, requires_grad=True), torch.rand(3, requires_grad=True)\no, p = torch.optim.SGD([w], 0.1), torch.optim.SGD([v], 0.1)\nw.grad = v.grad = torch.ones(3)\ny = (v * v).sum()\ndef closure():\n    p.step()\n    return 0\n\no.step(closure)\ny.backward()\n",
        "raises",
        {(6, "GG106")},
    ),
    "values of a device wanted by a function in Python": (
        "x = torch.rand(6, device=torch.device('cpu'))\nfor i in range(5):\n    u = torch.unique(x)\n",
        "ok",
        {(3, "GG302")},
    ),
    "values wanted by an optimizer": (
        "w = torch.rand(6, device=torch.device('cpu'), requires_grad=True)\no = torch.optim.Adam([w])\n"
        "for i in range(5):\n    w.sum().backward()\n    o.step()\n    o.zero_grad()\n",
        "ok",
        set(),
    ),
    "NumPy writes what a write through a view saved": (
        "x = torch.rand(3, 3, requires_grad=True)\nw = 2 * x\nw[:, 0].exp_()\na = w.detach().numpy()\na[...] = 0\n"
        "w.sum().backward()\n",
        "silent",
        {(5, "GG105")},
    ),
    "NumPy writes beside what a write through a view saved": (
        "x = torch.rand(3, 3, requires_grad=True)\nw = 2 * x\nw[:, 0].exp_()\na = w.detach().numpy()\na[:, 1] = 0\n"
        "w.sum().backward()\n",
        "ok",
        set(),
    ),
    "NumPy writes what a write through a view did not save": (
        "x = torch.rand(3, 3, requires_grad=True)\nw = 2 * x\nw[:, 0] = x[0]\nw[0].mul_(3)\na = w.detach().numpy()\n"
        "a[...] = 0\nw.sum().backward()\n",
        "ok",
        set(),
    ),
    "operand of a write through a view written behind the counter": (
        "x = torch.rand(3, 3, requires_grad=True)\nf = torch.rand(3)\nw = 2 * x\nw[0].mul_(f)\nf.data.add_(1)\n"
        "w.sum().backward()\n",
        "silent",
        {(5, "GG105")},
    ),
    "view that is its own operand": (
        "x = torch.rand(3, 3, requires_grad=True)\nw = 2 * x\nv = w[0]\nv /= v\nw.sum().backward()\n",
        "raises",
        {(4, "GG101")},
    ),
    "operand of a write through a view written": (
        "x = torch.rand(3, 3, requires_grad=True)\nf = torch.rand(3)\nw = 2 * x\nw[0].mul_(f)\nf.add_(1)\n"
        "w.sum().backward()\n",
        "raises",
        {(5, "GG101")},
    ),
    "data replaced by equal values": (
        "x = torch.rand(3, requires_grad=True)\ny = x * x\nx.data = x.detach().clone()\ny.sum().backward()\n",
        "ok",
        set(),
    ),
    "data replaced by equal values, which are written then": (
        "x = torch.rand(3, requires_grad=True)\ny = x * x\nx.data = x.detach().clone()\nx.data.mul_(2)\n"
        "y.sum().backward()\n",
        "silent",
        {(3, "GG105"), (4, "GG105")},
    ),
    "data replaced twice, at last by equal values": (
        "x = torch.rand(3, requires_grad=True)\nold = x.detach()\ny = x * x\nx.data = old * 2\nx.data = old.clone()\n"
        "y.sum().backward()\n",
        "ok",
        set(),
    ),
    "data of what is no parameter replaced in a helper": (
        "def put(t, value):\n    t.data = value\n\nx = torch.rand(3, requires_grad=True)\nh = x * 2\ny = h * x\n"
        "put(h, torch.zeros(3))\ny.sum().backward()\n",
        "silent",
        {(2, "GG105")},
    ),
    "fused optimizer between forward and backward": (
        "l = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))\no = torch.optim.Adam(l.parameters(), 0.1, fused=True)\n"
        "x = torch.rand(2, 3)\na = l(x).sum()\nb = l(x).sum()\na.backward()\no.step()\nb.backward()\n",
        "silent",
        {(7, "GG105")},
    ),
    "batch norm: eval pass, then train pass": (
        "bn = nn.BatchNorm1d(3).eval()\nx = torch.rand(4, 3, requires_grad=True)\ny = bn(x)\nbn.train()\nz = bn(x)\n"
        "(y + z).pow(2).sum().backward()\n",
        "silent",
        {(5, "GG105")},
    ),
    "batch norm: two train passes": (
        "bn = nn.BatchNorm1d(3)\nx = torch.rand(4, 3, requires_grad=True)\ny = bn(x)\nz = bn(x)\n"
        "(y + z).pow(2).sum().backward()\n",
        "ok",
        set(),
    ),
    "array behind from_numpy written": (
        "a = np.ones(3, dtype=np.float32)\nx = torch.rand(3, requires_grad=True)\ny = (x * torch.from_numpy(a)).sum()\n"
        "a += 1\nprint('between')\ny.backward()\n",
        "silent",
        {(4, "GG105")},
    ),
    "array written in a helper": (
        "def scale(array):\n    array *= 2\n    return array\n\nx = torch.rand(3, requires_grad=True)\ny = x.sigmoid()\n"
        "scale(y.detach().numpy())\ny.sum().backward()\n",
        "silent",
        {(2, "GG105")},
    ),
    "array copied before it is written": (
        "x = torch.rand(3, requires_grad=True)\ny = x.sigmoid()\na = y.detach().numpy().copy()\na *= 2\ny.sum().backward()\n",
        "ok",
        set(),
    ),
    "array written after backward": (
        "x = torch.rand(3, requires_grad=True)\ny = x.sigmoid()\na = y.detach().numpy()\ny.sum().backward()\na *= 2\n",
        "ok",
        set(),
    ),
    "write to another part of the same memory": (
        "x = torch.rand(4, requires_grad=True)\ny = x * 1\nz = y[:2].sin()\ny.data[2:] += 1\nz.sum().backward()\n",
        "ok",
        set(),
    ),
    "data written and put back": (
        "x = torch.rand(4, requires_grad=True)\ny = x * 1\nz = y.sin()\ny.data.neg_()\ny.data.neg_()\nz.sum().backward()\n",
        "ok",
        set(),
    ),
    "hook writes a gradient that nobody shares": (
        "x = torch.rand(3, requires_grad=True)\ny = x * 2\ny.register_hook(lambda g: g.mul_(3))\n(y * y).sum().backward()\n",
        "ok",
        set(),
    ),
    "function marks what it writes": (
        "class Double(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        x.mul_(2)\n"
        "        ctx.mark_dirty(x)\n        return x\n\n    @staticmethod\n    def backward(ctx, g):\n        return g * 2\n\n"
        "x = torch.rand(3, requires_grad=True)\nDouble.apply(x * 1).sum().backward()\n",
        "ok",
        set(),
    ),
    "second order: parameter written after grad": (
        "x = torch.rand(3, requires_grad=True)\ng, = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)\n"
        "with torch.no_grad():\n    x.sub_(0.1 * g)\n(g ** 2).sum().backward()\n",
        "raises",
        {(4, "GG101")},
    ),
    "foreach write": (
        "x = torch.rand(3, requires_grad=True)\ny = x.exp()\nwith torch.no_grad():\n    torch._foreach_mul_([y], 2)\n"
        "y.sum().backward()\n",
        "raises",
        {(4, "GG101")},
    ),
    "write through a view of a view": (
        "x = torch.rand(3, 3, requires_grad=True)\ny = x.exp()\nv = y.t()[1].view(3)\nv.zero_()\ny.sum().backward()\n",
        "raises",
        {(4, "GG101")},
    ),
    "operand is its own target": (
        "x = torch.rand(3, requires_grad=True)\ny = x * 1\ny *= y\ny.sum().backward()\n",
        "raises",
        {(3, "GG101")},
    ),
    "parameter updated by hand inside no_grad": (
        "w = torch.rand(3, requires_grad=True)\nfor _ in range(3):\n    loss = (w * w).sum()\n    loss.backward()\n"
        "    with torch.no_grad():\n        w -= 0.1 * w.grad\n        w.grad = None\n",
        "ok",
        set(),
    ),
    "backward twice at one place, nothing carried": (
        "x = torch.rand(3, requires_grad=True)\ny = x.exp().sum()\nfor _ in range(2):\n    y.backward()\n",
        "raises",
        {(2, "GG203")},
    ),
    "create_graph in backward, gradients kept": (
        "x = torch.rand(3, requires_grad=True)\nkept = []\nfor _ in range(3):\n    x.grad = None\n"
        "    (x ** 3).sum().backward(create_graph=True)\n    kept.append(x.grad)\n",
        "ok",
        {(5, "GG207")},
    ),
    "graphs kept in a bounded queue": (
        "from collections import deque\nw = torch.rand(3, requires_grad=True)\nq = deque(maxlen=2)\nfor _ in range(12):\n"
        "    loss = (w * w).sum()\n    loss.backward()\n    q.append(loss)\n",
        "ok",
        set(),
    ),
    "graphs kept in objects in a list": (
        "class Step:\n    def __init__(self, loss):\n        self.loss = loss\n\nw = torch.rand(3, requires_grad=True)\n"
        "log = []\ndef note(loss):\n    log.append(Step(loss))\n\nfor _ in range(12):\n    loss = (w * w).sum()\n"
        "    loss.backward()\n    note(loss)\n",
        "ok",
        {(8, "GG202")},
    ),
    "losses summed, then one backward": (
        "w = torch.rand(3, requires_grad=True)\ntotal = 0\nfor _ in range(12):\n    total = total + (w * w).sum()\n"
        "total.backward()\n",
        "ok",
        set(),
    ),
    "outputs stored, then one backward": (
        "net = nn.Linear(3, 1)\nouts = []\nfor _ in range(12):\n    outs.append(net(torch.rand(3)))\n"
        "torch.stack(outs).sum().backward()\n",
        "ok",
        set(),
    ),
    "truncated sequence": (
        "cell = nn.RNNCell(3, 3)\nopt = torch.optim.SGD(cell.parameters(), 0.1)\nh = torch.zeros(2, 3)\n"
        "for _ in range(6):\n    h = h.detach()\n    for _ in range(5):\n        h = cell(torch.rand(2, 3), h)\n"
        "    opt.zero_grad()\n    h.sum().backward()\n    opt.step()\n",
        "ok",
        set(),
    ),
    "parameter that no loss reaches": (
        "a, b = nn.Linear(3, 1), nn.Linear(3, 1)\nopt = torch.optim.SGD([*a.parameters(), *b.parameters()], 0.1)\n"
        "for _ in range(3):\n    opt.zero_grad()\n    a(torch.rand(2, 3)).sum().backward()\n    opt.step()\n",
        "ok",
        {(6, "GG205")},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_findings(name):
    code, outcome, expected = PROGRAMS[name]
    verdict = judge(HEAD + code)
    assert verdict.outcome == outcome, verdict
    watched = shared_pool().call(RUN, timeout=60, code=HEAD + code, prelude="", light=False)
    assert not isinstance(watched, Died), watched
    assert not watched.troubles
    assert {(line - FIRST + 1, c) for line, c in watched.lines} == expected, watched.findings


def test_related_places_name_saver_and_backward():
    code = HEAD + PROGRAMS["write through a view of a view"][0]
    watched = shared_pool().call(RUN, timeout=60, code=code, prelude="", light=False)
    ((_, _, _, message, related),) = watched.findings
    assert "`v`" in message
    assert "a view" in message
    assert related == (FIRST + 1, FIRST + 4)


def test_second_backward_names_the_first():
    code = (
        HEAD
        + "x = torch.rand(3, requires_grad=True)\ny = x.exp().sum()\ny.backward()\nprint(1)\ny.backward()\n"
    )
    watched = shared_pool().call(RUN, timeout=60, code=code, prelude="", light=False)
    ((line, found, _, _, related),) = watched.findings
    assert (line, found) == (FIRST + 4, "GG203")
    assert FIRST + 2 in related
