"""Where the page of a rule is, in the package and on the web.

A rule `some-pattern` lives in `rules/some_pattern.py`, its page in `rules/some_pattern.md`, and a translation
of the page in `rules/<language>/some_pattern.md`, with the same sections in the same order.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import resources

WEB = "https://github.com/gradguard/gradguard/blob/main/server/gradguard/rules/"


def stem(name: str) -> str:
    """File name, without its ending, of the module and of the page of the rule with this name."""
    return name.replace("-", "_")


def link(name: str) -> str:
    """Address of the page of the rule with this name."""
    return f"{WEB}{stem(name)}.md"


@lru_cache(maxsize=256)
def page(name: str, language: str = "en") -> str | None:
    """Markdown of a rule's page; the English one where there is no translation, None where there is none."""
    folder = resources.files("gradguard.rules")
    places = [folder.joinpath(f"{stem(name)}.md")]
    if language != "en":
        places.insert(0, folder.joinpath(language).joinpath(f"{stem(name)}.md"))
    for file in places:
        if file.is_file():
            return file.read_text("utf-8")
    return None
