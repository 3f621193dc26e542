"""Sources made on the fly, and a scan without Ray: its tasks run here, one after the other."""

from __future__ import annotations

import io
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gradguard.fleet import scan
from gradguard.fleet.model import Limits, Options
from gradguard.fleet.scan import Came
from gradguard.fleet.sources import sources
from gradguard.fleet.store import Store
from gradguard.fleet.work import Row, Work, version
from tests.cli.running import RAISES

Files = Mapping[str, str | bytes]

PROJECT: Files = {
    "pyproject.toml": "[tool.gradguard]\n",
    "train.py": RAISES,
    "pkg/__init__.py": "",
    "pkg/act.py": "import torch\n\n\ndef act(x):\n    return torch.sigmoid(x)\n",
    "use.py": "import torch\n\nfrom pkg.act import act\n\nx = torch.rand(3, requires_grad=True)\ny = act(x)\ny += 1\ny.sum().backward()\n",
}
"""Two mistakes: one in `train.py`, and one in `use.py` that shows only to who has read `pkg/act.py`."""


def folder(top: Path, files: Files = PROJECT) -> Path:
    for name, text in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return top


def wheel(path: Path, files: Files = PROJECT) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def sdist(path: Path, files: Files = PROJECT, extra: Sequence[tarfile.TarInfo] = ()) -> Path:
    top = path.name.removesuffix(".tar.gz")
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            data = text.encode() if isinstance(text, str) else text
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for member in extra:
            archive.addfile(member)
    return path


def git(top: Path, *words: str) -> str:
    given = [
        "-c",
        "user.name=somebody",
        "-c",
        "user.email=somebody@example.org",
        "-c",
        "commit.gpgsign=false",
    ]
    done = subprocess.run(["git", *given, *words], cwd=top, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def repository(top: Path, files: Files = PROJECT) -> Path:
    folder(top, files)
    git(top, "init", "--quiet", "--initial-branch=main", ".")
    git(top, "add", "--all")
    git(top, "commit", "--quiet", "--message=first")
    return top


def bare(top: Path, files: Files = PROJECT) -> Path:
    work = repository(top.parent / f"{top.name}-work", files)
    git(top.parent, "clone", "--quiet", "--bare", str(work), str(top))
    return top


@dataclass
class Here:
    """Runs tasks one after the other; `lose` says which rows are lost with their worker."""

    lose: Callable[[Row, bool], bool] = lambda row, alone: False
    asked: list[int] = field(default_factory=list)

    def stream(
        self,
        rows: Sequence[Row],
        first: Callable[[Row], Iterator[Row]],
        then: Callable[[Row], Row],
        *,
        alone: bool = False,
    ) -> Iterator[Row]:
        self.asked.append(len(rows))
        for row in rows:
            for each in first(row):
                if not self.lose(each, alone):
                    yield then(each)


def scanned(
    store: Path,
    *words: str | Path,
    options: Options | None = None,
    limits: Limits | None = None,
    here: Here | None = None,
) -> Came:
    """What a scan of these sources comes to."""
    work = Work(version(), options or Options(), limits or Limits(), Store(str(store)))
    return scan.run(sources([str(word) for word in words]), work, here or Here(), lambda came, head: None)


def counts(came: Came) -> dict[str, dict[str, int]]:
    """Findings by package."""
    return {head["package"]: head["counts"] for head in came.heads.values() if head["state"] == "checked"}


def unread(came: Came) -> list[tuple[str, str]]:
    """Paths and reasons."""
    from gradguard.fleet.tables import unread_of

    return [each for key in sorted(came.heads) for each in unread_of(came.heads[key])]
