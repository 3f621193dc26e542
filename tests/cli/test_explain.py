"""`gradguard explain` and `gradguard ops`: offline answers about rules and operations."""

from __future__ import annotations

import pytest

from gradguard.check.catalogue import catalogue
from gradguard.cli.pages import page
from tests.cli.running import Runner


@pytest.mark.parametrize("what", ["GG901", "gg901", "unused-ignore"])
def test_a_rule_is_explained_by_code_and_name(gradguard: Runner, what: str) -> None:
    done = gradguard("explain", what)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("# GG901 unused-ignore\n")


@pytest.mark.parametrize(
    "what", ["torch.sigmoid", "sigmoid", "Tensor.sigmoid_", "F.relu", "nn.Linear", "sigmoid()"]
)
def test_an_operation_is_explained_by_the_names_people_use(gradguard: Runner, what: str) -> None:
    done = gradguard("explain", what)
    assert (done.code, done.err) == (0, "")
    assert what.removesuffix("()").rpartition(".")[2] in done.out


def test_what_is_unknown_is_said_with_what_is_near(gradguard: Runner) -> None:
    done = gradguard("explain", "item-in-lop")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(
        'gradguard: error: "item-in-lop" is neither a rule nor a torch operation; did you mean item-in-loop or '
    )


def test_every_rule_is_known() -> None:
    assert {rule.code for rule in catalogue().rules} >= {"GG101", "GG201", "GG301", "GG901"}
    assert all(rule.summary for rule in catalogue().rules)


def test_ops_are_searched_by_part_and_by_pattern(gradguard: Runner) -> None:
    done = gradguard("ops", "sigmoid_", COLUMNS="200")
    assert done.code == 0
    head, *rows = done.out.splitlines()
    assert head.split()[:4] == ["operation", "saves", "shares", "memory"]
    assert "Tensor.sigmoid_" in [row.split()[0] for row in rows]
    assert "result" in next(row for row in rows if row.startswith("Tensor.sigmoid_"))


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize(
    "pattern", ["torch.nn.LSTM", "*softmax*", "torch.nn.functional.s*", "Tensor.sigmoid_"]
)
def test_ops_fit_the_terminal(gradguard: Runner, pattern: str, columns: int) -> None:
    done = gradguard("ops", pattern, COLUMNS=str(columns))
    for line in done.out.splitlines():
        assert len(line) <= columns or " " not in line.strip(), line
    assert max(map(len, done.out.split("\n\n"))) < 4000


def test_ops_say_whose_behaviour_they_show(gradguard: Runner) -> None:
    said = "as in torch 2.13, which is installed; --torch VERSION asks for another (2.14)"
    assert said in gradguard("ops", "torch.exp").err
    assert gradguard("ops", "torch.exp", "--torch", "2.13").err == "gradguard: as in torch 2.13\n"
    assert (
        "torch 9.1 is not in the op table; using 2.14" in gradguard("ops", "torch.exp", "--torch", "9.1").err
    )


def test_ops_as_json_have_the_whole_row(gradguard: Runner) -> None:
    document = gradguard("ops", "torch.exp", "--format", "json").json
    row = next(each for each in document["ops"] if each["name"] == "torch.exp")
    assert document["torch"].startswith("2.")
    assert row["forms"][0]["saves"][0]["role"] == "result"


def test_ops_without_a_match(gradguard: Runner) -> None:
    done = gradguard("ops", "no_such_op")
    assert (done.code, done.out, done.err) == (1, "", 'gradguard: no operation matches "no_such_op"\n')


def test_pages_are_shown_without_the_marks_of_their_tests() -> None:
    for rule in catalogue().rules:
        text = page(rule.name)
        assert text is not None, rule.name
        assert text.startswith(f"# {rule.code} {rule.name}\n\n## ")
        assert "# error" not in text
        assert "<!--" not in text


def test_a_wrong_version_is_refused(gradguard: Runner) -> None:
    for command in (("ops", "exp"), ("explain", "torch.exp")):
        done = gradguard(*command, "--torch", "new")
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith('gradguard: error: --torch: "new" is no torch version')
