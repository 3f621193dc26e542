"""One run of an entry point along one path: everything that is mutable lives here."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.events import Event, GraphReleased
from gradguard.engine.domain.facts import Notes
from gradguard.engine.domain.fault import Fault
from gradguard.engine.domain.loops import Branch, Guard, Loop
from gradguard.engine.domain.modes import Modes
from gradguard.engine.domain.sharing import Sharing
from gradguard.engine.domain.signals import Steps
from gradguard.engine.domain.tensors import Cut, Memory, Node, Place, Tensor, Version
from gradguard.engine.domain.values import (
    CONTAINERS,
    ArrayV,
    ClassV,
    External,
    Frame,
    FunctionV,
    Instance,
    LazyV,
    Namespace,
    Sym,
    Value,
    extent,
)
from gradguard.engine.state.notes import Kept, Marks, ModuleCall, Read, Rewritten
from gradguard.engine.state.path import FREE_OPS, FREE_WORK, OP_STEPS, WORK_A_STEP, BudgetExceeded, Oracle
from gradguard.engine.state.trail import Trail
from gradguard.engine.state.watch import Watch
from gradguard.ops.table import Table
from gradguard.source.text import Source

MOST_ASIDE, MIN_ASIDE = 10**14, 1000
"""Numbers put aside for an import: by the file itself, and at least; a module's imports share its own."""

MAX_DEPTH = 24
"""Interpreted calls that may be nested."""


class Files(Protocol):
    """How the analysis reads other files of the workspace."""

    def resolve(self, module: str, level: int, from_path: str) -> str | None:
        """Path of an imported module, None outside the workspace."""

    def source(self, path: str) -> Source | None:
        """A file's text and tree."""


@dataclass(slots=True)
class Left:
    """The summary of the making of an object: all that it leaves in a path state besides the object."""

    leaves: list[Tensor]
    optimizers: list[Instance]
    marks: Marks
    remembered: dict[Hashable, Value]
    lines: set[tuple[str, int]]
    sharing: dict[ast.AST, Sharing]
    looked: dict[ast.AST, int]
    cuts_under: dict[ast.AST, Cut]
    ops: int


class Interpreter(Protocol):
    """The interpreter of Python: statements, expressions and calls need one another, and models need all three."""

    def evaluate(self, run: Run, frame: Frame, node: ast.expr) -> Value:
        """Value of an expression."""

    def execute(self, run: Run, frame: Frame, body: list[ast.stmt]) -> Steps:
        """Run statements in order until one of them leaves the block."""

    def execute_pieces(self, run: Run, frame: Frame, body: list[ast.stmt]) -> Steps:
        """The same for a top level, or for a class in one: after a fault in a statement, the names it binds are unknown."""

    def call(self, run: Run, frame: Frame, callee: Value, call: Call, node: ast.AST) -> Value:
        """Call any value."""


class Models(Protocol):
    """The models of the objects of torch and of other libraries; the interpreter itself knows none of them."""

    def torch(self, run: Run, frame: Frame, path: str, call: Call, node: ast.AST) -> Value:
        """Call a name of torch."""

    def external(self, run: Run, frame: Frame, path: str, call: Call, node: ast.AST) -> Value:
        """Call a name of another library, or a builtin."""

    def method(self, run: Run, frame: Frame, receiver: Value, name: str, call: Call, node: ast.AST) -> Value:
        """Call a method of an object whose class is not of the workspace."""

    def call_instance(self, run: Run, frame: Frame, callee: Instance, call: Call, node: ast.AST) -> Value:
        """Call an object."""

    def call_unknown(self, run: Run, frame: Frame, callee: Value, call: Call, node: ast.AST) -> Value:
        """Call a value of unknown kind."""

    def init_base(self, run: Run, frame: Frame, made: Instance, call: Call, node: ast.AST) -> None:
        """`__init__` that a workspace class inherits from torch."""

    def external_attribute(self, run: Run, owner: External, name: str) -> Value:
        """`np.pi`, `os.path`."""

    def instance_attribute(self, run: Run, owner: Instance, name: str) -> Value:
        """Attribute that a library's base class gives an object, or MISSING."""

    def special(
        self, run: Run, frame: Frame, receiver: Instance, name: str, args: Sequence[Value], node: ast.AST
    ) -> Value:
        """A special method that a library's base class gives an object, called; MISSING where it has none."""

    def array_attribute(self, run: Run, owner: ArrayV, name: str) -> Value:
        """Attribute of a NumPy array."""

    def tensor_attribute(
        self, run: Run, frame: Frame, owner: Tensor, name: str, node: ast.Attribute
    ) -> Value:
        """`x.grad`, `x.T`, `x.shape`."""

    def set_tensor_attribute(
        self,
        run: Run,
        frame: Frame,
        owner: Tensor,
        name: str,
        value: Value,
        node: ast.AST,
        *,
        augmented: bool = False,
    ) -> None:
        """`x.grad = value`."""


