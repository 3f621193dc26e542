"""Abstract Python values.

Plain constants (numbers, strings, None, booleans) stand for themselves. Everything whose identity matters is
an object of its own, created anew on each path, so that the interpreter may simply mutate it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from types import EllipsisType, NoneType
from typing import Any, TypeAlias

from gradguard.engine.domain.fault import Fault
from gradguard.engine.domain.keys import Structure
from gradguard.engine.domain.modes import Modes
from gradguard.engine.domain.tensors import NO_CUTS, Cut, Place, Tensor, Tri, Version
from gradguard.engine.domain.versions import VersionV

Value: TypeAlias = (
    "bool | int | float | complex | str | bytes | EllipsisType | Tensor | Sym | ListV | TupleV | DictV | FunctionV"
    " | ClassV | Instance | Method | BuiltinMethod | SuperV | TorchName | External | PartialV | ModuleV | ImportV | LazyV"
    " | NativeV | IteratorV | ContextV | ArrayV | SliceV | VersionV | Missing | None"
)
"""Any abstract value: a Python constant, one of the classes of this file, or a Tensor."""


class Missing:
    """There is no answer: no model, no row of the table, or no form of the row that fits."""


MISSING = Missing()


class Sym:
    """A value that is not known.

    `key` is structural, so that the same condition asked twice is answered the same way: `step % 10 == 0`
    over the same `step` has the same key both times.
    """

    __slots__ = (
        "asked", "attributes", "called", "counted", "cuts", "data", "graphless", "items", "key", "kind", "later", "name", "owner",
        "parameters", "reading", "tensor", "text", "trains",
    )  # fmt: skip

    def __init__(self, key: Structure, kind: str = "any", *, data: bool = False, text: str = "") -> None:
        self.key = key
        self.kind = kind
        """`any`, `number`, `int`, `str`, `bool`, `module`, `tensor`, `index`, `optimizer`, `device`, `dtype`."""
        self.data = data
        """Comes out of a data loader or another source that never requires grad."""
        self.tensor: Tensor | None = None
        self.text = text
        self.attributes: dict[str, Value] = {}
        """Attributes that the program read or bound, by name."""
        self.items: dict[str, Value] = {}
        """Items that the program read or stored, by index as it is spelled: `[0]`."""
        self.owner: Sym | None = None
        """The unknown value that this one is an attribute of; `name` is the attribute."""
        self.name = ""
        self.called = False
        """The program called it, so it is no tensor."""
        self.parameters: list[Tensor] | None = None
        """The parameters of an unknown network, made when the program first asks for them."""
        self.graphless = False
        """No gradient goes through it if it is a tensor."""
        self.asked: Tensor | None = None
        """For a condition: the tensor whose value decides it."""
        self.trains: Tensor | Sym | None = None
        """For a condition such as `x.requires_grad`: the `x`, which requires grad only if the condition holds."""
        self.cuts = NO_CUTS
        """The cuts at which its number left a graph."""
        self.reading: Reading | None = None
        """The host read that gave this number."""
        self.counted = False
        """It was computed from a number that a loop counts."""
        self.later = False
        """A counted number of a later pass than the first."""

    def forget(self) -> None:
        """Drop all that was noted of it."""
        self.note_as(Sym(self.key))

    def note_as(self, other: Sym) -> None:
        """Share all that was noted of another value, and what is noted in its attributes and items from here on."""
        for name in NOTED:
            setattr(self, name, getattr(other, name))


NOTED = tuple(name for name in Sym.__slots__ if name not in ("data", "key", "kind", "tensor", "text"))
"""The notes on an unknown value; the other fields say which value it is."""


@dataclass(slots=True, eq=False)
class Reading:
    """The name of a number that the host has read, and what became of it."""

    guards: int
    """Number of guards in force."""
    named: bool = False
    """The number got a name."""
    uses: int = 0
    guarded: int = 0
    """Uses of that name under a guard that the read itself is not under."""


@dataclass(slots=True, eq=False)
class ListV:
    """A list; `open` when it may hold more than the known items."""

    items: list[Value] = field(default_factory=list)
    open: bool = False
    made: Place | None = None
    kind: str = "list"
    """`list`, `set`, `deque`, `modules`, `parameters`."""
    maxlen: Value = None
    escaped: bool = False
    trimmed: bool = False
    """Cut to a fixed number of items by a loop that is running: it does not grow."""
    counted: bool = False
    """A loop of which only the first passes are run adds items, so the length is unknown."""


@dataclass(slots=True, eq=False)
class TupleV:
    """A tuple, or a named tuple when `names` is set."""

    items: tuple[Value, ...] = ()
    names: tuple[str, ...] = ()
    open: bool = False


@dataclass(slots=True, eq=False)
class DictV:
    """A dictionary keyed by constants or by the identity of objects."""

    items: MutableMapping[object, tuple[Value, Value]] = field(default_factory=dict)
    """key token -> (key value, value)"""
    open: bool = False
    made: Place | None = None
    factory: Value = None
    kind: str = "dict"
    escaped: bool = False
    counted: bool = False
    """A loop of which only the first passes are run adds items, so the length is unknown."""


@dataclass(slots=True, eq=False)
class FunctionV:
    """A function, lambda or method written in the workspace."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    name: str
    scope: Frame | None
    namespace: Namespace
    defaults: dict[str, Value] = field(default_factory=dict)
    owner: ClassV | None = None
    modes: tuple[tuple[str, Tri], ...] = ()
    """What decorators set, innermost first: a mode of `ContextV` and its flag."""
    kind: str = "function"
    """`function`, `staticmethod`, `classmethod`, `property`, `cached_property`, `contextmanager`."""
    compiled: bool = False
    kept: Tri = False
    """Its result is cached and returned again (`functools.cache`); None if that is uncertain."""
    attributes: dict[str, Value] = field(default_factory=dict)
    setter: Value = None
    """Of a property: the function that is called when the attribute is bound."""


