"""Entry points: what is run, with which arguments, and how the paths of one entry are put together.

The top level of a file runs as a script would. Then every function and method that was not reached from there
runs once with symbolic arguments: defaults stand for themselves, annotations tell what they can, everything
else is unknown until it is used as a tensor. What leaves such a function may be differentiated by its caller.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from gradguard.engine.autograd import backward
from gradguard.engine.domain import classes
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.events import Event
from gradguard.engine.domain.facts import Facts, Notes
from gradguard.engine.domain.fault import Fault
from gradguard.engine.domain.sharing import NOBODY, Sharing
from gradguard.engine.domain.tensors import Place, Tensor
from gradguard.engine.domain.values import (
    ClassV,
    DictV,
    Frame,
    FunctionV,
    Globals,
    Instance,
    ListV,
    Namespace,
    Sym,
    TupleV,
    Value,
)
from gradguard.engine.driver import alike, choosing, covered, merging, receivers, reuse, toplevel
from gradguard.engine.driver.devices import named_devices
from gradguard.engine.driver.record import Record
from gradguard.engine.driver.shares import FREE_UNDONE, UNDONE_A_STEP, Budget, Shares
from gradguard.engine.driver.snapshot import Snapshot
from gradguard.engine.driver.wiring import PORTS
from gradguard.engine.driver.work import SHARED_NUMBERS, Definitions, Work
from gradguard.engine.models import autograd, torchlib
from gradguard.engine.models.frameworks import SCHEDULES, schedule
from gradguard.engine.models.frameworks.schedule import Phase, Schedule
from gradguard.engine.observe import contexts, lifetime
from gradguard.engine.python import symbolic
from gradguard.engine.python.calls import call_function
from gradguard.engine.python.statements import execute_pieces
from gradguard.engine.state import faults
from gradguard.engine.state.path import (
    IMPORT_STEPS,
    MAX_FUNCTION_STEPS,
    MAX_PATHS,
    MAX_STEPS,
    OP_STEPS,
    BudgetExceeded,
    Oracle,
    PathEnd,
    PyRaise,
    Turn,
)
from gradguard.engine.state.run import Files, Run
from gradguard.engine.state.watch import Watch
from gradguard.findings import Limit, Span
from gradguard.ops.table import Table
from gradguard.source.text import Source

_MODELS = torchlib
"""Imported so that every model is registered."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """All that one file's entries did."""

    events: tuple[Event, ...]
    limits: tuple[Limit, ...]
    sources: dict[str, Source]
    """Every file an event may point into."""
    path: str
    devices: frozenset[str]
    """Devices the file names: `accelerator`, `cpu`."""
    sharing: dict[ast.AST, Sharing] = field(default_factory=dict)
    """Who shares what a statement writes, and for a module's constructor who shares what it writes."""
    needed: frozenset[ast.AST] = frozenset()
    """Where ops were recorded that a backward goes through, or may go through later, where grad mode was changed for
    good, and the calls that led there."""
    records: dict[object, Record] = field(default_factory=dict)
    """What each entry gave: `script`, or a function's node."""
    around: reuse.Surroundings = ()
    whole: reuse.Surroundings = ()
    bodies: tuple[ast.AST, ...] = ()
    """The functions that `whole` tells by their heads."""
    table: Table | None = None
    definitions: Definitions | None = None
    faulty: bool = False
    """Whether the engine met a fault: the next version takes nothing over."""

    @property
    def facts(self) -> Facts:
        """What was noted at each place; empty where nothing was to be noted."""
        return Facts.merged(one.facts for one in self.records.values() if one.facts is not None)

    def span(self, place: Place) -> Span:
        """Where a place is, in code points from 1."""
        return self.sources[place.path].span(place.node)


