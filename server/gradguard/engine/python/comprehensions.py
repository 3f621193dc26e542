"""Comprehensions, which run where they stand, and generator expressions, which run when they are asked for items."""

from __future__ import annotations

import ast
from collections.abc import Generator, Iterator

from gradguard.engine.domain.values import DictV, Frame, IteratorV, ListV, Sym, Value, tensors_in
from gradguard.engine.python import subscripts
from gradguard.engine.python.assignment import unpack_into
from gradguard.engine.python.iteration import iterate
from gradguard.engine.python.truth import truth
from gradguard.engine.state.run import Run
from gradguard.source.nodes import walk

MAX_ITEMS = 16

_Turns = Generator[None, None, bool]
"""A turn for each item, whose names are then bound; in the end whether there are no more."""


def gathered(run: Run, frame: Frame, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
    """All items, now."""
    made = ListV(made=run.place(frame, node), kind="set" if isinstance(node, ast.SetComp) else "list")
    inner = _inside(frame)
    mark = run.pend(made.items)
    first = _source(run, inner, node.generators[0])
    for _ in _each(run, inner, made, first, node):
        made.items.append(run.python.evaluate(run, inner, node.elt))
    del run.pending[mark:]
    return made


def table(run: Run, frame: Frame, node: ast.DictComp) -> Value:
    """All entries, now."""
    made = DictV(made=run.place(frame, node))
    inner = _inside(frame)
    mark = run.pend([made])
    first = _source(run, inner, node.generators[0])
    for _ in _each(run, inner, made, first, node):
        key = run.python.evaluate(run, inner, node.key)
        subscripts.dict_set(made, key, run.python.evaluate(run, inner, node.value))
    del run.pending[mark:]
    return made


def generator(run: Run, frame: Frame, node: ast.GeneratorExp) -> Value:
    """Items that are computed when they are asked for; only what the first clause iterates is looked up now.

    One that only chooses among items, as `(p for p in params if p.requires_grad)`, is worked out where it
    stands: then it is known how many there are.
    """
    if not _computes(node):
        made = gathered(run, frame, node)
        for clause in node.generators:
            for part in walk(clause.iter):
                name = part.id if isinstance(part, ast.Name) else ""
                home = frame.find(name) if name else None
                run.weigh((home.variables[name],) if home is not None else ())
                for tensor in tensors_in(home.variables[name]) if home is not None else ():
                    tensor.memory.held = True
        return made
    inner = _inside(frame)
    first = _source(run, inner, node.generators[0])
    exact = first.exact and len(node.generators) == 1
    return IteratorV(
        _items(run, inner, first, node),
        exact=exact,
        length=first.length if exact else None,
        over=(*first.over, first),
        frame=inner,
    )


def _computes(node: ast.GeneratorExp) -> bool:
    """Whether when the items are computed can matter, and no test says which of them there are."""
    if any(clause.ifs for clause in node.generators):
        return False
    return any(isinstance(part, (ast.Call, ast.BinOp, ast.NamedExpr)) for part in walk(node.elt))


def _items(run: Run, inner: Frame, first: IteratorV, node: ast.GeneratorExp) -> Iterator[Value]:

    turns = _turns(run, inner, first, node.generators, node)
    around: list[object] = []
    while True:
        # Loops of its own are around it while it runs, not while it waits.
        depth = len(run.loops)
        run.loops += around  # type: ignore[arg-type]
        try:
            next(turns)
            item = run.python.evaluate(run, inner, node.elt)
        except StopIteration:
            return
        finally:
            around = list(run.loops[depth:])
            del run.loops[depth:]
        run.suspended.append(inner)
        yield item
        run.suspended.remove(inner)


def _inside(frame: Frame) -> Frame:
    return Frame(
        frame.namespace,
        {},
        parent=frame,
        function=frame.function,
        receiver=frame.receiver,
        owner=frame.owner,
        clause=True,
    )


def _source(run: Run, inner: Frame, clause: ast.comprehension) -> IteratorV:

    return iterate(run, inner, run.python.evaluate(run, inner, clause.iter), clause.iter)


def _each(
    run: Run,
    inner: Frame,
    made: ListV | DictV,
    first: IteratorV,
    node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
) -> Iterator[None]:
    """All turns at once; notes in `made` whether every item was seen."""
    loops = len(run.loops)
    try:
        made.open = not (yield from _turns(run, inner, first, node.generators, node))
    finally:
        del run.loops[loops:]


def _turns(
    run: Run, inner: Frame, source: IteratorV, clauses: list[ast.comprehension], node: ast.expr
) -> _Turns:
    clause, *rest = clauses
    exact = source.exact
    loop = run.loop(run.place(inner, node), "comprehension")
    loop.over = source.kind
    run.loops.append(loop)
    for item in _limited(source.source):
        unpack_into(run, inner, clause.target, item)
        if all(_holds(run, inner, test) for test in clause.ifs):
            if rest:
                following = _source(run, inner, rest[0])
                exact = (yield from _turns(run, inner, following, rest, node)) and exact
            else:
                yield
        loop.iteration += 1
    run.loops.remove(loop)
    return exact


def _limited(source: Iterator[Value]) -> Iterator[Value]:
    for count, item in enumerate(source):
        if count >= MAX_ITEMS:
            return
        yield item


def _holds(run: Run, frame: Frame, test: ast.expr) -> bool:

    value = run.python.evaluate(run, frame, test)
    if isinstance(value, Sym):
        return True
    return truth(run, frame, value, test)
