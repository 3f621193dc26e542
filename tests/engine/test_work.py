"""Work that grows with what a program has made counts as steps, so that no program takes longer than its text lets it."""

from __future__ import annotations

import ast

import pytest

from gradguard.engine import Analysis
from gradguard.engine.driver import entry
from gradguard.engine.driver.wiring import PORTS
from gradguard.engine.state.path import FREE_WORK, WORK_A_STEP, BudgetExceeded, Oracle
from gradguard.engine.state.run import Run
from gradguard.findings import Certainty
from tests.engine.analysing import NO_FILES, analysed, findings
from tests.engine.bounded import MISTAKE, Outcome, checked

pytest.importorskip("resource")

STOPPED = "stopped early: this code needs more steps than the budget allows"
NESTED = "stopped early: nested too deeply"

MAML = """
import torch.nn.functional as F
w, b = torch.rand(3, 3, requires_grad=True), torch.rand(3, requires_grad=True)
x, z = torch.rand(4, 3), torch.rand(4, 3)
fast = [w, b]
for step in range({steps}):
    loss = F.mse_loss(F.linear(x, fast[0], fast[1]), z)
    grads = torch.autograd.grad(loss, fast, create_graph=True)
    fast = [p - 0.1 * g for p, g in zip(fast, grads)]
{after}
F.mse_loss(F.linear(x, fast[0], fast[1]), z).backward()
"""
SOLVER = """
def solve(apply, b, r, rs, x):
    p = r
    y = torch.rand(3, requires_grad=True)
    for step in range({steps}):
        y = y.exp()
        ap = apply(p)
        alpha = rs / (p * ap)
        x = x + alpha * p
        r = r - alpha * ap
        new = r * r
        if new < 1e-9:
            break
        p = r + (new / rs) * p
        rs = new
    return x, y
"""
LEAF = "x = torch.rand(3, requires_grad=True)\n"

WHOLE = {
    "an inner loop that is differentiated": MAML.format(steps=16, after=""),
    "a solver with an unknown operator": SOLVER.format(steps=16),
    "a chain of views": f"{LEAF}v = x * 1\n" + "v = v.t().view(-1)[0:3]\n" * 1500 + "v += 1\nv.sum().backward()\n",
    "more dimensions than a tensor has": f"{LEAF}v = x * 1\n" + "v = v[None]\n" * 3000 + "v += 1\nv.sum().backward()\n",
    "sizes that double": f"{LEAF}v = x\n" + "v = torch.cat([v, v])\n" * 1500 + "v.sum().backward()\n",
    "a hierarchy of classes": "class A0: pass\n" + "".join(f"class A{i}(A{i - 1}): pass\n" for i in range(1, 1500)),
    "definitions that wait for each other": "x0 = f()\n" + "".join(f"x{i} = x{i + 1} = f()\n" for i in range(3000)),
    "makers inside makers": "def big():\n" + "    x = torch.nn.Linear(3, 3)\n" * 3000 + "    return x\n"
    f"def one(x): return big({'dict(a=' * 60}x{')' * 60})\ndef two(x): return big({'big(a=' * 60}x{')' * 60})\n",
    "saved tensors that are written": f"{LEAF}v = x.exp()\n" + "z = v.sin()\nv += 1\n" * 1500 + "z.sum().backward()\n",
    "many parts of one module": f"net = torch.nn.ModuleList([{'torch.nn.Linear(3, 3), ' * 500}])\nnet.train()\nlist(net.parameters())\n",
    "loops inside loops": f"{LEAF}v = x.exp()\n" + "".join("  " * i + f"for i{i} in range(9):\n" for i in range(18)) + "  " * 18 + "v = v * v\n",
}  # fmt: skip
"""All of it is read."""

CUT = {
    "gradients of gradients in nested loops": MAML.format(steps=4, after="").replace("for step", "for i in range(9):\n  for j in range(9):\n   for step").replace("\n    loss", "\n      loss").replace("\n    grads", "\n      grads").replace("\n    fast", "\n      fast"),
    "a graph is differentiated again and again": f"{LEAF}v = x.exp()\n" + "v = v * v\nv.sum().backward(retain_graph=True)\n" * 2000,
    "gradients of gradients, one after the other": f"{LEAF}v = x.exp()\n" + "(v,) = torch.autograd.grad((v * v).sum(), [v], create_graph=True)\n" * 3000,
    "cuts pile up": "v = torch.rand(3, requires_grad=True)\n" + "v = v + v.detach()\n" * 5000,
    "numbers read from a growing graph": "v = torch.rand(3, requires_grad=True)\n" + "v = v + v\nv.sum().item()\n" * 3000,
    "a growing graph under no_grad": f"{LEAF}" + "x = x + x\n" * 3000 + "with torch.no_grad():\n" + "    v = x + x\n" * 3000,
    "operations on many tensors": f"{LEAF}l = [x] * 8\nfor i in range(9):\n    l = l + l\n" + "v = torch.stack(l)\n" * 2000,
    "networks that double": "net = torch.nn.Linear(3, 3)\n" + "net = torch.nn.Sequential(net, net)\n" * 60 + "net(torch.rand(3))\n",
    "gradients of many parameters": f"net = torch.nn.ModuleList([{'torch.nn.Linear(3, 3), ' * 2000}])\n" + "net.zero_grad()\n" * 1500,
    "parameters are listed again and again": f"net = torch.nn.ModuleList([{'torch.nn.Linear(3, 3), ' * 2000}])\n" + "p = list(net.parameters())\n" * 1500,
    "lists are let go in nested loops": LEAF + "".join("  " * i + "for i in range(2):\n" for i in range(40)) + "  " * 40 + "l = [x.exp()] * 8\n" + "  " * 40 + "l.clear()\n",
    "a long loop that holds much": LEAF + "".join(f"v{i} = [x]\n" for i in range(3000)) + "for i in range(9):\n" + "    l = [x.exp()]\n" * 3000,
    "modules that double are copied": "import copy\nnet = torch.nn.Linear(3, 3)\n" + "net = torch.nn.Sequential(net, copy.deepcopy(net))\n" * 16 + "list(net.parameters())\n" * 99,
}  # fmt: skip
"""The budget of steps ends in it."""

