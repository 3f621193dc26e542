"""The place below autograd where operators are seen.

It is a fallback for a dispatch key that no kernel of torch has, included in the thread that is watched. All that is above
runs as if nobody stood there. A dispatch mode would not do: operators that are made of others ask whether there is one, and if
so compute in another way. Releases of torch in which such a fallback gets copies of the tensors have no other place, though.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch.library import Library
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
VIEWS = torch._C.DispatchKeySet(torch._C.DispatchKey.ADInplaceOrView)
_KEY_NAME = "Fake"
KEY = torch._C._parse_dispatch_key(_KEY_NAME)
_include = torch._C._dispatch_tls_set_dispatch_key_included
_included = torch._C._dispatch_tls_is_dispatch_key_included
_exclude = torch._C._dispatch_tls_set_dispatch_key_excluded
_excluded = torch._C._dispatch_tls_is_dispatch_key_excluded
_eval_frame = torch._C._dynamo.eval_frame
CAN_SKIP = hasattr(_eval_frame, "set_code_exec_strategy")


class Closable(Protocol):
    """What is over at some time."""

    closed: bool


class Seer(Protocol):
    """What can be put at a level: its `see` runs the operators that come there until `state` is closed."""

    @property
    def state(self) -> Closable: ...

    def see(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any: ...


class _Here(threading.local):
    """Who stands at the key in this thread."""

    seer: Seer | None = None


_here = _Here()
_held: list[Any] = []


class _Named:
    """An operator by its name: to look all of them up takes long, and most are never run."""

    __slots__ = ("_found", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._found: Any = None

    def func(self) -> Any:
        if self._found is None:
            space, _, name = self._name.partition("::")
            base, _, overload = name.partition(".")
            self._found = getattr(getattr(getattr(torch.ops, space), base), overload or "default")
        return self._found


def _fallback(func: Any, *args: Any, **kwargs: Any) -> Any:
    seer = _here.seer
    if type(func) is _Named:
        func = func.func()
    _exclude(KEY, True)
    try:
        if seer is None or seer.state.closed:
            # The thread came by the key while somebody watched, or left the state in which it was taken off.
            _include(KEY, False)
            return func._op(*args, **kwargs)
        return seer.see(func, args, kwargs)
    finally:
        _exclude(KEY, False)


def skip_compiling(function: Callable[..., Any]) -> None:
    """Neither a function nor what it calls is ever compiled."""
    if CAN_SKIP:
        skip = _eval_frame._FrameAction.SKIP
        strategy = _eval_frame._FrameExecStrategy(skip, skip)
        _eval_frame.set_code_exec_strategy(function.__code__, strategy)


skip_compiling(_fallback)


@functools.cache
def _usable() -> bool:
    """Puts the fallback there. It is for good: a thread that still has the key could run no operator without it."""
    if not CAN_SKIP:
        return False
    library = Library("_", "IMPL")
    _held.append(library)
    try:
        library.fallback(_fallback, _KEY_NAME)
    except (AttributeError, RuntimeError):
        return False
    if not _hands_on_the_tensors():
        return False
    _register_with_all()
    return True


def _register_with_all() -> None:
    """While dispatch to Python is off, torch finds what is registered with the operator, but no fallback."""
    libraries: dict[str, Any] = {}
    for full in torch._C._dispatch_get_all_op_names():
        space, _, name = full.partition("::")
        if space not in libraries:
            libraries[space] = torch._C._dispatch_library("IMPL", space, "")
        libraries[space].impl(name, _KEY_NAME, functools.partial(_fallback, _Named(full)), False)
    _held.extend(libraries.values())


def _hands_on_the_tensors() -> bool:
    class Probe:
        state = type("Open", (), {"closed": False})
        same = False

        def see(self, func: Any, args: Any, kwargs: Any) -> Any:
            self.same = args[0] is given
            return func._op(*args, **kwargs)

    given = torch.zeros(0)
    before, probe = _here.seer, Probe()
    _here.seer = probe  # type: ignore[assignment]
    _include(KEY, True)
    try:
        given.neg()
    finally:
        _include(KEY, False)
        _here.seer = before
    return probe.same


class KeyLevel:
    """Stands at the key. `counts_writes`: torch counts all writes there."""

    counts_writes = True

    def __init__(self, seer: Seer) -> None:
        self._seer = seer
        self._outside: tuple[Seer | None, bool] = (None, False)

    def enter(self) -> None:
        _here.seer = self._seer
        _include(KEY, True)

    def leave(self) -> bool:
        """Whether it could be left, as it always can."""
        _include(KEY, False)
        return True

    def __enter__(self) -> None:
        self._outside = (_here.seer, _included(KEY))
        self.enter()

    def __exit__(self, *raised: object) -> None:
        _here.seer, included = self._outside
        _include(KEY, included)

    def run_parts(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Runs an operator that is made of others as torch does where nobody stands: each part comes from the top."""
        _exclude(KEY, False)
        try:
            return func._op_dk(COMPOSITE, *args, **kwargs)
        finally:
            _exclude(KEY, True)


class ModeLevel(TorchDispatchMode):  # type: ignore[misc]
    """The same as a dispatch mode."""

    counts_writes = False
    supports_higher_order_operators = True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        # Compiled regions must be compiled as if nobody watched.
        return True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Torch would put a wrapper around the dispatch that loads its compiler, and costs more than some operators do.
        return not CAN_SKIP

    def __init__(self, seer: Seer) -> None:
        super().__init__()
        self._seer = seer

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self._seer.state.closed or not isinstance(func, torch._ops.OpOverload):
            return func(*args, **(kwargs or {}))
        return self._seer.see(func, args, kwargs or {})

    def enter(self) -> None:
        self.__enter__()

    def leave(self) -> bool:
        if _get_current_dispatch_mode() is not self:
            return False
        self.__exit__(None, None, None)
        return True

    def run_parts(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        included = torch._C._dispatch_tls_local_include_set()
        excluded = torch._C._dispatch_tls_local_exclude_set() - VIEWS
        with torch._C._ForceDispatchKeyGuard(included, excluded), self:
            return func._op_dk(COMPOSITE, *args, **kwargs)


skip_compiling(ModeLevel.__torch_dispatch__)


def level_for(seer: Seer) -> KeyLevel | ModeLevel:
    return KeyLevel(seer) if _usable() else ModeLevel(seer)


def unseen(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps what makes a tensor of another Python type of the result of an operator, which must have none yet."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        before = _excluded(KEY)
        _exclude(KEY, True)
        try:
            return original(*args, **kwargs)
        finally:
            _exclude(KEY, before)

    return wrapper


def compile_alike(one: Callable[..., Any], other: Callable[..., Any]) -> None:
    """What torch.compile puts in the place of one of two functions it puts in the place of the other, too."""
    decorators = sys.modules.get("torch._dynamo.decorators")
    variables = sys.modules.get("torch._dynamo.variables")
    if decorators is None or variables is None:
        return
    known = variables.PolyfilledFunctionVariable._get_polyfill_handlers()
    for first, second in ((one, other), (other, one)):
        if first in known and second not in known:
            decorators.substitute_in_graph(second)(known[first].__torch_dynamo_polyfill__)
