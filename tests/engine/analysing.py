"""Running the engine on a text, so that a fault in it surfaces in the test."""

from __future__ import annotations

import pytest

from gradguard.engine import Analysis, analyse
from gradguard.engine.state import faults
from gradguard.findings import Finding
from gradguard.ops import table
from gradguard.rules import registry
from gradguard.source.text import Source


class NoFiles:
    """A workspace without other files."""

    def resolve(self, module: str, level: int, from_path: str) -> str | None:
        return None

    def source(self, path: str) -> Source | None:
        return None


NO_FILES = NoFiles()


def analysed(text: str, path: str = "program.py") -> Analysis:
    """What the engine makes of a program; its faults are raised."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(faults, "RERAISE", True)
        return analyse(Source(path, text), table.load(), NO_FILES)


def findings(text: str) -> list[Finding]:
    """What the rules make of it, in reading order."""
    return sorted(registry.findings(analysed(text)), key=lambda each: each.sort_key)
