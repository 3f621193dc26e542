"""GG105: a write that the version counter does not see, to a tensor that backward needs."""

from __future__ import annotations

from gradguard.engine.domain.events import ON_CONTEXT, Event, SavedTensorMutated
from gradguard.findings import Finding
from gradguard.rules.model import WARNING, Context, Rule, quoted, role_name

_HOW = {
    "numpy": "through NumPy memory",
    "collective": "as a collective that no counter sees",
    "buffers": "as DDP sends buffers in front of a forward",
    "statistics": "as a running statistic",
    "step": "by a fused optimizer step",
}


def render(context: Context, event: Event) -> Finding | None:
    """Writes that no counter saw."""
    if not isinstance(event, SavedTensorMutated) or event.write.counted:
        return None
    write, saved = event.write, event.saved
    name, how = saved.text or write.text, _HOW.get(write.kind, "through `.data`")
    if saved.why == ON_CONTEXT:
        name, how = write.text, f"after {quoted(saved.text)} kept it"
    return context.finding(
        event,
        f"`{write.op}` changes {quoted(name)} {how}: gradients will be wrong, without an error",
        severity=WARNING,
        related=[
            (saved.place, f"saved here by `{saved.op}`: backward needs {role_name(saved.role)}"),
            (event.backward, "backward reads the changed values here"),
        ],
    )


RULE = Rule(
    "GG105",
    "untracked-mutation",
    "write that the version counter does not see, to a tensor that backward needs: wrong gradients without an error",
    (SavedTensorMutated,),
    render,
)
