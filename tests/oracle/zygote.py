"""Imports torch once, then forks a child for every request read from standard input.

Request: 8 bytes little-endian length, pickle of (function, arguments, timeout in seconds).
Reply: one byte kind (R result, E the function raised, T timeout, C crash), 8 bytes length, payload.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pickle
import select
import signal
import struct
import sys
import tempfile
import time
import traceback
from typing import Any

# What programs would otherwise import in every child; optimizers import torch._dynamo on first use (1 s).
PRELOADED = (
    "torch._dynamo",
    "torch.distributions",
    "torch.func",
    "torch.optim",
    "torch.profiler._cupti_monitor",
    "torch.utils.checkpoint",
    "torch.utils.data",
    "numpy.random",
    "tests.oracle.programs",
    "tests.oracle.instruments",
)


def serve() -> None:
    # Programs print: the protocol keeps its own descriptor and standard output goes nowhere.
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    requests = os.fdopen(os.dup(0), "rb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    import torch

    torch.set_num_threads(1)
    for name in PRELOADED:
        importlib.import_module(name)
    # Collections in the children would copy every page they touch.
    gc.collect()
    gc.freeze()
    while True:
        head = requests.read(8)
        if len(head) < 8:
            return
        function, arguments, timeout = pickle.loads(requests.read(struct.unpack("<Q", head)[0]))
        kind, payload = _in_child(function, arguments, timeout)
        channel.write(kind + struct.pack("<Q", len(payload)) + payload)
        channel.flush()


def _in_child(function: str, arguments: dict[str, Any], timeout: float) -> tuple[bytes, bytes]:
    reader, writer = os.pipe()
    with tempfile.TemporaryFile() as words:
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            os.setpgid(0, 0)
            os.dup2(words.fileno(), 1)
            os.dup2(words.fileno(), 2)
            _child(function, arguments, writer)
        os.close(writer)
        data, timed_out = _collect(reader, time.monotonic() + timeout)
        os.close(reader)
        # The group is killed in any case: a program may have left processes behind.
        _kill_group(pid)
        _, status = os.waitpid(pid, 0)
        if data[:1] in (b"R", b"E") and not timed_out:
            return data[:1], data[1:]
        words.seek(0)
        last = words.read()[-2000:]
    if timed_out:
        return b"T", f"no answer after {timeout:g} s\n".encode() + last
    return b"C", f"wait status {status}\n".encode() + last


def _kill_group(pid: int) -> None:
    for kill in (lambda: os.killpg(pid, signal.SIGKILL), lambda: os.kill(pid, signal.SIGKILL)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill()


def _collect(reader: int, deadline: float) -> tuple[bytes, bool]:
    chunks: list[bytes] = []
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            return b"", True
        chunk = os.read(reader, 1 << 20)
        if not chunk:
            return b"".join(chunks), False
        chunks.append(chunk)


def _child(function: str, arguments: dict[str, Any], writer: int) -> None:
    code = 0
    try:
        module, name = function.split(":")
        result = getattr(importlib.import_module(module), name)(**arguments)
        data = b"R" + pickle.dumps(result)
    except BaseException:
        data = b"E" + traceback.format_exc().encode()
    try:
        sys.stdout.flush()
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(data)
    except BaseException:
        code = 1
    os._exit(code)


if __name__ == "__main__":
    serve()
