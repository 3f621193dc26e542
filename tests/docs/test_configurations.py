"""The configurations that the pages give to copy are read by those they are for, and name what there is."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from mcp import StdioServerParameters

from gradguard import __version__
from gradguard.check import pyproject
from gradguard.cli import check
from gradguard.cli.arguments import parser
from tests.cli.running import RAISES
from tests.docs.pages import ROOT, blocks

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SERVER = ["gradguard", "server"]
ASSISTANTS = ["gradguard", "mcp"]
KEYS = {
    ".mcp.json": "mcpServers",
    ".cursor/mcp.json": "mcpServers",
    "mcp_config.json": "mcpServers",
    ".vscode/mcp.json": "servers",
    "~/.codex/config.toml": "mcp_servers",
}
"""The key under which each assistant reads its servers, by the file that it reads."""
MANIFEST = json.loads((ROOT / "package.json").read_text("utf-8"))
NVIM = ROOT / ".venvs" / "nvim" / "bin" / "nvim"
README = (ROOT / "README.md").read_text("utf-8")


def params(language: str) -> list[Any]:
    return [pytest.param(text, id=name) for name, text in blocks(language)]


def test_every_language_of_a_block_is_known() -> None:
    """A block in another language needs a test here."""
    fences = {
        name for path in {name.rpartition("-")[0] for name, _ in blocks(r"\w*")} for name in _languages(path)
    }
    assert fences == {"sh", "python", "text", "toml", "json", "yaml", "lua", "elisp", "groovy"}


def _languages(page: str) -> list[str]:
    return re.findall(r"^```(\w+)$", (ROOT / page).read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("text", params("toml"))
def test_toml(text: str) -> None:
    table = tomllib.loads(text)
    if "language-server" in table:
        server = table["language-server"]["gradguard"]
        assert [server["command"], *server["args"]] == SERVER
        assert "gradguard" in table["language"][0]["language-servers"]
        return
    if "mcp_servers" in table:
        assert set(table) == {"mcp_servers"}
        _serves_assistants(table["mcp_servers"])
        return
    read = pyproject.parse_text(text, "pyproject.toml")
    assert read is not None
    assert read.problems == ()


@pytest.mark.parametrize("text", params("json"))
def test_json(text: str) -> None:
    text = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
    text = text if text.lstrip().startswith("{") else f"{{{text}}}"  # settings are shown without their braces
    for key, value in json.loads(text).items():
        match key:
            case "clients":
                assert value["gradguard"]["command"] == SERVER
            case "LanguageServerManager":
                assert value["language_servers"]["gradguard"]["argv"] == SERVER
            case "mcpServers" | "servers":
                _serves_assistants(value)
            case "editor.codeActionsOnSave":
                assert set(value) == {"source.fixAll.gradguard"}
            case _:
                described = MANIFEST["contributes"]["configuration"]["properties"][key]
                assert (
                    type(value).__name__
                    == {"object": "dict", "boolean": "bool", "string": "str"}[described["type"]]
                )
                assert value in described.get("enum", [value])


def _serves_assistants(servers: dict[str, Any]) -> None:
    """The entry starts the server that tests/assistants starts, and the official client can read it."""
    assert set(servers) == {"gradguard"}
    entry = dict(servers["gradguard"])
    assert entry.pop("type", "stdio") == "stdio"
    assert set(entry) == {"command", "args"}
    read = StdioServerParameters.model_validate(entry)
    assert [read.command, *read.args] == ASSISTANTS


@pytest.mark.parametrize("language", ["en", "ko"])
def test_each_assistant_has_the_key_that_it_reads(language: str) -> None:
    page = (ROOT / "docs" / language / "guides" / "assistants.md").read_text("utf-8")
    shown = re.findall(r"^(.+)\n\n```(?:json|toml)\n\W*(\w+)", page, re.MULTILINE)
    assert {file: key for sentence, key in shown for file in re.findall("`([^`]+)`", sentence)} == KEYS


@pytest.mark.parametrize("text", params("yaml"))
def test_yaml(text: str) -> None:
    read = yaml.safe_load(text)
    if isinstance(read, dict) and "repos" in read:
        (repository,) = read["repos"]
        hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
        assert {hook["id"] for hook in repository["hooks"]} <= {hook["id"] for hook in hooks}
        assert repository["rev"] == f"v{__version__}"
        return
    inputs = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["inputs"]
    ours = [each for each in _tables(read) if str(each.get("uses", "")).startswith("gradguard/")]
    for step in ours:
        assert step["uses"] == f"gradguard/gradguard@v{__version__}"
        assert set(step["with"]) <= set(inputs)
        parser().parse_args(["check", *step["with"].get("args", "").split()])
    lines = _scripts(read)
    for line in lines:
        parser().parse_args(line.split()[1:])
    assert ours or lines


def _tables(read: object) -> Iterator[dict[str, Any]]:
    """A table and those below it."""
    if isinstance(read, dict):
        yield read
        read = list(read.values())
    for each in read if isinstance(read, list) else ():
        yield from _tables(each)


def _scripts(read: object) -> list[str]:
    """Lines of scripts that call the command."""
    found = [each["script"] for each in _tables(read) if "script" in each]
    lines = [line for script in found for line in (script if isinstance(script, list) else [script])]
    return [line for line in lines if line.startswith("gradguard ")]


def test_groovy() -> None:
    ((_, text),) = blocks("groovy")
    lines = [line for line in re.findall(r"sh '([^']*)'", text) if line.startswith("gradguard ")]
    assert [parser().parse_args(line.split()[1:]).format for line in lines] == ["sarif"]


def test_the_job_of_gitlab_reports_from_a_clean_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (text,) = (
        text for name, text in blocks("yaml") if name.startswith("docs/en/ci") and "codequality" in text
    )
    job = yaml.safe_load(text)["gradguard"]
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text(RAISES)
    monkeypatch.chdir(tmp_path)
    for name, value in job["variables"].items():
        monkeypatch.setenv(name, value.replace("$CI_PROJECT_DIR", str(tmp_path)))
    (line,) = _scripts({"job": job})
    assert check.run(parser().parse_args(line.split()[1:])) == 1
    (issue,) = json.loads((tmp_path / job["artifacts"]["reports"]["codequality"]).read_text())
    assert issue["location"] == {"path": "src/train.py", "lines": {"begin": 5, "end": 5}}
    assert (tmp_path / job["cache"]["paths"][0]).is_dir()


def test_the_readme_names_hooks_inputs_and_the_version_that_there_are() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    row = next(line for line in README.splitlines() if line.startswith("| **pre-commit**"))
    assert set(re.findall(r"`(gradguard[\w-]*)`", row)) == {hook["id"] for hook in hooks}
    row = next(line for line in README.splitlines() if line.startswith("| **GitHub Actions**"))
    assert f"gradguard/gradguard@v{__version__}" in row
    assert "sarif-file" in yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["inputs"]


@pytest.mark.parametrize("text", params("elisp") + [pytest.param(README, id="README.md")])
@pytest.mark.skipif(shutil.which("emacs") is None, reason="no Emacs")
def test_emacs_takes_the_server(text: str, tmp_path: Path) -> None:
    if text is README:
        text = _code_of("Emacs", r"\(add-to-list.*\)")
    (tmp_path / "init.el").write_text(text, "utf-8")
    (tmp_path / "train.py").touch()
    code = (
        '(progn (load-file "init.el") (find-file "train.py")'
        ' (princ (format "%S" (seq-take (nth 3 (eglot--guess-contact)) 2))))'
    )
    elisp = (
        '(let ((default-directory "/usr/share/emacs/site-lisp/elpa/"))'
        " (when (file-directory-p default-directory) (normal-top-level-add-subdirs-to-load-path)))"
    )
    done = subprocess.run(
        ["emacs", "-Q", "--batch", "--eval", elisp, "-l", "eglot", "--eval", code],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == '("gradguard" "server")'


@pytest.mark.parametrize("text", params("lua") + [pytest.param(README, id="README.md")])
@pytest.mark.skipif(not NVIM.exists(), reason="no Neovim; tests/editors/setup_nvim.sh installs it")
def test_neovim_takes_the_server(text: str, tmp_path: Path) -> None:
    if text is README:
        text = (
            _code_of("Neovim", r"vim\.lsp\.config\(.*\)")
            + "\n"
            + _code_of("Neovim", r"vim\.lsp\.enable\(.*\)")
        )
    (tmp_path / "init.lua").write_text(
        text + "\nlocal c = vim.lsp.config.gradguard\n"
        "io.stdout:write(table.concat(c.cmd, ' ') .. '|' .. c.filetypes[1] .. '|' .. tostring(vim.lsp.is_enabled('gradguard')))\n",
        "utf-8",
    )
    done = subprocess.run(
        [str(NVIM), "--headless", "-u", "NONE", "-i", "NONE", "-l", "init.lua"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "gradguard server|python|true"


def _code_of(editor: str, pattern: str) -> str:
    """The code in the row of an editor in the README that matches."""
    row = next(line for line in README.splitlines() if line.startswith(f"| **{editor}**"))
    return next(code for code in re.findall(r"`([^`]+)`", row) if re.fullmatch(pattern, code))
