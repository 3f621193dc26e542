"""Which recorded graphs a program ever differentiates, seen by marking nodes under torch. Imports torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from tests.oracle.instruments import program_line, tensors_in

MARK = "usage"


@dataclass(slots=True, eq=False)
class Forward:
    """One call of a module from outside any module."""

    line: int
    module: torch.nn.Module
    fed: bool
    """An input requires grad."""
    in_training: bool
    """The module was in training mode."""
    recorded: bool = False
    walked: bool = False


@dataclass(slots=True, eq=False)
class Retained:
    """One backward that kept its graph."""

    line: int
    walked_again: bool = False


class Usage:
    """What was recorded and retained, and what became of it."""

    def __init__(self) -> None:
        self.forwards: list[Forward] = []
        self.retained: list[Retained] = []
        self.owned: set[int] = set()
        """Parameters that an optimizer holds, by identity."""
        self._kept: list[Any] = []
        self._depth = 0
        self._running: list[tuple[int, bool, bool]] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Module calls, backward calls and optimizers made inside are noted."""
        modules = torch.nn.modules.module
        hooks = (
            modules.register_module_forward_pre_hook(self._enter),
            modules.register_module_forward_hook(self._leave, always_call=True),
        )
        backward, grad, start = torch.autograd.backward, torch.autograd.grad, torch.optim.Optimizer.__init__
        torch.autograd.backward, torch.autograd.grad = self._noting(backward, 1), self._noting(grad, 2)

        def noted(optimizer: Any, params: Any, defaults: Any) -> None:
            start(optimizer, params, defaults)
            held = [p for group in optimizer.param_groups for p in group["params"]]
            self.owned.update(map(id, held))
            self._kept += held

        torch.optim.Optimizer.__init__ = noted  # type: ignore[method-assign]
        try:
            yield
        finally:
            torch.autograd.backward, torch.autograd.grad = backward, grad
            torch.optim.Optimizer.__init__ = start  # type: ignore[method-assign]
            for hook in hooks:
                hook.remove()

    def foreign(self, forward: Forward) -> bool:
        """Whether the module has something to train that no optimizer holds, and nothing that one does."""
        trainable = [p for p in forward.module.parameters() if p.requires_grad]
        return bool(trainable and self.owned) and not any(id(p) in self.owned for p in trainable)

    def _enter(self, module: torch.nn.Module, inputs: Any) -> None:
        if not self._depth:
            fed = any(t.requires_grad for t in tensors_in(inputs))
            self._running.append((program_line() or 0, fed, module.training))
        self._depth += 1

    def _leave(self, module: torch.nn.Module, inputs: Any, output: Any) -> None:
        self._depth -= 1
        if self._depth:
            return
        line, fed, in_training = self._running.pop()
        made = Forward(line, module, fed, in_training)
        for node in _below(tensors_in(output)):
            if MARK not in node.metadata:
                node.metadata[MARK] = [made]
                made.recorded = True
        self.forwards.append(made)

    def _noting(self, function: Callable[..., Any], first: int) -> Callable[..., Any]:
        def noting(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            roots = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
            nodes = _below(roots)
            for node in nodes:
                for mark in node.metadata.get(MARK, ()):
                    if isinstance(mark, Forward):
                        mark.walked = True
                    else:
                        mark.walked_again = True
            if _asked(args, kwargs, first, "retain_graph") and not _asked(
                args, kwargs, first + 1, "create_graph"
            ):
                kept = Retained(program_line() or 0)
                self.retained.append(kept)
                for node in nodes:
                    node.metadata.setdefault(MARK, []).append(kept)
            return function(tensors, *args, **kwargs)

        return noting


def _asked(args: Any, kwargs: Any, at: int, name: str) -> bool:
    return bool(kwargs[name] if name in kwargs else args[at] if at < len(args) else False)


def _below(tensors: Any) -> list[Any]:
    """Nodes below the tensors, without those of leaves."""
    pending = [t.grad_fn for t in tensors if isinstance(t, torch.Tensor)]
    found: dict[Any, None] = {}
    while pending:
        node = pending.pop()
        if node is None or node in found or hasattr(node, "variable"):
            continue
        found[node] = None
        pending.extend(below for below, _ in node.next_functions)
    return list(found)
