"""The one way from a text to what is wrong with it: the tape runs the program, the rules say what happened.

Rules and tape are imported only for a text that names torch, as they take long to load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradguard.check.settings import Settings
from gradguard.check.workspace import Workspace
from gradguard.findings import Finding, FixPlan, Limit
from gradguard.source.text import Source

if TYPE_CHECKING:
    from gradguard.engine import Analysis

Wanted = Callable[[str, str], bool]
"""Whether a rule, by its code, speaks for the file at a path."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an engine gives for one file."""

    findings: Iterable[Finding] = ()
    """Raw: each as loud as its rule makes it, without fixes."""
    limits: Iterable[Limit] = ()
    """Where it stopped early; further ones may come while fixes are planned."""
    fixes: Callable[[Finding], tuple[FixPlan, ...]] | None = None
    """Plans the fixes of one of the findings; None where they have what they have."""
    tape: Analysis | None = None
    """What the program did, for whoever asks more than what is wrong."""


Engine = Callable[[Source, Settings, Workspace, Wanted], Answer]


def answer(
    source: Source,
    settings: Settings,
    workspace: Workspace,
    wanted: Wanted,
    *,
    previous: Analysis | None = None,
    noting: bool = False,
) -> Answer:
    """The engine that ships. previous, noting: see `engine.analyse`."""
    from gradguard.engine import analyse

    # The engine is loaded for the first file that speaks of torch.
    from gradguard.fixplans.plans import Plans
    from gradguard.ops import table
    from gradguard.rules import registry

    rows = table.load(settings.release)
    tape = analyse(source, rows, workspace, previous, noting=noting)
    limits = list(tape.limits)
    told = registry.told(tape, limits, wanted)
    behind = {id(each.finding): each for each in told}
    plans = Plans(tape, limits)
    return Answer(
        [each.finding for each in told], limits, lambda finding: plans.of(behind[id(finding)]), tape
    )
