"""GG112: a gradient kept by reference and overwritten later."""

from __future__ import annotations

import ast

from gradguard.engine.domain.events import Event, GradientAlias
from gradguard.findings import Applicability, Finding
from gradguard.rules.model import WARNING, Context, Rule, quoted


def render(context: Context, event: Event) -> Finding | None:
    """The statement that takes the reference."""
    if not isinstance(event, GradientAlias):
        return None
    return context.finding(
        event,
        f"{quoted(event.text)} keeps the gradient itself, which is overwritten in place later",
        severity=WARNING,
        related=[(event.overwritten, "overwritten in place here")],
        fixes=context.plan(
            "clone", "Keep a clone of the gradient", Applicability.UNSAFE, _gradient(event), event.place
        ),
    )


def _gradient(event: GradientAlias) -> ast.AST | None:
    """The expression that reads `.grad`; a clone keeps its numbers, but no longer follows later ones."""
    return next(
        (
            node
            for node in ast.walk(event.place.node)
            if isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Load)
        ),
        None,
    )


RULE = Rule(
    "GG112",
    "gradient-alias",
    "`p.grad` kept by reference and later overwritten in place",
    (GradientAlias,),
    render,
)
