"""What programs ask of the installed packages is answered as the installed torch answers it."""

from __future__ import annotations

import importlib.metadata
import importlib.util

import pytest
import torch
from packaging import version

from tests.engine.analysing import analysed

PROGRAM = """\
import importlib.metadata
import importlib.util
import torch
from packaging import version

x = torch.rand(3, requires_grad=True)
y = x.exp()
if {asked}:
    y += 1
y.sum().backward()
"""

QUESTIONS = [
    "torch.__version__ >= '2.4'",
    "torch.__version__ < '2.4'",
    "torch.__version__ >= '2.13'",
    "torch.__version__ > '2.9'",
    "torch.__version__ == '1.13.1'",
    "torch.__version__ != '1.13.1'",
    "torch.__version__.startswith('1.')",
    "int(torch.__version__.split('.')[0]) >= 2",
    "version.parse(torch.__version__) >= version.parse('2.4.0')",
    "version.parse(torch.__version__) < version.parse('2.0')",
    "version.Version(torch.__version__).major < 2",
    "version.parse(version.parse(torch.__version__).base_version) >= version.parse('2.13')",
    "version.parse(torch.__version__.split('+')[0]) > version.parse('10')",
    "version.parse(importlib.metadata.version('torch')) >= version.parse('2')",
    "importlib.util.find_spec('torch') is None",
    "importlib.util.find_spec('torch') is not None",
]
UNKNOWN = [
    "importlib.util.find_spec('torchaudio') is None",
    "version.parse(importlib.metadata.version('numpy')) >= version.parse('2')",
    "version.parse(torch.__version__) >= version.parse('2.4.0a0')",
]


def certain(asked: str) -> list[bool]:
    """Whether each mistake that is seen is certain."""
    return [bool(event.certain) for event in analysed(PROGRAM.format(asked=asked)).events]


@pytest.mark.parametrize("asked", QUESTIONS)
def test_questions_have_the_answer_that_python_gives(asked: str) -> None:
    names = {"torch": torch, "version": version, "importlib": importlib}
    assert certain(asked) == ([True] if eval(asked, names) else [])


@pytest.mark.parametrize("asked", UNKNOWN)
def test_others_may_go_either_way(asked: str) -> None:
    assert certain(asked) == [False]
