"""The options of `gradguard run`, which are read without torch."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from gradguard.report.words import LANGUAGES
from gradguard.source.printable import printable

_VALUED = ("--format", "--output", "--lang")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


def run_parser() -> argparse.ArgumentParser:
    """The parser of the monitor's own options; the program and its arguments follow them."""
    parser = _Parser(
        prog="gradguard run",
        usage="gradguard run [--light] [--exit-zero] [--format text|json|html] [--output FILE] "
        "(script.py | folder | -m module | -c code | -) [args ...]",
        description="Run a program and report the autograd mistakes that really happen.",
        epilog="exit code: that of the program if it is not 0; else 1 if something of warning or above was found; "
        "2 if the program cannot be started",
    )
    parser.add_argument("--light", action="store_true", help="watch a sample of the passes only; costs less")
    parser.add_argument(
        "--exit-zero",
        action="store_true",
        help="end as the program ends, whatever is found; so it is under a launcher",
    )
    parser.add_argument(
        "--format",
        choices=("text", "json", "html"),
        default="text",
        help="how to write the report (default: text)",
    )
    parser.add_argument(
        "--output", metavar="FILE", help="write the report to a file instead of standard error"
    )
    parser.add_argument("--lang", choices=LANGUAGES, help="the language of the report for people")
    return parser


def options_of(argv: Sequence[str]) -> tuple[argparse.Namespace, str, list[str]]:
    """Options, "-m", "-c", "-" or "" for what kind of program it is, and its words."""
    parser = run_parser()
    own: list[str] = []
    kind = ""
    rest = list(argv)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word == "--":
            break
        if word in ("-m", "-c", "-"):
            kind = word
            break
        own.append(word)
        if word in _VALUED and rest:
            own.append(rest.pop(0))
    options = parser.parse_args(own)
    if not rest and kind != "-":
        parser.error(
            {"-m": "-m needs a module", "-c": "-c needs code"}.get(kind, "name a script, or -m and a module")
        )
    return options, kind, rest
