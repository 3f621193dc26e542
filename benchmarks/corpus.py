"""Released libraries and training scripts to measure on: pinned, fetched once by pip without their dependencies, never imported."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

CACHE = Path(__file__).resolve().parents[1] / ".cache" / "bench"

PINS = {
    "torchvision": "0.29.1",
    "timm": "1.0.31",
    "transformers": "5.23.0",
    "kornia": "0.9.0",
    "diffusers": "0.42.1",
    "torchrl": "0.14.1",
    "accelerate": "1.15.0",
    "peft": "0.21.2",
    "pyro-ppl": "1.9.2",
    "segmentation-models-pytorch": "0.6.0",
    "speechbrain": "1.1.2",
    "torch-geometric": "2.8.1",
    "ultralytics": "8.4.190",
    "stable-baselines3": "2.9.2",
}

SCRIPTS = {"cleanrl": "0.4.8", "learn2learn": "0.2.0"}
"""Source packages: trainings are in no wheel."""
SCRIPT_LINES = range(100, 1201)
"""Lines of what is taken for a training script, if it calls `backward()` as well."""
# Its build asks for a compiler of Cython that a download needs not; what is installed suffices to name it.
AS_INSTALLED = {"learn2learn"}


@dataclass(frozen=True)
class Library:
    """The Python files of one release, or every `step`-th of them."""

    name: str
    version: str
    folder: Path
    step: int = 1

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """Python files, sorted."""
        return tuple(sorted(self.folder.rglob("*.py"))[:: self.step])

    @property
    def paths(self) -> list[str]:
        """What to tell a tool that is to read these files."""
        return [str(self.folder)] if self.step == 1 else [str(path) for path in self.files]

    @cached_property
    def lines(self) -> int:
        """Lines of all files."""
        return sum(path.read_bytes().count(b"\n") for path in self.files)

    @cached_property
    def torch_files(self) -> int:
        """Files that mention torch."""
        return sum(b"torch" in path.read_bytes() for path in self.files)


def library(name: str) -> Library:
    """A library, fetched when it is not there yet. Raises subprocess.CalledProcessError when pip cannot."""
    version = PINS[name]
    folder = CACHE / "libraries" / f"{name}-{version}"
    if not (folder / "complete").exists():
        _unpack(download(name, version, ".whl"), folder)
        (folder / "complete").touch()
    return Library(name, version, folder)


def scripts() -> list[Path]:
    """The training scripts of the source packages, fetched when they are not there yet, sorted."""
    found: list[Path] = []
    for name, version in SCRIPTS.items():
        folder = CACHE / "scripts" / f"{name}-{version}"
        if not (folder / "complete").exists():
            with tarfile.open(download(name, version, ".tar.gz")) as archive:
                members = [each for each in archive if each.isreg() and each.name.endswith(".py")]
                archive.extractall(folder, members, filter="data")
            (folder / "complete").touch()
        found += [path for path in sorted(folder.rglob("*.py")) if is_script(path.read_bytes())]
    return found


def is_script(text: bytes) -> bool:
    """Whether it trains something and has the length of one script."""
    return b"backward()" in text and text.count(b"\n") in SCRIPT_LINES


def download(name: str, version: str, suffix: str) -> Path:
    """The wheel (`.whl`) or source package (`.tar.gz`) of a release."""
    downloads = CACHE / "wheels"
    pattern = f"{name.replace('-', '_')}-{version}" + ("-*.whl" if suffix == ".whl" else suffix)
    found = list(downloads.glob(pattern))
    if not found:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
        ]
        command += ["--only-binary=:all:"] if suffix == ".whl" else ["--no-binary=:all:"]
        command += ["--no-build-isolation"] if name in AS_INSTALLED else []
        subprocess.run([*command, "--dest", str(downloads), f"{name}=={version}"], check=True)
        found = list(downloads.glob(pattern))
    return found[0]


def _unpack(wheel: Path, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        members = [name for name in archive.namelist() if name.endswith(".py") and ".dist-info/" not in name]
        archive.extractall(folder, members)


if __name__ == "__main__":
    for each in PINS:
        print(each, PINS[each], len(library(each).files), "files", flush=True)
    print(len(scripts()), "training scripts")
