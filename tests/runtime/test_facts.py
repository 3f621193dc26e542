"""On every recorded fact the monitor says what torch does: a fault where it raises or corrupts, else none."""

from __future__ import annotations

import pytest
from tests.oracle.pool import Died, shared_pool
from tests.oracle.test_facts import load
from tests.runtime.watching import RUN

PRELUDE, FACTS = load()
# Nothing that gradguard has a code for.
OTHER = ("cannot resize variables",)
FAULTS = {"GG101", "GG102", "GG103", "GG104", "GG105", "GG106", "GG107", "GG109", "GG203"}


@pytest.fixture(scope="module")
def watched():
    calls = [(RUN, 60.0, {"code": f["code"], "prelude": PRELUDE, "light": False}) for f in FACTS]
    return shared_pool().map(calls)


@pytest.mark.parametrize("number", range(len(FACTS)))
def test_fact(watched, number):
    fact, seen = FACTS[number], watched[number]
    assert not isinstance(seen, Died), seen
    assert not seen.troubles
    codes = {code for _, code in seen.lines} & FAULTS
    assert seen.error.startswith(fact["message"])
    if fact["outcome"] == "ok":
        assert not codes, seen.findings
    elif fact["outcome"] == "silent":
        assert codes == {"GG105"}, seen.findings
    elif not fact["message"].startswith(OTHER):
        assert codes, seen.findings
        assert all(severity == "error" for _, code, severity, *_ in seen.findings if code in codes)
