"""Calls `gradguard run` inside a worker of the oracle, in a folder of its own."""

from __future__ import annotations

import atexit
import io
import os
import runpy
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

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


def run_pytest(files: dict[str, str], options: Sequence[str] = ()) -> tuple[int, str]:
    """Exit code and output of pytest on some test files, with the plugin that installing gradguard gives it.

    The output ends with the last run that was kept.
    """
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
        code = pytest.main([*arguments, *options, str(folder)])
    kept = (folder / ".gradguard" / "last-run.json").read_text()
    return int(code), f"{out.getvalue()}\nLAST RUN\n{kept}"


def run_process(
    argv: list[str],
    files: dict[str, str],
    given: str = "",
    watched: bool = True,
    ranks: int = 0,
    kill: int | None = None,
) -> Ran:
    """`gradguard run` in a process of its own, forked rather than started: torch is there already.

    Ends as a process of Python does. With `watched` off it is the script alone that runs. With `ranks`, in so many
    processes as a launcher starts them, with the same files and streams; the code is the largest of theirs. `kill` is
    a signal that the process gets once it has made a file named "ready".
    """
    folder = Path(tempfile.mkdtemp(prefix="gradguard-process-"))
    streams = Path(tempfile.mkdtemp(prefix="gradguard-streams-"))
    for name, text in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    (streams / "in").write_text(given)
    started = []
    port = _free_port() if ranks else 0
    for rank in range(ranks or 1):
        pid = os.fork()
        if not pid:
            if ranks:
                os.environ.update(
                    RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks),
                    MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                )  # fmt: skip
            _process(argv, folder, streams, watched)
        started.append(pid)
    while kill is not None and not (folder / "ready").exists():
        time.sleep(0.01)
    if kill is not None:
        os.kill(started[0], kill)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in started]
    out, err = ((streams / name).read_text(encoding="utf-8") for name in ("out", "err"))
    return Ran(max(codes, key=abs), out, err, _left(folder))


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _process(argv: list[str], folder: Path, streams: Path, watched: bool) -> NoReturn:
    code = 1
    try:
        os.chdir(folder)
        for number, (name, mode) in enumerate((("in", "r"), ("out", "w"), ("err", "w"))):
            flags = os.O_RDONLY if mode == "r" else os.O_WRONLY | os.O_CREAT | os.O_APPEND
            os.dup2(os.open(streams / name, flags), number)
            stream = os.fdopen(number, mode, encoding="utf-8", closefd=False)
            setattr(sys, ("stdin", "stdout", "stderr")[number], stream)
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
