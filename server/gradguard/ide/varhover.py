"""The hover on a variable: its tape."""

from __future__ import annotations

from gradguard.ide.analysis import Analysis
from gradguard.ide.nodes import At
from gradguard.ide.ophover import About
from gradguard.ide.wording import Wording


def hover(analysis: Analysis, at: At, line: int, column: int, wording: Wording) -> About | None:
    """What the tape knows of the value under the cursor; None where it knows nothing."""
    return None
