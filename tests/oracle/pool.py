"""Children forked from a process that has imported torch once.

A `Pool` owns one or more zygotes (`zygote.py`). A zygote answers one request at a time: it forks a child, the
child calls a function and pickles the result, the zygote kills the child's process group at the time limit.
Nothing a program does (threads, global torch state, a crash) reaches the next program.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import queue
import struct
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ZYGOTE = Path(__file__).with_name("zygote.py")
IMPORT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Request:
    """`function` is "module:name", importable with the repository root and `server` on the path."""

    function: str
    arguments: dict[str, Any]
    timeout: float


@dataclass(frozen=True, slots=True)
class Died:
    """The child gave no answer: `reason` is "timeout" or "crash", `detail` its last words."""

    reason: str
    detail: str


class Pool:
    """Runs requests in forked children; safe to use from several threads."""

    def __init__(self, workers: int = 1) -> None:
        self._idle: queue.SimpleQueue[_Zygote | None] = queue.SimpleQueue()
        for _ in range(workers):
            self._idle.put(None)
        self.workers = workers
        self._all: list[_Zygote] = []
        self._lock = threading.Lock()

    def call(self, function: str, *, timeout: float, **arguments: Any) -> Any:
        """The function's result, or `Died`. Raises RuntimeError if the function itself raised (a bug of the tests)."""
        request = Request(function, arguments, timeout)
        zygote = self._idle.get()
        if zygote is None or not zygote.alive:
            zygote = _Zygote()
            with self._lock:
                self._all.append(zygote)
        try:
            reply = zygote.ask(request)
        finally:
            self._idle.put(zygote)
        if isinstance(reply, _Failed):
            raise RuntimeError(f"{function} failed in a worker:\n{reply.traceback}")
        return reply

    def map(self, calls: Sequence[tuple[str, float, dict[str, Any]]]) -> list[Any]:
        """Results in the order of `calls`: (function, timeout in seconds, arguments)."""
        if self.workers == 1 or len(calls) < 2:
            return [self.call(f, timeout=t, **a) for f, t, a in calls]
        with ThreadPoolExecutor(self.workers) as threads:
            return list(threads.map(lambda c: self.call(c[0], timeout=c[1], **c[2]), calls))

    def close(self) -> None:
        with self._lock:
            for zygote in self._all:
                zygote.close()
            self._all.clear()


@dataclass(frozen=True, slots=True)
class _Failed:
    traceback: str


class _Zygote:
    def __init__(self) -> None:
        environment = dict(os.environ)
        path = [str(ROOT), str(ROOT / "server"), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(p for p in path if p)
        environment["OMP_NUM_THREADS"] = "1"
        self.process = subprocess.Popen(
            [sys.executable, str(ZYGOTE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def ask(self, request: Request) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        body = pickle.dumps((request.function, request.arguments, request.timeout))
        try:
            self.process.stdin.write(struct.pack("<Q", len(body)) + body)
            self.process.stdin.flush()
            kind, payload = _read_reply(self.process.stdout)
        except (OSError, EOFError) as error:
            self.close()
            return Died("crash", f"the worker is gone: {error!r}")
        if kind == b"R":
            return pickle.loads(payload)
        if kind == b"E":
            return _Failed(payload.decode(errors="replace"))
        return Died({b"T": "timeout", b"C": "crash"}[kind], payload.decode(errors="replace"))

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def _read_reply(stream: Any) -> tuple[bytes, bytes]:
    head = _exactly(stream, 9)
    return head[:1], _exactly(stream, struct.unpack("<Q", head[1:])[0])


def _exactly(stream: Any, count: int) -> bytes:
    chunks: list[bytes] = []
    while count:
        chunk = stream.read(count)
        if not chunk:
            raise EOFError("end of stream")
        chunks.append(chunk)
        count -= len(chunk)
    return b"".join(chunks)


_shared: Pool | None = None
_shared_lock = threading.Lock()


def shared_pool() -> Pool:
    """The pool of this process: one zygote, or as many as GRADGUARD_ORACLE_WORKERS says."""
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = Pool(int(os.environ.get("GRADGUARD_ORACLE_WORKERS", "1")))
            atexit.register(_shared.close)
        return _shared


def died(results: Iterable[Any]) -> list[Died]:
    """Those results that are no answer."""
    return [r for r in results if isinstance(r, Died)]
