"""GG105: a write that the version counter does not see, to a tensor that backward needs."""

from __future__ import annotations

import ast

from gradguard.engine.domain.events import Event, SavedTensorMutated, WriteFact
from gradguard.findings import Applicability, Finding
from gradguard.rules.model import WARNING, Context, Rule, quoted, role_name
from gradguard.rules.repair import copied, ways_out

_HOW = {
    "numpy": "through NumPy memory",
    "statistics": "as a running statistic",
    "step": "by a fused optimizer step",
}


def _through_data(write: WriteFact) -> bool:
    """Whether the writing statement spells `.data` itself, so that it can be spelled otherwise."""
    parts = ast.walk(write.statement) if write.statement is not None else ()
    spelled = any(isinstance(part, ast.Attribute) and part.attr == "data" for part in parts)
    return spelled and ".data" in write.text


def render(context: Context, event: Event) -> Finding | None:
    """Writes that no counter saw."""
    if not isinstance(event, SavedTensorMutated) or event.write.counted:
        return None
    write, saved = event.write, event.saved
    how = _HOW.get(write.kind, "through `.data`")
    fixes = ways_out(context, event)
    if write.kind in ("op", "augmented", "setitem") and _through_data(write):
        fixes += context.plan(
            "data-to-detach",
            "Use `.detach()`, which autograd checks",
            Applicability.MANUAL,
            write.statement,
            write.place,
            name=write.text,
        )
    if write.kind == "numpy":
        fixes += copied(context, write)
    return context.finding(
        event,
        f"`{write.op}` changes {quoted(saved.text or write.text)} {how}: gradients will be wrong, without an error",
        severity=WARNING,
        related=[
            (saved.place, f"saved here by `{saved.op}`: backward needs {role_name(saved.role, saved.op)}"),
            (event.backward, "backward reads the changed values here"),
        ],
        fixes=fixes,
    )


RULE = Rule(
    "GG105",
    "untracked-mutation",
    "write that the version counter does not see, to a tensor that backward needs: wrong gradients without an error",
    (SavedTensorMutated,),
    render,
)
