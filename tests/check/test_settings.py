"""Settings are read to the letter, and what is wrong is named."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from gradguard.check import pyproject, schema
from gradguard.check.parsing import parse
from gradguard.check.settings import DEFAULTS, Kind, Level, Settings, options, resolve
from tests.check.rules import refused, rules


def settings(data: dict[str, object], **how: bool) -> Settings:
    parsed = parse(data, "here", rules=rules, **how)
    assert not parsed.problems
    return resolve(parsed.layer)


def problems(data: dict[str, object], **how: bool) -> list[str]:
    return [str(problem) for problem in parse(data, "here", rules=rules, **how).problems]


def test_nothing_set_gives_the_defaults_and_loads_no_rules() -> None:
    assert (
        resolve(parse({"all": False, "exclude": [], "select": []}, "here", rules=refused).layer) == DEFAULTS
    )


def test_rules_are_named_by_code_name_prefix_and_held_by_code() -> None:
    assert settings({"select": ["GG1", "item-in-loop"]}).select == ("GG101", "GG102", "GG301")
    assert settings({"ignore": ["gg101"]}).ignore == ("GG101",)


def test_a_prefix_selects_no_rule_that_must_be_asked_for_but_its_name_and_all_do() -> None:
    assert "GG120" not in settings({"select": ["GG"]}).select
    assert settings({"select": ["GG120"]}).select == ("GG120",)
    assert "GG120" in settings({"select": ["ALL"]}).select
    assert "GG120" in settings({"ignore": ["GG1"]}).ignore


@pytest.mark.parametrize("order", [("GG1", "GG101"), ("GG101", "GG1")])
def test_the_level_of_a_rule_wins_over_that_of_its_prefix_in_any_order(order: tuple[str, str]) -> None:
    words = {"GG1": "off", "GG101": "error"}
    levels = settings({"rules": {selector: words[selector] for selector in order}})
    assert levels.level("GG101") is Level.ERROR
    assert levels.level("GG102") is Level.OFF
    assert levels.level("GG301") is None


def test_the_editor_spells_in_camel_case_and_knows_more() -> None:
    read = settings(
        {"perFileIgnores": {"tests/**": ["GG3"]}, "inlayHints": True, "torchVersion": "2.6"}, editor=True
    )
    assert read.per_file_ignores == (("tests/**", ("GG301",)),)
    assert read.inlay_hints
    assert read.torch == "2.6"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"selct": []}, 'here: selct: unknown key; did you mean "select"?'),
        ({"perFileIgnores": {}}, 'here: perFileIgnores: unknown key; it is spelled "per-file-ignores" here'),
        (
            {"per_file_ignores": {}},
            'here: per_file_ignores: unknown key; it is spelled "per-file-ignores" here',
        ),
        ({"code-lens": True}, "here: code-lens: this can be set in the editor only"),
        ({"select": ["GG999"]}, 'here: select: unknown rule "GG999"; did you mean "GG901"?'),
        (
            {"select": ["item-in-lop"]},
            'here: select: unknown rule "item-in-lop"; did you mean "item-in-loop"?',
        ),
        ({"select": "GG101"}, 'here: select: expected a list of strings, found "GG101"'),
        ({"select": [1]}, "here: select: expected a list of strings, found [1]"),
        ({"all": "yes"}, 'here: all: expected true or false, found "yes"'),
        (
            {"rules": ["GG101"]},
            "here: rules: expected a table from rule to level, such as GG301 = \"off\", found ['GG101']",
        ),
        (
            {"rules": {"GG101": "loud"}},
            'here: rules.GG101: expected "off", "hint", "information", "warning", "error", found "loud"',
        ),
        ({"rules": {"GG777": "off"}}, 'here: rules.GG777: unknown rule "GG777"'),
        (
            {"torch-version": "new"},
            'here: torch-version: "new" is no torch version; write "auto" or one such as "2.6"',
        ),
        (
            {"torch-version": 2.6},
            'here: torch-version: expected a version in quotes, such as "2.6", found 2.6',
        ),
        ({"per-file-ignores": {"a.py": ["nothing"]}}, 'here: per-file-ignores.a.py: unknown rule "nothing"'),
        ({"exclude": {"a": 1}}, "here: exclude: expected a list of strings, found a table"),
    ],
)
def test_what_is_wrong_is_named(data: dict[str, object], message: str) -> None:
    found = problems(data)
    assert len(found) == 1
    assert found[0].startswith(message)


def test_an_unknown_key_far_from_all_lists_what_there_is() -> None:
    assert "known are all, exclude, ignore" in problems({"zzz": 1})[0]


def test_what_is_right_is_taken_beside_what_is_wrong() -> None:
    parsed = parse({"all": True, "nonsense": 1, "select": ["GG101", "GG999"]}, "here", rules=rules)
    assert dict(parsed.layer) == {"all": True, "select": ("GG101",)}
    assert len(parsed.problems) == 2


def test_later_layers_win_key_by_key() -> None:
    assert resolve({"all": True, "torch": "2.1"}, {"torch": "2.2"}) == Settings(all=True, torch="2.2")


@pytest.mark.parametrize("version", ["2.13", "2.13.0", "2.13.0+cpu", "2.6.0a0+git1234", "auto"])
def test_versions_as_torch_writes_them(version: str) -> None:
    assert settings({"torch-version": version}).torch == version


# pyproject.toml

TEXT = """\
[project]
name = "x"
select = []

