"""Processes, threads and signals: the report is written once, by the program that was started, however it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from tests.oracle.pool import Died, shared_pool
from tests.runtime.running import PROCESS, Ran

LAST_RUN = os.path.join(".gradguard", "last-run.json")
STALE = """import os, sys
import torch
x = torch.rand(3, requires_grad=True)
y = x.exp()
y.add_(1)
try:
    y.sum().backward()
except RuntimeError:
    print("caught", flush=True)
"""
LINE = 5

# name: (rest of the program, exit code, output after "caught").
PROGRAMS = {
    "os._exit": ("os._exit(3)\n", 3, ""),
    "sys.exit with words": ("sys.exit('bad')\n", 1, ""),
    "signal turned into an exit": (
        "import signal\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\nsignal.raise_signal(signal.SIGTERM)\n",
        7,
        "",
    ),
    "interrupt while a thread waits": (
        "import signal, threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "signal.raise_signal(signal.SIGINT)\n",
        130,
        "",
    ),
    "excepthook": ("sys.excepthook = lambda kind, *_: print('hook', kind.__name__)\nraise KeyError\n", 1, "hook KeyError\n"),
    "atexit": ("import atexit\natexit.register(print, 'bye')\n", 1, "bye\n"),
    "fork, child leaves": (
        "pid = os.fork()\nif not pid:\n    torch.rand(3, requires_grad=True).exp().sum().backward()\n    os._exit(0)\n"
        "print(os.waitpid(pid, 0)[1])\n",
        1,
        "0\n",
    ),
    "fork, child comes to the end": (
        "pid = os.fork()\nif pid:\n    print(os.waitpid(pid, 0)[1])\nelse:\n    print('child', flush=True)\n",
        1,
        "child\n0\n",
    ),
    "pool of forked processes": (
        "import multiprocessing\ndef work(n):\n    try:\n        torch.rand(2, requires_grad=True).add_(n)\n"
        "    except RuntimeError:\n        return n\nwith multiprocessing.get_context('fork').Pool(2) as pool:\n"
        "    print(pool.map(work, [1, 2]))\n",
        1,
        "[1, 2]\n",
    ),
    "standard input": ("print(sys.stdin.read())\n", 1, "given\n"),
    "other folder": ("os.makedirs('other')\nos.chdir('other')\nprint(os.path.basename(os.getcwd()))\n", 1, "other\n"),
}  # fmt: skip


def run(*argv: str, files: dict[str, str], watched: bool = True) -> Ran:
    ran = shared_pool().call(
        PROCESS, timeout=300, argv=list(argv), files=files, given="given", watched=watched
    )
    assert not isinstance(ran, Died), ran
    return ran


def reported(ran: Ran) -> list[tuple[str, int, str]]:
    return [(f["file"], f["line"], f["code"]) for f in json.loads(ran.files[LAST_RUN])["findings"]]


@pytest.mark.parametrize("name", PROGRAMS)
def test_report_is_written(name):
    rest, code, said = PROGRAMS[name]
    ran = run("train.py", files={"train.py": STALE + rest})
    assert (ran.code, ran.stdout) == (code, "caught\n" + said), ran.stderr
    assert ran.stderr.count("GG101") == 1, ran.stderr
    assert reported(ran) == [("train.py", LINE, "GG101")]


SPAWN = """import torch
import torch.multiprocessing as multiprocessing

def work(rank, queue):
    x = torch.rand(3, requires_grad=True)
    x.sum().backward()
    queue.put((rank, x.grad.tolist()))

if __name__ == "__main__":
    queue = multiprocessing.get_context("spawn").SimpleQueue()
    multiprocessing.spawn(work, (queue,), nprocs=1)
    print(queue.get())
"""

DISTRIBUTED = """import os
import torch
import torch.distributed as dist
from torch import nn

os.environ.update(MASTER_ADDR="127.0.0.1")
store = dist.HashStore()
dist.init_process_group("gloo", store=store, rank=0, world_size=1)
torch.manual_seed(0)
net = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1)))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(5):
    opt.zero_grad()
    net(torch.rand(8, 4)).sum().backward()
    opt.step()
with net.no_sync():
    net(torch.rand(8, 4)).sum().backward()
print([p.sum().item() for p in net.parameters()])
dist.destroy_process_group()
"""


@pytest.mark.parametrize("code", [SPAWN, DISTRIBUTED], ids=["spawn", "distributed"])
def test_same_output_and_nothing_to_report(code):
    ran, plain = (run("train.py", files={"train.py": code}, watched=watched) for watched in (True, False))
    assert plain.code == 0, plain.stderr
    assert (ran.code, ran.stdout) == (0, plain.stdout), ran.stderr
    assert reported(ran) == []


def test_names_beyond_ascii():
    name = os.path.join("папка", "훈련 ü.py")
    ran = run(name, "값", files={name: STALE + "print(sys.argv[1:])\n"})
    assert ran.stdout == "caught\n['값']\n", ran.stderr
    assert f"{name}:{LINE}:1: error GG101" in ran.stderr
    assert reported(ran) == [(name, LINE, "GG101")]


def test_package_that_runs():
    main = "from . import core\nprint(__name__, __package__)\n"
    core = os.path.join("package", "core.py")
    ran = run("-m", "package", files={"package/__main__.py": main, "package/__init__.py": "", core: STALE})
    assert ran.stdout == "caught\n__main__ package\n", ran.stderr
    assert reported(ran) == [(core, LINE, "GG101")]


def test_module_that_does_not_exist():
    ran = run("-m", "nowhere", files={})
    assert (ran.code, ran.stderr) == (2, "gradguard run: No module named nowhere\n")
    assert LAST_RUN not in ran.files


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_program_from_a_pipe_is_quoted_without_asking_the_pipe_again(tmp_path):
    os.mkfifo(tmp_path / "train.py")
    program = STALE.replace("except RuntimeError", "except KeyError")
    words = [
        sys.executable,
        "-c",
        "import sys; from gradguard.main import main; sys.exit(main(['run', 'train.py']))",
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    writer = subprocess.Popen(["sh", "-c", 'printf %s "$0" > train.py', program], cwd=tmp_path)
    with subprocess.Popen(words, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            _, report = process.communicate(timeout=60)
        finally:
            process.kill()
            writer.kill()
            writer.wait()
    assert process.returncode == 1
    assert f"train.py:{LINE}:1: error GG101" in report
    assert f"{LINE} | y.add_(1)" in report