def analyse(
    source: Source,
    table: Table,
    files: Files,
    previous: Analysis | None = None,
    *,
    noting: bool = False,
    every_write: bool = False,
) -> Analysis:
    """Run every entry of a file. Raises nothing: a fault in one entry becomes a limit.

    previous: the analysis of an earlier version of the same file; entries all of whose code is still there (the
    very same nodes, as `Source` keeps them) are taken from it. The answer is that of a run without it.
    noting: note what was so at each place, see `Analysis.facts`.
    every_write: look at each write who shares what it changes, see `state.watch.Watch`; what is taken from `previous` stays.
    """
    if previous is not None and previous.faulty:
        previous = None
    work = Work(
        source,
        table,
        files,
        {source.path: source},
        noting,
        every_write,
        defines=toplevel.only_defines(source),
    )
    whole = reuse.surroundings(source.tree.body)
    around = reuse.surroundings([statement for statement in source.tree.body if toplevel.defines(statement)])
    present = reuse.functions_of(source.tree)
    bodies = reuse.bodies(source.tree.body)
    same = previous is not None and not reuse.exchanged(previous.bodies, bodies, present)
    old: dict[object, Record] = {}
    before: Definitions | None = None
    compared: reuse.Comparison | None = None
    if previous is not None and stands(previous, source, table, files):
        old = previous.records
        work.sources.update({path: s for path, s in previous.sources.items() if path != source.path})
        before = previous.definitions
        if before is not None and not (same and previous.around == around and before.entered <= present):
            compared = _compared(work, before, present)
            if compared is None:
                old = {key: record for key, record in old.items() if key == "script"}
    records: dict[object, Record] = {}

    def take(key: object, node: ast.AST, body: Callable[[Run], None], budget: Budget) -> Record:
        known = old.get(key)
        if known is not None and not (known.entered <= present and (known.facts is not None or not noting)):
            known = None
        if key == "script":
            known = known if previous is not None and same and previous.whole == whole else None
        elif known is not None and compared is not None and not compared.stands(known.read):
            known = None
        if known is not None and not (known.holds_for(budget) and work.ways.stand(known.taken, known.spared)):
            known = None
        if known is None or work.forgot:
            known = _contained(work, body, node, budget)
        work.ways.add(known.gone)
        records[key] = known
        return known

    # A script's loops and calls are its own; a function that nobody calls is one of many in its file.
    entered = set(
        take("script", source.tree, lambda run: run_script(run, work), Budget.own(MAX_STEPS)).entered
    )
    shapes = alike.Shapes()
    told: list[tuple[ast.AST, str]] = []
    if records["script"].stopped:
        told.append((source.tree, STOPPED.format("this code")))
    cut: set[object] = set()
    functions = toplevel.functions_in(source.tree)
    budgets = Shares(source.text.count("\n"), (node for *_, node in functions), records["script"].cost)
    for name, owner, node in functions:
        share = budgets.following()
        if node in entered or node in records:
            continue
        try:
            why = shapes.left_out(node, owner)
            own = Budget.own(shapes.allowed(node, owner, MAX_FUNCTION_STEPS))
        except Exception as error:
            work.faults.append(faults.met(error, node))
            continue
        if why:
            told.append((node, f"left out: {why}"))
            continue
        record = take(node, node, function_entry(work, name, owner), own.within(share))
        if record.stopped:
            told.append((node, STOPPED.format("this code" if own.whole <= share.whole else "the file")))
        if record.cut and share.tries < own.tries:
            cut.add(node)
        if not record.faults:
            shapes.ran(node, owner, record.steps, quiet=record.quiet)
        budgets.spend(record.cost, record.objects)
        entered |= record.entered
    if cut:
        told.append((source.tree, CUT.format(f"{len(cut)} functions" if len(cut) > 1 else "a function")))
    # A way that was not tried may be one without the mistake.
    events = merging.unique(
        replace(event, certain=False) if event.certain and key in cut else event
        for key, record in records.items()
        for event in record.events
    )
    for record in records.values():
        told += [(source.tree, message) for message in record.needs]
    met = work.met(records.values())
    limits = dict.fromkeys(
        (
            *(_limit(source, node, message) for node, message in told),
            *(_limit(source, one.node or source.tree, one.message, one.traceback) for one in met),
        )
    )
    sharing: dict[ast.AST, Sharing] = {}
    for record in records.values():
        for at, found in record.sharing.items():
            sharing[at] = sharing.get(at, NOBODY) | found
    # Nothing ran that needed the definitions: those of the version before are as good.
    definitions = work.definitions or before
    devices = (definitions.devices if definitions is not None else frozenset()).union(
        named_devices(source), *(record.devices for record in records.values())
    )
    needed: frozenset[ast.AST] = frozenset().union(*(record.needed for record in records.values()))
    if work.definitions is not None:
        work.definitions.restore()
    return Analysis(
        tuple(events),
        tuple(limits),
        work.sources,
        source.path,
        devices,
        sharing,
        needed,
        records,
        around,
        whole,
        bodies,
        table,
        definitions,
        bool(met),
    )


