"""Messages in and out: framing, and what the protocol says about input that is none.

One thread reads and hands whole message bodies to the event loop. It reads the unbuffered file, as a
thread that dies inside `sys.stdin.buffer` keeps its lock and with it the interpreter from ending.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import BinaryIO, Protocol

log = logging.getLogger(__name__)

_LENGTH = re.compile(rb"^content-length[ \t]*:[ \t]*(\d+)[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
_BLOCK = 1 << 16
MAX_HEADER = 1 << 14
MAX_BODY = 1 << 28
"""A longer body is taken for a broken header: nothing an editor sends comes near."""


class RawReader(Protocol):
    """An unbuffered source of bytes; an empty answer is its end."""

    def read(self, size: int, /) -> bytes | None: ...


class Outlet(Protocol):
    """Takes messages for the client."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


class Broken(Exception):
    """The stream cannot be understood any further."""


def bodies(source: RawReader) -> Iterator[bytes]:
    """Bodies of the messages in a stream, to its end.

    Headers without a length are skipped, so that stray output on the stream costs no message. Raises Broken.
    """
    buffer = bytearray()
    while True:
        end = buffer.find(b"\r\n\r\n")
        while end < 0:
            if len(buffer) > MAX_HEADER:
                raise Broken("no header in the first 16 KiB")
            block = source.read(_BLOCK)
            if not block:
                return
            start = max(len(buffer) - 3, 0)
            buffer += block
            end = buffer.find(b"\r\n\r\n", start)
        found = _LENGTH.search(bytes(buffer[: end + 1]))
        del buffer[: end + 4]
        if found is None:
            log.warning("skipped a header without Content-Length")
            continue
        length = int(found.group(1))
        if length > MAX_BODY:
            raise Broken(f"a message of {length} bytes was announced")
        while len(buffer) < length:
            block = source.read(max(_BLOCK, length - len(buffer)))
            if not block:
                return
            buffer += block
        body = bytes(buffer[:length])
        del buffer[:length]
        yield body


class Writer:
    """Where messages go out. A client that has gone is no error: its end is noticed by the reader."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._lost = False

    def write(self, data: bytes) -> None:
        with self._lock:
            if self._lost:
                return
            try:
                self._stream.write(data)
                self._stream.flush()
            except (OSError, ValueError) as error:
                self._lost = True
                log.warning("the client is gone: %s", error)

    def close(self) -> None:
        with self._lock:
            self._lost = True


def read_in_thread(
    source: RawReader,
    loop: asyncio.AbstractEventLoop,
    receive: Callable[[bytes], None],
    ended: Callable[[], None],
) -> None:
    """Give each message to `receive` on the loop; call `ended` there when no more will come."""

    def run() -> None:
        try:
            for body in bodies(source):
                loop.call_soon_threadsafe(receive, body)
        except (Broken, OSError, ValueError) as error:
            log.error("cannot read from the client any more: %s", error)
        except RuntimeError:  # the loop was closed in the meantime
            return
        try:
            loop.call_soon_threadsafe(ended)
        except RuntimeError:
            return

    threading.Thread(target=run, name="gradguard-reader", daemon=True).start()


def standard_streams() -> tuple[RawReader, Writer]:
    """Stdin and stdout of the process for messages alone: what anything prints goes to stderr from now on."""
    source = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
    sys.stdout.flush()
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdout = sys.stderr
    return source, Writer(out)


def accept_one(host: str, port: int) -> tuple[RawReader, Writer]:
    """Wait for one client on a TCP port (0: any free one, which is logged). Raises OSError."""
    with socket.create_server((host, port)) as server:
        print("listening on {}:{}".format(*server.getsockname()[:2]), file=sys.stderr, flush=True)
        connection, address = server.accept()
    log.info("connected to %s", address)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection.makefile("rb", buffering=0), Writer(connection.makefile("wb"))
