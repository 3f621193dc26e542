"""However a process ends, its report is there, and it ends as it would have."""

from __future__ import annotations

import json
import os
import signal

import pytest
from tests.runtime.test_ranks import LAST_RUN, found, run, summaries

STALE = """import os, signal, sys, threading, time
import torch
def work():
    x = torch.rand(3, requires_grad=True)
    y = x.exp()
    y.data.add_(1)
    y.sum().backward()
def ready():
    with open("ready", "w"):
        pass
"""
LINE = 6
FOUND = [(LINE, "GG105", None)]
WAITS = "import datetime\nimport torch.distributed as dist\ndist.HashStore().wait(['never'], datetime.timedelta(seconds=100))\n"
# name: (program, signal, exit code)
ENDINGS = {
    "SIGTERM": ("work()\nready()\nwhile True:\n    time.sleep(0.01)\n", signal.SIGTERM, -signal.SIGTERM),
    "SIGHUP": ("work()\nready()\nwhile True:\n    time.sleep(0.01)\n", signal.SIGHUP, -signal.SIGHUP),
    "SIGTERM while a collective waits": ("work()\nready()\n" + WAITS, signal.SIGTERM, -signal.SIGTERM),
    "SIGTERM that the program handles": (
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))\nwork()\nready()\nwhile True:\n    time.sleep(0.01)\n",
        signal.SIGTERM,
        3,
    ),
    "SIGTERM given back": (
        "before = signal.signal(signal.SIGTERM, lambda *_: None)\nassert before is signal.SIG_DFL\n"
        "signal.signal(signal.SIGTERM, before)\nassert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL\n"
        "work()\nready()\nwhile True:\n    time.sleep(0.01)\n",
        signal.SIGTERM,
        -signal.SIGTERM,
    ),
    "SIGINT": ("work()\nready()\nwhile True:\n    time.sleep(0.01)\n", signal.SIGINT, 130),
    "sys.exit in a thread": (
        "def leave():\n    work()\n    sys.exit(3)\nt = threading.Thread(target=leave)\nt.start()\nt.join()\n", None, 1
    ),
    "thread that outlives the program": (
        "main = threading.current_thread()\ndef late():\n    while main.is_alive() and sys._getframe:\n        time.sleep(0.01)\n"
        "        if finished:\n            break\n    work()\nfinished = []\nthreading.Thread(target=late).start()\nfinished.append(1)\n",
        None,
        1,
    ),
    "os._exit in a thread": ("work()\nthreading.Thread(target=os._exit, args=(4,)).start()\ntime.sleep(100)\n", None, 4),
    "uncaught error": ("work()\nraise KeyError(1)\n", None, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDINGS)
def test_a_report_survives(name):
    rest, kill, code = ENDINGS[name]
    ran = run("train.py", train_py=STALE + rest, kill=kill)
    assert ran.code == code, ran.stderr
    assert found(ran) == FOUND
    assert len(summaries(ran)) == 1, ran.stderr
    assert json.loads(ran.files[LAST_RUN])["ended"] is True
    assert not [name for name in ran.files if name.endswith(".tmp")]


def test_a_forked_child_ends_as_it_likes():
    code = (
        "pid = os.fork()\nif not pid:\n    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL\n"
        "    time.sleep(100)\n    os._exit(1)\nos.kill(pid, signal.SIGTERM)\nprint(os.waitpid(pid, 0)[1])\nwork()\n"
    )
    ran = run("train.py", train_py=STALE + code)
    assert ran.stdout == f"{int(signal.SIGTERM)}\n"
    assert found(ran) == FOUND
    assert len(summaries(ran)) == 1


def test_threads_and_handlers_look_as_without_the_monitor():
    code = "print(threading.active_count(), signal.signal(signal.SIGTERM, signal.SIG_DFL), signal.getsignal(signal.SIGHUP))\n"
    ran, plain = (run("train.py", train_py=STALE + code, watched=watched) for watched in (True, False))
    assert ran.stdout == plain.stdout


def test_a_run_that_goes_on_writes_now_and_then():
    kept = "import gradguard.runtime.watching as watching\nwatching.EVERY = watching.SHARE = 0\n"
    program = STALE + "work()\nwork()\nos.kill(os.getpid(), signal.SIGKILL)\n"
    assert LAST_RUN not in run("train.py", train_py=program).files
    ran = run("train.py", train_py=kept + program)
    assert ran.code == -signal.SIGKILL
    assert found(ran) == [(LINE + 2, "GG105", None)]
    assert json.loads(ran.files[LAST_RUN])["ended"] is False


def test_a_rank_that_is_killed_leaves_what_it_had_written():
    kept = "import gradguard.runtime.watching as watching\nwatching.EVERY = watching.SHARE = 0\n"
    rest = (
        "if os.environ['RANK'] == '1':\n    work()\n    ready()\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "while not os.path.exists('ready'):\n    time.sleep(0.01)\ntime.sleep(0.2)\n"
    )
    ran = run("train.py", ranks=2, train_py=kept + STALE + rest)
    assert found(ran) == [(LINE + 2, "GG105", [1])]
    assert "note: Rank 1 did not end by itself: what it had found after" in ran.stderr
    assert os.path.join(".gradguard", ".gitignore") in ran.files
