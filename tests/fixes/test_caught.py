"""A repair of what torch refuses is not made unasked where the program goes on after the error; torch shows why."""

from __future__ import annotations

import pytest

from gradguard.check.api import check
from gradguard.check.settings import Settings
from gradguard.findings import Applicability, FixPlan
from gradguard.fixes.api import edits
from gradguard.fixes.edit import applied
from gradguard.source.text import Source
from tests.oracle import shared_pool

HEAD = """import contextlib
import torch

torch.manual_seed(0)
x = torch.rand(3, 3, requires_grad=True)
h = x.exp()
y = torch.ones(3, 1).expand(3, 3)
with torch.inference_mode():
    w = torch.ones(3, 3)
"""
RAISING = {
    "GG203": ("h.sum().backward()", "h.mean().backward()"),
    "GG102": ("(x * x).sum().backward()", "x -= 0.1 * x.grad"),
    "GG104": ("pass", "y.add_(1)"),
    "GG107": ("pass", "(x * w).sum().backward()"),
}
OWN = """class Forgiving:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return kind is not None


"""
BY_YIELD = """@contextlib.contextmanager
def forgiving():
    try:
        yield
    except RuntimeError:
        pass


"""
END = "print(x.sum(), y.sum(), x.grad is None or x.grad.sum())\n"


def body(lines: tuple[str, str], indent: str) -> str:
    return "".join(f"{indent}{line}\n" for line in lines)


def caught(way: str, lines: tuple[str, str]) -> str:
    inner = body(lines, "    ")
    function = f"def step():\n    global x\n{inner}\n\n"
    return (
        HEAD
        + {
            "directly": f"try:\n{inner}except RuntimeError:\n    pass\n",
            "among others": f"try:\n{inner}except (ValueError, Exception) as error:\n    print(type(error))\n",
            "by a manager": f"{OWN}with Forgiving():\n{inner}",
            "by a generator": f"{BY_YIELD}with forgiving():\n{inner}",
            "by a caller": f"{function}try:\n    step()\nexcept:\n    pass\n",
            "by a caller of a caller": f"{function}def run():\n    step()\n\n\ntry:\n    run()\nexcept Exception:\n    pass\n",
        }[way]
        + END
    )


def free(way: str, lines: tuple[str, str]) -> str:
    inner = body(lines, "    ")
    function = f"def step():\n    global x\n{inner}\n\n"
    return (
        HEAD
        + {
            "nothing around": body(lines, ""),
            "something else caught": f"try:\n{inner}except KeyboardInterrupt:\n    pass\n",
            "raised again": f"try:\n{inner}except RuntimeError:\n    print(1)\n    raise\n",
            "only finished": f"try:\n{inner}finally:\n    print(1)\n",
            "caught elsewhere": f"try:\n    print(int('a'))\nexcept Exception:\n    pass\n{body(lines, '')}",
            "behind a try": f"try:\n    pass\nexcept Exception:\n    pass\nelse:\n{inner}",
            "a function": f"{function}try:\n    print(1)\nexcept Exception:\n    pass\nstep()\n",
            "a manager": f"with contextlib.nullcontext():\n{inner}",
        }[way]
        + END
    )


CAUGHT = ("directly", "among others", "by a manager", "by a generator", "by a caller", "by a caller of a caller")  # fmt: skip
FREE = ("nothing around", "something else caught", "raised again", "only finished", "caught elsewhere", "behind a try", "a function", "a manager")  # fmt: skip
CASES = [(code, way) for code in RAISING for way in CAUGHT]


def first(text: str, code: str) -> FixPlan:
    findings = check(Source("program.py", text), Settings()).findings
    return next(plan for finding in findings if finding.code == code for plan in finding.fixes)


def made(text: str, plan: FixPlan) -> str:
    source = Source("program.py", text)
    return applied(source, edits(plan, source) or ())


@pytest.mark.parametrize("code", RAISING)
@pytest.mark.parametrize("way", CAUGHT)
def test_unsafe_where_it_is_caught(code: str, way: str) -> None:
    assert first(caught(way, RAISING[code]), code).applicability is Applicability.UNSAFE


@pytest.mark.parametrize("code", RAISING)
@pytest.mark.parametrize("way", FREE)
def test_safe_where_the_program_ends(code: str, way: str) -> None:
    assert first(free(way, RAISING[code]), code).applicability is Applicability.SAFE


def test_torch_shows_the_difference() -> None:
    asked = [
        (text, made(text, first(text, code)), True)
        for code, way in CASES
        for text in [caught(way, RAISING[code])]
    ]
    answers = shared_pool().call("tests.fixes.judging:verdicts", timeout=300, programs=asked)
    assert [case for case, wrong in zip(CASES, answers) if not wrong] == []
