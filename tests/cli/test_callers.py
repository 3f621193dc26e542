"""What is checked is checked with the files that import it: a mistake of two files often shows only from the other one."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradguard.cli import callers, check
from gradguard.cli.arguments import parser
from gradguard.cli.cache import Cache, open_cache
from gradguard.cli.callers import Found, Imports, imports_in
from gradguard.cli.configuration import Configuration
from gradguard.cli.worker import Checker
from tests.cli.running import Done
from tests.cli.test_git import git

LIB = "import torch\n\n\ndef scale(x):\n    y = torch.sigmoid(x)\n    y += 1\n    return y\n"
USE = "import torch\nfrom lib import scale\n\nx = torch.rand(3, requires_grad=True)\nscale(x).sum().backward()\n"
FOUND = [("lib.py", "GG101", 6)]


class Runner:
    """Runs `gradguard` in a folder, in this process."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        self.folder, self._capfd = folder, capfd
        monkeypatch.chdir(folder)

    def write(self, **texts: str) -> None:
        for stem, text in texts.items():
            (self.folder / f"{stem}.py").write_text(text)

    def __call__(self, *words: str) -> Done:
        code = check.run(parser().parse_args(words))
        return Done(code, *self._capfd.readouterr())


@pytest.fixture
def gradguard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Runner:
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("GRADGUARD_CACHE_DIR", str(tmp_path / "cache"))
    return Runner(tmp_path / "work", monkeypatch, capfd)


def found(root: Path, *asked: str, cache: Cache | None = None) -> Found:
    configuration = Configuration()
    paths = [str(root / each) for each in asked]
    return callers.callers(paths, [], [str(root)], configuration.of, Checker(None).workspace, cache)


def test_a_single_file_is_checked_with_those_that_import_it(gradguard: Runner) -> None:
    gradguard.write(lib=LIB, use=USE)
    done = gradguard("check", "lib.py")
    assert (done.code, done.err.partition("\n")[0]) == (1, "")
    assert done.out.startswith("lib.py:6:5: error GG101 ")
    assert "in 1 file using torch of 1 read with 1 file importing them\n" in done.out
    assert gradguard("check", "lib.py", "--no-callers").code == 0


def test_a_changed_file_is_checked_with_those_that_import_it(gradguard: Runner) -> None:
    gradguard.write(lib=LIB.replace("y += 1", "y = y + 1"), use=USE)
    git(gradguard.folder, "init", "-q", "-b", "main")
    git(gradguard.folder, "add", "-A")
    git(gradguard.folder, "commit", "-qm", "first")
    gradguard.write(lib=LIB)
    done = gradguard("check", "--changed-since", "main", "--format", "json")
    assert (done.code, done.found) == (1, FOUND)


def test_a_folder_is_checked_with_what_imports_it_from_beside_it(gradguard: Runner) -> None:
    git(gradguard.folder, "init", "-q")
    (gradguard.folder / "src").mkdir()
    (gradguard.folder / "src" / "lib.py").write_text(LIB)
    (gradguard.folder / "pyproject.toml").write_text('[tool.gradguard]\nsrc = ["src"]\n')
    gradguard.write(use=USE)
    assert gradguard("check", "src", "--format", "json").found == [("src/lib.py", "GG101", 6)]


def test_what_an_importer_does_wrong_by_itself_is_not_reported(gradguard: Runner) -> None:
    own = "\nz = x.exp()\nz += 1\nz.sum().backward()\n"
    gradguard.write(lib=LIB, use=USE + own)
    assert gradguard("check", "lib.py", "--format", "json").found == FOUND
    gradguard.write(use=USE + "def broken(:\n")
    assert gradguard("check", "lib.py", "--format", "json").json["errors"] == []


