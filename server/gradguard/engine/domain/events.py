"""What happened on the tape that a rule may want to report.

The engine emits facts, rules add words. Each event keeps the whole path (save, write, backward), so that a
finding can show why. `certain` is False where one needed fact was inferred or unknown; whether *every* path
does it is decided when paths are put together (`driver.merging`).
"""

from __future__ import annotations

import ast
from collections.abc import Hashable
from dataclasses import dataclass, field

from gradguard.engine.domain.tensors import Place

ON_CONTEXT = "kept as an attribute of ctx"
"""Why a tensor is kept whose version backward does not compare."""


@dataclass(frozen=True, slots=True)
class SavedFact:
    """A tensor that an op keeps for backward."""

    op: str
    place: Place
    role: str
    why: str
    text: str
    """Source text of the saved expression."""
    expr: ast.AST | None = None
    """The saved expression: the argument, or the whole op where its result is kept."""


@dataclass(frozen=True, slots=True)
class WriteFact:
    """An in-place write."""

    op: str
    place: Place
    text: str
    kind: str
    counted: bool
    statement: ast.stmt | None = None
    shared: bool = False
    """Another name or object sees the write too."""
    same_name: bool = False
    """Written through the very name that was saved."""
    alias_at: Place | None = None
    maker: Place | None = None
    """Where the module that writes was made."""


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all events: `place` is where the squiggle goes."""

    place: Place
    certain: bool | None
    """True: certain. False: likely. None: possible only."""
    caught: Place | None = field(default=None, kw_only=True, compare=False, repr=False)
    """The handler of the program that catches the error, where the event is one that torch raises."""
    instances: tuple[Hashable, ...] = field(default=(), kw_only=True, compare=False, repr=False)
    """By what it comes about on its path, as other paths can tell it too: call sites and passes of loops, of the moment
    it was emitted, and of each write that it is about."""


@dataclass(frozen=True, slots=True)
class SavedTensorMutated(Event):
    """GG101, GG105, GG106: a saved tensor was written before backward reached it."""

    saved: SavedFact
    write: WriteFact
    backward: Place | None
    """None: the tensor leaves, and a caller may differentiate it."""
    carried: SecondBackward | None = None
    """What brings the retained graph of an earlier iteration to the backward."""


@dataclass(frozen=True, slots=True)
class RefusedWrite(Event):
    """GG102, GG103, GG104, GG107, GG109: torch refuses this write at its statement."""

    reason: str
    """`leaf`, `view-of-leaf`, `multi-view`, `no-grad-view`, `expanded`, `inference`, `function-output`."""
    write: WriteFact
    source: Place | None
    """Where the tensor became what it is (view made, expanded, created)."""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class InferenceSaved(Event):
    """GG107: an op must save a tensor that was made under inference_mode."""

    op: str
    text: str
    made: Place


@dataclass(frozen=True, slots=True)
class FunctionMutation(Event):
    """GG108: a custom Function writes an input without mark_dirty, a saved tensor or grad_output."""

    what: str
    """`input`, `saved`, `grad_output`."""
    text: str
    op: str
    leaf: bool = False
    """An input that is a leaf and requires grad: torch would refuse the write if it were declared."""


@dataclass(frozen=True, slots=True)
class ContextKeeps(Event):
    """GG208: a custom Function keeps an output or an input as an attribute of its `ctx`."""

    what: str
    """`output`, `view` (of an output), `input`."""
    attribute: str
    """`ctx.y`."""
    text: str
    """What is kept, as the program calls it."""
    function: str
    """The Function's name."""


@dataclass(frozen=True, slots=True)
class HookAgain(Event):
    """GG209: a hook is registered once more by each pass of a loop, or each call of a method, and none is removed."""

    text: str
    """What it is registered on."""
    loop: Place | None
    """None: by each call of `method`."""
    method: str
    scales: bool
    """It is a tensor's, whose result takes the place of the gradient."""


@dataclass(frozen=True, slots=True)
class HookWrite(Event):
    """GG110: a tensor hook writes its gradient argument."""

    text: str
    op: str
    registered: Place


@dataclass(frozen=True, slots=True)
class InputRewritten(Event):
    """GG111: a sub-module's in-place op rewrote an input that is read again."""

    text: str
    op: str
    read_again: Place
    submodule: Place


@dataclass(frozen=True, slots=True)
class GradientAlias(Event):
    """GG112: `p.grad` kept by reference and overwritten later."""

    text: str
    overwritten: Place


@dataclass(frozen=True, slots=True)
class ArgumentWrite(Event):
    """GG120: a function writes into its caller's tensor."""

    text: str
    op: str
    function: str


