"""Fixes of graphs are safe only where nothing else goes through a graph, or asks whether there is one."""

from __future__ import annotations

import pytest

from gradguard.check.api import check
from gradguard.check.settings import Settings
from gradguard.findings import Applicability
from gradguard.source.text import Source
from tests.fixes.judging import fixed
from tests.oracle import shared_pool

HEAD = "import torch\nfrom torch import nn\n\nx = torch.rand(3, 3, requires_grad=True)\nh = x.exp()\n"
TRAINED = """net = nn.Linear(3, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(2):
    opt.zero_grad()
    net(x.detach()).sum().backward()
    opt.step()
net.eval()
"""
LEAVES = "w = torch.rand(3, 3, requires_grad=True)\n(w * w).sum().backward()\n"

KEPT = """import logging
log = logging.getLogger()
net = nn.Linear(3, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
kept = []
for step in range(3):
    opt.zero_grad()
    net(x.detach()).sum().backward()
    opt.step()
    out = net(x.detach()).mean()
    kept.append(out)
"""

UNSAFE = {
    "a sum, where each gradient meets a hook": (
        "sum-backwards",
        "x.register_hook(lambda g: g.clamp(max=1))\nh.sum().backward()\nh.mean().backward()\n",
    ),
    "a sum, where each gradient updates its leaf": (
        "sum-backwards",
        "x.register_post_accumulate_grad_hook(lambda p: p.data.add_(p.grad))\nh.sum().backward()\nh.mean().backward()\nprint(x)\n",
    ),
    "a sum, where a function of its own computes gradients": (
        "sum-backwards",
        "class Signs(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, t):\n        return t * 2\n\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return g.sign()\n\n\n"
        "h = Signs.apply(x).exp()\nh.sum().backward()\nh.mean().backward()\n",
    ),
    "a sum with what reads a gradient": (
        "sum-backwards",
        "h.sum().backward()\n(h * x.grad).sum().backward()\n",
    ),
    "a sum with what calls a reader of gradients": (
        "sum-backwards",
        "def penalty():\n    return (h * x.grad).sum()\n\n\nh.sum().backward()\npenalty().backward()\n",
    ),
    "a sum under no_grad": (
        "sum-backwards",
        "a, b = h.sum(), h.mean()\nwith torch.no_grad():\n    a.backward()\n    b.backward()\n",
    ),
    "a graph that a text differentiates": (
        "drop-retain-graph",
        "import codecs\nh.sum().backward(retain_graph=True)\nexec(codecs.decode('u.zrna().onpxjneq()', 'rot13'))\n",
    ),
    "a graph that somebody looks into": (
        "drop-retain-graph",
        "h.sum().backward(retain_graph=True)\nprint(h.grad_fn._saved_result)\n",
    ),
    "a graph that a thread differentiates": (
        "drop-retain-graph",
        "import threading\nh.sum().backward(retain_graph=True)\nthread = threading.Thread(target=lambda: h.mean().backward())\n"
        "thread.start()\nthread.join()\n",
    ),
    "a graph that an object differentiates when it goes": (
        "drop-retain-graph",
        "class Last:\n    def __del__(self):\n        h.mean().backward()\n\n\nlast = Last()\n"
        "h.sum().backward(retain_graph=True)\ndel last\n",
    ),
    "a graph that a deep call differentiates": (
        "drop-retain-graph",
        "def down(n):\n    if n == 0 or n == 6:\n        h.sum().backward(retain_graph=True)\n    if n < 6:\n        down(n + 1)\n\n\n"
        "down(0)\n",
    ),
    "a graph that comes back from an object of a library": (
        "drop-retain-graph",
        "import graphlib\nwaiting = graphlib.TopologicalSorter()\nwaiting.add(h)\nh.sum().backward(retain_graph=True)\n"
        "next(waiting.static_order()).sum().backward()\n",
    ),
    "a kept value that is compared by identity": ("detach-kept", KEPT + "print(kept[-1] is out)\n"),
    "a kept value with a name of its own": (
        "detach-kept",
        KEPT.replace("    kept.append", "    out.step = step\n    kept.append") + "print(kept[0].step)\n",
    ),
    "a kept value that a text differentiates": (
        "detach-kept",
        KEPT + "import codecs\nexec(codecs.decode('xrcg[0].onpxjneq()', 'rot13'))\n",
    ),
    "a kept value that a thread differentiates": (
        "detach-kept",
        KEPT + "import threading\nthread = threading.Thread(target=lambda: kept[0].backward())\nthread.start()\nthread.join()\n",
    ),
    "an update that computes its own gradient": (
        "no-grad",
        LEAVES + "w -= torch.autograd.grad((w * w).sum(), w)[0] + w.grad\n",
    ),
    "an update whose value is used": ("no-grad", LEAVES + "loss = (w.sub_(w.grad) * x).sum()\nloss.backward()\n"),
    "an update that is passed on": ("no-grad", LEAVES + "w.sub_(w.grad).pow(2).sum().backward()\n"),
    "an update that names a part": (
        "no-grad",
        LEAVES + "part = w[0].sub_(w.grad[0])\npart.sum().backward()\n",
    ),
    "an update that calls who differentiates": (
        "no-grad",
        LEAVES + "def more():\n    (w * w).sum().backward()\n    return w.grad\n\n\nw -= more() + w.grad\n",
    ),
    "an update along a gradient with a graph": (
        "no-grad",
        "w = torch.rand(3, 3, requires_grad=True)\n(w * w).sum().backward(create_graph=True)\nw -= w.grad\n",
    ),
    "an evaluation that shows whether it is recorded": (
        "no-grad",
        TRAINED + "for _ in range(2):\n    out = net(x)\n    print(out.requires_grad)\n",
    ),
    "an evaluation that keeps whether it is recorded": (
        "no-grad",
        TRAINED + "flags = []\nfor _ in range(2):\n    out = net(x)\n    flags.append(float(out.is_leaf))\n",
    ),
    "an evaluation that asks by name": (
        "no-grad",
        TRAINED + "for _ in range(2):\n    out = net(x)\n    print(getattr(out, 'grad_fn') is None)\n",
    ),
    "an evaluation whose kept tensors are counted": (
        "no-grad",
        TRAINED + "kept = []\nwith torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(1) or t, lambda t: t):\n"
        "    for _ in range(2):\n        out = net(x)\n        print(out.sum().item(), len(kept))\n",
    ),
    "an evaluation by a function that asks what is needed": (
        "no-grad",
        TRAINED + "class Shown(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, t):\n"
        "        print(ctx.needs_input_grad)\n        return t * 2\n\n    @staticmethod\n    def backward(ctx, g):\n"
        "        return g * 2\n\n\nfor _ in range(2):\n    out = Shown.apply(net(x))\n    print(out.sum().item())\n",
    ),
    "an evaluation that expects a refusal": (
        "no-grad",
        TRAINED + "for _ in range(2):\n    out = net(x)\n    try:\n        print(out.numpy().sum())\n"
        "    except RuntimeError:\n        print('recorded')\n",
    ),
}  # fmt: skip
NEEDED = {
    "a graph that a text differentiates": (
        "drop-retain-graph",
        "h.sum().backward(retain_graph=True)\nexec('h.mean().backward()')\n",
    ),
    "a graph that comes back from a queue": (
        "drop-retain-graph",
        "import queue\nwaiting = queue.Queue()\nwaiting.put(h)\nh.sum().backward(retain_graph=True)\nwaiting.get().sum().backward()\n",
    ),
    "a kept value that a text differentiates": (
        "detach-kept",
        KEPT + "exec('kept[0].backward()')\n",
    ),
}  # fmt: skip
"""The engine sees the second backward, as torch does, which refuses the program without the graph."""
SAFE = {
    "a sum": ("sum-backwards", "h.sum().backward()\nh.mean().backward()\n"),
    "a sum behind a forward hook": (
        "sum-backwards",
        "net = nn.Linear(3, 3)\nnet.register_forward_hook(lambda m, i, o: None)\nh = net(x).exp()\nh.sum().backward()\nh.mean().backward()\n",
    ),
    "a sum behind a gradient that was read before": (
        "sum-backwards",
        LEAVES + "k = w.exp() * w.grad\nk.sum().backward()\nk.mean().backward()\nprint(w.grad)\n",
    ),
    "a graph whose last node is printed": (
        "drop-retain-graph",
        "h.sum().backward(retain_graph=True)\nprint(type(h.grad_fn))\n",
    ),
    "a graph that a function given away does not see": (
        "drop-retain-graph",
        "import atexit\natexit.register(lambda: print(x))\nh.sum().backward(retain_graph=True)\n",
    ),
    "a graph of its own, after another was put away": (
        "drop-retain-graph",
        "import queue\nwaiting = queue.Queue()\nwaiting.put(x.tanh())\nh.sum().backward(retain_graph=True)\n",
    ),
    "a step": ("no-grad", LEAVES + "w -= 0.1 * w.grad\nprint(w)\n"),
    "a step by methods": ("no-grad", LEAVES + "w.sub_(w.grad.sign().mul(0.1)).clamp_(0, 1)\nprint(w)\n"),
    "a step of a part": ("no-grad", LEAVES + "w[0] = w[0] - torch.clamp(w.grad[0], max=1)\nprint(w)\n"),
    "a step of each": (
        "no-grad",
        "ws = [torch.rand(3, requires_grad=True) for _ in range(2)]\nsum((w * w).sum() for w in ws).backward()\n"
        "[w.sub_(0.1 * w.grad) for w in ws]\nprint(ws)\n",
    ),
    "an evaluation": ("no-grad", TRAINED + "for _ in range(2):\n    out = net(x)\n    print(out.sum().item())\n"),
    "a kept value beside other identities": (
        "detach-kept",
        KEPT + "print(kept[-1] is None, type(opt) is torch.optim.SGD)\n",
    ),
    "a kept value": ("detach-kept", KEPT + "print(sum(kept))\n"),
    "a kept value that is logged": (
        "detach-kept",
        KEPT.replace("kept.append", "log.info('loss %s', out); kept.append") + "print(sum(kept))\n",
    ),
    "an evaluation beside questions to parameters": (
        "no-grad",
        TRAINED + "print(sum(p.numel() for p in net.parameters() if p.requires_grad), net.weight.requires_grad)\n"
        "some = list(filter(lambda p: p.requires_grad, net.parameters()))\nfor _ in range(2):\n    out = net(x)\n"
        "    print(out.sum().item())\n",
    ),
    "the statement beside a view without history, which asks for a gradient as its base does": (
        "no-grad",
        "net = nn.Linear(3, 3)\nfor _ in range(2):\n    out = net(x.detach())\n    k = x.relu()\n"
        "    with torch.no_grad():\n        part = k[None]\npart.exp().sum().backward()\nprint(part.grad)\n",
    ),
    "the loop of a view without history that nobody goes on with": (
        "no-grad",
        "net = nn.Linear(3, 3)\nfor _ in range(2):\n    out = net(x.detach())\n    k = x.relu()\n"
        "    with torch.no_grad():\n        part = k[None]\n    print(part.sum().item())\n",
    ),
}  # fmt: skip


