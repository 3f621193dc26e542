"""The words after `gradguard fleet`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from gradguard.cli.arguments import Parser, number_between

EPILOG = """\
sources:
  a folder, a git repository (also a bare one, or an address: https, ssh, git, file), an archive (wheel, sdist, zip,
  tar), or a list of them: a file that ends in .txt, with LOCATION or LOCATION REVISION on each line

`gradguard fleet diff EARLIER LATER` compares two scans.

exit codes:
  0    the scan came to its end; what was not read is counted and told
  2    the request is wrong, or the output cannot be written (the reason is on stderr)
  130  interrupted; the same command goes on from there
"""


def scan_arguments(words: Sequence[str]) -> argparse.Namespace:
    """Of a scan."""
    parser = Parser(
        prog="gradguard fleet",
        description="Check many packages and repositories at once, on Ray Data. Nothing of them is executed.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="what to check; see below")
    parser.add_argument(
        "--output",
        required=True,
        metavar="DIR",
        help="where tables and summary go: a folder or an fsspec address",
    )
    parser.add_argument(
        "--results",
        metavar="DIR",
        help="where the results of packages are kept between scans (default: in the output)",
    )
    parser.add_argument(
        "--against", metavar="DIR", help="the output of an earlier scan: tell what is new and gone"
    )
    parser.add_argument("--sarif", action="store_true", help="also write a SARIF log for each package")
    parser.add_argument(
        "--context",
        type=number_between(0, 20),
        default=0,
        metavar="N",
        help="keep N lines around each finding",
    )
    rules = parser.add_argument_group("what is reported (over the settings of each package)")
    rules.add_argument("--select", action="append", metavar="RULES", help="only these rules")
    rules.add_argument("--ignore", action="append", metavar="RULES", help="not these rules")
    rules.add_argument("--all", action="store_true", help="also what is only possible")
    rules.add_argument("--torch", metavar="VERSION", help="the torch release whose behaviour is assumed")
    run = parser.add_argument_group("how it is run")
    run.add_argument("--address", metavar="ADDRESS", help="the Ray cluster to run on (default: this machine)")
    run.add_argument(
        "-j",
        "--jobs",
        type=number_between(1, 4096),
        metavar="N",
        help="processors of this machine to use (default: all)",
    )
    run.add_argument(
        "--seconds",
        type=number_between(1, 1_000_000),
        default=3600,
        metavar="N",
        help="for opening a source, and for the files of a package together (default: 3600)",
    )
    run.add_argument(
        "--file-seconds",
        type=number_between(1, 1_000_000),
        default=120,
        metavar="N",
        help="processor time of one file (default: 120)",
    )
    run.add_argument(
        "--memory",
        type=number_between(200, 1_000_000),
        default=4000,
        metavar="MB",
        help="for the process that reads a package (default: 4000)",
    )
    return parser.parse_args(list(words))


def diff_arguments(words: Sequence[str]) -> argparse.Namespace:
    """Of a comparison."""
    parser = Parser(
        prog="gradguard fleet diff",
        description="Compare two scans by the fingerprints of their findings.",
        epilog="exit codes:\n  0  no new error or warning\n  1  new errors or warnings\n  2  a scan cannot be read\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("earlier", metavar="EARLIER", help="the output of a scan")
    parser.add_argument("later", metavar="LATER", help="the output of another")
    return parser.parse_args(list(words))
