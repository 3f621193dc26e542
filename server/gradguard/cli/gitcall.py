"""Git asked without letting a repository say what git runs.

A repository's own configuration can name programs: to watch files, to convert, compare and show them, to fetch what
is missing. Each is switched off, and git is asked only for what stands in commits, which needs none of them.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from gradguard.cli.refused import Refused

SECONDS = 60
"""How long git may take for one answer: a pipe in the place of one of its files would keep it for ever."""
MEMORY = 4_000_000_000

_OFF = (
    "--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false", "-c",
    f"core.hooksPath={os.devnull}", "-c", "diff.external=", "-c", "protocol.allow=never",
)  # fmt: skip
_NO_NETWORK = ("-c", "core.sshCommand=false")
_ENVIRONMENT = {"GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}
_ELSEWHERE = frozenset(
    ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")
)
"""Variables that would lead to another repository than the folder's, as a hook has them set."""


class GitFailed(Refused):
    """git cannot do what it was asked for; the message says why."""


def ask(
    folder: Path,
    *arguments: str,
    about: str,
    missing: str = "",
    stdin: bytes = b"",
    none: int = 0,
    protocols: Sequence[str] = (),
    seconds: float | None = None,
    variables: bool = True,
) -> bytes:
    """What git answers; `none` is its code for an empty answer, `about` what messages begin with. Raises GitFailed.

    protocols: by which it may fetch; without any it reaches no network. variables: whether those of the environment say
    where the repository is.
    """
    allowed = [word for name in protocols for word in ("-c", f"protocol.{name}.allow=always")]
    environment = {key: value for key, value in os.environ.items() if variables or key not in _ELSEWHERE}
    environment |= {**_ENVIRONMENT, "GIT_ALLOW_PROTOCOL": ":".join(protocols) or "none"}
    try:
        process = subprocess.Popen(
            [_program(about), *_OFF, *(allowed or _NO_NETWORK), *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        raise GitFailed(f"{about}: git cannot be run: {error.strerror}") from None
    _limit(process.pid)
    seconds = SECONDS if seconds is None else seconds
    with process:
        try:
            out, err = process.communicate(stdin, seconds)
        except subprocess.TimeoutExpired:
            raise GitFailed(f"{about}: git did not answer within {seconds:g} seconds") from None
        finally:
            process.kill()
    if process.returncode not in (0, none):
        if missing:
            raise GitFailed(f'{about}: git knows no commit "{missing}"')
        message = err.decode(errors="replace").strip().splitlines()
        raise GitFailed(f"{about}: {message[0] if message else 'git failed'}")
    return out


def _program(about: str) -> str:
    """Where git lies. Raises GitFailed.

    Windows looks for a bare name in the current folder first, others where PATH has an empty entry or a relative one:
    the repository may hold a program of that name.
    """
    name = "git.exe" if os.name == "nt" else "git"
    for folder in filter(os.path.isabs, os.get_exec_path()):
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise GitFailed(f"{about} needs git, which was not found")


def _limit(process: int) -> None:
    """Git reads its own files whole, whatever stands in their place."""
    if sys.platform == "linux":
        import resource  # there is none on Windows

        with contextlib.suppress(OSError, ValueError):  # it ended already
            resource.prlimit(process, resource.RLIMIT_DATA, (MEMORY, MEMORY))
