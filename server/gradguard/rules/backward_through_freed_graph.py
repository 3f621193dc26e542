"""GG203: a second backward through a graph that the first one freed."""

from __future__ import annotations

import ast

from gradguard.engine.domain.events import Event, SecondBackward
from gradguard.findings import Applicability, Finding, FixPlan, spans_text
from gradguard.rules.asking import hooks
from gradguard.rules.blocks import between, function_around
from gradguard.rules.caught import caught
from gradguard.rules.detaching import detached
from gradguard.rules.model import ERROR, Context, Rule, quoted
from gradguard.source.loops import alone


def render(context: Context, event: Event) -> Finding | None:
    """At the line that carries the old graph over; at the backward where nothing is carried."""
    if not isinstance(event, SecondBackward):
        return None
    fixes = _fixes(context, event)
    if event.carried is not None:
        message = (
            f"{quoted(event.text)} carries the graph of an earlier backward into the next one, which raises"
        )
    elif event.first.node is event.second.node:
        message = f"backward runs again through the graph of `{event.op}`, which this line has already freed"
    else:
        message = f"second backward through the graph of `{event.op}`, which the first one freed"
    return context.finding(
        event,
        message,
        severity=ERROR,
        related=[
            (event.first, "freed by this backward"),
            (event.second if event.carried is not None else None, "this backward raises"),
            (event.made, "the shared part is made here"),
        ],
        fixes=fixes,
        notes=("Trying to backward through the graph a second time",),
    )


def _fixes(context: Context, event: SecondBackward) -> list[FixPlan]:
    """State is detached where it is put away, or behind the backward; backwards of one graph become one."""
    many = {"many": "1"} if event.many else {}
    carried = event.carried
    path = event.place.path
    tree = context.analysis.sources[path].tree
    if carried is None:
        return _summed(context, event, tree) if event.first.path == path == event.second.path else []
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


RULE = Rule(
    "GG203",
    "backward-through-freed-graph",
    "second backward through a freed graph; also state that carries the graph over to the next iteration",
    (SecondBackward,),
    render,
)
