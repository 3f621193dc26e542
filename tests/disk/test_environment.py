"""The torch of an environment is known by its metadata, which nothing has to be imported for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gradguard.disk import environment


@pytest.mark.parametrize(
    ("name", "release"),
    [
        ("torch-2.13.0+cpu.dist-info", "2.13.0+cpu"),
        ("torch-2.6.0-py3.11.egg-info", "2.6.0"),
        ("torch-2.6.0.egg-info", "2.6.0"),
        ("torch-2.15.0.dev20261130+cu130.dist-info", "2.15.0.dev20261130+cu130"),
        ("torch_geometric-2.6.1.dist-info", ""),
        ("torch-scatter-2.1.2.dist-info", ""),
        ("torchvision-0.29.1.dist-info", ""),
        ("torch", ""),
    ],
)
def test_the_name_of_the_metadata_tells_the_release(name: str, release: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    assert environment.torch_in([str(tmp_path / "missing"), str(tmp_path)]) == release


def test_the_first_folder_that_has_one_decides(tmp_path: Path) -> None:
    for folder, release in (("one", "2.13.0"), ("two", "2.14.0")):
        (tmp_path / folder / f"torch-{release}.dist-info").mkdir(parents=True)
    assert environment.torch_in([str(tmp_path / "one"), str(tmp_path / "two")]) == "2.13.0"


def test_what_is_found_here_is_what_runs_here() -> None:
    code = "import torch; from gradguard.disk.environment import torch_beside; print(torch_beside() == torch.__version__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


@pytest.mark.parametrize("variable", environment.ENVIRONMENTS)
def test_a_python_without_torch_asks_the_active_environment(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib" / "python3.12" / "site-packages" / "torch-2.14.1.dist-info").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    for each in environment.ENVIRONMENTS:
        monkeypatch.delenv(each, raising=False)
    assert environment.torch_beside.__wrapped__() == ""
    monkeypatch.setenv(variable, str(tmp_path))
    assert environment.torch_beside.__wrapped__() == "2.14.1"
