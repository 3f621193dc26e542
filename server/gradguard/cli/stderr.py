"""What the command says besides its report. The names in it may be of anybody's making."""

from __future__ import annotations

import sys

from gradguard.source.printable import printable


def tell(message: str) -> None:
    """One line on stderr."""
    print(printable(f"gradguard: {message}"), file=sys.stderr)


def complain(message: str) -> None:
    """One line on stderr that says what is wrong."""
    tell(f"error: {message}")
