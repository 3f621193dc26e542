"""What a run left is read with care: a repository may hold anything in its place."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradguard.lsp.disk_calls import DiskCalls
from gradguard.lsp.observed import NAME, Observed, read_runs

TEXT = "import torch\n"
FOUND: dict[str, Any] = {
    "file": "a.py", "line": 1, "column": 1, "code": "GG101", "name": "inplace-on-saved-tensor", "severity": "error",
    "message": "seen", "related": [{"file": "a.py", "line": 1, "column": 1, "message": "here"}],
}  # fmt: skip
ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1e999,
    float("nan"),
    10**30,
    "",
    "x",
    "\0",
    [],
    [[]],
    [1],
    {},
    {"a": 1},
)


def loaded(folder: Path, run: object) -> int:
    (folder / ".gradguard").mkdir(exist_ok=True)
    (folder / NAME).write_text(run if isinstance(run, str) else json.dumps(run))
    observed = Observed()
    observed.take(read_runs([str(folder)], DiskCalls()))
    return len(list(observed.findings(str(folder / "a.py"), TEXT)))


def run_with(*found: object) -> dict[str, Any]:
    return {"findings": [FOUND, *found], "files": {"a.py": hashlib.sha256(TEXT.encode()).hexdigest()}}


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_one_odd_finding_costs_itself(odd: object, tmp_path: Path) -> None:
    assert loaded(tmp_path, run_with()) == 1
    for forged in (odd, *({**FOUND, key: odd} for key in FOUND if key != "file")):
        assert loaded(tmp_path, run_with(forged)) in (1, 2)
    assert loaded(tmp_path, odd) == 0
    for key in ("findings", "files"):
        assert loaded(tmp_path, {**run_with(), key: odd}) == 0


@pytest.mark.parametrize("damage", ["", "{", "[" * 100_000, "9" * 5000, " " * 20_000_000], ids=len)
def test_a_damaged_file_is_none(damage: str, tmp_path: Path) -> None:
    assert loaded(tmp_path, damage) == 0


IN_ITS_PLACE: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "link in a circle": lambda path: path.symlink_to(path),
    "folder": lambda path: path.mkdir(),
}


@pytest.mark.parametrize("kind", IN_ITS_PLACE)
def test_what_is_no_file_is_not_read(kind: str, tmp_path: Path) -> None:
    (tmp_path / ".gradguard").mkdir()
    IN_ITS_PLACE[kind](tmp_path / NAME)
    assert not Observed().take(read_runs([str(tmp_path)], DiskCalls()))
