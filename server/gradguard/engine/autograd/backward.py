"""Walking the tape: `backward()`, `autograd.grad` and tensors that leave.

The walk goes from the roots against the edges, checks each kept tensor's version as
`SavedVariable::unpack` does, and frees what was kept unless told to retain.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace

from gradguard.engine.autograd import layout
from gradguard.engine.autograd.machine import WRITTEN, current_node, gradient_overwritten, requires_grad
from gradguard.engine.domain.events import (
    BrokenGraph,
    SavedFact,
    SavedTensorMutated,
    SecondBackward,
    WriteFact,
)
from gradguard.engine.domain.loops import Loop
from gradguard.engine.domain.spelling import source_text
from gradguard.engine.domain.tensors import (
    UNKNOWN_SOURCE,
    Edge,
    Node,
    Place,
    Saved,
    Tensor,
    Tri,
    Write,
    both,
    either,
)
from gradguard.engine.observe import reads, shapes_held
from gradguard.engine.observe.graphs import VISIT
from gradguard.engine.state.run import Run

MAX_WRITES_SHOWN = 3
MAX_INSTANCES = 16
"""Writes of one statement that are told apart."""


@dataclass(slots=True)
class _Reached:
    """How a walk came to a node."""

    certain: bool
    via: Tensor | None
    parent: Node | None


def backward(
    run: Run,
    roots: list[Tensor],
    place: Place,
    *,
    retain: Tri = False,
    inputs: list[Tensor] | None = None,
    certain: bool = True,
    accumulate: bool = True,
    create: Tri = False,
    trains: bool = True,
) -> list[Tensor]:
    """Differentiate `roots`. Returns the leaves that were reached (for `.grad`). Raises BudgetExceeded.

    trains: a loop in which this happens is a loop over steps.
    """
    run.trail.act()
    reached, leaves = _walk(run, roots, place, certain)
    parts: dict[Node, set[int]] = {}
    asked = reached
    if inputs is not None:
        run.work(VISIT * (len(reached) + len(inputs)))
        reached, parts = _towards(reached, {tensor: current_node(run, tensor, place) for tensor in inputs})
    second: list[tuple[Node, _Reached]] = []
    order = run.tick()
    assumed = run.assumed()
    for node in asked.keys() - reached.keys():
        # Not run, since no input lies behind it; without it the root may not require grad, and torch refuses that.
        node.left = order
    for loop in run.loops:
        loop.trains = loop.trains or trains
    if inputs is None:
        for root in roots:
            for cut in root.cuts - {UNKNOWN_SOURCE}:
                run.lost.setdefault(cut, place)
    for node in sorted(reached, key=lambda n: -n.order):
        how = reached[node]
        if node.freed is not None and node.frees is not False:
            if node.freed is not place and _there(run, node):
                second.append((node, how))
            continue
        crossed = _carried_over(run, node, how) if node.walks else None
        run_for = parts.get(node)
        run.work(len(node.saved))
        for saved in node.saved:
            used = run_for is None or any(tensor.number in run_for for tensor in saved.serves)
            if used or not saved.serves:
                check_saved(run, saved, place, how.certain and used, crossed)
        node.walked, node.walks = place, order
        if run_for is not None and node.frees:
            node.frees = None
        if retain is False and node.frees is not False:
            node.freed = place
            if node.frees and assumed:
                node.frees = None
    for node in reached:
        _read_masks(run, node, place)
    if second:
        _emit_second(run, second, place, reached, roots)
    run.backwards.append((place, run.iterations()))
    if run.between:
        run.due, run.between = [], False
    run.due.append(place.node)
    if retain is True and create is False:
        run.retained.append((place, [node for node in reached if node.frees is not False], order))
    run.work(WRITTEN * len(leaves))
    run.accumulated.update((leaf.number, leaf) for leaf in leaves)
    if accumulate and inputs is None:
        for leaf in leaves:
            # A parameter frozen since its graph was recorded gets nothing.
            if leaf.requires_grad is not False:
                _accumulate(run, leaf, place, create)
    return leaves


def _read_masks(run: Run, node: Node, place: Place) -> None:
    """Where `x[mask]` puts its gradient back, or gets that of `x[mask] = v`, the mask is counted again."""
    if not run.frames or (node.op == "index_put_" and len(node.edges) < 2):
        return
    for saved in node.saved:
        if saved.role in ("index", "indices") and saved.tensor.dtype in ("bool", "uint8"):
            made = node.place.node
            text = source_text(made.targets[0] if isinstance(made, ast.Assign) else made)
            reads.host_read(
                run, run.frames[-1], place.node, "mask again", saved.tensor, implicit=True, text=text
            )


def check_saved(
    run: Run, saved: Saved, backward_at: Place | None, certain: bool, carried: SecondBackward | None = None
) -> bool:
    """Whether a kept tensor is still what it was; emits one event for each write that changed it.

    carried: the graph was retained and carried over from an earlier iteration, which is what to repair where an
    optimizer's step comes in between.
    """
    if saved.reported:
        return False
    tensor = saved.tensor
    certain = certain and saved.certain and saved.node.certain and not saved.node.assumed
    writes: list[Write] = []
    known: list[Write] = []
    if saved.counted and tensor.counter.value != saved.version:
        run.work(len(tensor.counter.writes))
        writes = [w for w in tensor.counter.writes if w.after > saved.version]
    if saved.read and len(tensor.memory.writes) > saved.memory_mark:
        run.work(len(tensor.memory.writes) - saved.memory_mark)
        known = [
            w
            for w in tensor.memory.writes[saved.memory_mark :]
            if not (_seen(w, saved) or w.idle or _kept_old(w, saved))
        ]
    if not writes and not known:
        return True
    fact = SavedFact(
        saved.node.op,
        saved.node.place,
        saved.role,
        saved.why,
        source_text(saved.expr) or saved.text,
        saved.expr,
    )
    # A write that the counter did not see hides none that it will see.
    saved.reported = bool(writes)
    saved.memory_mark = len(tensor.memory.writes)
    kept_by = tuple([call.node for call in saved.node.calls]), tuple([at for _, at in saved.node.iterations])
    shown: set[object] = set()
    for w in [*writes, *known]:
        if w.place.node in shown or len(shown) >= MAX_WRITES_SHOWN:
            continue
        shown.add(w.place.node)
        sure = certain and w.certain and tensor.alias_sure
        at = [one.instance for one in [*writes, *known] if one.place.node is w.place.node]
        run.emit(
            SavedTensorMutated(
                w.place,
                True if sure else (False if saved.node.likely and saved.likely else None),
                fact,
                write_fact(w, tensor, seen=w in writes),
                backward_at,
                _with_shapes(run, carried) if carried and w.kind == "step" and w.counted else None,
            ),
            [(kept_by, one) for one in at[:MAX_INSTANCES]],
        )
    return False


def _with_shapes(run: Run, carried: SecondBackward) -> SecondBackward:
    """The same with what the loop holds now: it is asked for only where something is told."""
    return replace(carried, shapes=shapes_held.shapes(run, carried.place))


def _kept_old(w: Write, saved: Saved) -> bool:
    """Whether a node still has what `p.data = new` has exchanged: `linear` kept a view, since it computes with `weight.t()`."""
    return w.op == ".data =" and saved.node.op in ("linear", "Linear")


def _seen(w: Write, saved: Saved) -> bool:
    return saved.counted and w.counted and w.target.counter is saved.tensor.counter


def write_fact(w: Write, saved: Tensor, *, seen: bool) -> WriteFact:
    """The write as rules see it."""
    alias = w.target.created if w.target is not saved and w.target.base is not saved else None
    return WriteFact(
        w.op,
        w.place,
        w.via,
        w.kind,
        seen,
        w.statement,
        shared=w.target is not saved,
        same_name=w.target is saved,
        alias_at=alias,
        maker=w.maker,
    )


def leave(run: Run, tensors: Iterable[Tensor], place: Place) -> None:
    """Tensors that leave the analysed code: a caller may differentiate them, so what they need must be intact."""
    roots = [t for t in tensors if requires_grad(run, t) is not False]
    if not roots:
        return
    reached, _ = _walk(run, roots, place, certain=False)
    order = run.tick()
    for node, how in reached.items():
        node.left = order
        if node.freed is None:
            run.work(len(node.saved))
            for saved in node.saved:
                check_saved(run, saved, None, how.certain)


def _walk(
    run: Run, roots: Iterable[Tensor], place: Place, certain: bool
) -> tuple[dict[Node, _Reached], list[Tensor]]:
    reached: dict[Node, _Reached] = {}
    leaves: dict[int, Tensor] = {}
    stack: list[tuple[Node, _Reached]] = []
    for root in roots:
        sure = certain and requires_grad(run, root) is True
        node = current_node(run, root, place)
        if node is None:
            if root.requires_grad is not False:
                leaves[root.number] = root
            continue
        stack.append((node, _Reached(sure, root, None)))
    fed = set(leaves)
    begun = [node for node, _ in stack]
    visits = 0
    while stack:
        node, how = stack.pop()
        visits += 1
        known = reached.get(node)
        if known is not None and (known.certain or not how.certain):
            continue
        how.certain = how.certain and node.certain
        if known is not None:
            known.certain = True
        else:
            reached[node] = how
        if node.freed is not None and node.frees is not False:
            continue
        for edge in node.edges:
            if edge.node is None:
                leaves[edge.tensor.number] = edge.tensor
            else:
                stack.append((edge.node, _Reached(how.certain and edge.sure, edge.tensor, node)))
    run.work(VISIT * visits)
    if any(node.barren for node in reached):
        fed |= _fed(begun)
        leaves = {number: leaf for number, leaf in leaves.items() if number in fed}
    return reached, list(leaves.values())


def _fed(begun: Iterable[Node]) -> set[int]:
    """Leaves that a gradient comes to from these nodes: not those which only nodes lead to that give none."""
    fed: set[int] = set()
    waiting = list(begun)
    seen: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node not in seen and not node.barren:
            seen.add(node)
            fed.update(edge.tensor.number for edge in node.edges if edge.node is None)
            waiting += [edge.node for edge in node.edges if edge.node is not None]
    return fed


def _towards(
    reached: dict[Node, _Reached], inputs: dict[Tensor, Node | None]
) -> tuple[dict[Node, _Reached], dict[Node, set[int]]]:
    """Nodes that lie on a way to one of `inputs`, given with the history each has now; for only those run.

    What used an input before it was written leads to the history that it had then, which is not asked for. Of the
    nodes that may run in part also the numbers of the tensors they run for.
    """
    wanted_nodes = {node for node in inputs.values() if node is not None}
    wanted_leaves = {tensor.number for tensor, node in inputs.items() if node is None}
    needed: dict[Node, Tri] = {}

    def along(edge: Edge) -> Tri:
        if edge.node is None:
            return edge.tensor.number in wanted_leaves and (edge.sure or None)
        found = edge.node in wanted_nodes or needed.get(edge.node, False)
        return found if edge.sure and edge.node.certain else both(found, None)

    def leads(start: Node) -> None:
        order: list[tuple[Node, bool]] = [(start, False)]
        while order:
            node, done = order.pop()
            if node in needed and not done:
                continue
            if done:
                needed[node] = either(*map(along, node.edges))
                continue
            needed.setdefault(node, False)
            order.append((node, True))
            order.extend(
                (edge.node, False) for edge in node.edges if edge.node is not None and edge.node not in needed
            )

    for node in sorted(reached, key=lambda n: n.order):
        leads(node)
    runs = {node: how for node, how in reached.items() if needed[node] is not False}
    for node, how in runs.items():
        how.certain = how.certain and needed[node] is True
    parts: dict[Node, set[int]] = {}
    for node in runs:
        ways = [along(edge) is not False for edge in node.edges]
        if node.composite and not all(ways):
            parts[node] = {edge.tensor.number for edge, way in zip(node.edges, ways) if way}
    return runs, parts


def _there(run: Run, node: Node) -> bool:
    """Whether a freed node surely is in the graph, or by convention: an operation of an argument may record none.

    What was made once before a loop by an unknown network is as often made by a frozen one.
    """
    made = {number for number, _ in node.iterations}
    outside = any(loop.number not in made for loop in run.loops if loop.kind != "comprehension")
    return node.certain or ((node.likely or node.opaque) and not outside)


def _emit_second(
    run: Run,
    freed: list[tuple[Node, _Reached]],
    place: Place,
    reached: dict[Node, _Reached],
    roots: list[Tensor],
) -> None:
    """One event for a walk into freed nodes: at what carried them over where that is one value, else at the backward.

    Losses that were made before a loop over them carry nothing: they share a graph.
    """
    node, how = freed[0]
    first = node.freed
    assert first is not None
    carriers: dict[ast.AST, tuple[Place, str]] = {}
    for one, its in freed:
        found = _carrier(run, one, its, reached)
        if found is not None:
            carriers[found[0].node] = found
    certain = any(its.certain and one.frees is True and not one.assumed for one, its in freed)
    loop = _crosses_loop(run, node)
    apart = run.modes.grad is not True or run.modes.inference or run.gradient_read >= node.walks
    if len(carriers) == 1:
        carried, text = next(iter(carriers.values()))
        held = shapes_held.shapes(run, carried)
        run.emit(
            SecondBackward(
                carried, certain, first, place, carried, text, node.op, node.place, loop, shapes=held
            )
        )
        return
    text = how.via.bound_name if how.via is not None else ""
    begun = {root.node for root in roots}
    losses = first.node is place.node and begun.isdisjoint(one for one, _ in freed)
    run.emit(
        SecondBackward(
            place, certain, first, place, None, text, node.op, node.place, loop, apart=apart, losses=losses
        )
    )


def _carrier(run: Run, node: Node, how: _Reached, reached: dict[Node, _Reached]) -> tuple[Place, str] | None:
    """Where, before this iteration, the value was bound through which the walk left the iteration."""
    via, parent = how.via, how.parent
    if via is None or parent is None:
        return None
    made = dict(node.iterations)
    crossed = [
        one for one in run.loops if one.kind != "comprehension" and made.get(one.number, -1) != one.iteration
    ]
    if not crossed or _of_losses(how, reached, crossed[0]):
        return None
    while via.bound_at is None and parent in reached:
        # A step of an expression: what is carried is the named value that was computed from it.
        above = reached[parent]
        if above.via is None or above.parent is None or dict(parent.iterations) != made:
            break
        node, via, parent = parent, above.via, above.parent
    # What was made before the loop is carried by its last binding there, not by what the loop calls it.
    began = crossed[0].began if crossed[0].number in made else crossed[0].started
    before = [binding for binding in via.bindings if binding[0] < began]
    # A loop over tensors gives each a name in passing; what keeps them is named elsewhere.
    before = [binding for binding in before if not isinstance(binding[1].node, ast.For)] or before
    if before:
        order, place, name = before[-1]
        brought = _brought_by_write(via, node, order) if node.order < began else None
        return brought or place, name
    return via.bound_at or via.created, via.bound_name


def _of_losses(how: _Reached, reached: dict[Node, _Reached], loop: Loop) -> bool:
    """Whether the walk left the pass of a loop through one of the values that the loop goes through, or began at one.

    for loss in losses: loss.backward()
    """
    while how.parent is not None and dict(how.parent.iterations).get(loop.number) != loop.iteration:
        how = reached[how.parent]
    via = how.via
    if via is None:
        return False
    return bool(via.bindings) and via.bindings[-1][1].node is loop.place.node


def _brought_by_write(tensor: Tensor, last: Node, named: int) -> Place | None:
    """The write that gave a named tensor its history, where it had none when it got its name."""
    node: Node | None = last
    while node is not None and node.order > named:
        before = next((edge for edge in node.edges if edge.tensor.root is tensor.root), None)
        if before is None:
            return node.place
        node = before.node
    return None


def _carried_over(run: Run, node: Node, how: _Reached) -> SecondBackward | None:
    """The event for a retained graph that an earlier iteration made and this one walks again."""
    made = dict(node.iterations)
    crosses = any(
        0 <= made.get(loop.number, -1) < loop.iteration for loop in run.loops if loop.kind != "comprehension"
    )
    if not crosses or how.via is None or how.parent is None or node.walked is None:
        return None
    at = how.via.bound_at or how.via.created
    certain = how.certain and node.certain
    return SecondBackward(
        at, certain, node.walked, node.walked, at, how.via.bound_name, node.op, node.place, True
    )


def _crosses_loop(run: Run, node: Node) -> bool:
    made = dict(node.iterations)
    return any(
        made.get(loop.number, -1) != loop.iteration for loop in run.loops if loop.kind != "comprehension"
    )


def _accumulate(run: Run, leaf: Tensor, place: Place, create: Tri) -> None:
    before = leaf.grad if isinstance(leaf.grad, Tensor) else None
    if before is not None and create is not True:
        overwrite_gradient(run, before, place, "accumulate")
        return
    if leaf.grad is not None and before is None:
        return
    made = run.tensor(place)
    made.grad_owner = leaf
    made.dtype, made.device = leaf.dtype, leaf.device
    layout.fresh(made, leaf.shape, [])
    made.source = "grad"
    if create is not False:
        made.node = Node("grad", place, run.tick(), certain=False, frees=None, iterations=run.iterations())
        made.requires_grad, made.leaf = create, False
        if before is not None:
            # A gradient with a graph is added out of place.
            made.node.edges.append(Edge(before, before.node))
    leaf.grad = made


def overwrite_gradient(run: Run, gradient: Tensor, place: Place, op: str) -> None:
    """An existing gradient is added to, or zeroed, in place; whoever kept it by reference sees that."""
    done = Write(place, op, gradient, kind="accumulate", order=run.tick(), iterations=run.iterations())
    gradient.counter.value += 1
    done.after = gradient.counter.value
    gradient.counter.writes.append(done)
    gradient.memory.writes.append(done)
    gradient_overwritten(run, gradient, place)


def check_root(run: Run, root: Tensor, place: Place) -> None:
    """`backward()` on a tensor without history raises; say what cut it off. With a flag set by hand it reaches nothing."""
    if root.flagged is not None and root.node is None and root.sure and not root.cuts and _is_loss(run, root):
        run.emit(BrokenGraph(root.flagged, True, "flag", root.bound_name, place, False))
        return
    if requires_grad(run, root) is not False or not root.sure or root.cuts == {UNKNOWN_SOURCE}:
        run.grounded.add(place.node)
        return
    cuts = sorted(root.cuts - {UNKNOWN_SOURCE}, key=lambda cut: cut.place.line)
    proven = UNKNOWN_SOURCE not in root.cuts
    if cuts:
        run.emit(BrokenGraph(cuts[0].place, proven, cuts[0].how, cuts[0].text, place, True))
    else:
        run.emit(BrokenGraph(place, True, "no-graph", root.bound_name, place, True))


def _is_loss(run: Run, root: Tensor) -> bool:
    """Whether a leaf was computed, or an optimizer waits for its backward: `probe = torch.tensor(1.0)` is neither."""
    return root.pageable is None or bool(run.optimizers)
