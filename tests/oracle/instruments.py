"""Counts live saved tensors, live nodes and host reads while a program runs in this process. Imports torch.

Saved tensors are seen through `saved_tensors_hooks`, so version checks are off: never judge errors with this.
"""

from __future__ import annotations

import ast
import sys
import types
import weakref
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from tests.oracle.programs import execute

TICK = "__oracle_tick__"
READING = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)
HOST_METHODS = {"cpu", "numpy", "tolist", "__repr__"}
"""What reads without an operator that a dispatch mode sees."""


class Instruments:
    """All counters of one run."""

    def __init__(self) -> None:
        self.live_bytes = 0
        self.live_nodes = 0
        self.loops: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.steps: list[tuple[int, int]] = []
        self.reads: dict[int, Counter[str]] = defaultdict(Counter)
        self.gradient_seen: dict[int, list[bool]] = {}

    def sample(self) -> tuple[int, int]:
        return (self.live_bytes, self.live_nodes)

    def tick(self, line: int) -> None:
        self.loops[line].append(self.sample())

    def pack(self, tensor: torch.Tensor) -> Any:
        held = _Held(tensor.detach())
        # A single number is no bigger than the node that keeps it.
        size = tensor.numel() * tensor.element_size() if tensor.numel() > 1 else 0
        self.live_bytes += size
        weakref.finalize(held, self._forget_bytes, size)
        return held

    def _forget_bytes(self, size: int) -> None:
        self.live_bytes -= size

    def _forget_node(self) -> None:
        self.live_nodes -= 1

    def see_nodes(self, value: Any) -> None:
        """Marks every node that is new; a mark lives in the C++ node and dies with it."""
        pending = [t.grad_fn for t in tensors_in(value) if t.grad_fn is not None]
        while pending:
            node = pending.pop()
            if node is None or "oracle" in node.metadata:
                continue
            mark = _Mark()
            node.metadata["oracle"] = mark
            self.live_nodes += 1
            weakref.finalize(mark, self._forget_node)
            if not hasattr(node, "variable"):
                pending.extend(n for n, _ in node.next_functions)

    def before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        line = program_line()
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        seen = self.gradient_seen.setdefault(line or 0, [False] * len(parameters))
        for index, parameter in enumerate(parameters[: len(seen)]):
            grad = parameter.grad
            if grad is not None and not seen[index]:
                with _quiet():
                    seen[index] = bool((grad != 0).any())

    def after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self.steps.append(self.sample())


class _Held:
    __slots__ = ("__weakref__", "tensor")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor


class _Mark:
    __slots__ = ("__weakref__",)


_silence = 0


@contextmanager
def _quiet() -> Iterator[None]:
    """The instruments' own reads do not count."""
    global _silence
    _silence += 1
    try:
        yield
    finally:
        _silence -= 1


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)


def program_line() -> int | None:
    """Line of the innermost frame that belongs to the program."""
    frame: types.FrameType | None = sys._getframe(1)
    path = sys.argv[0]
    while frame is not None:
        if frame.f_code.co_filename == path:
            return frame.f_lineno
        frame = frame.f_back
    return None


class _Functions(TorchFunctionMode):
    def __init__(self, instruments: Instruments) -> None:
        super().__init__()
        self.instruments = instruments

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        elements = func is torch.tensor and sum(1 for _ in tensors_in(args[0])) if args else 0
        if (name in HOST_METHODS or elements) and not _silence:
            line = program_line()
            if line is not None:
                what = "torch.tensor" if elements else f"Tensor.{name}"
                self.instruments.reads[line][what] += int(elements) or 1
        with torch._C.DisableTorchFunction():
            self.instruments.see_nodes(result)
            if name.endswith("_") or name == "__setitem__":
                self.instruments.see_nodes(args)
        return result


class _Dispatches(TorchDispatchMode):
    def __init__(self, instruments: Instruments) -> None:
        super().__init__()
        self.instruments = instruments

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not _silence:
            what = reads_host(func, args, kwargs or {})
            if what is not None:
                line = program_line()
                if line is not None:
                    self.instruments.reads[line][what] += 1
        return func(*args, **(kwargs or {}))


def reads_host(func: Any, args: Any, kwargs: Any) -> str | None:
    """The name of an operator that makes the host wait for a device; None for all others."""
    name = func._schema.name.removeprefix("aten::")
    if name in ("index", "index_put", "index_put_", "_index_put_impl_"):
        masks = [i for i in args[1] if isinstance(i, torch.Tensor) and i.dtype in (torch.bool, torch.uint8)]
        filled = name != "index" and args[2].numel() == 1
        return f"aten::{name}(mask)" if masks and not filled else None
    if name == "repeat_interleave" and func._overloadname == "Tensor" and kwargs.get("output_size") is None:
        return "aten::repeat_interleave"
    if name != "repeat_interleave" and any(tag in func.tags for tag in READING):
        return f"aten::{name}"
    return None


class _Ticks(ast.NodeTransformer):
    """Calls `tick(line of the loop)` at the end of every pass, however the pass ends."""

    def _loop(self, node: Any) -> Any:
        self.generic_visit(node)
        call = ast.Expr(ast.Call(ast.Name(TICK, ast.Load()), [ast.Constant(node.lineno)], []))
        node.body = [ast.Try(body=node.body, handlers=[], orelse=[], finalbody=[call])]
        for new in ast.walk(call):
            ast.copy_location(new, node)
        ast.copy_location(node.body[0], node)
        return node

    visit_For = visit_While = visit_AsyncFor = _loop


def with_ticks(code: str, path: str) -> types.CodeType:
    tree = _Ticks().visit(ast.parse(code, path))
    return compile(ast.fix_missing_locations(tree), path, "exec")


def run_measured(code: str, prelude: str) -> dict[str, Any]:
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    instruments = Instruments()

    @contextmanager
    def inside() -> Iterator[None]:
        before = register_optimizer_step_pre_hook(instruments.before_step)
        after = register_optimizer_step_post_hook(instruments.after_step)
        hooks = torch.autograd.graph.saved_tensors_hooks(instruments.pack, lambda held: held.tensor)
        try:
            with hooks, _Functions(instruments), _Dispatches(instruments):
                yield
        finally:
            before.remove()
            after.remove()

    ran = execute(code, prelude, inside=inside, transform=with_ticks, extra={TICK: instruments.tick})
    return {
        "loops": dict(instruments.loops),
        "steps": instruments.steps,
        "reads": {line: dict(counts) for line, counts in instruments.reads.items()},
        "without": {
            line: (tuple(i for i, good in enumerate(seen) if not good), len(seen))
            for line, seen in instruments.gradient_seen.items()
        },
        "error": f"{ran.raised.type}: {ran.raised.text}" if ran.raised else "",
    }