@dataclass(frozen=True, slots=True)
class SecondBackward(Event):
    """GG203: backward through a graph that an earlier backward freed."""

    first: Place
    second: Place
    carried: Place | None
    text: str
    op: str
    made: Place
    loop: bool
    shapes: tuple[tuple[str, str], ...] = ()
    """What the loop binds and how tensors are held there, where something is carried: see `observe.shapes_held`."""
    apart: bool = False
    """The second cannot begin where the first does: gradients were read in between, or a sum would have no graph."""
    losses: bool = False
    """Several losses share a graph, and one line goes backward from each."""


@dataclass(frozen=True, slots=True)
class GraphKept(Event):
    """GG201, GG202: graph of earlier iterations is held when an iteration ends."""

    how: str
    """`accumulate` or `store`."""
    text: str
    loop: Place
    activations: bool
    """Saved tensors stay alive too, not graph nodes only."""
    holds: str
    statement: ast.stmt | None = None
    many: bool = False
    """`text` names a tuple of tensors."""
    inside: bool = False
    """The statement stores an object that holds the tensor, not the tensor itself."""
    trained: bool = False
    """A backward in the loop goes through the kept value; for stored values, a backward of a later iteration."""
    fed: tuple[str, ...] = ()
    """Names of the values with a graph that the statement adds to the kept value; an empty name for an unnamed value."""
    shared: bool = False
    """Code that is not followed may go through the graph, or the tensor has attributes that another one lacks."""
    lasting: bool = False
    """It grows in a loop that trains for very many or unknown passes, and no loop around that begins anew."""


@dataclass(frozen=True, slots=True)
class GraphReleased(Event):
    """Some path of the loop releases or differentiates the values that this statement keeps, so keeping them is fine."""

    loop: Place


@dataclass(frozen=True, slots=True)
class UnusedGraph(Event):
    """GG204: recorded but never differentiated."""

    text: str
    why: str
    """`bare`, `target`, `eval` (the network is in eval mode), or `unused`."""
    shared: bool = False
    """Code that is not followed may go through the graph."""
    loop: Place | None = None
    """The loop that evaluates."""
    caller: Place | None = None
    """Where the function that evaluates calls the one with the forward in it: there the guard is missing."""


@dataclass(frozen=True, slots=True)
class BrokenGraph(Event):
    """GG205: a value that should train is cut off and flows back into a loss."""

    how: str
    text: str
    loss: Place | None
    raises: bool
    starved: frozenset[ast.AST] = frozenset()
    """Where the parameters were made that no backward of the path reaches."""


@dataclass(frozen=True, slots=True)
class RetainGraph(Event):
    """GG206: `retain_graph=True` with no second backward through that graph."""

    grows: bool
    shared: bool = False
    """Code that is not followed may go through it, too."""


@dataclass(frozen=True, slots=True)
class CreateGraphCycle(Event):
    """GG207: `backward(create_graph=True)` keeps `.grad` and graph in a cycle."""

    text: str


@dataclass(frozen=True, slots=True)
class DeviceUse(Event):
    """GG210, GG301 to GG304: what each pass of a loop asks of the device. Which kind of use it is, its class tells."""

    how: str
    """Of a read: `item`, `tolist`, `cpu`, `numpy`, `float`, `bool`, `print`, `index`, `mask`, ..."""
    text: str
    loop: Place | None
    guarded: bool
    device: str
    """`accelerator`, `cpu` or `unknown`."""
    per: str = "step"
    """`step`, `parameter`, `element`, `call` (a method that is called once a step) or `once`."""
    compiled: bool = False
    statement: ast.stmt | None = None
    settled: bool = False
    """A later pass of the loop has shown whether it is guarded; a first pass knows the loop's counter."""


@dataclass(frozen=True, slots=True)
class HostRead(DeviceUse):
    """GG301, GG302, GG303: a value is read from the device."""

    implicit: bool = False
    before_backward: bool = False
    """A backward through the tensor that is read comes later."""
    used: str = ""
    """`guarded` where the value is used under guards only that the read is not under, or empty."""
    checks: bool = False
    """A distribution checks its arguments."""
    mixed: bool = False
    """Not all that is compared are tensors."""


@dataclass(frozen=True, slots=True)
class DeviceCopy(DeviceUse):
    """GG304: a value of the host is copied to the device, one that could have been there.

    how: `number`, as of `torch.tensor(0.5, device=device)`; `made`, of what a factory has made on the host; `values`,
    constants; `same`, the tensor that the last pass has copied; `pageable`, asked for without waiting, of a memory that
    is not pinned.
    """

    source: Place | None = None
    """Where the tensor, or the loader that gave it, was made."""


@dataclass(frozen=True, slots=True)
class DevicePile(DeviceUse):
    """GG210: a tensor without a graph that each pass over the data puts into a list."""
