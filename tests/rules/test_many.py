"""Many findings in one file: each costs what it concerns and not the whole file, and of very many the later ones have no fixes."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from gradguard.findings import Limit
from gradguard.fixplans.plans import BRIEF, WITH_FIXES, Plans
from gradguard.rules import registry
from gradguard.source import blocks
from gradguard.source.text import Source
from tests.engine.analysing import analysed

START = "import torch\nnet = torch.nn.Linear(3, 3)\nx = torch.rand(3, requires_grad=True)\n"


def repeated(text: str, count: int) -> str:
    """A text so many times, each time with another number for `#`."""
    return "".join(text.replace("#", str(number)) for number in range(count))


PROGRAMS: dict[str, Callable[[int], str]] = {
    "writes": lambda n: "def f(x):\n" + repeated("    y# = x.exp()\n    y# += 1\n    y#.sum().backward()\n", n),
    "sums": lambda n: repeated("t# = 0\n", n) + "for i in range(9):\n    z = net(x).sum()\n" + repeated("    t# += z\n", n),
    "stores": lambda n: repeated("l# = []\n", n) + "for i in range(9):\n" + repeated("    l#.append(x.exp())\n", n),
    "loops": lambda n: repeated("t# = 0\nfor i in range(9):\n    t# += net(x).sum()\n", n),
    "networks": lambda n: "net.eval()\nfor i in range(9):\n" + repeated("    o# = net(torch.rand(3))\n    print(o#.argmax())\n", n),
    "refusals": lambda n: "try:\n    x.exp()\nexcept RuntimeError:\n    pass\n"
    + repeated("def f#():\n    w = torch.rand(1).expand(3)\n    w += 1\n", n),
}  # fmt: skip


def visits(program: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Nodes that are looked at in order to tell what the engine found, and to plan fixes of it."""
    analysis = analysed(START + program)
    looked = 0
    real = ast.iter_child_nodes

    def counting(node: ast.AST) -> object:
        nonlocal looked
        looked += 1
        return real(node)

    with monkeypatch.context() as patch:
        patch.setattr(ast, "iter_child_nodes", counting)
        plans = Plans(analysis)
        assert len([plans.of(each) for each in registry.told(analysis)]) >= program.count("\n") // 6
    return looked


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_file_of_twice_as_many_mistakes_costs_about_twice_as_much(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    some, more = (visits(PROGRAMS[name](count), monkeypatch) for count in (40, 80))
    assert more < 3 * some


def planned(count: int) -> tuple[list[bool], list[str]]:
    """Whether each finding of a text with so many has fixes, and what is said of those that have none."""
    analysis = analysed(START + PROGRAMS["writes"](count))
    limits: list[Limit] = []
    plans = Plans(analysis, limits)
    found = sorted(registry.told(analysis), key=lambda each: each.finding.sort_key)
    return [bool(plans.of(each)) for each in found], [limit.message for limit in limits]


def test_of_very_many_findings_the_first_have_fixes_and_all_are_told() -> None:
    assert planned(WITH_FIXES + 20) == ([True] * WITH_FIXES + [False] * 20, [BRIEF])


def test_nothing_is_said_where_all_have_fixes() -> None:
    assert planned(WITH_FIXES) == ([True] * WITH_FIXES, [])


NESTED = """
class A:
    def f(self, x):
        try:
            for y in x:
                with y:
                    if y: z = [lambda: y]; pass
        except ValueError as error:
            print(error)
        else:
            return 1
    b = 2
a = 1; c = 3
"""


def test_the_way_up_from_a_node_is_the_way_down_to_it() -> None:
    tree = Source("a.py", NESTED).tree
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not hasattr(node, "lineno"):
            continue
        way = blocks.above(tree, node)
        assert way[0] is node
        assert [parents[one] for one in way] == [*way[1:], tree]
        down = blocks.way_down(
            tree, node.lineno, node.lineno, lambda one, node=node: node in set(ast.walk(one))
        )  # type: ignore[misc]
        assert [(id(block), index) for block, index in blocks.around(tree, node)] == [
            (id(block), index) for block, index in down
        ]


def test_a_node_of_another_tree_is_nowhere() -> None:
    tree = Source("a.py", NESTED).tree
    assert blocks.above(tree, ast.parse(NESTED).body[0]) == []
