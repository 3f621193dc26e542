"""The command line: its commands, options and their help."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NoReturn

from gradguard import __version__
from gradguard.cli.language import helped
from gradguard.cli.stderr import complain
from gradguard.report.words import ENGLISH, LANGUAGES

FORMATS = ("text", "json", "sarif", "github", "gitlab")

DESCRIPTION = (
    "Finds autograd mistakes in PyTorch code: what will raise, corrupt gradients, keep memory or stall."
)

EXIT_CODES = """\
exit codes:
  0  no finding of warning or above
  1  findings of warning or above
  2  something could not be checked, or the request is wrong (the reason is on stderr);
     with --strict also where anything was not read, or lost to an internal error
"""


class Parser(argparse.ArgumentParser):
    """A parser whose errors read as all others of the command do."""

    def error(self, message: str) -> NoReturn:
        complain(message)
        self.exit(2, f"See: {self.prog} --help\n")


def parser(wanted: str = ENGLISH) -> argparse.ArgumentParser:
    """The parser of all commands, with its help in a language."""
    root = Parser(prog="gradguard", description=DESCRIPTION, allow_abbrev=False)
    root.add_argument("--version", action="version", version=f"gradguard {__version__}")
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    check = _check(commands)
    explain = commands.add_parser("explain", help="explain a rule or a torch operation", allow_abbrev=False)
    explain.add_argument(
        "what", metavar="WHAT", help="a code, the name of a rule, or an operation: torch.sigmoid"
    )
    explain.add_argument("--torch", metavar="VERSION", help="the torch release whose behaviour is explained")
    explain.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="colours")
    ops = commands.add_parser(
        "ops", help="search what each torch operation saves and writes", allow_abbrev=False
    )
    ops.add_argument(
        "pattern", nargs="?", metavar="PATTERN", help="part of a name, or a pattern such as Tensor.*_"
    )
    ops.add_argument(
        "--format", choices=("text", "json"), default="text", help="how to write it (default: text)"
    )
    ops.add_argument("--torch", metavar="VERSION", help="the torch release whose table is searched")
    ops.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="colours")
    verify = _verify(commands)
    for name, text in (
        ("run", "run a script under the monitor"),
        ("server", "start the language server"),
        ("fleet", "check many packages and repositories, on Ray Data"),
        ("mcp", "serve assistants that write code, over the Model Context Protocol"),
    ):
        commands.add_parser(name, help=text, add_help=False, prefix_chars="\0")
    for command in (root, check, explain, ops, verify):
        command.add_argument("--lang", choices=LANGUAGES, help="the language of the report for people")
    helped(root, wanted)
    return root


VERIFY = """\
what a function is called with:
  a comment above it, with the names of the file and of torch; `self` is the object of a method:

    # gradguard: inputs x=randn(4, 3, requires_grad=True), n=2
    # gradguard: inputs self=Net(6), x=randn(2, 6)

  What it leaves out comes from annotations, from shapes in the docstring (`x: (B, 3)`) and from defaults, and is
  said. What then is missing is asked for, with a comment to paste. A script gets the arguments after `--`.

exit codes:
  0  values and gradients were compared, and are the same
  1  they are not the same, the backward raises, torch refuses a write, or an argument is overwritten
  2  nothing could be compared (stderr says what would be needed), or the request is wrong
"""


def _verify(commands: argparse._SubParsersAction[Parser]) -> Parser:
    verify = commands.add_parser(
        "verify",
        help="run a function with and without its in-place writes, and compare",
        description="Run a function (or a whole script) with and without its in-place writes in real torch: "
        "same forward, backward without error, right gradients, memory saved. This runs the file's code.",
        usage="%(prog)s [-h] [--against FILE] [--timeout SECONDS] [--lang LANG] FILE[::FUNCTION] [-- ARGUMENT ...]",
        epilog=VERIFY,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    verify.add_argument(
        "what",
        metavar="FILE[::FUNCTION]",
        help="train.py, train.py::block, train.py::Net.forward, train.py::make.inner",
    )
    verify.add_argument("--against", metavar="FILE", help="compare with the same function of another file")
    verify.add_argument(
        "--timeout", type=float, default=120.0, metavar="SECONDS", help="stop after this long (default: 120)"
    )
    return verify


def _check(commands: argparse._SubParsersAction[Parser]) -> Parser:
    check = commands.add_parser(
        "check",
        help="check files and folders",
        description="Check Python files and folders (default: the current folder).",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    check.add_argument("paths", nargs="*", metavar="PATH", help='a file, a folder, or "-" for stdin')
    check.add_argument("--stdin-filename", metavar="FILE", help="the name of the text on stdin")
    rules = check.add_argument_group("what is reported")
    rules.add_argument(
        "--select", action="append", metavar="RULES", help="only these rules: codes, prefixes, names, ALL"
    )
    rules.add_argument("--ignore", action="append", metavar="RULES", help="not these rules")
    rules.add_argument("--all", action="store_true", help="also what is only possible")
    rules.add_argument("--torch", metavar="VERSION", help="the torch release whose behaviour is assumed")
    rules.add_argument(
        "--changed-since", metavar="REF", help="only files changed since this git commit or branch"
    )
    rules.add_argument(
        "--no-callers",
        action="store_true",
        help="read no further files for what they show of those asked for, which they import",
    )
    rules.add_argument("--baseline", metavar="FILE", help="leave out the findings that stand in this file")
    rules.add_argument("--write-baseline", metavar="FILE", help="write all findings of now into this file")
    rules.add_argument(
        "--force-exclude",
        action="store_true",
        help="leave out excluded files even when they are named outright",
    )
    out = check.add_argument_group("how it is reported")
    out.add_argument(
        "--format", choices=FORMATS, default="text", help="how to write the report (default: text)"
    )
    out.add_argument("--output", metavar="FILE", help="write the report into this file")
    out.add_argument("--statistics", action="store_true", help="count findings by rule")
    out.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="colours")
    out.add_argument("--exit-zero", action="store_true", help="exit with 0 even with findings")
    out.add_argument(
        "--strict",
        action="store_true",
        help="exit with 2 if anything was not read, or not analysed because of an internal error",
    )
    out.add_argument(
        "-v", "--verbose", action="store_true", help="tell where the analysis stopped early, and why"
    )
    fixing = check.add_argument_group("fixes")
    fixing.add_argument("--fix", action="store_true", help="apply safe fixes")
    fixing.add_argument(
        "--unsafe-fixes", action="store_true", help="with --fix or --diff: also fixes that may change numbers"
    )
    fixing.add_argument(
        "--diff", action="store_true", help="show what --fix would change, and change nothing"
    )
    run = check.add_argument_group("how it is run")
    run.add_argument(
        "--src",
        action="append",
        metavar="DIR",
        help="also look up modules in this folder, wherever it lies (may be repeated)",
    )
    run.add_argument(
        "-j",
        "--jobs",
        type=number_between(1, 256),
        metavar="N",
        help="processes (default: as many as processors)",
    )
    run.add_argument("--no-cache", action="store_true", help="neither use nor keep results of earlier runs")
    run.add_argument(
        "--cache-dir",
        metavar="DIR",
        help="where results are kept (default: $GRADGUARD_CACHE_DIR, else the user's cache folder)",
    )
    return check


def number_between(least: int, most: int) -> Callable[[str], int]:
    """What reads a whole number of an option. It raises argparse.ArgumentTypeError."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f'"{text}" is no number') from None
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{number} is not between {least} and {most}")
        return number

    return read
