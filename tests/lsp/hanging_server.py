"""The toy server on a disk of which parts do not answer: `hanging_server.py FOLDER ARGUMENT...`.

What has `hangs` in its name, below the folder, hangs until there is a file `released` in the folder. A look at the
folder that is taken by a thread on which nothing may wait is told on stderr.
"""

import os
import sys
import threading
import time

import gradguard.lsp.disk_calls

gradguard.lsp.disk_calls.PATIENCE = 0.5
gradguard.lsp.disk_calls.RECOVERY = 0.2

from gradguard.lsp.server import main  # noqa: E402
from tests.lsp.toy_server import toy  # noqa: E402

folder = sys.argv[1]
stat = os.stat


def released() -> bool:
    try:
        stat(os.path.join(folder, "released"))
    except OSError:
        return False
    return True


def hanging(name):  # type: ignore[no-untyped-def]
    original = getattr(os, name)

    def call(path=".", *args, **kwargs):  # type: ignore[no-untyped-def]
        text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else ""
        if text.startswith(folder):
            if not threading.current_thread().name.startswith("gradguard-disk"):
                print(f"{name} of {text} in {threading.current_thread().name}", file=sys.stderr, flush=True)
            while "hangs" in text[len(folder) :] and not released():
                time.sleep(0.05)
        return original(path, *args, **kwargs)

    setattr(os, name, call)


for each in ("stat", "lstat", "open", "scandir", "readlink"):
    hanging(each)

if __name__ == "__main__":
    sys.exit(main(sys.argv[2:], analyser=toy))
