"""Which collectives raise the version of what they write, asked of two ranks of the installed torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from gradguard.engine.models.collectives import COUNTED, UNSEEN
from tests.marks import findings

RANK = """
import json, sys
import torch
import torch.distributed as dist
from torch.distributed import FileStore

rank, folder = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", rank=rank, world_size=2, store=FileStore(folder + "/store", 2))
one = lambda: torch.full((2,), 2.0 + rank)
CALLS = {
    "all_reduce": lambda y: dist.all_reduce(y),
    "all_to_all_single": lambda y: dist.all_to_all_single(y, one()),
    "broadcast": lambda y: dist.broadcast(y, 1),
    "reduce": lambda y: dist.reduce(y, 0),
    "scatter": lambda y: dist.scatter(y, [one(), one()] if rank else None, 1),
    "all_gather": lambda y: dist.all_gather([y, torch.empty(2)], one()),
    "all_gather_into_tensor": lambda y: dist.all_gather_into_tensor(y, torch.ones(1)),
    "all_reduce_coalesced": lambda y: dist.all_reduce_coalesced([y]),
    "reduce_scatter": lambda y: dist.reduce_scatter(y, [one(), one()]),
    "reduce_scatter_tensor": lambda y: dist.reduce_scatter_tensor(y, torch.ones(4)),
}
told = {}
for name, call in CALLS.items():
    x = torch.full((2,), float(rank), requires_grad=True)
    y = x.exp()
    failed = ""
    try:
        call(y)
        y.sum().backward()
    except RuntimeError as error:
        failed = str(error)
    told[name] = failed or ("right" if torch.equal(x.grad, x.detach().exp()) else "wrong")
if not rank:
    print(json.dumps(told))
dist.destroy_process_group()
"""


def test_two_ranks_agree_with_what_the_engine_knows(tmp_path: Path) -> None:
    ranks = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", RANK, str(rank), str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    out = [each.communicate(timeout=120)[0] for each in ranks]
    told = json.loads(out[0])
    assert {name for name, what in told.items() if what == "wrong"} == set(UNSEEN)
    refused = {name for name, what in told.items() if "inplace" in what}
    assert refused == set(COUNTED), told


def _codes(call: str) -> set[str]:
    text = f"""import torch
import torch.distributed as dist

x = torch.rand(3, requires_grad=True)
y = x.exp()
{call}
y.sum().backward()
"""
    return {each.code for each in findings(text)}


def test_a_collective_on_what_backward_needs_is_told() -> None:
    assert _codes("dist.all_reduce(y)") == {"GG105"}
    assert _codes("dist.broadcast(y, src=0)") == {"GG105"}
    assert _codes("dist.all_gather([y, torch.rand(3)], torch.rand(3))") == {"GG101"}
    assert _codes("dist.reduce_scatter_tensor(y, torch.rand(6))") == {"GG101"}


def test_a_collective_on_a_copy_or_in_its_functional_form_is_not() -> None:
    assert _codes("dist.all_reduce(y.clone())") == set()
    assert _codes("dist.all_reduce(y.detach().clone())") == set()
    assert _codes("import torch.distributed.nn.functional as f; z = f.all_reduce(y)") == set()
    assert _codes("total = y.sum(); dist.all_reduce(total)") == set()
