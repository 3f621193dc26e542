"""GG901: an ignore comment that silences nothing.

Found where comments are matched with findings, not on the tape, so no event leads here.
"""

from __future__ import annotations

from gradguard.rules.model import Rule

RULE = Rule(
    code="GG901",
    name="unused-ignore",
    summary="an ignore comment silences nothing, or names a rule that does not exist",
    events=(),
    render=lambda context, event: None,
)
