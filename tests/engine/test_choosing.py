"""Which conditions make further paths: those whose ways differ in something that the tape notices."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from gradguard.engine.driver import entry
from gradguard.findings import Certainty
from tests.engine.analysing import analysed, findings

HEAD = """
import argparse
import random
import time
import torch

args = argparse.ArgumentParser().parse_args()
x = torch.rand(3, requires_grad=True)
"""
LOGS = {
    "seeds": "if not args.seed:\n    args.seed = int(time.time())\nrandom.seed(args.seed)\n",
    "tracks": "if args.track:\n    import wandb\n    log = wandb.init(name=args.name)\n",
    "tells": "if args.verbose:\n    print('name', args.name)\nelse:\n    pass\n",
    "refuses": "if not args.data or args.data == 'none':\n    raise ValueError(args.data)\n",
    "goes on": "for one in args.items:\n    if one.done:\n        print(one.name)\n        break\n",
    "leaves the rest of a pass": "for one in args.items:\n    if one.skip:\n        continue\n    if args.verbose:\n        print(one)\n",
    "sets the rate": "opt = torch.optim.SGD([x], lr=0.1)\nif args.anneal:\n    rate = args.rate * 2\n    opt.param_groups[0]['lr'] = rate\n",
}
TRAINS = "(x * 2).sum().backward()\n"
MATTERS = {
    "writes": "y = x.exp()\nif flag:\n    y += 1\ny.sum().backward()\n",
    "writes where the same is asked again": (
        "y = x.exp()\nif flag:\n    print('on')\nif flag:\n    y += 1\ny.sum().backward()\n"
    ),
    "sets what steers a later write": (
        "y = x.exp()\nlate = False\nif flag:\n    late = True\nif late:\n    y += 1\ny.sum().backward()\n"
    ),
    "writes after others have gone on": (
        "y = x.exp()\nfor step in range(1):\n    if not flag:\n        continue\n    y += 1\ny.sum().backward()\n"
    ),
    "rebinds what is written": "y = x * 2\nif flag:\n    y = x.exp()\ny += 1\ny.sum().backward()\n",
    "writes in what it calls": (
        "def spoil(y):\n    y += 1\ny = x.exp()\nif flag:\n    spoil(y)\ny.sum().backward()\n"
    ),
    "writes in its other way": "y = x.exp()\nif not flag:\n    print('off')\nelse:\n    y += 1\ny.sum().backward()\n",
}


@pytest.fixture
def paths(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each path that was run."""
    run, own = [], entry._run
    monkeypatch.setattr(entry, "_run", lambda *given: (run.append(1), own(*given))[1])
    return run


@pytest.mark.parametrize("name", LOGS)
def test_a_condition_that_the_tape_does_not_notice_makes_no_path(name: str, paths: list[int]) -> None:
    analysed(HEAD + LOGS[name] + TRAINS)
    assert len(paths) == 1


def test_many_conditions_share_paths(paths: list[int]) -> None:
    chooses = "".join(f"if args.way{n}:\n    y = y * {n + 2}\n" for n in range(9))
    analysed(HEAD + "y = x\n" + chooses + "y.sum().backward()\n")
    assert len(paths) == 1 + 5


def raises(text: str) -> bool:
    """Whether torch refuses a program."""
    try:
        exec(compile(text, "program.py", "exec"), {})
    except RuntimeError:
        return True
    return False


@pytest.mark.parametrize("name", MATTERS)
def test_a_condition_that_decides_over_a_mistake_makes_one(name: str, paths: list[int]) -> None:
    text = "import torch\nx = torch.rand(3, requires_grad=True)\n{flag}" + MATTERS[name]
    assert torch.is_grad_enabled()
    assert raises(text.format(flag="flag = True\n"))
    assert not raises(text.format(flag="flag = False\n"))
    found = findings(
        text.format(flag="import argparse\nflag = argparse.ArgumentParser().parse_args().flag\n")
    )
    assert [each.certainty for each in found if each.code == "GG101"] == [Certainty.LIKELY]
    assert len(paths) > 1


