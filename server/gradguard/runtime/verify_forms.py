"""The forms of a program that `verify` runs beside the plain one.

`Reference` gives the gradients of the forward that really happened: each tensor that a node saves is copied when it is saved,
so that no later write reaches it, be it counted or not. Values are those of the program: a write to a view writes its base.

`OutOfPlace` takes the memory that the program takes if each of its writes makes a new tensor. A saved tensor is copied when
it is written, and a write has a tensor of its own for as long as it takes.
"""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
import torch.utils.checkpoint
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from gradguard.runtime import verify_values as held
from gradguard.runtime.graph import storage_of

NO_WRITES = frozenset({"requires_grad_", "share_memory_", "retain_grad", "rename_", "is_shared_"})
"""Their names look like writes, and no element changes."""

ITEMS = frozenset({"__setitem__", "put_", "set_"})
NUMPY = frozenset({"numpy", "__array__", "__dlpack__", "data_ptr", "untyped_storage", "storage"})
FOREIGN = frozenset({"from_numpy", "as_tensor", "asarray", "frombuffer", "from_dlpack"})


@dataclass(slots=True)
class Seen:
    """What one run did, apart from what it computed."""

    writes: dict[int, int] = field(default_factory=dict)
    """Writes of the program by line; line 0 for those in other files."""
    unseen: dict[str, list[int]] = field(default_factory=dict)
    """Writes that autograd does not see, by what they go through (`.data`, NumPy), with their lines."""
    refused: str = ""
    """Where torch refused a write to a tensor, and not the same write to a copy of it."""


