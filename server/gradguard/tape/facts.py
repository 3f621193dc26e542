"""What the tape knows of the tensors at each place, for hovers, hints and lenses.

An analysis keeps what went wrong; this keeps what was so. The entries of a file are run once more along one or
a few paths each, with a note at every name that was read and every statement that bound one. That costs as much
as an analysis without reuse, so it is asked for only when somebody looks.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from gradguard.ops.table import Table
from gradguard.source.text import Source
from gradguard.tape import entry, lifetime
from gradguard.tape.domain import Place, Tensor, Tri
from gradguard.tape.path import MAX_STEPS, BudgetExceeded, Oracle, PathEnd, PyRaise
from gradguard.tape.run import Files, Run

MAX_PATHS = 6
MAX_FACTS = 20_000


@dataclass(frozen=True, slots=True)
class Kept:
    """A recorded op that keeps the tensor for backward."""

    op: str
    place: Place
    role: str
    version: int
    certain: bool


@dataclass(frozen=True, slots=True)
class Fact:
    """A tensor as it was at one place. None means that it is not known."""

    name: str
    version: int
    requires_grad: Tri
    leaf: Tri
    parameter: bool
    recorded_by: str
    """The op whose result it is, empty where none was recorded."""
    view_of: str
    view_op: str
    device: str | None
    dtype: str | None
    origin: str
    """`data`, `argument`, `detach`, ... as the tape has it, empty where it was computed."""
    inference: Tri
    kept: tuple[Kept, ...]
    sure: bool


@dataclass(frozen=True, slots=True)
class Walked:
    """One `backward()` call and what was kept for it, each place and role once."""

    place: Place
    kept: tuple[Kept, ...]


@dataclass(slots=True)
class Facts:
    """Facts by node: names that were read, and (statement, name) for names that were bound."""

    read: dict[ast.AST, Fact] = field(default_factory=dict)
    bound: dict[tuple[ast.AST, str], Fact] = field(default_factory=dict)
    walked: dict[ast.AST, Walked] = field(default_factory=dict)


class Cancelled(BaseException):
    """Nobody wants the facts any more. Not an Exception, so that nothing on the way takes it for a fault."""


def facts(
    source: Source,
    table: Table,
    files: Files,
    cancelled: Callable[[], bool] = lambda: False,
    only: ast.AST | None = None,
) -> Facts:
    """Run the entries of a file for their facts. A fault in one entry leaves it without facts.

    cancelled: asked often; once it says yes, Cancelled is raised.
    only: run nothing but this function, with symbolic arguments: quick, but its callers are not known. The file's
    tree stands for its top level.
    """
    found = Facts()
    work = entry.Work(source, table, files, {source.path: source})
    entered: set[ast.AST] = set()
    if only is None or only is source.tree:
        entered = _explore(work, lambda run: entry.run_script(run, work), found, cancelled)
    for name, owner, node in entry.functions_in(source.tree):
        wanted = node is only if only is not None else node not in entered
        if wanted and not entry.is_stub(node) and len(found.read) < MAX_FACTS:
            entered |= _explore(work, entry.function_entry(work, name, owner), found, cancelled)
    return found


class _Trace(dict[ast.AST, Tensor]):
    """Notes each tensor as it was when its name was read, not as it became."""

    def __init__(self, cancelled: Callable[[], bool]) -> None:
        super().__init__()
        self._cancelled = cancelled
        self.seen: dict[ast.AST, tuple[Tensor, Fact]] = {}
        self.named: dict[tuple[ast.AST, str], tuple[Tensor, Fact]] = {}

    def __setitem__(self, node: ast.AST, tensor: Tensor) -> None:
        if self._cancelled():
            raise Cancelled
        if node not in self.seen:
            self.seen[node] = (tensor, _fact(tensor, getattr(node, "id", "")))
        super().__setitem__(node, tensor)

    def bound(self, tensor: Tensor, place: Place, name: str) -> None:
        """A statement gave the tensor a name."""
        if name and (place.node, name) not in self.named:
            self.named[place.node, name] = (tensor, _fact(tensor, name))


def _explore(
    work: entry.Work, body: Callable[[Run], None], found: Facts, cancelled: Callable[[], bool]
) -> set[ast.AST]:
    queue: list[tuple[bool, ...]] = [()]
    budget, import_budget = [MAX_STEPS], [MAX_STEPS]
    entered: set[ast.AST] = set()
    for _ in range(MAX_PATHS):
        if not queue:
            break
        oracle = Oracle(queue.pop(0))
        run = Run(work.table, oracle, budget, work, home=work.file.path, import_budget=import_budget)
        trace = _Trace(cancelled)
        run.trace, run.noted = trace, trace.bound
        try:
            body(run)
            lifetime.finish(run)
        except PathEnd:
            lifetime.finish(run)
        except (PyRaise, BudgetExceeded, RecursionError):
            pass
        except Exception:  # the analysis of the same code has told the fault
            if entry.RERAISE:
                raise
        entered |= run.entered
        _collect(run, trace, found)
        queue.extend(oracle.children())
    return entered


def _collect(run: Run, trace: _Trace, found: Facts) -> None:
    kept: dict[int, list[Kept]] = {}
    walked: dict[ast.AST, tuple[Place, dict[tuple[ast.AST, str], Kept]]] = {}
    for node in run.nodes:
        for saved in node.saved:
            one = Kept(node.op, node.place, saved.role, saved.version, saved.certain)
            kept.setdefault(id(saved.tensor.memory), []).append(one)
            if node.walked is not None:
                _, places = walked.setdefault(node.walked.node, (node.walked, {}))
                places.setdefault((node.place.node, saved.role), one)
    for at, (place, places) in walked.items():
        found.walked.setdefault(at, Walked(place, tuple(places.values())))
    for read, (tensor, fact) in trace.seen.items():
        found.read.setdefault(read, _with_kept(fact, kept.get(id(tensor.memory), ())))
    for key, (tensor, fact) in trace.named.items():
        found.bound.setdefault(key, _with_kept(fact, kept.get(id(tensor.memory), ())))


def _fact(tensor: Tensor, name: str) -> Fact:
    base = tensor.base
    node = tensor.node
    return Fact(
        name,
        tensor.counter.value,
        tensor.requires_grad,
        tensor.leaf,
        tensor.parameter,
        node.op if node is not None else "",
        (base.bound_name or "another tensor") if base is not None else "",
        tensor.view_op,
        tensor.device,
        tensor.dtype,
        tensor.source,
        tensor.inference,
        (),
        tensor.sure,
    )


def _with_kept(fact: Fact, kept: Iterable[Kept]) -> Fact:
    distinct = {(each.place.node, each.role): each for each in kept}
    return replace(fact, kept=tuple(distinct.values()))
