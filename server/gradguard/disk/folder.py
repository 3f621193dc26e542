"""A folder held open: what is done below it is done in that very folder, whatever takes its place meanwhile.

A path is looked up anew at every use, so a link can be put into the middle of it between a look and an act. An open
folder stays what it is. From there names are looked up one at a time and never through a link, which holds for
reading, writing, listing and removing alike.

Systems that cannot work in an open folder (Windows) look for links on the way before each act instead. Whoever
exchanges a folder for a link at the right moment gets past that; a repository, which only lies there, does not.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType

from gradguard.disk.reading import FLAGS, RECORD_BYTES, Unreadable, kind_of, read_handle, unreadable

BY_DESCRIPTOR = (
    hasattr(os, "O_DIRECTORY")
    and hasattr(os, "O_NOFOLLOW")
    and {os.open, os.mkdir, os.unlink, os.rmdir, os.stat, os.rename, os.utime} <= os.supports_dir_fd
    and os.utime in os.supports_follow_symlinks
    and os.scandir in os.supports_fd
)
DRAFT = re.compile(r"\.gradguard-[0-9a-f]{16}\.tmp")
"""The form of the names under which files are written before they take their place."""

_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | _NO_LINK
_LINK_TAGS = (getattr(stat, "IO_REPARSE_TAG_SYMLINK", -1), getattr(stat, "IO_REPARSE_TAG_MOUNT_POINT", -1))
_LINK = "a link, which is not followed"
_CLOSED = -1


class Unsafe(OSError):
    """A folder or a file is not to be used, though it could be; `strerror` says why, `filename` which."""


class Folder:
    """An open folder. Names are those of single entries: anything with a separator in it is a ValueError."""

    __slots__ = ("_handle", "_way", "path")

    def __init__(self, path: str, handle: int | None, way: tuple[str, ...] = ()) -> None:
        self.path = path
        self._handle = handle
        self._way = way
        """Paths that must not be links, without a handle."""

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Folder:
        """The folder of a path that the user names: links in it are the user's and are followed. Raises OSError."""
        path = os.path.abspath(path)
        if BY_DESCRIPTOR:
            return cls(path, os.open(path, _FOLDER))
        if not os.path.isdir(path):
            raise NotADirectoryError(errno.ENOTDIR, "not a folder", path)
        return cls(path, None)

    def below(self, names: Iterable[str], *, make: bool = False, mode: int = 0o700) -> Folder:
        """The folder that names lead to from here, none of them a link; made where missing and wanted.

        Raises Unsafe for a link, OSError for anything else that is no folder.
        """
        folder = Folder(self.path, None if self._handle is None else os.dup(self._handle), self._way)
        for name in names:
            with folder:
                folder = folder._child(name, make, mode)
        return folder

    def _child(self, name: str, make: bool, mode: int) -> Folder:
        place = self._place(name)
        path = os.path.join(self.path, name)
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(place, mode, dir_fd=self._handle)
        found = os.lstat(place, dir_fd=self._handle)
        if _is_link(found):
            raise Unsafe(errno.ELOOP, _LINK, path)
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, f"{kind_of(found.st_mode)}, not a folder", path)
        if self._handle is None:
            return Folder(path, None, (*self._way, path))
        return Folder(path, os.open(place, _FOLDER | _NO_LINK, dir_fd=self._handle))

    def require_private(self) -> None:
        """Raises Unsafe for a folder of another user, or one in which others may write. Elsewhere than on POSIX
        the folders of a user are private by where they lie."""
        if self._handle is None or not hasattr(os, "geteuid"):
            return
        found = os.fstat(self._handle)
        if found.st_uid != os.geteuid():
            raise Unsafe(errno.EPERM, "belongs to another user", self.path)
        if found.st_mode & 0o022:
            raise Unsafe(errno.EPERM, "others may write there (`chmod go-w` ends that)", self.path)

    def look(self, name: str) -> os.stat_result | None:
        """What an entry is, a link itself for a link; None where there is none. Raises OSError."""
        try:
            return os.lstat(self._place(name), dir_fd=self._handle)
        except FileNotFoundError:
            return None

    def names(self) -> Iterator[str]:
        """Names of all entries, in no order. Raises OSError."""
        self._check_way()
        with os.scandir(self.path if self._handle is None else self._handle) as entries:
            for entry in entries:
                yield entry.name

    def read(self, name: str, limit: int = RECORD_BYTES) -> bytes:
        """Bytes of a regular file of at most `limit` bytes. Raises Unreadable, also for a file with another name
        elsewhere: what this class writes has none."""
        try:
            place = self._place(name)
            found = os.lstat(place, dir_fd=self._handle)
            if _is_link(found) or not stat.S_ISREG(found.st_mode):
                raise Unreadable(f"{kind_of(found.st_mode)}, not a file")
            handle = os.open(place, FLAGS | _NO_LINK, dir_fd=self._handle)
        except OSError as error:
            raise unreadable(error) from None
        if os.fstat(handle).st_nlink > 1:
            os.close(handle)
            raise Unreadable("a file with several names")
        return read_handle(handle, limit)

    def write(
        self,
        name: str,
        data: bytes,
        *,
        mode: int | None = None,
        owner: tuple[int, int] | None = None,
        durable: bool = False,
    ) -> None:
        """Put bytes in the place of a file: a reader sees the old or the new, and a kill leaves one of the two.

        Without a mode a new file gets what is usual. `durable` waits for the disk. Raises Unsafe where a link or
        anything else than a file stands, OSError.
        """
        found = self.look(name)
        if found is not None and (_is_link(found) or not stat.S_ISREG(found.st_mode)):
            what = _LINK if _is_link(found) else f"{kind_of(found.st_mode)}, not a file"
            raise Unsafe(errno.EINVAL, what, os.path.join(self.path, name))

        def fill(handle: int) -> None:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(handle, rest) :]
            if owner is not None and hasattr(os, "fchown"):
                with contextlib.suppress(OSError):  # only root may give files away
                    os.fchown(handle, *owner)
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(handle, mode)
            if durable:
                os.fsync(handle)

        draft = f".gradguard-{secrets.token_hex(8)}.tmp"
        first_mode = 0o666 if mode is None else 0o600
        try:
            if not self._draft_unnamed(draft, fill, first_mode):
                self._draft_named(draft, fill, first_mode)
            os.replace(
                self._place(draft), self._place(name), src_dir_fd=self._handle, dst_dir_fd=self._handle
            )
        except BaseException:
            with contextlib.suppress(OSError):
                self.remove(draft)
            raise

    def _draft_unnamed(self, name: str, fill: Callable[[int], None], mode: int) -> bool:
        """Write a file that is given its name only when it is whole: until then a kill leaves nothing behind.

        Whether the system and this disk can do that. Raises OSError.
        """
        if self._handle is None or not hasattr(os, "O_TMPFILE"):
            return False
        try:
            handle = os.open(os.curdir, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, mode, dir_fd=self._handle)
        except OSError:
            return False
        try:
            fill(handle)
            with contextlib.suppress(OSError):  # where /proc is missing
                os.link(f"/proc/self/fd/{handle}", name, dst_dir_fd=self._handle, follow_symlinks=True)
                return True
            return False
        finally:
            os.close(handle)

    def _draft_named(self, name: str, fill: Callable[[int], None], mode: int) -> None:
        handle = os.open(self._place(name), _NEW, mode, dir_fd=self._handle)
        try:
            fill(handle)
        finally:
            os.close(handle)

    def create(self, name: str) -> bool:
        """Make an empty file. Whether there was nothing of this name before. Raises OSError."""
        try:
            os.close(os.open(self._place(name), _NEW, 0o600, dir_fd=self._handle))
        except FileExistsError:
            return False
        return True

    def touch(self, name: str, when: float) -> None:
        """Set the time of an entry's last change, of a link its own. Raises OSError."""
        at_hand = self._handle is not None
        os.utime(self._place(name), (when, when), dir_fd=self._handle, follow_symlinks=not at_hand)

    def remove(self, name: str) -> None:
        """Remove an entry that is no folder, of a link the link. Raises OSError."""
        os.unlink(self._place(name), dir_fd=self._handle)

    def remove_empty(self, name: str) -> None:
        """Remove a folder with nothing in it. Raises OSError, also where something is left in it."""
        os.rmdir(self._place(name), dir_fd=self._handle)

    def _place(self, name: str) -> str:
        """A name as functions of `os` take it together with the handle. Raises ValueError, Unsafe."""
        if name in ("", os.curdir, os.pardir) or {os.sep, os.altsep or os.sep, "\0"} & set(name):
            raise ValueError(f"{name!r} is no name of an entry")
        self._check_way()
        return name if self._handle is not None else os.path.join(self.path, name)

    def _check_way(self) -> None:
        if self._handle == _CLOSED:  # which some functions would take for the working folder
            raise OSError(errno.EBADF, "let go of before", self.path)
        for path in self._way:
            if _is_link(os.lstat(path)):
                raise Unsafe(errno.ELOOP, _LINK, path)

    def close(self) -> None:
        """Let go of the folder, which can then no longer be used."""
        if self._handle is not None and self._handle != _CLOSED:
            os.close(self._handle)
            self._handle = _CLOSED

    def __enter__(self) -> Folder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _is_link(found: os.stat_result) -> bool:
    """Whether a name leads elsewhere: a symbolic link, on Windows also a junction."""
    return stat.S_ISLNK(found.st_mode) or getattr(found, "st_reparse_tag", 0) in _LINK_TAGS
