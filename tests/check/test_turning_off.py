"""A rule turned off in the text of a pyproject.toml: whatever stands there stays, and the rule is off."""

from __future__ import annotations

import pytest

from gradguard.check.pyproject import parse_text, turned_off
from gradguard.fixes.edit import Edit, applied
from gradguard.source.text import Source

HEAD = '[project]\nname = "x"  # 이름'
TEXTS = {
    "nothing": "",
    "another table": f"{HEAD}\n",
    "no end of line": HEAD,
    "our table": f'{HEAD}\n\n[tool.gradguard]\nignore = ["GG301"]\n\n[tool.ruff]\nline-length = 110\n',
    "its table": '[tool.gradguard.rules]\nGG301 = "off"\n\n[tool.ruff]\n',
    "it has a level": '[tool.gradguard.rules]\nGG301 = "off"\naccumulate-with-graph = "error"  # why\n',
    "by its code": "[tool.gradguard.rules]\nGG201 = 'warning'\n",
    "returns": '[tool.gradguard.rules]\r\nGG201 = "warning"\r\n[tool.ruff]\r\n',
}


@pytest.mark.parametrize("name", list(TEXTS))
def test_the_rule_is_off_and_all_else_stays(name: str) -> None:
    text = TEXTS[name]
    found = turned_off(text, "accumulate-with-graph")
    assert found is not None
    after = applied(Source("pyproject.toml", text), [Edit(*found)])
    parsed = parse_text(after, "pyproject.toml")
    assert parsed is not None
    assert not parsed.problems
    assert dict(parsed.layer["levels"])["GG201"].value == "off"
    before = parse_text(text, "pyproject.toml")
    for key, value in (before.layer if before else {}).items():
        if key == "levels":
            value = {**dict(value), "GG201": dict(parsed.layer[key])["GG201"]}
            assert dict(parsed.layer[key]) == value
        else:
            assert parsed.layer[key] == value
    kept = [line for line in text.splitlines() if line and "GG201" not in line and "accumulate" not in line]
    assert [line for line in after.splitlines() if line in kept] == kept


@pytest.mark.parametrize(
    "text", ['[tool.gradguard]\nrules = { GG301 = "off" }\n', "[tool.gradguard]\nignore = [\n"]
)
def test_what_is_written_otherwise_is_left_to_people(text: str) -> None:
    assert turned_off(text, "accumulate-with-graph") is None
