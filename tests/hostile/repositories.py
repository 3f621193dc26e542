"""Random repositories in which everything that git, a tar file or bad luck can bring about is tried.

Each ingredient plants something in the project and says what a check must then tell. All links lead to places inside of
the arena, or to devices and single files that can only be read: a defect must not cost the machine anything.
"""

from __future__ import annotations

import os
import random
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.hostile.arena import OLD, Arena
from tests.hostile.programs import MISTAKE, growing

LINE_BREAK = "\n"


@dataclass
class Repository:
    """What was planted."""

    arena: Arena
    random: random.Random
    unread: list[str] = field(default_factory=list)
    """Names of Python files that cannot be read, each of which must be said."""
    mistakes: list[str] = field(default_factory=list)
    """Names of files with a mistake that must be found, or whose limits must be said."""
    planted: list[str] = field(default_factory=list)
    """Ingredients by name, for the message of a failing test."""

    @property
    def root(self) -> Path:
        return self.arena.project

    def folder(self) -> Path:
        """The root or a folder below it."""
        if self.random.random() < 0.6:
            return self.root
        folder = self.root / self.random.choice(("package", "src", "deep/er/and/deeper"))
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def fresh(self, stem: str) -> Path:
        """A path that nothing has yet, ending in `.py`."""
        folder = self.folder()
        return folder / f"{stem}{self.random.randrange(10**6)}.py"

    def free(self, path: Path) -> Path:
        """The path, if nothing stands there; what does may be a pipe. Raises FileExistsError."""
        if os.path.lexists(path):
            raise FileExistsError(path)
        return path

    def module(self, path: Path, text: str | bytes) -> None:
        """A file with code. Raises FileExistsError."""
        self.free(path).write_bytes(
            text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        )


Ingredient = Callable[[Repository], None]


def plant(arena: Arena, seed: int, least: int = 4, most: int = 14) -> Repository:
    """A repository of some ingredients, always the same for a seed."""
    made = Repository(arena, random.Random(seed))
    made.module(made.root / "train.py", MISTAKE)
    made.mistakes.append("train.py")
    for ingredient in made.random.sample(INGREDIENTS, made.random.randint(least, most)):
        made.planted.append(ingredient.__name__)
        try:
            ingredient(made)
        except (FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError):
            continue  # another ingredient stands there
    return made


# Names

NAMES = (
    f"a{LINE_BREAK}::error ::injected",
    f"a{LINE_BREAK}##vso[task.complete result=Failed]",
    "::error ::whole name",
    "##[error]x",
    "esc\x1b[31mred\x1b]0;title\x07",
    "bell\x07\x08\x08",
    "back\rover",
    "tab\there",
    "bidi\u202egnp",
    "separator\u2028line",
    "zero\u200bwidth",
    "c1\x9b31m",
    "per%0Acent",
    "-rf",
    "--fix",
    "quote'\"`$(touch was-run)`",
    "back\\slash",
    "not-utf8-\udcff\udcfe",
    "space at the end ",
    "한국어와 이모지🙂",
    "a" * 240,
    "[markdown](command:gradguard.restart)",
    "<img src=x onerror=alert(1)>",
    "*?[a-z]",
)


def odd_names(made: Repository) -> None:
    for name in made.random.sample(NAMES, 4):
        made.module(made.folder() / f"{name}.py", MISTAKE)


def odd_folders(made: Repository) -> None:
    for name in made.random.sample(NAMES, 2):
        folder = made.root / name
        folder.mkdir(exist_ok=True)
        made.module(folder / "inside.py", MISTAKE)


def odd_text(made: Repository) -> None:
    text = "".join(made.random.choice("\x1b[2J\x07\u202e\u2066\x9b\r\v\x85한🙂") for _ in range(30))
    plain = text.replace("\r", "").replace("\v", "").replace("\x85", "")
    made.module(made.fresh("odd"), f"{MISTAKE}\ns = '{plain}'\n# ::error ::comment {text}\n")


# Links


def looping_links(made: Repository) -> None:
    one, two = made.fresh("loop"), made.fresh("loop")
    one.symlink_to(two)
    two.symlink_to(one)
    made.unread += [one.name, two.name]


def link_to_itself(made: Repository) -> None:
    path = made.fresh("itself")
    path.symlink_to(path.name)
    made.unread.append(path.name)


def dangling_link(made: Repository) -> None:
    path = made.fresh("dangling")
    path.symlink_to("nowhere/at/all.py")
    made.unread.append(path.name)


def link_to_a_device(made: Repository) -> None:
    path = made.fresh("device")
    path.symlink_to(made.random.choice(("/dev/zero", "/dev/random", "/dev/full", "/dev/tty", "/dev/null")))
    made.unread.append(path.name)


def link_out_to_a_file(made: Repository) -> None:
    path = made.fresh("secret")
    path.symlink_to(made.random.choice((made.arena.top / "home/code/thesis/chapters/kept.py", "/etc/passwd")))
    made.unread.append(path.name)


def link_out_to_a_folder(made: Repository) -> None:
    (made.folder() / "elsewhere").symlink_to(made.arena.top / "home" / "code")
    made.module(made.fresh("uses"), f"import elsewhere.thesis.chapters.kept\n{MISTAKE}")


