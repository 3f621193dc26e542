"""Work that can show nothing is left out, and what an entry shows stays as it was."""

from __future__ import annotations

from gradguard.check.workspace import ReadingWorkspace
from gradguard.engine import Analysis, analyse
from gradguard.engine.domain.events import SavedTensorMutated
from gradguard.ops import table
from gradguard.source.text import Source

SPOIL = """
def spoil(x):
    y = x.exp()
    y += 1
    return y
"""


def analysed(files: dict[str, str]) -> Analysis:
    """What the engine makes of `/w/main.py` among these files."""
    workspace = ReadingWorkspace(files.__contains__, files.get)
    return analyse(Source("/w/main.py", files["/w/main.py"]), table.load(None), workspace)


def spoiled(analysis: Analysis) -> list[tuple[int, bool | None]]:
    """Line and certainty of each write to a saved tensor."""
    return [(e.place.line, e.certain) for e in analysis.events if isinstance(e, SavedTensorMutated)]


def test_a_table_of_constants_uses_up_no_budget() -> None:
    rows = "\n".join(f'    ("name{i}", "Class{i}", {{"size": {i}, "of": [1, 2, 3]}}),' for i in range(20_000))
    files = {
        "/w/main.py": "import torch\nfrom names import TABLE, spoil\n"
        "x = torch.rand(3, requires_grad=True)\nif TABLE[3][2]['size'] == 3:\n    spoil(x).sum().backward()\n",
        "/w/names.py": f"import torch\nTABLE = [\n{rows}\n]\n{SPOIL}",
    }
    analysis = analysed(files)
    assert not analysis.limits
    assert len(spoiled(analysis)) == 1


def test_a_display_makes_a_new_object_each_time() -> None:
    text = """
import torch
def rows():
    return [[1, 2], [3, 4]]
x = torch.rand(3, requires_grad=True)
one = rows()
one[0].append(5)
y = x.exp()
if len(rows()[0]) == 2:
    y += 1
y.sum().backward()
"""
    assert spoiled(analysed({"/w/main.py": text})) == [(10, True)]


def test_a_module_whose_import_has_two_ways_makes_a_script_uncertain() -> None:
    lib = """
import os
import torch
if os.environ.get("FAST"):
    def change(y):
        y += 1
        return y
else:
    def change(y):
        return y + 1
"""
    main = """
import torch
from lib import change
x = torch.rand(3, requires_grad=True)
y = x.exp()
change(y).sum().backward()
y.sum().backward()
"""
    analysis = analysed({"/w/main.py": main, "/w/lib.py": lib})
    assert spoiled(analysis) == [(6, False)]


def test_what_an_entry_does_to_a_global_is_not_seen_by_the_next() -> None:
    text = """
import functools
import torch
class Registry:
    items = []
    def add(self, one):
        self.items.append(one)
        return one
REGISTRY = Registry()
add = REGISTRY.add
later = functools.partial(add, 3)
def a_first(x):
    {first}
    return x
def b_second(x: torch.Tensor):
    w = x.exp()
    if len(Registry.items) == 0:
        w += 1
    w.sum().backward()
"""
    for first in (
        "REGISTRY.items.append(1)",
        "REGISTRY.add(1)",
        "add(2)",
        "later()",
        "Registry.items.append(1)",
    ):
        seen = spoiled(analysed({"/w/main.py": text.format(first=first)}))
        assert [line for line, _ in seen] == [18], first
