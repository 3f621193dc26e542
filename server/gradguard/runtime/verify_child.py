"""The process that runs both versions of a file for `verify`. Imports torch."""

from __future__ import annotations

import json
import random
import sys
import types
from collections import ChainMap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

RELATIVE = 1e-5


@dataclass(slots=True)
class Ran:
    """What one version did."""

    values: dict[str, torch.Tensor] = field(default_factory=dict)
    gradients: dict[str, torch.Tensor] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    forward_error: str = ""
    backward_error: str = ""
    peak: int = 0


class Unusable(Exception):
    """Why a version cannot be run at all."""


def main(given: str, answer: str) -> None:
    """Read a task, write what was found."""
    found = compare(json.loads(Path(given).read_text("utf-8")))
    part = Path(f"{answer}.part")
    part.write_text(json.dumps(found), "utf-8")
    part.replace(answer)


def compare(task: dict[str, Any]) -> dict[str, Any]:
    """Run both versions of a `verify.Task` in this process; the fields of a `verify.Comparison`."""
    _load()
    try:
        return _compared(_run(task, task["before"]), _run(task, task["after"]))
    except Unusable as error:
        return {"trouble": str(error)}


def _load() -> None:
    """What torch loads of its own and of Python's on first use is not to come from the folder of the user's file."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        torch.autograd.backward(torch.ones(1, requires_grad=True) * 2)
    _peak(profiler)


def _run(task: dict[str, Any], text: str) -> Ran:
    torch.manual_seed(0)
    random.seed(0)
    ran = Ran()
    work = _function if task["function"] else _script
    started = work(task, text, ran)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        started()
    ran.peak = _peak(profiler)
    return ran


def _peak(profiler: Any) -> int:
    events = [e for e in profiler.profiler.kineto_results.events() if e.name() == "[memory]"]
    used = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        used += event.nbytes()
        peak = max(peak, used)
    return peak


def _module(task: dict[str, Any], text: str, name: str) -> types.ModuleType:
    made = types.ModuleType(name)
    made.__file__ = task["path"]
    sys.modules[name] = made
    folder = str(Path(task["path"]).resolve().parent)
    if sys.path[0] != folder:
        sys.path.insert(0, folder)
    sys.argv = [task["path"]]
    return made


def _script(task: dict[str, Any], text: str, ran: Ran) -> Callable[[], None]:
    """The whole file: roots and gradients of each backward, tensors at the end."""
    module = _module(task, text, "__main__")
    code = compile(text, task["path"], "exec")

    def work() -> None:
        try:
            with _backwards(ran):
                exec(code, module.__dict__)
        except Exception as error:
            if not ran.backward_error:
                ran.forward_error = _said(error)
        for name, value in module.__dict__.items():
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                ran.values[name] = value.detach().clone()

    return work


@contextmanager
def _backwards(ran: Ran) -> Iterator[None]:
    plain = torch.autograd.backward

    def recording(tensors: Any, *args: Any, **kwargs: Any) -> None:
        roots = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        call = f"backward {sum(name.endswith('root 0') for name in ran.values) + 1}"
        ran.values.update({f"{call} root {i}": root.detach().clone() for i, root in enumerate(roots)})
        leaves = _leaves(roots)
        try:
            plain(tensors, *args, **kwargs)
        except RuntimeError as error:
            ran.backward_error = _said(error)
            raise
        for index, leaf in enumerate(leaves):
            if leaf.grad is not None:
                ran.gradients[f"{call} leaf {index}"] = leaf.grad.detach().clone()

    torch.autograd.backward = recording
    try:
        yield
    finally:
        torch.autograd.backward = plain


def _leaves(roots: list[torch.Tensor]) -> list[torch.Tensor]:
    """Leaves in the order in which the program made them, as far as their addresses tell."""
    found: dict[int, torch.Tensor] = {}
    waiting: list[Any] = [root.grad_fn for root in roots]
    seen: set[Any] = set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if variable is not None:
            found[id(variable)] = variable
        waiting.extend(one for one, _ in node.next_functions)
    return sorted(found.values(), key=lambda leaf: (tuple(leaf.shape), leaf.detach().double().sum().item()))


def _function(task: dict[str, Any], text: str, ran: Ran) -> Callable[[], None]:
    """One function with the given inputs; its results are weighted, summed and differentiated."""
    module = _module(task, text, "__verify__")
    try:
        exec(compile(text, task["path"], "exec"), module.__dict__)
    except Exception as error:
        raise Unusable(f"the file cannot be loaded: {_said(error)}") from None
    names = ChainMap(module.__dict__, vars(torch.nn), vars(torch))
    inputs: dict[str, Any] = {}
    for name, expression in task["inputs"].items():
        try:
            inputs[name] = eval(expression, {"__builtins__": __builtins__}, names)
        except Exception as error:
            raise Unusable(f"input {name}: {_said(error)}") from None
    call, owner = _callee(module, task["function"], inputs)
    watched = dict(_tensors(inputs, ""))
    watched.update(_tensors(owner, "self"))
    versions = {name: tensor._version for name, tensor in watched.items()}
    random_state = torch.get_rng_state()

    def work() -> None:
        torch.set_rng_state(random_state)
        try:
            result = call(**{name: value for name, value in inputs.items() if name != "self"})
        except Exception as error:
            ran.forward_error = _said(error)
            return
        results = dict(_tensors(result, "result"))
        ran.values = {name: value.detach().clone() for name, value in results.items()}
        ran.written = {name for name, tensor in watched.items() if tensor._version != versions[name]}
        torch.manual_seed(1)
        roots = [value for value in results.values() if value.requires_grad]
        try:
            if roots:
                torch.autograd.backward([(root * torch.rand_like(root)).sum() for root in roots])
        except RuntimeError as error:
            ran.backward_error = _said(error)
            return
        for name, tensor in watched.items():
            if tensor.is_leaf and tensor.grad is not None:
                ran.gradients[name] = tensor.grad.detach().clone()

    return work


def _callee(module: types.ModuleType, name: str, inputs: dict[str, Any]) -> tuple[Callable[..., Any], Any]:
    """What to call, and the object it belongs to."""
    first, _, method = name.partition(".")
    found = getattr(module, first, None)
    if found is None:
        raise Unusable(f"there is no {first} in the file")
    if not isinstance(found, type):
        return found, None
    owner = inputs.get("self")
    if owner is None:
        try:
            owner = found()
        except Exception as error:
            raise Unusable(
                f"{first}() cannot be made: {_said(error)}; give self=... among the inputs"
            ) from None
    call = getattr(owner, method) if method else owner
    if not callable(call):
        raise Unusable(f"{name} cannot be called")
    return call, owner


def _tensors(value: Any, path: str) -> Iterator[tuple[str, torch.Tensor]]:
    """Floating tensors in a value, by the way to them."""
    if isinstance(value, torch.Tensor):
        if value.is_floating_point():
            yield path, value
    elif isinstance(value, torch.nn.Module):
        for name, parameter in value.named_parameters():
            yield f"{path}.{name}", parameter
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _tensors(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _tensors(item, f"{path}[{index}]")


def _compared(before: Ran, after: Ran) -> dict[str, Any]:
    if before.forward_error or before.backward_error:
        raise Unusable(
            f"the version to compare with does not run: {before.forward_error or before.backward_error}"
        )
    forward = (
        [f"raises {after.forward_error}"] if after.forward_error else _differing(before.values, after.values)
    )
    gradients = (
        [] if after.forward_error or after.backward_error else _differing(before.gradients, after.gradients)
    )
    return {
        "forward": forward,
        "backward": after.backward_error,
        "gradients": gradients,
        "compared": len(before.gradients),
        "changed": sorted(after.written - before.written),
        "peak_before": before.peak,
        "peak_after": after.peak,
    }


def _differing(right: dict[str, torch.Tensor], got: dict[str, torch.Tensor]) -> list[str]:
    found = []
    for name, value in right.items():
        other = got.get(name)
        if other is None:
            found.append(f"{name} is missing")
        elif other.shape != value.shape:
            found.append(f"{name} has shape {tuple(other.shape)} instead of {tuple(value.shape)}")
        elif value.numel():
            gap = (value.double() - other.double()).abs().nan_to_num(0.0).max().item()
            if gap > RELATIVE * max(1e-3, value.double().abs().nan_to_num(0.0).max().item()):
                found.append(f"{name} differs by up to {gap:.3g}")
    return found


def _said(error: BaseException) -> str:
    """The error in one line, without what torch appends about shapes and hints."""
    first = (str(error).strip().splitlines() or [""])[0].partition(": [torch.")[0].partition(". ")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


if __name__ == "__main__":
    main(*sys.argv[1:3])
