"""Files are replaced at once: a reader sees the old or the new, never a part."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from pathlib import Path


def replace_file(path: Path, data: bytes) -> None:
    """Put bytes in the place of a file.

    Keeps mode and owner, and follows a symbolic link to the file it names. Raises OSError, also for a file that
    is not to be written: its folder would let another take its place. Other hard links keep the old bytes, as
    what takes a file's place at once is another file.
    """
    target = path.resolve()
    known = target.stat() if target.exists() else None
    if known is not None and not (known.st_mode & 0o222 and os.access(target, os.W_OK)):
        raise PermissionError(errno.EACCES, "it is read-only", str(target))
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if known is not None and hasattr(os, "chown"):
            with contextlib.suppress(OSError):  # only root may give files away
                os.chown(name, known.st_uid, known.st_gid)
        os.chmod(name, known.st_mode & 0o7777 if known is not None else 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
