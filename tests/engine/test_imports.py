"""Imports inside a workspace: whatever way a name comes, it is what the other file defines, as of its import."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gradguard.check.workspace import ReadingWorkspace
from gradguard.engine import analyse
from gradguard.engine.domain.events import SavedTensorMutated
from gradguard.ops import table
from gradguard.source.text import Source

SPOILS = """\
import torch

def spoil(x):
    y = x.exp()
    y += 1
    return y
"""

USE = """
x = torch.rand(3, requires_grad=True)
{call}.sum().backward()
"""


def found(files: Mapping[str, str], path: str = "/w/main.py") -> list[tuple[str, int]]:
    """Where `path` is seen to spoil a saved tensor for certain."""
    workspace = ReadingWorkspace(files.__contains__, files.get)
    analysis = analyse(Source(path, files[path]), table.load(None), workspace)
    assert not analysis.limits
    return [
        (event.place.path, event.place.line)
        for event in analysis.events
        if isinstance(event, SavedTensorMutated) and event.certain
    ]


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("from lib.deep import spoil", "spoil(x)"),
        ("from lib import spoil", "spoil(x)"),
        ("from lib import *", "spoil(x)"),
        ("from lib import deep", "deep.spoil(x)"),
        ("import lib.deep", "lib.deep.spoil(x)"),
        ("import lib.deep as d", "d.spoil(x)"),
        ("import lib", "lib.spoil(x)"),
        ("def late(x):\n    from lib.deep import spoil\n    return spoil(x)", "late(x)"),
    ],
)
@pytest.mark.parametrize(
    "inside", ["from .deep import spoil", "from .deep import *", "from lib.deep import spoil"]
)
def test_every_way_to_a_name(imports: str, call: str, inside: str) -> None:
    files = {
        "/w/lib/__init__.py": inside,
        "/w/lib/deep.py": SPOILS,
        "/w/main.py": f"import torch\n{imports}\n" + USE.format(call=call),
    }
    assert found(files) == [("/w/lib/deep.py", 5)]


@pytest.mark.parametrize("first", ["a", "b"])
def test_modules_that_import_each_other(first: str) -> None:
    files = {
        "/w/a.py": "import b\nfrom b import twice\n" + SPOILS,
        "/w/b.py": "import a\nfrom a import spoil\ndef twice(x):\n    return spoil(x) * 2\n",
        "/w/main.py": f"import torch\nimport {first}\nfrom b import twice\n" + USE.format(call="twice(x)"),
    }
    assert found(files) == [("/w/a.py", 7)]


def test_a_package_that_imports_its_part_by_name() -> None:
    files = {
        "/w/lib/__init__.py": "from . import deep\n",
        "/w/lib/deep.py": SPOILS,
        "/w/main.py": "import torch\nfrom lib import deep\n" + USE.format(call="deep.spoil(x)"),
    }
    assert found(files) == [("/w/lib/deep.py", 5)]


def test_a_name_that_is_its_own_import_is_unknown() -> None:
    files = {
        "/w/a.py": "from b import thing\n",
        "/w/b.py": "from a import thing\n",
        "/w/main.py": "import torch\nfrom a import thing\nthing(torch.rand(3, requires_grad=True).exp()).add_(1)\n",
    }
    assert found(files) == []


def test_what_a_module_made_was_made_at_its_import_wherever_it_is_first_used() -> None:
    files = {
        "/w/shared.py": "import torch\nweight = torch.rand(3, requires_grad=True)\nscale = weight.exp()\n",
        "/w/main.py": """\
import torch
from shared import weight, scale

for step in range(3):
    with torch.inference_mode():
        print(scale.shape)
y = scale * 2
scale += 1
y.sum().backward()
""",
    }
    # Made with grad mode on, in no loop: `exp` saved its result, and the write spoils it.
    assert found(files) == [("/w/main.py", 8)]


def test_a_module_that_switches_grad_mode_does_so_at_its_import() -> None:
    files = {
        "/w/quiet.py": "import torch\ntorch.set_grad_enabled(False)\n",
        "/w/main.py": "import torch\nimport quiet\n" + SPOILS + USE.format(call="spoil(x)"),
    }
    assert found(files) == []


def test_what_nobody_asks_for_is_not_run() -> None:
    files = {
        "/w/heavy.py": "x = 0\n" + "x = x + 1\n" * 200_000,
        "/w/lib.py": "import heavy\nfrom heavy import x\n" + SPOILS,
        "/w/main.py": "import torch\nfrom lib import spoil\n" + USE.format(call="spoil(x)"),
    }
    assert found(files) == [("/w/lib.py", 7)]


def test_what_is_there_for_type_checkers_only_does_not_run() -> None:
    files = {
        "/w/lib.py": SPOILS,
        "/w/main.py": """\
import torch
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lib import spoil
else:
    spoil = torch.clone

x = torch.rand(3, requires_grad=True)
spoil(x).sum().backward()
""",
    }
    assert found(files) == []


def test_imports_that_never_end_are_told() -> None:
    deep = 40
    files = {
        f"/w/m{n}.py": f"from m{n + 1} import Base as Other\nclass Base(Other):\n    pass\n"
        for n in range(deep)
    }
    files[f"/w/m{deep}.py"] = "class Base:\n    pass\n"
    files["/w/main.py"] = "import torch\nfrom m0 import Base\nmade = Base()\n"
    workspace = ReadingWorkspace(files.__contains__, files.get)
    source = Source("/w/main.py", files["/w/main.py"])
    limits = [limit.message for limit in analyse(source, table.load(None), workspace).limits]
    assert limits == ["imported modules are read in part: nested too deeply"]


@pytest.mark.parametrize("line", ["1, " * 20, "a=b;" * 10, "f(x)[y];" * 5, "x+y-z;" * 8])
def test_a_module_of_nothing_but_short_words_takes_as_many_steps_as_its_tree(line: str) -> None:
    """It is parsed where as much text of another kind would be; its tree is many times as large."""
    dense = f"x = (\n{line}\n)\n" if "," in line else f"{line}\n"
    usual = "        self.projection = nn.Linear(config.hidden_size, config.vocabulary)\n"
    texts = {
        "dense": dense * (1_500_000 // len(dense)),
        "usual": "if 0:\n" + usual * (1_500_000 // len(usual)),
    }
    for name, text in texts.items():
        files = {
            "/w/lib.py": f"{text}{SPOILS}",
            "/w/main.py": f"import torch\nfrom lib import spoil\n{USE.format(call='spoil(x)')}",
        }
        workspace = ReadingWorkspace(files.__contains__, files.get)
        source = Source("/w/main.py", files["/w/main.py"])
        limits = [limit.message for limit in analyse(source, table.load(None), workspace).limits]
        lib = workspace.source("/w/lib.py")
        assert lib is not None
        assert (lib._parsed is None) is (name == "dense")
        assert any(message.startswith("imported modules are read in part") for message in limits) is (
            name == "dense"
        )
