"""The rule pages that lie beside the rules."""

from __future__ import annotations

from importlib import resources


def page(name: str) -> str | None:
    """Markdown of the page of a rule, by the rule's name; None where it has none."""
    for stem in (name, name.replace("-", "_")):
        file = resources.files("gradguard.rules") / f"{stem}.md"
        if file.is_file():
            return file.read_text("utf-8")
    return None
