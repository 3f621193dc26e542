"""Names and messages of the rules follow one grammar."""

from __future__ import annotations

import re

import pytest

from gradguard.check.catalogue import RuleInfo, catalogue
from tests.marks import findings
from tests.rules.pages import english, read

BANNED = re.compile(r"^(no|not|dont|avoid|disallow|forbid|use|prefer|require|missing)-|-(rule|check|error)$")
each_rule = pytest.mark.parametrize("rule", catalogue().rules, ids=lambda rule: rule.code)
WIDTH = 100


@each_rule
def test_a_name_reads_after_allow(rule: RuleInfo) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+", rule.name)
    assert not BANNED.search(rule.name)


@each_rule
def test_a_summary_is_one_phrase(rule: RuleInfo) -> None:
    assert rule.summary
    assert "\n" not in rule.summary
    assert not rule.summary.endswith(".")


def test_codes_and_names_are_unique() -> None:
    rules = catalogue().rules
    assert len({rule.code for rule in rules}) == len({rule.name for rule in rules}) == len(rules)


@pytest.mark.parametrize("path", english(), ids=lambda path: path.stem)
def test_messages_follow_the_grammar(path) -> None:
    """One line, lower-case or quoted start, no final stop, and not longer than a line of an editor."""
    rule_page = read(path)
    for code in rule_page.programs("Example"):
        for finding in findings(code):
            texts = [finding.message, *(related.message for related in finding.related)]
            for text in texts:
                assert re.match(r"[a-z`]", text), text
                assert not text.endswith("."), text
                assert "\n" not in text
            assert len(finding.message) <= WIDTH, f"{len(finding.message)}: {finding.message}"
            for plan in finding.fixes:
                assert re.match(r"[A-Z`]", plan.title), plan.title
                assert not plan.title.endswith("."), plan.title
