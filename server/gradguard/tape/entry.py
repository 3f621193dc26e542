"""Entry points: what is run, with which arguments, and how the paths of one entry are put together.

The top level of a file runs as a script would. Then every function and method that was not reached from there
runs once with symbolic arguments: defaults stand for themselves, annotations tell what they can, everything
else is unknown until it is used as a tensor. What leaves such a function may be differentiated by its caller.
"""

from __future__ import annotations

import ast
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

from gradguard.findings import Limit, Span
from gradguard.ops.table import Table
from gradguard.source.text import Source
from gradguard.tape import alike, attributes, backward, covered, lifetime, merging, receivers, reuse, symbolic
from gradguard.tape.binding import Call
from gradguard.tape.calls import call_function
from gradguard.tape.devices import named_devices
from gradguard.tape.domain import Place, Tensor
from gradguard.tape.events import (
    Event,
)
from gradguard.tape.facts import Facts, Notes
from gradguard.tape.frame import Frame, Globals, Namespace
from gradguard.tape.holders import NOBODY, Sharing
from gradguard.tape.lib import autograd, torchlib
from gradguard.tape.path import (
    MAX_FUNCTION_STEPS,
    MAX_PATHS,
    MAX_STEPS,
    BudgetExceeded,
    Oracle,
    PathEnd,
    PyRaise,
)
from gradguard.tape.receivers import Made
from gradguard.tape.run import Files, Run
from gradguard.tape.snapshot import Snapshot
from gradguard.tape.statements import execute_block
from gradguard.tape.values import ClassV, DictV, FunctionV, Instance, ListV, Sym, TupleV, Value

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

    @property
    def facts(self) -> Facts:
        """What was noted at each place; empty where nothing was to be noted."""
        return Facts.merged(one.facts for one in self.records.values() if one.facts is not None)

    def span(self, place: Place) -> Span:
        """Where a place is, in code points from 1."""
        return self.sources[place.path].span(place.node)


@dataclass(frozen=True, slots=True)
class Record:
    """What one entry gave, and what it was made from: the answer stands while these nodes stand."""

    events: tuple[Event, ...]
    limits: tuple[Limit, ...]
    entered: frozenset[ast.AST]
    devices: frozenset[str]
    sharing: dict[ast.AST, Sharing]
    needed: frozenset[ast.AST] = frozenset()
    read: frozenset[str] = frozenset()
    """Globals of the file whose values it asked for."""
    steps: int = 0
    """What it took."""
    budget: int = 0
    """What it might have taken."""
    facts: Facts | None = None
    quiet: bool = False
    """No path of it put anything on the tape or showed anything."""
    gone: frozenset[covered.Way] = covered.NO_WAYS
    taken: frozenset[covered.Way] = covered.NO_WAYS
    spared: frozenset[covered.Way] = covered.NO_WAYS
    """See `covered.Choice`."""


@dataclass(slots=True)
class Definitions:
    """What a file's top level defines: made once, and put back for each entry that is a function."""

    frame: Frame
    namespaces: dict[str, Namespace]
    """Imported files that it needed."""
    entered: frozenset[ast.AST]
    devices: frozenset[str]
    snapshot: Snapshot
    used: bool = False
    functions_changed: bool = False
    """An entry changed the mode of a function after its definition."""

    def restore(self) -> None:
        """Put everything back as the top level left it."""
        if self.used:
            self.snapshot.restore(functions=self.functions_changed)
            self.used = self.functions_changed = False

    def begin(self, library: Run) -> None:
        """An entry starts."""
        self.used = True
        for variables in (self.variables, *(one.variables for one in library.namespaces.values())):
            variables.begin()

    @property
    def variables(self) -> Globals:
        """The file's globals."""
        assert isinstance(self.frame.variables, Globals)
        return self.frame.variables


