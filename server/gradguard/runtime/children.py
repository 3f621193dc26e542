"""What a watched program starts is watched, too, where it is a part of the same job.

Launchers start ranks as commands: `torch.distributed.run`, accelerate, Lightning. Such a command is given
`-m gradguard run` before its script. `multiprocessing` sends a process as a pickle, which then brings the monitor along.
"""

from __future__ import annotations

import multiprocessing.process
import multiprocessing.reduction
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gradguard.runtime.launchers import rank_of
from gradguard.runtime.ranks import FOLDER

PACKAGE = str(Path(__file__).resolve().parents[2])
# Processes that work for a program and run none of its training.
HELPERS = ("multiprocessing.", "concurrent.", "torch.utils.data.", "joblib.", "loky.")
TAKES_VALUE = ("-X", "-W", "--check-hash-based-pycs")


class Children:
    """Stands before the two ways in which a program starts others. `folder` is where they leave their reports.

    launched: commands that became watched ranks.
    """

    def __init__(
        self,
        words: Sequence[str],
        light: bool,
        folder: Callable[[], str],
        arrive: Callable[[Any, str, bool], Any],
    ) -> None:
        """`words` are those of the program: what it starts of them belongs to its job. `arrive` gives a process, where
        it will run, back as one that runs under the monitor."""
        self.launched: list[subprocess.Popen[Any]] = []
        self._words = [word for word in words if not word.startswith("-")]
        self._light = light
        self._folder = folder
        self._arrive = arrive
        self._popen = subprocess.Popen.__init__
        self._dump = multiprocessing.reduction.dump
        self._begin = multiprocessing.process.BaseProcess.start
        self._bootstrap = multiprocessing.process.BaseProcess._bootstrap  # type: ignore[attr-defined]

    def install(self) -> None:
        popen, dump, begin, bootstrap = self._popen, self._dump, self._begin, self._bootstrap
        here = os.getpid()

        def launch(process: Any, args: Any, *rest: Any, **named: Any) -> None:
            watched = self._command(args, named.get("env"), plain=not rest and not named.get("executable"))
            if watched is None:
                return popen(process, args, *rest, **named)
            self.launched.append(process)
            return popen(process, watched, **{**named, "env": self._environment(named.get("env"))})

        def send(sent: Any, *rest: Any, **named: Any) -> None:
            if isinstance(sent, multiprocessing.process.BaseProcess) and _trains(sent):
                sent = _Sent(self._arrive, sent, self._folder(), self._light)
            dump(sent, *rest, **named)

        def start(process: Any) -> None:
            if os.getpid() == here and _trains(process):
                self._folder()
            begin(process)

        def forked(process: Any, *rest: Any, **named: Any) -> Any:
            if os.getpid() != here and _trains(process):
                self._arrive(process, self._folder(), self._light)
            return bootstrap(process, *rest, **named)

        subprocess.Popen.__init__ = launch  # type: ignore[assignment, method-assign]
        multiprocessing.reduction.dump = send  # type: ignore[assignment]
        multiprocessing.process.BaseProcess.start = start  # type: ignore[assignment, method-assign]
        multiprocessing.process.BaseProcess._bootstrap = forked  # type: ignore[attr-defined]

    def remove(self) -> None:
        subprocess.Popen.__init__ = self._popen  # type: ignore[method-assign]
        multiprocessing.reduction.dump = self._dump
        multiprocessing.process.BaseProcess.start = self._begin  # type: ignore[method-assign]
        multiprocessing.process.BaseProcess._bootstrap = self._bootstrap  # type: ignore[attr-defined]

    def _command(self, args: Any, environment: Mapping[str, str] | None, plain: bool) -> list[str] | None:
        """The words that start a rank of this job under the monitor; None for every other command."""
        if (
            not plain
            or not isinstance(args, (list, tuple))
            or not all(isinstance(a, (str, os.PathLike)) for a in args)
        ):
            return None
        words = [os.fspath(word) for word in args]
        if not words or not all(isinstance(word, str) for word in words) or not _is_this_python(words[0]):
            return None
        at = 1
        while at < len(words) and words[at].startswith("-") and words[at] not in ("-", "-c", "-m"):
            at += 2 if words[at] in TAKES_VALUE else 1
        rest = words[at:]
        module = rest[:1] == ["-m"]
        target = rest[1] if module and rest[1:] else rest[0] if rest else ""
        if target == "gradguard" or not (module or target.endswith(".py")):
            return None
        ranked = rank_of(environment if environment is not None else os.environ) is not None
        if not ranked and not any(_same(target, word) for word in self._words):
            return None
        light = ["--light"] if self._light else []
        return [*words[:at], "-m", "gradguard", "run", *light, *rest]

    def _environment(self, given: Mapping[str, str] | None) -> dict[str, str]:
        environment = {**(os.environ if given is None else given), FOLDER: self._folder()}
        if PACKAGE not in map(
            os.path.realpath, (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
        ):
            paths = [path for path in (environment.get("PYTHONPATH"), PACKAGE) if path]
            environment["PYTHONPATH"] = os.pathsep.join(paths)
        return environment


def _is_this_python(word: str) -> bool:
    try:
        return os.path.samefile(word, sys.executable)
    except OSError:
        return False


def _same(target: str, word: str) -> bool:
    """Whether a script or module is the one that a word names."""
    return target == word or (os.path.isfile(word) and os.path.realpath(target) == os.path.realpath(word))


def _trains(process: Any) -> bool:
    """Whether a process may train: it runs a function of the program, or one that runs such a function."""
    module = getattr(getattr(process, "_target", None), "__module__", None) or type(process).__module__
    return not f"{module}.".startswith(HELPERS)


class _Sent:
    """A process on its way to an interpreter of its own."""

    def __init__(self, arrive: Callable[..., Any], *given: Any) -> None:
        self._arrive = arrive
        self._given = given

    def __reduce__(self) -> tuple[Any, ...]:
        return self._arrive, self._given