def test_what_an_importer_does_to_what_the_file_saved_is_reported(gradguard: Runner) -> None:
    gradguard.write(
        lib=LIB.replace("    y += 1\n", ""), use=USE.replace("scale(x).", "y = scale(x)\ny.mul_(2)\ny.")
    )
    assert gradguard("check", "lib.py", "--format", "json").found == [("use.py", "GG101", 6)]


def test_an_importer_is_never_fixed(gradguard: Runner) -> None:
    own = "\nz = x.exp()\nz += 1\nz.sum().backward()\n"
    gradguard.write(lib=LIB, use=USE + own)
    gradguard("check", "lib.py", "--fix")
    assert (gradguard.folder / "use.py").read_text() == USE + own


def test_files_left_out_by_settings_are_not_read_for_it(gradguard: Runner) -> None:
    gradguard.write(lib=LIB, use=USE)
    (gradguard.folder / "pyproject.toml").write_text('[tool.gradguard]\nexclude = ["use.py"]\n')
    assert gradguard("check", "lib.py").code == 0


def test_importers_are_found_through_packages_and_the_nearest_come_first(tmp_path: Path) -> None:
    package = tmp_path / "pkg"
    package.mkdir()
    (tmp_path / "pyproject.toml").write_text("[tool.gradguard]\n")
    (package / "lib.py").write_text(LIB)
    (package / "__init__.py").write_text("from .lib import (  # the one\n    scale as grown,\n)\n")
    (package / "near.py").write_text("import torch\nfrom . import lib\n")
    (package / "other.py").write_text("import torch\nimport json\n")
    (tmp_path / "lib.py").write_text("import torch  # of the same name, and not the one\n")
    (tmp_path / "stranger.py").write_text("import torch\nimport lib\n")
    (tmp_path / "far.py").write_text("import torch\nfrom pkg import grown\n\ngrown(1).backward()\n")
    (tmp_path / "cells.ipynb").write_text(
        '{"source": [\n    "import torch\\n",\n    "import pkg.lib\\n"\n]}\n'
    )
    names = [Path(path).name for path in found(tmp_path, "pkg/lib.py").paths]
    assert names == ["cells.ipynb", "near.py", "far.py"]


def test_what_is_too_much_is_left_out_and_said(gradguard: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    gradguard.write(lib=LIB, **{f"a{index:02}": "import torch\nimport lib\n" for index in range(60)})
    done = gradguard("check", "lib.py")
    assert "gradguard: note: 60 files import what is checked; the 50 nearest were read\n" in done.err
    monkeypatch.setattr(callers, "FILES", 20)
    assert found(gradguard.folder, "lib.py").cut
    monkeypatch.setattr(callers, "FILES", 61)
    assert not found(gradguard.folder, "lib.py").cut


def test_imports_of_files_that_did_not_change_come_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "lib.py").write_text(LIB)
    (root / "use.py").write_text(USE)
    cache = open_cache(root, str(tmp_path / "cache"))
    first = found(root, "lib.py", cache=cache)
    assert [Path(path).name for path in first.paths] == ["use.py"]
    read: list[str] = []
    monkeypatch.setattr(callers, "read_bytes", lambda path: read.append(path) or Path(path).read_bytes())
    assert found(root, "lib.py", cache=cache) == first
    assert read == []
    (root / "use.py").write_text("import torch\n")
    assert found(root, "lib.py", cache=cache).paths == []
    assert [Path(path).name for path in read] == ["use.py"]


def test_imports_are_seen_in_every_form() -> None:
    text = "import a.b as c, d\nfrom ..e import (f as g,  # why\n    h)\nfrom . import i \\\n  , j\nif x:\n    import k\n"
    names = {
        (0, "a"),
        (0, "a.b"),
        (0, "d"),
        (2, "e"),
        (2, "e.f"),
        (2, "e.h"),
        (1, ""),
        (1, "i"),
        (1, "j"),
        (0, "k"),
    }
    assert set(imports_in(text.encode()).names) == names
    assert imports_in(b"\xff\x00 nothing") == Imports()
