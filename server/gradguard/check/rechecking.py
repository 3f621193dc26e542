"""Texts of one file, checked one after the other with what is known of the one before."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gradguard.check.api import Report, analysed
from gradguard.check.engine import answer
from gradguard.check.settings import Settings
from gradguard.check.workspace import Workspace
from gradguard.source.text import Source

if TYPE_CHECKING:
    from gradguard.engine import Analysis


class Rechecking:
    """Checks texts of one file. The answer is that of `api.check`, whatever came before."""

    def __init__(self, settings: Settings, workspace: Workspace) -> None:
        self._settings, self._workspace = settings, workspace
        self._source: Source | None = None
        self._tape: Analysis | None = None

    def __call__(self, source: Source) -> Report:
        """What is found in a text, which keeps its trees: they would be used up by the next one."""
        self._source = Source(source.path, source.text, self._source, source.breaks)
        engine = partial(answer, previous=self._tape)
        report, self._tape = analysed(self._source, self._settings, self._workspace, engine)
        return report
