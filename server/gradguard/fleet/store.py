"""Where a scan writes: a folder on a disk, or whatever fsspec has an address for.

    <top>/results/<2 digits>/<38 digits>      what checking a package gave, by content
    <top>/commits/<2 digits>/<38 digits>      which packages a commit holds, by content

A file takes its place when it is whole. Two that write the same one write the same bytes.
"""

from __future__ import annotations

import secrets
from typing import Any

import fsspec
from fsspec.core import url_to_fs

RESULTS = "results"
COMMITS = "commits"


class Store:
    """Files below one address. It may be sent to other processes."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._opened: tuple[Any, str] | None = None

    def __reduce__(self) -> tuple[type[Store], tuple[str]]:
        return Store, (self.address,)

    def get(self, name: str) -> bytes | None:
        """The bytes of a file, None where there is none. Raises OSError."""
        system, top = self._system()
        try:
            data: bytes = system.cat_file(f"{top}/{name}")
        except FileNotFoundError:
            return None
        return data

    def has(self, name: str) -> bool:
        """Whether there is such a file or folder. Raises OSError."""
        system, top = self._system()
        return bool(system.exists(f"{top}/{name}"))

    def put(self, name: str, data: bytes) -> None:
        """Write a file. Raises OSError."""
        system, top = self._system()
        path = f"{top}/{name}"
        system.makedirs(path.rpartition("/")[0], exist_ok=True)
        if not _is_disk(system):
            system.pipe_file(path, data)  # stores of objects show them once they are whole
            return
        draft = f"{path}.{secrets.token_hex(8)}.tmp"
        try:
            system.pipe_file(draft, data)
            system.mv(draft, path)
        except BaseException:
            if system.exists(draft):
                system.rm_file(draft)
            raise

    def remove(self, name: str) -> None:
        """Remove a folder with all it holds, if there is one. Raises OSError."""
        system, top = self._system()
        if system.exists(f"{top}/{name}"):
            system.rm(f"{top}/{name}", recursive=True)

    def names(self, folder: str, ending: str) -> list[str]:
        """Paths, from the top, of the files below a folder, sorted. Raises OSError."""
        system, top = self._system()
        found = system.find(f"{top}/{folder}") if system.exists(f"{top}/{folder}") else []
        return sorted(path[len(top) :].lstrip("/") for path in found if path.endswith(ending))

    def filesystem(self) -> tuple[Any, str]:
        """What fsspec has for the address, and the path of the top in it."""
        return self._system()

    def _system(self) -> tuple[Any, str]:
        if self._opened is None:
            system, top = url_to_fs(self.address)
            self._opened = system, top.rstrip("/")
        return self._opened


def _is_disk(system: fsspec.AbstractFileSystem) -> bool:
    protocols = system.protocol if isinstance(system.protocol, tuple | list) else (system.protocol,)
    return "file" in protocols


def place(kind: str, key: str) -> str:
    """Where something is kept by its key."""
    return f"{kind}/{key[:2]}/{key[2:]}"
