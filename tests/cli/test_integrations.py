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
from tests.cli.running import SERVER
from tests.cli.test_callers import LIB, USE
from tests.cli.test_git import git

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

    def __call__(self, code: int = 0, cwd: str = "", **inputs: str) -> tuple[int, list[str], str]:
        step = next(step for step in ACTION["runs"]["steps"] if step.get("id") == "check")
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
        done = subprocess.run(command, env={**environment, **given}, cwd=cwd or self.folder, check=False)
        calls = (self.folder / "calls").read_text().splitlines()
        return done.returncode, calls, (self.folder / "output").read_text()


def install(folder: Path, repository: Path, place: str = "bin") -> subprocess.CompletedProcess[str]:
    """Run the install step with a Python that notes what it is asked to do, and makes the folder of a platform."""
    step = next(step for step in ACTION["runs"]["steps"] if step.get("id") == "install")
    stand_in = folder / "python stand-in"
    stand_in.write_text(
        f'#!/bin/bash\nprintf "%s\\n" "$*" >> "{folder}/calls"\n'
        f'case "$*" in *"-m venv"*) mkdir -p "$4/{place}"; cp "$0" "$4/{place}/python";; esac\n'
    )
    stand_in.chmod(0o755)
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHON": str(stand_in),
        "RUNNER_TEMP": str(folder / "runner temp"),
        "GITHUB_ACTION_PATH": "/the action",
    }
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(command, env=environment, cwd=repository, check=True, text=True, timeout=60)


@pytest.mark.parametrize("place", ["bin", "Scripts"], ids=["Linux and macOS", "Windows"])
def test_the_action_installs_with_nothing_from_the_repository(tmp_path: Path, place: str) -> None:
    install(tmp_path, tmp_path, place)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [call.split()[0] for call in calls] == ["-I"] * 3
    assert calls[1:] == [
        f"-I -m venv {tmp_path}/runner temp/gradguard",
        "-I -m pip install --quiet --disable-pip-version-check /the action",
    ]


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


def test_the_action_takes_names_with_spaces_one_a_line(action: Action, tmp_path: Path) -> None:
    program = tmp_path / "gradguard" / "bin" / "gradguard"
    program.write_text('#!/bin/bash\nprintf "<%s>" "$@" >> "$RUNNER_TEMP/calls"\n')
    assert action(0, paths="my models\nsrc\n")[1] == ["<check><--format><github><my models><src>"]


def test_the_action_finds_the_program_on_windows(action: Action, tmp_path: Path) -> None:
    (tmp_path / "gradguard" / "Scripts").mkdir()
    (tmp_path / "gradguard" / "bin" / "gradguard").rename(
        tmp_path / "gradguard" / "Scripts" / "gradguard.exe"
    )
    assert action() == (0, ["[check --format github .]"], "exit-code=0\n")


def test_the_action_checks_what_changed_in_a_clone_of_depth_1(
    action: Action, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = tmp_path / "origin"
    (origin / "packages" / "vision").mkdir(parents=True)
    package = origin / "packages" / "vision"
    (package / "lib.py").write_text(LIB.replace("y += 1", "y = y + 1"))
    (package / "use.py").write_text(USE)
    git(origin, "init", "-q", "-b", "main")
    git(origin, "add", "-A")
    git(origin, "commit", "-qm", "first")
    git(origin, "checkout", "-qb", "work")
    (package / "lib.py").write_text(LIB)
    git(origin, "commit", "-qam", "wrong")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth=1", "--branch=work", f"file://{origin}", str(clone))
    program = tmp_path / "gradguard" / "bin" / "gradguard"
    program.write_text(
        f'#!/bin/bash\nPYTHONPATH={SERVER} exec {sys.executable} -m gradguard "$@" > "$RUNNER_TEMP/calls"\n'
    )
    action.folder = tmp_path
    monkeypatch.chdir(clone / "packages" / "vision")
    code, told, _ = action(0, cwd=str(clone / "packages" / "vision"), **{"changed-only": "true"})
    assert code == 1
    assert [line.partition(",")[0] for line in told] == ["::error file=packages/vision/lib.py"]
