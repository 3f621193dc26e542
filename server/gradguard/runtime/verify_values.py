"""What `verify` compares: the tensors and numbers that a value holds, wherever, and whether two of them are equal."""

from __future__ import annotations

import dataclasses
import enum
import functools
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.autograd.profiler import record_function

MAX_DEPTH = 16
MAX_VALUES = 50_000
SCALARS = (bool, int, float, complex, str)
CLOSED = (types.ModuleType, types.CodeType, types.FrameType, enum.Enum, torch.dtype, torch.device)
"""What is not looked into."""

PROGRAM = ("__main__", "__verify__")
"""Names of the module that is verified; of other modules, classes are not looked into."""

RELATIVE = {
    torch.float64: 1e-7,
    torch.complex128: 1e-7,
    torch.float32: 1.3e-6,
    torch.complex64: 1.3e-6,
    torch.float16: 1e-3,
    torch.bfloat16: 1.6e-2,
}
"""Those of `torch.testing.assert_close`. Integers, truth values and what is rarer are equal or not."""

ABSOLUTE = {torch.float64: 1e-12, torch.complex128: 1e-12, torch.float32: 1e-6, torch.complex64: 1e-6}
"""Added where two texts are compared, which may add up in different orders; two forms of one text get none."""

ABSOLUTE_HALF = 1e-5


def values(value: Any, path: str) -> dict[str, Any]:
    """Tensors and numbers in a value, by the way to them: `result.loss`, `result["logits"][0]`, `self.layer.weight`."""
    found: dict[str, Any] = {}
    for name, each in _walk(value, path, {}, 0):
        if len(found) >= MAX_VALUES:
            break
        found.setdefault(name, each)
    return found


def _walk(value: Any, path: str, seen: dict[int, Any], depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, torch.Tensor) or (isinstance(value, SCALARS) and not isinstance(value, enum.Enum)):
        yield path, value
    elif _is_array(value):
        yield path, torch.from_numpy(value) if value.flags.writeable else torch.from_numpy(value.copy())
    elif _is_number_of_numpy(value):
        yield path, value.item()
    elif value is not None and not isinstance(value, CLOSED) and id(value) not in seen and depth < MAX_DEPTH:
        # It is held, so that no other object gets its number.
        seen[id(value)] = value
        for name, each in _parts(value, path):
            yield from _walk(each, name, seen, depth + 1)


