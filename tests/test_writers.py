"""There is one way to write and to remove files, so that what holds for it holds for the product."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "server" / "gradguard"
ALLOWED = {
    "disk/folder.py": "the way",
    "cli/cache.py": "it makes the folder in which the system has caches",
    "fleet/repositories.py": "a temporary folder, for what git fetches",
    "fleet/store.py": "what the user names with --output and --results, on a disk or elsewhere",
    "runtime/verify.py": "a temporary folder",
    "runtime/verify_child.py": "a file in that folder",
}
ALWAYS = {
    "copy2", "copyfile", "copytree", "hardlink_to", "makedirs", "mkdir", "mkdtemp", "mkfifo", "mkstemp", "NamedTemporaryFile",
    "removedirs", "rmdir", "rmtree", "symlink", "symlink_to", "TemporaryDirectory", "unlink", "utime", "write_bytes",
    "write_text",
}  # fmt: skip
OF_MODULES = {"chmod", "chown", "copy", "link", "move", "remove", "rename", "renames", "replace", "truncate"}
"""Names that much else has, too."""


def writers(text: str) -> Iterator[tuple[int, str]]:
    """Line and name of every call that writes or removes by a path."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        owner, _, name = called.rpartition(".")
        if name in ALWAYS or (name in OF_MODULES and owner in ("os", "shutil")):
            yield node.lineno, called
        given = [*node.args, *(word.value for word in node.keywords)]
        texts = [
            each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str)
        ]
        if name == "open" and any(text[:1] in tuple("wax") and len(text) <= 3 for text in texts):
            yield node.lineno, called


def test_nothing_but_the_disk_layer_writes_and_removes() -> None:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        found[name] = list(writers(path.read_text("utf-8")))
    assert {name: calls for name, calls in found.items() if calls and name not in ALLOWED} == {}


def test_this_test_sees_writers() -> None:
    seen = "os.unlink(a)\nPath(a).write_text('')\nopen(a, 'w')\nopen(a, mode='ab')\nshutil.rmtree(a)\nos.replace(a, b)\n"
    assert [line for line, _ in writers(seen)] == [1, 2, 3, 4, 5, 6]
    harmless = "text.replace('a', 'b')\ntensor.copy()\nopen(path, 'rb')\nopen(path, encoding='utf-8')\n"
    assert not list(writers(harmless))