DEEP = {
    "networks inside networks": "net = torch.nn.Linear(3, 3)\n" + "net = torch.nn.Sequential(net)\n" * 3000 + "list(net.named_parameters())\nnet(torch.rand(3))\n",
    "generators around generators": "g = (v for v in [1, 2, 3])\n" + "g = (v + 1 for v in g)\n" * 3000 + "list(g)\n",
    "calls that are bound around calls": "import functools\ndef f(*a): pass\ng = f\n" + "g = functools.partial(g, 1)\n" * 3000 + "g()\n",
}  # fmt: skip
"""Python cannot follow it any further."""

TEXTS = {name: f"import torch\n{MISTAKE}{text}{MISTAKE}" for name, text in (WHOLE | CUT | DEEP).items()}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    """What was said of all of them."""
    return checked(TEXTS)


def last(name: str) -> int:
    """The line of the write at the end of a program."""
    return TEXTS[name].count("\n") - 1


@pytest.mark.parametrize("name", WHOLE)
def test_shared_work_is_done_once(name: str, outcomes: dict[str, Outcome]) -> None:
    found = outcomes[name]
    assert (set(found.limits) - {STOPPED}, found.crash) == (set(), "")
    assert (STOPPED in found.limits) is (name == "makers inside makers")
    assert found.told(3)
    assert found.told(last(name))


@pytest.mark.parametrize("name", CUT)
def test_a_program_that_grows_ends_with_its_steps(name: str, outcomes: dict[str, Outcome]) -> None:
    found = outcomes[name]
    assert (set(found.limits), found.crash) == ({STOPPED}, "")
    assert not found.told(last(name))


@pytest.mark.parametrize("name", DEEP)
def test_what_is_nested_too_deeply_costs_itself(name: str, outcomes: dict[str, Outcome]) -> None:
    found = outcomes[name]
    assert (set(found.limits), found.crash) == ({NESTED}, "")
    assert [each[:2] for each in found.findings][-1:] == [("GG101", last(name))]


def test_an_expression_that_python_cannot_follow_costs_itself() -> None:
    (found,) = checked({"": f"import torch\nv = torch.rand(3){'.exp()' * 3000}\n{MISTAKE}"}).values()
    assert len(found.limits) == 1
    assert not found.crash
    assert found.told(4)


def steps(text: str) -> int:
    """Steps that the analysis of a program took."""
    return sum(record.steps for record in taken(text).records.values())


def taken(text: str) -> Analysis:
    """What the engine makes of a program."""
    return analysed(f"import torch\n{text}")


def test_an_inner_loop_takes_as_many_steps_for_each_pass() -> None:
    """What a gradient of a gradient keeps is not kept again by each that follows."""
    few, some, many = (steps(MAML.format(steps=count, after="")) for count in (4, 8, 12))
    assert many - some < 1.5 * (some - few)


def test_an_inner_loop_of_many_passes_is_judged_as_one_of_few() -> None:
    """The graph that the loop made is freed by one backward, and another one raises."""
    few, many = (
        [(each.code, each.span.line, each.certainty) for each in findings(f"import torch\n{text}")]
        for text in (MAML.format(steps=count, after="loss.backward()") for count in (3, 12))
    )
    assert few == many == [("GG203", 12, Certainty.CERTAIN)]


def test_a_solver_takes_as_many_steps_for_each_pass() -> None:
    few, some, many = (steps(SOLVER.format(steps=count)) for count in (4, 8, 12))
    assert many - some < 1.5 * (some - few)


def run(budget: int) -> Run:
    """A run with so many steps."""
    from gradguard.ops import table

    return Run(table.load(), Oracle(), [budget], NO_FILES, PORTS)


def test_work_is_free_up_to_a_point() -> None:
    some = run(10)
    some.work(FREE_WORK)
    assert some.budget == [10]
    some.work(8 * WORK_A_STEP)
    assert some.budget == [2]
    with pytest.raises(BudgetExceeded):
        some.work(8 * WORK_A_STEP)


def test_an_entry_pays_for_what_of_the_file_is_put_back() -> None:
    """A function that reads a table of many objects costs more than it takes steps."""
    things = "class Thing:\n    def __init__(self): self.part = [1]\n" + f"TABLE = [{'Thing(), ' * 1500}]\n"
    found = taken(things + "def small(): return 1\ndef reads(): return len(TABLE) > 1\n")
    costs = {key.name: record.cost - record.steps for key, record in found.records.items() if isinstance(key, ast.FunctionDef)}  # fmt: skip
    assert costs["small"] == 0
    assert costs["reads"] > 100


def test_ways_that_were_not_gone_are_kept_as_turns() -> None:
    """The paths that wait share the answers that lead to them."""
    oracle = Oracle()
    for number in range(2000):
        oracle.decide(("#", number))
    turns = oracle.children()
    assert len(turns) == 2000
    assert len({id(turn.given) for turn in turns}) == 1
    assert turns[3].prefix == (True, True, True, False)
    assert entry.MAX_PATHS < 2000
