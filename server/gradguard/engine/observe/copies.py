"""What each pass copies from the host to a device, though it could have been there.

`torch.tensor(0.5, device=device)` makes a tensor on the host and copies it: seen with torch 2.13 on pretended devices,
`_to_copy` from `cpu` to `cuda:0`, where `torch.full` and `scalar_tensor` are one operation on the device. A copy out of
memory that is not pinned waits for all work that was queued before, as `.item()` does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable

from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.conditions import known_truth
from gradguard.engine.domain.events import DeviceCopy
from gradguard.engine.domain.keys import LOADER, Key, root
from gradguard.engine.domain.spelling import source_text
from gradguard.engine.domain.tensors import Place, Tensor
from gradguard.engine.domain.values import ListV, Sym, TupleV, Value
from gradguard.engine.observe import reads
from gradguard.engine.state.run import Run

_NUMBERS = frozenset({"number", "int", "index", "bool"})


def device_of(value: Value) -> str:
    """`accelerator`, `cpu`, `unknown`, or empty for no device at all. One that is computed is an accelerator."""
    if isinstance(value, str):
        return "cpu" if value.startswith("cpu") else "accelerator"
    if isinstance(value, Sym):
        known = root(value.key)
        # `x.device` is where `x` lies.
        of_tensor = known[0] == "device" and len(known) > 2
        return str(known[2] or "unknown") if of_tensor else "accelerator"
    return "accelerator" if type(value) is int else ""


def made_of(data: Value) -> str:
    """What `torch.tensor` is given, as `Tensor.made_of` has it: `number`, also as the only item of a list, or `values`."""
    if _is_number(data):
        return "number"
    if (
        isinstance(data, (ListV, TupleV))
        and len(data.items) == 1
        and not data.open
        and _is_number(data.items[0])
    ):
        return "number"
    return "values" if _constants(data) is not None else ""


def from_numbers(run: Run, call: Call, data: Value, device: Value) -> None:
    """`torch.tensor(data, device=device)`."""
    kind = made_of(data)
    target = device_of(device)
    if kind and target not in ("", "cpu"):
        _note(run, call, kind, target, data=_constants(data) if kind == "values" else None)


def moved(run: Run, call: Call, node: ast.AST, owner: Tensor, device: Value) -> None:
    """`owner.to(device)` and the like."""
    target = _target(call, device)
    if target in ("", "cpu"):
        return
    receiver = (
        node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    )
    if owner.device == "cpu" and owner.made_of and receiver is owner.created.node:
        how = "made" if owner.made_of == "size" else owner.made_of
        # The number of a tensor of constants tells no pass from the last, but the text of constants is the same.
        _note(run, call, how, target, data=source_text(receiver) if how == "values" else None)
        return
    if owner.device == "cpu" and not owner.memory.held and not owner.parameter:
        writes = len(owner.memory.writes), owner.counter.value
        _note(run, call, "same", target, data=(owner.number, writes))
    if owner.pageable is not None and owner.device in ("cpu", None) and _at_once(call):
        _note(run, call, "pageable", target, source=owner.pageable)


def batch_moved(run: Run, call: Call, owner: Sym, device: Value) -> None:
    """`batch.to(device)`, of what a loader gave."""
    target = _target(call, device)
    loader = unpinned(owner)
    if target not in ("", "cpu") and loader is not None and _at_once(call):
        _note(run, call, "pageable", target, source=loader)


def _target(call: Call, device: Value) -> str:
    """Where something is moved to. `x.to(wanted)` may mean a dtype."""
    if isinstance(device, Tensor):
        return device.device or "unknown"
    if isinstance(device, Sym) and device.kind not in ("device", "str"):
        spelled = call.expr(0, "device")
        if spelled is None or not _DEVICES.search(source_text(spelled)):
            return ""
    return device_of(device)


_DEVICES = re.compile(r"dev|cuda|gpu|rank", re.IGNORECASE)


def unpinned(value: Sym) -> Place | None:
    """Where the loader was made that gave a value, or what it is a part of, in memory that is not pinned."""
    key: object = value.key
    while isinstance(key, Key) and key.parts[0] != LOADER:
        if any(isinstance(part, str) and part in _MOVES for part in key.parts[1:3]):
            return None
        key = key.parts[0]
    place = key.parts[2] if isinstance(key, Key) and len(key.parts) > 2 else None
    return place if isinstance(place, Place) else None


_MOVES = frozenset({"method", "to", "cuda", "cpu", "float", "half", "long", "double", "moved", "call"})
"""Steps from a value to one that lies elsewhere in memory."""


def pinned_said(call: Call) -> Place | None:
    """`Tensor.pageable` of what a factory makes."""
    return None if call.kwargs.get("pin_memory", False) else call.place


def _at_once(call: Call) -> bool:
    flags = [value for value in call.args if isinstance(value, bool)]
    return known_truth(call.kwargs.get("non_blocking", flags[0] if flags else False)) is True


def _is_number(value: Value) -> bool:
    return isinstance(value, (bool, int, float)) or (isinstance(value, Sym) and value.kind in _NUMBERS)


def _constants(data: Value, depth: int = 0) -> Hashable:
    """Stands for numbers in lists: equal for the same numbers. None for anything else."""
    if _is_number(data):
        return data.key if isinstance(data, Sym) else data
    if not isinstance(data, (ListV, TupleV)) or data.open or not data.items or depth > MOST_DEEP:
        return None
    parts = [_constants(item, depth + 1) for item in data.items[:MOST_ITEMS]]
    return None if None in parts or len(data.items) > MOST_ITEMS else tuple(parts)


MOST_DEEP, MOST_ITEMS = 4, 64


def _note(
    run: Run, call: Call, how: str, device: str, *, source: Place | None = None, data: Hashable = None
) -> None:
    loop = run.loops[-1] if run.loops else None
    per = reads.how_often(run, loop)
    if per == "once" or run.compiled or (how == "same" and per == "call"):
        return
    run.trail.act()
    event = DeviceCopy(
        call.place,
        device == "accelerator",
        how,
        source_text(call.place.node),
        loop.place if loop else None,
        reads.guarded(run, loop),
        device,
        per,
        False,
        run.statement,
        source=source,
    )
    reads.noted(run, event, loop, data=data)
