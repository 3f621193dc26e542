"""What each format writes, and that others can read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gradguard.check.catalogue import RuleInfo
from gradguard.cli import plain
from gradguard.cli.formats import github, gitlab, sarif, text
from gradguard.cli.formats import json as json_format
from gradguard.cli.result import Outcome
from tests.cli.outcomes import FAINT, KEPT, OUTCOME, SAVED, line_of

SCHEMA = Path(__file__).parent / "data" / "sarif-2.1.0-rtm.5.json"


def written(outcome: Outcome, **how: bool) -> list[str]:
    return ["".join(piece for piece, _ in line) for line in text.render(outcome, line_of, **how)]


def test_text_shows_every_place_of_a_finding_under_its_line() -> None:
    lines = written(OUTCOME)
    start = lines.index(
        "src/train, v2.py:4:2: error GG101 inplace-on-saved-tensor: "
        "`y.add_(1)` overwrites 100% of `y`, which sigmoid saved"
    )
    assert lines[start + 1 : start + 15] == [
        "    |",
        "  3 | y = torch.sigmoid(x)",
        "    |     ---------------- saved here by sigmoid",
        "  4 |     y.add_(1)  # 漢字",
        "    |     ^^^^^^^^^",
        "  5 | y.sum().backward()",
        "    | ------------------ backward here",
        "    --> src/model.py:1",
        "  1 | class Net:",
        "    | ---------- called from here",
        "    = torch says: modified by an inplace operation",
        "    = fix: write `y = y + 1` (safe: --fix)",
        "    = fix: clone before (by hand)",
        "",
    ]


def test_text_sums_up() -> None:
    assert written(OUTCOME)[-3:] == [
        "3 findings (1 error, 1 warning, 1 hint) in 3 files using torch of 9 read",
        "1 place not analysed to the end; --verbose lists them",
        "next: add --diff to see the safe fixes (1), --fix to apply them",
    ]
    assert written(Outcome(files=2, checked=1)) == ["no findings in 1 file using torch of 2 read"]


def test_text_underlines_wide_characters_where_they_stand() -> None:
    from dataclasses import replace

    from gradguard.findings import Span

    wide = replace(KEPT, span=Span(4, 15, 4, 17))
    lines = written(Outcome((wide,)))
    assert lines[2:4] == ["  4 |     y.add_(1)  # 漢字", "    | " + " " * 17 + "^^^^"]


def test_statistics_count_by_rule() -> None:
    lines = written(OUTCOME, statistics=True)
    assert "1 error       GG101 inplace-on-saved-tensor" in lines


def test_json_has_the_agreed_shape() -> None:
    document = json.loads(json_format.render(OUTCOME))
    assert set(document) == {"version", "torch", "findings", "limits", "errors"}
    assert document["torch"] == "2.13"
    finding = document["findings"][1]
    assert {
        key: finding[key] for key in ("file", "code", "name", "severity", "certainty", "line", "column")
    } == {
        "file": "src/train, v2.py",
        "code": "GG101",
        "name": "inplace-on-saved-tensor",
        "severity": "error",
        "certainty": "certain",
        "line": 4,
        "column": 2,
    }
    assert (finding["end_line"], finding["end_column"]) == (4, 11)
    assert finding["related"][0]["line"] == 3
    assert finding["fixes"][0]["edits"] == [
        {"line": 4, "column": 2, "end_line": 4, "end_column": 11, "text": "y = y + 1"}
    ]
    assert finding["fixes"][1] == {"title": "clone before", "applicability": "manual", "edits": []}
    assert document["limits"][0]["message"] == "too many paths"


def test_github_escapes_what_the_runner_would_misread() -> None:
    lines = github.render(OUTCOME).splitlines()
    assert lines[0] == (
        "::notice file=src/model.py,line=1,endLine=2,title=GG301 item-in-loop::reads%0Athe host"
    )
    assert lines[1].startswith(
        "::error file=src/train%2C v2.py,line=4,endLine=4,col=2,endColumn=10,"
        "title=GG101 inplace-on-saved-tensor::`y.add_(1)` overwrites 100%25 of `y`"
    )
    assert "%0Asrc/train, v2.py:3: saved here by sigmoid" in lines[1]
    assert lines[3].startswith("::error file=bad.py,line=1,title=gradguard could not check this file::")
    assert len(lines) == 4


def test_github_unescapes_to_what_was_meant() -> None:
    command = github.command("error", {"file": "a:b,c%.py", "title": "x"}, "50%\r\nrest: a,b")
    head, _, data = command.removeprefix("::error ").partition("::")
    unescaped = data.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")
    assert unescaped == "50%\r\nrest: a,b"
    properties = dict(each.split("=") for each in head.split(","))
    assert properties["file"].replace("%3A", ":").replace("%2C", ",").replace("%25", "%") == "a:b,c%.py"


def test_gitlab_report() -> None:
    issues = json.loads(gitlab.render(OUTCOME, line_of))
    assert [issue["severity"] for issue in issues] == ["info", "critical", "major"]
    assert issues[1]["location"] == {"path": "src/train, v2.py", "lines": {"begin": 4, "end": 4}}
    assert len({issue["fingerprint"] for issue in issues}) == 3
    for issue in issues:
        assert {"description", "check_name", "fingerprint", "severity", "location"} <= set(issue)


RULES = (
    RuleInfo("GG101", "inplace-on-saved-tensor", "a saved tensor is written"),
    RuleInfo("GG201", "accumulate-with-graph"),
    RuleInfo("GG301", "item-in-loop"),
)


def sarif_log(outcome: Outcome) -> dict[str, Any]:
    log: dict[str, Any] = json.loads(
        sarif.render(outcome, line_of, RULES, "# {}\n".format, "https://example.org/{}".format)
    )
    return log


@pytest.mark.parametrize("outcome", [OUTCOME, Outcome()])
def test_sarif_is_valid(outcome: Outcome) -> None:
    schema = json.loads(SCHEMA.read_text("utf-8"))
    errors = list(jsonschema.Draft4Validator(schema).iter_errors(sarif_log(outcome)))
    assert not errors, errors[0].message


def test_the_sarif_schema_refuses_what_is_wrong() -> None:
    schema = json.loads(SCHEMA.read_text("utf-8"))
    log = sarif_log(OUTCOME)
    log["runs"][0]["results"][0]["level"] = "loud"
    assert list(jsonschema.Draft4Validator(schema).iter_errors(log))


def test_sarif_carries_rules_places_fixes_and_fingerprints() -> None:
    (run,) = sarif_log(OUTCOME)["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["GG101", "GG201", "GG301"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    saved = run["results"][1]
    assert saved["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "src/train%2C%20v2.py", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 4, "startColumn": 2, "endLine": 4, "endColumn": 11},
    }
    assert saved["relatedLocations"][0]["message"]["text"] == "saved here by sigmoid"
    (fix,) = saved["fixes"]
    assert fix["artifactChanges"][0]["replacements"][0]["insertedContent"] == {"text": "y = y + 1"}
    assert run["columnKind"] == "unicodeCodePoints"
    assert run["invocations"][0]["executionSuccessful"] is False
    marks = [result["partialFingerprints"]["gradguard/v1"] for result in run["results"]]
    assert len(set(marks)) == 3


def test_findings_survive_the_cache() -> None:
    for finding in (SAVED, KEPT, FAINT):
        back = plain.to_finding(json.loads(json.dumps(plain.from_finding(finding))))
        assert back == finding
        assert back.notes == finding.notes