@dataclass(slots=True, eq=False)
class ClassV:
    """A class written in the workspace."""

    name: str
    bases: list[Value]
    attributes: dict[str, Value]
    node: ast.ClassDef | None = None
    namespace: Namespace | None = None
    dataclass: bool = False
    frozen: bool = False
    """Its objects refuse to have their attributes bound anew."""
    fields: list[tuple[str, Value]] = field(default_factory=list)
    order: tuple[Value, ...] | None = None
    """The class and its bases in lookup order, once it was asked for."""
    kind: str = ""
    """Which of torch's base classes it has, once it was asked for."""


@dataclass(slots=True, eq=False)
class Instance:
    """An object of a workspace class, or of a torch class (`cls` is then a TorchName)."""

    cls: Value
    attributes: dict[str, Value] = field(default_factory=dict)
    made: Place | None = None
    escaped: bool = False
    training: Value = True
    hooks: list[Hook] = field(default_factory=list)
    compiled: bool = False
    stored: set[str] = field(default_factory=set)
    """Names of a module's buffers that its state dict holds."""
    context: FunctionNotes | None = None
    """Of the `ctx` of a custom Function."""


@dataclass(frozen=True, slots=True, eq=False)
class Hook:
    """A function that was registered on a module or tensor."""

    kind: str
    """Of a module's: `forward`, `pre`, `backward`; empty for what else there is."""
    function: Value
    place: Place
    passes: tuple[tuple[int, int], ...] = ()
    """(loop, pass) of the loops that ran at the time."""


@dataclass(slots=True, eq=False)
class FunctionNotes:
    """What the `ctx` of one call of a custom Function was told."""

    dirty: Value = None
    undifferentiated: Value = None
    put: dict[str, tuple[Place, str]] = field(default_factory=dict)
    """Where each attribute was set, and how it is spelled there."""
    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    """Those that got the history of the call."""
    records: bool = False
    """Whether the call is sure to be part of a graph."""


@dataclass(slots=True, eq=False)
class Method:
    """A function bound to its receiver."""

    receiver: Value
    function: Value


@dataclass(slots=True, eq=False)
class BuiltinMethod:
    """A method of a built-in or torch object, by name."""

    receiver: Value
    name: str


@dataclass(slots=True, eq=False)
class SuperV:
    """`super()` inside a method."""

    receiver: Value
    after: ClassV | None


@dataclass(slots=True, frozen=True)
class TorchName:
    """A name that lives in torch: `torch.nn.functional.relu`."""

    path: str


@dataclass(slots=True, frozen=True)
class External:
    """A name of a library that is not read: `numpy.array`, `os.path.join`, a builtin as `builtins.len`."""

    path: str


@dataclass(slots=True, eq=False)
class PartialV:
    """`functools.partial`."""

    function: Value
    args: tuple[Value, ...]
    kwargs: dict[str, Value]


