"""What the torch knows that a fix is written for."""

from __future__ import annotations

from gradguard.findings import FixPlan
from gradguard.ops import table
from gradguard.ops.table import Table


def known(plan: FixPlan) -> Table:
    """The operations of the torch that a plan names; of the newest where it names none, or one that nobody knows."""
    version = dict(plan.data).get("torch")
    return table.load(version if version in table.VERSIONS else None)
