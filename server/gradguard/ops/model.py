"""The shape of one op's row: what a torch callable saves, aliases, writes and reads back.

A *row* describes one public callable (`torch.max`), with one *form* for each way it can be called
(`max(input)`, `max(input, dim, keepdim)`, `max(input, other)`). The first form whose parameters accept the
arguments is the one that torch runs, as torch's own argument parser does it.

Roles name the tensors of a call: a parameter by its name (`input`, `other`, `weight`; each element when the
parameter is a list of tensors), one element of a list that always has so many as `hx[0]`, a result as `result` (single result) or `result0`, `result1`, ...; for
modules, a parameter or buffer of the module as `self.weight`, `self.running_mean`.

Conditions are written in a small language so that the data stays readable. A condition is a tuple of
*clauses*; it holds when any clause holds, and an empty tuple never holds. A clause is text: atoms joined by
` & `. Atoms:

    *                 always (whenever a node is recorded at all)
    other             the tensor in role `other` requires grad (grad mode on)
    !other            it does not require grad, or is not given
    p=2  p!=2         the argument equals / differs from that Python literal (None: not given)
    self.training=True  the attribute of the module equals that literal
    input.ndim=2      the tensor in role `input` has that many dimensions (also `!=`)
    input.kind='complex'  what it holds: `float`, `complex`, `int` or `bool`
    input.dtype='int64'  the type of its numbers
    tensors.others='all'  of a list of tensors, seen from one of them: whether `all`, `some` or `none` of the others
                      require grad
    input.contiguous=True  its elements lie in memory in the order of its dimensions
    ?                 decided by what this language cannot say (shapes, values): true or false

Alias conditions add the facts `contiguous` (the source is contiguous), `same_dtype`, `same_device`,
`same_shape`, `viewable` (the new shape can be had without a copy); joined by ` & ` as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

Condition = tuple[str, ...]
ALWAYS: Condition = ("*",)
NEVER: Condition = ()


class Kind(str, Enum):
    """What a parameter accepts; enough to choose between forms."""

    TENSOR = "tensor"
    TENSORS = "tensors"
    NUMBER = "number"
    INT = "int"
    INTS = "ints"
    BOOL = "bool"
    FLOAT = "float"
    STR = "str"
    DTYPE = "dtype"
    ANY = "any"
    SLICES = "slices"
    """An index that gives a view: a number, a slice, None, `...`, or a tuple of these."""
    MASK = "mask"
    """A tensor of bool or uint8 used as an index."""


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of a form. `default` is a Python literal as text, or None when the argument is required."""

    name: str
    kind: Kind
    default: str | None = None
    keyword_only: bool = False
    optional: bool = False
    """May be passed as None."""
    variadic: bool = False
    """The values may also be given one by one: `x.view(2, 3)`, `torch.broadcast_tensors(a, b)`."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A tensor that the recorded node keeps for backward when `when` holds."""

    role: str
    when: Condition = ALWAYS
    why: str = ""
    """One line of why backward needs it, such as `grad * result`."""


class AliasKind(str, Enum):
    """VIEW always shares memory; MAYBE does under `when`; SAME returns the argument object itself under `when`."""

    VIEW = "view"
    MAYBE = "maybe"
    SAME = "same"


@dataclass(frozen=True, slots=True)
class Alias:
    """The result in role `result` shares memory with the argument in role `of`."""

    result: str
    of: str
    kind: AliasKind
    when: Condition = ALWAYS
    multi: bool = False
    """One of several views made by one call (`unbind`, `split`): writing to it in place is refused."""
    expands: bool = False
    """Several elements may share one place in memory (`expand`)."""


@dataclass(frozen=True, slots=True)
class Write:
    """The call writes into the tensor in this role when `when` holds."""

    role: str
    when: Condition = ALWAYS
    counted: bool = True
    """False where the version counter does not see the write (batch norm statistics, fused optimizers)."""