def _contained(work: Work, body: Callable[[Run], None], node: ast.AST, allowed: Budget) -> Record:
    """`_explore`; what goes wrong beside the paths costs the entry."""
    try:
        return _explore(work, body, node, allowed)
    except Exception as error:
        work.forget()
        return Record((), (), frozenset(), frozenset(), {}, budget=allowed, faults=(faults.met(error, node),))


def _explore(work: Work, body: Callable[[Run], None], node: ast.AST, allowed: Budget) -> Record:
    """Run an entry along its paths and keep each event once, certain only if every surviving path has it."""
    budget = [allowed.whole]
    import_budget = [IMPORT_STEPS]
    queue: list[tuple[Turn | None, tuple[covered.Way, ...]]] = [(None, ())]
    choice = work.ways.explore()
    watch = Watch(work.every_write)
    choices = choosing.Choices()
    all_quiet = makes = alike.makes(node)
    paths: list[merging.Path] = []
    met: dict[Fault, None] = {}
    needs: dict[str, None] = {}
    entered: set[ast.AST] = set()
    devices: set[str] = set()
    sharing: dict[ast.AST, Sharing] = {}
    needed: set[ast.AST] = set()
    read: set[str] = set()
    notes = Notes() if work.noting else None
    script = node is work.file.tree
    numbers = SHARED_NUMBERS if script and work.defines else 0
    objects: dict[str, int] = {}
    ops = undone = 0
    stopped = False

    while queue and len(paths) < MAX_PATHS and (not paths or allowed.whole - budget[0] < allowed.tries):
        turn, ways = queue.pop(0)
        if not (choice.worth(ways) and choices.worth(turn)):
            continue
        oracle = Oracle(turn.prefix, turn.others) if turn is not None else Oracle()
        run = Run(
            work.table,
            oracle,
            budget,
            work,
            PORTS,
            numbers,
            work.file.path,
            import_budget,
            watch=watch,
            tree=work.file.tree,
        )
        run.trace = notes
        survived = True
        try:
            survived = _run(run, body)
        except BudgetExceeded:
            stopped = True
            queue.clear()
        except Exception as error:
            run.faults.append(faults.met(error, node))
            if isinstance(error, faults.ANYWHERE):
                work.forget()
        met.update(dict.fromkeys(run.faults))
        if work.definitions is not None and work.definitions.used:
            changed = run.marks.functions_changed
            work.definitions.functions_changed = work.definitions.functions_changed or changed
            read |= work.definitions.variables.read
        needs.update(run.limits)
        entered |= run.entered - run.broken_off
        devices |= run.devices
        objects.update(run.objects)
        ops += run.ops
        for at, found in run.sharing.items():
            sharing[at] = sharing.get(at, NOBODY) | found
        for recorded in run.nodes:
            if recorded.walks or recorded.left:
                needed.update(place.node for place in (recorded.place, *recorded.calls))
        needed |= lifetime.retained_in_use(run) | run.lasting
        trained = frozenset(leaf.created.node for leaf in run.accumulated.values())
        paths.append(merging.Path(run.events, survived, oracle.answers, trained, frozenset(run.grounded)))
        shows = bool(run.nodes) or merging.shows(run.events)
        quiet = makes and not (shows or run.faults)
        all_quiet = all_quiet and quiet
        # No branch is left out before one path has run to its end: the branch may be the only way there.
        spare = quiet and any(path.survived for path in paths)
        if spare:
            choice.went(oracle)
        if notes is not None:
            notes.path_ends(run.nodes)
        if script and work.defines and survived and not (turn or shows or needs or met):
            work.script, run.trace = run, None
        else:
            run.release()
        if work.definitions is not None:
            undone += max(work.definitions.restore() - FREE_UNDONE, 0)
        # What another file does otherwise for a top level is nothing to a path that shows nothing.
        children = oracle.children(elsewhere=shows)
        if len(paths) == 1:
            children.sort(key=lambda child: child.index)
        following = choices.following(run.trail, oracle, children, run.events, turn, survived=survived)
        queue += [(child, choice.flipped(oracle, child) if spare else ()) for child in following]
    steps = allowed.whole - max(budget[0], 0)
    return Record(
        tuple(event for event in merging.merged(paths) if not lifetime.used_elsewhere(event, needed)),
        tuple(needs),
        frozenset(entered),
        frozenset(devices),
        sharing,
        frozenset(needed),
        frozenset(read),
        steps,
        allowed,
        steps + ops * OP_STEPS + undone // UNDONE_A_STEP,
        objects,
        stopped,
        bool(queue) and len(paths) < MAX_PATHS,
        notes.facts if notes is not None else None,
        all_quiet,
        frozenset(choice.gone),
        frozenset(choice.taken),
        frozenset(choice.spared),
        tuple(met),
    )


