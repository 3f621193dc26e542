"""Executing statements.

Blocks are Python generators so that the interpreted program's own generators can be suspended in the middle of
a block: whatever an executor yields is a value that the interpreted function yields. The return value of a
block is None when it ran through, or the signal that ended it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from gradguard.engine.domain import relevance
from gradguard.engine.domain.conditions import known_truth
from gradguard.engine.domain.loops import Guard, Loop
from gradguard.engine.domain.signals import Jump, Return, Signal, Steps
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import Frame, IteratorV, Sym, Value
from gradguard.engine.observe import counting, lifetime
from gradguard.engine.python import attributes, definitions, imports, operators, recovery, subscripts, trying
from gradguard.engine.python.assignment import unpack_into
from gradguard.engine.python.contexts import enter, leave, swallows
from gradguard.engine.python.expressions import evaluate, guarded, lookup, periodic, skips_most
from gradguard.engine.python.iteration import iterate
from gradguard.engine.python.matching import matches
from gradguard.engine.python.names import assign_name
from gradguard.engine.python.passes import Passes
from gradguard.engine.python.truth import truth
from gradguard.engine.state import faults
from gradguard.engine.state.path import BudgetExceeded, PathEnd, PyRaise
from gradguard.engine.state.run import Run
from gradguard.engine.state.trail import Mark
from gradguard.source.nodes import walk

MAX_WHILE = 2
MAX_EXACT = 16
"""Iterations of a loop of known length that are all run; a longer one runs twice."""


def execute_block(run: Run, frame: Frame, body: list[ast.stmt]) -> Steps:
    """Run statements in order until one of them leaves the block."""
    trail = run.trail
    loop = run.loops[-1].place.node if run.loops else None
    asking: list[tuple[int, Mark]] | None = [] if getattr(loop, "body", None) is body else None
    signal: Signal = None
    for index, statement in enumerate(body):
        handler = _HANDLERS.get(type(statement))
        if handler is None:
            continue
        # As `run.step`, which is not worth a call for each statement.
        run.budget[0] -= 1
        if run.budget[0] < 0:
            raise BudgetExceeded
        run.statement = statement
        mark = trail.mark(run)
        trail.ran.append(statement)
        steps = handler(run, frame, statement)
        if steps is not None:
            signal = yield from steps
        if mark.clock != run.oracle.clock:
            if signal is None:
                trail.ended(run, frame, [statement], mark)
            elif type(statement) is ast.Return:
                trail.left(run, mark)
            if asking is not None:
                asking.append((index, mark))
        if signal is not None:
            break
    if asking and (signal is None or signal is Jump.CONTINUE):
        for index, mark in asking:
            if mark.touched == trail.touched:
                # From here on nothing happened in this pass.
                trail.ended(run, frame, body[index:], mark, last=True)
                break
    return signal


def execute_pieces(run: Run, frame: Frame, body: list[ast.stmt]) -> Steps:
    """Run the statements of a top level, or of a class in one: a fault in one of them costs what it gives."""
    for statement in body:
        where = faults.around(run)
        try:
            signal = yield from execute_block(run, frame, [statement])
        except (PyRaise, PathEnd, BudgetExceeded):
            raise
        except Exception as error:
            recovery.statement(run, frame, statement, error, where)
        else:
            if signal is not None:
                return signal
    return None


def _expr(run: Run, frame: Frame, node: ast.Expr) -> Steps | None:
    if isinstance(node.value, (ast.Yield, ast.YieldFrom)):
        return _yield(run, frame, node.value, None)
    value = evaluate(run, frame, node.value)
    attributes.statement_value(run, frame, value, node)
    return None


def _yield(run: Run, frame: Frame, node: ast.Yield | ast.YieldFrom, target: ast.expr | None) -> Steps:
    sent: Value = None
    if isinstance(node, ast.YieldFrom):
        source = iterate(run, frame, evaluate(run, frame, node.value), node)
        for count, item in enumerate(source.source):
            if count >= MAX_EXACT:
                break
            yield item
    else:
        sent = yield evaluate(run, frame, node.value) if node.value is not None else None
    if target is not None:
        unpack_into(run, frame, target, sent if sent is not None else run.fresh())
    return None


def _assign(run: Run, frame: Frame, node: ast.Assign) -> Steps | None:
    if isinstance(node.value, (ast.Yield, ast.YieldFrom)):
        return _yield(run, frame, node.value, node.targets[0])
    value = evaluate(run, frame, node.value)
    run.statement = node
    for target in node.targets:
        if type(value) in (int, float) and run.loops and _recounts(target, node.value):
            owner = evaluate(run, frame, target.value) if isinstance(target, ast.Attribute) else None
            at = counting.cell(frame, target, owner)
            before = counting.read(at) if at is not None else None
            unpack_into(run, frame, target, value)
            if type(before) in (int, float) and before != value:
                counting.counted(run, at, None, before, None)
        else:
            unpack_into(run, frame, target, value)
    return None


def _recounts(target: ast.expr, made: ast.expr) -> bool:
    """Whether a value is made from what the target holds: `n = n + 1`, `self.at = (self.at + 1) % size`."""
    known: bool | None = getattr(target, "_gradguard_recounts", None)
    if known is None:
        known = isinstance(target, (ast.Name, ast.Attribute)) and ast.unparse(target) in {
            ast.unparse(part) for part in walk(made) if isinstance(part, type(target))
        }
        target._gradguard_recounts = known  # type: ignore[attr-defined]
    return known


def _annassign(run: Run, frame: Frame, node: ast.AnnAssign) -> None:
    if node.value is not None:
        value = evaluate(run, frame, node.value)
        run.statement = node
        unpack_into(run, frame, node.target, value)


def _augassign(run: Run, frame: Frame, node: ast.AugAssign) -> None:
    target = node.target
    if isinstance(target, ast.Name):
        left = lookup(run, frame, target.id)
        if run.trace is not None and isinstance(left, Tensor):
            run.trace.read(target, left)
        right = evaluate(run, frame, node.value)
        run.statement = node
        value, _ = operators.augmented(run, frame, type(node.op), left, right, node)
        assign_name(run, frame, target.id, value, node)
        owner = index = None
    elif isinstance(target, ast.Attribute):
        owner = evaluate(run, frame, target.value)
        left = attributes.get(run, frame, owner, target.attr, target)
        right = evaluate(run, frame, node.value)
        run.statement = node
        value, _ = operators.augmented(run, frame, type(node.op), left, right, node)
        attributes.put(run, frame, owner, target.attr, value, target, augmented=value is left)
        index = None
    elif isinstance(target, ast.Subscript):
        owner = evaluate(run, frame, target.value)
        index = evaluate(run, frame, target.slice)
        left = subscripts.get(run, frame, owner, index, target)
        right = evaluate(run, frame, node.value)
        run.statement = node
        value, _ = operators.augmented(run, frame, type(node.op), left, right, node)
        # Python stores the result back: for a tensor this is `x[i] = x[i]`, a second write to `x`.
        subscripts.put(run, frame, owner, index, value, target)
    if run.loops and type(value) in (int, float):
        counting.counted(run, counting.cell(frame, target, owner, index), type(node.op), left, right)


def _if(run: Run, frame: Frame, node: ast.If) -> Steps:
    oracle, trail = run.oracle, run.trail
    start = oracle.clock
    refuses = relevance.refuses(node) and not trail.trying
    # The way that ends at once is nobody's first.
    oracle.leaning = not refuses
    try:
        test = evaluate(run, frame, node.test)
    finally:
        oracle.leaning = True
    run.statement = node
    known = known_truth(test)
    if known is None and isinstance(test, Sym) and _benign(node):
        # Neither way changes anything the tape knows: no need for two paths.
        yield from _guarded(run, frame, node, node.body, test)
        yield from _guarded(run, frame, node, node.orelse, test)
        return None
    oracle.leaning = not refuses
    answer = truth(run, frame, test, node.test)
    oracle.leaning = True
    if refuses and not answer and start != oracle.clock:
        trail.refused(run, frame, node, start)
    taken = node.body if answer else node.orelse
    run.branches.add((node, answer))
    if answer and run.loops and periodic(node.test):
        counting.passed(run, node)
    if not answer and run.loops and skips_most(node):
        # What follows in this pass runs as seldom as what stands under `if step % 100 == 0`.
        run.guards.append(Guard(run.place(frame, node), True))
    if known is None:
        return (yield from _guarded(run, frame, node, taken, test))
    if periodic(node.test):
        return (yield from _guarded(run, frame, node, taken, test))
    return (yield from execute_block(run, frame, taken))


def _guarded(run: Run, frame: Frame, node: ast.If, body: list[ast.stmt], test: Value) -> Steps:
    if not body:
        return None
    with guarded(run, frame, node, node.test, test):
        return (yield from execute_block(run, frame, body))


def _benign(node: ast.If) -> bool:
    known: bool | None = getattr(node, "_gradguard_benign", None)
    if known is None:
        known = all(map(trying.harmless, node.body)) and all(map(trying.harmless, node.orelse))
        node._gradguard_benign = known  # type: ignore[attr-defined]
    return known


def _for(run: Run, frame: Frame, node: ast.For | ast.AsyncFor) -> Steps:
    value = evaluate(run, frame, node.iter)
    run.statement = node
    source = iterate(run, frame, value, node.iter)
    loop = run.loop(run.place(frame, node), "for")
    loop.over = source.kind
    loop.exact = source.exact
    loop.assumed = 1 if source.kind == "tensor" and not source.exact else None
    loop.length = source.length or 0
    limit = MAX_EXACT if source.length is None or source.length <= MAX_EXACT else 2
    if len(run.loops) >= 2 and (source.length or 0) > 4:
        limit = 2
    loop.long = not source.exact or source.length is None or source.length > limit
    left = yield from _iterations(run, frame, node, loop, source, limit)
    if left is Jump.BREAK:
        return None
    if left is not None:
        return left
    return (yield from execute_block(run, frame, node.orelse))


def _iterations(
    run: Run, frame: Frame, node: ast.For | ast.AsyncFor, loop: Loop, source: IteratorV, limit: int
) -> Steps:
    loops = run.loops
    loops.append(loop)
    passes = Passes(run, node, loop)
    signal: Signal = None
    try:
        for count, item in enumerate(_with_another(run, loop, source)):
            if count >= limit + bool(loop.late) or passes.enough():
                break
            loop.iteration = count
            loop.began = run.tick()
            run.statement = node
            if count and loop.long and type(item) is int:
                item = counting.later(run)
            unpack_into(run, frame, node.target, item)
            signal = yield from execute_block(run, frame, node.body)
            del run.guards[loop.guards :]
            lifetime.iteration_ends(run, frame, loop)
            if signal is Jump.BREAK or isinstance(signal, Return):
                break
            signal = None
    finally:
        del run.guards[loop.guards :]
        _leave(loops, loop)
        passes.end()
        lifetime.loop_ends(run, frame, loop)
    return signal


def _leave(loops: list[Loop], loop: Loop) -> None:
    """A loop ends. That of a generator that is dropped ends while others run, and may have been left before."""
    if loop in loops:
        loops.remove(loop)


def _with_another(run: Run, loop: Loop, source: IteratorV) -> Iterator[Value]:
    """The items, and one more of an unknown number of them where a pass has something to repeat."""
    last: Value = None
    for item in source.source:
        last = item
        yield item
    if loop.late and not source.exact:
        another = counting.another(run, last)
        if another is not None:
            yield another


def _while(run: Run, frame: Frame, node: ast.While) -> Steps:
    loop = run.loop(run.place(frame, node), "while")
    loops = run.loops
    loops.append(loop)
    passes = Passes(run, node, loop)
    signal: Signal = None
    concrete = 0
    unknown = 0
    try:
        while True:
            run.statement = node
            loop.began = run.tick()
            test = evaluate(run, frame, node.test)
            known = known_truth(test)
            if known is False:
                break
            if isinstance(test, Tensor):
                truth(run, frame, test, node.test, weak=True)
            if not loop.iteration and isinstance(test, Sym) and test.counted:
                # `while len(queue) > 8` asks what an outer loop has counted, as `if` would.
                if not truth(run, frame, test, node.test):
                    break
            elif known is None and not loop.iteration:
                loop.assumed = 0
            endless = isinstance(node.test, ast.Constant)
            unknown += known is None or endless
            concrete += known is True and not endless
            loop.long = loop.long or known is None or endless or concrete >= MAX_EXACT
            if unknown > MAX_WHILE + bool(loop.late) or concrete > MAX_EXACT or passes.enough():
                break
            signal = yield from execute_block(run, frame, node.body)
            del run.guards[loop.guards :]
            lifetime.iteration_ends(run, frame, loop)
            loop.iteration += 1
            if signal is Jump.BREAK:
                return None
            if isinstance(signal, Return):
                return signal
            signal = None
    finally:
        _leave(loops, loop)
        passes.end()
        lifetime.loop_ends(run, frame, loop)
    return (yield from execute_block(run, frame, node.orelse))


def _with(run: Run, frame: Frame, node: ast.With | ast.AsyncWith) -> Steps:
    entered: list[Value] = []
    signal: Signal = None
    try:
        for item in node.items:
            manager = evaluate(run, frame, item.context_expr)
            value = enter(run, frame, manager, item.context_expr, node)
            entered.append(manager)
            if item.optional_vars is not None:
                unpack_into(run, frame, item.optional_vars, value)
        caught = any(map(swallows, entered))
        run.trail.trying += caught
        try:
            signal = yield from execute_block(run, frame, node.body)
        finally:
            run.trail.trying -= caught
        return signal
    except PyRaise:
        if not any(map(swallows, entered)):
            raise
        return None
    finally:
        mark = run.pend([signal.value] if isinstance(signal, Return) else [], past=True)
        for manager in reversed(entered):
            leave(run, frame, manager, node)
        del run.pending[mark:]


def _raise(run: Run, frame: Frame, node: ast.Raise) -> None:
    value = evaluate(run, frame, node.exc) if node.exc is not None else run.fresh()
    name = ""
    if isinstance(node.exc, ast.Call):
        name = (
            node.exc.func.attr
            if isinstance(node.exc.func, ast.Attribute)
            else getattr(node.exc.func, "id", "")
        )
    elif isinstance(node.exc, ast.Name):
        name = node.exc.id
    raise PyRaise(value, name)


def _return(run: Run, frame: Frame, node: ast.Return) -> Steps:
    value = evaluate(run, frame, node.value) if node.value is not None else None
    return Return(value)
    yield  # A generator, as all executors are.


def _break(run: Run, frame: Frame, node: ast.Break) -> Steps:
    return Jump.BREAK
    yield


def _continue(run: Run, frame: Frame, node: ast.Continue) -> Steps:
    return Jump.CONTINUE
    yield


def _function(run: Run, frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    assign_name(run, frame, node.name, definitions.function(run, frame, node), node)


def _class(run: Run, frame: Frame, node: ast.ClassDef) -> None:
    assign_name(run, frame, node.name, definitions.class_(run, frame, node), node)


def _import(run: Run, frame: Frame, node: ast.Import) -> None:
    imports.import_names(run, frame, node)


def _import_from(run: Run, frame: Frame, node: ast.ImportFrom) -> None:
    imports.import_from(run, frame, node)


def _delete(run: Run, frame: Frame, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            frame.variables.pop(target.id, None)
            run.trail.changed.append(target.id)
        elif isinstance(target, ast.Attribute):
            run.trail.changed.append(f".{target.attr}")
            attributes.delete(evaluate(run, frame, target.value), target.attr)
        elif isinstance(target, ast.Subscript):
            run.trail.changed.append("[]")
            owner = evaluate(run, frame, target.value)
            subscripts.delete(run, frame, owner, evaluate(run, frame, target.slice), node)


def _global(run: Run, frame: Frame, node: ast.Global) -> None:
    run.trail.changed.append(".")
    home = Frame(frame.namespace, frame.namespace.variables)
    for name in node.names:
        frame.outer_names[name] = home


def _nonlocal(run: Run, frame: Frame, node: ast.Nonlocal) -> None:
    for name in node.names:
        home = frame.parent.find(name) if frame.parent is not None else None
        if home is not None:
            frame.outer_names[name] = home


def _assert(run: Run, frame: Frame, node: ast.Assert) -> None:
    value = evaluate(run, frame, node.test)
    if isinstance(value, Tensor):
        truth(run, frame, value, node.test, weak=True)


def _match(run: Run, frame: Frame, node: ast.Match) -> Steps:
    subject = evaluate(run, frame, node.subject)
    for case in node.cases:
        if matches(run, frame, subject, case.pattern) and (
            case.guard is None or truth(run, frame, evaluate(run, frame, case.guard), case.guard)
        ):
            return (yield from execute_block(run, frame, case.body))
    return None


_HANDLERS: dict[type[ast.stmt], Callable[..., Steps | None]] = {
    ast.Expr: _expr,
    ast.Assign: _assign,
    ast.AnnAssign: _annassign,
    ast.AugAssign: _augassign,
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: trying.try_,
    ast.Raise: _raise,
    ast.Return: _return,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.Delete: _delete,
    ast.Global: _global,
    ast.Nonlocal: _nonlocal,
    ast.Assert: _assert,
    ast.Match: _match,
}
if hasattr(ast, "TryStar"):
    _HANDLERS[ast.TryStar] = trying.try_
