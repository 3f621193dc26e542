"""Code that may only take so much: where hanging or eating all memory is the defect, it runs in a process with limits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import gradguard

SECONDS = 20
"""Of processor time, where the right answer takes one or two."""
MEMORY = 2_000_000_000

_LIMITS = """\
import sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, ({seconds}, {seconds}))
    resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))
except ImportError:
    pass
"""


def printed(code: str, *arguments: str, seconds: int = SECONDS, memory: int = MEMORY) -> str:
    """What a program prints that ends well within the limits."""
    done = subprocess.run(
        [sys.executable, "-c", _LIMITS.format(seconds=seconds, memory=memory) + code, *arguments],
        env={**os.environ, "PYTHONPATH": str(Path(gradguard.__file__).parents[1]), "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        timeout=10 * seconds,
        check=False,
    )
    assert done.returncode == 0, f"ended with {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout
