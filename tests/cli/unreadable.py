"""Everything that can stand in the place of a Python file and cannot be read, one of each, in one folder."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

USES = "import torch\n"
NOT_UTF8 = "not UTF-8 (byte "


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the address of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


def _large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(17_000_000)


def _link(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


def _bytes(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data)


KINDS: dict[str, tuple[Callable[[Path], object], str]] = {
    "pipe.py": (_pipe, "a named pipe, not a file"),
    "socket.py": (_socket, "a socket, not a file"),
    "zero.py": (_link("/dev/zero"), "a device, not a file"),
    "tty.py": (_link("/dev/tty"), "a device, not a file"),
    "circle.py": (_link("circle.py"), "symbolic links that lead in a circle"),
    "nowhere.py": (_link("missing.py"), "a link that leads nowhere"),
    "below_a_file.py": (_link("fine.py/x.py"), "a link that leads nowhere"),
    "large.py": (_large, "larger than 16 MB, which is as much as is read"),
    "long.py": (_bytes(USES.encode() * 80_000), "longer than 1,000,000 characters"),
    "utf16.py": (_bytes(USES.encode("utf-16")), "UTF-16, which Python does not read; save it as UTF-8"),
    "utf32.py": (_bytes(USES.encode("utf-32")), "UTF-32, which Python does not read; save it as UTF-8"),
    "utf16_unmarked.py": (_bytes(USES.encode("utf-16-le")), "binary, or text in an encoding that Python does not read"),
    "zeros.py": (_bytes(bytes(100)), "binary, or text in an encoding that Python does not read"),
    "binary.py": (_bytes(bytes(range(250, 0, -1))), NOT_UTF8),
    "latin1.py": (_bytes(b"import torch  # \xe4\n"), NOT_UTF8),
    "punycode.py": (_bytes(b"# coding: punycode\nimport torch\n"), "punycode is no encoding for files"),
    "unknown.py": (_bytes(b"# coding: nonsense\n"), "unknown encoding: nonsense"),
    "caf\udce9.py": (_pipe, "a named pipe, not a file"),
}  # fmt: skip
"""How each is made, by its name, and a part of the reason that is given."""


def make(folder: Path, *names: str) -> None:
    """These of them, all by default."""
    for name in names or KINDS:
        KINDS[name][0](folder / name)
