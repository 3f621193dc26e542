"""Whatever is offered can be made: each fix of every program at hand changes it, and what it makes of it parses."""

from __future__ import annotations

import ast
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradguard.check.api import check
from gradguard.check.catalogue import catalogue
from gradguard.check.settings import Level, Settings
from gradguard.findings import Applicability, FixPlan
from gradguard.fixes.api import edits
from gradguard.fixes.edit import applied
from gradguard.source.text import Source
from tests.oracle import shared_pool
from tests.rules.pages import english
from tests.rules.pages import read as read_page

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
FOLDERS = sorted(path.name for path in FIXTURES.iterdir() if path.is_dir())
EVERYTHING = dataclasses.replace(
    Settings(), levels=tuple((rule.code, Level.WARNING) for rule in catalogue().rules if not rule.on)
)


def offered(text: str) -> Iterator[tuple[Source, FixPlan]]:
    source = Source("program.py", text)
    for finding in check(source, EVERYTHING).findings:
        for plan in finding.fixes:
            yield source, plan


def unmade(text: str) -> list[FixPlan]:
    """Plans of a program that come to nothing."""
    found = []
    for source, plan in offered(text):
        after = applied(source, edits(plan, source) or ())
        if after == text:
            found.append(plan)
        else:
            ast.parse(after)
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_in_fixtures(folder: str) -> None:
    programs = {path: path.read_bytes().decode() for path in (FIXTURES / folder).rglob("*.py")}
    assert programs
    found = {str(path.relative_to(FIXTURES)): unmade(text) for path, text in programs.items()}
    assert {path: plans for path, plans in found.items() if plans} == {}


def test_in_facts() -> None:
    lines = [json.loads(line) for line in (FIXTURES / "facts.jsonl").read_text("utf-8").splitlines()]
    prelude = lines[0]["prelude"]
    found = {line["code"]: unmade(prelude + line["code"]) for line in lines[1:]}
    assert {code: plans for code, plans in found.items() if plans} == {}


def test_on_pages() -> None:
    pages = [read_page(path) for path in english()]
    programs = [code for page in pages for part in ("Example", "Use instead") for code in page.programs(part)]
    assert sum(1 for code in programs for _ in offered(code)) > 30
    assert {code: plans for code in programs if (plans := unmade(code))} == {}


HEAD = """import logging
import torch
from torch import nn

log = logging.getLogger()
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = nn.Linear(3, 1).to(device)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
total, kept, rows = 0.0, [], []
for epoch in range(2):
    for step in range(3):
        loss = net(torch.rand(2, 3, device=device)).pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
        {line}
"""
LINES = {
    "kept[-1:] = [loss.item()]": set(),
    "kept.append(loss.item())": {"guard-read"},
    "rows = kept.append((step, loss.item()))": {"guard-read"},
    "total += loss.item(); total += 1": {"item-after-loop"},
    "total += loss.item() if step else 0": {"item-after-loop"},
    "total -= loss.item()": set(),
    "print(loss.item()); opt.step()": set(),
    "opt.step(lambda: loss.item())": set(),
    "total = torch.zeros(()).fill_(loss.item())": set(),
    "value = loss.item(); print(value)": set(),
    "if step: print(loss.item())": set(),
    "log.info(f'{loss}')": {"log-lazily"},
    "log.info(f'{loss}', extra={})": {"guard-read"},
    "log.info(f'{loss:>8}')": {"guard-read"},
    "log.info(f'{loss!r}')": {"guard-read"},
    "log.info(f'{loss=}')": {"guard-read"},
    "log.info(f'{loss}' f\"{step}\")": {"guard-read"},
    "log.info(f'{loss}' 'and more')": {"guard-read"},
    "log.info('now ' + f'{loss}')": {"guard-read"},
    "print(f'{loss}')": {"guard-read"},
    "kept.append(float(loss))": {"guard-read"},
    "kept[-1:] = [float(loss)]": set(),
    "if step: print(f'{loss}')": set(),
    "print(f'{loss}'); opt.step()": set(),
    "opt.step(lambda: f'{loss}')": set(),
    "print(n := loss.item())": set(),
    "print(f'{(n := loss)}')": set(),
}


@pytest.mark.parametrize("line", LINES)
def test_what_a_read_is_offered(line: str) -> None:
    """Only what its line allows, and that is made."""
    text = HEAD.format(line=line)
    plans = [plan for _, plan in offered(text)]
    assert {plan.kind for plan in plans} == LINES[line]
    assert unmade(text) == []
    source = Source("program.py", text)
    made = {applied(source, edits(plan, source) or ()) for plan in plans if plan.kind == "guard-read"}
    guarded = HEAD.format(line=f"if step % 100 == 0:\n            {line}")
    assert made == ({guarded} if "guard-read" in LINES[line] else set())


