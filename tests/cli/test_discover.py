"""Which files a path on the command line stands for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gradguard.check.settings import Settings
from gradguard.cli.discover import NoSuchPath, discover
from gradguard.cli.result import Trouble
from tests.limited import printed


def make(root: Path, *names: str, **texts: str) -> None:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(texts.get(name, ""), "utf-8")


def found(root: Path, *paths: str, **settings: object) -> list[str]:
    values = Settings(root=str(root), **settings)  # type: ignore[arg-type]
    asked = [str(root / path) for path in paths or (".",)]
    return [target.path.relative_to(root).as_posix() for target in discover(asked, lambda folder: values)]


def test_python_files_below_a_folder_sorted_without_the_usual_folders(tmp_path: Path) -> None:
    make(
        tmp_path,
        "b.py",
        "a/c.py",
        "a/readme.md",
        ".venv/lib/x.py",
        "node_modules/y.py",
        "a/__pycache__/z.py",
        ".git/h.py",
    )
    assert found(tmp_path) == ["a/c.py", "b.py"]


def test_named_files_are_taken_whatever_their_name_and_once(tmp_path: Path) -> None:
    make(tmp_path, "script", "a.py", ".venv/x.py")
    assert found(tmp_path, "script", "a.py", ".", ".venv/x.py") == [".venv/x.py", "a.py", "script"]


def test_patterns_leave_out_and_take_back(tmp_path: Path) -> None:
    make(tmp_path, "third/x.py", "third/keep.py", "gen_pb2.py", "a.py", "site-packages/p.py")
    assert found(tmp_path, exclude=("third/*", "!third/keep.py", "*_pb2.py")) == ["a.py", "third/keep.py"]
    assert "site-packages/p.py" in found(tmp_path, exclude=("!site-packages/",))


def test_a_folder_asked_for_by_name_is_walked_even_when_excluded(tmp_path: Path) -> None:
    make(tmp_path, ".venv/lib/x.py", "out/y.py")
    assert found(tmp_path, ".venv") == [".venv/lib/x.py"]
    assert found(tmp_path, "out", exclude=("out/",)) == ["out/y.py"]


def test_gitignore_files_have_their_say_by_folder(tmp_path: Path) -> None:
    make(tmp_path, ".git/HEAD", "data/x.py", "src/keep.py", "src/tmp_a.py", "src/deep/tmp_b.py", "a.py")
    (tmp_path / ".gitignore").write_text("data/\ntmp_*.py\n")
    (tmp_path / "src" / "deep" / ".gitignore").write_text("!tmp_b.py\n")
    assert found(tmp_path) == ["a.py", "src/deep/tmp_b.py", "src/keep.py"]
    assert "data/x.py" in found(tmp_path, respect_gitignore=False)
    assert found(tmp_path, "data") == ["data/x.py"]


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    make(tmp_path, "a/x.py")
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    assert found(tmp_path) == ["a/x.py"]


def test_notebooks_are_found_like_programs(tmp_path: Path) -> None:
    make(tmp_path, "a/x.py", "a/n.ipynb", "a/.ipynb_checkpoints/n.ipynb")
    assert found(tmp_path) == ["a/n.ipynb", "a/x.py"]


def test_a_path_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoSuchPath, match=r"nothing\.py: no such file or folder"):
        discover([str(tmp_path / "nothing.py")], lambda folder: Settings())


def test_many_files_and_many_patterns(tmp_path: Path) -> None:
    """Each name is looked at once for all patterns together."""
    make(tmp_path, *(f"p{number % 10}/m{number}.py" for number in range(1_000)))
    ignores = [f"dir{n}/**/file_{n}*.txt" if n % 2 else f"*.ext{n}" for n in range(10_000)]
    (tmp_path / ".gitignore").write_text("\n".join([*ignores, "*a" * 25 + "b", "/p3/"]))
    (tmp_path / "p1" / ".gitignore").write_text("!m1.py\nm*\n" * 5_000)
    make(tmp_path, "p2/" + "a" * 60 + ".py")
    code = (
        "import sys\n"
        "from gradguard.cli.discover import discover\n"
        "from gradguard.check.settings import Settings\n"
        "print(len(discover(sys.argv[1:], lambda folder: Settings(exclude=('*a' * 30,)))))\n"
    )
    assert printed(code, str(tmp_path)) == "801\n"


def test_an_ignore_file_is_read_up_to_a_size_and_so_are_those_above_it(tmp_path: Path) -> None:
    make(tmp_path, "a/b/c/x.py", "a/y.py")
    for folder, size in (("a", 700_000), ("a/b", 700_000), ("a/b/c", 1_000_001)):
        (tmp_path / folder / ".gitignore").write_text("x.py\n" + "#" * (size - 6) + "\n")
    (tmp_path / ".gitignore").write_text(f"{'x' * 20_000}\n")
    told: list[Trouble] = []
    targets = discover([str(tmp_path)], lambda folder: Settings(), told.append)
    assert [target.path.name for target in targets] == ["y.py"]
    assert [str(each).removeprefix(f"{tmp_path}{os.sep}") for each in told] == [
        f'.gitignore: read without "{"x" * 40}...": it is longer than 10,000 characters',
        "a/b/.gitignore: there are too many of them in the folders above",
        "a/b/c/.gitignore: larger than 1 MB, which is as much as is read",
    ]
    assert not any(each.blocks for each in told)


def test_an_ignore_file_that_leads_out_is_not_read(tmp_path: Path) -> None:
    make(tmp_path, "project/x.py", "project/sub/y.py", "project/ignores")
    (tmp_path / "all").write_text("*\n")
    (tmp_path / "project" / "ignores").write_text("y.py\n")
    (tmp_path / "project" / ".gitignore").symlink_to("../all")
    (tmp_path / "project" / "sub" / ".gitignore").symlink_to("../ignores")
    told: list[Trouble] = []
    top = str(tmp_path / "project")
    targets = discover([top], lambda folder: Settings(within=(top,)), told.append)
    assert [target.path.name for target in targets] == ["x.py"]
    assert [str(each) for each in told] == [f"{top}/.gitignore: a link that leads out of the project"]
