"""GG206: `retain_graph=True` without a second backward."""

from __future__ import annotations

import ast

from gradguard.engine.domain.events import Event, RetainGraph
from gradguard.findings import Applicability, Finding, FixPlan
from gradguard.rules.asking import looks_into_graph
from gradguard.rules.blocks import settled
from gradguard.rules.model import INFORMATION, WARNING, Context, Rule


def render(context: Context, event: Event) -> Finding | None:
    """At the backward that retains."""
    if not isinstance(event, RetainGraph):
        return None
    kept = "of every pass" if event.grows else "longer than needed"
    return context.finding(
        event,
        f"`retain_graph=True` without a later backward keeps activations alive {kept}",
        severity=WARNING if event.grows else INFORMATION,
        fixes=_without_flag(context, event) if event.certain else (),
    )


def _without_flag(context: Context, event: RetainGraph) -> list[FixPlan]:
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


RULE = Rule(
    "GG206",
    "needless-retain-graph",
    "`retain_graph=True` with no second backward through that graph",
    (RetainGraph,),
    render,
)