@dataclass(slots=True)
class Work:
    """What the entries of one file share."""

    file: Source
    table: Table
    files: Files
    sources: dict[str, Source]
    noting: bool = False
    definitions: Definitions | None = None
    library: Run | None = None
    """The run that made them, and that loads imported modules for all entries that are functions."""
    defines: bool = False
    """Whether the file does the same as a script as when it is imported."""
    script: Run | None = None
    """A run of it as a script that left nothing behind but what it defines."""
    fresh: list[Namespace] = field(default_factory=list)
    """Modules that were loaded and are not in the snapshot yet."""
    objects: dict[str, Made | None] = field(default_factory=dict)
    """By class: the object that its methods share, None where each path makes one."""
    ways: covered.Ways = field(default_factory=covered.Ways)

    def resolve(self, module: str, level: int, from_path: str) -> str | None:
        """See `Files.resolve`."""
        return self.files.resolve(module, level, from_path)

    def source(self, path: str) -> Source | None:
        """See `Files.source`; what was read once is read no more."""
        known = self.sources.get(path)
        if known is None:
            known = self.files.source(path)
            if known is not None:
                self.sources[path] = known
        return known

    def numbers(self, shared: int) -> int:
        """Where the numbers of values begin that the n-th shared object holds."""
        return SHARED_NUMBERS * (2 + shared)

    def loaded(self, namespace: Namespace, outermost: bool) -> None:
        """The library loaded a module. What loads inside another may be changed by it until that is done."""
        self.fresh.append(namespace)
        if outermost and self.definitions is not None:
            self.definitions.snapshot.add(self.fresh)
            self.fresh.clear()


def analyse(
    source: Source, table: Table, files: Files, previous: Analysis | None = None, *, noting: bool = False
) -> Analysis:
    """Run every entry of a file. Raises nothing: a fault in one entry becomes a limit.

    previous: the analysis of an earlier version of the same file; entries all of whose code is still there (the
    very same nodes, as `Source` keeps them) are taken from it. The answer is that of a run without it.
    noting: note what was so at each place, see `Analysis.facts`.
    """
    work = Work(source, table, files, {source.path: source}, noting, defines=only_defines(source))
    whole = reuse.surroundings(source.tree.body)
    around = reuse.surroundings([statement for statement in source.tree.body if _defines(statement)])
    present = reuse.functions_of(source.tree)
    bodies = reuse.bodies(source.tree.body)
    same = previous is not None and not reuse.exchanged(previous.bodies, bodies, present)
    old: dict[object, Record] = {}
    before: Definitions | None = None
    compared: reuse.Comparison | None = None
    if previous is not None and reuse.stands(previous, source, table, files):
        old = previous.records
        work.sources.update({path: s for path, s in previous.sources.items() if path != source.path})
        before = previous.definitions
        if before is not None and not (same and previous.around == around and before.entered <= present):
            compared = _compared(work, before, present)
            if compared is None:
                old = {key: record for key, record in old.items() if key == "script"}
    records: dict[object, Record] = {}

    def take(key: object, node: ast.AST, body: Callable[[Run], None], budget: int) -> Record:
        known = old.get(key)
        if known is not None and not (known.entered <= present and (known.facts is not None or not noting)):
            known = None
        if key == "script":
            known = known if previous is not None and same and previous.whole == whole else None
        elif known is not None and compared is not None and not compared.stands(known.read):
            known = None
        if known is not None and not (known.budget == budget and work.ways.stand(known.taken, known.spared)):
            known = None
        if known is None:
            known = _explore(work, body, node, budget)
        work.ways.add(known.gone)
        records[key] = known
        return known

    # A script's loops and calls are its own; a function that nobody calls is one of many in its file.
    entered = set(take("script", source.tree, lambda run: run_script(run, work), MAX_STEPS).entered)
    shapes = alike.Shapes()
    left_out: list[Limit] = []
    for name, owner, node in functions_in(source.tree):
        if node in entered or node in records or is_stub(node):
            continue
        why = shapes.left_out(node, owner)
        if why:
            left_out.append(_limit(work, node, f"left out: {why}"))
            continue
        budget = shapes.allowed(node, owner, MAX_FUNCTION_STEPS)
        record = take(node, node, function_entry(work, name, owner), budget)
        shapes.ran(node, owner, record.steps, quiet=record.quiet)
        entered |= record.entered
    events = merging.unique(event for record in records.values() for event in record.events)
    limits = dict.fromkeys(limit for record in records.values() for limit in record.limits)
    limits.update(dict.fromkeys(left_out))
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
    )


