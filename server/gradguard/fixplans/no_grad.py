"""How far around a forward call `torch.no_grad()` may reach: over nothing that a backward needs."""

from __future__ import annotations

import ast
import re
from functools import partial

from gradguard.engine.domain.events import UnusedGraph
from gradguard.engine.domain.tensors import Place
from gradguard.findings import Applicability, FixPlan
from gradguard.fixplans.blocks import settled
from gradguard.fixplans.inference import stays_inside
from gradguard.fixplans.model import Context
from gradguard.fixplans.safety import asks, caches_weights, pads
from gradguard.source.blocks import above, kept

_EVALUATES = re.compile(
    r"(^|_)(eval|evaluate|evaluation|valid|validate|validation|test|predict|infer|inference)(_|$)"
)
_DIFFERENTIATES = frozenset({"backward", "grad", "step", "requires_grad_"})
_WRAPPED = (ast.For, ast.While, ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)
TITLE = "Run it under `torch.no_grad()`"
INFERENCE = "Run it under `torch.inference_mode()`"


def without_grad(context: Context, event: UnusedGraph) -> list[FixPlan]:
    """A function that only evaluates is decorated; else the loop around the call is wrapped; else its statement."""
    place = event.place
    around = _around(context.analysis.sources[place.path].tree, place.node)
    if event.why == "target":
        around = around[-1:]
    quiet = [node for node in around if context.events.once("quiet", node, partial(_quiet, context, node))]
    sure = event.why != "target" and not event.shared
    sure = sure and not (asks(context) or pads(context) or caches_weights(context))
    safe = settled(context, Applicability.SAFE if sure else Applicability.UNSAFE)
    functions = [node for node in around if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    if functions and functions[-1] in quiet and _EVALUATES.search(functions[-1].name.lower()):
        return [
            *context.plan("decorate", TITLE, safe, functions[-1], place),
            *_without_versions(context, safe, functions[-1], place),
        ]
    within = around[around.index(functions[-1]) + 1 :] if functions else around
    loops = [node for node in within if isinstance(node, (ast.For, ast.While)) and node in quiet]
    chosen = loops[0] if loops else around[-1] if around else None
    if not isinstance(chosen, _WRAPPED):
        return []
    # A single statement of a loop that trains is too close to what is trained to be changed unasked.
    trains = not loops and any(
        isinstance(node, (ast.For, ast.While)) and kept(node, "_gradguard_differentiated", _differentiates)
        for node in within
    )
    sure = chosen in quiet and not trains
    safe = safe if sure else Applicability.UNSAFE
    plans = context.plan("no-grad", TITLE, safe, chosen, place)
    return [*plans, *_without_versions(context, safe, chosen, place)] if sure else plans


def _without_versions(
    context: Context, applicability: Applicability, chosen: ast.stmt, place: Place
) -> list[FixPlan]:
    """`torch.inference_mode()`, which also saves the counting of writes, where no tensor gets out of it."""
    trees = [source.tree for source in context.analysis.sources.values()]
    tree = context.analysis.sources[place.path].tree
    if not context.events.once("inside", chosen, partial(stays_inside, trees, tree, chosen)):
        return []
    return context.plan("inference-mode", INFERENCE, applicability, chosen, place)


def _around(tree: ast.Module, node: ast.AST) -> list[ast.stmt]:
    """Statements that hold a node, from the outermost to the innermost."""
    return [one for one in reversed(above(tree, node)) if isinstance(one, ast.stmt)]


def _quiet(context: Context, node: ast.stmt) -> bool:
    return not _needed(context, node) and not _written_later(context, node)


def _written_later(context: Context, around: ast.stmt) -> bool:
    """Whether a name that is bound there is written elsewhere: torch refuses that for a view made under no_grad."""
    inside = set(ast.walk(around))
    bound = {part.id for part in inside if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    return any(
        node not in inside and not bound.isdisjoint(kept(node, "_gradguard_named", _named))
        for node in context.analysis.sharing
    )


def _named(node: ast.AST) -> frozenset[str]:
    return frozenset(part.id for part in ast.walk(node) if isinstance(part, ast.Name))


def _needed(context: Context, around: ast.stmt) -> bool:
    """Whether a backward goes through anything recorded there, or the statement differentiates itself."""
    return kept(around, "_gradguard_differentiated", _differentiates) or any(
        part in context.analysis.needed for part in ast.walk(around)
    )


def _differentiates(around: ast.stmt) -> bool:
    return any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr in _DIFFERENTIATES
        for part in ast.walk(around)
    )
