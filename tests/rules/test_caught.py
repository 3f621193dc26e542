"""An error of torch that the program catches is told as an information, with the handler beside it."""

from __future__ import annotations

import textwrap

import pytest

from gradguard.findings import Finding, Severity
from tests.marks import findings
from tests.oracle import judge

WRITES = "w = torch.rand(3, requires_grad=True)\n"


def _told(text: str) -> list[Finding]:
    return list(findings(text))


def _program(body: str, handler: str) -> str:
    tried = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return f"import torch\n\n{WRITES}y = w.exp()\ny += 1\nloss = y.sum()\ntry:\n{tried}\n{handler}\n"


@pytest.mark.parametrize(
    ("body", "handler"),
    [
        ("loss.backward()", "except RuntimeError as error:\n    print(error)"),
        ("loss.backward()", "except (ValueError, RuntimeError):\n    pass"),
        ("w += 1", "except Exception:\n    pass"),
        ("loss.backward()", "except:\n    pass"),
        ("def f():\n    loss.backward()\nf()", "except RuntimeError:\n    pass"),
    ],
)
def test_an_error_that_is_caught_is_an_information(body: str, handler: str) -> None:
    text = _program(body, handler)
    assert judge(text).outcome == "ok"
    told = [one for one in _told(text) if any("catches" in each.message for each in one.related)]
    assert [one.severity for one in told] == [Severity.INFORMATION]


@pytest.mark.parametrize(
    "handler",
    [
        "except ValueError:\n    pass",
        "except RuntimeError as error:\n    if 'memory' not in str(error):\n        raise",
        "finally:\n    print('done')",
    ],
)
def test_one_that_is_not_caught_is_an_error(handler: str) -> None:
    text = _program("loss.backward()", handler)
    assert judge(text).outcome == "raises"
    assert [one.severity for one in _told(text)] == [Severity.ERROR]


def test_a_handler_around_a_whole_training_only_reports() -> None:
    body = "print(1)\nprint(2)\nprint(3)\nloss.backward()"
    told = _told(_program(body, "except Exception as error:\n    print(error)"))
    assert [one.severity for one in told] == [Severity.ERROR]