MANY = """
import argparse
import torch
args = argparse.ArgumentParser().parse_args()
x = torch.rand(3, requires_grad=True)
y = x.exp()
z = x
{many}
y.sum().backward()
"""
WAYS = "".join(f"if args.way{n}:\n    z = z * {n}\n" for n in range(5))


@pytest.mark.parametrize("last", ["z = z.exp(); raise ValueError", "z = z.exp(); exit()", "z = z.sin()"])
def test_a_mistake_of_one_way_is_not_certain_however_the_other_conditions_end(last: str) -> None:
    """Torch takes the program where `args.late` does not hold."""
    many = f"if args.late:\n    y += 1\n{WAYS}if args.fine:\n    z = z * 2\nelse:\n    {last}\n"
    found = findings(MANY.format(many=many))
    assert [each.certainty for each in found if each.code == "GG101"] == [Certainty.LIKELY]


def test_what_stands_behind_a_condition_that_is_answered_otherwise_is_tried_too() -> None:
    inner = "".join(
        f"    {line}\n" for line in f"{WAYS}if args.fine:\n    z = z * 2\nelse:\n    y += 1".split("\n")
    )
    found = findings(MANY.format(many=f"if args.train:\n{inner}    z.sum().backward()"))
    assert [each.certainty for each in found if each.code == "GG101"] == [Certainty.LIKELY]


def test_a_mistake_that_needs_one_of_many_conditions_answered_otherwise_is_found() -> None:
    """Torch refuses the program where `args.copies` alone does not hold, and takes it where nothing or all holds."""
    program = f"{{head}}x = torch.rand(3, requires_grad=True)\ny = x.exp()\nz = x\n{WAYS}{{last}}y.sum().backward()\n"
    last = "if args.copies:\n    y = y.clone()\nif args.writes:\n    y += 1\nelse:\n    z = z.sin()\n"
    held = "import torch\nclass args:\n    copies = {copies}\n    writes = {writes}\n" + "".join(
        f"    way{n} = {{rest}}\n" for n in range(5)
    )
    for copies, writes, rest in ((True, True, True), (False, False, False), (False, True, True)):
        head = held.format(copies=copies, writes=writes, rest=rest)
        assert raises(program.format(head=head, last=last)) is (writes and not copies)
    asks = "import argparse\nimport torch\nargs = argparse.ArgumentParser().parse_args()\n"
    found = findings(program.format(head=asks, last=last))
    assert [each.certainty for each in found if each.code == "GG101"] == [Certainty.LIKELY]


PAIRS = {
    "chooses and chooses": (
        "if args.first:\n    y = x.exp()\nelse:\n    y = x * 2\n",
        "if args.second:\n    y = y.clone()\ny += 1\n",
    ),
    "writes and copies": ("y = x.exp()\nif args.first:\n    y += 1\n", "if args.second:\n    y = x.exp()\n"),
    "writes and rewrites": (
        "y = x.exp()\nw = y\nif args.first:\n    w = x.exp()\n    x.data.mul_(2)\n",
        "if args.second:\n    x.data.mul_(3)\nelse:\n    w += 1\n",
    ),
}
"""Two conditions, of which one must hold and the other must not for a mistake, or neither."""


@pytest.mark.parametrize("between", ["", WAYS], ids=["two", "many"])
@pytest.mark.parametrize("name", PAIRS)
def test_a_mistake_that_needs_one_answer_to_each_of_two_conditions_is_found(name: str, between: str) -> None:
    first, second = PAIRS[name]
    text = (
        f"{{head}}x = torch.rand(3, requires_grad=True)\nz = x\n{first}{between}{second}y.sum().backward()\n"
    )
    rest = "".join(f"    way{n} = True\n" for n in range(5))
    held = "import torch\nclass args:\n    first = {}\n    second = {}\n" + rest
    outcomes = [raises(text.format(head=held.format(*way))) for way in product((True, False), repeat=2)]
    assert sum(outcomes) == 1
    asks = "import argparse\nimport torch\nargs = argparse.ArgumentParser().parse_args()\n"
    found = findings(text.format(head=asks))
    assert [each.certainty for each in found if each.code == "GG101"] == [Certainty.LIKELY]
