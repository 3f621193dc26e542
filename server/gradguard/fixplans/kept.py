"""Plans for graphs that a program keeps, cuts, or records for nothing."""

from __future__ import annotations

import ast

from gradguard.engine.domain.events import BrokenGraph, GraphKept, UnusedGraph
from gradguard.findings import Applicability, FixPlan
from gradguard.fixplans.detaching import detached, without_graph
from gradguard.fixplans.model import Context
from gradguard.fixplans.no_grad import without_grad
from gradguard.fixplans.sharing import made_with_graph


def accumulated(context: Context, event: GraphKept) -> list[FixPlan]:
    """What is added without its graph; none where that is trained, or nothing with a graph is added."""
    if not event.fed or event.trained:
        return []
    return detached(
        context,
        "Accumulate a detached value",
        without_graph(context, event),
        event.statement,
        event.place,
        event.text,
        accumulates=True,
        many=event.many,
        fed=event.fed,
    )


def stored(context: Context, event: GraphKept) -> list[FixPlan]:
    """What is stored without its graph."""
    return detached(
        context,
        "Store a detached value",
        without_graph(context, event),
        event.statement,
        event.place,
        event.text,
        many=event.many,
        inside=event.inside,
    )


def unused(context: Context, event: UnusedGraph) -> list[FixPlan]:
    """Nothing recorded where nothing is differentiated."""
    if event.why == "bare":
        title = "Put what follows under it"
        return context.plan("no-grad-rest", title, Applicability.UNSAFE, event.place.node, event.place)
    return without_grad(context, event)


def broken(context: Context, event: BrokenGraph) -> list[FixPlan]:
    """The cut mended, where it is one call."""
    place = event.place
    if event.how == "tensor":
        title = "Use `torch.stack`, which keeps the graph"
        return context.plan("stack", title, Applicability.UNSAFE, place.node, place)
    if event.how == "flag":
        # Without the flag torch would raise; what should be in the graph only the program's author knows.
        return []
    if event.how == "no-graph":
        return made_with_graph(context, event)
    if event.how == "checkpoint":
        return []
    if event.how == "no_grad":
        node = place.node
        if isinstance(node, ast.With) and (len(node.items) > 1 or node.body[0].lineno == node.lineno):
            return []
        return context.plan("record", "Record here again", Applicability.UNSAFE, place.node, place)
    return context.plan("keep-graph", "Keep it in the graph", Applicability.UNSAFE, place.node, place)
