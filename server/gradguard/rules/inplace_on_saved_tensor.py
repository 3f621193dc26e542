"""GG101: an in-place write to a tensor that a recorded op keeps for backward."""

from __future__ import annotations

from gradguard.engine.domain.events import Event, SavedTensorMutated, WriteFact
from gradguard.findings import Finding
from gradguard.rules.model import ERROR, Context, Rule, quoted, role_name

TORCH_SAYS = "one of the variables needed for gradient computation has been modified by an inplace operation"


def render(context: Context, event: Event) -> Finding | None:
    """Counted writes that are not an optimizer's step."""
    if not isinstance(event, SavedTensorMutated) or not event.write.counted or event.write.kind == "step":
        return None
    write, saved = event.write, event.saved
    name = write.text or saved.text
    return context.finding(
        event,
        f"in-place {shown(write)} changes {quoted(name)}, which `{saved.op}` saved for backward",
        severity=ERROR,
        related=[
            (
                saved.place,
                f"saved here by `{saved.op}`: backward needs {role_name(saved.role)}{_why(saved.why)}",
            ),
            (write.alias_at, "shares memory with the saved tensor since here"),
            (event.backward, "backward needs it here"),
        ],
        notes=(TORCH_SAYS,),
    )


def shown(write: WriteFact) -> str:
    """The write as people spell it."""
    return f"`{write.op}`"


def _why(formula: str) -> str:
    return f" (`{formula}`)" if formula and len(formula) <= 60 and "_backward" not in formula else ""


RULE = Rule(
    "GG101",
    "inplace-on-saved-tensor",
    "in-place write to a tensor that a recorded op saved and that backward still needs",
    (SavedTensorMutated,),
    render,
)
