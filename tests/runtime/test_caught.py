"""Errors of torch that the program catches itself are reported at their statement, and only those."""

from __future__ import annotations

import json
import re

import pytest
from tests.oracle.pool import Died, shared_pool
from tests.runtime.running import PROCESS, RUN, Ran

HEAD = "import contextlib\nimport torch\nw = torch.rand(3, requires_grad=True)\n"
# Program after HEAD, whose line numbers go on from 4: what is reported.
PROGRAMS: dict[str, tuple[str, set[tuple[int, str]]]] = {
    "leaf": ("try:\n    w.add_(1)\nexcept RuntimeError:\n    pass\n", {(5, "GG102")}),
    "operator on a leaf": ("try:\n    w += 1\nexcept RuntimeError as error:\n    print(error)\n", {(5, "GG102")}),
    "item of a leaf": ("try:\n    w[0] = 1\nexcept:\n    pass\n", {(5, "GG102")}),
    "function of torch": ("try:\n    torch.relu_(w)\nexcept Exception:\n    pass\n", {(5, "GG102")}),
    "out of a leaf": ("try:\n    torch.nn.functional.relu(w, inplace=True)\nexcept (KeyError, RuntimeError):\n    pass\n", {(5, "GG102")}),
    "one of several views": ("a, b = (w * 1).chunk(2)\ntry:\n    a.mul_(2)\nexcept RuntimeError:\n    pass\n", {(6, "GG103")}),
    "view made under no_grad": (
        "y = w * 1\nwith torch.no_grad():\n    v = y[:2]\ntry:\n    v.mul_(2)\nexcept RuntimeError:\n    pass\n",
        {(8, "GG103")},
    ),
    "inference tensor saved": (
        "with torch.inference_mode():\n    c = torch.rand(3)\ntry:\n    y = w * c\nexcept RuntimeError:\n    pass\n",
        {(7, "GG107")},
    ),
    "inference tensor written": (
        "with torch.inference_mode():\n    c = torch.rand(3)\ntry:\n    c.add_(1)\nexcept RuntimeError:\n    pass\n",
        {(7, "GG107")},
    ),
    "expanded": ("e = torch.rand(1).expand(3)\ntry:\n    e.add_(1)\nexcept RuntimeError:\n    pass\n", {(6, "GG104")}),
    "memory of an operand": ("s = torch.rand(3, 3)\ntry:\n    s.t().copy_(s)\nexcept RuntimeError:\n    pass\n", {(6, "GG104")}),
    "part of the memory of an operand": ("s = torch.rand(4)\ntry:\n    s[1:].mul_(s[:-1])\nexcept RuntimeError:\n    pass\n", {(6, "GG104")}),
    "suppressed": ("with contextlib.suppress(RuntimeError):\n    w.add_(1)\n", {(5, "GG102")}),
    "raised as another": (
        "try:\n    try:\n        w.add_(1)\n    except RuntimeError as error:\n        raise KeyError('x') from error\n"
        "except KeyError:\n    pass\n",
        {(6, "GG102")},
    ),
    "in a function called in a loop": (
        "def work(t):\n    t.add_(1)\nfor _ in range(5):\n    try:\n        work(w)\n    except RuntimeError:\n        continue\n",
        {(5, "GG102")},
    ),
    "thrown into a generator": (
        "def steps():\n    while True:\n        try:\n            yield 1\n        except RuntimeError:\n            pass\n"
        "it = steps()\nnext(it)\ntry:\n    w.add_(1)\nexcept RuntimeError as error:\n    it.throw(error)\n",
        {(13, "GG102")},
    ),
    "argument made in inference mode": (
        "with torch.inference_mode():\n    c = torch.rand(3)\ndef work(t):\n    try:\n        return w * t\n"
        "    except RuntimeError:\n        return None\nwork(c)\n",
        {(11, "GG107")},
    ),
    "in a thread": ("import threading\nt = threading.Thread(target=lambda: w.add_(1))\nt.start()\nt.join()\n", {(5, "GG102")}),
    "another error": ("try:\n    w @ torch.rand(5)\nexcept RuntimeError:\n    pass\n", set()),
    "an error of the program": ("try:\n    raise RuntimeError('a leaf')\nexcept RuntimeError:\n    pass\n", set()),
    "detached": ("try:\n    w.detach().add_(1)\nexcept RuntimeError:\n    pass\n", set()),
}  # fmt: skip


def run(files: dict[str, str], *argv: str) -> Ran:
    ran = shared_pool().call(RUN, timeout=120, argv=list(argv), files=files)
    assert not isinstance(ran, Died), ran
    return ran


