"""Every command of the documentation runs, and every link and test that it names exists."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import PYTHON, ROOT, commands, pages

LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)]*)?\)")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder as the pages suppose it: the tutorial's script, also in src, and a notebook."""
    tutorial = (ROOT / "docs" / "en" / "tutorial.md").read_text("utf-8")
    script = PYTHON.findall(tutorial)[0]
    (tmp_path / "train.py").write_text(script)
    for folder in ("src", "notebooks"):
        (tmp_path / folder).mkdir()
    (tmp_path / "src" / "train.py").write_text(script)
    cell = {"cell_type": "code", "source": script, "metadata": {}, "outputs": [], "execution_count": None}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "notebooks" / "train.ipynb").write_text(json.dumps(notebook))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.gradguard]\n")
    return tmp_path


@pytest.mark.parametrize("command", commands())
def test_command(command: str, project: Path) -> None:
    words = shlex.split(command)
    match words:
        case ["make", target, *_]:
            assert re.search(rf"^{re.escape(target)}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        case ["npm", "run", script]:
            assert script in json.loads((ROOT / "package.json").read_text())["scripts"]
        case ["npm", "ci"]:
            assert (ROOT / "package-lock.json").is_file()
        case ["pip", "install", "."]:
            arguments = ["install", "--quiet", "--no-deps", "--target", str(project / "installed"), str(ROOT)]
            _run([sys.executable, "-m", "pip", *arguments], project)
            assert (project / "installed" / "gradguard" / "rules" / "ko" / "inplace_on_leaf.md").is_file()
        case [".ci/run"]:
            assert os.access(ROOT / ".ci" / "run", os.X_OK)
        case ["gradguard", *arguments]:
            if "--baseline" in arguments:
                (project / "gradguard-baseline.json").write_text("")
                _run(
                    [
                        sys.executable,
                        "-m",
                        "gradguard",
                        "check",
                        "src/",
                        "--write-baseline",
                        "gradguard-baseline.json",
                    ],
                    project,
                    codes=(0, 1),
                )
            done = _run([sys.executable, "-m", "gradguard", *arguments], project, codes=(0, 1))
            assert "internal error" not in done.stdout + done.stderr
            assert not done.stderr.startswith("usage:")
        case _:
            pytest.fail(f"no test knows how to run this: {command}")


def _run(command: list[str], folder: Path, codes: tuple[int, ...] = (0,)) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "server")}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode in codes, done.stdout + done.stderr
    return done


def test_the_tutorial_shows_what_is_printed(project: Path) -> None:
    done = _run([sys.executable, "-m", "gradguard", "check", "train.py"], project, codes=(1,))
    shown = re.findall(
        r"^```text\n(train\.py.*?)\n```$", (ROOT / "docs" / "en" / "tutorial.md").read_text(), re.M | re.S
    )
    assert shown
    for text in shown:
        assert text in done.stdout


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links(path: Path) -> None:
    generated = ("rules/", "ops.md", "settings.md", "images/")
    for target in LINK.findall(path.read_text("utf-8")):
        if "://" in target:
            continue
        where = (path.parent / target).resolve()
        if where.exists():
            continue
        rest = target.replace("../", "")
        assert rest.startswith(generated), f"{path.name}: {target}"
        name = Path(rest).name
        if rest.startswith("rules/") and name != "index.md":
            assert (ROOT / "server" / "gradguard" / "rules" / name).is_file(), target
        if rest.startswith("images/"):
            assert any((ROOT / "docs" / folder / name).is_file() for folder in ("images", "assets")), target


def test_invariants_name_tests_that_exist() -> None:
    section = (ROOT / "ARCHITECTURE.md").read_text("utf-8").split("\n## Invariants\n", 1)[1]
    named = re.findall(r"`(tests/[\w/]+\.py)`", section)
    assert len(named) >= section.count("\n- ")
    for name in named:
        assert (ROOT / name).is_file(), name
