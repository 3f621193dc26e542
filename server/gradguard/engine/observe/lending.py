"""Code that is not read is given something, and may look at it again whenever it likes.

Tensors are marked at once, with whatever they are in. What is put into an object or container afterwards is
reached through it (`escaped`), and a function that was given away reads its names when it is called.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from gradguard.engine.domain.tensors import Node, Tensor
from gradguard.engine.domain.values import (
    ArrayV,
    BuiltinMethod,
    DictV,
    FunctionV,
    Instance,
    IteratorV,
    ListV,
    Method,
    NativeV,
    PartialV,
    Sym,
    TupleV,
    Value,
)
from gradguard.engine.observe import graphs
from gradguard.engine.state.run import Run
from gradguard.source.nodes import walk

MAX_VISITS = 1000
TELLING = frozenset({
    "debug", "info", "warning", "error", "critical", "log", "log_dict", "log_metrics", "write", "echo", "add_scalar", "add_scalars",
    "add_histogram", "set_postfix", "set_description", "plot", "scatter",
})  # fmt: skip
"""What calls are named that only show what they are given."""


def lend(run: Run, values: Iterable[Value], *, told: bool = False) -> None:
    """Mark everything that these values lead to. `told`: they are only shown to people, so nobody differentiates them."""
    waiting = list(values)
    seen: set[int] = set()
    while waiting and len(seen) < MAX_VISITS:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Sym) and value.tensor is not None:
            value = value.tensor
        if isinstance(value, Tensor):
            run.trail.act()
            value.memory.held = True
            if value.node is not None and not told:
                run.lent_nodes.add(value.node)
        elif isinstance(value, ArrayV):
            if value.memory_of is not None:
                run.trail.act()
                value.memory_of.memory.held = True
        elif isinstance(value, TupleV):
            waiting += value.items
        elif isinstance(value, (ListV, DictV, Instance)):
            if not value.escaped:
                value.escaped = True
                run.trail.changed.append("[]")
                waiting += _inside(value)
            elif not isinstance(value, Instance):
                waiting += _inside(value)
        elif isinstance(value, FunctionV):
            run.trail.act()
            waiting += _read_by(run, value)
        elif isinstance(value, Method):
            waiting += (value.receiver, value.function)
        elif isinstance(value, BuiltinMethod):
            waiting.append(value.receiver)
        elif isinstance(value, NativeV):
            waiting += value.over
        elif isinstance(value, PartialV):
            waiting += (value.function, *value.args, *value.kwargs.values())
        elif isinstance(value, IteratorV):
            waiting += value.over
            waiting += value.frame.variables.values() if value.frame is not None else ()
    run.work(len(seen))


def _inside(value: ListV | DictV | Instance) -> Iterable[Value]:
    if isinstance(value, DictV):
        return [item for _, item in value.items.values()]
    return value.items if isinstance(value, ListV) else list(value.attributes.values())


def _read_by(run: Run, function: FunctionV) -> Iterator[Value]:
    """What a function sees from outside: now here, later by name."""
    yield from function.defaults.values()
    yield from function.attributes.values()
    lent = run.marks.lent_names
    if _differentiates(function.node):
        run.marks.differentiates = True
    for name in sorted(free_names(function.node) - lent):
        lent.add(name)
        home = function.scope.find(name) if function.scope is not None else None
        variables = home.variables if home is not None else function.namespace.variables
        if name in variables:
            yield variables[name]


class Lent:
    """The nodes that code which is not read may go through, at the end of a path."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._nodes: set[Node] | None = None

    def __call__(self, nodes: Iterable[Node]) -> bool:
        """Whether one of these is among them. Raises BudgetExceeded."""
        run = self._run
        if run.marks.by_name or run.marks.differentiates:
            return True
        if self._nodes is None:
            self._nodes = set(graphs.graph(run, *run.lent_nodes))
        return not self._nodes.isdisjoint(nodes)


def _differentiates(node: ast.AST) -> bool:
    known: bool | None = getattr(node, "_gradguard_differentiates", None)
    if known is None:
        known = any(
            isinstance(part, ast.Attribute) and part.attr in ("backward", "grad") for part in walk(node)
        )
        node._gradguard_differentiates = known  # type: ignore[attr-defined]
    return known


def names_in(node: ast.AST) -> tuple[str, ...]:
    """Names that occur in a function, sorted: of the scope around it, it holds these only."""
    known: tuple[str, ...] | None = getattr(node, "_gradguard_names", None)
    if known is None:
        known = tuple(sorted({part.id for part in walk(node) if isinstance(part, ast.Name)}))
        node._gradguard_names = known  # type: ignore[attr-defined]
    return known


def free_names(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> frozenset[str]:
    """Names that a function reads or declares, and does not bind itself."""
    known: frozenset[str] | None = getattr(node, "_gradguard_free", None)
    if known is None:
        body = node.body if isinstance(node.body, list) else [node.body]
        parts = [part for statement in body for part in walk(statement)]
        declared = {name for p in parts if isinstance(p, (ast.Global, ast.Nonlocal)) for name in p.names}
        read = {p.id for p in parts if isinstance(p, ast.Name) and isinstance(p.ctx, ast.Load)}
        bound = {p.id for p in parts if isinstance(p, ast.Name) and isinstance(p.ctx, ast.Store)}
        bound |= {part.arg for part in walk(node.args) if isinstance(part, ast.arg)}
        known = frozenset((read - bound) | declared)
        node._gradguard_free = known  # type: ignore[union-attr]
    return known
