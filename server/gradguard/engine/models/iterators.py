"""`itertools` and its like: what they give is made of the items that they are given."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.conditions import key_of, known_truth
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import DictV, Frame, IteratorV, ListV, TupleV, Value, contents, tensors_in
from gradguard.engine.models import others
from gradguard.engine.models.builtins import drawn, indices, take
from gradguard.engine.models.registry import Registry
from gradguard.engine.python import operators
from gradguard.engine.python.calls import call_value
from gradguard.engine.python.instances import instance_of
from gradguard.engine.python.iteration import MAX_RANGE, UNKNOWN_ITEMS, iterate
from gradguard.engine.python.subscripts import dict_set
from gradguard.engine.state import bounds
from gradguard.engine.state.run import Run

MODELS = Registry()


def _asked(run: Run, frame: Frame, function: Value, item: list[Value], call: Call, node: ast.AST) -> Value:
    return call_value(run, frame, function, Call(item, {}, call.place, [None] * len(item), {}), node)


@MODELS.external_function("itertools.chain", "itertools.chain.from_iterable")
def _chain(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    items: list[Value] = []
    is_open = False
    values: list[Value] = list(call.args)
    if call.name.endswith("from_iterable") and values:
        values = list(take(iterate(run, frame, values[0], node)))
    kind = ""
    for value in values:
        source = iterate(run, frame, value, node)
        kind = kind or source.kind
        items.extend(take(source))
        is_open = bounds.cut(run, items) or is_open or not source.exact
    return ListV(items, open=is_open, kind="parameters" if kind == "parameters" else "list")


@MODELS.external_function("itertools.count", "itertools.cycle", "itertools.repeat")
def _endless(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    name = call.name
    if name == "count":
        return IteratorV(indices(run, call.get(0, "start", 0)), exact=False)
    if name == "repeat":
        items = [call.get(0, "object")]
    else:
        items = list(take(iterate(run, frame, call.get(0, "iterable"), node)))
    for tensor in tensors_in(ListV(items)):
        tensor.memory.held = True  # it comes again
    turns = (items * UNKNOWN_ITEMS)[: max(UNKNOWN_ITEMS, len(items))]
    return IteratorV(iter(turns), exact=False, data=name == "cycle")


@MODELS.external_function("itertools.islice")
def _islice(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    source = iterate(run, frame, call.get(0, "iterable"), node)
    given = call.args[1:]
    bounds_given = [None, *given] if len(given) == 1 else [*given]
    sizes: list[int | None] = [one for one in bounds_given if one is None or type(one) is int]
    if len(sizes) < len(bounds_given) or any(one is not None and one < 0 for one in sizes) or len(sizes) > 3:
        return IteratorV(source.source, exact=False, data=source.data, kind=source.kind, over=(source,))
    known = slice(*sizes)
    if known.step == 0:
        return run.fresh()
    length = None
    if source.exact and source.length is not None:
        length = len(range(*known.indices(source.length)))
    picked = itertools.islice(source.source, known.start, known.stop, known.step)
    return IteratorV(
        picked, exact=source.exact, data=source.data, kind=source.kind, length=length, over=(source,)
    )


def _combined(run: Run, rows: Iterable[Any], sources: list[IteratorV]) -> Value:
    bounded = itertools.islice(rows, MAX_RANGE)
    return IteratorV(
        (TupleV(row) for row in bounded), exact=all(one.exact for one in sources), over=tuple(sources)
    )


@MODELS.external_function("itertools.product")
def _product(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    sources = [iterate(run, frame, value, node) for value in call.args]
    items: list[list[Any]] = [[*drawn(run, source)] for source in sources]
    repeat = call.kwargs.get("repeat", 1)
    if not isinstance(repeat, int) or not 0 <= repeat * len(items) <= MAX_PRODUCT:
        return run.fresh()
    return _combined(run, itertools.product(*items, repeat=repeat), sources)


MAX_PRODUCT = 8
"""Iterables whose product is followed."""


@MODELS.external_function(
    "itertools.combinations", "itertools.combinations_with_replacement", "itertools.permutations"
)
def _combinations(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    source, size = iterate(run, frame, call.get(0, "iterable"), node), call.get(1, "r")
    items = drawn(run, source)
    if size is None and call.name.endswith("permutations"):
        size = len(items)
    if not isinstance(size, int) or not 0 <= size <= MAX_PRODUCT:
        return run.fresh()
    made: Iterable[Any]
    listed: list[Any] = [*items]
    if call.name.endswith("permutations"):
        made = itertools.permutations(listed, size)
    elif call.name.endswith("replacement"):
        made = itertools.combinations_with_replacement(listed, size)
    else:
        made = itertools.combinations(listed, size)
    return _combined(run, made, [source])


@MODELS.external_function("itertools.pairwise", "more_itertools.pairwise")
def _pairwise(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    source = iterate(run, frame, call.get(0, "iterable"), node)
    items: list[Any] = [*drawn(run, source)]
    return _combined(run, itertools.pairwise(items), [source])


@MODELS.external_function("itertools.batched", "more_itertools.chunked", "more_itertools.batched")
def _batched(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    source, size = iterate(run, frame, call.get(0, "iterable"), node), call.get(1, "n")
    items = drawn(run, source)
    if not isinstance(size, int) or size < 1:
        return IteratorV(iter([TupleV(tuple(items), open=True)]), exact=False, over=(source,))
    rows = (tuple(items[at : at + size]) for at in range(0, len(items), size))
    return _combined(run, rows, [source])


@MODELS.external_function("itertools.starmap")
def _starmap(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    function, source = call.get(0, "function"), iterate(run, frame, call.get(1, "iterable"), node)

    def results() -> Iterator[Value]:
        for row in take(source):
            yield _asked(run, frame, function, list(take(iterate(run, frame, row, node))), call, node)

    return IteratorV(results(), exact=source.exact, over=(function, source))


@MODELS.external_function("itertools.accumulate")
def _accumulate(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """`accumulate([a, b, c], f)` gives `a`, `f(a, b)`, `f(f(a, b), c)`."""
    source, function = iterate(run, frame, call.get(0, "iterable"), node), call.get(1, "func")
    start = call.kwargs.get("initial")

    def results() -> Iterator[Value]:
        total, begun = start, start is not None
        if begun:
            yield total
        for item in take(source):
            if not begun:
                total, begun = item, True
            elif function is None:
                total = operators.binary(run, frame, ast.Add, total, item, node, (node, node))
            else:
                total = _asked(run, frame, function, [total, item], call, node)
            yield total

    return IteratorV(results(), exact=source.exact, over=(function, source))


@MODELS.external_function("itertools.groupby")
def _groupby(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """Neighbours with the same key, where keys are known; else each item is a group of its own."""
    source, key = iterate(run, frame, call.get(0, "iterable"), node), call.get(1, "key")
    groups: list[tuple[Value, list[Value]]] = []
    for item in drawn(run, source):
        found = item if key is None else _asked(run, frame, key, [item], call, node)
        if groups and not isinstance(found, Tensor) and key_of(groups[-1][0]) == key_of(found):
            groups[-1][1].append(item)
        else:
            groups.append((found, [item]))
    rows = [TupleV((found, ListV(items))) for found, items in groups]
    return IteratorV(iter(rows), exact=source.exact, length=len(rows), over=(source,))


@MODELS.external_function(
    "builtins.filter", "itertools.filterfalse", "itertools.takewhile", "itertools.dropwhile"
)
def _filtered(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """An item stays unless it is known that it does not."""
    function, source = call.get(0, "function"), iterate(run, frame, call.get(1, "iterable"), node)
    name = call.name

    def results() -> Iterator[Value]:
        dropping = name == "dropwhile"
        for item in take(source):
            answer = item if function is None else _asked(run, frame, function, [item], call, node)
            holds = known_truth(answer)
            if name == "takewhile" and holds is False:
                return
            if name == "dropwhile":
                dropping = dropping and holds is True
                if not dropping:
                    yield item
            elif holds is not (name == "filterfalse"):
                yield item

    return IteratorV(results(), exact=False, kind=source.kind, over=(function, source))


@MODELS.external_function("itertools.compress")
def _compress(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    source = iterate(run, frame, call.get(0, "data"), node)
    chosen = iterate(run, frame, call.get(1, "selectors"), node)
    kept = (item for item, flag in zip(take(source), take(chosen)) if known_truth(flag) is not False)
    return IteratorV(kept, exact=False, over=(source,))


_TREES = ("torch.utils._pytree", "torch.utils.pytree", "optree", "jax.tree_util", "tree")


def _mapped(
    run: Run, frame: Frame, function: Value, tree: Value, only: Value, call: Call, node: ast.AST
) -> Value:
    tree = contents(tree)
    if isinstance(tree, (ListV, TupleV)):
        items = [_mapped(run, frame, function, item, only, call, node) for item in tree.items[:MAX_RANGE]]
        if isinstance(tree, TupleV):
            return TupleV(tuple(items), tree.names, tree.open)
        return ListV(items, open=tree.open, made=call.place)
    if isinstance(tree, DictV):
        made = DictV(open=tree.open, made=call.place)
        for key, item in list(tree.items.values())[:MAX_RANGE]:
            dict_set(made, key, _mapped(run, frame, function, item, only, call, node))
        return made
    if only is not None and instance_of(tree, only) is False:
        return tree
    return _asked(run, frame, function, [tree], call, node)


@MODELS.torch_function(
    *(f"{_TREES[0]}.{name}" for name in ("tree_map", "tree_map_", "tree_map_only", "tree_map_only_"))
)
@MODELS.external_function(
    *(f"{home}.{name}" for home in _TREES[2:] for name in ("tree_map", "map_structure"))
)
def _tree_map(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """The function of each leaf of nested containers."""
    given = list(call.args)
    only = given.pop(0) if "only" in call.name and given else None
    if len(given) != 2:
        return others.unknown_call(run, frame, call.name, call, node)
    return _mapped(run, frame, given[0], given[1], only, call, node)


@MODELS.external_function("itertools.tee")
def _tee(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    source, count = iterate(run, frame, call.get(0, "iterable"), node), call.get(1, "n", 2)
    items = drawn(run, source)
    copies = count if isinstance(count, int) and 0 <= count <= MAX_PRODUCT else 2
    return TupleV(tuple(ListV(list(items), open=not source.exact) for _ in range(copies)))
