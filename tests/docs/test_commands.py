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
    """A folder as the pages suppose it: the tutorial's script, also in src, a notebook, and a function."""
    tutorial = (ROOT / "docs" / "en" / "tutorial.md").read_text("utf-8")
    script = PYTHON.findall(tutorial)[0]
    (tmp_path / "train.py").write_text(script)
    (tmp_path / "lib.py").write_text(script)
    for folder in ("src", "notebooks"):
        (tmp_path / folder).mkdir()
    (tmp_path / "src" / "train.py").write_text(script)
    cell = {"cell_type": "code", "source": script, "metadata": {}, "outputs": [], "execution_count": None}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "notebooks" / "train.ipynb").write_text(json.dumps(notebook))
    (tmp_path / "pyproject.toml").write_text("[tool.gradguard]\n")
    (tmp_path / "repos.txt").write_text("src\n")
    guide = (ROOT / "docs" / "en" / "guides" / "inplace.md").read_text("utf-8")
    (tmp_path / "block.py").write_text(
        next(block for block in PYTHON.findall(guide) if "def block(" in block)
    )
    return tmp_path


ELSEWHERE = {
    "make demo": (".ci/run", "make demo"),
    "make check": (".ci/run", "make check"),
    "make test": (".ci/run", "make test"),
    "make docs": (".ci/run", "make docs"),
    "make table-check": (".ci/run", "make table-check"),
    "make test-editor": (".ci/run", "make test-editor"),
    "npm ci": ("Makefile", "\tnpm ci"),
    "npm run package": ("tests/vscode/run.sh", "node client/scripts/package.mjs"),
    "python -m gradguard": ("tests/cli/test_safe_path.py", '"-m", "gradguard"'),
    "python -P -m gradguard": ("tests/cli/test_safe_path.py", '"-P", "-m", "gradguard"'),
    "make new-rule name=some-pattern code=GG113": ("tests/docs/test_new_rule.py", '"docs.new_rule"'),
}
"""Commands that are run by another part of continuous integration: the file that does it, and its words there."""

NOT_RUN = {
    ".ci/run": "it runs this test",
    "make docs-test": "it runs this test, after the `make docs` that continuous integration has as a step",
    "make fix": "it rewrites the checkout; `make check` runs the same tools without writing",
    "make generated": "it rewrites the checkout; `make check` runs the same programs with --check",
    "make fuzz": "minutes of random programs; `make test` has a share of them in tests/fuzz and tests/fixes",
    "make hostile": "ten minutes; `make test` has a share of it in tests/hostile",
    "make fleet": "minutes of killing workers; `make test` has a share of it in tests/fleet/test_crowd.py",
    "make table": "minutes, and it rewrites the table; `make table-check` asks torch about what it wrote",
    "make bench": "minutes of measuring, which have no right or wrong",
    "make screenshots": "it rewrites the pictures; `make test-editor` takes them in the same scenario",
    "npm run package -- --target web": "no editor here takes it; `make test-editor` tests what is in it, in a package for this machine",
    "python -m benchmarks.atlas": "it downloads released libraries, and scans for an hour",
    "python -m benchmarks.corpus": "it downloads released libraries",
    "python -m benchmarks.keystrokes --script NAME": "minutes; tests/bench types in a small script",
    "pip install 'gradguard[mcp]'": "it needs a package index; requirements-mcp.txt has the same pins",
    "pip install 'gradguard[fleet]'": "it needs a package index; requirements-fleet.txt has the same pins",
    "pip install libcst": "it needs a package index; gradguard itself depends on libcst",
}
"""Commands that no test runs as they stand, each with its reason. Their targets are resolved all the same."""


def test_each_command_is_run_or_has_a_reason() -> None:
    found = set(commands())
    assert {*ELSEWHERE, *NOT_RUN} <= found, "listed, and in no page"
    assert not ELSEWHERE.keys() & NOT_RUN.keys()
    left = {command for command in found - {*ELSEWHERE, *NOT_RUN} if not command.startswith("gradguard ")}
    assert left == {"pip install ."}, "add a test that runs it, or its reason"


@pytest.mark.parametrize("command", ELSEWHERE)
def test_command_of_continuous_integration(command: str) -> None:
    file, words = ELSEWHERE[command]
    assert words in (ROOT / file).read_text("utf-8")


