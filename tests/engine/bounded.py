"""Programs that grow, checked in a process of their own that may not.

All of them run in one child, which says what became of each as soon as it is known: one that hangs or takes too much
memory costs those behind it, and is named.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

MEMORY = 1_500_000_000
"""Bytes of address space; every program here takes a tenth of it."""
SECONDS = 10
"""CPU seconds of one program on average; every program here takes one or two at most."""

MISTAKE = "y = torch.rand(3, requires_grad=True).exp()\ny += 1\ny.sum().backward()\n"

_CHILD = """
import cProfile, json, resource, sys
memory, seconds, counted = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
from gradguard.check.api import check
from gradguard.check.settings import Settings
from gradguard.source.text import Source
for name, text in json.load(sys.stdin).items():
    print(json.dumps([name]), flush=True)
    profile = cProfile.Profile(builtins=False)
    if counted:
        profile.enable()
    report = check(Source("program.py", text), Settings())
    profile.disable()
    calls = sum(entry.callcount for entry in profile.getstats())
    found = [[each.code, each.span.line, each.certainty.value] for each in report.findings]
    print(json.dumps([name, [each.message for each in report.limits], found, report.crash, calls]), flush=True)
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was said of a program."""

    limits: tuple[str, ...]
    findings: tuple[tuple[str, int, str], ...]
    """Code, line and certainty."""
    crash: str
    calls: int = 0
    """Calls of Python functions, where these were counted: all work is some, whatever the engine itself counts."""

    def told(self, line: int) -> bool:
        """Whether a mistake is told at a line, for certain."""
        return any(found[1:] == (line, "certain") for found in self.findings)


def checked(programs: dict[str, str], *, memory: int = MEMORY, counted: bool = False) -> dict[str, Outcome]:
    """The outcome of each program; `counted`: with the calls that it took."""
    seconds = SECONDS * len(programs)
    child = subprocess.run(
        [sys.executable, "-c", _CHILD, str(memory), str(seconds), str(int(counted))],
        input=json.dumps(programs),
        capture_output=True,
        text=True,
        timeout=20 * seconds,
        env={"PYTHONPATH": str(Path(__file__).parents[2] / "server"), "PYTHONHASHSEED": "0"},
    )
    lines = [json.loads(line) for line in child.stdout.splitlines()]
    ends = {name: rest for name, *rest in lines if rest}
    begun = [line[0] for line in lines]
    assert len(ends) == len(programs), f"{begun[-1:]}: {child.returncode} {child.stderr[-2000:]}"
    return {
        name: Outcome(tuple(limits), tuple(tuple(each) for each in found), crash, calls)
        for name, (limits, found, crash, calls) in ends.items()
    }