@dataclass(slots=True, eq=False)
class ModuleV:
    """An imported module of the workspace."""

    namespace: Namespace


@dataclass(slots=True, eq=False)
class ImportV:
    """A name that a module's top level imported from the workspace and that no code has read yet.

    It occurs only among the variables of a namespace; reading the variable gives the imported value.
    """

    home: Namespace
    name: str
    module: str
    """As the import statement spells it; `level` and `asking` say relative to which package."""
    level: int
    asking: Namespace
    busy: bool = False
    """The import is being resolved."""


@dataclass(slots=True, eq=False)
class LazyV:
    """Names that a module's top level defines and that no code has read yet; see `python.lazy`.

    It occurs only among the variables of a namespace; reading the variable gives the value of the name.
    """

    home: Namespace
    names: set[str]
    statements: list[tuple[int, ast.stmt]]
    """The statements that define the names, each with its position in the top level."""
    data: bool = False
    """Some names are neither functions nor classes, so other statements may change their values."""
    made: dict[str, Value] | None = None
    """The values by name, once a name was read."""
    busy: bool = False
    """The statements are running."""


@dataclass(slots=True, eq=False)
class NativeV:
    """A callable of the engine itself (a decorator's wrapper, a hook handle, ...)."""

    call: Callable[..., Value]
    name: str = ""
    over: tuple[Value, ...] = ()
    """Values of the program that a call of it reaches: what a weak reference gives back, the arguments of a `methodcaller`."""


@dataclass(slots=True, eq=False)
class IteratorV:
    """Something that can be iterated once; `exact` when it ends exactly where torch's would."""

    source: Iterator[Value]
    exact: bool = True
    data: bool = False
    kind: str = ""
    length: int | None = None
    over: tuple[Value, ...] = ()
    """The values that its items are taken from."""
    frame: Frame | None = None
    """For a generator: the activation of its function."""


@dataclass(slots=True, eq=False)
class ContextV:
    """A context manager the engine knows: a grad mode, or one without effect."""

    mode: str
    """`no_grad`, `enable_grad`, `inference_mode`, `set_grad`, `autocast`, `saved_hooks`, `version`, or empty; of a block that waits for an
    error `expects` where it may be torch's, else `awaits`."""
    flag: Value = True
    value: Value = None
    modes: Modes | None = None
    """Those around it, while it is entered."""
    versions: list[tuple[Version, int, int]] | None = None
    """Of `version`: counters, with their value and number of writes when it was entered."""
    place: Place | None = None


@dataclass(slots=True, eq=False)
class SliceV:
    """`a[lower:upper:step]`."""

    lower: Value = None
    upper: Value = None
    step: Value = None

    @property
    def known(self) -> slice | None:
        """As Python's own, where the program's numbers are known."""
        lower, upper, step = self.lower, self.upper, self.step
        if not isinstance(lower, (int, NoneType)) or not isinstance(upper, (int, NoneType)):
            return None
        return slice(lower, upper, step) if isinstance(step, (int, NoneType)) else None


@dataclass(slots=True, eq=False)
class ArrayV:
    """A NumPy array; `memory_of` when it shares a tensor's bytes."""

    memory_of: Tensor | None = None
    dtype: str | None = None
    cuts: frozenset[Cut] = NO_CUTS
    """Where its numbers left a graph."""


CONTAINERS = frozenset({ListV, TupleV, DictV})
"""The kinds of values whose items are looked into."""


def held_by(container: ListV | TupleV | DictV) -> Sequence[Value]:
    """The items of a container in order; for a dictionary, its values without its keys."""
    if isinstance(container, DictV):
        return [item for _, item in container.items.values()]
    return container.items


def contents(value: Value) -> Value:
    """The dictionary or list that an object of a class such as `class Rows(list)` is; any other value itself."""
    held = value.attributes.get("__children__") if isinstance(value, Instance) else None
    return held if isinstance(held, (ListV, DictV)) else value


def inside(value: Value) -> Iterator[Value]:
    """The value, or what it and the containers in it hold, in order. Each container is looked into once.

    A container that comes twice, as in `t = (t, t)`, gives what it holds where it comes first.
    """
    waiting = [value]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if not isinstance(one, (ListV, TupleV, DictV)):
            yield one
        elif id(one) not in seen:
            seen.add(id(one))
            waiting.extend(reversed(held_by(one)))


