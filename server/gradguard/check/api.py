"""One file in, what is wrong with it out: the order of work that the editor and the command line share.

    text without torch      nothing more is done
    text that is too long   is told, and not even parsed
    # gradguard: ignore-file    likewise
    engine, then rules      raw findings, each as loud as its rule makes it
    settings                rules that are off are not run, levels are laid over severities
    ignore comments         silence findings, and are reported when they silence nothing
    certainty               what is merely possible stays only when asked for
    order                   one finding for each rule and place, in reading order
    fixes                   planned for what is left

Nothing here raises: a fault in the analysis becomes a `Limit`, and its traceback is kept for the log. What engine and
rules can tell apart costs what it concerns alone; anything else costs the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gradguard.check import ignores
from gradguard.check.catalogue import Catalogue, catalogue
from gradguard.check.engine import Answer, Engine, answer
from gradguard.check.selection import Selection
from gradguard.check.settings import Settings
from gradguard.check.workspace import EMPTY, LONGEST, TOO_LONG, Workspace
from gradguard.findings import Certainty, Finding, Limit, Span, internal_error, traceback_of
from gradguard.source.text import Source

if TYPE_CHECKING:
    from gradguard.engine import Analysis

GATE = "torch"
"""A file without this in its text has nothing to report."""

TOP = Span(1, 1, 1, 1)


@dataclass(frozen=True, slots=True)
class Report:
    """What was found for one file."""

    findings: tuple[Finding, ...] = ()
    """In this file, in reading order."""
    limits: tuple[Limit, ...] = ()
    """Where the analysis stopped early; silence there is no promise."""
    elsewhere: tuple[Finding, ...] = ()
    """In other files of the workspace: a mistake of the two together, seen from this file only."""
    crash: str = ""
    """Tracebacks of faults in gradguard itself, for the log."""
    needed: tuple[tuple[str, Span], ...] = ()
    """Ignore comments of other files that silenced something here: they are not unused."""
    lost: bool = False
    """Whether such a fault cost the whole file, and not only what `faults` names."""

    @property
    def faults(self) -> tuple[Limit, ...]:
        """What was not analysed to the end because of a fault in gradguard itself."""
        return tuple(limit for limit in self.limits if limit.fault)

    def with_limits(self, limits: Iterable[Limit]) -> Report:
        """The same with further limits; the tracebacks of faults among them go to the log."""
        more = tuple(limits)
        crash = "\n".join(filter(None, (self.crash, *(limit.fault for limit in more))))
        return replace(self, limits=tuple(dict.fromkeys((*self.limits, *more))), crash=crash)


def check(source: Source, settings: Settings, workspace: Workspace = EMPTY) -> Report:
    """Check one file. Never raises."""
    return run(source, settings, workspace, answer)


def run(
    source: Source,
    settings: Settings,
    workspace: Workspace,
    engine: Engine,
    rules: Callable[[], Catalogue] = catalogue,
) -> Report:
    """`check` with the engine and the rules as arguments."""
    return analysed(source, settings, workspace, engine, rules)[0]


def analysed(
    source: Source,
    settings: Settings,
    workspace: Workspace,
    engine: Engine,
    rules: Callable[[], Catalogue] = catalogue,
) -> tuple[Report, Analysis | None]:
    """`run`, and what the program did where the engine came to run it."""
    if GATE not in source.text:
        return Report(), None
    if len(source.text) > LONGEST:
        return Report(limits=(Limit(source.path, TOP, f"not analysed: {TOO_LONG}"),)), None
    try:
        return _run(source, settings, workspace, engine, rules)
    except Exception as error:
        return lost(source.path, error), None


def lost(path: str, error: BaseException) -> Report:
    """The report where a fault cost the whole file."""
    return Report(lost=True).with_limits([_fault(path, error)])


def _run(
    source: Source, settings: Settings, workspace: Workspace, engine: Engine, rules: Callable[[], Catalogue]
) -> tuple[Report, Analysis | None]:
    comments = ignores.read(source, rules)
    if comments.everything:
        return Report(), None
    unread = [Limit(source.path, Span(e.line, 1, e.line, 1), f"not read: {e.message}") for e in source.errors]
    selection = Selection(settings, rules())
    raw: list[Finding] = []
    try:
        given = engine(source, settings, workspace, selection.allows)
        raw, whole = list(given.findings), True
    except Exception as error:
        given, whole = Answer(limits=[_fault(source.path, error)]), False

    kept: list[Finding] = []
    away: list[Finding] = []
    silencers = {source.path: comments}
    behind: dict[int, Finding] = {}
    for finding in raw:
        if not selection.allows(finding.code, finding.path):
            continue
        if finding.path not in silencers:
            other = workspace.source(finding.path)
            silencers[finding.path] = ignores.read(other, rules) if other else ignores.Ignores()
        silencer = silencers[finding.path]
        if silencer.everything or silencer.silences(finding) or not _shown(finding, settings):
            continue
        leveled = selection.leveled(finding)
        behind[id(leveled)] = finding
        (kept if finding.path == source.path else away).append(leveled)

    def planned(finding: Finding) -> Finding:
        raw = behind.get(id(finding))
        return finding if raw is None or given.fixes is None else replace(finding, fixes=given.fixes(raw))

    own, others = (tuple(map(planned, ordered(each))) for each in (kept, away))
    stopped = list(given.limits)
    if not (unread or stopped) and comments.comments and selection.allows(ignores.UNUSED[0], source.path):
        unused = comments.unused(source, rules(), selection.running(source.path))
        idle = [selection.leveled(each) for each in unused if not comments.silences(each)]
        own = ordered((*own, *idle))
    needed = tuple(
        (path, span)
        for path, silencer in silencers.items()
        if path != source.path
        for span in sorted(silencer.needed)
    )
    report = Report(own, tuple(unread), others, needed=needed, lost=not whole)
    return report.with_limits(stopped), given.tape


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The one order, with the surest finding where a rule has several for one place.

    What a run showed is another witness: it stands beside what was read, which has the fixes.
    """
    best: dict[tuple[str, Span, str, bool], Finding] = {}
    for finding in sorted(findings, key=lambda each: each.sort_key):
        key = (finding.path, finding.span, finding.code, finding.certainty is Certainty.OBSERVED)
        if key not in best or _SURENESS[finding.certainty] < _SURENESS[best[key].certainty]:
            best[key] = finding
    return tuple(sorted(best.values(), key=lambda each: each.sort_key))


def moved(finding: Finding, path: str) -> Finding:
    """The same finding under another name of its file."""
    related = tuple(
        replace(each, path=path) if each.path == finding.path else each for each in finding.related
    )
    return replace(finding, path=path, related=related)


_SURENESS = {Certainty.OBSERVED: 0, Certainty.CERTAIN: 1, Certainty.LIKELY: 2, Certainty.POSSIBLE: 3}


def _shown(finding: Finding, settings: Settings) -> bool:
    return settings.all or finding.certainty is not Certainty.POSSIBLE


def _fault(path: str, error: BaseException) -> Limit:
    return Limit(path, TOP, f"not analysed: {internal_error(error)}", traceback_of(error))
