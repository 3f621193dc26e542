"""The judge tells right from wrong, names the line, and survives programs that hang or crash."""

from __future__ import annotations

import itertools

import pytest

from tests.oracle import judge, judge_many, measure

HEAD = "import torch\nx = torch.rand(3, requires_grad=True)\n"


def test_raising_line_is_the_innermost_line_of_the_program():
    code = HEAD + "def run():\n    y = x.exp()\n    y.add_(1)\n    y.sum().backward()\nrun()\n"
    verdict = judge(code)
    assert (verdict.outcome, verdict.line, verdict.error_type) == ("raises", 6, "RuntimeError")


def test_silent_corruption_inside_a_function_is_seen():
    code = (
        HEAD
        + "def run():\n    y = x * 1\n    z = y.sin()\n    y.data.add_(1)\n    z.sum().backward()\nrun()\n"
    )
    verdict = judge(code)
    assert verdict.outcome == "silent"
    assert verdict.differences


def test_silent_corruption_seen_by_grad_only():
    code = HEAD + "y = x * 1\nz = y.sin()\ny.data.add_(1)\ntorch.autograd.grad(z.sum(), x)\n"
    assert judge(code).outcome == "silent"


def test_right_program_is_ok_and_its_gradients_were_looked_at():
    verdict = judge(HEAD + "(x.sin() * torch.rand(3)).sum().backward()\nprint('done')\n")
    assert (verdict.outcome, verdict.stdout) == ("ok", "done\n")
    assert verdict.gradients > 0


def test_a_caught_error_is_still_told():
    code = HEAD + "y = x.exp()\ny.add_(1)\ntry:\n    y.sum().backward()\nexcept RuntimeError:\n    pass\n"
    verdict = judge(code)
    assert verdict.outcome == "ok"
    assert [e.line for e in verdict.backward_errors] == [6]


def test_programs_do_not_see_each_other():
    leave = "import torch\ntorch.set_default_dtype(torch.float64)\ntorch.leftover = 1\n"
    look = "import torch\nassert torch.get_default_dtype() is torch.float32\nassert not hasattr(torch, 'leftover')\n"
    assert [v.outcome for v in judge_many([leave, look])] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("while True: pass", "timeout"),
        ("import os; os._exit(3)", "crash"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "crash"),
        ("import sys; sys.exit(2)", "raises"),
        ("import sys; sys.exit(0)", "ok"),
        ("def broken(:", "raises"),
    ],
)
def test_programs_that_end_badly(code, outcome):
    assert judge("import torch\n" + code, timeout=2).outcome == outcome
    assert judge("pass").outcome == "ok"


def test_main_guard_and_script_file():
    code = "import torch, sys\nassert sys.argv == [__file__]\nif __name__ == '__main__':\n    raise KeyError('here')\n"
    verdict = judge(code)
    assert (verdict.error_type, verdict.line) == ("KeyError", 4)


LEAK = """
import torch
w = torch.rand(4, requires_grad=True)
o = torch.optim.SGD([w], lr=0.1)
kept = []
for i in range(5):
    loss = (w * torch.rand(4)).exp().sum()
    o.zero_grad()
    loss.backward({flag})
    o.step()
    kept.append(loss{detach})
"""


def test_growth_is_measured_per_pass():
    nodes = measure(LEAK.format(flag="", detach="")).loops[6].nodes
    assert len(nodes) == 5
    assert len({b - a for a, b in itertools.pairwise(nodes)}) == 1
    assert nodes[1] > nodes[0]


def test_no_growth_without_the_graph():
    measured = measure(LEAK.format(flag="", detach=".detach()"))
    assert len(set(measured.loops[6].nodes[1:])) == 1
    assert set(measured.steps.saved_bytes) == {0}


def test_retained_bytes_are_measured():
    sizes = measure(LEAK.format(flag="retain_graph=True", detach="")).steps.saved_bytes
    assert sizes[-1] > sizes[0] > 0


def test_host_reads_by_line():
    code = (
        "import torch\nx = torch.rand(6)\nfor i in range(3):\n    float(x[0])\n    x[x > 0.5]\n"
        "    x[x > 0.5] = 0.0\n    x.cpu()\n    x + 1\n"
    )
    assert measure(code).host_reads == {
        4: {"aten::_local_scalar_dense": 3},
        5: {"aten::index(mask)": 3},
        7: {"Tensor.cpu": 3},
    }


def test_parameters_without_gradient():
    code = (
        "import torch\na = torch.rand(2, requires_grad=True)\nb = torch.rand(2, requires_grad=True)\n"
        "o = torch.optim.SGD([a, b], lr=0.1)\n(a * b.detach()).sum().backward()\no.step()\n"
    )
    assert measure(code).without_gradient == {6: ((1,), 2)}
