"""Which rules speak for a file, and how loudly."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import PurePath

from gradguard.check.catalogue import Catalogue
from gradguard.check.patterns import Patterns
from gradguard.check.settings import Level, Settings
from gradguard.findings import Certainty, Finding, Severity


class Selection:
    """Settings applied to the rules there are."""

    def __init__(self, settings: Settings, rules: Catalogue) -> None:
        self._levels = dict(settings.levels)
        self._root = settings.root
        self._globs, self._muting = _muting(settings.per_file_ignores)
        self._by_path: dict[str, frozenset[str]] = {}
        selected = frozenset(settings.select)
        asked = {code for code, level in settings.levels if level is not Level.OFF}
        muted = {code for code, level in settings.levels if level is Level.OFF} | set(settings.ignore)
        on = selected or {rule.code for rule in rules.rules if rule.on} | asked
        self._on = frozenset(on) - muted

    def running(self, path: str) -> frozenset[str]:
        """Codes of the rules that speak for the file at this path."""
        if not self._globs:
            return self._on
        if path not in self._by_path:
            found = self._globs.found(relative(path, self._root))
            self._by_path[path] = self._on - {code for code, mask in self._muting.items() if found & mask}
        return self._by_path[path]

    def allows(self, code: str, path: str) -> bool:
        """Whether this rule speaks for this file."""
        return code in self.running(path)

    def leveled(self, finding: Finding) -> Finding:
        """The finding as loud as the settings want it.

        A level counts for what is certain and likely alike. What is merely possible is never louder than
        information, so that `--all` cannot fail a run.
        """
        level = self._levels.get(finding.code)
        severity = (level.severity if level else None) or finding.severity
        if finding.certainty is Certainty.POSSIBLE and severity.rank < Severity.INFORMATION.rank:
            severity = Severity.INFORMATION
        return finding if severity is finding.severity else replace(finding, severity=severity)


def widened(settings: Settings, rules: Catalogue) -> Settings:
    """The same with all rules that are on by default or speak somewhere: what a repair brings is to be seen, also where
    nobody asks for it."""
    if not (settings.select or settings.ignore or settings.levels or settings.per_file_ignores):
        return settings
    codes = {rule.code for rule in rules.rules if rule.on} | Selection(settings, rules)._on
    return settings.with_changes(select=tuple(sorted(codes)), ignore=(), levels=(), per_file_ignores=())


@lru_cache(maxsize=8)
def _muting(per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...]) -> tuple[Patterns, dict[str, int]]:
    """The patterns of files, and which of them mute each rule."""
    patterns = Patterns([glob for glob, _ in per_file_ignores])
    globs: dict[str, list[str]] = {}
    for glob, codes in per_file_ignores:
        for code in codes:
            globs.setdefault(code, []).append(glob)
    return patterns, {code: patterns.mask(those) for code, those in globs.items()}


def relative(path: str, root: str) -> str:
    """The path from the root, with slashes; the path itself where it lies outside."""
    pure = PurePath(path)
    if root and pure.is_relative_to(root):
        return pure.relative_to(root).as_posix()
    return pure.as_posix().lstrip("/")