def _run(run: Run, body: Callable[[Run], None]) -> bool:
    """Run an entry along a path, and give the verdicts at its end; whether it came there."""
    try:
        body(run)
    except PyRaise:
        return False
    except PathEnd:
        pass
    if not run.unsure:
        lifetime.finish(run)
    return True


STOPPED = "stopped early: {} needs more steps than the budget allows"
CUT = "read in part: some ways through {} are not tried, the file needs more steps than the budget allows"


def _limit(source: Source, node: ast.AST, message: str, fault: str = "") -> Limit:
    body = getattr(node, "body", None)
    at = node if hasattr(node, "lineno") else (body[0] if body else None)
    span = source.span(at) if at is not None else Span(1, 1, 1, 1)
    return Limit(source.path, Span(span.line, span.column, span.line, span.column), message, fault)


def run_script(run: Run, work: Work) -> None:
    """The file's top level, as `python file.py` runs it."""
    name = "module" if work.defines else "__main__"
    namespace = Namespace(work.file.path, name, Globals({"__name__": name, "__file__": work.file.path}), True)
    frame = Frame(namespace, namespace.variables)
    run.frames.append(frame)
    for _ in execute_pieces(run, frame, work.file.tree.body):
        pass
    _check_functions(run, frame)


def _check_functions(run: Run, frame: Frame) -> None:
    done: set[int] = set()
    for cls, _ in run.marks.functions:
        if id(cls) not in done:
            done.add(id(cls))
            autograd.check_backward(run, cls, frame)
    contexts.finish(run, run.marks.functions)


def _definitions(run: Run, work: Work) -> Frame:
    """The file's top level as an import runs it, for its definitions; as new for each path."""
    shared = work.definitions or _define(work)
    library = work.library
    assert library is not None
    shared.restore()
    shared.begin(library)
    run.library, run.namespaces = library, library.namespaces
    run.start_after(library)
    run.limits.update(library.limits)
    run.frames.append(shared.frame)
    return shared.frame


def _define(work: Work) -> Definitions:
    run, work.script = work.script, None
    if run is not None:
        run.import_budget = [IMPORT_STEPS]
        frame = run.frames[0]
    else:
        run = Run(
            work.table,
            Oracle(),
            [MAX_STEPS],
            work,
            PORTS,
            SHARED_NUMBERS,
            home=work.file.path,
            import_budget=[IMPORT_STEPS],
            watch=Watch(work.every_write),
            tree=work.file.tree,
        )
        try:
            frame = _run_definitions(run, work)
        except (PyRaise, PathEnd, BudgetExceeded) as stop:
            frame = run.frames[0]
            if isinstance(stop, BudgetExceeded):
                run.limits["read in part: the top level needs more steps than the budget allows"] = None
    read = {path: one for path, one in run.namespaces.items() if one.ran}
    snapshot = Snapshot([frame], read.values())
    made = Definitions(frame, read, frozenset(run.entered), frozenset(run.devices), snapshot)
    work.definitions, work.library, run.on_load = made, run, work.loaded
    return made


def _compared(work: Work, before: Definitions, present: frozenset[ast.AST]) -> reuse.Comparison | None:
    """What the top level defines now beside what it defined before; None where nothing may be taken over."""
    try:
        made = _define(work)
    except Exception:  # each entry meets the same fault, and tells it
        return None
    compared = reuse.Comparison(before.frame, made.frame, before.namespaces, made.namespaces, present)
    return compared if compared.imports() else None