def reported(ran: Ran) -> list[tuple[str, int, str]]:
    return [
        (f["file"], f["line"], f["code"])
        for f in json.loads(ran.files[".gradguard/last-run.json"])["findings"]
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_caught(name):
    body, expected = PROGRAMS[name]
    ran = run({"train.py": HEAD + body + "print('end')\n"}, "train.py")
    assert ran.stdout.endswith("end\n")
    assert reported(ran) == [("train.py", *each) for each in sorted(expected)], ran.stderr
    assert ran.code == (1 if expected else 0)


def inside(body: str, opening: str, start: str) -> str:
    """A program whose statements stand inside a block, on the lines that they have after HEAD."""
    return "\n".join([start, "", opening, *(f"    {line}" for line in body.splitlines()), ""])


@pytest.mark.parametrize("light", [False, True], ids=["full", "light"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_caught_inside_monitor(name, light):
    """The frame of the block was compiled before, and runs when the monitor starts."""
    body, expected = PROGRAMS[name]
    start = "import contextlib, gradguard, sys, torch; w = torch.rand(3, requires_grad=True)"
    text = inside(body, f"with gradguard.monitor(light={light}) as m:", start)
    text += "print(sorted((f.span.line, f.code) for f in m.findings), m.report.troubles, sys.gettrace())\n"
    ran = shared_pool().call(PROCESS, timeout=120, argv=["it.py"], files={"it.py": text}, watched=False)
    assert not isinstance(ran, Died), ran
    assert ran.code == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == f"{sorted(expected)} () None"


def test_caught_in_a_test_with_the_fixture():
    """pytest has rewritten the assertions of these functions."""
    files = {}
    start = "import contextlib, torch"
    opening = "def test_it(gradguard_monitor, w=torch.rand(3, requires_grad=True)):"
    for number, (body, _) in enumerate(PROGRAMS.values()):
        files[f"test_{number}.py"] = inside(body, opening, start) + "    assert torch\n"
    _, output = shared_pool().call("tests.runtime.running:run_pytest", timeout=240, files=files)
    told = re.findall(r"^test_(\d+)\.py:(\d+):\d+: error (GG\d+) ", output, re.MULTILINE)
    expected = [
        (str(n), str(line), code) for n, (_, all) in enumerate(PROGRAMS.values()) for line, code in all
    ]
    assert sorted(told) == sorted(expected), output


TRACED = """import gradguard, sys, torch
x = torch.rand(3, requires_grad=True)
def trace(frame, event, argument):
    return None
sys.settrace(trace)
with gradguard.monitor() as m:
    try:
        x.add_(1)
    except RuntimeError:
        pass
print(sys.gettrace() is trace, m.findings, [limit.message[:27] for limit in m.limits])
"""


def test_another_tracer_is_left_alone():
    ran = shared_pool().call(PROCESS, timeout=120, argv=["it.py"], files={"it.py": TRACED}, watched=False)
    assert ran.stdout == "True () ['Something else traces lines']\n", ran


def test_torch_s_words_are_shown():
    ran = run({"train.py": HEAD + PROGRAMS["leaf"][0]}, "train.py")
    assert "torch: a leaf Variable that requires grad is being used in an in-place operation." in ran.stderr


HELPER = """from __future__ import annotations
import torch

def guarded(t: Unknown) -> str:
    'What it says.'
    try:
        t.add_(1)
    except RuntimeError:
        return "caught"
    return ""
"""


@pytest.mark.parametrize("argv", [["train.py"], ["-m", "train"]], ids=["script", "module"])
def test_caught_in_an_imported_module(argv):
    train = "import torch\nfrom package.helper import guarded\nprint(guarded(torch.rand(2, requires_grad=True)), guarded.__doc__)\n"
    ran = run({"train.py": train, "package/__init__.py": "", "package/helper.py": HELPER}, *argv)
    assert ran.stdout == "caught What it says.\n"
    assert reported(ran) == [("package/helper.py", 7, "GG102")]


CONTROL = """import sys, traceback
def kinds():
    for make in (KeyError, ValueError, RuntimeError, OSError, StopIteration):
        try:
            try:
                raise make("x")
            except (KeyError, ValueError) as error:
                yield "first", repr(error), sys.exc_info()[0].__name__
            except RuntimeError:
                yield "second", traceback.format_exc().splitlines()[-1], sys.exc_info()[0].__name__
            else:
                yield "no"
        except* OSError:
            print("group", sys.exc_info()[0].__name__)
        except* StopIteration as group:
            print(group.exceptions, sys.exc_info()[1] is group)
for each in kinds():
    print(each)
try:
    1 / 0
except ArithmeticError:
    try:
        raise LookupError("l")
    except Exception as error:
        print(repr(error.__context__), error.__traceback__.tb_lineno, sys.exc_info()[1] is error)
    print(sys.exc_info()[0])
print(sys.exc_info())
"""


def test_handlers_do_what_they_did(tmp_path):
    import subprocess
    import sys

    if sys.version_info < (3, 11):
        pytest.skip("except* is newer")
    script = tmp_path / "train.py"
    script.write_text(CONTROL)
    plain = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    ran = run({"train.py": CONTROL}, "train.py")
    assert ran.stdout == plain.stdout
