"""Runs of several processes: each is watched, and there is one report of all, which changes no job's end."""

from __future__ import annotations

import json
import os
import re
import signal

import pytest
from tests.oracle.pool import Died, shared_pool
from tests.runtime.running import PROCESS, Ran

LAST_RUN = os.path.join(".gradguard", "last-run.json")
TRAIN = """import os, sys, torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

dist.init_process_group("gloo")
rank = dist.get_rank()
mesh = init_device_mesh("cpu", (2,))
data_parallel, sharded, per_parameter, tensor_parallel = [], [], [], []
for kind in range(4):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    if kind == 0:
        net = nn.parallel.DistributedDataParallel(net)
    elif kind == 1:
        net = FullyShardedDataParallel(net, device_id=torch.device("cpu"))
    elif kind == 2:
        for part in (net[0], net[2], net):
            fully_shard(part, mesh=mesh)
    else:
        net = parallelize_module(net, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(8):
        opt.zero_grad()
        x = torch.rand(8, 4)
        match kind:
            case 0:
                data_parallel.append(loss := net(x).sum())
            case 1:
                sharded.append(loss := net(x).sum())
            case 2:
                per_parameter.append(loss := net(x).sum())
            case 3:
                tensor_parallel.append(loss := net(x).sum())
        loss.backward()
        opt.step()
    weights = [p.detach().full_tensor() if hasattr(p, "full_tensor") else p.detach() for p in net.parameters()]
    sys.stdout.write(f"{rank} {[w.sum().item() for w in weights]}\\n")
y = torch.rand(3, requires_grad=True).exp()
if rank == 1:
    z = y * y
    y.data.add_(1)
    z.sum().backward()
dist.destroy_process_group()
"""
STORED = {
    kind: number for number, line in enumerate(TRAIN.split("\n"), 1) for kind in line.split(".append(")[:-1]
}
WRITTEN = 44
# A finding of each process, and one of rank 1 alone.
SMALL = """import os, sys, torch
rank = int(os.environ.get("RANK", 0))
def work(rank):
    x = torch.rand(3, requires_grad=True)
    y = x.exp()
    y.data.add_(1)
    y.sum().backward()
    if rank == 1:
        y = x.sin()
        z = y * y
        y.data.add_(1)
        z.sum().backward()
"""


def run(*argv: str, ranks: int = 0, watched: bool = True, kill: int | None = None, **files: str) -> Ran:
    ran = shared_pool().call(
        PROCESS,
        timeout=300,
        argv=list(argv),
        files={name.replace("_py", ".py"): text for name, text in files.items()},
        watched=watched,
        ranks=ranks,
        kill=kill,
    )
    assert not isinstance(ran, Died), ran
    return ran


def found(ran: Ran) -> list[tuple[int, str, list[int] | None]]:
    return [(f["line"], f["code"], f.get("ranks")) for f in json.loads(ran.files[LAST_RUN])["findings"]]


def summaries(ran: Ran) -> list[str]:
    """The last lines of all reports that were written."""
    return re.findall(r"^.*watched.*$", ran.stderr, re.MULTILINE)


def test_two_ranks_of_a_launcher_report_once():
    ran, plain = (run("train.py", ranks=2, train_py=TRAIN, watched=watched) for watched in (True, False))
    assert (ran.code, plain.code) == (0, 0), ran.stderr
    assert len(ran.stdout.splitlines()) == 8
    assert sorted(ran.stdout.splitlines()) == sorted(plain.stdout.splitlines())
    stored = {line: code for line, code, ranks in found(ran) if ranks == [0, 1]}
    # What a tensor of tensor parallel keeps, each rank's own tensors do not tell.
    kept = [line for kind, line in STORED.items() if "tensor_parallel" not in kind]
    assert stored == dict.fromkeys(kept, "GG202")
    assert [(line, code) for line, code, ranks in found(ran) if ranks == [1]] == [(WRITTEN, "GG105")]
    (summary,) = summaries(ran)
    assert "operators in ranks 0-1 in" in summary
    assert ran.stderr.endswith(summary + "\n")
    assert ran.stderr.count("seen in rank 1\n") == 1
    assert [(r["rank"], r["ended"]) for r in json.loads(ran.files[LAST_RUN])["ranks"]] == [
        (0, True),
        (1, True),
    ]
    assert not [name for name in ran.files if "ranks-" in name]


def test_the_launcher_of_torch_under_the_monitor():
    words = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29713", "train.py"]
    ran = run(*words, train_py=SMALL + "work(rank)\n")
    assert found(ran) == [(6, "GG105", [0, 1]), (11, "GG105", [1])], ran.stderr
    assert len(summaries(ran)) == 1
    assert ran.code == 0
    assert "gradguard" not in ran.stdout