def applicabilities(kind: str, body: str) -> list[Applicability]:
    findings = check(Source("program.py", HEAD + body), Settings()).findings
    return [plan.applicability for found in findings for plan in found.fixes if plan.kind == kind]


@pytest.mark.parametrize("name", UNSAFE)
def test_somebody_sees_the_graph(name: str) -> None:
    found = applicabilities(*UNSAFE[name])
    assert found
    assert Applicability.SAFE not in found


@pytest.mark.parametrize("name", NEEDED)
def test_a_graph_that_is_needed_is_no_finding(name: str) -> None:
    assert applicabilities(*NEEDED[name]) == []


def test_a_graph_that_is_needed_is_missed() -> None:
    programs = []
    for _, body in NEEDED.values():
        without = body.replace("retain_graph=True", "").replace(
            "kept.append(out)", "kept.append(out.detach())"
        )
        programs.append((HEAD + body, HEAD + without, True))
    answers = shared_pool().call("tests.fixes.judging:verdicts", timeout=600, programs=programs)
    assert all(any("RuntimeError" in line for line in found) for found in answers), answers


@pytest.mark.parametrize("name", SAFE)
def test_nobody_else_sees_the_graph(name: str) -> None:
    assert Applicability.SAFE in applicabilities(*SAFE[name])


