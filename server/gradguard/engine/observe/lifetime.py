"""Graphs that outlive an iteration, and graphs that nobody differentiates.

A graph grows with the iterations when, at the end of one, something still holds nodes of an earlier one:

    accumulate   one value whose newest node reaches nodes of an earlier iteration through the very statement
                 that made it (`total += loss`, a running mean, a moving average)
    store        values of two iterations, put away by the same statement, both still held

Only step loops count: loops that train, or that call a module from outside any module. What a `forward` collects
in order to return it is its job. The verdict waits for the end of the path, since a later `backward` through the
value makes keeping it right.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

from gradguard.engine.domain import strides
from gradguard.engine.domain.events import (
    CreateGraphCycle,
    Event,
    GraphKept,
    GraphReleased,
    RetainGraph,
    SavedTensorMutated,
    SecondBackward,
    UnusedGraph,
)
from gradguard.engine.domain.loops import Loop
from gradguard.engine.domain.modules import complete, parameters
from gradguard.engine.domain.tensors import Node, Place, Tensor
from gradguard.engine.domain.values import (
    DictV,
    Frame,
    FunctionV,
    Globals,
    Instance,
    ListV,
    Method,
    PartialV,
    Sym,
    TupleV,
    Value,
    inside,
    tensors_in,
)
from gradguard.engine.observe import counting, graphs, holders, lending, places_kept, reads, starved
from gradguard.engine.state.notes import Kept
from gradguard.engine.state.run import Run
from gradguard.source.nodes import walk

MAX_DEPTH = 8


def iteration_ends(run: Run, frame: Frame, loop: Loop) -> None:
    """Note that a pass came to its end."""
    loop.passes = loop.iteration + 1
    loop.ends.append(run.tick())
    counting.pass_ends(run, loop)


def loop_ends(run: Run, frame: Frame, loop: Loop) -> None:
    """Note what holds nodes of earlier passes; a loop inside a step loop passes on that it trained."""
    if loop.passes > 1 and len(run.nodes) > loop.nodes and _steps(run, loop):
        _look(run, frame, loop)
    for outer in run.loops:
        outer.trains = outer.trains or loop.trains
        if outer.depth == loop.depth:
            outer.inner = outer.inner or loop.trains or loop.calls
            outer.calls = outer.calls or loop.calls


def _look(run: Run, frame: Frame, loop: Loop) -> None:
    """Compare what is held: something of an early pass and something of a late one."""
    ages = _Ages(loop)
    last = loop.passes - 1
    groups: dict[ast.AST, list[tuple[Tensor, int]]] = {}
    latest: dict[ast.AST, int] = {}
    seen: set[int] = set()
    for tensor in _held(run, frame):
        node = _graph_of(tensor)
        if tensor.number in seen or node is None:
            continue
        seen.add(tensor.number)
        place = tensor.stored_at or tensor.bound_at or tensor.created
        age = ages.of(node)
        made = _made_at(tensor)
        for at in {place.node, made.node if made is not None else place.node}:
            latest[at] = max(age, latest.get(at, -1))
        groups.setdefault(place.node, []).append((tensor, age))
        late = age > 0 and age >= last // 2
        if late and made is not None and _accumulates(run, tensor, made, loop, ages, age):
            _keep(run, loop, [tensor], "accumulate", made, ages)
    emptied = places_kept.emptied(loop.place.node)
    for held in groups.values():
        # What is emptied or overwritten in turns holds late passes only; what a counter's test lets begin late, too.
        place = held[0][0].stored_at or held[0][0].bound_at or held[0][0].created
        began = 1 if any(_within(place.node, test) for test in loop.late) else 0
        old = [tensor for tensor, age in held if began <= age <= max(began, last // 3)]
        new = [tensor for tensor, age in held if age > max(began, last // 3) and age >= last // 2]
        if old and new:
            if places_kept.container_of(place.node) not in emptied:
                _keep(run, loop, [*old, *new], "store", place, ages)
    if last < FEW:
        return
    for key in [key for key in run.kept if key[2] is not loop.place.node]:
        if 0 <= latest.get(key[1], -1) <= last // 3:
            # A loop inside kept it in the first passes of this one only.
            del run.kept[key]


def _within(node: ast.AST, test: ast.If) -> bool:
    """Whether a statement stands in the body of a test of the same file."""
    known: frozenset[ast.AST] | None = getattr(test, "_gradguard_body", None)
    if known is None:
        known = frozenset(part for statement in test.body for part in walk(statement))
        test._gradguard_body = known  # type: ignore[attr-defined]
    return node in known


def returned(run: Run, frame: Frame, function: FunctionV, result: Value) -> None:
    """A function ends. What it collected in order to return it is its job, as it is that of a `forward`.

        for p, t in zip(preds, targets): terms.append((p - t).pow(2).mean())
        return sum(terms)

    A loop that calls networks evaluates them, except in what is named for a loss.
    """
    given: set[Node] | None = None
    for key, kept in list(run.kept.items()):
        if kept.loop.frame is not frame or kept.loop.trains:
            continue
        if kept.loop.calls and "loss" not in function.name.lower():
            continue
        if given is None:
            given = set(graphs.graph(run, *(t.node for t in tensors_in(result) if t.node is not None)))
        if not given.isdisjoint(node for node in map(_graph_of, kept.group) if node is not None):
            del run.kept[key]


FEW = 3
"""Passes after which it shows that what early ones kept does not grow."""


def _graph_of(tensor: Tensor) -> Node | None:
    """The newest node that lives as long as the tensor: its own, or that of the base of a view made under no_grad."""
    if tensor.node is not None:
        return tensor.node if tensor.requires_grad is not False else None
    base = tensor.base
    return base.node if base is not None and base.requires_grad is not False else None


class _Ages:
    """In which iteration of one loop nodes were made; -1 for before it."""

    def __init__(self, loop: Loop) -> None:
        self._number = loop.number

    def of(self, node: Node) -> int:
        for number, iteration in node.iterations:
            if number == self._number:
                return iteration
        return -1


def _steps(run: Run, loop: Loop) -> bool:
    """Whether a loop runs once a step: it trains, calls a module, or is too long to be part of one computation."""
    if loop.depth or loop.over == "parameters" or (run.makes(loop.functions) and not loop.trains):
        return False
    return loop.trains or loop.calls or not loop.exact or loop.length >= LONG


LONG = 8
"""A loop of known length from which on it is taken for a loop over steps."""


def _made_at(tensor: Tensor) -> Place | None:
    """The statement that gave the value its present history: the last write or binding."""
    write = tensor.counter.writes[-1] if tensor.counter.writes else None
    bound = tensor.bindings[-1][0] if tensor.bindings else 0
    if write is not None and write.order > bound and write.statement is not None:
        return Place(write.place.path, write.statement)
    return tensor.bound_at


def _accumulates(run: Run, tensor: Tensor, place: Place, loop: Loop, ages: _Ages, age: int) -> bool:
    """Whether the statement that made the value consumes the value it made in an earlier iteration than `age`."""
    if tensor.node is None:
        return False
    statement = place.node
    first, last = getattr(statement, "lineno", 0), getattr(statement, "end_lineno", 0)
    stack = [tensor.node]
    seen: set[Node] = set()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        run.work(graphs.VISIT)
        for edge in node.edges:
            if edge.node is None:
                continue
            made = ages.of(edge.node)
            if made == age:
                stack.append(edge.node)
            elif 0 <= made < age and (edge.tensor is tensor or _same_holder(edge.tensor, tensor)):
                # What a network makes of its own state is carried, not accumulated.
                within = (node.place, *node.calls) if node.depth == loop.depth else (node.place,)
                if any(each.path == place.path and first <= each.line <= (last or first) for each in within):
                    return True
    return False


def _same_holder(carried: Tensor, tensor: Tensor) -> bool:
    at = tensor.bound_at
    # What a comprehension goes through has got another name in passing.
    if at is not None and any(place.node is at.node for _, place, _ in carried.bindings):
        return True
    return bool(carried.bound_name) and carried.bound_name == tensor.bound_name


def _keep(run: Run, loop: Loop, group: list[Tensor], how: str, place: Place, ages: _Ages) -> None:
    tensor = group[0]
    newest = _graph_of(tensor)
    key = (how, place.node, loop.place.node)
    if key in run.kept or newest is None:
        return
    # A graph that a backward walks is there, whatever was known of its operands.
    behind = graphs.graph(run, newest)
    if not any(node.certain or node.opaque or node.walks for node in behind):
        return
    old = [node for node in behind if 0 <= ages.of(node) < loop.passes - 1]
    saving = [
        node for node in old if node.freed is None and (_saves_much(node) or (node.opaque and not node.walks))
    ]
    names = list(dict.fromkeys(saved.text or node.op for node in saving for saved in node.saved))[:4]
    statement = place.node if isinstance(place.node, ast.stmt) else None
    name = next(
        (name for _, at, name in reversed(tensor.bindings) if at.node is place.node), tensor.bound_name
    )
    event = GraphKept(
        place,
        all(node.certain for node in old),
        how,
        name,
        loop.place,
        bool(saving),
        ", ".join(names),
        statement,
        holders.is_tuple(run, name),
        fed=_fed(tensor, place),
        inside=tensor.stored_inside and tensor.stored_at is place,
        trained=how == "store" and any(_walked_later(each, loop, ages) for each in group),
        lasting=loop.trains and places_kept.many(loop) and not places_kept.begins_anew(run, loop, place.node),
    )
    # After training steps, or in evaluation, nobody differentiates what was summed up on the way.
    trains = loop.trains or run.marks.evaluates
    run.kept[key] = Kept(group, run.tick(), event, old, trains, loop)


def _walked_later(tensor: Tensor, loop: Loop, ages: _Ages) -> bool:
    """Whether a backward went through the value in a later pass than the one that made it."""
    node = _graph_of(tensor)
    age = ages.of(node) if node is not None else -1
    return node is not None and 0 <= age < len(loop.ends) and node.walks > loop.ends[age]


def _fed(tensor: Tensor, place: Place) -> tuple[str, ...]:
    """Names of the values with a graph that the statement at a place takes in, but for what it made before."""
    names: dict[str, None] = {}
    waiting, seen = [tensor.node] if tensor.node is not None else [], set()
    first, last = getattr(place.node, "lineno", 0), getattr(place.node, "end_lineno", 0) or 0
    while waiting:
        node = waiting.pop()
        for edge in node.edges:
            if edge.tensor.requires_grad is False or edge.node in seen:
                continue
            made = edge.node.place if edge.node is not None else None
            if edge.node is None or made is None or made.path != place.path or not first <= made.line <= last:
                names[edge.tensor.bound_name] = None
            elif edge.tensor is not tensor and not _same_holder(edge.tensor, tensor):
                seen.add(edge.node)
                waiting.append(edge.node)
    names.pop(tensor.bound_name, None)
    return tuple(names)


def _saves_much(node: Node) -> bool:
    """Whether a node keeps more than single numbers."""
    return any(
        (shapes := saved.tensor.shape) is None or strides.product(shapes) not in (0, 1)
        for saved in node.saved
    )


def _held(run: Run, frame: Frame) -> Iterable[Tensor]:
    """Tensors that are held by variables, objects and containers.

    A global that the running entry never touched holds nothing that it made.
    """
    seen: set[int] = set()
    found: list[Tensor] = []
    for variables in _scopes(run, frame):
        if isinstance(variables, Globals):
            for _, value in variables.touched():
                _collect(value, 0, found, seen)
        else:
            run.work(len(variables))
            for value in variables.values():
                _collect(value, 0, found, seen)
    run.work(len(seen) + len(found))
    return found


def _scopes(run: Run, frame: Frame) -> Iterable[dict[str, Value]]:
    """The variables of the frames that run, of those around them, and of every module."""
    given: set[int] = set()
    for active in [*run.frames, frame]:
        one: Frame | None = active
        while one is not None and id(one.variables) not in given:
            given.add(id(one.variables))
            yield one.variables
            one = one.parent
    for namespace in run.namespaces.values():
        if id(namespace.variables) not in given:
            yield namespace.variables


def bound_in(value: Value) -> list[Tensor]:
    """Tensors that a value brings along: its own, those in containers, and those a function was made with.

    What a function closes over it shares with the frame around it, and an object's parts have statements of their own.
    """
    found: list[Tensor] = []
    for one in inside(value):
        held = one.tensor if isinstance(one, Sym) else one
        if isinstance(held, Tensor):
            found.append(held)
        elif isinstance(held, FunctionV):
            found += (tensor for given in held.defaults.values() for tensor in bound_in(given))
        elif isinstance(held, PartialV):
            found += (tensor for given in (*held.args, *held.kwargs.values()) for tensor in bound_in(given))
    return found


def _collect(value: Value, depth: int, found: list[Tensor], seen: set[int]) -> None:
    if isinstance(value, Sym):
        value = value.tensor
    if isinstance(value, Tensor):
        found.append(value)
        return
    if type(value) not in _HOLDERS or depth > MAX_DEPTH or id(value) in seen:
        return
    held: Iterable[Value] = ()
    if isinstance(value, (ListV, TupleV)):
        seen.add(id(value))
        if not isinstance(value, ListV) or (value.maxlen is None and not value.trimmed):
            held = value.items
    elif isinstance(value, DictV):
        seen.add(id(value))
        held = [item for _, item in value.items.values()]
    elif isinstance(value, Instance):
        seen.add(id(value))
        held = list(value.attributes.values())
    elif isinstance(value, Method):
        held = (value.receiver,)
    elif isinstance(value, PartialV):
        held = value.args
    elif isinstance(value, FunctionV):
        seen.add(id(value))
        for item in value.defaults.values():
            _collect(item, depth + 1, found, seen)
        if value.scope is not None and not isinstance(value.scope.variables, Globals):
            around = value.scope.variables
            held = [around[name] for name in lending.names_in(value.node) if name in around]
    for item in held:
        _collect(item, depth + 1, found, seen)


_HOLDERS = frozenset({ListV, TupleV, DictV, Instance, Method, PartialV, FunctionV})
"""Values that may hold a tensor."""


def replaced(run: Run, frame: Frame, old: Value, new: Value) -> None:
    """A name, attribute or item has got a value without graph: what it held is let go."""
    if not run.loops or (isinstance(new, Tensor) and new.node is not None):
        return
    run.weigh((old, new))
    before = tensors_in(old)
    if not before:
        return
    stay = {tensor.number for tensor in tensors_in(new)}
    gone = [t for t in before if t.number not in stay]
    if isinstance(old, (Tensor, Sym)):
        # What a container holds as well is let go when the container lets it go.
        gone = [t for t in gone if t.stored_at is None]
    elif gone := [t for t in gone if t.node is not None]:
        stay = {tensor.number for tensor in _held(run, frame)}
        # `h = {k: t + loss for k, t in h.items()}`: what was held lives on in the graph of what is.
        lives = set(graphs.graph(run, *(t.node for t in tensors_in(new) if t.node is not None)))
        gone = [t for t in gone if t.number not in stay and t.node not in lives]
    release(run, gone)


def release(run: Run, tensors: list[Tensor]) -> None:
    """Tensors that a container or name held are let go while a loop runs."""
    if not run.loops:
        return
    for tensor in tensors:
        for place in (tensor.bound_at, tensor.stored_at):
            if place is None:
                continue
            for loop in run.loops:
                if (place.node, loop.place.node) not in run.released and not run.expected:
                    run.released.add((place.node, loop.place.node))
                    run.emit(GraphReleased(place, True, loop.place))


def finish(run: Run) -> None:
    """Verdicts at the end of a path. Raises BudgetExceeded."""
    lent = lending.Lent(run)
    raising = _carried(run)
    for kept in run.kept.values():
        if any(one.carried is not None and one.carried.node is kept.event.place.node for one in raising):
            # The program ends there before anything grows.
            continue
        nodes = [*kept.old, *(node for node in map(_graph_of, kept.group) if node is not None)]
        newest = [node for node in map(_graph_of, kept.group) if node is not None]
        # Code that is not read was given the very value, and may differentiate it: `optimizer.step(total)`.
        given = kept.event.how == "accumulate" and lent(newest)
        if given or any(
            node.walks > kept.order or (node.left > kept.order and not kept.trains) for node in nodes
        ):
            run.emit(GraphReleased(kept.event.place, True, kept.event.loop))
        else:
            trained = _trained(kept) if kept.event.how == "accumulate" else kept.event.trained
            own = any(tensor.attributes for tensor in kept.group)
            shared = own or lent(nodes)
            run.emit(replace(kept.event, trained=trained, shared=shared))
    used = retained_in_use(run)
    for place, nodes, _ in run.retained:
        if nodes and place.node not in used:
            grows = any(kept.event.activations and set(kept.old) & set(nodes) for kept in run.kept.values())
            run.emit(RetainGraph(place, all(node.certain for node in nodes), grows, lent(nodes)))
    if not run.marks.cleared:
        for place, text, leaves in run.doubled:
            if not leaves or any(leaf.number not in run.cleared for leaf in leaves):
                run.emit(CreateGraphCycle(place, False, text))
    _unused(run, lent)
    starved.finish(run)
    for event in reads.verdicts(run):
        run.emit(event)


def retained_in_use(run: Run) -> set[ast.AST]:
    """Backward calls that kept a graph which somebody walked again, or may walk again, in one pass at least."""
    used = {
        place.node
        for place, nodes, order in run.retained
        if any(node.walks > order or node.left > order for node in nodes)
    }
    # Where the later walk raises, keeping the graph was no help.
    return used - {event.first.node for event in _carried(run)}


def _carried(run: Run) -> list[SecondBackward]:
    """What brought the graph of an earlier backward to one that raises."""
    found = [
        event.carried if isinstance(event, SavedTensorMutated) else event
        for event in run.events
        if isinstance(event, (SavedTensorMutated, SecondBackward))
    ]
    return [one for one in found if one is not None]


def used_elsewhere(event: Event, needed: set[ast.AST]) -> bool:
    """A graph that only some paths leave unused is not recorded, or kept, for nothing."""
    unused = isinstance(event, RetainGraph) or (isinstance(event, UnusedGraph) and event.why == "unused")
    return unused and event.place.node in needed


def _trained(kept: Kept) -> bool:
    """Whether a backward went through the kept value, or through what its statement made in another iteration."""
    mine = _graph_of(kept.group[0])
    if mine is None:
        return False
    return any(node.walks > 0 for node in (mine, *kept.old) if node.place.node is mine.place.node)


def _unused(run: Run, lent: lending.Lent) -> None:
    place = run.marks.bare_no_grad
    if isinstance(place, Place):
        run.emit(UnusedGraph(place, True, "torch.no_grad()", "bare"))
    owned = {p.number for optimizer in run.optimizers for p in starved.owned(optimizer)}
    reported: set[ast.AST] = set()
    begun: set[ast.AST | None] = set()
    foreign = _Foreign(owned)
    for call in run.module_calls:
        nodes = run.nodes[call.first : call.last]
        if not nodes or call.place.node in reported:
            continue
        around = call.loops[-1] if call.loops else None
        if not any(node.walks or node.left for node in nodes):
            trains = around is not None and _trains(around)
            if call.training is not False and trains:
                continue
            where = around.place.node if around is not None else None
            if call.fed is not False and where in begun:
                # The criterion, or the head: the graph begins at what gave its input, which is reported.
                continue
            reported.add(call.place.node)
            begun.add(where)
            why = "eval" if call.training is False else "unused"
            if trains and owned and foreign(call.module):
                why = "target"
            shared = lent(nodes)
            if shared and why == "unused":
                # It may differentiate what it was given, as `learner.adapt(loss)` does.
                run.lasting.add(call.place.node)
                continue
            loop = around.place if around is not None else None
            sure = all(n.certain for n in nodes)
            run.emit(UnusedGraph(call.place, sure, call.text, why, shared, loop, call.caller))
        elif owned and call.fed is False and foreign(call.module):
            reported.add(call.place.node)
            loop = around.place if around is not None else None
            run.emit(UnusedGraph(call.place, True, call.text, "target", False, loop, call.caller))


def _trains(loop: Loop) -> bool:
    """Whether a loop differentiates something, on this path or, as its text says, on one that goes on where this one left."""
    return loop.trains or _differentiates(loop.place.node)


def _differentiates(loop: ast.AST) -> bool:
    known: bool | None = getattr(loop, "_gradguard_trains", None)
    if known is None:
        known = any(
            isinstance(node, ast.Attribute) and node.attr in ("backward", "manual_backward")
            for node in walk(loop)
        )
        loop._gradguard_trains = known  # type: ignore[attr-defined]
    return known


class _Foreign:
    """Networks none of whose trainable parameters any optimizer holds."""

    def __init__(self, owned: set[int]) -> None:
        self._owned = owned
        self._known: dict[Instance, bool] = {}

    def __call__(self, module: Instance) -> bool:

        known = self._known.get(module)
        if known is None:
            trainable = [p for p in parameters(module) if p.requires_grad is True]
            known = (
                bool(trainable) and complete(module) and not any(p.number in self._owned for p in trainable)
            )
            self._known[module] = known
        return known
