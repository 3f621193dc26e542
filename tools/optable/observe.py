"""Watching one call of torch: what it saved, aliased, wrote and read back.

Saving is seen through saved-tensor hooks: a tensor that a node keeps shares its version counter with the argument
or result it stands for, so raising the version of one argument shows which of the kept tensors are that argument,
a view of it, or neither. The validator checks the same facts in the way a user meets them: by writing and running
backward.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.autograd.graph import increment_version, saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode

Arguments = Mapping[str, Any]
"""Values of a call by parameter name."""
Caller = Callable[[Arguments], Any]

_READING_TAGS = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)


@dataclass(frozen=True, slots=True)
class SeenAlias:
    result: str
    of: str
    same: bool
    """The very same object."""
    multi: bool
    expands: bool


@dataclass(slots=True)
class Seen:
    """What one call did, with the roles in `grads` requiring grad.

    Of a role that holds several tensors these are all of them, or those that are named next to it (`hx`, `hx[0]`).
    """

    grads: frozenset[str]
    results: tuple[str, ...] = ()
    list_result: bool = False
    field_names: tuple[str, ...] = ()
    floating: bool = False
    """Some result could require grad by its dtype, or there is none."""
    recorded: bool = False
    differentiable_results: frozenset[str] = frozenset()
    saved: frozenset[str] = frozenset()
    partly: frozenset[str] = frozenset()
    """Roles holding several tensors of which only some were saved."""
    elements: dict[str, tuple[bool, ...]] = field(default_factory=dict)
    """For each role holding several tensors: which of them were saved."""
    frees: bool = False
    aliases: tuple[SeenAlias, ...] = ()
    shapes: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    """For each result and argument: the alias facts (`same_dtype`, ...) that hold."""
    scattered: frozenset[str] = frozenset()
    """Results with memory of their own that are not contiguous though every argument is."""
    counted: frozenset[str] = frozenset()
    uncounted: frozenset[str] = frozenset()


class Refused(Exception):
    """torch refused the call with these arguments."""


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Every tensor inside nested lists, tuples and dicts."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)


def can_require_grad(tensor: torch.Tensor) -> bool:
    return bool(tensor.is_floating_point() or tensor.is_complex())


def replace_tensors(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The same structure with every tensor replaced."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(replace_tensors(v, change) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(replace_tensors(v, change) for v in value)
    if isinstance(value, dict):
        return {k: replace_tensors(v, change) for k, v in value.items()}
    return value


def fresh(value: Any, *, grad: bool) -> Any:
    """Copies of the tensors; with `grad`, results of an operation on leaves that require grad."""

    def copy(t: torch.Tensor) -> torch.Tensor:
        plain = t.detach().clone()
        if grad and can_require_grad(plain):
            return plain.requires_grad_().clone()
        return plain

    return replace_tensors(value, copy)


def element(role: str, index: int) -> str:
    """The role of one of the tensors of a role that holds several."""
    return f"{role}[{index}]"


def fresh_role(role: str, value: Any, grads: frozenset[str]) -> Any:
    """Copies of the tensors of a role, with those requiring grad that `grads` names: the role alone names them all."""
    named = [element(role, i) in grads for i, _ in enumerate(tensors_in(value))]
    if not any(named):
        return fresh(value, grad=role in grads)
    turn = iter(named)
    return replace_tensors(value, lambda t: fresh(t, grad=next(turn)))


def result_roles(value: Any) -> tuple[list[tuple[str, torch.Tensor]], tuple[str, ...], bool, tuple[str, ...]]:
    """Result tensors with their roles, the roles in order, whether it is a list, and field names."""
    if isinstance(value, torch.Tensor):
        return [("result", value)], ("result",), False, ()
    if isinstance(value, Iterator):
        value = list(value)
    if isinstance(value, list) or (isinstance(value, tuple) and not _is_record(value) and len(value) == 0):
        return [("result", t) for t in tensors_in(value)], ("result",), True, ()
    if isinstance(value, tuple):
        roles = tuple(f"result{i}" for i in range(len(value)))
        pairs = [(role, t) for role, item in zip(roles, value) for t in tensors_in(item)]
        names = tuple(getattr(type(value), "_fields", ())) or _structseq_fields(value)
        return pairs, roles, False, names
    if isinstance(value, dict):
        return [("result", t) for t in tensors_in(value)], ("result",), True, ()
    return [], (), False, ()


def _is_record(value: Any) -> bool:
    return hasattr(type(value), "_fields") or hasattr(type(value), "n_sequence_fields")


def _structseq_fields(value: Any) -> tuple[str, ...]:
    """Field names of a C structseq such as `torch.return_types.max`."""
    if not hasattr(type(value), "n_sequence_fields"):
        return ()
    names = [n for n in dir(type(value)) if not n.startswith(("_", "n_")) and n not in ("count", "index")]
    order = {id(getattr(value, n)): n for n in names}
    found = tuple(order.get(id(item), "") for item in value)
    return found if all(found) else ()


Scene = Callable[[frozenset[str]], "tuple[Callable[[], Any], dict[str, Any]]"]
"""Sets up one run with the given roles requiring grad: the call to make, and the tensors of each role."""


def scene_of(call: Caller, arguments: Arguments) -> Scene:
    """Each run gets copies of the arguments that nothing else holds."""

    def set_up(grads: frozenset[str]) -> tuple[Callable[[], Any], dict[str, Any]]:
        values = {name: fresh_role(name, value, grads) for name, value in arguments.items()}
        return lambda: call(values), values

    return set_up


def observe(scene: Scene, grads: frozenset[str], seed: int = 0) -> Seen:
    """Makes one run and reports. Raises Refused when torch refuses the arguments."""
    # `torch.manual_seed` would also format a stack trace for each GPU backend, many times the cost of a call.
    torch.default_generator.manual_seed(seed)
    call, values = scene(grads)
    held = [(name, t) for name, value in values.items() for t in tensors_in(value)]
    before = [(t._version, None if grads else t.detach().clone()) for _, t in held]
    nodes = [t.grad_fn for _, t in held]
    kept: list[tuple[torch.Tensor, int]] = []

    def pack(t: torch.Tensor) -> torch.Tensor:
        kept.append((t, t._version))
        return t

    torch.default_generator.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with torch.enable_grad(), saved_tensors_hooks(pack, lambda t: t):
                out = call()
        except Exception as error:
            raise Refused(f"{type(error).__name__}: {error}") from error
    results, roles, is_list, names = result_roles(out)
    seen = Seen(grads, roles, is_list, names)
    seen.differentiable_results = frozenset(role for role, t in results if t.requires_grad)
    seen.floating = any(can_require_grad(t) for _, t in results) or not (results or is_list)
    old = {id(node) for node in nodes}
    outputs = [t for _, t in [*results, *held] if t.requires_grad]
    seen.recorded = any(t.grad_fn is not None and id(t.grad_fn) not in old for t in outputs)
    seen.frees = seen.recorded and (bool(kept) or _raises_twice(scene, grads, seed))
    seen.counted = frozenset(name for (name, t), (version, _) in zip(held, before) if t._version != version)
    if not grads:
        seen.uncounted = frozenset(
            name
            for (name, t), (version, old) in zip(held, before)
            if t._version == version and old is not None and not _equal(t, old)
        )
    _see_aliases(seen, held, results)
    seen.scattered = scattered([t for _, t in held], results)
    if seen.recorded:
        _see_saves(seen, held, results, kept, {id(t): v for (_, t), (v, _) in zip(held, before)})
    return seen


def _raises_twice(scene: Scene, grads: frozenset[str], seed: int) -> bool:
    """Whether a second backward through the nodes of the call raises, for nodes that keep no tensor of ours.

    A Python number that torch wrapped into a tensor is kept without passing the hooks.
    """
    torch.default_generator.manual_seed(seed)
    call, values = scene(grads)
    held = list(tensors_in(list(values.values())))
    nodes = [t.grad_fn for t in held]
    torch.default_generator.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outputs = [t for _, t in result_roles(call())[0]] + held
        old = {id(n) for n in nodes}
        for output in [t for t in outputs if t.grad_fn is not None and id(t.grad_fn) not in old][:1]:
            edges = [
                torch.autograd.graph.get_gradient_edge(t)
                if n is None
                else torch.autograd.graph.GradientEdge(n, 0)
                for t, n in zip(held, nodes)
                if n is not None or (t.is_leaf and t.requires_grad)
            ]
            try:
                for _ in range(2):
                    torch.autograd.grad(
                        [output], edges, [torch.ones_like(output)], allow_unused=True, retain_graph=False
                    )
            except RuntimeError as error:
                return "second time" in str(error)
    return False


def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype or a.layout != torch.strided or a.is_meta:
        return bool(a.shape == b.shape)
    if a.is_floating_point() or a.is_complex():
        return bool(torch.allclose(a.detach(), b, rtol=0, atol=0, equal_nan=True))
    return bool(torch.equal(a, b))


def _storage(t: torch.Tensor) -> int:
    try:
        return int(t.untyped_storage().data_ptr())
    except (RuntimeError, NotImplementedError):
        return 0


def _see_aliases(
    seen: Seen, held: Sequence[tuple[str, torch.Tensor]], results: Sequence[tuple[str, torch.Tensor]]
) -> None:
    aliases: dict[tuple[str, str], SeenAlias] = {}
    for role, result in results:
        for name, argument in held:
            seen.shapes[role, name] = alias_facts(argument, result)
            same = result is argument
            place = _storage(result)
            if not same and (place == 0 or place != _storage(argument)):
                continue
            if (role, name) in aliases and aliases[role, name].same:
                continue
            aliases[role, name] = SeenAlias(role, name, same, _is_multi(result), _expands(argument, result))
    seen.aliases = tuple(aliases.values())


def scattered(
    arguments: Sequence[torch.Tensor], results: Sequence[tuple[str, torch.Tensor]]
) -> frozenset[str]:
    """The results of new memory that do not lie in it in the order of their dimensions, where all arguments do."""
    if not all(t.layout == torch.strided and t.is_contiguous() for t in arguments):
        return frozenset()
    taken = {_storage(t) for t in arguments}
    return frozenset(
        role
        for role, t in results
        if t.layout == torch.strided and not t.is_contiguous() and _storage(t) not in taken
    )


def alias_facts(argument: torch.Tensor, result: torch.Tensor) -> frozenset[str]:
    """The alias facts of the condition language that hold between an argument and a result."""
    facts = set()
    if argument.layout == torch.strided and argument.is_contiguous():
        facts.add("contiguous")
    if argument.dtype == result.dtype:
        facts.add("same_dtype")
    if argument.device == result.device:
        facts.add("same_device")
    if argument.shape == result.shape:
        facts.add("same_shape")
    try:
        argument.detach().view(result.shape)
        facts.add("viewable")
    except RuntimeError:
        pass
    return frozenset(facts)


def _is_multi(result: torch.Tensor) -> bool:
    if not result._is_view():
        return False
    meta = torch._C._autograd._get_creation_meta(result)
    return bool(meta == torch._C._autograd.CreationMeta.MULTI_OUTPUT_NODE)


def _expands(argument: torch.Tensor, result: torch.Tensor) -> bool:
    if result.layout != torch.strided or argument.layout != torch.strided:
        return False
    return _overlaps(result) and not _overlaps(argument)


def _overlaps(t: torch.Tensor) -> bool:
    return any(stride == 0 and size > 1 for stride, size in zip(t.stride(), t.shape))


def _see_saves(
    seen: Seen,
    held: Sequence[tuple[str, torch.Tensor]],
    results: Sequence[tuple[str, torch.Tensor]],
    kept: list[tuple[torch.Tensor, int]],
    before: dict[int, int],
) -> None:
    written = {id(t) for _, t in held if t._version != before[id(t)]}
    by_role: dict[str, list[bool]] = {}
    for name, argument in held:
        views = [r for _, r in results if r is not argument and _storage(r) == _storage(argument) != 0]
        mine = [
            k
            for k, at in _moved_by(argument, kept)
            # Kept after the write, it is the result that was kept.
            if (id(argument) not in written or at <= before[id(argument)])
            and not any(_same_window(k, r) and not _same_window(k, argument) for r in views)
        ]
        by_role.setdefault(name, []).append(bool(mine))
    for role, result in results:
        shared = [a for _, a in held if a is result or _storage(a) == _storage(result) != 0]
        mine = [
            k
            for k, at in _moved_by(result, kept)
            if all(
                (id(a) in written and at > before[id(a)])
                or (a is not result and _same_window(k, result) and not _same_window(k, a))
                for a in shared
            )
        ]
        by_role.setdefault(role, []).append(bool(mine))
    seen.saved = frozenset(role for role, flags in by_role.items() if any(flags))
    seen.partly = frozenset(role for role, flags in by_role.items() if any(flags) and not all(flags))
    seen.elements = {role: tuple(flags) for role, flags in by_role.items() if len(flags) > 1}


def _same_window(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Both look at the same elements of the same memory."""
    if a.layout != torch.strided or b.layout != torch.strided:
        return a is b
    return bool(a.data_ptr() == b.data_ptr() and a.shape == b.shape and a.stride() == b.stride())