def _parts(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for number, (key, each) in enumerate(list(value.items())):
            # A tensor as a key, as in the state of an optimizer, has no name of its own.
            named = key if isinstance(key, (str, int, float, tuple, bool)) else number
            yield (f"{path}[{named!r}]" if path else str(named)), each
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from ((f"{path}.{name}", getattr(value, name)) for name in value._fields)
    elif isinstance(value, (list, tuple)) or type(value).__name__ == "deque":
        yield from ((f"{path}[{index}]", each) for index, each in enumerate(value))
    elif isinstance(value, torch.nn.Module):
        for members in (value._parameters, value._buffers, value._modules, _attributes(value)):
            for name, each in list(members.items()):
                if not name.startswith("_") and name != "training":
                    yield f"{path}.{name}", each
    elif isinstance(value, type):
        if value.__module__ in PROGRAM:
            for name, each in list(vars(value).items()):
                if not name.startswith("__"):
                    yield f"{path}.{name}", getattr(each, "__func__", each)
    elif isinstance(value, types.FunctionType):
        yield from held_by_function(value, path)
    elif isinstance(value, types.MethodType):
        yield f"{path}.__self__", value.__self__
        yield path, value.__func__
    elif isinstance(value, functools.partial):
        yield f"{path}.func", value.func
        yield f"{path}.args", value.args
        yield f"{path}.keywords", value.keywords
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield f"{path}.{field.name}", getattr(value, field.name, None)
    elif not type(value).__module__.startswith(("builtins", "_thread", "threading", "logging", "_io")):
        for name, each in {**_slots(value), **_attributes(value)}.items():
            yield f"{path}.{name}", each


def held_by_function(function: types.FunctionType, path: str) -> Iterator[tuple[str, Any]]:
    """What its defaults, its closure and its attributes hold."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    defaults = function.__defaults__ or ()
    yield from zip((f"{path} {name}=" for name in names[len(names) - len(defaults) :]), defaults)
    yield from ((f"{path} {name}=", each) for name, each in (function.__kwdefaults__ or {}).items())
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        # A cell may be empty.
        try:
            yield f"{path} {name}", cell.cell_contents
        except ValueError:
            continue
    yield from ((f"{path}.{name}", each) for name, each in vars(function).items() if name != "__wrapped__")


def _attributes(value: Any) -> dict[str, Any]:
    held = getattr(value, "__dict__", None)
    return dict(held) if isinstance(held, dict) else {}


def _slots(value: Any) -> dict[str, Any]:
    found = {}
    for owner in type(value).__mro__:
        slots = owner.__dict__.get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots:
            if isinstance(name, str) and hasattr(value, name) and not name.startswith("__"):
                found[name] = getattr(value, name)
    return found


def _numpy() -> Any:
    return sys.modules.get("numpy")


def _is_array(value: Any) -> bool:
    numpy = _numpy()
    return numpy is not None and isinstance(value, numpy.ndarray) and value.dtype.kind in "fiub?c"


def _is_number_of_numpy(value: Any) -> bool:
    numpy = _numpy()
    return numpy is not None and isinstance(value, numpy.generic) and value.dtype.kind in "fiub?c"


# What a program uses of torch's memory is measured meanwhile. The memory of a copy is Python's.

OWN_WORK = "gradguard verify compares"


def own_work() -> record_function:
    """What is allocated within it is not the program's; nothing of it stays."""
    return record_function(OWN_WORK)


def blank(like: torch.Tensor) -> torch.Tensor:
    """A dense tensor of the same shape and dtype, of zeros, whose memory is not torch's."""
    count = like.numel() * like.element_size()
    if not count:
        return torch.empty(like.shape, dtype=like.dtype)
    return torch.frombuffer(bytearray(count), dtype=like.dtype).view(like.shape)


def kept(value: Any) -> Any:
    """A copy that later writes do not change; sparse and other layouts become dense."""
    if not isinstance(value, torch.Tensor):
        return value
    with torch.no_grad():
        plain = dense(value.detach())
        try:
            copy = blank(plain)
            copy.copy_(plain)
        except (RuntimeError, ValueError, TypeError, NotImplementedError):
            # Of a dtype that has no buffer, or of a subclass that is none of memory.
            copy = plain.clone()
        return copy


def dense(value: torch.Tensor) -> torch.Tensor:
    """A strided tensor with the same elements; a nested one gives its parts one after the other."""
    if value.is_nested:
        return torch.cat([dense(part).reshape(-1) for part in value.unbind()])
    if value.is_quantized:
        return value.dequantize()
    if value.layout is not torch.strided:
        return value.to_dense()
    return value.resolve_conj().resolve_neg()


def relative(dtype: torch.dtype) -> float:
    """How much of its own size an element may differ."""
    if dtype.is_floating_point or dtype.is_complex:
        return RELATIVE.get(dtype, 0.0)
    return 0.0


def tolerance(dtypes: set[torch.dtype], loose: bool) -> str:
    """The tolerances that were used, in words."""
    told = []
    for dtype in sorted(dtypes, key=str):
        name = str(dtype).removeprefix("torch.")
        share, more = relative(dtype), absolute(dtype, loose)
        if share:
            told.append(f"{share:g} of each element{f' and {more:g}' if more else ''} ({name})")
        else:
            told.append(f"none ({name})")
    return ", ".join(told)


def absolute(dtype: torch.dtype, loose: bool) -> float:
    """How much an element may differ, whatever its size."""
    if not loose or not relative(dtype):
        return 0.0
    return ABSOLUTE.get(dtype, ABSOLUTE_HALF)


def difference(right: Any, got: Any, *, loose: bool = False) -> str:
    """How two values differ, in words that follow a name; empty where they are equal. Not a number equals itself."""
    if isinstance(right, torch.Tensor) != isinstance(got, torch.Tensor):
        return f"is a {type(got).__name__} instead of a {type(right).__name__}"
    if not isinstance(right, torch.Tensor):
        return _of_plain(right, got)
    if right.shape != got.shape:
        return f"has shape {tuple(got.shape)} instead of {tuple(right.shape)}"
    if right.dtype != got.dtype:
        return (
            f"is {str(got.dtype).removeprefix('torch.')} instead of {str(right.dtype).removeprefix('torch.')}"
        )
    if not right.numel() or right.device.type == "meta":
        return ""
    return _of_elements(right.reshape(-1), got.reshape(-1), loose)


def _of_plain(right: Any, got: Any) -> str:
    if isinstance(right, str) or isinstance(got, str):
        return "" if right == got else f"is {got!r:.60} instead of {right!r:.60}"
    if right is None or got is None or isinstance(right, bool) != isinstance(got, bool):
        return "" if right is got else f"is {got!r:.60} instead of {right!r:.60}"
    if isinstance(right, int) and isinstance(got, int):
        return "" if right == got else f"is {got} instead of {right}"
    pair = [torch.tensor([complex(each)], dtype=torch.complex128) for each in (right, got)]
    return f"is {got:g} instead of {right:g}" if _of_elements(pair[0], pair[1], False) else ""


def _of_elements(right: torch.Tensor, got: torch.Tensor, loose: bool) -> str:
    dtype = right.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        wrong = right != got
    else:
        wide = torch.complex128 if dtype.is_complex else torch.float64
        right, got = right.to(wide), got.to(wide)
        wrong = ~torch.isclose(got, right, relative(dtype), absolute(dtype, loose), equal_nan=True)
    count = int(wrong.sum())
    if not count:
        return ""
    at = int(wrong.nonzero()[0])
    shown, instead = right[at].item(), got[at].item()
    if isinstance(shown, bool) or not isinstance(shown, (int, float)):
        text = f"{instead} instead of {shown}"
    else:
        text = f"{instead:.6g} instead of {shown:.6g}"
    return f"differs in {count} of {right.numel()} elements, {text} in the first"
