"""The pages of the rules, taken apart: title, sections, and the programs in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "server" / "gradguard" / "rules"
HEADINGS = (
    "What it does",
    "Why autograd minds",
    "Example",
    "Use instead",
    "What torch says",
    "Fix safety",
    "Limits",
)
KINDS = ("raises", "silent", "leak", "sync", "ok")
TITLE = re.compile(r"\A# (GG\d{3}) ([a-z0-9-]+)\n\n<!-- runtime: (\w+) -->\n")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Page:
    """One page. `sections` keeps the order of the text."""

    path: Path
    code: str
    name: str
    runtime: str
    sections: dict[str, str]

    def programs(self, section: str) -> list[str]:
        """The programs of a section; in a translation, sections are asked for by their place."""
        return BLOCK.findall(self.sections[section])


def read(path: Path) -> Page:
    """Raises ValueError, with the name of the file, for a page without the fixed head."""
    text = path.read_text("utf-8")
    head = TITLE.match(text)
    if head is None:
        raise ValueError(
            f"{path.name}: begins with `# GG000 name`, an empty line and `<!-- runtime: kind -->`"
        )
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2]))
    return Page(path, head.group(1), head.group(2), head.group(3), sections)


def english() -> list[Path]:
    """The pages that the rules are described by."""
    return sorted(FOLDER.glob("*.md"))


def translations() -> list[Path]:
    """The same pages in other languages."""
    return sorted(FOLDER.glob("??/*.md"))
