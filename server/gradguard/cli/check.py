"""`gradguard check`: from the arguments to the report and the exit code.

0: nothing of warning or above. 1: findings of warning or above. 2: something could not be checked or the
request itself is wrong; why stands on stderr. An internal error that costs no more than a function is counted in the
report, and makes 2 of it with `--strict`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from gradguard.check.settings import Settings
from gradguard.check.workspace import Workspace
from gradguard.cli import discover, output, pool, progress
from gradguard.cli.cache import Cache, usual_cache
from gradguard.cli.cells import Cells, InCell, Placed
from gradguard.cli.cleaning import HINTED
from gradguard.cli.configuration import Configuration, command_line_layer
from gradguard.cli.formats import text
from gradguard.cli.refused import Refused
from gradguard.cli.result import Outcome, Trouble
from gradguard.cli.stderr import complain, tell
from gradguard.cli.worker import Checked, Checker, Job, merged
from gradguard.disk.environment import torch_beside
from gradguard.disk.links import Bounds
from gradguard.disk.reading import SOURCE_BYTES, Unreadable, decode, read_bytes, too_large
from gradguard.findings import Applicability, Finding, Limit, Span, traceback_of
from gradguard.ide.edits import Edits
from gradguard.source.decode import Undecodable
from gradguard.source.ipynb import SUFFIX, read_notebook
from gradguard.source.printable import printable_lines

CLEAN, FOUND, CANNOT = 0, 1, 2

STDIN = "-"

WITH_EDITS = ("json", "sarif")


def run(arguments: argparse.Namespace) -> int:
    """Run `gradguard check` and return the exit code."""
    try:
        return _run(arguments)
    except Refused as error:
        for reason in error.reasons:
            complain(reason)
        return CANNOT


def _run(arguments: argparse.Namespace) -> int:
    try:
        os.getcwd()
    except OSError as error:
        raise Refused(f"the working folder cannot be used: {error.strerror}") from None
    if arguments.unsafe_fixes and not (arguments.fix or arguments.diff):
        raise Refused("--unsafe-fixes says which fixes to apply; it needs --fix or --diff")
    if arguments.fix and arguments.diff:
        raise Refused("--diff shows what --fix would do; give one of the two")
    configuration = _configuration(arguments)
    known = None
    if arguments.baseline or arguments.write_baseline:
        from gradguard.cli import baseline

        known = baseline.read(Path(arguments.baseline)) if arguments.baseline else None
    troubles: list[Trouble] = []
    jobs, others = _jobs(arguments, configuration, troubles)
    if configuration.problems:
        raise Refused(*map(str, configuration.problems))
    troubles += configuration.troubles
    for note in configuration.notes:
        tell(f"note: {note}")
    if not jobs and not troubles and STDIN not in arguments.paths:
        unchanged = f"note: no Python files changed since {arguments.changed_since}"
        why = unchanged if arguments.changed_since else "warning: no Python files and no notebooks found"
        tell(why)
    _say_which_torch(jobs, arguments.verbose)
    unkept = arguments.no_cache or arguments.fix or arguments.diff
    cache = None if unkept else usual_cache(arguments.cache_dir, arguments.verbose)
    changing = arguments.fix or arguments.diff
    make = partial(
        Checker,
        cache,
        with_edits=arguments.format in WITH_EDITS and not changing,
    )
    jobs += _callers(jobs, others, arguments, configuration, make().workspace, cache)
    fixing = _Fixing(arguments, make()) if changing else None
    checked = []
    for each, job in zip(
        progress.shown(pool.run(jobs, make, arguments.jobs or _auto(jobs)), len(jobs)), jobs
    ):
        checked.append(fixing.after(each, job) if fixing and not job.shows else each)
    if cache:
        cache.clean()

    names = _Names(jobs, arguments.stdin_filename)
    outcome = _outcome(checked, troubles, names, fixing.count if fixing else 0, arguments.strict)
    _log(outcome, checked, arguments.verbose)
    for limit in map(names.placed, fixing.refused if fixing else ()):
        tell(f"note: {limit.path}:{limit.span.line}: {limit.message}")
    for path, count in fixing.kept if fixing else ():
        behind = text.plural(count, "other hard link")
        tell(f"note: {names.show(path)}: the old text stays behind {behind}")
    if arguments.write_baseline:
        baseline.write(Path(arguments.write_baseline), outcome.findings, names.line)
        tell(f"wrote {text.plural(len(outcome.findings), 'finding')} to {arguments.write_baseline}")
        return CANNOT if outcome.blocked else CLEAN
    if known is not None:
        outcome = _without(outcome, known.new(outcome.findings, names.line))
    if fixing and arguments.diff:
        if fixing.altered:
            tell("note: some lines of the diff are shown with escapes; in a file it can be applied")
        tell(f"would fix {text.plural(fixing.count, 'finding')}")
    else:
        output.write(outcome, arguments, names.line, to_stderr=bool(fixing and fixing.to_stdout))
        _hint(outcome, arguments, cache)
    if outcome.blocked:
        return CANNOT
    if arguments.exit_zero:
        return CLEAN
    return FOUND if outcome.failing or (arguments.diff and fixing and fixing.count) else CLEAN


def _configuration(arguments: argparse.Namespace) -> Configuration:
    parsed = command_line_layer(
        select=arguments.select, ignore=arguments.ignore, torch=arguments.torch, everything=arguments.all
    )
    if parsed.problems:
        raise Refused(*map(str, parsed.problems))
    trusted = tuple(map(os.path.abspath, arguments.src or ()))
    for named, folder in zip(arguments.src or (), trusted):
        if not os.path.isdir(folder):
            raise Refused(f"--src {named}: no such folder")
    return Configuration(parsed.layer, trusted)


def _jobs(
    arguments: argparse.Namespace, configuration: Configuration, troubles: list[Trouble]
) -> tuple[list[Job], list[str]]:
    """What to check, and the files that were found and are not to be checked, as they did not change."""
    paths: list[str] = arguments.paths or ["."]
    if STDIN in paths:
        if len(paths) > 1:
            raise Refused('"-" reads stdin and cannot be mixed with other paths')
        if arguments.changed_since:
            raise Refused("--changed-since needs files, not stdin")
        path = Path(os.path.abspath(arguments.stdin_filename or "<stdin>"))
        settings = configuration.of(path.parent)
        if arguments.stdin_filename and discover.excluded(path, settings):
            return [], []
        data = sys.stdin.buffer.read(SOURCE_BYTES + 1)
        if len(data) > SOURCE_BYTES:
            raise Refused(f"stdin: {too_large(SOURCE_BYTES)}")
        return [Job(str(path), settings, named=True, data=data)], []
    if arguments.stdin_filename:
        raise Refused('--stdin-filename names the text of stdin; it needs "-" as the path')
    others: list[str] = []
    targets = discover.discover(paths, configuration.of, troubles.append)
    if arguments.force_exclude:
        targets = [
            target
            for target in targets
            if not (target.named and discover.excluded(target.path, configuration.of(target.path.parent)))
        ]
    if arguments.changed_since:
        from gradguard.cli import git

        folder = Path(os.path.abspath(paths[0]))
        changed = git.changed_since(
            arguments.changed_since,
            folder if folder.is_dir() else folder.parent,
            [target.path for target in targets],
        )
        others = [str(target.path) for target in targets if target.path not in changed]
        targets = [target for target in targets if target.path in changed]
    jobs = [Job(str(target.path), configuration.of(target.path.parent), target.named) for target in targets]
    return jobs, others


def _callers(
    jobs: Sequence[Job],
    others: Sequence[str],
    arguments: argparse.Namespace,
    configuration: Configuration,
    workspace_of: Callable[[Settings], Workspace],
    cache: Cache | None,
) -> list[Job]:
    """Files of the workspace that import what is checked, for what they show of it."""
    asked = {job.path: job.settings for job in jobs if job.data is None}
    if arguments.no_callers or not asked:
        return []
    from gradguard.cli import callers

    covered = [path for path in map(os.path.abspath, arguments.paths or ["."]) if os.path.isdir(path)]
    folders = callers.outside({each for settings in asked.values() for each in settings.within}, covered)
    if not (folders or others):
        return []
    found = callers.callers(asked, others, folders, configuration.of, workspace_of, cache)
    if found.more:
        read = len(found.paths)
        tell(f"note: {read + found.more} files import what is checked; the {read} nearest were read")
    if found.cut:
        tell(f"note: imports were looked for in {callers.FILES:,} files of the workspace, which has more")
    shows = frozenset(asked)
    return [Job(path, configuration.of(Path(path).parent), shows=shows) for path in found.paths]


def _auto(jobs: Sequence[Job]) -> int:
    return 1 if len(jobs) <= pool.FEW else pool.default_jobs()


class _Fixing:
    """Fixes files after they were checked, and counts."""

    def __init__(self, arguments: argparse.Namespace, checker: Checker) -> None:
        self._checker = checker
        self._unsafe = arguments.unsafe_fixes
        self._diff = arguments.diff
        self._asked_for = Bounds(map(os.path.abspath, arguments.paths or ["."]))
        self.to_stdout = False
        self.altered = False
        """Whether a diff was not shown as it is."""
        self.count = 0
        self.refused: list[Limit] = []
        """What could have been fixed and was not."""
        self.kept: list[tuple[str, int]] = []
        """Files with other hard links, which keep the old text."""

    def after(self, checked: Checked, job: Job) -> Checked:
        """The state of a file once it was fixed, as far as that was allowed."""
        allowed = {Applicability.SAFE, Applicability.UNSAFE} if self._unsafe else {Applicability.SAFE}
        plans = [plan for finding in checked.report.findings for plan in finding.fixes]
        from_stdin = job.data is not None
        self.to_stdout |= from_stdin
        if not any(plan.applicability in allowed for plan in plans):
            if from_stdin and not self._diff:
                sys.stdout.buffer.write(job.data or b"")
            return checked
        from gradguard.cli import fix

        try:
            fixed = fix.fix(job, self._checker, unsafe=self._unsafe)
            self.refused += fixed.refused
            if self._diff:
                self._show(list(fixed.diff(display(job.path))))
                self.count += fixed.count
                known = {limit.message for limit in checked.report.faults}
                new = (limit for limit in fixed.report.faults if limit.message not in known)
                return replace(checked, report=checked.report.with_limits(new))
            if from_stdin:
                sys.stdout.buffer.write(fixed.before.encode(fixed.after))
            elif fixed.count and not (job.named or self._asked_for.holds(job.path)):
                raise Unreadable("not fixed: a link that leads out of what was named")
            elif fixed.count and job.named and not _project_of(job).holds(job.path):
                raise Unreadable("not fixed: a link that leads out of the project")
            elif fixed.count:
                others = fix.other_names(job.path)
                fix.write(job.path, fixed)
                if others:
                    self.kept.append((job.path, others))
        except (Unreadable, Undecodable) as error:
            return replace(checked, troubles=(*checked.troubles, Trouble(job.path, str(error))))
        except BrokenPipeError:
            raise
        except Exception as error:
            # A fault in the fix of one file must not keep the others from being fixed.
            trouble = Trouble(job.path, f"not fixed: internal error {type(error).__name__}: {error}")
            crash = f"{checked.report.crash}{traceback_of(error)}"
            report = replace(checked.report, crash=crash)
            return replace(checked, report=report, troubles=(*checked.troubles, trouble))
        self.count += fixed.count
        return replace(checked, report=fixed.report)

    def _show(self, diff: list[str]) -> None:
        from gradguard.cli import fix

        shown = list(fix.for_readers(diff)) if output.obeyed(sys.stdout) else diff
        sys.stdout.writelines(shown)
        self.altered |= shown != diff


def _project_of(job: Job) -> Bounds:
    """Where the file must lie that a named one leads to: beside it, in its project, or below the working folder."""
    folders = [os.path.dirname(job.path), os.getcwd()]
    return Bounds([*folders, job.settings.root] if job.settings.root else folders)


class _Names:
    """Paths as shown, and the lines of the files behind them."""

    def __init__(self, jobs: Sequence[Job], stdin_filename: str | None) -> None:
        self._stdin_filename = stdin_filename
        self._stdin = {job.path: job.data for job in jobs if job.data is not None}
        self._lines: dict[str, output.Lines] = {}
        self._cells: dict[str, Cells | None] = {}

    def show(self, path: str) -> str:
        """A path for the user."""
        return (self._stdin_filename or "<stdin>") if path in self._stdin else display(path)

    def cells(self, path: str) -> Cells | None:
        """The cells of a notebook; None for another file, and for one that cannot be read any more."""
        if not path.endswith(SUFFIX):
            return None
        if path not in self._cells:
            self._cells[path] = None
            try:
                data = self._stdin.get(path)
                text = decode(read_bytes(path) if data is None else data).text
                self._cells[path] = Cells(self.show(path), read_notebook(text))
            except (Unreadable, ValueError):
                pass
        return self._cells[path]

    def placed(self, what: Placed) -> Placed:
        """The same at its place as shown: in a notebook in its cell."""
        cells = self.cells(what.path)
        return cells.placed(what) if cells is not None else replace(what, path=self.show(what.path))

    def trouble(self, trouble: Trouble) -> Trouble:
        """The same for a file that was not checked."""
        cells = self.cells(trouble.path) if trouble.line else None
        if cells is None:
            return replace(trouble, path=self.show(trouble.path))
        path, span = cells.place(Span(trouble.line, 1, trouble.line, 1))
        return replace(trouble, path=path, line=span.line)

    def line(self, shown: str, number: int) -> str:
        """A line of the file that is shown under this path."""
        if isinstance(shown, InCell):
            return shown.source.line(number) if number <= shown.source.count else ""
        path = os.path.abspath(shown)
        if shown not in self._lines:
            self._lines[shown] = output.Lines.of(path, self._stdin.get(path))
        return self._lines[shown].line(number)


def display(path: str) -> str:
    """A path relative to the working folder where it lies inside, with slashes."""
    here = os.getcwd().rstrip(os.sep) + os.sep
    return (path[len(here) :] if path.startswith(here) else path).replace(os.sep, "/")


def _outcome(
    checked: Sequence[Checked], troubles: Iterable[Trouble], names: _Names, fixed: int, strict: bool
) -> Outcome:
    edits: dict[Finding, tuple[Edits | None, ...]] = {}
    for each in checked:
        for finding, known in each.edits:
            edits.setdefault(finding, known)
    kept = merged(checked)
    asked = [each for each in checked if not each.caller]
    return Outcome(
        findings=tuple(_renamed(finding, names) for finding in kept),
        edits=tuple(_edits(finding, edits.get(finding), names) for finding in kept),
        limits=tuple(
            names.placed(limit)
            for limit in dict.fromkeys(limit for each in checked for limit in each.report.limits)
        ),
        troubles=tuple(names.trouble(trouble) for trouble in _troubles(checked, troubles)),
        files=sum(not any(trouble.unread for trouble in each.troubles) for each in asked),
        checked=sum(each.uses_torch for each in asked),
        callers=len(checked) - len(asked),
        fixed=fixed,
        strict=strict,
    )


def _troubles(checked: Sequence[Checked], found: Iterable[Trouble]) -> list[Trouble]:
    """What was asked for first, then what was only found; a file that was not read once."""
    own = [trouble for each in checked for trouble in each.troubles]
    others = [*found, *(trouble for each in checked for trouble in each.imported)]
    once: dict[object, Trouble] = {}
    for index, trouble in enumerate([*own, *sorted(others, key=lambda each: each.path)]):
        once.setdefault(trouble.path if trouble.unread else index, trouble)
    return sorted(once.values(), key=lambda each: not each.blocks)


def _renamed(finding: Finding, names: _Names) -> Finding:
    return names.placed(replace(finding, related=tuple(map(names.placed, finding.related))))


def _edits(
    finding: Finding, edits: tuple[Edits | None, ...] | None, names: _Names
) -> tuple[Edits | None, ...]:
    """The edits of each fix of a finding, in a notebook those of its cell."""
    known = edits or (None,) * len(finding.fixes)
    cells = names.cells(finding.path)
    return known if cells is None else tuple(cells.edits(each, finding.span) for each in known)


def _without(outcome: Outcome, new: Sequence[int]) -> Outcome:
    return replace(
        outcome,
        findings=tuple(outcome.findings[index] for index in new),
        edits=tuple(outcome.edits[index] for index in new),
        hidden=len(outcome.findings) - len(new),
    )


def _log(outcome: Outcome, checked: Iterable[Checked], verbose: bool) -> None:
    for trouble in outcome.troubles:
        if trouble.blocks or outcome.strict:
            complain(str(trouble))
        else:
            tell(f"warning: not read: {trouble}")
    wrong = outcome.parts_lost if outcome.strict else ()
    for limit in wrong:
        complain(f"{limit.path}:{limit.span.line}: {limit.message}")
    if verbose:
        for limit in outcome.limits if not wrong else [each for each in outcome.limits if not each.fault]:
            tell(f"{limit.path}:{limit.span.line}: {limit.message}")
        for each in checked:
            if each.report.crash:
                print(printable_lines(each.report.crash), file=sys.stderr)


def _say_which_torch(jobs: Iterable[Job], verbose: bool) -> None:
    """A warning where another release than the wanted one stands in for it, and the release itself when asked."""
    from gradguard.ops import table

    for wanted in sorted({job.settings.release or "" for job in jobs}):
        chosen, note = table.choose(wanted or None)
        if note:
            tell(f"warning: {note}")
        elif verbose:
            why = f", as {wanted} is installed" if wanted and wanted == torch_beside() else ""
            tell(f"torch {chosen} is assumed{why}")


def _hint(outcome: Outcome, arguments: argparse.Namespace, cache: Cache | None) -> None:
    if arguments.format != "text" or not outcome.findings or not cache or not cache.first_time(HINTED):
        return
    first = outcome.findings[0]
    fixable = any(
        plan.applicability is Applicability.SAFE for each in outcome.findings for plan in each.fixes
    )
    lines = [
        "",
        "First time here? (said once in each project)",
        f"  why it matters:  gradguard explain {first.code}",
        f"  say it is fine:  add  # gradguard: ignore[{first.name}] reason  to the line",
        f'  configure:       in pyproject.toml, [tool.gradguard.rules] and below it {first.name} = "off"',
    ]
    if installed := torch_beside():
        lines.append(
            f"  torch {installed} is installed, and assumed where torch-version or --torch name no other"
        )
    if fixable:
        lines.append("  apply the safe fixes:  gradguard check --diff, then gradguard check --fix")
    lines.append("  accept what is old:  gradguard check --write-baseline gradguard-baseline.json")
    print("\n".join(lines), file=sys.stderr)
