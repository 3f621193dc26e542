"""Plans for backward calls: one for two, a flag less, a step behind them."""

from __future__ import annotations

import ast

from gradguard.engine.domain.events import RetainGraph, SavedTensorMutated, SecondBackward
from gradguard.findings import Applicability, FixPlan, spans_text
from gradguard.fixplans.blocks import after, between, function_around, settled
from gradguard.fixplans.caught import caught
from gradguard.fixplans.detaching import detached
from gradguard.fixplans.model import Context
from gradguard.fixplans.safety import hooks, looks_into_graph
from gradguard.fixplans.sharing import graph_kept, stopped
from gradguard.rules.model import quoted
from gradguard.source.loops import alone


def graph_used_again(context: Context, event: SecondBackward) -> list[FixPlan]:
    """State is detached where it is put away, or behind the backward; backwards of one graph become one, or keep it."""
    many = {"many": "1"} if event.many else {}
    carried = event.carried
    path = event.place.path
    tree = context.analysis.sources[path].tree
    if carried is None:
        one_file = event.first.path == path == event.second.path
        summed = _summed(context, event, tree) if one_file else []
        return stopped(context, event) or [*summed, *graph_kept(context, event)]
    title = f"Detach {quoted(event.text)}"
    node = carried.node
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Attribute, ast.Subscript)):
        return detached(context, title, Applicability.UNSAFE, node, carried, event.text, many=event.many)
    behind = event.second
    if (
        behind.path == path
        and event.text
        and function_around(tree, node) is function_around(tree, behind.node)
    ):
        title += " after the backward"
        return context.plan(
            "detach-after", title, Applicability.UNSAFE, behind.node, behind, name=event.text, **many
        )
    return []


def _summed(context: Context, event: SecondBackward, tree: ast.Module) -> list[FixPlan]:
    """`(a + b).backward()` for two backwards that follow one another."""
    found = between(tree, event.first.node, event.second.node)
    if found is None or found[2] != found[1] + 1:
        return []
    block, one, two = found
    source = context.analysis.sources[event.first.path]
    if not _is_plain(block[one], event.first.node) or not _is_plain(block[two], event.second.node):
        return []
    if not alone(source, block, one):
        return []
    span = context.analysis.span(event.second)
    second = spans_text(span)
    together = not event.apart and not hooks(context) and not caught(context, event.second)
    return context.plan(
        "sum-backwards",
        "Sum both and go backward once",
        Applicability.SAFE if together else Applicability.UNSAFE,
        event.first.node,
        event.first,
        second=second,
    )


def _is_plain(statement: ast.stmt, node: ast.AST) -> bool:
    """`loss.backward()` and nothing else, whatever becomes of the graph."""
    return (
        isinstance(statement, ast.Expr)
        and statement.value is node
        and isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "backward"
        and not node.args
        and all(keyword.arg == "retain_graph" for keyword in node.keywords)
    )


def retained(context: Context, event: RetainGraph) -> list[FixPlan]:
    """The flag dropped where nothing can need it."""
    if not event.certain:
        return []
    node = event.place.node
    if not isinstance(node, ast.Call):
        return []
    data: dict[str, str] = {}
    if not any(keyword.arg == "retain_graph" for keyword in node.keywords):
        name = ast.unparse(node.func)
        method = isinstance(node.func, ast.Attribute) and not name.endswith(
            ("autograd.backward", "autograd.grad")
        )
        index = 1 if method else 3 if name.endswith("grad") else 2
        if index >= len(node.args) or any(isinstance(arg, ast.Starred) for arg in node.args):
            return []  # it comes with `**options`
        data["position"] = str(index)
    shared = event.shared or looks_into_graph(context)
    safe = settled(context, Applicability.UNSAFE if shared else Applicability.SAFE)
    return context.plan("drop-retain-graph", "Drop `retain_graph=True`", safe, node, event.place, **data)


def stepped(context: Context, event: SavedTensorMutated) -> list[FixPlan]:
    """What still needs the old values is computed behind the step; a graph of an earlier pass is cut off.

    The step is never moved behind the other backward: it would take that one's gradients, too.
    """
    if event.carried is not None:
        return graph_used_again(context, event.carried)
    step, backward = event.write.place, event.backward
    tree = context.analysis.sources[step.path].tree
    if event.saved.place.path != step.path or backward is None or backward.path != step.path:
        return []
    found = between(tree, event.saved.place.node, step.node)
    if found is None:
        return []
    block, made, at = found
    statement = block[made]
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return []
    name = statement.targets[0].id
    reads = {part.id for part in ast.walk(statement.value) if isinstance(part, ast.Name)}
    for other in block[made + 1 : at + 1]:
        for part in ast.walk(other):
            if isinstance(part, ast.Name) and (
                part.id == name or (part.id in reads and not isinstance(part.ctx, ast.Load))
            ):
                return []
    return after(context, statement, event.saved.place, step, f"Compute {quoted(name)} after the step")
