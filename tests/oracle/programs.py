"""Runs one program inside a forked child and says how it ended. Imports torch."""

from __future__ import annotations

import io
import os
import random
import sys
import tempfile
import traceback
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

PROGRAM = "program.py"


@dataclass(slots=True)
class Raised:
    """`line` is the innermost line of the program in the traceback, None if there is none."""

    type: str
    text: str
    line: int | None


@dataclass(slots=True)
class Ran:
    """How a program ended, with its namespace still alive in this process."""

    raised: Raised | None
    namespace: dict[str, Any]
    stdout: str = ""


@dataclass(slots=True)
class Gradients:
    """Gradients as numpy arrays, in the order in which the program obtained them: (what, array).

    calls has those of each call together, without what has none; roots is what the backwards began with.
    """

    found: list[tuple[str, Any]] = field(default_factory=list)
    calls: list[list[Any]] = field(default_factory=list)
    roots: list[Any] = field(default_factory=list)
    caught: list[Raised] = field(default_factory=list)


def seed() -> None:
    import numpy

    torch.manual_seed(0)
    random.seed(0)
    numpy.random.seed(0)


def execute(
    code: str,
    prelude: str = "",
    *,
    inside: Callable[[], AbstractContextManager[Any]] = nullcontext,
    name: str = PROGRAM,
    transform: Callable[[str, str], types.CodeType] | None = None,
    extra: dict[str, Any] | None = None,
) -> Ran:
    """Runs `code` as `__main__` in an empty directory; the prelude runs first in the same namespace."""
    directory = tempfile.mkdtemp(prefix="oracle-")
    os.chdir(directory)
    path = str(Path(directory, name))
    Path(path).write_text(code)
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=__builtins__, **(extra or {}))
    sys.modules["__main__"] = main
    sys.argv = [path]
    sys.path.insert(0, directory)
    raised = None
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if prelude:
            exec(compile(prelude, "<prelude>", "exec"), main.__dict__)
        seed()
        try:
            compiled = transform(code, path) if transform else compile(code, path, "exec")
            with inside():
                exec(compiled, main.__dict__)
        except SystemExit as stop:
            if stop.code not in (None, 0):
                raised = describe(stop, path)
        except BaseException as error:
            raised = describe(error, path)
    return Ran(raised, main.__dict__, output.getvalue())


def describe(error: BaseException, path: str) -> Raised:
    """The innermost line of the program in the traceback, else in the stack of the caller."""
    line = None
    for inner, number in traceback.walk_tb(error.__traceback__):
        if inner.f_code.co_filename == path:
            line = number
    if line is None and isinstance(error, SyntaxError):
        line = error.lineno
    frame: types.FrameType | None = sys._getframe(1)
    while line is None and frame is not None:
        line = frame.f_lineno if frame.f_code.co_filename == path else None
        frame = frame.f_back
    return Raised(type(error).__name__, str(error), line)


@contextmanager
def cloned_saves() -> Iterator[None]:
    """Every saved tensor is replaced by a copy made when it is saved; version checks do not apply then."""
    with torch.autograd.graph.saved_tensors_hooks(_clone, lambda x: x):
        yield


def _clone(tensor: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return tensor.detach().clone()


@contextmanager
def gradients_recorded(into: Gradients) -> Iterator[None]:
    """Records what every backward and grad call gave to the leaves it can reach."""
    backward, grad = torch.autograd.backward, torch.autograd.grad

    def note(what: str, gradients: Sequence[Any]) -> None:
        arrays = [as_array(gradient) for gradient in gradients]
        into.found.extend((f"{what} {i}", array) for i, array in enumerate(arrays))
        into.calls.append([array for array in arrays if array is not None])

    def recording_backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
        leaves = reachable_leaves(tensors)
        call = f"backward {len(into.found)}"
        try:
            backward(tensors, *args, **kwargs)
        except BaseException as error:
            into.caught.append(describe(error, sys.argv[0]))
            raise
        into.roots.extend(map(as_array, [tensors] if isinstance(tensors, torch.Tensor) else tensors))
        note(f"{call} leaf", [leaf.grad for leaf in leaves])

    def recording_grad(*args: Any, **kwargs: Any) -> Any:
        call = f"grad {len(into.found)}"
        try:
            result = grad(*args, **kwargs)
        except BaseException as error:
            into.caught.append(describe(error, sys.argv[0]))
            raise
        note(f"{call} result", result)
        return result

    torch.autograd.backward, torch.autograd.grad = recording_backward, recording_grad
    try:
        yield
    finally:
        torch.autograd.backward, torch.autograd.grad = backward, grad


def reachable_leaves(tensors: Any) -> list[torch.Tensor]:
    roots = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
    found = [r for r in roots if isinstance(r, torch.Tensor) and r.is_leaf]
    pending = [getattr(r, "grad_fn", None) or getattr(r, "node", None) for r in roots]
    seen = set()
    while pending:
        node = pending.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        pending.extend(next_node for next_node, _ in reversed(node.next_functions))
    return found


def as_array(tensor: Any) -> Any:
    """A numpy copy that pickles (None stays None); None also for tensors of transforms and tracers, which have no data."""
    if not isinstance(tensor, torch.Tensor) or torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return None
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return None
    with torch.no_grad():
        plain = tensor.detach()
        if plain.layout is not torch.strided:
            plain = plain.to_dense()
        if plain.dtype in (torch.bfloat16, torch.float16):
            plain = plain.float()
        return plain.numpy(force=True).copy()


def run_recorded(code: str, prelude: str, cloned: bool) -> dict[str, Any]:
    """One run for the judge: how it ended and every gradient it obtained."""
    gradients = Gradients()

    @contextmanager
    def inside() -> Iterator[None]:
        with gradients_recorded(gradients), cloned_saves() if cloned else nullcontext():
            yield

    ran = execute(code, prelude, inside=inside)
    for name, value in list(ran.namespace.items()):
        if (
            isinstance(value, torch.Tensor)
            and (value.is_leaf or value.retains_grad)
            and value.grad is not None
        ):
            gradients.found.append((f"{name}.grad", as_array(value.grad)))
    return {
        "raised": ran.raised,
        "stdout": ran.stdout,
        "gradients": gradients.found,
        "caught": gradients.caught,
    }
