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


def _ranks(program: str, folder: Path, *given: str) -> list[str]:
    ranks = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", program, str(rank), str(folder), *given],
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    return [each.communicate(timeout=120)[0] for each in ranks]


def test_two_ranks_agree_with_what_the_engine_knows(tmp_path: Path) -> None:
    out = _ranks(RANK, tmp_path)
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


WRAPPED = """
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2, bias=False)
        self.register_buffer("scale", torch.ones(2))

    def forward(self, x):
        {update}
        return self.linear(x) * self.scale


def run(x):
    model = Scaled()
    nn.init.ones_(model.linear.weight)
    wrapped = DistributedDataParallel(model{flag})
    {backwards}
    return model.linear.weight.grad
"""
RANKS = """
import json, sys
import torch
import torch.distributed as dist

rank, folder = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", rank=rank, world_size=2, store=dist.FileStore(folder + "/store", 2))
for text in json.loads(sys.argv[3]):
    exec(text)
    print(run(torch.full((1, 2), 1.0 + 4 * rank))[0, 0].item())
dist.destroy_process_group()
"""
ANEW = "self.scale = 0.5 * self.scale + 0.5 * x.mean(0)"
TOGETHER = "(wrapped(x) + wrapped(x)).sum().backward()"
ONE_BY_ONE = "wrapped(x).sum().backward(); wrapped(x).sum().backward()"
TURNED = "self.scale = 0.5 * self.scale + 0.5"
# update of the buffer, flags, backward passes; gradient on two ranks, and whether GG105 is told
SENT = {
    "anew, of the data": (ANEW, "", TOGETHER, 11.0, True),
    "anew, not sent": (ANEW, ", broadcast_buffers=False", TOGETHER, 18.5, False),
    "anew, a backward each": (ANEW, "", ONE_BY_ONE, 16.0, False),
    "anew, and a copy is kept": (
        ANEW + "; return self.linear(x) * self.scale.clone()",
        "",
        TOGETHER,
        16.0,
        False,
    ),
    "anew, alike on all ranks": (TURNED, "", TOGETHER, 6.0, False),
    "the same": ("pass", "", TOGETHER, 6.0, False),
}


def test_what_ddp_sends_while_a_graph_keeps_it(tmp_path: Path) -> None:
    texts = [WRAPPED.format(update=one[0], flag=one[1], backwards=one[2]) for one in SENT.values()]
    gradients = _ranks(RANKS, tmp_path, json.dumps(texts))[0].split()
    assert [float(each) for each in gradients] == [one[3] for one in SENT.values()]
    for name, text in zip(SENT, texts, strict=True):
        found = [each.code for each in findings(text + "\n\nrun(torch.rand(1, 2))\n")]
        assert found == ["GG105"] * SENT[name][4], name
