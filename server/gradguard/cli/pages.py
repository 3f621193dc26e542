"""Rule pages as people read them: without the marks that are for the tests of the pages."""

from __future__ import annotations

import re

from gradguard.ide import pages

_MARKS = re.compile(r"<!-- runtime: \w+ -->\n\n?|  # error$", re.MULTILINE)


def page(name: str, language: str = "en") -> str | None:
    """Markdown of the page of a rule, by the rule's name; None where it has none."""
    text = pages.page(name, language)
    return None if text is None else _MARKS.sub("", text)
