"""Watches every run of the autograd engine from outside: which nodes it will run, and how it ended."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
import torch.autograd.graph

from gradguard.runtime.tape import Call, Record, leaf_of, node_of, record_of

if TYPE_CHECKING:
    from gradguard.runtime.session import Session
    from gradguard.runtime.watch import Watch


@dataclass(slots=True)
class Survey:
    """The part of a graph that one run will execute.

    nodes are held for the survey only; leaves are the tensors whose gradient it computes, with the node that uses them.
    """

    nodes: list[Any] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    leaves: list[tuple[Any, Record | None]] = field(default_factory=list)


def survey(roots: Any, inputs: Any) -> Survey:
    """Walks from the roots to the leaves; with `inputs`, only what lies on a path to one of them."""
    result = Survey()
    start = [root_node(root) for root in ((roots,) if isinstance(roots, torch.Tensor) else roots)]
    order: list[Any] = []
    seen: set[Any] = set()
    following: dict[Any, Any] = {}
    pending = [node for node in start if node is not None]
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        order.append(node)
        before = following[node] = node.next_functions
        for other, _ in before:
            if other is not None and other not in seen:
                pending.append(other)
    if inputs:
        order = _towards(order, inputs)
    for node in order:
        record = record_of(node)
        if record is not None:
            result.records.append(record)
        for other, _ in following[node]:
            leaf = leaf_of(other)
            if leaf is not None:
                result.leaves.append((leaf, record))
    result.nodes = order
    return result


def root_node(root: Any) -> Any:
    if isinstance(root, torch.Tensor):
        return node_of(root)
    return getattr(root, "node", None)


def _towards(order: list[Any], inputs: Any) -> list[Any]:
    wanted_nodes: set[Any] = set()
    wanted_leaves: set[int] = set()
    for given in (inputs,) if isinstance(inputs, torch.Tensor) else inputs:
        node = root_node(given)
        if node is not None:
            wanted_nodes.add(node)
        else:
            wanted_leaves.add(id(given))
    before: dict[Any, list[Any]] = {}
    reached: set[Any] = set()
    pending: list[Any] = []
    for node in order:
        for following, _ in node.next_functions:
            if following is None:
                continue
            before.setdefault(following, []).append(node)
            leaf = leaf_of(following)
            if following in wanted_nodes or (leaf is not None and id(leaf) in wanted_leaves):
                pending.append(node)
    while pending:
        node = pending.pop()
        if node not in reached:
            reached.add(node)
            pending.extend(before.get(node, ()))
    return [node for node in order if node in reached]


class Engine:
    """Stands before `_engine_run_backward`, through which backward and grad both go."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.original = torch.autograd.graph._engine_run_backward
        self.calls = 0
        # Watched runs under way in all threads; hooks of a device run in the engine's own threads.
        self.running = 0
        self._lock = threading.Lock()

    def install(self) -> None:
        for module in (torch.autograd, torch.autograd.graph):
            if module.__dict__.get("_engine_run_backward") is self.original:
                module._engine_run_backward = self.run

    def remove(self) -> None:
        for module in (torch.autograd, torch.autograd.graph):
            if getattr(module.__dict__.get("_engine_run_backward"), "__self__", None) is self:
                module._engine_run_backward = self.original

    def run(self, t_outputs: Any, *args: Any, **kwargs: Any) -> Any:
        session = self.session
        watch = session.watch()
        if session.closed or watch.silent or watch.depth:
            return self.original(t_outputs, *args, **kwargs)
        session.recover()
        watched = watch.on
        if not watched and not session.light:
            session.unwatched_backward()
        call: Call | None = None
        found: Survey | None = None
        with session.looking():
            watch.settle()
            call = self._call(args, kwargs)
            if watched:
                inputs = args[3] if len(args) > 3 else kwargs.get("inputs")
                found = survey(t_outputs, inputs)
                call.records = found.records
                session.before_backward(call, found)
        leaves = (
            [leaf for leaf, _ in found.leaves]
            if found is not None and call is not None and call.create
            else []
        )
        if found is not None:
            found.nodes.clear()
            found.leaves.clear()
        # The engine runs without the watch: below a dispatch mode some formulas of backward take another way.
        stopped = watched and watch.stop()
        self._count(watch, 1, watched)
        try:
            result = self.original(t_outputs, *args, **kwargs)
        except BaseException as error:
            self._ended(call, t_outputs, error)
            raise
        finally:
            self._count(watch, -1, watched)
            if stopped:
                watch.start()
        if watched and call is not None and call.create:
            with session.looking():
                grads = [leaf.grad for leaf in leaves] if call.accumulate else list(result)
                session.see_created(call, grads)
                session.growth.see_create_graph(call, leaves)
        self._ended(call, t_outputs, None)
        return result

    def _count(self, watch: Watch, change: int, watched: bool) -> None:
        watch.depth += change
        watch.engine_watched = watched and watch.depth > 0
        if watched:
            with self._lock:
                self.running += change

    def _ended(self, call: Call | None, roots: Any, error: BaseException | None) -> None:
        if call is None:
            return
        with self.session.looking():
            self.session.watch().settle()
            self.session.after_backward(call, roots, error)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        self.calls += 1
        site = self.session.frames.site(sys._getframe(2))
        retain = bool(args[1]) if len(args) > 1 else False
        create = bool(args[2]) if len(args) > 2 else False
        return Call(self.calls, site, retain, create, bool(kwargs.get("accumulate_grad", True)))