[tool.gradguard]
all = true
selct = ["GG1"]
"torch-version" = "new"

[tool.gradguard.rules]
GG101 = "loud"
"item-in-loop" = "off"
"""


def test_the_table_is_found_and_problems_have_lines() -> None:
    parsed = pyproject.parse_text(TEXT, "pyproject.toml", rules=rules)
    assert parsed is not None
    assert parsed.layer["all"] is True
    assert parsed.layer["levels"] == (("GG301", Level.OFF),)
    assert {problem.line for problem in parsed.problems} == {7, 8, 11}
    assert str(parsed.problems[0]).startswith("pyproject.toml:7: [tool.gradguard] selct: unknown key")


def test_a_file_without_the_table_says_nothing() -> None:
    assert pyproject.parse_text('[project]\nname = "gradguard-user"\n', "p", rules=rules) is None


def test_broken_toml_is_a_problem_with_its_line() -> None:
    parsed = pyproject.parse_text("[tool.gradguard]\nall = \n", "p", rules=rules)
    assert parsed is not None
    assert str(parsed.problems[0]).startswith("p:2: not valid TOML: ")
    assert "line" not in parsed.problems[0].message


def test_a_table_that_is_none_is_a_problem() -> None:
    parsed = pyproject.parse_text("[tool]\ngradguard = 1\n", "p", rules=rules)
    assert parsed is not None
    assert str(parsed.problems[0]) == "p: tool.gradguard: expected a table"


def test_the_nearest_file_with_the_table_is_in_force() -> None:
    files = {
        "/repo/pyproject.toml": "[tool.gradguard]\nall = true\n",
        "/repo/pkg/pyproject.toml": '[project]\nname = "pkg"\n',
        "/repo/own/pyproject.toml": "[tool.gradguard]\n",
    }
    inside = pyproject.find(PurePosixPath("/repo/pkg/src"), files.get, rules=rules)
    assert (inside.root, dict(inside.parsed.layer)) == ("/repo", {"all": True})
    assert dict(pyproject.find(PurePosixPath("/repo/own"), files.get, rules=rules).parsed.layer) == {}
    assert pyproject.find(PurePosixPath("/elsewhere"), files.get, rules=rules).root == ""


# The schema

SAMPLES: dict[Kind, object] = {
    Kind.BOOL: True,
    Kind.CHOICE: "onSave",
    Kind.VERSION: "2.6",
    Kind.STRINGS: ["a/"],
    Kind.PATTERNS: ["a/"],
    Kind.RULES: ["GG1"],
    Kind.LEVELS: {"GG101": "off"},
    Kind.RULES_BY_GLOB: {"a/**": ["GG1"]},
}


def test_schema_and_parser_agree_on_every_option() -> None:
    import jsonschema

    described = schema.schema()
    jsonschema.Draft7Validator.check_schema(described)
    validator = jsonschema.Draft7Validator(described)
    good = {option.key: SAMPLES[option.kind] for option in options().values() if not option.editor_only}
    assert not list(validator.iter_errors(good))
    assert not problems(good)
    for key in good:
        bad = {key: 3}
        assert list(validator.iter_errors(bad))
        assert problems(bad)
    assert list(validator.iter_errors({"nonsense": 1}))


def test_defaults_are_valid_and_every_option_is_documented() -> None:
    import jsonschema

    page = schema.markdown()
    for name, option in options().items():
        jsonschema.validate(schema.plain_default(name), schema.value_schema(option))
        assert option.doc.endswith(".")
        assert f"`{option.key}`" in page or f"`gradguard.{option.editor_key}`" in page


def test_examples_in_the_reference_are_valid() -> None:
    for option in options().values():
        if option.example:
            text = option.example if "[tool" in option.example else f"[tool.gradguard]\n{option.example}"
            parsed = pyproject.parse_text(text, "example", rules=_every_rule)
            assert parsed is not None
            assert parsed.layer
            assert not parsed.problems, option.key


def _every_rule():  # type: ignore[no-untyped-def]
    from gradguard.check.catalogue import Catalogue, RuleInfo

    return Catalogue((*rules().rules, RuleInfo("GG201", "accumulate-with-graph")))
