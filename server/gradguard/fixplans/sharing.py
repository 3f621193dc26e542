"""Plans for two backwards that go through one graph: which of them is meant to stop at what they share, or to keep it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradguard.engine.domain.events import BrokenGraph, SecondBackward
from gradguard.engine.domain.tensors import Place
from gradguard.findings import Applicability, FixPlan, spans_text
from gradguard.fixplans.blocks import between
from gradguard.fixplans.model import Context
from gradguard.rules.model import quoted
from gradguard.source.blocks import Block, around


def stopped(context: Context, event: SecondBackward) -> list[FixPlan]:
    """`D(fake.detach())` in one of two losses that use `fake`, where an optimizer steps in between, as in a GAN.

    That of the loss whose optimizer has no part of what made `fake`; where that is not seen, of the first.
    """
    path = event.place.path
    tree = context.analysis.sources[path].tree
    name = event.text
    if not name or event.first.path != path or event.second.path != path:
        return []
    found = between(tree, event.first.node, event.second.node)
    if found is None or not any(_steps(statement) for statement in found[0][found[1] : found[2]]):
        return []
    block, one, two = found
    first, second = _slice(block, one), _slice(block, two)
    uses = [
        [use for index in sorted(own) for use in _arguments(block[index], name)]
        for own in (first - second | {one}, second - first | {two})
    ]
    if not all(uses):
        return []
    chosen = uses[1] if _trained_first(tree, block, found, name) else uses[0]
    spans = [context.analysis.span(Place(path, use)) for use in chosen]
    return context.plan(
        "detach-kept",
        f"Detach {quoted(name)} where this loss uses it",
        Applicability.UNSAFE,
        chosen[0],
        Place(path, chosen[0]),
        **({"also": spans_text(*spans[1:])} if spans[1:] else {}),
    )


def graph_kept(context: Context, event: SecondBackward) -> list[FixPlan]:
    """The graph kept for the second: `retain_graph=True`; `create_graph=True` for gradients that are used on.

    None where an optimizer steps in between: what it changes, the second backward would still need.
    """
    call, path = event.first.node, event.place.path
    if event.first.path != path or not isinstance(call, ast.Call) or event.carried is not None:
        return []
    found = between(context.analysis.sources[path].tree, call, event.second.node)
    if found is not None and any(_steps(statement) for statement in found[0][found[1] : found[2]]):
        return []
    if ast.unparse(call.func).rpartition(".")[2] == "grad":
        return _flag(
            context, event.first, "create_graph", "Let the gradient be differentiated: `create_graph=True`"
        )
    if any(word.arg == "retain_graph" and not isinstance(word.value, ast.Constant) for word in call.keywords):
        return []  # the program decides it
    return _flag(context, event.first, "retain_graph", "Keep the graph for the second: `retain_graph=True`")


def made_with_graph(context: Context, event: BrokenGraph) -> list[FixPlan]:
    """`create_graph=True` for the gradients that a loss without a graph is made of."""
    path = event.place.path
    ways = around(context.analysis.sources[path].tree, event.place.node)
    if not ways:
        return []
    block, index = ways[-1]
    for at in sorted(_slice(block, index) - {index}, reverse=True):
        for part in ast.walk(block[at]):
            if isinstance(part, ast.Call) and ast.unparse(part.func).endswith("autograd.grad"):
                title = "Let the gradient be differentiated: `create_graph=True`"
                return _flag(context, Place(path, part), "create_graph", title)
    return []


def _flag(context: Context, place: Place, flag: str, title: str) -> list[FixPlan]:
    call = place.node
    assert isinstance(call, ast.Call)
    if any(word.arg is None for word in call.keywords):
        return []  # `**options` may give it
    return context.plan("set-flag", title, Applicability.UNSAFE, call, place, flag=flag)


def _slice(block: Block, index: int) -> set[int]:
    """The statements of a block, up to one, that bind what it needs."""
    needed = _loads(block[index])
    found = {index}
    for at in range(index - 1, -1, -1):
        bound = _binds(block[at])
        if bound & needed:
            found.add(at)
            needed |= _loads(block[at])
            if isinstance(block[at], ast.Assign):
                needed -= bound - _loads(block[at])
    return found


def _binds(statement: ast.stmt) -> set[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
        targets = [statement.target]
    return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}


def _loads(statement: ast.stmt) -> set[str]:
    return {
        part.id
        for part in ast.walk(statement)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
    } | (_binds(statement) if isinstance(statement, ast.AugAssign) else set())


def _arguments(statement: ast.stmt, name: str) -> Iterator[ast.expr]:
    """Where a statement gives a name to a call, as it is."""
    for part in ast.walk(statement):
        if isinstance(part, ast.Call):
            given = [*part.args, *(word.value for word in part.keywords)]
            yield from (each for each in given if ast.unparse(each) == name)


def _steps(statement: ast.stmt) -> bool:
    return any(
        isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "step"
        for part in ast.walk(statement)
    )


def _trained_first(tree: ast.Module, block: Block, found: tuple[Block, int, int], name: str) -> bool:
    """Whether the optimizer that steps behind the first backward was given what makes the value of a name."""
    _, one, two = found
    makers = {
        ast.unparse(statement.value.func)
        for statement in block[:one]
        if name in _binds(statement)
        and isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Call)
    }
    steppers = {
        ast.unparse(part.func.value)
        for statement in block[one:two]
        for part in ast.walk(statement)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "step"
    }
    return any(
        isinstance(part, ast.Assign)
        and any(ast.unparse(target) in steppers for target in part.targets)
        and any(f"{maker}.parameters" in ast.unparse(part.value) for maker in makers)
        for part in ast.walk(tree)
    )
