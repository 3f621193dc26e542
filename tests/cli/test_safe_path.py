"""In a stranger's folder nothing of the stranger's is imported, however the command was started.

The folder holds a module for each name of the standard library and of what is depended on; whichever is imported notes
its name and ends the process.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.cli.running import RAISES, SERVER
from tests.lsp import editor as editors

ROOT = SERVER.parent
LAUNCHER = ROOT / "client" / "bundled" / "tool" / "launch.py"
COMMAND = "import sys\nfrom gradguard.main import main\nsys.exit(main())\n"
"""What pip writes into the script of a command."""

DEPENDENCIES = {
    "attr", "attrs", "cattrs", "exceptiongroup", "gradguard", "libcst", "lsprotocol", "markdown_it", "mdurl", "numpy",
    "pathspec", "platformdirs", "pygls", "pygments", "rich", "sitecustomize", "tomli", "torch", "typing_extensions",
    "usercustomize", "yaml",
}  # fmt: skip
EVERYTHING = {*sys.stdlib_module_names, *DEPENDENCIES} - set(sys.builtin_module_names)
LATER = {
    "argparse", "ast", "dataclasses", "difflib", "hashlib", "json", "libcst", "pathspec", "platformdirs", "pygls", "random",
    "rich", "subprocess", "tempfile", "torch",
}  # fmt: skip
"""What Python does not import to run a package, but gradguard does."""

FUNCTION = """\
import torch
# gradguard: inputs x=torch.randn(4, 3, requires_grad=True)
def f(x):
    import helper
    y = x * helper.TWO
    y += 1
    return y.sum()
