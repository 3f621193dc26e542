"""Which lines carry a graph from one backward to another that fails, seen by watching the nodes under torch."""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from tests.fuzz.calls import tensors_of
from tests.fuzz.verdict import PATH

Node = Any


class Trail:
    """What each assignment bound and what each backward freed, in one run."""

    def __init__(self) -> None:
        self.bound: list[tuple[int, Node]] = []
        self.freed: list[tuple[int, set[Node]]] = []
        self.lines: set[int] = set()
        """Lines at fault: filled when a backward raises."""

    def seen(self, line: int, value: Any) -> Any:
        """Called by the program with everything that it binds or stores."""
        for tensor in _tensors(value):
            try:
                node = tensor.grad_fn
            except RuntimeError:
                continue
            if node is not None:
                self.bound.append((line, node))
        return value

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Backward and grad calls made inside are noted."""
        backward, grad = torch.autograd.backward, torch.autograd.grad
        torch.autograd.backward, torch.autograd.grad = self._noting(backward), self._noting(grad)
        try:
            yield
        finally:
            torch.autograd.backward, torch.autograd.grad = backward, grad

    def _noting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def noting(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            nodes, line = _reachable(tensors), _line()
            try:
                result = function(tensors, *args, **kwargs)
            except RuntimeError:
                again = {node for _, earlier in self.freed for node in nodes & earlier}
                self.lines |= {at for at, node in self.bound if node in again}
                self.lines |= {at for at, earlier in self.freed if earlier & again} | {line}
                raise
            if not kwargs.get("retain_graph") and not kwargs.get("create_graph"):
                self.freed.append((line, nodes))
            return result

        return noting


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, dict):
        return [tensor for item in value.values() for tensor in tensors_of(item)]
    return tensors_of(list(vars(value).values()) if type(value).__name__ == "SimpleNamespace" else value)


def _reachable(tensors: Any) -> set[Node]:
    """Nodes below the roots, without those of leaves."""
    roots = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
    pending = [t.grad_fn for t in roots if isinstance(t, torch.Tensor)]
    found: set[Node] = set()
    while pending:
        node = pending.pop()
        if node is None or node in found or hasattr(node, "variable"):
            continue
        found.add(node)
        pending.extend(below for below, _ in node.next_functions)
    return found


def _line() -> int:
    """The line of the program that is running."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename != PATH:
        frame = frame.f_back
    return frame.f_lineno


def noted(node: ast.stmt) -> ast.stmt:
    """The statement with what it binds, stores or writes passed through `_seen`."""
    if isinstance(node, ast.Assign):
        node.value = _passed(node.value, node)
    elif isinstance(node, ast.AugAssign):
        after = copy.deepcopy(node.target)
        after.ctx = ast.Load()
        return ast.If(ast.Constant(True), [node, ast.Expr(_passed(after, node))], [])
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        if _writes(node.value):
            node.value = _passed(node.value, node)
        else:
            node.value.args = [
                arg if isinstance(arg, ast.Starred) else _passed(arg, node) for arg in node.value.args
            ]
    return node


def binds(node: ast.stmt) -> bool:
    """Whether `noted` has anything to do there."""
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        return True
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and (
        _writes(call)
        or (
            isinstance(call.func, ast.Attribute)
            and call.func.attr in ("append", "insert", "extend", "update", "setdefault")
        )
    )


def _writes(call: ast.Call) -> bool:
    """`x.add_(y)`, `F.relu_(x)`: what comes back is the tensor that was written."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return name.endswith("_") and not name.endswith("__")


def _passed(value: ast.expr, node: ast.stmt) -> ast.expr:
    return ast.Call(ast.Name("_seen", ast.Load()), [ast.Constant(node.lineno), value], [])
