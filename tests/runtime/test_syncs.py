"""Waits for CUDA that torch tells of itself. There is no CUDA here: a stand-in plays its part of `torch.cuda`.

What the stand-in does is what torch does with the device there: the mode is a number, set only once CUDA is
initialised; an operator that waits gives a Python warning at 1 and an error at 2; and whoever sets the mode first gets a
warning that it is a prototype.
"""

from __future__ import annotations

from tests.oracle.pool import Died, shared_pool
from tests.runtime.watching import RUN

STAND_IN = """
import functools
import warnings
import torch

state = {"mode": 0, "ready": False, "told": False}
queued = torch.cuda._queued_calls
torch.backends.cuda.is_built = lambda: True
torch.cuda.is_initialized = lambda: state["ready"]
torch.cuda.get_sync_debug_mode = lambda: state["mode"]
def refuse():
    raise RuntimeError("called a synchronizing CUDA operation")
# As in an operator, no Python stands between the statement and the warning.
tell = functools.partial(warnings.warn, "called a synchronizing CUDA operation (Triggered internally at a.cpp:1.)")
wait = int
def set_sync_debug_mode(mode):
    global wait
    assert state["ready"]
    if not state["told"]:
        state["told"] = True
        warnings.warn(
            "Synchronization debug mode is a prototype feature and does not yet detect all synchronizing operations "
            "(Triggered internally at b.cpp:1.)"
        )
    state["mode"] = {"default": 0, "warn": 1, "error": 2}.get(mode, mode)
    wait = (int, tell, refuse)[state["mode"]]
torch.cuda.set_sync_debug_mode = set_sync_debug_mode
first = len(queued)
library = torch.library.Library("stand_in", "DEF")
library.define("waiting(Tensor x) -> Tensor")
library.impl("waiting", lambda x: (wait(), x.clone())[1], "CPU")
library.define("copied(Tensor x, *, Device? device=None) -> Tensor")
library.impl("copied", lambda x, device=None: (wait(), x.clone())[1], "CPU")
def initialise():
    state["ready"] = True
    for call, _ in list(queued)[first:]:
        call()
"""

PROGRAM = """
import warnings
import torch
print(state["mode"], state["ready"])
w = torch.rand(3, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
initialise()
print(state["mode"], torch.cuda.get_sync_debug_mode())
for step in range(4):
    (w * w).sum().backward()
    opt.step()
    opt.zero_grad()
    wait()
    torch.ops.stand_in.waiting(w)
    torch.ops.stand_in.copied(w, device="cuda")
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    wait()
    warnings.warn("mine")
print([str(w.message) for w in seen])
with warnings.catch_warnings():
    warnings.simplefilter("error")
    wait()
    try:
        warnings.warn("mine")
    except UserWarning:
        print("still an error")
with warnings.catch_warnings():
    warnings.resetwarnings()
    warnings.filterwarnings("error", "called")
    wait()
{end}
"""


def watched(end: str):
    seen = shared_pool().call(
        RUN, timeout=60, code=PROGRAM.replace("{end}", end), prelude=STAND_IN, light=False
    )
    assert not isinstance(seen, Died), seen
    assert not seen.error, seen.error
    assert not seen.troubles
    return seen


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(PROGRAM.split("\n"), 1) if line.strip() == text)


def test_waits_are_counted_and_hidden_from_the_program():
    seen = watched("")
    assert seen.stdout.splitlines() == ["0 False", "1 0", "['mine']", "still an error"]
    assert (line_of("wait()"), "GG302") in seen.lines, seen.findings
    messages = {line: message for line, _, _, message, _ in seen.findings}
    assert "(a wait for CUDA): 4 times in 4 steps" in messages[line_of("wait()")]
    assert "(stand_in::waiting): 4 times in 4 steps" in messages[line_of("torch.ops.stand_in.waiting(w)")]
    copy = line_of('torch.ops.stand_in.copied(w, device="cuda")')
    assert (copy, "GG304") in seen.lines
    assert "until a value of its own is on the device (stand_in::copied): 4 times" in messages[copy]


def test_a_mode_of_the_program_is_its_own():
    seen = watched(
        "torch.cuda.set_sync_debug_mode('error')\nprint(torch.cuda.get_sync_debug_mode())\n"
        "try:\n    wait()\nexcept RuntimeError:\n    print('raised')\n"
        "torch.cuda.set_sync_debug_mode(1)\nwith warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n    wait()\nprint(len(seen), state['mode'])"
    )
    assert seen.stdout.splitlines()[4:] == ["2", "raised", "1 1"]


def test_the_notice_about_the_mode_waits_for_the_program():
    code = (
        STAND_IN
        + "from gradguard import monitor\nwarnings.simplefilter('error')\nwith monitor() as m:\n    initialise()\n"
        "    print(state)\n    with warnings.catch_warnings(record=True) as seen:\n        warnings.simplefilter('always')\n"
        "        torch.cuda.set_sync_debug_mode('warn')\n"
        "print([str(w.message)[:26] for w in seen], state['mode'], m.report.troubles)\n"
    )
    seen = shared_pool().call(RUN, timeout=60, code=code, prelude="", light=False, watched=False)
    assert seen.stdout.splitlines() == [
        "{'mode': 1, 'ready': True, 'told': True}",
        "['Synchronization debug mode'] 1 ()",
    ], seen.error


def test_everything_is_put_back():
    code = (
        STAND_IN
        + "import warnings\nfrom gradguard import monitor\nbefore = warnings.filters[:], warnings._showwarnmsg, warnings.simplefilter\n"
        "with monitor():\n    initialise()\n    inside = state['mode']\n"
        "print(inside, state['mode'], before == (warnings.filters[:], warnings._showwarnmsg, warnings.simplefilter))\n"
        "print(torch.cuda.set_sync_debug_mode is set_sync_debug_mode, len(queued) == first)\n"
    )
    seen = shared_pool().call(RUN, timeout=60, code=code, prelude="", light=False, watched=False)
    assert seen.stdout.splitlines() == ["1 0 True", "True True"], seen.error
