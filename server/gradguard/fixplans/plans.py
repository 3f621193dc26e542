"""The fixes of a finding, planned when they are to be shown: which plan is for which event."""

from __future__ import annotations

from collections import Counter

from gradguard.engine import Analysis
from gradguard.engine.domain.events import (
    ArgumentWrite,
    BrokenGraph,
    ContextKeeps,
    DeviceCopy,
    Event,
    FunctionMutation,
    GradientAlias,
    GraphKept,
    HookWrite,
    HostRead,
    InferenceSaved,
    InputRewritten,
    RefusedWrite,
    RetainGraph,
    SavedTensorMutated,
    SecondBackward,
    UnusedGraph,
)
from gradguard.findings import Applicability, FixPlan, Limit, Span, internal_error, traceback_of
from gradguard.fixplans import backwards, clones, contexts, copies, kept, reads
from gradguard.fixplans.caught import caught
from gradguard.fixplans.model import Context, Events
from gradguard.fixplans.refused import permitted, relaxed
from gradguard.fixplans.writes import ways_out
from gradguard.rules.model import Told

WITH_FIXES = 100
"""Findings of one rule in one file whose fixes are planned: each may look through the whole file."""
BRIEF = f"read in part: of the findings of one rule only the first {WITH_FIXES} have fixes"


class Plans:
    """The fixes of one analysis. Nothing is worked out before the first is asked for."""

    def __init__(self, analysis: Analysis, faults: list[Limit] | None = None) -> None:
        """faults: where to tell a fault, which costs the fixes of one finding; without it the fault is raised."""
        self._analysis = analysis
        self._faults = faults
        self._context: Context | None = None
        self._asked: Counter[str] = Counter()

    def of(self, told: Told) -> tuple[FixPlan, ...]:
        """The fixes that a finding offers, the ones that keep the program's numbers first."""
        code = told.finding.code
        self._asked[code] += 1
        if self._asked[code] > WITH_FIXES:
            if self._faults is not None and self._asked[code] == WITH_FIXES + 1:
                self._faults.append(Limit(self._analysis.path, Span(1, 1, 1, 1), BRIEF))
            return ()
        if self._context is None:
            self._context = Context(self._analysis, Events(self._analysis))
        try:
            return tuple(_planned(self._context, told.event))
        except Exception as error:
            if self._faults is None:
                raise
            start = told.finding.span
            at = Span(start.line, start.column, start.line, start.column)
            message = f"a finding of {code} has no fixes: {internal_error(error)}"
            self._faults.append(Limit(told.finding.path, at, message, traceback_of(error)))
            return ()


def _planned(context: Context, event: Event) -> list[FixPlan]:
    match event:
        case SavedTensorMutated() if not event.write.counted:
            return clones.unseen(context, event)
        case SavedTensorMutated() if event.write.kind == "step":
            return backwards.stepped(context, event)
        case SavedTensorMutated():
            return ways_out(context, event)
        case RefusedWrite():
            return permitted(context, event)
        case InferenceSaved():
            safe = Applicability.UNSAFE if caught(context, event.place) else Applicability.SAFE
            return relaxed(context, event.made, safe)
        case FunctionMutation():
            return clones.function_written(context, event)
        case ContextKeeps():
            return contexts.saved_for_backward(context, event)
        case HookWrite():
            return clones.hook_written(context, event)
        case InputRewritten():
            return clones.rewritten_inside(context, event)
        case GradientAlias():
            return clones.gradient_kept(context, event)
        case ArgumentWrite():
            return clones.argument_written(context, event)
        case GraphKept():
            return (kept.stored if event.how == "store" else kept.accumulated)(context, event)
        case SecondBackward():
            return backwards.graph_used_again(context, event)
        case UnusedGraph():
            return kept.unused(context, event)
        case BrokenGraph():
            return kept.broken(context, event)
        case RetainGraph():
            return backwards.retained(context, event)
        case DeviceCopy():
            return copies.copied(context, event)
        case HostRead() if event.compiled:
            return []
        case HostRead():
            return (reads.read_on_the_way if event.implicit else reads.read_out)(context, event)
    return []
