"""Real editors with their own LSP clients.

`make test` installs Neovim and says that it is needed, `make test-editor` also what JupyterLab uses; otherwise an editor
that is not installed is skipped.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from tests.docs.pages import blocks

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
NVIM = ROOT / ".venvs" / "nvim" / "bin" / "nvim"
JUPYTER = ROOT / ".venvs" / "jupyter" / "bin" / "python"


def run(command: list[str], home: pathlib.Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "server"),
        "GG_PYTHON": sys.executable,
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_DATA_HOME": str(home / "data"),
        **more,
    }
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=400, check=False
    )


@pytest.mark.skipif(
    not NVIM.exists() and "GRADGUARD_NEOVIM" not in os.environ,
    reason="no Neovim; tests/editors/setup_nvim.sh installs it",
)
@pytest.mark.parametrize("push", ["0", "1"], ids=["pull", "push"])
def test_neovim(tmp_path: pathlib.Path, push: str) -> None:
    command = [str(NVIM), "--headless", "-u", "NONE", "-i", "NONE", "-l", str(HERE / "nvim.lua")]
    result = run(command, tmp_path, GG_PUSH=push)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "FAIL" not in result.stdout
    assert result.stdout.count("ok ") >= 13


@pytest.mark.skipif(shutil.which("emacs") is None, reason="no Emacs with eglot")
def test_emacs(tmp_path: pathlib.Path) -> None:
    result = run(["emacs", "-Q", "--batch", "-l", str(HERE / "eglot.el")], tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "FAIL" not in result.stdout
    assert result.stdout.count("ok ") >= 6


@pytest.mark.skipif(
    not JUPYTER.exists() and "GRADGUARD_JUPYTER" not in os.environ,
    reason="no jupyter-lsp; tests/editors/setup_jupyter.sh installs it",
)
def test_jupyterlab(tmp_path: pathlib.Path) -> None:
    """With the configuration of the documentation, and the server as it is on PATH after an installation."""
    (given,) = (text for _, text in blocks("json") if "LanguageServerManager" in text)
    configuration = tmp_path / "jupyter_server_config.json"
    configuration.write_text(given, "utf-8")
    program = tmp_path / "gradguard"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gradguard "$@"\n', "utf-8")
    program.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    result = run([str(JUPYTER), str(HERE / "jupyter_session.py"), str(configuration)], tmp_path, PATH=path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.splitlines() == ["gradguard", "GG101 in line 5"]