def _moved_by(tensor: torch.Tensor, kept: list[tuple[torch.Tensor, int]]) -> list[tuple[torch.Tensor, int]]:
    """The kept tensors whose version rises with this tensor's, each with its version when it was kept."""
    before = [k._version for k, _ in kept]
    increment_version(tensor)
    return [(k, at) for (k, at), old in zip(kept, before) if k._version != old]


class _Reads(TorchDispatchMode):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.seen = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if _is_indexing(func):
            # Tagged for the sake of masks; with integer tensors the shape is known beforehand.
            self.seen |= any(t.dtype in (torch.bool, torch.uint8) for t in tensors_in(args[1]))
        elif any(tag in func.tags for tag in _READING_TAGS):
            self.seen = True
        return func(*args, **(kwargs or {}))


def _is_indexing(func: Any) -> bool:
    return bool(func.__name__.startswith(("index.", "index_put", "_index_put", "_unsafe_index")))


def reads_back(scene: Scene, seed: int = 0) -> bool:
    """Whether the call has the host wait for values. Raises Refused when torch refuses the arguments."""
    torch.default_generator.manual_seed(seed)
    call, _ = scene(frozenset())
    torch.default_generator.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with _Reads() as mode:
                call()
        except Exception as error:
            raise Refused(f"{type(error).__name__}: {error}") from error
    return bool(mode.seen)
