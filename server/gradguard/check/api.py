"""One file in, what is wrong with it out: the order of work that the editor and the command line share.

    text without torch      nothing more is done
    # gradguard: ignore-file    likewise
    engine, then rules      raw findings, each as loud as its rule makes it
    settings                rules that are off are dropped, levels are laid over severities
    ignore comments         silence findings, and are reported when they silence nothing
    certainty               what is merely possible stays only when asked for
    order                   one finding for each rule and place, in reading order

Nothing here raises: a fault in the analysis becomes a `Limit`, and its traceback is kept for the log.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from gradguard.check import ignores
from gradguard.check.catalogue import Catalogue, catalogue
from gradguard.check.selection import Selection
from gradguard.check.settings import Settings
from gradguard.check.workspace import EMPTY, Workspace
from gradguard.findings import Certainty, Finding, Limit, Span
from gradguard.source.text import Source

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
    """Traceback of a fault in gradguard itself, for the log."""
    needed: tuple[tuple[str, Span], ...] = ()
    """Ignore comments of other files that silenced something here: they are not unused."""


Engine = Callable[[Source, Settings, Workspace], tuple[Iterable[Finding], Iterable[Limit]]]


def check(source: Source, settings: Settings, workspace: Workspace = EMPTY) -> Report:
    """Check one file. Never raises."""
    return run(source, settings, workspace, _engine, catalogue)


def run(
    source: Source,
    settings: Settings,
    workspace: Workspace,
    engine: Engine,
    rules: Callable[[], Catalogue] = catalogue,
) -> Report:
    """`check` with the engine and the rules as arguments."""
    if GATE not in source.text:
        return Report()
    try:
        return _run(source, settings, workspace, engine, rules)
    except Exception as error:
        return Report(limits=(_fault(source.path, error),), crash=traceback.format_exc())


def _engine(
    source: Source, settings: Settings, workspace: Workspace
) -> tuple[Iterable[Finding], Iterable[Limit]]:
    from gradguard.ops import table
    from gradguard.rules import registry
    from gradguard.tape import SharingNotNoted, analyse

    rows = table.load(None if settings.torch == "auto" else settings.torch)
    # Most files have no finding whose fix depends on it.
    analysis = analyse(source, rows, workspace, shares=False)
    try:
        return registry.findings(analysis), analysis.limits
    except SharingNotNoted:
        analysis = analyse(source, rows, workspace)
        return registry.findings(analysis), analysis.limits


def _run(
    source: Source, settings: Settings, workspace: Workspace, engine: Engine, rules: Callable[[], Catalogue]
) -> Report:
    comments = ignores.read(source, rules)
    if comments.everything:
        return Report()
    unread = [Limit(source.path, Span(e.line, 1, e.line, 1), f"not read: {e.message}") for e in source.errors]
    crash = ""
    raw: list[Finding]
    limits: list[Limit]
    try:
        found, stopped = engine(source, settings, workspace)
        raw, limits = list(found), [*unread, *stopped]
    except Exception as error:
        raw, limits, crash = [], [*unread, _fault(source.path, error)], traceback.format_exc()

    selection = Selection(settings, rules())
    kept: list[Finding] = []
    away: list[Finding] = []
    silencers = {source.path: comments}
    for finding in raw:
        if not selection.allows(finding.code, finding.path):
            continue
        if finding.path not in silencers:
            other = workspace.source(finding.path)
            silencers[finding.path] = ignores.read(other, rules) if other else ignores.Ignores()
        silencer = silencers[finding.path]
        if silencer.everything or silencer.silences(finding) or not _shown(finding, settings):
            continue
        (kept if finding.path == source.path else away).append(selection.leveled(finding))
    if not limits and comments.comments and selection.allows(ignores.UNUSED[0], source.path):
        unused = comments.unused(source, rules(), selection.running(source.path))
        kept.extend(selection.leveled(each) for each in unused if not comments.silences(each))
    needed = tuple(
        (path, span)
        for path, silencer in silencers.items()
        if path != source.path
        for span in sorted(silencer.needed)
    )
    return Report(ordered(kept), tuple(dict.fromkeys(limits)), ordered(away), crash, needed)


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The one order, with the surest finding where a rule has several for one place."""
    best: dict[tuple[str, Span, str], Finding] = {}
    for finding in sorted(findings, key=lambda each: each.sort_key):
        key = (finding.path, finding.span, finding.code)
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
    where = traceback.extract_tb(error.__traceback__)[-1:]
    at = f" in {where[0].name}" if where else ""
    return Limit(path, TOP, f"not analysed: internal error {type(error).__name__}{at}")
