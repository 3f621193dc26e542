"""Everything an editor can ask about one version of one program, worked out once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from gradguard.check import api
from gradguard.check.engine import answer
from gradguard.check.settings import Settings
from gradguard.check.workspace import Workspace
from gradguard.findings import Certainty, Finding, Limit
from gradguard.ide.standing import elsewhere, shown
from gradguard.source.text import Source

if TYPE_CHECKING:
    from gradguard.engine import Analysis as Tape
    from gradguard.engine.domain.facts import Facts


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an analyser gives: the report, and the tape for hovers and hints where there is one."""

    report: api.Report
    tape: Tape | None = None
    resolved: Mapping[tuple[str, int, str], str | None] = field(default_factory=dict)
    """Where the imports led that the answer rests on."""


Analyser = Callable[[Source, Settings, Workspace, "Outcome | None"], Outcome]
"""From a text, its settings, other files and the outcome for the version before (for reuse, never for the answer).
Never raises for any text; an exception is taken for a fault in gradguard and shown as such."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """The answer for one version. All places are those of what is read; `source.place` says where that was typed.

    findings: what is shown, in order: see `standing`. possible: likewise, on hover only.
    elsewhere: in other files, where they were typed.
    """

    source: Source
    settings: Settings
    outcome: Outcome
    findings: tuple[Finding, ...]
    possible: tuple[Finding, ...] = ()
    elsewhere: tuple[Finding, ...] = ()

    @property
    def limits(self) -> tuple[Limit, ...]:
        """Where the analysis stopped early."""
        return self.outcome.report.limits

    @property
    def whole(self) -> bool:
        """Whether the text parses and the analysis went through: only then may everything be fixed at once."""
        return self.source.whole and not self.outcome.report.lost

    def without_tape(self) -> Analysis:
        """The same without tape and trees, which take most of the memory; trees are made again when asked for."""
        return replace(self, source=self.source.without_trees(), outcome=replace(self.outcome, tape=None))


def analyse(
    source: Source, settings: Settings, workspace: Workspace, before: Outcome | None = None
) -> Outcome:
    """The analyser of the shipped server: every rule runs, also for what is merely possible (for hovers)."""
    recording = _Recording(workspace)
    if before is not None and any(recording.resolve(*asked) != led for asked, led in before.resolved.items()):
        before = None  # an import leads elsewhere: what it gave may be anywhere in the answer
    engine = partial(answer, previous=before.tape if before else None, noting=True)
    report, tape = api.analysed(source, settings.with_changes(all=True), recording, engine)
    return Outcome(report, tape, {**(before.resolved if before else {}), **recording.resolved})


class _Recording:
    """A workspace that notes where imports led, also those that led nowhere."""

    def __init__(self, inner: Workspace) -> None:
        self._inner = inner
        self.source = inner.source
        self.resolved: dict[tuple[str, int, str], str | None] = {}

    def resolve(self, module: str, level: int, from_path: str) -> str | None:
        found = self.resolved[module, level, from_path] = self._inner.resolve(module, level, from_path)
        return found


class Again:
    """Checks texts of one program, one after the other, each with what is known of the one before."""

    def __init__(
        self, settings: Settings, workspace: Workspace, analyser: Analyser, before: Analysis | None = None
    ) -> None:
        """before: of a text that nobody asks for places any more, as its trees are used up."""
        self._settings, self._workspace, self._analyser = settings, workspace, analyser
        self.before = before

    def __call__(self, source: Source) -> api.Report:
        """What is found in a text, which keeps its trees."""
        before = self.before.source if self.before else None
        own = Source(source.path, source.text, before, source.breaks)
        self.before = analysis(own, self._settings, self._workspace, self._analyser, self.before)
        return said(self.before)


def said(found: Analysis) -> api.Report:
    """What is found in the text that is read, all that is typed aside."""

    def shown(findings: Iterable[Finding]) -> tuple[Finding, ...]:
        return tuple(
            each for each in findings if found.settings.all or each.certainty is not Certainty.POSSIBLE
        )

    report = found.outcome.report
    return replace(report, findings=shown(report.findings), elsewhere=shown(report.elsewhere))


def facts(found: Analysis) -> Facts | None:
    """What the tape knows of the tensors of a program; None where there is no tape."""
    tape = found.outcome.tape
    return tape.facts if tape is not None else None


def analysis(
    source: Source,
    settings: Settings,
    workspace: Workspace,
    analyser: Analyser,
    before: Analysis | None = None,
) -> Analysis:
    """Analyse one version. `before` is the answer for an earlier one, for reuse and never for the answer."""
    try:
        outcome = analyser(source, settings, workspace, before.outcome if before else None)
    except Exception as error:
        outcome = Outcome(api.lost(source.path, error))
    every = shown(outcome.report.findings, source, workspace)
    found = tuple(each for each in every if settings.all or each.certainty is not Certainty.POSSIBLE)
    rest = () if settings.all else tuple(each for each in every if each.certainty is Certainty.POSSIBLE)
    told = (
        each for each in outcome.report.elsewhere if settings.all or each.certainty is not Certainty.POSSIBLE
    )
    away = elsewhere(told, source, workspace)
    return Analysis(source, settings, outcome, found, rest, away)
