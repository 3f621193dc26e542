"""What an imported module defines is made when it is asked for, and is then what running the whole module gives."""

from __future__ import annotations

import ast

import pytest

from gradguard.check.workspace import ReadingWorkspace
from gradguard.engine import analyse
from gradguard.engine.domain.events import SavedTensorMutated
from gradguard.engine.python import lazy
from gradguard.engine.state import faults
from gradguard.ops import table
from gradguard.source.text import Source

SPOIL = """\
def spoil(x):
    y = x.exp()
    y += 1
    return y

def keep(x):
    return x.exp()
"""

USE = """
x = torch.rand(3, requires_grad=True)
{call}.sum().backward()
"""


def found(files: dict[str, str]) -> list[tuple[str, int]]:
    """Where `main.py` is seen to spoil a saved tensor for certain."""
    workspace = ReadingWorkspace(files.__contains__, files.get)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(faults, "RERAISE", True)
        analysis = analyse(Source("/w/main.py", files["/w/main.py"]), table.load(None), workspace)
    assert not analysis.limits
    return [
        (event.place.path, event.place.line)
        for event in analysis.events
        if isinstance(event, SavedTensorMutated) and event.certain
    ]


def spoils(lib: str, call: str, imports: str = "import lib") -> bool:
    """Whether the call is seen to spoil a tensor, from a script and from a function that nobody calls."""
    text = f"import torch\n{SPOIL}{lib}"
    use = USE.format(call=call)
    body = "".join(f"    {line}\n" for line in use.splitlines())
    as_script = bool(found({"/w/lib.py": text, "/w/main.py": f"import torch\n{imports}\n{use}"}))
    as_function = bool(
        found({"/w/lib.py": text, "/w/main.py": f"import torch\n{imports}\ndef main():\n{body}"})
    )
    assert as_script == as_function
    return as_script


WAYS = [
    ("chosen = spoil\n", "lib.chosen(x)"),
    ("def chosen(x):\n    return x\nchosen = spoil\n", "lib.chosen(x)"),
    ("chosen, other = spoil, keep\n", "lib.chosen(x)"),
    ("chosen: object = spoil\n", "lib.chosen(x)"),
    ("table = {'a': spoil}\n", "lib.table['a'](x)"),
    ("table = dict()\ntable['a'] = spoil\n", "lib.table['a'](x)"),
    ("table = {'a': keep}\ntable.update(a=spoil)\n", "lib.table['a'](x)"),
    ("table = {'a': keep}\nold = table.pop('a')\ntable['a'] = spoil\n", "lib.table['a'](x)"),
    ("table = list()\nsize = table.append(spoil)\n", "lib.table[0](x)"),
    (
        "table = list()\ndef enter(f):\n    table.append(f)\n    return f\nspoil = enter(spoil)\n",
        "(lib.spoil and lib.table[0](x))",
    ),
    (
        "def put(into, f):\n    into.append(f)\n    return f\ntable = [keep]\nlast = put(table, spoil)\n",
        "lib.table[1](x)",
    ),
    (
        "class Table:\n    def __init__(self):\n        self.held = {}\n"
        "    def __call__(self, f):\n        self.held[f.__name__] = f\n        return f\n"
        "enter = Table()\n@enter\ndef chosen(x):\n    return spoil(x)\n",
        "lib.enter.held['chosen'](x)",
    ),
    ("class Net:\n    act = keep\nNet.act = spoil\n", "lib.Net.act(x)"),
    (
        "class Base:\n    def run(self, x):\n        return spoil(x)\nclass Net(Base):\n    pass\n",
        "lib.Net().run(x)",
    ),
    (
        "def swapped(cls):\n    cls.run = lambda self, x: spoil(x)\n    return cls\n"
        "class Net:\n    def run(self, x):\n        return x\nNet = swapped(Net)\n",
        "lib.Net().run(x)",
    ),
    ("if True:\n    chosen = spoil\nelse:\n    chosen = keep\n", "lib.chosen(x)"),
    ("chosen = keep\nfor chosen in (keep, spoil):\n    pass\n", "lib.chosen(x)"),
    ("def pick():\n    global chosen\n    chosen = spoil\nchosen = dict(a=keep)\npick()\n", "lib.chosen(x)"),
    ("def call(f, x):\n    return f(x)\ndef chosen(x, f=spoil):\n    return call(f, x)\n", "lib.chosen(x)"),
    ("first = (keep, spoil)\nchosen = first[1]\nfirst = (keep, keep)\n", "lib.chosen(x)"),
    ("class A:\n    f = spoil\nchosen = A.f\nclass A:\n    f = keep\n", "lib.chosen(x)"),
    (
        "class A:\n    f = spoil\ndef made():\n    return A\nchosen = made()\nclass A:\n    f = keep\n",
        "lib.chosen.f(x)",
    ),
    ("chosen = keep\ndel chosen\nfrom lib2 import *\n", "lib.spoil(x)"),
]


@pytest.mark.parametrize(("lib", "call"), WAYS)
def test_a_name_has_the_value_that_the_whole_module_gives_it(lib: str, call: str) -> None:
    assert spoils(lib, call)


@pytest.mark.parametrize(("lib", "call"), WAYS)
def test_and_no_other_value(lib: str, call: str) -> None:
    swapped = lib.replace("spoil", "\0").replace("keep", "spoil").replace("\0", "keep")
    if call.startswith("lib.spoil") or "lib.spoil" in call:
        call = call.replace("lib.spoil", "lib.keep")
    assert not spoils(swapped, call)


def test_functions_do_not_see_what_others_did_to_a_definition_made_late() -> None:
    lib = f"import torch\n{SPOIL}class Net:\n    act = keep\nheld = dict(a=keep)\n"
    main = """\
import torch
import lib

def changes(x):
    lib.Net.act = lib.spoil
    lib.held["a"] = lib.spoil
    return x

def uses():
    x = torch.rand(3, requires_grad=True)
    lib.Net.act(x).sum().backward()

def uses_other():
    x = torch.rand(3, requires_grad=True)
    lib.held["a"](x).sum().backward()

def does_both():
    x = torch.rand(3, requires_grad=True)
    changes(x)
    lib.held["a"](x).sum().backward()
"""
    assert found({"/w/lib.py": lib, "/w/main.py": main}) == [("/w/lib.py", 4)]
    alone = main[: main.index("def does_both")]
    assert found({"/w/lib.py": lib, "/w/main.py": alone}) == []


def test_a_definition_that_fails_leaves_its_name_unknown() -> None:
    lib = "def fails(f):\n    raise ValueError\n@fails\ndef chosen(x):\n    return spoil(x)\n"
    assert not spoils(lib, "lib.chosen(x)")
    assert spoils(lib, "lib.spoil(x)")


def test_what_is_made_late_was_made_before_what_uses_it() -> None:
    lib = "import torch\nweight = torch.ones(3).requires_grad_()\n"
    main = """\
import torch
import lib

for step in range(2):
    loss = (lib.weight * 2).exp().sum()
    loss.backward()
    with torch.no_grad():
        lib.weight -= lib.weight.grad
"""
    assert found({"/w/lib.py": lib, "/w/main.py": main}) == []


def test_statements_wait_that_only_give_names_values() -> None:
    text = """\
import a
def f(): ...
class C: ...
x = f()
y, (z, *_) = 1, (2, 3)
n = 3
if f: w = 1
w = f()
v += 1
v = f()
x.y = 2
t = (q := f())
"""
    tree = ast.parse(text)
    waiting = [statement.lineno for statement, one in zip(tree.body, lazy.plan(tree)) if one is not None]
    assert waiting == [2, 3, 4, 12]