def test_processes_of_multiprocessing():
    code = (
        SMALL + "from torch.multiprocessing import start_processes\n"
        "start_processes(work, nprocs=2, start_method='fork')\n"
    )
    ran = run("train.py", train_py=code)
    assert found(ran) == [(6, "GG105", [0, 1]), (11, "GG105", [1])], ran.stderr
    assert len(summaries(ran)) == 1
    assert ran.code == 1


def test_an_error_of_one_process_of_multiprocessing():
    code = (
        "import torch\nfrom torch.multiprocessing import start_processes\ndef work(rank):\n"
        "    x = torch.rand(3, requires_grad=True)\n    if rank == 1:\n        x.add_(1)\n"
        "try:\n    start_processes(work, nprocs=2, start_method='fork')\n"
        "except Exception as error:\n    print(type(error).__name__)\n"
    )
    ran = run("train.py", train_py=code)
    assert ran.stdout == "ProcessRaisedException\n"
    assert found(ran) == [(6, "GG102", [1])], ran.stderr


def test_named_processes():
    code = (
        SMALL + "import multiprocessing as mp\n"
        "processes = [mp.get_context('fork').Process(target=work, args=(0,), name=f'actor {n}') for n in range(5)]\n"
        "for each in processes:\n    each.start()\n"
    )
    ran = run("train.py", train_py=code)
    assert found(ran) == [(6, "GG105", None)], ran.stderr
    assert "seen in actor 0 and actor 1 and actor 2 and 2 others\n" in ran.stderr
    assert json.loads(ran.files[LAST_RUN])["ranks"][0]["process"] == "the first process"


def test_an_uncaught_error_in_one_rank():
    ran = run("train.py", ranks=2, train_py=SMALL + "work(rank)\nif rank:\n    raise KeyError('mine')\n")
    assert ran.code == 1
    assert found(ran) == [(6, "GG105", [0, 1]), (11, "GG105", [1])]
    assert ran.stderr.count("KeyError: 'mine'") == 1
    assert len(summaries(ran)) == 1


DIES = """import signal, time
if rank == 1:
    with open("pid", "w") as file:
        file.write(str(os.getpid()))
    os.rename("pid", "dead")
    os.kill(os.getpid(), signal.SIGKILL)
while not os.path.exists("dead"):
    time.sleep(0.01)
stat = f"/proc/{open('dead').read()}/stat"
while os.path.exists(stat) and open(stat).read().rpartition(")")[2].split()[0] != "Z":
    time.sleep(0.01)
work(rank)
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="no /proc")
def test_a_killed_rank_is_told_of_and_not_waited_for():
    ran = run("train.py", ranks=2, train_py=SMALL + DIES)
    assert ran.code == -signal.SIGKILL
    assert found(ran) == [(6, "GG105", [0])]
    assert "note: Rank 1 told nothing: killed, never started, or on another machine.\n" in ran.stderr
    assert json.loads(ran.files[LAST_RUN])["ended"] is False


def test_a_finding_changes_no_exit_code_where_it_must_not():
    stale = SMALL + "work(0)\n"
    assert run("train.py", train_py=stale).code == 1
    assert run("--exit-zero", "train.py", train_py=stale).code == 0
    assert run("train.py", ranks=1, train_py=stale).code == 0
    assert run("--exit-zero", "train.py", train_py=stale + "sys.exit(5)\n").code == 5


def test_silence_of_what_was_not_watched_is_no_good_sign():
    code = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'print(1)'])\n"
    ran = run("train.py", train_py=code)
    assert (ran.code, ran.stdout) == (0, "1\n")
    assert ran.stderr == "nothing was watched: no operator of torch ran in this process\n"
    ran = run("train.py", ranks=2, train_py="print(1)\n")
    assert ran.stderr == "nothing was watched: no operator of torch ran in ranks 0-1\n"


def test_ranks_of_other_launchers():
    from gradguard.runtime.launchers import rank_of

    slurm = {
        "SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "7", "SLURM_NODEID": "2", "SLURM_STEP_TASKS_PER_NODE": "2(x2),3",
        "SLURM_JOB_ID": "1", "SLURM_STEP_ID": "0",
    }  # fmt: skip
    of_slurm = rank_of(slurm)
    assert (of_slurm.number, of_slurm.world, of_slurm.here) == (5, 7, 3)
    assert rank_of({name: text for name, text in slurm.items() if name != "SLURM_STEP_ID"}) is None
    mpi = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
    assert (rank_of(mpi).number, rank_of(mpi).here) == (1, 2)
    assert rank_of({"RANK": "0"}) is None
    job = {"RANK": "0", "WORLD_SIZE": "2", "TORCHELASTIC_ERROR_FILE": "/t/a/attempt_0/0/error.json"}
    other = {**job, "RANK": "1", "TORCHELASTIC_ERROR_FILE": "/t/a/attempt_0/1/error.json"}
    again = {**job, "TORCHELASTIC_ERROR_FILE": "/t/a/attempt_1/0/error.json"}
    assert rank_of(job).job == rank_of(other).job != rank_of(again).job
