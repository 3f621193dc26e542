"""`gradguard run [options] PROGRAM args...`: runs a program under the monitor.

Exit code: that of the program if it is not 0; else 1 if something of warning or above was found, which `--exit-zero`
drops, as does a launcher: a job of many processes ends as it would have ended. 2 if the program cannot be started.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from gradguard.disk.writing import replace_file
from gradguard.report.words import Words, language
from gradguard.runtime import programs
from gradguard.runtime.errors import trimmed_traceback
from gradguard.runtime.html import html_report
from gradguard.runtime.launchers import rank_of
from gradguard.runtime.options import options_of
from gradguard.runtime.programs import NotStarted, Program
from gradguard.runtime.ranks import FOLDER, Member
from gradguard.runtime.report import RunReport, document
from gradguard.runtime.report_text import text_report
from gradguard.runtime.watching import Watching
from gradguard.source.printable import printable, printable_json

INTERRUPTED = 130


def main(argv: Sequence[str], worded: Callable[[str], Words] = Words) -> int:
    """Runs the program named by `argv` (without `gradguard run`) and returns the exit code."""
    options, kind, words = options_of(argv)
    root = Path.cwd()
    if options.output is not None and not Path(options.output).absolute().parent.is_dir():
        _say(f"--output {options.output}: no such folder")
        return 2
    try:
        program = _program(kind, words)
    except NotStarted as error:
        _say(str(error))
        return 2
    except OSError as error:
        _say(f"cannot read {words[0]}: {error.strerror or error}")
        return 2
    except (SyntaxError, ValueError) as error:
        _say(f"{kind or words[0]} is not valid Python: {error}")
        return 2
    member = Member(root, os.environ.get(FOLDER), rank_of(os.environ))
    watching = Watching(
        program.command,
        options.light,
        member,
        lambda report: _write(report, options, root, worded(options.lang or language())),
        _say,
        (program.file,) if program.file else (),
    )
    ended = watching.run(program.start, lambda raised: _print(raised, program.file))
    if isinstance(ended, NotStarted):
        _say(str(ended))
        return 2
    code = _exit_code(ended)
    starts_only = watching.children.launched and not watching.watched.state.operators
    if code or watching.report is None or options.exit_zero or not member.leads or starts_only:
        return code
    return int(watching.report.loud)


def _say(message: str) -> None:
    print(printable(f"gradguard run: {message}"), file=sys.stderr)


def _program(kind: str, words: list[str]) -> Program:
    if kind == "-m":
        return programs.module(words[0], words[1:])
    if kind == "-c":
        return programs.code(words[0], words[1:])
    if kind == "-":
        return programs.standard_input(words)
    return programs.path(words[0], words[1:])


def _print(error: BaseException, script: str) -> None:
    """Says what ended the program, as Python would say it."""
    if isinstance(error, SystemExit):
        if error.code is not None and not isinstance(error.code, int):
            print(error.code, file=sys.stderr)
        return
    sys.stdout.flush()
    if sys.excepthook is not sys.__excepthook__:
        sys.excepthook(type(error), error, error.__traceback__)
    else:
        sys.stderr.write(trimmed_traceback(error, script))


def _exit_code(error: BaseException | None) -> int:
    if isinstance(error, SystemExit):
        return 0 if error.code is None else error.code if isinstance(error.code, int) else 1
    return 0 if error is None else INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1


def _write(report: RunReport, options: argparse.Namespace, root: Path, words: Words) -> None:
    if options.format == "json":
        text = printable_json(json.dumps(document(report, root), indent=2, ensure_ascii=False)) + "\n"
    elif options.format == "html":
        text = html_report(report, root)
    else:
        columns = shutil.get_terminal_size().columns if sys.stderr.isatty() and not options.output else None
        text = text_report(report, root, words, columns)
    if options.output is None:
        _to_stderr(text)
        return
    try:
        # From where the run was started: the program may have gone elsewhere.
        replace_file(root / options.output, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        _say(f"cannot write {options.output}: {error.strerror}")


def _to_stderr(text: str) -> None:
    try:
        # In one piece: others of the job may write there, too.
        sys.stderr.write(text)
        sys.stderr.flush()
    except RuntimeError:
        # A signal came while the program was writing there.
        os.write(2, text.encode("utf-8", "backslashreplace"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
