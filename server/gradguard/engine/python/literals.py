"""Displays of nothing but constants, such as the tables at the top of a library's modules.

Their items cannot do anything while they are evaluated, so they are made in one go: a table of a thousand names
costs about as much as a few calls, and is counted as that.

    NAMES = OrderedDict([("bert", "BertModel"), ("gpt2", "GPT2Model"), ...])
"""

from __future__ import annotations

import ast

from gradguard.engine.domain.tensors import Place
from gradguard.engine.domain.tokens import token
from gradguard.engine.domain.values import DictV, ListV, TupleV, Value
from gradguard.engine.state import bounds
from gradguard.engine.state.run import Run

Display = ast.Tuple | ast.List | ast.Set | ast.Dict

_DISPLAYS = (ast.Tuple, ast.List, ast.Set, ast.Dict)

FEW = 16
"""Parts of a display that are counted as a step each, as they are elsewhere."""
PARTS_A_STEP = 16
"""Parts beyond these that count as one."""


def parts(node: Display) -> int:
    """How many nodes a display of constants has; 0 where it holds anything else."""
    # Remembered on the tree itself, which lives as long as the answer does.
    known: int | None = getattr(node, "_gradguard_parts", None)
    if known is None:
        known = _counted(node)
        node._gradguard_parts = known  # type: ignore[union-attr]
    return known


def _counted(node: Display) -> int:
    total = 1
    for item in (*node.keys, *node.values) if isinstance(node, ast.Dict) else node.elts:
        if isinstance(item, ast.Constant):
            total += 1
        elif isinstance(item, _DISPLAYS):
            inner = parts(item)
            if not inner:
                return 0
            total += inner
        else:
            return 0
    return total


def value(run: Run, path: str, node: Display) -> Value:
    """The value of a display of constants in the file `path`; its first step was counted."""
    count = parts(node)
    run.step(min(count, FEW) - 1 + max(count - FEW, 0) // PARTS_A_STEP)
    return _made(run, path, node)


def _made(run: Run, path: str, node: ast.expr | None) -> Value:
    if isinstance(node, ast.Constant):
        return bounds.constant(run, node.value)
    if isinstance(node, ast.Dict):
        table = DictV(made=Place(path, node))
        for key, item in zip(node.keys, node.values):
            known = _made(run, path, key)
            table.items[token(known)] = (known, _made(run, path, item))
        return table
    assert isinstance(node, (ast.Tuple, ast.List, ast.Set))
    items = [_made(run, path, item) for item in node.elts]
    if isinstance(node, ast.Tuple):
        return TupleV(tuple(items))
    return ListV(items, made=Place(path, node), kind="set" if isinstance(node, ast.Set) else "list")