@dataclass(frozen=True, slots=True)
class Ports:
    """The interpreter and the models that a run works with."""

    python: Interpreter
    models: Models


class Run:
    """The state of one path. Only its events outlive it."""

    def __init__(
        self,
        table: Table,
        oracle: Oracle,
        budget: list[int],
        files: Files,
        ports: Ports,
        numbers_from: int = 0,
        home: str = "",
        import_budget: list[int] | None = None,
        *,
        watch: Watch | None = None,
        tree: ast.Module | None = None,
    ) -> None:
        self.table = table
        self.oracle = oracle
        self.budget = budget
        self.files = files
        self.python = ports.python
        self.models = ports.models
        self.home = home
        """Path of the file whose entry runs."""
        self.modes = Modes()
        self.expected = 0
        self.catching: list[tuple[Place, Frame | None]] = []
        """Handlers of running `try` blocks that catch an error of torch; with a frame, only one that is raised right there."""
        """Blocks around that wait for torch to raise: `with pytest.raises(RuntimeError)`."""
        self.events: list[Event] = []
        self.loops: list[Loop] = []
        self.branches: set[Branch] = set()
        """Ways that were gone in the running pass of the innermost loop."""
        self.shown: dict[object, set[Branch]] = {}
        """Of each loop of which two passes were run: the ways gone in them."""
        self.guards: list[Guard] = []
        self.calls: list[Place] = []
        self.functions: list[FunctionV] = []
        self.entered: set[ast.AST] = set()
        self.lines: set[tuple[str, int]] = set()
        self.library: Run | None = None
        """The run that loads modules for this run; None if this run loads them itself."""
        self.namespaces: dict[str, Namespace] = {}
        self.import_budget = import_budget if import_budget is not None else budget
        """Steps left for the top levels of imported modules."""
        self.loading = 0
        """Modules whose top level is running."""
        self.making = 0
        """The same, and definitions of other modules that are being made."""
        self.on_load: Callable[[Namespace | LazyV, bool], None] | None = None
        """Called for each module that was loaded and each definition that was made, with whether it was the outermost."""
        self.nodes: list[Node] = []
        self.backwards: list[tuple[Place, tuple[tuple[int, int], ...]]] = []
        self.leaves: list[Tensor] = []
        self.frames: list[Frame] = []
        self.suspended: list[Frame] = []
        """Activations of suspended generators."""
        self.pending: list[tuple[int, list[Value]]] = []
        """Values of expressions that are not evaluated to the end, each with the number of frames around it."""
        self.step_site: Place | None = None
        self.optimizers: list[Instance] = []
        self.devices: set[str] = set()
        self.ops = 0
        """Operations on tensors."""
        self.objects: dict[str, int] = {}
        """The steps it took to make the objects that entries share, by class."""
        self.remembered: dict[Hashable, Value] = {}
        """Results of functions with a cache, by the function and its plain arguments."""
        self.marks = Marks()
        self.limits: dict[str, None] = {}
        self.faults: list[Fault] = []
        """Faults of the engine that cost a piece of the program."""
        self.broken_off: set[ast.AST] = set()
        """Functions in which a fault was met."""
        self.unsure = False
        """A piece that a fault cost may have done anything: no event after it is certain."""
        self.statement: ast.stmt | None = None
        self.trail = Trail(home, tree)
        self.trace: Notes | None = None
        """Notes each tensor whose name is read or bound; None if no editor asks."""
        self.submodule_inputs: list[tuple[Tensor, int, Place]] = []
        self.arguments_likely = False
        """Whether unknown arguments of the entry require grad by convention."""
        self.compiled = 0
        self.watch = watch or Watch()
        """Decides which writes get an alias set."""
        self.sharing: dict[ast.AST, Sharing] = {}
        self.gradient_read = 0
        """When a `.grad` was last read, in the program order."""
        self.lasting: set[ast.AST] = set()
        """Where a graph was put away to be given out again, a view without history taken that is used, or grad mode
        changed for good, and the calls that led there."""
        self.lent_nodes: set[Node] = set()
        """Nodes of the tensors that escaped to code which is not read."""
        self.looked: dict[ast.AST, int] = {}
        self.looks = 0
        """Values that were visited to find alias sets."""
        self.depth = 0
        """Module calls that are running."""
        self.entered_at = 0
        """`depth` where the entry began: 1 in a method of a module."""
        self.kept: dict[tuple[str, ast.AST, ast.AST], Kept] = {}
        self.released: set[tuple[ast.AST, ast.AST]] = set()
        """(place, loop) of each release of a graph for which an event was emitted."""
        self.module_calls: list[ModuleCall] = []
        self.retained: list[tuple[Place, list[Node], int]] = []
        self.accumulated: dict[int, Tensor] = {}
        """The leaves that a backward reached, by number."""
        self.grounded: set[ast.AST] = set()
        """Calls of `backward` whose loss had a graph, or may have had one."""
        self.due: list[ast.AST] = []
        """Calls of `backward` that the next step of an optimizer follows, or the last step followed."""
        self.stepped: dict[tuple[Instance, ast.AST], None] = {}
        """Optimizers that made a step, each with the calls of `backward` that came before it and after other steps."""
        self.between = False
        """A step was made since the last `backward`."""
        self.doubled: list[tuple[Place, str, list[Tensor]]] = []
        """Backward calls that made a graph of the gradients, and the leaves these were added to."""
        self.cleared: set[int] = set()
        """Leaves whose gradient was dropped or detached."""
        self.reads: list[Read] = []
        self.lost: dict[Cut, Place] = {}
        """Cuts whose value reached a loss, and that loss's backward."""
        self.cuts_under: dict[ast.AST, Cut] = {}
        """The cut of each place that switched grad mode off."""
        self.named_grads: dict[int, Place] = {}
        """Gradients that a plain name keeps by reference."""
        self.stale_grads: dict[int, tuple[Place, Place]] = {}
        """The named gradients that were overwritten since: (named at, overwritten at)."""
        self.rewritten: dict[int, Rewritten] = {}
        self._worked = 0
        self._order = 0
        self._aside = MOST_ASIDE
        self.made = self._loops = numbers_from
        """`made`: the number of the last value that was made."""
        self._shared = numbers_from > 0

    def tick(self) -> int:
        """Next number of the program order."""
        self._order += 1
        return self._order

    def lasts(self, place: Place) -> None:
        """Note that an effect of this place outlives the statements around it and depends on their grad mode."""
        self.lasting.update(one.node for one in (place, *self.calls))

    def reads_gradient(self) -> None:
        """A `.grad` is read now."""
        self.gradient_read = self._order

    def start_after(self, other: Run) -> None:
        """Continue the program order after the last number of another run."""
        self._order = max(self._order, other._order)

    def put_aside(self) -> tuple[int, int]:
        """Keep numbers of the program order back for a module that is loaded later as if it were now."""
        first = self._order + 1
        self._order += max(MIN_ASIDE, self._aside // 100)
        return first, self._order

    def go_back(self, order: tuple[int, int]) -> tuple[int, int]:
        """Continue the program order with reserved numbers; returns the argument for `go_on` afterwards."""
        was = self._order, self._aside
        self._order, self._aside = order[0], order[1] - order[0]
        return was

    def go_on(self, was: tuple[int, int]) -> int:
        """Continue where `go_back` left off; returns the last number that was taken since."""
        taken = self._order
        self._order, self._aside = was
        return taken

    def step(self, units: int = 1) -> None:
        """Count work. Raises BudgetExceeded at the end of the budget."""
        self.budget[0] -= units
        if self.budget[0] < 0:
            raise BudgetExceeded

    def operate(self) -> None:
        """Count an operation on tensors. Raises BudgetExceeded."""
        self.ops += 1
        if self.ops > FREE_OPS:
            self.step(OP_STEPS)

    def work(self, units: int) -> None:
        """Count work that grows with what a program has made and not with its text; most programs have it for nothing.

        A unit takes less than a tenth of a step, and some fifty bytes at most. Raises BudgetExceeded.
        """
        self._worked += units
        if self._worked > FREE_WORK:
            self.step(units // WORK_A_STEP)

    def weigh(self, values: Iterable[Value]) -> None:
        """Count the work of going through containers. Raises BudgetExceeded."""
        for value in values:
            if type(value) in CONTAINERS:
                self.work(extent(value))

    def fresh(self, kind: str = "any", *, data: bool = False, text: str = "") -> Sym:
        """An unknown value of its own."""
        self.made += 1
        return Sym(("#", self.made), kind, data=data, text=text)

    def tensor(self, place: Place, *, memory: Memory | None = None, counter: Version | None = None) -> Tensor:
        """A new tensor object; inference mode marks it."""
        self.made += 1
        self.trail.touched += 1
        made = Tensor(self.made, place, memory=memory, counter=counter)
        if self._shared or self.making:
            made.memory.shared = True
        made.inference = self.modes.inference
        return made

    def pend(self, values: list[Value], *, past: bool = False) -> int:
        """Values that an expression holds while the rest of it is evaluated; where to cut `pending` off behind it.

        past: the statement is over, and others of its function run before the values are taken.
        """
        self.pending.append((len(self.frames) - past, values))
        return len(self.pending) - 1

    def loop(self, place: Place, kind: str) -> Loop:
        """A new loop, not yet entered."""
        self._loops += 1
        return Loop(
            self._loops,
            place,
            started=self.tick(),
            kind=kind,
            guards=len(self.guards),
            depth=self.depth,
            functions=len(self.functions),
            nodes=len(self.nodes),
            frame=self.frames[-1] if self.frames else None,
        )

    def makes(self, functions: int) -> bool:
        """Whether the outermost of the running functions, so many, have begun to make an object."""
        return any(function.name == "__init__" for function in self.functions[:functions])

    def iterations(self) -> tuple[tuple[int, int], ...]:
        """(loop, iteration) of each running loop, outermost first."""
        return tuple([(loop.number, loop.iteration) for loop in self.loops if loop.kind != "comprehension"])

    def assumed(self) -> bool:
        """Whether a running pass of a loop is only assumed to be."""
        return any(loop.assumed is not None and loop.iteration >= loop.assumed for loop in self.loops)

    def here(self) -> Place:
        """The statement that is running."""
        path = self.frames[-1].namespace.path if self.frames else self.home
        return Place(path, self.statement if self.statement is not None else ast.Pass())

    def place(self, frame: Frame, node: ast.AST) -> Place:
        """Where `node` of this frame stands."""
        return Place(frame.namespace.path, node)

    def emit(self, event: Event, instances: Iterable[Hashable] = ((),)) -> None:
        """Remember an event. In a pass that may never run it is not certain; where the program expects an error, it is dropped.

        instances: of what it is about, see `Event.instances`.
        """
        if not isinstance(event, GraphReleased):
            self.trail.act()
        if self.expected:
            return
        certain = False if event.certain and (self.unsure or self.assumed()) else event.certain
        now = self.instance()
        here = self.frames[-1] if self.frames else None
        caught = next((at for at, frame in reversed(self.catching) if frame is None or frame is here), None)
        self.events.append(
            replace(event, certain=certain, instances=tuple([(now, one) for one in instances]), caught=caught)
        )

    def instance(self) -> Hashable:
        """What tells this moment from others at the same place, on whichever path: call sites and passes of loops."""
        return tuple([call.node for call in self.calls]), tuple([loop.iteration for loop in self.loops])

    def left(self) -> Left | None:
        """The summary of this run, for another run to `take`; None if more happened than the making of an object."""
        happened = (
            self.nodes, self.backwards, self.submodule_inputs, self.lasting, self.lent_nodes, self.kept, self.released,
            self.module_calls, self.retained, self.accumulated, self.doubled, self.cleared, self.reads, self.lost,
            self.named_grads, self.stale_grads, self.rewritten, self.gradient_read, self.suspended,
        )  # fmt: skip
        if any(happened) or self.modes != Modes() or self.marks.only_here:
            return None
        return Left(
            self.leaves,
            self.optimizers,
            self.marks,
            self.remembered,
            self.lines,
            self.sharing,
            self.looked,
            self.cuts_under,
            self.ops,
        )

    def take(self, left: Left) -> None:
        """Add what another run did, as if this run had done it."""
        self.leaves += left.leaves
        self.optimizers += left.optimizers
        self.marks.add(left.marks)
        self.remembered.update(left.remembered)
        self.lines |= left.lines
        self.sharing.update(left.sharing)
        self.looked.update(left.looked)
        self.cuts_under.update(left.cuts_under)
        self.ops += left.ops

    def release(self) -> None:
        """Break the reference cycles of a tape that is no longer needed, so that it is freed now and not by a collection."""
        for node in self.nodes:
            node.saved.clear()
            node.edges.clear()
        if self.library is None:
            for variables in {id(frame.variables): frame.variables for frame in self.frames}.values():
                for value in dict.values(variables):
                    if type(value) is ClassV:
                        value.attributes.clear()
                        value.order = None
                variables.clear()