def folder_that_contains_itself(made: Repository) -> None:
    (made.folder() / "around").symlink_to(made.random.choice((".", "..", "../..")))


def many_links(made: Repository) -> None:
    folder = made.folder()
    (folder / "chain0.py").write_text(MISTAKE)
    for number in range(45):
        (folder / f"chain{number + 1}.py").symlink_to(f"chain{number}.py")


# Special files


def named_pipe(made: Repository) -> None:
    path = made.fresh("pipe")
    os.mkfifo(path)
    made.unread.append(path.name)


def listening_socket(made: Repository) -> None:
    path = made.root / f"s{made.random.randrange(1000)}.py"
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(path.parent)  # the path of a socket must be short
        try:
            server.bind(path.name)
        finally:
            os.chdir(here)
    made.unread.append(path.name)


def imports_of_special_files(made: Repository) -> None:
    folder = made.folder()
    os.mkfifo(folder / "piped.py")
    made.unread.append("piped.py")
    (folder / "zeros.py").symlink_to("/dev/zero")
    made.unread.append("zeros.py")
    (folder / "package_is_a_pipe").mkdir()
    os.mkfifo(folder / "package_is_a_pipe" / "__init__.py")
    made.unread.append("__init__.py")
    made.module(
        folder / "imports.py", f"import piped, zeros, package_is_a_pipe\nfrom . import piped as p\n{MISTAKE}"
    )


def folder_named_as_a_module(made: Repository) -> None:
    made.fresh("folder").mkdir()


# Contents


def not_text(made: Repository) -> None:
    data = made.random.choice(
        (MISTAKE.encode("utf-16"), b"import torch\n\xff\xfe\n", b"import torch\nx = '\xe4'\n")
    )
    path = made.fresh("bytes")
    made.module(path, data)
    made.unread.append(path.name)


def null_bytes(made: Repository) -> None:
    made.module(made.fresh("null"), b"import torch\nx = 1\0\n")


def large_file(made: Repository) -> None:
    path = made.fresh("large")
    made.module(path, b"import torch\n")
    os.truncate(path, made.random.choice((20_000_000, 10_000_000_000)))
    made.unread.append(path.name)


def text_that_hurts_parsers(made: Repository) -> None:
    made.module(made.fresh("hurts"), made.random.choice((
        "import torch\nx = " + "(" * 50_000,
        "import torch\nx = " + "[" * 2_000 + "]" * 2_000,
        "import torch\nx = " + "-" * 50_000 + "1",
        "import torch\nx = " + "a." * 20_000 + "b",
        "import torch\n" + "".join(" " * n + "if x:\n" for n in range(99)) + " " * 99 + "pass\n",
        "import torch\n" + "'''" * 1001,
        "import torch\nf'" + "{" * 5_000,
        "import torch\n" + "@d\n" * 20_000 + "def f(): pass\n",
        "import torch\nx = '" + "y" * 2_000_000 + "'\n",
        "import torch\n" + "\f" * 10_000 + "\r" * 10_000 + "x = 1\n",
        "import torch # " + "gradguard: ignore[" * 20_000 + "\n",
        "import torch\n" + "x = 1  # gradguard: ignore\n" * 4_000,
        "import torch\n" + "x = 1  # gradguard: ignore[GG1, nonsense, , ]\n" * 1_500,
    )))  # fmt: skip


def growing_program(made: Repository) -> None:
    path = made.fresh("grows")
    made.module(path, growing(made.random))
    made.mistakes.append(path.name)


# Configuration

STARS = "*a" * 25
DEEP = "[" * 3_000


def settings(made: Repository) -> None:
    texts = (
        f'[tool.gradguard]\nexclude = ["{STARS}b", "{"**/a/" * 25}b"]\n',
        f'[tool.gradguard.per-file-ignores]\n"{STARS}b" = ["GG301"]\n',
        '[tool.gradguard]\nexclude = ["/", "!", "\\\\"]\n',
        '[tool.gradguard]\nexclude = [1, "a\\u001b[31m\\n::error ::x"]\n',
        '[tool.gradguard]\nsrc = ["/", "../..", "/dev", "a\\u0000b"]\n',
        '[tool.gradguard]\n"ke\\ny" = 1\nunknown = true\n',
        f"[tool.gradguard]\nselect = {DEEP}\n",
        f"[tool.gradguard]\na = {'{a=' * 2_000}\n",
        "[tool.gradguard]\ntorch-version = " + "9" * 10_000 + "\n",
        "[tool.gradguard\n",
        "gradguard = 1\n[tool]\ngradguard = 1\n",
        '[tool.gradguard.rules]\nGG999 = "eror"\n',
        "[tool.gradguard]\n" + "# gradguard\n" * 100_000,
    )
    made.free(made.folder() / "pyproject.toml").write_text(made.random.choice(texts))


def settings_that_are_no_file(made: Repository) -> None:
    path = made.free(made.folder() / "pyproject.toml")
    made.random.choice(
        (os.mkfifo, lambda p: p.symlink_to("/dev/zero"), lambda p: p.symlink_to(p.name), Path.mkdir)
    )(path)