class Watched(TorchFunctionMode):  # type: ignore[misc]
    """Notices writes: which lines make them, which torch refuses, which autograd does not see. Changes nothing."""

    def __init__(self, path: str, seen: Seen, size: Callable[[Any], object] | None = None) -> None:
        super().__init__()
        self.path = path
        self.seen = seen
        self._size = size
        self._library = torch.__file__.rpartition("__init__")[0]
        self._data: dict[int, weakref.ref[torch.Tensor]] = {}
        self._shared: list[tuple[int, torch.Tensor, torch.Tensor, int]] = []

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "__get__" or name == "__set__":
            return self._attribute(func, name, args, given)
        targets = written(name, args, given)
        if not targets:
            result = func(*args, **given)
            if name in NUMPY and args and not held_elsewhere(args[0]):
                self._share(args[0])
            elif name in FOREIGN and isinstance(result, torch.Tensor):
                self._share(result)
            return result
        line = self._line(inplace="inplace" in given)
        if line is not None:
            self.seen.writes[line] = self.seen.writes.get(line, 0) + 1
            if any(self._through_data(target) for target in targets):
                self._unseen(".data", line)
        try:
            if line is None or self._size is None:
                return func(*args, **given)
            # In the tensor's place, for as long as the write takes.
            new = [self._size(target) for target in targets]
            result = func(*args, **given)
            del new
            return result
        except Exception as error:
            if line is not None and self._runs_on_copies(func, args, given, targets):
                where = f"line {line}: " if line else ""
                self.seen.refused = f"{where}{said(error)}"
            raise

    def _attribute(self, func: Any, name: str, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        result = func(*args, **given)
        if getattr(func, "__self__", None) is torch.Tensor.data:
            line = self._line()
            if name == "__get__":
                self._data[id(result)] = weakref.ref(result)
            elif line is not None:
                self.seen.writes[line] = self.seen.writes.get(line, 0) + 1
                self._unseen(".data", line)
        return result

    def _through_data(self, target: torch.Tensor) -> bool:
        for each in (target, target._base):
            known = self._data.get(id(each))
            if known is not None and known() is each:
                return True
        return False

    def _unseen(self, through: str, line: int) -> None:
        lines = self.seen.unseen.setdefault(through, [])
        if line not in lines:
            lines.append(line)

    def _line(self, inplace: bool = False) -> int | None:
        """Line of the program that writes, 0 for one of another file; None if torch itself decided to."""
        frame: FrameType | None = sys._getframe(2)
        within = False
        while frame is not None:
            name = frame.f_code.co_filename
            if name == self.path:
                return None if within and not inplace else frame.f_lineno
            if name.startswith(self._library):
                within = True
            elif name != __file__ and not within:
                # What is done to compare is no part of the program.
                return None if name in _OWN else 0
            frame = frame.f_back
        return 0 if inplace else None

    def _runs_on_copies(
        self, func: Any, args: tuple[Any, ...], given: dict[str, Any], targets: list[torch.Tensor]
    ) -> bool:
        copies = {id(target): target.clone() for target in targets}

        def copied(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return type(value)(map(copied, value))
            return copies.get(id(value), value)

        # `out=` refuses what has a history, be it a copy; without it there is a new tensor.
        rest = {name: copied(value) for name, value in given.items() if name != "out"}
        try:
            func(*map(copied, args), **rest)
        except Exception:
            return False
        return True

    def _share(self, tensor: Any) -> None:
        if isinstance(tensor, torch.Tensor) and tensor.layout is torch.strided and len(self._shared) < 1000:
            line = self._line()
            if line is not None and tensor.device.type == "cpu":
                with torch.no_grad():
                    alias = tensor.detach()
                    self._shared.append((line, alias, held.kept(alias), alias._version))

    def finish(self) -> None:
        """Asks whether what was shared with NumPy has changed without a write that torch counted."""
        for line, alias, before, version in self._shared:
            if alias._version == version and held.difference(before, held.kept(alias)):
                self._unseen("memory shared with NumPy", line)
        self._shared.clear()


_OWN = tuple(__file__.replace("verify_forms", name) for name in ("verify_program", "verify_values"))


def written(name: str, args: tuple[Any, ...], given: dict[str, Any]) -> list[torch.Tensor]:
    """Tensors that a call of this name is asked to write."""
    targets: list[Any] = []
    if given.get("inplace") is True:
        targets = [*args[:1], given.get("input")]
    elif given.get("out") is not None:
        out = given["out"]
        targets = list(out) if isinstance(out, (list, tuple)) else [out]
    elif name in ITEMS or (name.endswith("_") and not name.endswith("__") and name not in NO_WRITES):
        first = args[0] if args else given.get("input")
        targets = list(first) if isinstance(first, (list, tuple)) else [first]
    elif (
        name.startswith("__i") and name.endswith("__") and name not in ("__int__", "__invert__", "__index__")
    ):
        targets = list(args[:1])
    return [each for each in targets if isinstance(each, torch.Tensor)]


def held_elsewhere(tensor: Any) -> bool:
    """Whether its memory is no program's to write, as on another device."""
    return not isinstance(tensor, torch.Tensor) or tensor.device.type != "cpu"


def said(error: BaseException) -> str:
    """The error in one line, without what torch appends about shapes and hints."""
    first = (str(error).strip().splitlines() or [""])[0].partition(": [torch.")[0].partition(". ")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides, from which an operation computes bit by bit the same."""
    plain = tensor.detach()
    transformed = torch._C._functorch.maybe_get_level(plain) > 0
    if plain.layout is not torch.strided or type(plain) is not torch.Tensor or transformed:
        return plain.clone()
    copy = torch.empty_strided(plain.size(), plain.stride(), dtype=plain.dtype, device=plain.device)
    if any(size > 1 and not stride for size, stride in zip(plain.size(), plain.stride())):
        # Elements that lie in one place: one write for each place.
        one = tuple(slice(0, 1) if not stride else slice(None) for stride in plain.stride())
        copy[one].copy_(plain[one])
        return copy
    return copy.copy_(plain)


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


@contextlib.contextmanager
def reference() -> Iterator[None]:
    """Within it every saved tensor is a copy, and so is what hooks and custom backward functions may write."""
    with _all_recomputed(), _own_gradients(), _hooks(_pack_copy, _same):
        yield


def _pack_copy(tensor: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return _copied(tensor)


@contextlib.contextmanager
def _hooks(pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> Iterator[None]:
    """Hooks on saved tensors; within torch.func, which has none, they are away."""
    plain = torch.autograd.graph.disable_saved_tensors_hooks
    graph = torch._C._autograd

    @contextlib.contextmanager
    def away(message: str) -> Iterator[None]:
        graph._pop_saved_tensors_default_hooks()
        try:
            with plain(message):
                yield
        finally:
            graph._push_saved_tensors_default_hooks(pack, unpack)

    graph._push_saved_tensors_default_hooks(pack, unpack)
    torch.autograd.graph.disable_saved_tensors_hooks = away
    try:
        yield
    finally:
        torch.autograd.graph.disable_saved_tensors_hooks = plain
        graph._pop_saved_tensors_default_hooks()


@contextlib.contextmanager
def _all_recomputed() -> Iterator[None]:
    """Checkpoints run as plain calls: what they compute again starts from memory that may have been written."""

    def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        for own in (
            "use_reentrant",
            "context_fn",
            "determinism_check",
            "debug",
            "preserve_rng_state",
            "early_stop",
        ):
            kwargs.pop(own, None)
        return function(*args, **kwargs)

    with _replaced(torch.utils.checkpoint, "checkpoint", call):
        yield


@contextlib.contextmanager
def _own_gradients() -> Iterator[None]:
    """A hook and a custom backward get copies of gradients, which other branches may have as well."""
    plain_hook = torch.Tensor.register_hook
    node = torch.autograd.function.BackwardCFunction
    plain_apply = node.apply

    def register_hook(self: torch.Tensor, hook: Callable[[torch.Tensor], Any]) -> Any:
        def own(gradient: torch.Tensor) -> Any:
            copy = gradient.clone()
            before = copy._version
            answer = hook(copy)
            return copy if answer is None and copy._version != before else answer

        return plain_hook(self, own)

    def apply(self: Any, *args: Any) -> Any:
        return plain_apply(self, *(each.clone() if isinstance(each, torch.Tensor) else each for each in args))

    with _replaced(torch.Tensor, "register_hook", register_hook), _replaced(node, "apply", apply):
        yield


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    plain = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, plain)


class _Saved:
    """A tensor that a node saves: in place until it is written."""

    __slots__ = ("__weakref__", "tensor")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor


class OutOfPlace(TorchDispatchMode):  # type: ignore[misc]
    """Copies what is saved before a write reaches it."""

    def __init__(self) -> None:
        super().__init__()
        self._saved: dict[int, list[weakref.ref[_Saved]]] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Nothing is compiled here, and to keep the compiler away torch loads it, for seconds.
        return False

    def pack(self, tensor: torch.Tensor) -> _Saved:
        """What a node keeps."""
        with torch.no_grad():
            saved = _Saved(tensor.detach())
        if tensor.layout is torch.strided:
            self._saved.setdefault(storage_of(tensor), []).append(weakref.ref(saved))
        return saved

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        for target in _targets(func, args, given):
            for one in self._saved.pop(storage_of(target), ()):
                saved = one()
                if saved is not None:
                    saved.tensor = _copied(saved.tensor)
        return func(*args, **given)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """The form, while it is entered."""
        with _hooks(self.pack, lambda saved: saved.tensor), self:
            yield


def _targets(func: Any, args: tuple[Any, ...], given: dict[str, Any]) -> Iterator[torch.Tensor]:
    if not func._schema.is_mutable:
        return
    for index, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = given.get(argument.name) if argument.kwarg_only or index >= len(args) else args[index]
            for each in value if isinstance(value, (list, tuple)) else [value]:
                if isinstance(each, torch.Tensor) and each.layout is torch.strided:
                    yield each


def new_tensor(target: torch.Tensor) -> torch.Tensor | None:
    """As much memory as the tensor that a write out of place makes: for a view, that is its whole base."""
    if target.layout is not torch.strided or target.device.type == "meta":
        return None
    size = target.untyped_storage().nbytes()
    return torch.empty(size, dtype=torch.uint8, device=target.device)