def test_a_read_that_a_generator_gives_is_not_made_seldom() -> None:
    """Who takes the values would get fewer of them."""
    for given, kinds in (("yield loss.item()", set()), ("print(loss.item())", {"guard-read"})):
        body = HEAD.format(line=given).partition("for epoch")
        inside = "".join(f"    {line}\n" for line in (body[1] + body[2]).splitlines())
        text = f"{body[0]}def losses():\n{inside}    yield 0\nfor value in losses():\n    print(value)\n"
        assert {plan.kind for _, plan in offered(text)} == kinds


KEPT = {
    "kept.append({'loss': loss})": "kept.append({'loss': loss.detach()})",
    "kept.append(loss if step else None)": "kept.append(loss.detach() if step else None)",
    "kept.append((step, f'{step}', loss))": "kept.append((step, f'{step}', loss.detach()))",
    "kept.append([float(step), loss * 2])": "kept.append([float(step), (loss * 2).detach()])",
    "kept: list = kept + [loss]": "kept: list = kept + [loss.detach()]",
    "result = {'loss': loss}; kept.append(result)": None,
    "kept.append(dict(loss=loss))": None,
    "kept.append([each for each in [loss]])": None,
    "kept.append(lambda: loss)": None,
}


@pytest.mark.parametrize("line", KEPT)
def test_what_a_kept_value_is_offered(line: str) -> None:
    """The tensor is detached where the statement names it, and nothing is offered where it does not."""
    text = HEAD.format(line=line)
    made = [
        applied(source, edits(plan, source) or ())
        for source, plan in offered(text)
        if plan.kind == "detach-kept"
    ]
    wanted = KEPT[line]
    assert made == ([] if wanted is None else [HEAD.format(line=wanted)])


GRAPH = "import torch\nx = torch.rand(3, requires_grad=True)\nh = x.exp()\na, b = h.sum(), h.mean()\n"
NUMBER_FIRST = """import torch
y = torch.rand(3, requires_grad=True) * 2
total = 0.0
for i in range(3):
    y[-1] **= total
    total -= y.sum()
(y.sum() + total).backward()
"""
NOT_OFFERED = {
    "a clone of what is a number in the first pass": ("clone", NUMBER_FIRST),
    "a backward that may not run": (
        "sum-backwards",
        GRAPH + "if x.sum() > 0:\n    a.backward()\nb.backward()\n",
    ),
    "a backward of its own in a loop": (
        "sum-backwards",
        GRAPH + "for i in range(1):\n    a.backward()\nb.backward()\n",
    ),
    "on one line": ("sum-backwards", GRAPH + "a.backward(); b.backward()\n"),
    "with a gradient": ("sum-backwards", GRAPH + "a.backward(torch.ones(()))\nb.backward()\n"),
    "a flag that comes with others": (
        "drop-retain-graph",
        GRAPH + "options = {'retain_graph': True}\na.backward(**options)\n",
    ),
    "no flag, a graph of gradients": ("drop-retain-graph", GRAPH + "a.backward(create_graph=True)\n"),
    "a write in a loop before the backward": (
        "move-after",
        GRAPH + "for i in range(2):\n    h += 1\na.backward()\nh.sum().backward()\n",
    ),
}

ARGUMENTS = {
    "p.mul_(2).add_(1)": "p = p.mul(2).add(1)",
    "p.add_(1)": "p = p.add(1)",
    "p[0].add_(1)": "p = p.clone()\n    p[0].add_(1)",
    "p[0] += 1": "p = p.clone()\n    p[0] += 1",
    "(p * 1).view(-1)[:2].add_(1)": "",
    "fill(p.view(-1)[0])": "",
    "torch.relu_(p)": "p = torch.relu(p)",
}


@pytest.mark.parametrize("line", ARGUMENTS)
def test_writes_to_arguments(line: str) -> None:
    """Only a write in sight, and only where its target can be bound anew."""
    text = (
        f"import torch\ndef fill(q):\n    q.zero_()\n\ndef step(p: torch.Tensor):\n    {line}\n    return p\n"
    )
    made = [
        applied(source, edits(plan, source) or ()) for source, plan in offered(text) if plan.span.line == 6
    ]
    assert set(made) == ({text.replace(line, ARGUMENTS[line])} if ARGUMENTS[line] else set())