def ignore_files(made: Repository) -> None:
    subprocess.run(["git", "init", "-q", str(made.root)], check=True, capture_output=True)
    path = made.free(made.folder() / ".gitignore")
    made.random.choice((
        lambda: os.mkfifo(path),
        lambda: path.symlink_to("/dev/zero"),
        lambda: path.symlink_to(path.name),
        lambda: path.write_text(f"{STARS}b\n{'**/a/' * 25}b\n"),
        lambda: path.write_text("".join(f"generated-{n}-*.txt\n" for n in range(20_000))),
        lambda: path.write_bytes(b"\xff\xfe\0\n/\n!\n\\\n[a\n"),
    ))()  # fmt: skip
    long = made.folder() / ("a" * 60 + ".py")
    made.module(long, MISTAKE)


def git_that_runs_programs(made: Repository) -> None:
    subprocess.run(["git", "init", "-q", str(made.root)], check=True, capture_output=True)
    trap = made.arena.top / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch '{made.arena.trace}'\ncat\n")
    trap.chmod(0o755)
    with (made.root / ".git" / "config").open("a") as config:
        config.write(
            f"[core]\n\tfsmonitor = {trap}\n\thooksPath = {trap.parent}\n\tpager = {trap}\n[diff]\n\texternal = {trap}\n"
        )
        config.write(
            f'[filter "trap"]\n\tclean = {trap}\n\tsmudge = {trap}\n\tprocess = {trap}\n[diff "trap"]\n\ttextconv = {trap}\n'
        )
    (made.root / ".gitattributes").write_text("*.py filter=trap diff=trap\n")


# Folders of ours, forged


def _old(folder: Path) -> None:
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (0, OLD), follow_symlinks=False)


def forged_cache(made: Repository) -> None:
    path = made.root / ".gradguard_cache"
    kind = made.random.randrange(5)
    if kind == 0:
        path.symlink_to("..")
    elif kind == 1:
        path.symlink_to(made.arena.top / "home" / "code" / "thesis")
    elif kind == 2:
        (path / "0123456789abcdef0123" / "ab").mkdir(parents=True)
        (path / "0123456789abcdef0123" / "ab" / "x.json").write_text("{}")
        (path / "link").symlink_to("../../thesis")
        _old(path)
    elif kind == 3:
        os.mkfifo(path)
    else:
        path.write_text("a file")


def forged_run(made: Repository) -> None:
    path = made.root / ".gradguard"
    kind = made.random.randrange(6)
    if kind == 0:
        path.symlink_to("../thesis")
    elif kind == 1:
        path.write_text("a file")
    else:
        path.mkdir()
        last = path / "last-run.json"
        if kind == 2:
            os.mkfifo(last)
        elif kind == 3:
            last.symlink_to("/dev/zero")
        elif kind == 4:
            last.write_text("[" * 100_000)
        else:
            last.write_text('{"findings": [{"file": "\\u001b", "line": 1e999}, 7], "files": {"a": []}}')


def traps(made: Repository) -> None:
    trap = f"open({str(made.arena.trace)!r}, 'w').close()\n"
    names = (
        "rich",
        "pathspec",
        "json",
        "random",
        "sitecustomize",
        "usercustomize",
        "torch",
        "platformdirs",
        "conftest",
    )
    for name in made.random.sample(names, 4):
        made.module(made.root / f"{name}.py", trap)
    (made.root / "gradguard").mkdir(exist_ok=True)
    for name in ("__init__", "__main__"):
        made.module(made.root / "gradguard" / f"{name}.py", trap)


def deep_folders(made: Repository) -> None:
    here = os.open(made.root, os.O_RDONLY)
    try:
        for _ in range(600):  # longer than a path may be
            os.mkdir("deep-folder", dir_fd=here)
            inner = os.open("deep-folder", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = inner
    finally:
        os.close(here)


def many_files(made: Repository) -> None:
    folder = made.root / "many"
    folder.mkdir()
    for number in range(1_500):
        (folder / f"module{number}.py").write_text("import torch\n")


def imports_in_circles(made: Repository) -> None:
    folder = made.folder()
    size = 12
    for number in range(size):
        others = "\n".join(f"from .ring{(number + step) % size} import *" for step in (1, 2, 3))
        made.module(
            folder / f"ring{number}.py", f"import torch\n{others}\nfrom ..... import ring0\n{MISTAKE}"
        )


INGREDIENTS: tuple[Ingredient, ...] = (
    odd_names, odd_folders, odd_text,
    looping_links, link_to_itself, dangling_link, link_to_a_device, link_out_to_a_file, link_out_to_a_folder,
    folder_that_contains_itself, many_links,
    named_pipe, listening_socket, imports_of_special_files, folder_named_as_a_module,
    not_text, null_bytes, large_file, text_that_hurts_parsers, growing_program,
    settings, settings_that_are_no_file, ignore_files, git_that_runs_programs,
    forged_cache, forged_run, traps, deep_folders, many_files, imports_in_circles,
)  # fmt: skip
