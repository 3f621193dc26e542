"""The reading process as its parent has it: asked, watched, ended when it takes too long, and started again."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import gradguard
from gradguard.cli.process import how_ended
from gradguard.fleet.frames import Broken, Incoming, packed, send, unpacked
from gradguard.fleet.model import Limits

HOME = Path(gradguard.__file__).parents[1]
"""Where Python looks for modules first when the process starts: the folder that holds this package."""
PROGRAM = "import sys; from gradguard.fleet.reader import main; main(sys.argv[1:])"


class Ended(Exception):
    """The process ended, or was ended, before it had answered; the message says how."""


class Reader:
    """One process that reads, started when it is needed."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None

    def ask(
        self, head: dict[str, Any], parts: Sequence[bytes] = (), *, seconds: float
    ) -> Iterator[tuple[dict[str, Any], list[bytes]]]:
        """The answers to a request, the last one with `end`. Raises Ended."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        deadline = time.monotonic() + seconds
        try:
            send(process.stdin.fileno(), packed(head, parts, level=0))
            incoming = Incoming()
            with selectors.DefaultSelector() as selector:
                selector.register(process.stdout, selectors.EVENT_READ)
                while True:
                    while (message := incoming.take()) is not None:
                        answer, more = unpacked(message)
                        yield answer, more
                        if answer.get("end"):
                            return
                    left = deadline - time.monotonic()
                    if left <= 0 or not selector.select(left):
                        raise Ended(f"took more than {seconds:g} s")
                    data = os.read(process.stdout.fileno(), 1 << 20)
                    if not data:
                        raise Ended(how_ended(process.wait(10), "its process", self._limits.file_seconds))
                    incoming.feed(data)
        except (Broken, OSError, subprocess.TimeoutExpired) as error:
            code = process.poll()
            how = (
                how_ended(code, "its process", self._limits.file_seconds)
                if code is not None
                else f"its answer cannot be read: {error}"
            )
            self.close()
            raise Ended(how) from None
        except BaseException:
            # It may be in the middle of an answer.
            self.close()
            raise

    def close(self) -> None:
        """End the process, and what it has started."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                PROGRAM,
                str(self._limits.memory),
            ],
            cwd=HOME,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        return self._process
