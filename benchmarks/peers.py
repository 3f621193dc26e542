"""The neighbours that install without torch, in a virtual environment of their own."""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.corpus import CACHE

PINS = ("torchfix==0.7.0", "torch-preflight==0.5.0", "hotpath-ai==0.1.0", "ruff==0.17.5", "ty==0.0.104")
# TorchFix 0.7.0 does not work with the newest libcst.
CONSTRAINTS = ("libcst==1.5.1",)


@dataclass(frozen=True)
class Peer:
    """A tool and how it is run over a folder; `jobs` where it can use several processes."""

    name: str
    what: str
    command: Callable[[Path, Path, int], list[str]]
    """From the folder of programs, the folder to check and the number of processes."""
    findings: Callable[[str], int]
    """How many findings its output shows."""


def _lines(mark: str) -> Callable[[str], int]:
    return lambda out: sum(mark in line for line in out.splitlines())


PEERS = (
    Peer(
        "TorchFix 0.7.0",
        "deprecated and unsafe torch calls, on libcst; archived",
        lambda programs, folder, jobs: [str(programs / "torchfix"), "--select", "ALL", "-j", str(jobs), str(folder)],
        _lines(": TOR"),
    ),
    Peer(
        "torch-preflight 0.5.0",
        "graph retention, missing no_grad, host reads, on libcst",
        lambda programs, folder, jobs: [str(programs / "torch-preflight"), "check", str(folder)],
        _lines(" TG0"),
    ),
    Peer(
        "hotpath-ai 0.1.0",
        "host reads in loops by name, on ast",
        lambda programs, folder, jobs: [str(programs / "hotpath"), "analyze", str(folder)],
        _lines("HP"),
    ),
    Peer(
        "ruff 0.17.5",
        "a general linter in Rust, its default rules",
        lambda programs, folder, jobs: [
            str(programs / "ruff"), "check", "--no-cache", "--isolated", "--output-format", "concise", str(folder)
        ],
        _lines(".py:"),
    ),
    Peer(
        "ty 0.0.104",
        "a type checker in Rust",
        lambda programs, folder, jobs: [
            str(programs / "ty"), "check", "--output-format", "concise", "--python", sys.prefix, str(folder)
        ],
        _lines(".py:"),
    ),
)  # fmt: skip


BY_NAME = {peer.name.partition(" ")[0]: peer for peer in PEERS}
"""By name without the version."""


def programs() -> Path:
    """The folder with the peers' programs, installed when they are not there yet."""
    folder = CACHE / "peers"
    mark = folder / "complete"
    wanted = "\n".join((*PINS, *CONSTRAINTS))
    if not mark.exists() or mark.read_text() != wanted:
        venv.create(folder, with_pip=True, clear=True)
        pip = [
            str(folder / "bin" / "python"),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]
        subprocess.run([*pip, *PINS, *CONSTRAINTS], check=True)
        mark.write_text(wanted)
    return folder / "bin"
