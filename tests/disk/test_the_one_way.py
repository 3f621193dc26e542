"""Files that a repository may have made are opened in `disk` alone, where that is bounded and never waits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.test_layers import PACKAGE, layer_of, product_files

OPENS = frozenset(
    (
        "open", "read_text", "read_bytes", "fdopen", "open_code", "getlines", "getline", "run_path", "fromfile",
        "FileIO", "FileInput", "memmap", "mmap", "copyfile", "copy", "copy2", "copytree", "ZipFile", "sendfile",
    )
)  # fmt: skip
"""Names by which the standard library, or a library, opens or reads a file."""
MODULES = frozenset(("os", "io", "shutil", "linecache", "tokenize", "codecs", "runpy", "mmap"))
"""Where `copy` and the like are names of files' functions and of others elsewhere."""

PACKAGE_FILE = "a file of this package"
OWN_FILE = "written by this package, in a temporary folder of its own"
FOLDER = "a folder of the user, through no link"
ALLOWED = {
    "cli/cache.py": {
        "Folder.open(self.base)": FOLDER,
        "self._place.open()": FOLDER,
        "cache._place.open()": FOLDER,
    },
    "main.py": {"os.open(os.devnull, os.O_WRONLY)": "the device itself"},
    "cli/process.py": {"os.open(os.devnull, os.O_RDWR)": "the device itself"},
    "fleet/archives.py": {
        "os.fdopen(open_file(path), 'rb')": "opened by `disk`",
        "zipfile.ZipFile(file)": "what `disk` has opened",
        "archive.open(member)": "a part of what `disk` has opened, of which so much is read",
        "tarfile.open(fileobj=cast(IO[bytes], stream), mode='r|')": "what `disk` has opened",
    },
    "fleet/reader.py": {"os.open(os.devnull, os.O_RDWR)": "the device itself"},
    "fleet/work.py": {"path.read_bytes()": PACKAGE_FILE},
    "ide/pages.py": {"file.read_text('utf-8')": PACKAGE_FILE},
    "ide/wording.py": {
        "resources.files('gradguard.ide').joinpath('catalogue').joinpath(f'{language}.json').read_text('utf-8')": PACKAGE_FILE
    },
    "lsp/transport.py": {"os.fdopen(os.dup(sys.stdout.fileno()), 'wb')": "what the editor listens to"},
    "ops/table.py": {
        "resources.files('gradguard.ops').joinpath('data').joinpath(name).read_text(encoding='utf-8')": PACKAGE_FILE
    },
    "runtime/lifeline.py": {"os.open(os.devnull, os.O_RDONLY)": "the device itself"},
    "runtime/lines.py": {"linecache.getlines(path)": "asked only for what Python holds already"},
    "runtime/ranks.py": {
        "Folder.open(self.root)": FOLDER,
        "open(f'/proc/{pid}/stat', 'rb')": "what the system says of a process, by its number",
    },
    "runtime/report.py": {"Folder.open(root)": FOLDER},
    "runtime/programs.py": {
        "Path(full).read_bytes()": "the program that the user has run; it may be a pipe, as it may for Python"
    },
    "runtime/verify.py": {
        "words.open('wb')": OWN_FILE,
        "words.read_text('utf-8', 'replace')": OWN_FILE,
        "answer.read_text('utf-8')": OWN_FILE,
    },
    "runtime/verify_child.py": {"Path(given).read_text('utf-8')": OWN_FILE},
}
"""What opens a file elsewhere, with the reason why that is safe."""


def opening(text: str) -> Iterator[str]:
    """What in a program opens a file, as it stands there."""
    tree = ast.parse(text)
    bounded = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gradguard.disk")
        for alias in node.names
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        if isinstance(function, ast.Name) and function.id in OPENS - {"copy"} - bounded:
            yield ast.unparse(node)
        elif isinstance(function, ast.Attribute) and function.attr in OPENS:
            of_module = isinstance(function.value, ast.Name) and function.value.id in MODULES
            if of_module or function.attr != "copy":
                yield ast.unparse(node)


def found() -> dict[str, set[str]]:
    """What opens files, by the name of the product's file, `disk` aside."""
    files = {
        path.relative_to(PACKAGE).as_posix(): path for path in product_files() if layer_of(path) != "disk"
    }
    return {name: texts for name, path in files.items() if (texts := set(opening(path.read_text("utf-8"))))}


def test_files_are_opened_in_one_layer() -> None:
    assert found() == {name: set(reasons) for name, reasons in ALLOWED.items()}


def test_this_test_sees_every_way() -> None:
    ways = (
        "open(p)", "io.open(p)", "os.open(p, 0)", "Path(p).read_text()", "p.read_bytes()", "p.open('rb')", "tokenize.open(p)",
        "linecache.getline(p, 1)", "shutil.copy(p, q)", "os.fdopen(h)", "np.fromfile(p)",
    )  # fmt: skip
    for way in ways:
        assert list(opening(way)) == [way]
    assert not list(opening("from gradguard.disk.reading import read_bytes\nread_bytes(p)\ntext = x.copy()"))