def _explore(work: Work, body: Callable[[Run], None], node: ast.AST, steps: int) -> Record:
    """Run an entry along its paths and keep each event once, certain only if every surviving path has it."""
    budget = [steps]
    import_budget = [MAX_STEPS]
    queue: list[tuple[covered.Prefix, covered.Way | None]] = [((), None)]
    choice = work.ways.explore()
    all_quiet = makes = alike.makes(node)
    paths: list[merging.Path] = []
    limits: dict[Limit, None] = {}
    entered: set[ast.AST] = set()
    devices: set[str] = set()
    sharing: dict[ast.AST, Sharing] = {}
    needed: set[ast.AST] = set()
    read: set[str] = set()
    notes = Notes() if work.noting else None
    script = node is work.file.tree
    numbers = SHARED_NUMBERS if script and work.defines else 0

    def limit(message: str) -> None:
        limits[_limit(work, node, message)] = None

    # Another path is tried only while the half of the budget is left, so that it can be run to its end.
    while queue and len(paths) < MAX_PATHS and (not paths or budget[0] > steps // 2):
        prefix, way = queue.pop(0)
        if not choice.worth(way):
            continue
        oracle = Oracle(prefix)
        run = Run(work.table, oracle, budget, work, numbers, work.file.path, import_budget)
        run.trace = notes
        survived = True
        try:
            body(run)
            lifetime.finish(run)
        except PyRaise:
            survived = False
        except PathEnd:
            lifetime.finish(run)
        except BudgetExceeded:
            limit("stopped early: this code needs more steps than the budget allows")
            queue.clear()
        except RecursionError:
            limit("stopped early: nested too deeply")
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            limit(
                f"not analysed: internal error {type(error).__name__} in {last.name}:{last.lineno}: {error}"
            )
            if RERAISE:
                raise
        if work.definitions is not None and work.definitions.used:
            changed = "functions_changed" in run.notes
            work.definitions.functions_changed = work.definitions.functions_changed or changed
            read |= work.definitions.variables.read
        for message in run.limits:
            limit(message)
        entered |= run.entered
        devices |= run.devices
        for at, found in run.sharing.items():
            sharing[at] = sharing.get(at, NOBODY) | found
        for recorded in run.nodes:
            if recorded.walks or recorded.left:
                needed.update(place.node for place in (recorded.place, *recorded.calls))
        needed |= lifetime.retained_in_use(run) | run.lasting
        paths.append(merging.Path(run.events, survived))
        shows = bool(run.nodes) or merging.shows(run.events)
        quiet = makes and not shows
        all_quiet = all_quiet and quiet
        # Until a path has come to its end, each way may be the one that leads there.
        spare = quiet and any(path.survived for path in paths)
        if spare:
            choice.went(oracle)
        if notes is not None:
            notes.path_ends(run.nodes)
        if script and work.defines and survived and not (prefix or shows or limits):
            work.script, run.trace = run, None
        else:
            run.release()
        # What another file does otherwise for a top level is nothing to a path that shows nothing.
        children = oracle.children(elsewhere=shows)
        queue += [(child, choice.flipped(oracle, child) if spare else None) for child in children]
        if len(paths) == 1:
            queue.sort(key=lambda waiting: len(waiting[0]))
    return Record(
        tuple(event for event in merging.merged(paths) if not lifetime.used_elsewhere(event, needed)),
        tuple(limits),
        frozenset(entered),
        frozenset(devices),
        sharing,
        frozenset(needed),
        frozenset(read),
        steps - max(budget[0], 0),
        steps,
        notes.facts if notes is not None else None,
        all_quiet,
        frozenset(choice.gone),
        frozenset(choice.taken),
        frozenset(choice.spared),
    )


RERAISE = False
"""Set by tests and tools that want an engine fault to surface."""


def _limit(work: Work, node: ast.AST, message: str) -> Limit:
    body = getattr(node, "body", None)
    at = node if hasattr(node, "lineno") else (body[0] if body else None)
    span = work.file.span(at) if at is not None else Span(1, 1, 1, 1)
    return Limit(work.file.path, Span(span.line, span.column, span.line, span.column), message)


def run_script(run: Run, work: Work) -> None:
    """The file's top level, as `python file.py` runs it."""
    name = "module" if work.defines else "__main__"
    namespace = Namespace(work.file.path, name, Globals({"__name__": name, "__file__": work.file.path}), True)
    frame = Frame(namespace, namespace.variables)
    run.frames.append(frame)
    for _ in execute_block(run, frame, work.file.tree.body):
        pass
    _check_functions(run, frame)


def _check_functions(run: Run, frame: Frame) -> None:
    done: set[int] = set()
    for cls, _ in run.notes.get("functions", []):
        if id(cls) not in done:
            done.add(id(cls))
            autograd.check_backward(run, cls, frame)


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
        run.import_budget = [MAX_STEPS]
        frame = run.frames[0]
    else:
        run = Run(
            work.table,
            Oracle(),
            [MAX_STEPS],
            work,
            SHARED_NUMBERS,
            home=work.file.path,
            import_budget=[MAX_STEPS],
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


SHARED_NUMBERS = 1_000_000
"""Numbers of values made by shared definitions, out of the way of those that an entry makes."""


def _run_definitions(run: Run, work: Work) -> Frame:
    variables = Globals({"__name__": "module", "__file__": work.file.path})
    namespace = Namespace(work.file.path, "module", variables)
    frame = Frame(namespace, namespace.variables)
    run.frames.append(frame)
    body = [s for s in work.file.tree.body if _defines(s)]
    for _ in execute_block(run, frame, body):
        pass
    return frame


def only_defines(source: Source) -> bool:
    """Whether a file does the same as a script as when it is imported."""
    if source.errors or "__main__" in source.text:
        # What does not parse may stand for a statement of the version before.
        return False
    return all(_defines(statement) or alike.says(statement) for statement in source.tree.body)


def _defines(statement: ast.stmt) -> bool:
    """Statements that a function may need: definitions, imports and plain constants."""
    if isinstance(
        statement,
        (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Try, ast.If),
    ):
        return True
    return isinstance(statement, (ast.Assign, ast.AnnAssign))


Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions_in(tree: ast.Module) -> list[tuple[str, str, Function]]:
    """(name, class, node) of each function and method, those that are called from outside first."""
    found: list[tuple[str, str, Function]] = []
    pending: list[tuple[str, list[ast.stmt]]] = [("", tree.body)]
    while pending:
        owner, body = pending.pop(0)
        for statement in body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.append((statement.name, owner, statement))
            elif isinstance(statement, ast.ClassDef) and not owner:
                pending.append((statement.name, statement.body))
            elif isinstance(statement, (ast.If, ast.Try)) and not owner:
                pending.append((owner, [*statement.body, *statement.orelse]))
    return sorted(found, key=lambda one: (one[0] in _LAST, one[0].startswith("_") and one[0] != "__call__"))


_LAST = frozenset({"__init__", "__repr__", "__len__", "__str__", "extra_repr"})


def is_stub(node: Function) -> bool:
    """Whether a function does nothing or only raises, apart from its docstring."""
    body = (
        node.body[1:]
        if isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)
        else node.body
    )
    return not body or all(
        isinstance(s, (ast.Pass, ast.Raise))
        or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
        for s in body
    )


def function_entry(work: Work, name: str, owner: str) -> Callable[[Run], None]:
    """A function or method called as from outside, with symbolic arguments; `owner` is its class, or empty."""

    def body(run: Run) -> None:
        frame = _definitions(run, work)
        holder = frame.variables.get(owner) if owner else None
        function = (
            attributes.class_lookup(holder, name) if isinstance(holder, ClassV) else frame.variables.get(name)
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
        symbolic.arguments(run, function, call)
        if isinstance(holder, ClassV) and attributes.is_subclass(holder, "torch.autograd.Function"):
            if name == "backward":
                autograd.check_backward(run, holder, frame)
            return
        # What a module's own methods collect is a forward's business, not a step loop's.
        run.depth = int(isinstance(holder, ClassV) and attributes.is_subclass(holder, "torch.nn.Module"))
        run.entered_at = run.depth
        result = call_function(run, frame, function, call, function.node)
        _leave(run, result, receiver, place)
        _check_functions(run, frame)

    return body


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
    elif isinstance(value, Instance) and not attributes.is_subclass(value.cls, "torch.nn.Module"):
        for item in value.attributes.values():
            _collect(item, depth + 1, leaving, seen)
