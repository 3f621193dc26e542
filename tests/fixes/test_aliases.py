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
}  # fmt: skip
"""Who sees the write -> the program. The first write to a saved tensor is what must not become a new tensor unasked."""

ALONE = {
    "the only name": "y = x.exp()\ny += 1\ny.sum().backward()",
    "a name that was given up": "y = x.exp()\nz = y\nz = None\ny += 1\ny.sum().backward()",
    "a view that was given up": "y = x.exp()\nrow = y[0]\ndel row\ny.mul_(2)\ny.sum().backward()",
    "an attribute alone": "class A: pass\na = A()\na.y = x.exp()\na.y += 1\na.y.sum().backward()",
    "a result of its own": "def f(t):\n    y = t.exp()\n    y += 1\n    return y\n\n\nf(x).sum().backward()",
    "a clone is held": "y = x.exp()\nold = y.clone()\ny += 1\n(y + old).sum().backward()",
}


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
