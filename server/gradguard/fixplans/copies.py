"""Plans for what each pass of a loop copies to the device: made there, copied once before, or out of pinned memory."""

from __future__ import annotations

import ast

from gradguard.engine.domain.events import DeviceCopy
from gradguard.engine.domain.tensors import Place
from gradguard.findings import Applicability, FixPlan, spans_text
from gradguard.fixplans.blocks import function_around
from gradguard.fixplans.model import Context
from gradguard.source.loops import loop_around


def copied(context: Context, event: DeviceCopy) -> list[FixPlan]:
    """What is for this kind of copy."""
    match event.how:
        case "number" | "made":
            return _made_there(context, event)
        case "same":
            return _copied_before(context, event)
        case "pageable" if event.source is not None and event.source.path == event.place.path:
            title = "Give the loader `pin_memory=True`"
            node = event.source.node
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("DataLoader"):
                return context.plan(
                    "set-flag", title, Applicability.UNSAFE, node, event.source, flag="pin_memory"
                )
    return []


FILLED = frozenset({"zeros", "ones", "empty", "full", "arange", "eye", "linspace", "logspace"})
RANDOM = frozenset({"rand", "randn", "randint", "randperm"})


def _made_there(context: Context, event: DeviceCopy) -> list[FixPlan]:
    """`torch.full((), 0.5, device=device)`, `torch.zeros(3, device=device)`."""
    call = event.place.node
    made = call
    match call:
        case ast.Call(ast.Attribute(ast.Call() as inner, "to"), [device], []) if _plain(device):
            made = inner
        case ast.Call(ast.Attribute(ast.Call() as inner, "cuda"), [], []):
            made = inner
    match made:
        case ast.Call(ast.Attribute(ast.Name("torch"), name), args, keywords):
            given = {keyword.arg for keyword in keywords}
        case _:
            return []
    if None in given or any(isinstance(arg, ast.Starred) for arg in args):
        return []
    if made is not call and given & {"device", "requires_grad", "pin_memory", "out", "layout"}:
        return []
    if name in ("tensor", "as_tensor"):
        if len(args) != 1 or "data" in given:
            return []
        # A number of NumPy has a dtype of its own, which `torch.tensor` keeps.
        safe = isinstance(_item(args[0]), ast.Constant)
        title = "Fill it on the device with `torch.full`"
    elif name in FILLED | RANDOM and made is not call:
        # The device draws other numbers.
        safe = name in FILLED
        title = f"Make it there with `torch.{name}(..., device=...)`"
    else:
        return []
    applicability = Applicability.SAFE if safe else Applicability.UNSAFE
    return context.plan("make-on-device", title, applicability, call, event.place)


def _item(data: ast.expr) -> ast.expr:
    one = data.elts[0] if isinstance(data, (ast.List, ast.Tuple)) and len(data.elts) == 1 else data
    return one.operand if isinstance(one, ast.UnaryOp) and isinstance(one.op, (ast.UAdd, ast.USub)) else one


def _plain(device: ast.expr) -> bool:
    while isinstance(device, ast.Attribute):
        device = device.value
    return isinstance(device, (ast.Name, ast.Constant))


def _copied_before(context: Context, event: DeviceCopy) -> list[FixPlan]:
    """`x = x.to(device)` in front of the loop, where nothing but this copy reads `x` in it and nothing behind it does."""
    source = context.analysis.sources[event.place.path]
    call = event.place.node
    loop = loop_around(source, source.span(call))
    match call:
        case ast.Call(ast.Attribute(ast.Name(name), "to"), [device], []) if _plain(device):
            pass
        case ast.Call(ast.Attribute(ast.Name(name), "cuda"), [], []):
            pass
        case _:
            return []
    if loop is None or event.loop is None or event.loop.node is not loop:
        return []
    inside = [one for one in ast.walk(loop) if isinstance(one, ast.Name)]
    used = {one.id for one in ast.walk(call) if isinstance(one, ast.Name)}
    if any(one.id in used and not isinstance(one.ctx, ast.Load) for one in inside):
        return []
    copies = [one for one in ast.walk(loop) if isinstance(one, ast.Call) and ast.dump(one) == ast.dump(call)]
    if len(copies) != sum(one.id == name for one in inside):
        return []
    function = function_around(source.tree, loop)
    for one in ast.walk(source.tree):
        if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load):
            elsewhere = function_around(source.tree, one) is not function
            if (elsewhere and function is None) or (not elsewhere and one.lineno > (loop.end_lineno or 0)):
                return []
    spans = spans_text(*(context.analysis.span(Place(event.place.path, one)) for one in copies))
    title = f"Copy `{name}` once, before the loop"
    return context.plan(
        "copy-before-loop", title, Applicability.UNSAFE, loop, event.place, name=name, uses=spans
    )
