"""The programs of a wheel, an sdist, a zip or a tar file, read from the archive as it lies there.

Nothing is unpacked to a disk, links and devices in it are refused, and an archive that unpacks to more than anybody
writes is given up as soon as that shows.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile
import zlib
from typing import IO, cast

from gradguard.disk.reading import Unreadable, open_file
from gradguard.fleet import names
from gradguard.fleet.model import Tree, Unopened
from gradguard.fleet.names import Gathering

ZIPS = (".whl", ".zip", ".egg")
TARS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")

_BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    ValueError,
    NotImplementedError,
    RuntimeError,
)
_LINK_MODE = 0o120000
_KIND = 0o170000


def is_archive(path: str) -> bool:
    """Whether the name of a file is that of an archive."""
    return path.lower().endswith((*ZIPS, *TARS))


def stem(path: str) -> str:
    """The name of an archive without its ending."""
    name = os.path.basename(path)
    ending = max((each for each in (*ZIPS, *TARS) if name.lower().endswith(each)), key=len, default="")
    return name[: len(name) - len(ending)]


def read(path: str) -> Tree:
    """What the archive at a path holds. Raises Unopened."""
    gathering = Gathering()
    try:
        with os.fdopen(open_file(path), "rb") as file:
            if path.lower().endswith(ZIPS):
                _zip(file, gathering)
            else:
                _tar(path.lower(), file, gathering)
    except Unopened:
        raise
    except Unreadable as error:
        raise Unopened(str(error)) from None
    except _BROKEN as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise Unopened(f"no archive that can be read: {said or type(error).__name__}") from None
    tree = gathering.tree
    if all(name.startswith(f"{stem(path)}/") for name in tree.files):
        tree.base = stem(path)
    return tree


def _zip(file: IO[bytes], gathering: Gathering) -> None:
    total = 0
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            name = gathering.member(member.filename)
            if name is None or member.is_dir():
                continue
            if (member.external_attr >> 16) & _KIND == _LINK_MODE:
                gathering.missed.add(name, names.LINK)
                continue
            if member.flag_bits & 1:
                gathering.missed.add(name, "encrypted")
                continue
            if not gathering.fits(name, member.file_size):
                continue
            total += member.compress_size
            if total > names.STREAM_BYTES:  # parts that many entries share are counted as often
                raise Unopened("a bomb: its entries share their bytes")
            try:
                with archive.open(member) as content:
                    data = content.read(names.most_of(name) + 1)
            except _BROKEN as error:
                gathering.missed.add(name, f"damaged: {error}")
                continue
            gathering.put(name, data)


def _tar(path: str, file: IO[bytes], gathering: Gathering) -> None:
    stream = _Bounded(_opened(path, file))
    with tarfile.open(fileobj=cast(IO[bytes], stream), mode="r|") as archive:
        for member in archive:
            # A stream is read once, from its beginning to its end; what was passed need not be remembered.
            archive.members.clear()  # type: ignore[attr-defined]
            name = gathering.member(member.name)
            if name is None or member.isdir():
                continue
            if not member.isreg():
                kind = names.LINK if member.issym() or member.islnk() else "a device or a pipe, not a file"
                gathering.missed.add(name, kind)
                continue
            if not gathering.fits(name, member.size):
                continue
            content = archive.extractfile(member)
            if content is not None:
                gathering.put(name, content.read(names.most_of(name) + 1))


def _opened(path: str, file: IO[bytes]) -> IO[bytes]:
    if path.endswith((".gz", ".tgz")):
        return cast(IO[bytes], gzip.GzipFile(fileobj=file))
    if path.endswith((".bz2", ".tbz2")):
        return cast(IO[bytes], bz2.BZ2File(file))
    if path.endswith((".xz", ".txz")):
        return cast(IO[bytes], lzma.LZMAFile(file))
    return file


class _Bounded(io.RawIOBase):
    """A stream that ends in words once too much has come out of it."""

    def __init__(self, inner: IO[bytes]) -> None:
        self._inner = inner
        self._left = names.STREAM_BYTES

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._inner.read(min(size, 1 << 20) if size >= 0 else 1 << 20)
        self._left -= len(data)
        if self._left < 0:
            limit = names.STREAM_BYTES // 1_000_000_000
            raise Unopened(f"a bomb: it unpacks to more than {limit} GB")
        return data
