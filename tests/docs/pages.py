"""The documentation as the tests see it: pages, their commands and their programs."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OWN = (
    "README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md", "client/README.md", "client/media/settings.md",
    "benchmarks/README.md",
)  # fmt: skip
RULES = ROOT / "server" / "gradguard" / "rules"
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
PROGRAMS = ("gradguard ", "make ", "npm ", "pip ", "python ", "python3 ", ".ci/run")
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """Every page that is written by hand, the pages of the rules aside."""
    return [ROOT / name for name in OWN] + sorted((ROOT / "docs").glob("??/**/*.md"))


def commands() -> list[str]:
    """Every command, in a block of the shell or in a sentence, once; those of the pages of the rules as well."""
    found: dict[str, None] = {}
    for path in [*pages(), *sorted(RULES.glob("**/*.md"))]:
        text = path.read_text("utf-8")
        lines = [line.partition("#")[0] for block in SHELL.findall(text) for line in block.splitlines()]
        lines += [code for code in INLINE.findall(FENCE.sub("", text)) if code.startswith(PROGRAMS)]
        for line in lines:
            for command in line.split("&&"):
                if command.strip():
                    found[command.strip()] = None
    return list(found)


def blocks(language: str) -> list[tuple[str, str]]:
    """(page and number, text) of every block in a language, the translations aside: they have the same ones."""
    pattern = re.compile(rf"^```{language}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return [
        (f"{path.relative_to(ROOT)}-{number}", text)
        for path in pages()
        if "ko" not in path.parts
        for number, text in enumerate(pattern.findall(path.read_text("utf-8")), 1)
    ]


def programs() -> list[tuple[str, str]]:
    """Every program that uses torch."""
    return [(name, text) for name, text in blocks("python") if text.startswith("import torch\n")]
