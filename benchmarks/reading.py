"""What was read of the findings in released libraries: `results/read.toml`, written by whoever read them."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

READ = Path(__file__).parent / "results" / "read.toml"

Verdicts = dict[tuple[str, int, str], bool]
"""By file, line and code: whether the finding is true."""


def verdicts(library: str) -> Verdicts:
    """Verdicts on the findings of a release, such as `timm 1.0.31`."""
    return {
        (each["file"], each["line"], each["code"]): each["true"]
        for each in _read()
        if each["library"] == library
    }


@cache
def _read() -> list[dict[str, Any]]:
    document: dict[str, list[dict[str, Any]]] = (
        tomllib.loads(READ.read_text("utf-8")) if READ.exists() else {}
    )
    return document.get("finding", [])
