"""The judge of all tests: what torch itself does with a program.

`judge` runs a program plainly and once more with every saved tensor cloned at saving time; `measure` runs it
under instruments. Programs run in children forked from one process that has imported torch once.
"""

from __future__ import annotations

from tests.oracle.judging import Program, Verdict, judge, judge_file, judge_many
from tests.oracle.measuring import Loop, Measurements, measure, measure_file
from tests.oracle.pool import Died, Pool, shared_pool

__all__ = [
    "Died",
    "Loop",
    "Measurements",
    "Pool",
    "Program",
    "Verdict",
    "judge",
    "judge_file",
    "judge_many",
    "measure",
    "measure_file",
    "shared_pool",
]
