"""Runs the command as a user does: a process of its own, in a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradguard

SERVER = Path(gradguard.__file__).parents[1]

RAISES = """\
import torch

x = torch.randn(3, requires_grad=True)
y = x.exp()
y.add_(1)
y.sum().backward()
"""
"""torch raises at the last line, because of line 5."""

CLEAN = RAISES.replace("y.add_(1)", "y = y + 1")

NO_TORCH = "def f(x):\n    return x\n"

LINE = 5


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def found(self) -> list[tuple[str, str, int]]:
        """File, code and line of each finding of a JSON report."""
        return [(each["file"], each["code"], each["line"]) for each in self.json["findings"]]


class Runner:
    """Runs `gradguard` in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, **texts: str) -> None:
        """Files by stem: `train=RAISES` writes train.py."""
        for stem, text in texts.items():
            (self.folder / f"{stem}.py").write_text(text, "utf-8")

    def __call__(self, *words: str, stdin: bytes | None = None, **environment: str) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "gradguard", *words],
            cwd=self.folder,
            input=stdin if stdin is not None else b"",
            capture_output=True,
            env=self.environment(**environment),
            timeout=600,
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of a run: no colours, this checkout."""
        plain = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "NO_COLOR")}
        return {**plain, "PYTHONPATH": str(SERVER), "PYTHONUTF8": "1", **more}