def test_a_backward_that_is_called_as_a_function() -> None:
    body = "h.sum().backward(retain_graph=True)\nlist(map(torch.Tensor.backward, [h.mean()]))\n"
    assert applicabilities("drop-retain-graph", body) == []


def test_what_is_safe_is_right() -> None:
    programs = []
    for _, body in (*UNSAFE.values(), *NEEDED.values(), *SAFE.values()):
        programs.append((HEAD + body, fixed(HEAD + body)[0].after, True))
    assert sum(before != after for before, after, _ in programs) >= len(SAFE)
    answers = shared_pool().call("tests.fixes.judging:verdicts", timeout=600, programs=programs)
    assert {body: found for (body, _, _), found in zip(programs, answers) if found} == {}


PLAIN = {
    "a branch": "total += out if step else 0.0",
    "a name of a branch": "value = out if step else 1.5\n    total += value",
    "a name read in one pass": "value = out.item() if step else out\n    total += value",
    "a function with a branch": "total += chosen(step, out)",
    "a name of a function's": "value = chosen(step, out)\n    total += value",
    "a default": "total += {}.get('loss', 0.0) if step == 1 else out",
}
"""Statements that accumulate a number in some pass: nothing is offered that only tensors have."""


@pytest.mark.parametrize("name", PLAIN)
def test_what_may_be_a_number_is_not_detached(name: str) -> None:
    chosen = "def chosen(step, value):\n    if step:\n        return value\n    return 0.0\n\n\ntotal = 0.0\n"
    head = KEPT.rpartition("    kept.append")[0]
    for plan in applicabilities("detach-kept", chosen + head + f"    {PLAIN[name]}\n"):
        assert plan is not Applicability.SAFE, name


def test_what_no_branch_makes_a_number_is_detached() -> None:
    head = KEPT.rpartition("    kept.append")[0]
    chosen = "def doubled(value):\n    return value * 2\n\n\ntotal = 0.0\n"
    body = chosen + head + "    total += doubled(out)\n"
    assert applicabilities("detach-kept", body) == [Applicability.SAFE]