def _run_definitions(run: Run, work: Work) -> Frame:
    variables = Globals({"__name__": "module", "__file__": work.file.path})
    namespace = Namespace(work.file.path, "module", variables)
    frame = Frame(namespace, namespace.variables)
    run.frames.append(frame)
    body = [s for s in work.file.tree.body if toplevel.defines(s)]
    for _ in execute_pieces(run, frame, body):
        pass
    return frame


def function_entry(work: Work, name: str, owner: str) -> Callable[[Run], None]:
    """A function or method called as from outside, with symbolic arguments; `owner` is its class, or empty."""

    def body(run: Run) -> None:
        frame = _definitions(run, work)
        holder = frame.variables.get(owner) if owner else None
        function = (
            classes.class_lookup(holder, name) if isinstance(holder, ClassV) else frame.variables.get(name)
        )
        if not isinstance(function, FunctionV) or isinstance(function.node, ast.Lambda):
            return
        place = Place(work.file.path, function.node)
        call = Call([], {}, place, [], {}, open_args=False)
        receiver: Value = None
        if isinstance(holder, ClassV) and function.kind != "staticmethod":
            made = function.kind != "classmethod"
            receiver = receivers.receiver(run, work, frame, holder, place) if made else holder
            run.events.clear()
            call.args.append(receiver)
            call.exprs.append(None)
        driven = _scheduled(holder, name)
        if driven is not None and isinstance(receiver, Instance):
            schedule.drive(run, frame, receiver, *driven, None, function.node)
            _leave(run, None, receiver, place)
            return
        symbolic.arguments(run, function, call)
        if isinstance(holder, ClassV) and classes.is_subclass(holder, "torch.autograd.Function"):
            if name == "backward":
                autograd.check_backward(run, holder, frame)
            elif name == "forward":
                autograd.enter_forward(run, frame, holder, call, function.node)
                contexts.finish(run, run.marks.functions)
            return
        # What a module's own methods collect is a forward's business, not a step loop's.
        run.depth = int(isinstance(holder, ClassV) and classes.is_subclass(holder, "torch.nn.Module"))
        run.entered_at = run.depth
        run.trail.entry = function.node
        result = call_function(run, frame, function, call, function.node)
        _leave(run, result, receiver, place)
        _check_functions(run, frame)

    return body


def _scheduled(holder: Value, name: str) -> tuple[Schedule, Phase] | None:
    """How a framework calls a method, where it does so once a step."""
    if not isinstance(holder, ClassV):
        return None
    for one in SCHEDULES:
        phase = one.phase(name)
        if phase is not None and one.of(holder):
            return one, phase
    return None


def _leave(run: Run, result: Value, receiver: Value, place: Place) -> None:
    """Tensors that the caller gets, or finds on the object, may be differentiated later."""
    leaving: list[Tensor] = []
    seen: set[int] = set()
    _collect(result, 0, leaving, seen)
    if isinstance(receiver, Instance):
        for item in receiver.attributes.values():
            _collect(item, 1, leaving, seen)
    backward.leave(run, leaving, place)


def _collect(value: Value, depth: int, leaving: list[Tensor], seen: set[int]) -> None:
    if depth > 3 or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, Sym):
        value = value.tensor
    if isinstance(value, Tensor):
        leaving.append(value)
    elif isinstance(value, (ListV, TupleV)):
        for item in value.items:
            _collect(item, depth + 1, leaving, seen)
    elif isinstance(value, DictV):
        for _, item in value.items.values():
            _collect(item, depth + 1, leaving, seen)
    elif isinstance(value, Instance) and not classes.is_subclass(value.cls, "torch.nn.Module"):
        for item in value.attributes.values():
            _collect(item, depth + 1, leaving, seen)


def stands(previous: Analysis, source: Source, table: Table, files: Files) -> bool:
    """Whether anything of `previous` may be taken: same file, same table, other files unchanged."""
    if previous.path != source.path or previous.table is not table:
        return False
    return all(
        files.source(path) is known for path, known in previous.sources.items() if path != previous.path
    )
