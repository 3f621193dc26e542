"""Collects the Python packages that the extension carries: python client/scripts/libs.py TARGET

TARGET is a platform of the editor's marketplace (`linux-x64`, `darwin-arm64`, ...) or `universal`. Every
package is pure Python and the same everywhere, but for libcst, which writes the edits of fixes: its parser is
compiled, once per platform and per Python. It goes to a folder of its own, which is only used by a Python that it
was compiled for. A platform's package carries it for each Python that the server supports; the universal one
carries none. Where it cannot be used, fixes need libcst in the user's own environment.

`web` is for the server in a browser, into build/web: the packages that it imports there, and of libcst what is in Python.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBS = ROOT / "client" / "bundled" / "libs"
COMPILED_LIBS = ROOT / "client" / "bundled" / "compiled"
REQUIREMENTS = ROOT / "client" / "bundled" / "requirements.txt"
CACHE = ROOT / ".cache" / "wheels"
WEB = "web"
WEB_LIBS = ROOT / "build" / "web" / "libs"
WEB_COMPILED_LIBS = ROOT / "build" / "web" / "compiled"
WEB_PACKAGES = ("pygls", "lsprotocol", "pathspec", "attrs", "cattrs", "typing-extensions")
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
COMPILED = "libcst"

# libcst has no package for Macs with Intel processors since 1.9: they take the universal one.
PLATFORMS: dict[str, tuple[str, ...]] = {
    "linux-x64": ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"),
    "linux-arm64": ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"),
    "alpine-x64": ("musllinux_1_2_x86_64", "musllinux_1_1_x86_64"),
    "alpine-arm64": ("musllinux_1_2_aarch64", "musllinux_1_1_aarch64"),
    "darwin-arm64": ("macosx_11_0_arm64", "macosx_12_0_arm64"),
    "win32-x64": ("win_amd64",),
    "win32-arm64": ("win_arm64",),
    "universal": (),
}

UNUSED = (
    "bin", "*.dist-info/RECORD", "*.dist-info/INSTALLER", "*.dist-info/REQUESTED", "libcst/codemod",
    "libcst/testing", "**/tests", "**/__pycache__", "**/*.pyi",
)  # fmt: skip
"""Parts of the packages that the server never imports."""


def pins(text: str) -> dict[str, str]:
    """Exact versions by normalised name."""
    found = re.findall(r"^\s*\"?([A-Za-z0-9_.-]+)==([^\s;\",]+)", text, re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}


def check_pins(carried: dict[str, str]) -> None:
    """The extension's server must be the one that is tested. Exits with a message otherwise."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    block = re.search(r"^dependencies = \[(.*?)^\]", project, re.MULTILINE | re.DOTALL)
    if block is None:
        sys.exit("pyproject.toml: no dependencies found")
    for name, version in pins(block.group(1)).items():
        if carried.get(name) != version:
            sys.exit(
                f"client/bundled/requirements.txt: {name} is {carried.get(name)}, pyproject.toml has {version}"
            )


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}")


def wheel(version: str, target: str, python: str) -> Path:
    """The compiled package for one platform and Python, from the cache where it is there."""
    tag = "cp" + python.replace(".", "")
    pattern = f"{COMPILED}-{version}-{tag}-*.whl"
    folder = CACHE / target
    if not any(folder.glob(pattern)):
        platforms = [word for platform in PLATFORMS[target] for word in ("--platform", platform)]
        pip("download", "--no-deps", "--only-binary=:all:", "--implementation=cp", "--python-version", python,
            *platforms, f"--dest={folder}", f"{COMPILED}=={version}")  # fmt: skip
    return next(folder.glob(pattern))


def add_compiled(version: str, target: str) -> None:
    """Python files once, and the compiled module of each Python beside each other: their names differ."""
    for number, python in enumerate(PYTHONS):
        with zipfile.ZipFile(wheel(version, target, python)) as archive:
            for name in archive.namelist():
                if number == 0 or name.startswith(f"{COMPILED}/native."):
                    archive.extract(name, COMPILED_LIBS)


def add_python_of(version: str) -> None:
    """The Python files of the compiled package, which are the same in that of each platform."""
    with zipfile.ZipFile(wheel(version, "linux-x64", PYTHONS[-1])) as archive:
        for name in archive.namelist():
            if not name.startswith(f"{COMPILED}/native."):
                archive.extract(name, WEB_COMPILED_LIBS)


def remove_unused(folders: tuple[Path, ...]) -> None:
    for folder in folders:
        for pattern in UNUSED:
            for path in sorted(folder.glob(pattern)):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def main(target: str) -> None:
    carried = pins(REQUIREMENTS.read_text(encoding="utf-8"))
    check_pins(carried)
    if target == WEB:
        carried = {name: version for name, version in carried.items() if name in (*WEB_PACKAGES, COMPILED)}
    folders = (WEB_LIBS, WEB_COMPILED_LIBS) if target == WEB else (LIBS, COMPILED_LIBS)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        pure = Path(scratch) / "pure.txt"
        pure.write_text(
            "".join(f"{name}=={version}\n" for name, version in carried.items() if name != COMPILED)
        )
        pip("install", "--no-deps", "--no-compile", "--only-binary=:all:", "--implementation=py", "--abi=none",
            "--platform=any", f"--target={folders[0]}", f"--requirement={pure}")  # fmt: skip
    if target == WEB:
        add_python_of(carried[COMPILED])
    elif PLATFORMS[target]:
        add_compiled(carried[COMPILED], target)
    remove_unused(folders)
    size = sum(path.stat().st_size for folder in folders for path in folder.rglob("*") if path.is_file())
    print(f"{folders[0].parent.relative_to(ROOT)}: {len(carried)} packages for {target}, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in (*PLATFORMS, WEB):
        sys.exit(f"usage: libs.py {{{','.join((*PLATFORMS, WEB))}}}")
    main(sys.argv[1])