@dataclass(frozen=True, slots=True)
class Form:
    """One way of calling an op."""

    params: tuple[Param, ...]
    given: Condition = ALWAYS
    """What the values of the arguments must be for this form to apply (`return_indices=True`)."""
    results: tuple[str, ...] = ("result",)
    """Names of the results in order; more than one means a (named) tuple is returned."""
    field_names: tuple[str, ...] = ()
    """Attribute names of a named tuple result, such as ("values", "indices")."""
    list_result: bool = False
    """The result is a list or tuple of unknown length (`split`, `unbind`), each in role `result`."""
    nodes: Condition = ALWAYS
    """When a node is recorded, given that grad mode is on: normally any differentiable argument requires grad."""
    differentiable: tuple[str, ...] = ()
    """Argument roles a gradient flows to."""
    reaches: Condition = ALWAYS
    """When backward gives them a gradient at all; else it is undefined, and a leaf's `.grad` stays None."""
    nondifferentiable: tuple[str, ...] = ()
    """Result roles that never require grad (`argmax`, the indices of `max`)."""
    saves: tuple[Saved, ...] = ()
    frees: Condition = NEVER
    """When the node holds anything that the first backward frees, so that a second one raises."""
    aliases: tuple[Alias, ...] = ()
    scattered: tuple[str, ...] = ()
    """Result roles with memory of their own that may not be contiguous though every argument is."""
    writes: tuple[Write, ...] = ()
    reads: Condition = NEVER
    """When the call waits for the device (`item`, `nonzero`, boolean mask indexing)."""
    formulas: tuple[tuple[str, str], ...] = ()
    """Gradient formula for each differentiable argument, as torch writes it."""
    source: str = ""
    """Where the facts come from: `derivatives`, `observed`, `both`, `corrected`."""
    unobserved: str = ""
    """Why live observation was not possible, when it was not."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that torch accepts and records, as Python text over the names of `examples.PRELUDE`."""

    arguments: tuple[str, ...]
    """Positional ones, then named ones (`dim=0`); a tensor may be made in place (`torch.rand(3)`)."""
    build: tuple[str, ...] = ()
    """The arguments of the constructor, for a class."""
    form: int = 0
    """Position of the form that the call takes."""
    loss: str = "result.sum()"
    attribute: bool = False
    """The op is read, not called: `x.T`."""


@dataclass(frozen=True, slots=True)
class Op:
    """One public callable of torch."""

    name: str
    names: tuple[str, ...] = ()
    """Every public spelling: `torch.sigmoid`, `Tensor.sigmoid`, `torch.special.expit`, `operator.add`, ..."""
    forms: tuple[Form, ...] = ()
    inplace_of: str = ""
    """For `Tensor.add_`: `Tensor.add`."""
    inplace: str = ""
    """For `Tensor.add`: `Tensor.add_`, where torch has one."""
    since: str = "2.0"
    example: Call | None = None
    lenient: bool = False
    """In place it takes arguments that out of place are refused (`hardtanh_` with `min_val > max_val`)."""


@dataclass(frozen=True, slots=True)
class ModuleRow:
    """One class of `torch.nn`."""

    name: str
    """`torch.nn.Linear`"""
    init: tuple[Param, ...] = ()
    """Constructor parameters; an attribute of the same name exists unless `absent` lists it."""
    absent: tuple[str, ...] = ()
    parameters: tuple[tuple[str, Condition], ...] = ()
    """Parameters and when they exist, in terms of constructor arguments: ("bias", ("bias!=False",))."""
    buffers: tuple[tuple[str, Condition], ...] = ()
    forms: tuple[Form, ...] = ()
    """Of `forward`."""
    container: bool = False
    """`Sequential`, `ModuleList`, `ModuleDict`, ...: what it does depends on its children."""
    since: str = "2.0"
    extra: tuple[tuple[str, str], ...] = field(default=())
    example: Call | None = None