def extent(value: Value) -> int:
    """The number of values in a value, itself and everything in its containers."""
    waiting = [value]
    seen: set[int] = set()
    found = 0
    while waiting:
        one = waiting.pop()
        found += 1
        if isinstance(one, (ListV, TupleV, DictV)) and id(one) not in seen:
            seen.add(id(one))
            waiting.extend(held_by(one))
    return found


def tensors_in(value: Value) -> list[Tensor]:
    """Every tensor in a value, looking into containers."""
    if type(value) is Tensor:
        return [value]
    if type(value) is Sym:
        return [value.tensor] if value.tensor is not None else []
    if type(value) not in CONTAINERS:
        return []
    found = []
    for one in inside(value):
        if type(one) is Sym:
            one = one.tensor
        if type(one) is Tensor:
            found.append(one)
    return found


Container = ListV | DictV


Cell = tuple[dict[str, Value] | ListV | DictV, Hashable]
"""Where a number stands: variables, attributes or a container, and its name or index there."""


EVERYTHING = "*"
"""Stands for all names: every global was read."""


class Globals(dict[str, "Value"]):
    """Variables of a module's top level that remember which of them were asked for.

    A search through all variables for values that only the running entry can have put there does not count as
    reading them, and uses the methods of `dict`.
    """

    __slots__ = ("read", "written")

    def __init__(self, start: dict[str, Value]) -> None:
        super().__init__(start)
        self.read: set[str] = set()
        self.written: set[str] = set()

    def begin(self) -> None:
        """An entry starts."""
        self.read, self.written = set(), set()

    def touched(self) -> Iterator[tuple[str, Value]]:
        """The variables that the running entry read or wrote, by name: of a long file's, these are few."""
        return (
            (name, dict.__getitem__(self, name))
            for name in sorted(self.read | self.written)
            if dict.__contains__(self, name)
        )

    def __contains__(self, name: object) -> bool:
        self.read.add(name)  # type: ignore[arg-type]
        return dict.__contains__(self, name)

    def __getitem__(self, name: str) -> Value:
        self.read.add(name)
        return dict.__getitem__(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return dict.get(self, name, default)

    def __setitem__(self, name: str, value: Value) -> None:
        self.written.add(name)
        dict.__setitem__(self, name, value)

    def __iter__(self) -> Iterator[str]:
        self.read.add(EVERYTHING)
        return dict.__iter__(self)

    def keys(self) -> Any:
        self.read.add(EVERYTHING)
        return dict.keys(self)

    def values(self) -> Any:
        self.read.add(EVERYTHING)
        return dict.values(self)

    def items(self) -> Any:
        self.read.add(EVERYTHING)
        return dict.items(self)


@dataclass(slots=True, eq=False)
class Namespace:
    """Globals of one file."""

    path: str
    name: str
    variables: Globals = field(default_factory=lambda: Globals({}))
    main: bool = False
    ran: bool = False
    """Its top level has run, or is running."""
    order: tuple[int, int] = (0, 0)
    """The first and the last number of the program order that are reserved for its top level."""
    partly: str = ""
    """Why its top level did not run to the end."""
    fault: Fault | None = None
    """The fault of the engine that stopped a statement of it."""
    devices: frozenset[str] = frozenset()
    """Devices that its top level names."""
    stars: list[Namespace] = field(default_factory=list)
    """Modules whose names it takes with `*`."""
    absent: set[str] = field(default_factory=set)
    """Names that none of them has."""


@dataclass(slots=True, eq=False)
class Frame:
    """One activation of a function, or of a module's or class's body."""

    namespace: Namespace
    variables: dict[str, Value]
    parent: Frame | None = None
    function: FunctionV | None = None
    receiver: Value = None
    owner: ClassV | None = None
    outer_names: dict[str, Frame] = field(default_factory=dict)
    """Names declared `global` or `nonlocal`, and where they live."""
    site: Place | None = None
    given: tuple[Value, ...] = ()
    """The arguments as they were passed."""
    clause: bool = False
    """The variables of a comprehension, which `:=` does not add to."""

    def find(self, name: str) -> Frame | None:
        """The frame that binds `name`, walking out through closures; None if no frame does."""
        declared = self.outer_names.get(name)
        if declared is not None:
            return declared
        frame: Frame | None = self
        while frame is not None:
            if name in frame.variables:
                return frame
            frame = frame.parent
        return None
