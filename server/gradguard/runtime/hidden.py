"""What a write through a view saves. The node that saves it stands behind the node of the base, where nobody can look.

It is learnt from the same operator on tensors without memory, once for arguments of one kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode

from gradguard.runtime.graph import RESULTS, Hidden, SavedTensor, saved_names, storage_of

RESULT = -1
ABOVE = torch._C.DispatchKeySet(torch._C.DispatchKey.AutogradFunctionality)


@dataclass(frozen=True, slots=True)
class Like:
    """Stands for a tensor: its sizes, its type, and whether it requires grad."""

    size: tuple[int, ...]
    dtype: torch.dtype
    requires_grad: bool


def hidden_by(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Hidden | None:
    """Asked below autograd, when the operator has run; its target is the first argument. None if it saves nothing."""
    tensors = {i: a for i, a in enumerate(args) if isinstance(a, torch.Tensor) and a.layout is torch.strided}
    tensors[RESULT] = args[0]
    positions: frozenset[int] | None = None
    if _get_current_dispatch_mode() is None:
        try:
            positions = _positions(
                func, tuple(map(_like, args)), tuple((name, _like(value)) for name, value in kwargs.items())
            )
        except (TypeError, RuntimeError, NotImplementedError):
            # It needs values, or has arguments without a hash.
            positions = None
    saved = {i: tensor for i, tensor in tensors.items() if positions is None or i in positions}
    if not saved:
        return None
    own = positions is not None and any(
        i > 0 and storage_of(tensor) == storage_of(args[0]) for i, tensor in saved.items()
    )
    return Hidden(positions is not None, tuple(SavedTensor(None, "", i, t) for i, t in saved.items()), own)


def _like(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return Like(tuple(value.shape), value.dtype, value.requires_grad)
    return tuple(map(_like, value)) if isinstance(value, (list, tuple)) else value


def _made(value: Any) -> Any:
    if isinstance(value, Like):
        return torch.empty(value.size, dtype=value.dtype, device="meta", requires_grad=value.requires_grad)
    return list(map(_made, value)) if isinstance(value, tuple) else value


@lru_cache(maxsize=1024)
def _positions(func: Any, args: tuple[Any, ...], kwargs: tuple[tuple[str, Any], ...]) -> frozenset[int]:
    """Raises RuntimeError or NotImplementedError if values are needed, TypeError for arguments that have no hash."""
    included = torch._C._dispatch_tls_local_include_set()
    excluded = torch._C._dispatch_tls_local_exclude_set() - ABOVE
    found: set[int] = set()
    with torch._C._ForceDispatchKeyGuard(included, excluded), torch.enable_grad():
        given = [_made(value) for value in args]
        # A write to a leaf is refused.
        target = given[0] = given[0].clone()
        func(*given, **{name: _made(value) for name, value in kwargs})
        memory = {storage_of(value): i for i, value in enumerate(given) if isinstance(value, torch.Tensor)}
        for name in saved_names(type(target.grad_fn)):
            value = getattr(target.grad_fn, name)
            position = memory.get(storage_of(value)) if isinstance(value, torch.Tensor) else None
            if position is not None:
                found.add(RESULT if name in RESULTS else position)
    return frozenset(found)
