"""What programs that could grow without bound cost: each of `growing.py` is checked in a process of its own."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import corpus, growing, timing
from benchmarks import keystrokes as typed

SECONDS, MEMORY = 2.0, 300
"""CPU seconds, where `ast.parse` takes `keystrokes.QUICK` µs for a line, and MiB that any file of 3,000 lines may take."""


def measure(left: Callable[[], float]) -> dict[str, Any]:
    """Start-up included, which is a tenth of a second and 20 MiB."""
    rows: list[dict[str, Any]] = []
    scripts = [path.read_bytes() for path in corpus.scripts()]
    line = typed.parse_time(scripts) / sum(text.count(b"\n") for text in scripts) * 1e6
    with tempfile.TemporaryDirectory() as name:
        program, report = Path(name) / "program.py", Path(name) / "report.json"
        command = [sys.executable, "-m", "gradguard", "check", "--no-cache", "--exit-zero", "--jobs", "1"]
        command += ["--format", "json", "--output", str(report), str(program)]
        for what, text in growing.PROGRAMS.items():
            if left() <= 0:
                break
            program.write_text(text, "utf-8")
            report.unlink(missing_ok=True)
            environment = {"PYTHONPATH": str(Path(__file__).parents[1] / "server")}
            cost = timing.run(command, cwd=Path(name), env=environment, limit=min(60.0, left()))
            told = json.loads(report.read_text("utf-8")) if report.exists() else {}
            cpu = cost.cpu * typed.QUICK / line
            rows.append(
                {
                    "program": what,
                    "lines": text.count("\n"),
                    "cpu": cost.cpu,
                    "quick": cpu,
                    "memory": cost.memory,
                    "cut": bool(told.get("limits")),
                    "finished": bool(told),
                    "met": bool(told) and cpu <= SECONDS and cost.memory <= MEMORY,
                }
            )
            if not rows[-1]["met"]:
                print(f"  {what}: {cost.cpu:.1f} CPU s, {cost.memory:.0f} MiB", flush=True)
    return {"parse_line": line, "rows": rows}
