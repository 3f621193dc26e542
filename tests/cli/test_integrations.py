"""The pre-commit hooks and the GitHub Action call what there is, with what users give and nothing more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from gradguard.cli.arguments import parser

ROOT = Path(__file__).resolve().parents[2]
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_hooks_name_a_command_that_exists_and_obey_excludes(hook: dict[str, Any]) -> None:
    program, *words = hook["entry"].split()
    assert program == "gradguard"
    arguments = parser().parse_args([*words, "train.py"])
    assert arguments.paths == ["train.py"]
    assert arguments.force_exclude
    assert arguments.fix == hook["id"].endswith("-fix")
    assert hook["require_serial"]


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_hooks_take_every_name_for_a_file(hook: dict[str, Any]) -> None:
    words = [*hook["entry"].split()[1:], *hook["args"]]
    names = ["train.py", "--output=out.py", "-v.py", "--select"]
    arguments = parser().parse_args([*words, *names])
    assert arguments.paths == names
    assert (arguments.output, arguments.force_exclude) == (None, True)


class Action:
    """Runs the check step of the action with a stand-in that notes its arguments."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        program = folder / "gradguard" / "bin" / "gradguard"
        program.parent.mkdir(parents=True)
        program.write_text(
            '#!/bin/bash\nprintf "%s\\n" "[$*]" >> "$RUNNER_TEMP/calls"\nexit "$STAND_IN_CODE"\n'
        )
        program.chmod(0o755)

    def __call__(self, code: int = 0, **inputs: str) -> tuple[int, list[str], str]:
        step = next(step for step in ACTION["runs"]["steps"] if step["id"] == "check")
        given = {
            variable: inputs.get(name, ACTION["inputs"][name]["default"])
            for variable, expression in step["env"].items()
            for name in [expression.removeprefix("${{ inputs.").removesuffix(" }}")]
        }
        environment = {
            "PATH": os.environ["PATH"],
            "RUNNER_TEMP": str(self.folder),
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "STAND_IN_CODE": str(code),
            "GITHUB_BASE_REF": "main",
        }
        # As the runner does: bash with errexit and pipefail.
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(command, env={**environment, **given}, cwd=self.folder, check=False)
        calls = (self.folder / "calls").read_text().splitlines()
        return done.returncode, calls, (self.folder / "output").read_text()


def test_the_action_installs_with_nothing_from_the_repository(tmp_path: Path) -> None:
    step = next(step for step in ACTION["runs"]["steps"] if step["id"] == "install")
    lines = [line for line in step["run"].splitlines() if not line.startswith("#")]
    assert [line.split('" ', 1)[1].split()[:2] for line in lines] == [["-I", "-m"]] * 2
    repository = tmp_path / "repository"
    repository.mkdir()
    trace = tmp_path / "trace"
    for name in ("venv", "pip", "ensurepip", "runpy", "contextlib", "logging", "sitecustomize"):
        (repository / f"{name}.py").write_text(f"open({str(trace)!r}, 'a').write(__name__)\n")
    # Without the last line, which would need the network.
    subprocess.run(
        ["bash", "-e", "-c", f"{lines[0]} --without-pip"],
        cwd=repository,
        env={"PATH": os.environ["PATH"], "PYTHON": sys.executable, "RUNNER_TEMP": str(tmp_path)},
        check=True,
        timeout=120,
    )
    assert (tmp_path / "gradguard" / "bin" / "python").exists()
    assert not trace.exists()


@pytest.fixture
def action(tmp_path: Path) -> Action:
    return Action(tmp_path)


def test_the_action_annotates_the_whole_repository(action: Action) -> None:
    assert action() == (0, ["[check --format github .]"], "exit-code=0\n")


def test_the_action_fails_as_the_command_does_and_says_so(action: Action) -> None:
    assert action(1) == (1, ["[check --format github .]"], "exit-code=1\n")


def test_the_action_passes_inputs_as_words(action: Action) -> None:
    inputs = {"paths": "src lib", "args": "--select GG1", "changed-only": "true", "sarif-file": "out.sarif"}
    words = "--changed-since origin/main --select GG1 src lib"
    assert action(0, **inputs)[1] == [
        f"[check --format github {words}]",
        f"[check --format sarif --output out.sarif --exit-zero {words}]",
    ]


def test_the_action_runs_no_input_as_code(action: Action) -> None:
    _, calls, _ = action(0, paths="$(touch broken) ; touch broken *")
    assert calls == ["[check --format github $(touch broken) ; touch broken *]"]
    assert not (action.folder / "broken").exists()


def test_every_input_of_the_action_is_used_and_described() -> None:
    text = (ROOT / "action.yml").read_text("utf-8")
    for name, described in ACTION["inputs"].items():
        assert described["description"].endswith(".")
        assert f"${{{{ inputs.{name} }}}}" in text