"""

Start = Callable[..., subprocess.CompletedProcess[str]]


class Stranger:
    """A folder of traps."""

    def __init__(self, folder: Path, names: Iterable[str] = EVERYTHING) -> None:
        self.folder = folder
        self.trace = folder.parent / "trace"
        folder.mkdir()
        trap = f"open({str(self.trace)!r}, 'a').write(__name__ + '\\n')\nraise SystemExit(77)\n"
        for name in names:
            (folder / f"{name}.py").write_text(trap)
        (folder / "train_it.py").write_text(RAISES)
        (folder / "function_of_it.py").write_text(FUNCTION)
        (folder / "helper.py").write_text("TWO = 2\n")

    @property
    def imported(self) -> list[str]:
        return self.trace.read_text().split() if self.trace.exists() else []

    def start(self, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command there."""
        return subprocess.run(
            [sys.executable, *command],
            cwd=self.folder,
            env=environment(**more),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


def environment(**more: str) -> dict[str, str]:
    plain = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return {**plain, "PYTHONPATH": str(SERVER), "PYTHONUTF8": "1", **more}


@pytest.fixture
def stranger(tmp_path: Path) -> Stranger:
    return Stranger(tmp_path / "stranger")


@pytest.fixture
def command(tmp_path: Path) -> str:
    """The script of the command, in a folder as pip has it."""
    script = tmp_path / "bin" / "gradguard"
    script.parent.mkdir()
    script.write_text(COMMAND)
    return str(script)


WORDS = [
    ("check", "--no-cache", "train_it.py", "--color", "always"),
    ("check", "--no-cache", "train_it.py", "--format", "sarif"),
    ("check", "--no-cache", "--diff", "--unsafe-fixes", "train_it.py"),
    ("explain", "GG101", "--color", "always"),
]


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_the_command_imports_nothing_from_there(
    stranger: Stranger, command: str, words: tuple[str, ...]
) -> None:
    done = stranger.start(command, *words)
    assert (stranger.imported, done.returncode) == ([], 0 if words[0] == "explain" else 1), done.stderr
    assert done.stdout


def test_a_whole_folder_is_checked_in_several_processes(stranger: Stranger, command: str) -> None:
    done = stranger.start(command, "check", "--no-cache", "--jobs", "2", ".")
    assert (stranger.imported, done.returncode) == ([], 1), done.stderr
    assert "1 finding (1 error)" in done.stdout


def test_nor_do_processes_that_are_started_anew_as_on_macos_and_windows(
    stranger: Stranger, tmp_path: Path
) -> None:
    script = tmp_path / "start.py"
    script.write_text(
        "from gradguard.cli import process\n"
        "process._FORKS = False\n"
        "if __name__ == '__main__':\n"
        "    import sys\n"
        "    from gradguard.main import main\n"
        "    sys.exit(main())\n"
    )
    done = stranger.start(str(script), "check", "--no-cache", "--jobs", "2", ".")
    assert (stranger.imported, done.returncode) == ([], 1), done.stderr
    assert "1 finding (1 error)" in done.stdout
    assert "train_it.py:5:1: error" in done.stdout


@pytest.mark.parametrize("strategy", ["useBundled", "fromEnvironment"])
def test_the_launcher_of_the_extension_imports_nothing_from_there(stranger: Stranger, strategy: str) -> None:
    done = stranger.start(
        str(LAUNCHER), "check", "--no-cache", "train_it.py", GRADGUARD_IMPORT_STRATEGY=strategy
    )
    assert (stranger.imported, done.returncode) == ([], 1), done.stderr


@pytest.mark.skipif(sys.version_info < (3, 11), reason="-P came with Python 3.11")
def test_with_p_python_imports_nothing_from_there(stranger: Stranger) -> None:
    done = stranger.start("-P", "-m", "gradguard", "check", "--no-cache", "train_it.py")
    assert (stranger.imported, done.returncode) == ([], 1), done.stderr
    done = stranger.start("-m", "gradguard", "check", "--no-cache", "train_it.py", PYTHONSAFEPATH="1")
    assert (stranger.imported, done.returncode) == ([], 1), done.stderr


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_without_p_gradguard_itself_imports_nothing_from_there(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    stranger = Stranger(tmp_path / "stranger", LATER)
    done = stranger.start("-m", "gradguard", *words)
    assert (stranger.imported, done.returncode) == ([], 0 if words[0] == "explain" else 1), done.stderr


def test_who_stands_beside_the_package_starts_that_one(tmp_path: Path) -> None:
    package = tmp_path / "gradguard"
    package.mkdir()
    for name in ("__init__.py", "__main__.py"):
        shutil.copy(SERVER / "gradguard" / name, package)
    (package / "main.py").write_text("def main():\n    print(__file__)\n    import beside\n")
    (tmp_path / "beside.py").write_text("print('found')\n")
    done = subprocess.run(
        [sys.executable, "-m", "gradguard"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout == f"{package / 'main.py'}\nfound\n"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows removes no folder that somebody stands in")
def test_a_folder_that_is_gone_is_no_place_to_import_from(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    words = "import os, sys\nos.rmdir(os.getcwd())\nos.execv(sys.executable, [sys.executable, '-m', 'gradguard', '--version'])"
    done = subprocess.run(
        [sys.executable, "-c", words],
        cwd=gone,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout.split()[:1]) == (0, ["gradguard"]), done.stderr


@pytest.mark.asyncio
async def test_the_server_imports_nothing_from_there(stranger: Stranger, command: str) -> None:
    editor = await editors.start([sys.executable, command, "server"], cwd=stranger.folder)
    try:
        uri = await editor.open(RAISES, (stranger.folder / "train_it.py").as_uri())
        assert await editor.diagnostics(uri)
        assert await editor.hover(uri, "y.add_")
        actions = [await editor.resolved(each) for each in await editor.actions(uri, "y.add_")]
        assert any(each.edit for each in actions)
    finally:
        await editors.stop(editor)
    assert stranger.imported == []


# What runs the user's code searches for the modules of that code beside it, and for its own nowhere near.


@pytest.mark.parametrize("what", ["function_of_it.py::f", "train_it.py"])
@pytest.mark.parametrize(
    "path", [str(SERVER), f"{os.pathsep}{SERVER}{os.pathsep}"], ids=["plain", "empty entries"]
)
def test_verify_imports_of_the_users_folder_what_the_user_imports(
    stranger: Stranger, command: str, what: str, path: str, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = subprocess.run(
        [sys.executable, command, "verify", str(stranger.folder / what)],
        cwd=elsewhere,
        env=environment(PYTHONPATH=path),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert stranger.imported == [], done.stderr
    assert "compared" in done.stdout
    assert "tolerance  " in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    "words",
    [("train_it.py",), ("-m", "train_it"), ("--format", "html", "--output", "r.html", "train_it.py")],
    ids=" ".join,
)
def test_run_imports_nothing_else_of_the_programs_folder(
    stranger: Stranger, command: str, words: tuple[str, ...]
) -> None:
    (stranger.folder / "train_it.py").write_text("import helper\n" + RAISES)
    done = stranger.start(command, "run", *words)
    assert (stranger.imported, done.returncode) == ([], 1), done.stderr


@pytest.mark.parametrize("started", ["command", "-m", "-P"])
def test_a_program_is_searched_beside_first_and_nothing_is_lost(
    tmp_path: Path, command: str, started: str
) -> None:
    if started == "-P" and sys.version_info < (3, 11):
        pytest.skip("-P came with Python 3.11")
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "where.py").write_text("import sys\nprint(*sys.path, sep='\\n')\n")
    start = {"command": [command], "-m": ["-m", "gradguard"], "-P": ["-P", "-m", "gradguard"]}[started]
    plain, run = (
        subprocess.run(
            [sys.executable, *words, "where.py"],
            cwd=folder,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        ).stdout.split("\n")
        for words in ([], [*start, "run"])
    )
    assert plain[0] == str(folder)
    assert run == plain
