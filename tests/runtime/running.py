"""Calls `gradguard run` inside a worker of the oracle, in a folder of its own."""

from __future__ import annotations

import io
import os
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

RUN = "tests.runtime.running:run_main"
PROCESS = "tests.runtime.running:run_process"


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
    return Ran(code, out.getvalue(), err.getvalue(), _left(folder))


def _left(folder: Path) -> dict[str, str]:
    return {
        str(p.relative_to(folder)): p.read_text(encoding="utf-8")
        for p in folder.rglob("*")
        if p.is_file() and p.suffix != ".pyc"
    }


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


def run_process(argv: list[str], files: dict[str, str], given: str = "", watched: bool = True) -> Ran:
    """`gradguard run` in a process of its own, forked rather than started: torch is there already.

    Ends as a process of Python does. With `watched` off it is the script alone that runs.
    """
    import atexit
    import runpy
    import sys
    import traceback

    folder = Path(tempfile.mkdtemp(prefix="gradguard-process-"))
    streams = Path(tempfile.mkdtemp(prefix="gradguard-streams-"))
    for name, text in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    (streams / "in").write_text(given)
    pid = os.fork()
    if not pid:
        code = 1
        try:
            os.chdir(folder)
            for number, (name, mode) in enumerate((("in", "r"), ("out", "w"), ("err", "w"))):
                os.dup2(
                    os.open(streams / name, os.O_RDONLY if mode == "r" else os.O_WRONLY | os.O_CREAT), number
                )
                setattr(
                    sys,
                    ("stdin", "stdout", "stderr")[number],
                    os.fdopen(number, mode, encoding="utf-8", closefd=False),
                )
            if watched:
                from gradguard.runtime.run import main

                code = main(argv)
            else:
                sys.argv = argv
                sys.path.insert(0, str(folder))
                runpy.run_path(str(folder / argv[0]), run_name="__main__")
                code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        except BaseException:
            traceback.print_exc()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    status = os.waitpid(pid, 0)[1]
    out, err = ((streams / name).read_text(encoding="utf-8") for name in ("out", "err"))
    return Ran(os.waitstatus_to_exitcode(status), out, err, _left(folder))
