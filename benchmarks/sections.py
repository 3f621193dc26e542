"""The measurements, each a function from options to plain figures."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks import corpus, found, growing, peers, timing
from benchmarks import keystrokes as typed
from benchmarks.corpus import Library
from benchmarks.latency_corpus import training_file

ROOT = Path(__file__).resolve().parents[1]
SERVER = ROOT / "server"
ENVIRONMENT = {"PYTHONPATH": str(SERVER)}
GRADGUARD = [sys.executable, "-m", "gradguard"]

IN_BROWSER = "ppo.py"
"""A training script of some 300 lines."""
TRAINING = "import torch\nfrom torch import nn\n\n\n" + growing.TRAINER
"""A file with one."""


def _with_cache_in(folder: Path) -> dict[str, str]:
    """The environment of runs that find no results of earlier ones but their own."""
    return {**ENVIRONMENT, "GRADGUARD_CACHE_DIR": str(folder / "cache")}


def start_up(repeats: int = 9) -> list[dict[str, Any]]:
    """Time until small commands are done."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "plain.py").write_text("x = 1\n")
        (folder / "train.py").write_text(TRAINING.format(0))
        commands = [
            ("python -c pass", [sys.executable, "-c", "pass"]),
            ("gradguard --version", [*GRADGUARD, "--version"]),
            ("gradguard check, a file without torch", [*GRADGUARD, "check", "plain.py"]),
            (
                "gradguard check, a training script of 36 lines",
                [*GRADGUARD, "check", "--no-cache", "train.py"],
            ),
            ("gradguard check, the same from the cache", [*GRADGUARD, "check", "train.py"]),
            ("python -c 'import torch'", [sys.executable, "-c", "import torch"]),
        ]
        rows = []
        for label, command in commands:
            runs = [
                timing.run(command, cwd=folder, env=_with_cache_in(folder))
                for _ in range(repeats if "torch'" not in label else 3)
            ]
            middle = sorted(runs, key=lambda cost: cost.wall)[len(runs) // 2]
            rows.append({"what": label, "wall": middle.wall, "cpu": middle.cpu, "memory": middle.memory})
        return rows


def latency(keys: int, limit: float) -> list[dict[str, Any]]:
    """What an editor waits for, over stdio."""
    with tempfile.TemporaryDirectory() as name:
        report = Path(name) / "latency.json"
        command = [sys.executable, "-m", "benchmarks.latency", "--keys", str(keys), "--json", str(report)]
        cost = timing.run(command, cwd=ROOT, limit=limit)
        if not report.exists():
            print(f"  no figures: {cost.err.strip()[-300:] or 'the time was up'}", flush=True)
            return []
        rows: list[dict[str, Any]] = json.loads(report.read_text("utf-8"))
        return rows


def keystrokes(spots: int, left: Callable[[], float]) -> dict[str, Any]:
    """What an editor waits for in real training scripts, over stdio."""
    return typed.figures(typed.measure(corpus.scripts(), spots, left))


def browser() -> dict[str, Any]:
    """The playground of the built web pages (`make docs`) in Chromium, cold, warm, and while a training script is typed in."""
    script = next(path for path in corpus.scripts() if path.name == IN_BROWSER)
    with tempfile.TemporaryDirectory() as name:
        functions = Path(name) / "functions.py"
        functions.write_text(training_file(script.read_text("utf-8").count("\n")), "utf-8")
        command = ["node", "benchmarks/browser.mjs", "site", str(functions), str(script)]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    for typed_in in figures["typed"]:
        times = sorted(typed_in.pop("times"))
        typed_in["median"] = times[len(times) // 2]
        typed_in["p95"] = times[math.ceil(len(times) * 0.95) - 1]
    figures["load"], figures["cpus"] = os.getloadavg()[1], os.cpu_count()
    figures["sizes"] = json.loads((ROOT / "client" / "dist" / "web" / "parts.json").read_text("utf-8"))[
        "sizes"
    ]
    return figures


def parser(chosen: Sequence[Library], left: Callable[[], float]) -> list[dict[str, Any]]:
    """A cold check in one process beside `ast.parse` of the same files, in CPU seconds of the same minute."""
    rows: list[dict[str, Any]] = []
    for library in chosen:
        texts = [path.read_bytes() for path in library.files]
        before = typed.parse_time(texts)
        command = [*GRADGUARD, "check", "--no-cache", "--exit-zero", "--jobs", "1", *library.paths]
        with tempfile.TemporaryDirectory() as name:
            cost = timing.run(command, cwd=Path(name), env=ENVIRONMENT, limit=left())
        # Before and after: a machine that is busy with other work for a while is so for both.
        parsing = (before + typed.parse_time(texts)) / 2
        row = {
            "library": f"{library.name} {library.version}",
            "files": len(library.files),
            "lines": library.lines,
            "finished": cost.code is not None,
            "cpu": cost.cpu,
            "memory": cost.memory,
            "parsing": parsing,
        }
        rows.append(row)
        print(
            f"  {row['library']}: {cost.cpu:.1f} CPU s, {cost.cpu / parsing:.1f} times ast.parse", flush=True
        )
    return rows


LARGE = 200_000
"""Lines from which a library is checked in part when the time does not suffice for all of it."""
PILOT = 64
"""Every so many files tell how long a large library would take."""


@dataclass(slots=True)
class Checked:
    """What a run over libraries has found."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    findings: list[found.Finding] = field(default_factory=list)
    files: dict[str, set[str]] = field(default_factory=dict)
    """The files that were checked, by library."""


def libraries(chosen: Sequence[Library], jobs: int, left: Callable[[], float]) -> Checked:
    """A cold check of each library, and one more from the cache; one for which no time is left is told.

    A large one is checked in part, evenly spread, if the time that is left would not suffice for all.
    """
    checked = Checked()
    ordered = sorted(chosen, key=lambda each: each.lines)
    for number, whole in enumerate(ordered):
        lines_left = sum(each.lines for each in ordered[number:])
        library = (
            _affordable(whole, jobs, left() * whole.lines / lines_left) if whole.lines > LARGE else whole
        )
        row = _library(library, jobs, left, checked)
        checked.rows.append(row)
        if "stopped" in row:
            print(f"  {row['library']}: stopped after {row['stopped']:.0f} s", flush=True)
        else:
            count = sum(row["severities"].values())
            print(f"  {row['library']}: {row['wall']:.1f} s, {count} findings", flush=True)
    return checked


def _affordable(library: Library, jobs: int, seconds: float) -> Library:
    """As much of a library as these seconds suffice for, going by a few of its files."""
    pilot = replace(library, step=PILOT)
    with tempfile.TemporaryDirectory() as name:
        command = [*GRADGUARD, "check", "--no-cache", "--exit-zero", "--jobs", str(jobs), *pilot.paths]
        cost = timing.run(command, cwd=Path(name), env=ENVIRONMENT, limit=seconds)
    # A fifth is left for the run from the cache, and for files that are slower than those of the pilot.
    return replace(library, step=min(PILOT, math.ceil(cost.wall * PILOT / (0.8 * seconds))))


def _library(library: Library, jobs: int, left: Callable[[], float], into: Checked) -> dict[str, Any]:
    label = f"{library.name} {library.version}"
    with tempfile.TemporaryDirectory() as name:
        report = Path(name) / "report.json"
        command = [*GRADGUARD, "check", "--jobs", str(jobs), "--format", "json", "--output", str(report)]
        command += library.paths
        environment = _with_cache_in(Path(name))
        cold = timing.run(command, cwd=Path(name), env=environment, limit=left())
        if cold.code is None:
            return {"library": label, "stopped": cold.wall}
        if not report.exists():
            raise SystemExit(f"no report for {library.name}: {cold.err.strip()[-2000:]}")
        document = json.loads(report.read_text("utf-8"))
        warm = timing.run(command, cwd=Path(name), env=environment, limit=left())
    findings = document.get("findings", [])
    into.files[label] = {path.relative_to(library.folder).as_posix() for path in library.files}
    into.findings += [
        found.Finding(
            label,
            Path(each["file"]).relative_to(library.folder).as_posix(),
            each["line"],
            each["code"],
            each["severity"],
        )
        for each in findings
    ]
    return {
        "library": label,
        "step": library.step,
        "files": len(library.files),
        "torch_files": library.torch_files,
        "lines": library.lines,
        "wall": cold.wall,
        "cpu": cold.cpu,
        "memory": cold.memory,
        "warm": warm.wall if warm.code is not None else None,
        "code": cold.code,
        "severities": dict(Counter(each["severity"] for each in findings)),
        "codes": dict(sorted(Counter(each["code"] for each in findings).items())),
        "limits": len(document.get("limits", [])),
        "errors": [f"{each['file']}: {each['message']}" for each in document.get("errors", [])],
    }


def scaling(library: Library, jobs: int, left: Callable[[], float]) -> dict[str, Any]:
    """Time against lines: more and more files of a library, and one file that grows."""
    shares: list[dict[str, Any]] = []
    files = [path for path in library.files if b"torch" in path.read_bytes()]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for share in (0.125, 0.25, 0.5, 1.0):
            # Every n-th file, so that each share is made of the same kind of code.
            step = round(1 / share)
            chosen = files[::step]
            part = folder / f"part{step}"
            for path in chosen:
                target = part / path.relative_to(library.folder)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
            lines = sum(path.read_bytes().count(b"\n") for path in chosen)
            row: dict[str, Any] = {"lines": lines, "files": len(chosen)}
            for processes in sorted({1, jobs}):
                command = [
                    *GRADGUARD,
                    "check",
                    "--no-cache",
                    "--exit-zero",
                    "--jobs",
                    str(processes),
                    str(part),
                ]
                cost = timing.run(command, cwd=folder, env=ENVIRONMENT, limit=left())
                if cost.code is None:
                    break  # The time is up: what was stopped says nothing about the rest.
                row[f"wall_{processes}"] = cost.wall
                row[f"cpu_{processes}"] = cost.cpu
            else:
                shares.append(row)
        single: list[dict[str, Any]] = []
        each = TRAINING.count("\n")
        for wanted in (1_000, 5_000, 10_000, 25_000, 50_000):
            count = wanted // each
            file = folder / f"long{wanted}.py"
            file.write_text("".join(TRAINING.format(number) for number in range(count)))
            command = [*GRADGUARD, "check", "--no-cache", "--exit-zero", file.name]
            cost = timing.run(command, cwd=folder, env=ENVIRONMENT, limit=left())
            if cost.code is None:
                break
            single.append({"lines": count * each, "wall": cost.wall, "cpu": cost.cpu, "memory": cost.memory})
    return {"library": f"{library.name} {library.version}", "jobs": jobs, "shares": shares, "single": single}


def neighbours(
    chosen: Sequence[Library],
    tools: Sequence[peers.Peer],
    jobs: int,
    limit: float,
    left: Callable[[], float],
) -> list[dict[str, Any]]:
    """gradguard and its neighbours over the same folders in one run."""
    programs = peers.programs()
    rows: list[dict[str, Any]] = []
    for library in chosen:
        commands = [
            (
                "gradguard",
                [
                    *GRADGUARD,
                    "check",
                    "--no-cache",
                    "--jobs",
                    str(jobs),
                    "--format",
                    "github",
                    str(library.folder),
                ],
                lambda out: out.count("\n"),
            ),
            *((peer.name, peer.command(programs, library.folder, jobs), peer.findings) for peer in tools),
        ]
        for name, command, count in commands:
            cost = timing.run(
                command,
                cwd=library.folder,
                env=ENVIRONMENT if name == "gradguard" else None,
                limit=min(limit, left()),
            )
            rows.append(
                {
                    "tool": name,
                    "library": f"{library.name} {library.version}",
                    "lines": library.lines,
                    "jobs": jobs,
                    "finished": cost.code is not None,
                    "code": cost.code,
                    "wall": cost.wall,
                    "cpu": cost.cpu,
                    "memory": cost.memory,
                    "findings": count(cost.out) if cost.code is not None else None,
                    "message": _last_line(cost.err).replace(f"{library.folder}/", ""),
                }
            )
            print(f"  {library.name}: {name}: {cost.wall:.1f} s, exit {cost.code}", flush=True)
    return rows


def _last_line(text: str) -> str:
    return text.strip().splitlines()[-1][:200] if text.strip() else ""