@pytest.mark.parametrize("name", NOT_OFFERED)
def test_what_is_not_offered(name: str) -> None:
    kind, text = NOT_OFFERED[name]
    found = check(Source("program.py", text), EVERYTHING).findings
    assert found
    assert kind not in {plan.kind for finding in found for plan in finding.fixes}
    assert unmade(text) == []


WALRUS = "import torch\ny = torch.rand(3, requires_grad=True).exp()\n{write}\ny.sum().backward()\n"
BOUND_ON_THE_WAY = {
    "y *= (y := y * 2)": "y = y * (y := y * 2)",
    "y += (y := y.exp())": "y = y + (y := y.exp())",
    "y *= (z := y * 2)": "y = y * (z := y * 2)",
}


@pytest.mark.parametrize("write", BOUND_ON_THE_WAY)
def test_a_name_that_its_own_operand_binds(write: str) -> None:
    text = WALRUS.format(write=write)
    assert unmade(text) == []
    source, plan = next((source, plan) for source, plan in offered(text) if plan.kind == "out-of-place")
    after = applied(source, edits(plan, source) or ())
    assert after == WALRUS.format(write=BOUND_ON_THE_WAY[write])
    asked = [(text, after, True)]
    assert shared_pool().call("tests.fixes.judging:verdicts", timeout=300, programs=asked) == [[]]


@pytest.mark.parametrize("write", ["zero_()", "fill_(1)", "eq_(1)"])
def test_nothing_is_offered_for_a_value_that_has_no_name(write: str) -> None:
    text = (
        "import functools\nimport torch\n\n\n@functools.cache\ndef made():\n    return torch.ones(3)\n\n\n"
        f"w = torch.rand(3, requires_grad=True)\ny = w * made()\nmade().{write}\ny.sum().backward()\n"
    )
    assert list(offered(text))
    assert unmade(text) == []


def test_nothing_is_offered_for_an_item_that_its_own_operand_binds() -> None:
    text = WALRUS.format(write="ys = [y]\nys[0] *= (y := ys.pop() * 2)")
    assert unmade(text) == []


UNSAFE = {
    "a clone of overlapping windows": (
        "clone-before",
        "import torch\ny = torch.rand(3, 3, requires_grad=True) * 2\nu = y.unfold(0, 2, 1)\nw = (u * u).sum()\n"
        "u.data -= 0.1 * u.detach()\nw.backward()\nprint(u)\n",
    ),
    "a clone of the operand of a write whose elements overlap": (
        "clone",
        "import torch\nz = torch.rand(3, 3, requires_grad=True).exp().unfold(0, 2, 1)\nz /= z\nz.sum().backward()\n",
    ),
    "an op that reads what it writes": (
        "out-of-place",
        "import torch\nh = torch.rand(3, 3, requires_grad=True).exp()\n"
        "h.addbmm_(h.expand(2, 3, 3), h.expand(2, 3, 3))\nh.sum().backward()\n",
    ),
    "an op that reads the very tensor that it writes, elsewhere": (
        "out-of-place",
        "import torch\nh = torch.rand(3, 3, requires_grad=True).exp()\n"
        "h.masked_scatter_(h > 1.5, h)\nh.sum().backward()\n",
    ),
    "an op that refuses out of place what it takes in place": (
        "out-of-place",
        "import torch\nfrom torch.nn import functional as F\nh = torch.rand(3, requires_grad=True).exp()\n"
        "F.hardtanh_(h, 2)\nh.sum().backward()\n",
    ),
}


@pytest.mark.parametrize("name", UNSAFE)
def test_what_may_change_numbers_is_not_called_safe(name: str) -> None:
    kind, text = UNSAFE[name]
    plans = [
        p for f in check(Source("program.py", text), Settings()).findings for p in f.fixes if p.kind == kind
    ]
    assert plans
    assert all(plan.applicability is not Applicability.SAFE for plan in plans)


def test_another_meaning_of_an_argument_is_no_rewrite() -> None:
    head = "import torch\nfrom torch.nn import functional as F\nh = torch.rand(3, requires_grad=True).exp()\n"
    unlike = Source("program.py", f"{head}F.elu_(h, 1.0, 0.5)\nh.sum().backward()\n")
    alike = Source("program.py", f"{head}F.elu_(h, 1.0)\nh.sum().backward()\n")
    for source, expected in ((unlike, "h = h.clone()\nF.elu_(h, 1.0, 0.5)"), (alike, "h = F.elu(h, 1.0)")):
        plans = [p for f in check(source, Settings()).findings for p in f.fixes if p.kind == "out-of-place"]
        made = edits(plans[0], source)
        assert made is not None
        assert expected in applied(source, made)
