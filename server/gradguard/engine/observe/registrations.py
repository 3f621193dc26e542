"""Hooks that are registered again and again, and that nothing removes.

Each registration stays until its handle removes it. A hook registered in a loop, on something that is older than the
pass, runs once more in each pass: n times in the n-th, and one on a parameter that gives a new gradient changes it n times.
Seen with torch 2.13: halving it in such a hook leaves 1/2, 1/4, 1/8 of the gradient. A tensor of the pass itself takes
its hooks along when it goes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gradguard.engine.domain import classes, spelling
from gradguard.engine.domain.events import HookAgain
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import FunctionV, Hook, Instance
from gradguard.engine.state.run import Run
from gradguard.source.nodes import walk

OFTEN = frozenset({"forward", "training_step"})
"""Methods of a module that run once a step."""


def passes(run: Run) -> tuple[tuple[int, int], ...]:
    """The passes of loops that are running."""
    return tuple((loop.number, loop.iteration) for loop in run.loops)


def note(run: Run, owner: Tensor | Instance, before: Iterable[object], hook: Hook, node: ast.AST) -> None:
    """A hook is registered on something that has other hooks already. A handle that is kept may be used later."""
    if not isinstance(node, ast.Call) or not _thrown_away(run.statement, node):
        return
    text = spelling.source_text(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    scales = isinstance(owner, Tensor)
    for earlier in before:
        if not isinstance(earlier, Hook) or earlier.place.node is not hook.place.node:
            continue
        numbers = dict(earlier.passes)
        again = next(
            (loop for loop in run.loops if numbers.get(loop.number, loop.iteration) < loop.iteration), None
        )
        if again is not None:
            run.emit(HookAgain(hook.place, True, text, again.place, "", scales))
            return
    method = run.functions[-1] if run.functions else None
    if method is not None and _runs_often(method, run.statement) and _older(owner, method):
        run.emit(HookAgain(hook.place, False, text, None, method.name, scales))


def _thrown_away(statement: ast.stmt | None, node: ast.AST) -> bool:
    if not isinstance(statement, ast.Expr):
        return False
    value = statement.value
    return value is node or (isinstance(value, (ast.ListComp, ast.SetComp)) and value.elt is node)


def _runs_often(method: FunctionV, statement: ast.stmt | None) -> bool:
    """Whether each call of a method that runs once a step comes to a statement."""
    if method.name not in OFTEN or method.owner is None or isinstance(method.node, ast.Lambda):
        return False
    return classes.is_subclass(method.owner, "torch.nn.Module") and statement in method.node.body


def _older(owner: Tensor | Instance, method: FunctionV) -> bool:
    """Whether what is registered on was there before the call."""
    made = owner.created if isinstance(owner, Tensor) else owner.made
    if isinstance(owner, Tensor) and not owner.parameter:
        return False
    return made is None or not any(made.node is part for part in walk(method.node))
