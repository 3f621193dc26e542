"""Calls `gradguard run` inside a worker of the oracle, in a folder of its own."""

from __future__ import annotations

import io
import os
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

RUN = "tests.runtime.running:run_main"


@dataclass(frozen=True, slots=True)
class Ran:
    """files: what the run left behind, by relative path."""

    code: int
    stdout: str
    stderr: str
    files: dict[str, str]


def run_main(argv: list[str], files: dict[str, str]) -> Ran:
    from gradguard.runtime.run import main

    folder = Path(tempfile.mkdtemp(prefix="gradguard-run-"))
    os.chdir(folder)
    for name, text in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(argv)
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
    left = {
        str(p.relative_to(folder)): p.read_text(encoding="utf-8")
        for p in folder.rglob("*")
        if p.is_file() and p.suffix != ".pyc"
    }
    return Ran(code, out.getvalue(), err.getvalue(), left)


def run_pytest(files: dict[str, str]) -> tuple[int, str]:
    """Exit code and output of pytest on some test files, with the plugin that installing gradguard gives it."""
    import pytest

    folder = Path(tempfile.mkdtemp(prefix="gradguard-plugin-"))
    os.chdir(folder)
    for name, text in files.items():
        (folder / name).write_text(text)
    out = io.StringIO()
    arguments = [
        "-p",
        "no:cacheprovider",
        "-q",
        "--rootdir",
        str(folder),
    ]
    with redirect_stdout(out):
        code = pytest.main([*arguments, str(folder)])
    return int(code), out.getvalue()
