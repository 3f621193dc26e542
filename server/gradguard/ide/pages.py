"""Where the page of a rule is, in the package and on the web."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources

WEB = "https://github.com/gradguard/gradguard/blob/main/server/gradguard/rules/"


def link(name: str) -> str:
    """Address of the page of the rule with this name."""
    return f"{WEB}{name.replace('-', '_')}.md"


@lru_cache(maxsize=256)
def page(name: str, language: str = "en") -> str | None:
    """Markdown of a rule's page; the English one where there is no translation, None where there is none."""
    stem = name.replace("-", "_")
    names = [f"{stem}.md", f"{name}.md"]
    if language != "en":
        names = [f"{stem}.{language}.md", f"{name}.{language}.md", *names]
    for each in names:
        file = resources.files("gradguard.rules").joinpath(each)
        if file.is_file():
            return file.read_text("utf-8")
    return None
