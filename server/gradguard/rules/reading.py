"""What the rules on waits of the host share: which count, and how they are said."""

from __future__ import annotations

from gradguard.engine.domain.events import DeviceUse
from gradguard.rules.model import Context

_PER = {
    "parameter": "once per parameter",
    "element": "once per element",
    "step": "on every pass",
    "call": "on every call",
}


def counts(context: Context, event: DeviceUse) -> bool:
    """Waits for an accelerator on every pass. An unknown device counts where the file names an accelerator."""
    if event.guarded or event.device == "cpu" or event.per == "once":
        return False
    return event.device == "accelerator" or "accelerator" in context.analysis.devices


def often(event: DeviceUse) -> str:
    """How often it happens."""
    return _PER.get(event.per, "on every pass")
