"""`gradguard run [options] script.py args... | -m module args...`: runs a program under the monitor.

The program sees its own `sys.argv`, `sys.path` and `__main__`, as if it had been started by Python. Exit code: that
of the program if it is not 0; else 1 if something of warning or above was found; 2 if the program cannot be started.
"""

from __future__ import annotations

import argparse
import json
import linecache
import os
import runpy
import sys
import types
from collections.abc import Callable, Sequence
from importlib.util import decode_source
from pathlib import Path
from typing import NoReturn

from gradguard.disk.writing import replace_file
from gradguard.findings import Severity
from gradguard.runtime import handlers
from gradguard.runtime.errors import trimmed_traceback
from gradguard.runtime.html import html_report
from gradguard.runtime.report import RunReport, document, text_report, write_last_run
from gradguard.runtime.watched_run import WatchedRun
from gradguard.source.printable import printable, printable_json

INTERRUPTED = 130


def main(argv: Sequence[str]) -> int:
    """Runs the program named by `argv` (without `gradguard run`) and returns the exit code."""
    options, words = _parse(argv)
    root = Path.cwd()
    if not words and options.module is None:
        _say("name a script, or -m and a module")
        return 2
    if options.output is not None and not Path(options.output).absolute().parent.is_dir():
        _say(f"--output {options.output}: no such folder")
        return 2
    start: Callable[[], None]
    if options.module is not None:
        command: tuple[str, ...] = ("-m", options.module, *words)
        script = options.module
        start = _module(options.module, words)
        always: tuple[str, ...] = ()
    else:
        command = tuple(words)
        script = words[0]
        try:
            start = _script(script, words[1:])
        except OSError as error:
            _say(f"cannot read {script}: {error.strerror or error}")
            return 2
        except (SyntaxError, ValueError) as error:
            _say(f"{script} is not valid Python: {error}")
            return 2
        always = (os.path.abspath(script),)
    run = WatchedRun(options.light, always)

    def reported() -> int:
        report = RunReport.of(run, command, root)
        _write(report, options, root)
        return int(any(f.severity.rank <= Severity.WARNING.rank for f in report.findings))

    try:
        code = _watched(run, start, script, reported)
    except _NotStarted as error:
        _say(str(error))
        return 2
    if run.forked:
        # A child that the program made came to the program's end; its parent writes the report.
        return code
    loud = reported()
    return code or loud


class _NotStarted(Exception):
    """There is no such program."""


def _say(message: str) -> None:
    print(printable(f"gradguard run: {message}"), file=sys.stderr)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


def _parse(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    parser = _Parser(
        prog="gradguard run",
        usage="gradguard run [--light] [--format text|json|html] [--output FILE] (script.py | -m module) [args ...]",
        description="Run a program and report the autograd mistakes that really happen.",
    )
    parser.add_argument("--light", action="store_true", help="watch a sample of the passes only; costs less")
    parser.add_argument("--format", choices=("text", "json", "html"), default="text")
    parser.add_argument(
        "--output", metavar="FILE", help="write the report to a file instead of standard error"
    )
    own: list[str] = []
    module: str | None = None
    rest = list(argv)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word == "--":
            break
        if word == "-m":
            if not rest:
                parser.error("-m needs a module")
            module = rest.pop(0)
            break
        own.append(word)
        if word in ("--format", "--output") and rest:
            own.append(rest.pop(0))
    options = parser.parse_args(own)
    options.module = module
    return options, rest


def _script(path: str, arguments: list[str]) -> Callable[[], None]:
    """Raises OSError or SyntaxError if the script cannot be read."""
    full = os.path.abspath(path)
    data = Path(full).read_bytes()
    code = handlers.compiled(data, full)
    if not os.path.isfile(full):  # a pipe gives its text once, and who quotes it would wait for more
        lines = decode_source(data).splitlines(keepends=True)
        linecache.cache[full] = (len(data), None, lines, full)

    def start() -> None:
        sys.argv = [path, *arguments]
        _search_first(os.path.dirname(full))
        main_module = types.ModuleType("__main__")
        main_module.__dict__.update(__file__=full, __builtins__=__builtins__)
        sys.modules["__main__"] = main_module
        exec(code, main_module.__dict__)

    return start


def _module(name: str, arguments: list[str]) -> Callable[[], None]:
    def start() -> None:
        sys.argv = [name, *arguments]
        _search_first(os.getcwd())
        runpy.run_module(name, run_name="__main__", alter_sys=True)

    return start


def _search_first(folder: str) -> None:
    """Python looks for modules of a program beside it, first of all; not beside the command that started it."""
    command = getattr(sys.modules["__main__"], "__file__", None)
    if command and sys.path[:1] in (
        [os.path.dirname(os.path.abspath(command))],
        [os.path.dirname(os.path.realpath(command))],
    ):
        del sys.path[0]
    sys.path.insert(0, folder)


def _watched(run: WatchedRun, start: Callable[[], None], script: str, reported: Callable[[], object]) -> int:
    """Runs the program; its uncaught exception is printed as Python would print it. Returns its exit code.

    `reported` is called if the program ends its process itself.
    """
    run.start(sys._getframe())
    error: BaseException | None = None
    leave = os._exit

    def leaving(status: int) -> NoReturn:
        if not run.closed:
            run.stop()
            reported()
            sys.stderr.flush()
        leave(status)

    os._exit = leaving
    try:
        with handlers.told(run.caught, run.frames.is_user_file):
            start()
    except SystemExit as stop:
        error = stop
    except BaseException as raised:
        error = raised
    os._exit = leave
    run.stop(error)
    if error is None:
        return 0
    if isinstance(error, SystemExit):
        return _exit_code(error)
    if isinstance(error, ImportError) and _raised_in(error) == runpy.run_module.__code__.co_filename:
        raise _NotStarted(str(error))
    sys.stdout.flush()
    if sys.excepthook is not sys.__excepthook__:
        sys.excepthook(type(error), error, error.__traceback__)
    else:
        sys.stderr.write(trimmed_traceback(error, os.path.abspath(script)))
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1


def _raised_in(error: BaseException) -> str:
    """The file of the function that raised an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else trace.tb_frame.f_code.co_filename


def _exit_code(stop: SystemExit) -> int:
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code
    print(stop.code, file=sys.stderr)
    return 1


def _write(report: RunReport, options: argparse.Namespace, root: Path) -> None:
    if options.format == "json":
        text = printable_json(json.dumps(document(report, root), indent=2, ensure_ascii=False)) + "\n"
    elif options.format == "html":
        text = html_report(report, root)
    else:
        text = text_report(report, root)
    try:
        write_last_run(report, root)
    except OSError as error:
        _say(f"cannot keep the last run: {error.filename}: {error.strerror}")
    if options.output is None:
        sys.stderr.write(text)
        return
    try:
        # From where the run was started: the program may have gone elsewhere.
        replace_file(root / options.output, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        _say(f"cannot write {options.output}: {error.strerror}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