@pytest.mark.parametrize("command", [command for command in commands() if command.startswith("make ")])
def test_target(command: str, tmp_path: Path) -> None:
    """What it needs can be made; the recipe is printed and not run."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        [*shlex.split(command), "--dry-run", "--directory", str(ROOT)],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_script_of_npm() -> None:
    assert "package" in json.loads((ROOT / "package.json").read_text("utf-8"))["scripts"]


def test_pip_install(project: Path) -> None:
    arguments = ["install", "--quiet", "--no-deps", "--target", str(project / "installed"), str(ROOT)]
    _run([sys.executable, "-m", "pip", *arguments], project)
    assert (project / "installed" / "gradguard" / "rules" / "ko" / "inplace_on_leaf.md").is_file()
    assert (project / "installed" / "bin" / "gradguard").is_file()


@pytest.mark.parametrize("command", [command for command in commands() if command.startswith("gradguard ")])
def test_command(command: str, project: Path) -> None:
    words = shlex.split(command)[1:]
    if len(words) == 1 or (words[1].isupper() and not words[1].startswith("GG")):
        words = [words[0], "--help"]  # a command that is named, or its form
    if "--baseline" in words:
        _gradguard(["check", "src/", "--write-baseline", words[words.index("--baseline") + 1]], project)
    if words == ["fleet", "diff"]:
        words.append("--help")
    elif words[:2] == ["fleet", "diff"]:
        _gradguard(["fleet", "src", "--output", words[2]], project)
        shutil.copytree(project / words[2], project / words[3])
    done = _gradguard(words, project)
    assert "gradguard: internal error" not in done.stdout + done.stderr
    assert not done.stderr.startswith("usage:")


def _gradguard(words: list[str], project: Path) -> subprocess.CompletedProcess[str]:
    """Findings are no failure."""
    return _run([sys.executable, "-m", "gradguard", *words], project, codes=(0, 1))


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
    generated = ("rules/", "needs.md", "playground.md", "ops.md", "settings.md", "images/")
    for target in LINK.findall(path.read_text("utf-8")):
        if "://" in target:
            continue
        base = ROOT if path.parent.name == "client" else path.parent  # the page of the extension in a shop
        where = (base / target).resolve()
        if where.exists():
            continue
        rest = target.replace("../", "")
        assert rest.startswith(generated), f"{path.name}: {target}"
        name = Path(rest).name
        if rest.startswith("rules/") and name != "index.md":
            assert (ROOT / "server" / "gradguard" / "rules" / name).is_file(), target
        if rest.startswith("images/"):
            assert any((ROOT / "docs" / folder / name).is_file() for folder in ("images", "assets")), target


def test_each_invariant_names_a_test_that_exists() -> None:
    section = (ROOT / "ARCHITECTURE.md").read_text("utf-8").split("\n## Invariants\n", 1)[1]
    invariants = section.split("\n- ")[1:]
    assert len(invariants) > 5
    for invariant in invariants:
        named = re.findall(r"`(tests/[\w/]+\.py)`", invariant)
        assert named, invariant
        for name in named:
            assert (ROOT / name).is_file(), name


MAP = re.compile(r"^\*\*`([\w/]+)`\*\*.*?(?=\n\n)", re.MULTILINE | re.DOTALL)


def test_the_code_map_names_what_there_is() -> None:
    """Every path in backquotes exists, from the root, the package, or the folder that its paragraph is about."""
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    about = {match.group(0): ROOT / match.group(1) for match in MAP.finditer(text)}
    assert {folder.name for folder in about.values()} >= {
        "source",
        "ops",
        "engine",
        "rules",
        "check",
        "fixes",
        "ide",
    }
    named = [
        (paragraph, name)
        for paragraph in text.split("\n\n")
        for name in re.findall(r"`([\w./*-]+)`", paragraph)
        if re.search(r"/|\.(py|md|json|jsonl|toml)$", name)
    ]
    assert len(named) > 30
    for paragraph, name in named:
        folders = [ROOT, ROOT / "server" / "gradguard", ROOT / "fixtures", about.get(paragraph, ROOT)]
        assert any(next(folder.glob(name.rstrip("/")), None) for folder in folders), name
