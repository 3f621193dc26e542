"""Several processes give what one gives, and tell when one is lost."""

from __future__ import annotations

import os
from functools import partial

import pytest

from gradguard.check.settings import Settings
from gradguard.cli import pool
from gradguard.cli.worker import Checked, Checker, Job

JOBS = [Job(f"/x/{number}.py", Settings(), data=b"") for number in range(50)]


class Naming(Checker):
    def check(self, job: Job) -> Checked:
        return Checked(job.path)


class Dying(Checker):
    def check(self, job: Job) -> Checked:
        if job.path.endswith("/30.py"):
            os._exit(9)
        return Checked(job.path)


class Failing(Checker):
    def _check(self, job: Job) -> Checked:
        raise ZeroDivisionError("at work")


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_results_come_in_the_order_of_the_jobs(processes: int) -> None:
    done = pool.run(JOBS, partial(Naming, None), processes)
    assert [each.path for each in done] == [job.path for job in JOBS]


def test_a_lost_worker_is_told() -> None:
    with pytest.raises(pool.WorkerDied, match="try --jobs 1"):
        list(pool.run(JOBS, partial(Dying, None), 2))


def test_a_fault_in_one_file_does_not_end_the_run() -> None:
    done = list(pool.run(JOBS, partial(Failing, None), 2))
    assert len(done) == 50
    assert "internal error ZeroDivisionError: at work" in str(done[0].troubles[0])
    assert "Traceback" in done[0].report.crash
