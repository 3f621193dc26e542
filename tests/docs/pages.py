"""The documentation as the tests see it: pages, their commands and their programs."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OWN = ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md")
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """Every page that is written by hand, the pages of the rules aside."""
    return [ROOT / name for name in OWN] + sorted((ROOT / "docs").glob("??/**/*.md"))


def commands() -> list[str]:
    """Every command in a block of the shell, once."""
    found: dict[str, None] = {}
    for path in pages():
        for block in SHELL.findall(path.read_text("utf-8")):
            for line in block.splitlines():
                for command in line.partition("#")[0].split("&&"):
                    if command.strip():
                        found[command.strip()] = None
    return list(found)


def programs() -> list[tuple[str, str]]:
    """(page and number, text) of every program that uses torch; translations have the same ones."""
    found = []
    for path in pages():
        if "ko" in path.parts:
            continue
        blocks = PYTHON.findall(path.read_text("utf-8"))
        found += [
            (f"{path.stem}-{number}", block)
            for number, block in enumerate(blocks, 1)
            if block.startswith("import torch\n")
        ]
    return found
