"""How much a kept graph holds, in words and as a severity."""

from __future__ import annotations

from gradguard.engine.domain.events import GraphKept
from gradguard.findings import Severity


def severity(event: GraphKept) -> tuple[Severity, Severity]:
    """Activations that stay alive are a warning, and so are bare nodes that grow as long as a training runs."""
    one = Severity.WARNING if event.activations or event.lasting else Severity.INFORMATION
    return one, one


def what_is_kept(event: GraphKept) -> str:
    """What one more iteration adds to memory."""
    if not event.activations:
        return "its nodes stay alive, half a kilobyte each a pass"
    return (
        f"activations stay alive ({event.holds})" if event.holds else "activations of every pass stay alive"
    )
