"""The same questions asked the way a user meets the answers: write a tensor after the call, run backward, see.

Independent of the saved-tensor hooks that `observe` uses, so the two check each other.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch.autograd.graph import GradientEdge, get_gradient_edge, increment_version

from tools.optable.observe import Refused, Scene, element, result_roles, tensors_in

Outputs = list[tuple[GradientEdge, torch.Tensor]]


def write_breaks_backward(scene: Scene, grads: frozenset[str], role: str, seed: int = 0) -> bool | None:
    """Whether backward refuses because the tensors of a role were written; None when it fails in any case.

    Raises Refused when torch refuses the call, LookupError when the call has no such role or records nothing.
    """
    outputs, tensors = _run(scene, grads, seed)
    if not tensors.get(role):
        raise LookupError(role)
    for tensor in tensors[role]:
        _write(tensor)
    error = _backward(outputs)
    if error is None:
        return False
    if "modified by an inplace operation" not in error:
        return None
    untouched, _ = _run(scene, grads, seed)
    return True if _backward(untouched) is None else None


def second_backward_raises(scene: Scene, grads: frozenset[str], seed: int = 0) -> bool | None:
    """Whether a second backward is refused because the first freed what it needs.

    Raises as `write_breaks_backward` does.
    """
    outputs, _ = _run(scene, grads, seed)
    if _backward(outputs) is not None:
        return None
    error = _backward(outputs)
    if error is None:
        return False
    return True if "second time" in error else None


def _run(scene: Scene, grads: frozenset[str], seed: int) -> tuple[Outputs, dict[str, list[torch.Tensor]]]:
    torch.default_generator.manual_seed(seed)
    call, values = scene(grads)
    held = list(tensors_in(list(values.values())))
    nodes = {id(t.grad_fn) for t in held}
    torch.default_generator.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            out = call()
        except Exception as error:
            raise Refused(f"{type(error).__name__}: {error}") from error
    results = result_roles(out)[0]
    tensors: dict[str, list[torch.Tensor]] = {}
    for name, value in values.items():
        mine = list(tensors_in(value))
        tensors.setdefault(name, []).extend(mine)
        tensors.update({element(name, i): [t] for i, t in enumerate(mine)})
    for role, tensor in results:
        tensors.setdefault(role, []).append(tensor)
    new = [
        t for t in [*(t for _, t in results), *held] if t.grad_fn is not None and id(t.grad_fn) not in nodes
    ]
    if not new:
        raise LookupError("nothing recorded")
    unique = {(id(t.grad_fn), t.output_nr): t for t in new}
    try:
        return [(get_gradient_edge(t), torch.ones_like(t)) for t in unique.values()], tensors
    except (RuntimeError, NotImplementedError) as error:
        raise LookupError("a layout that has no gradient of ones") from error


def _write(tensor: torch.Tensor) -> None:
    with torch.no_grad():
        try:
            tensor.copy_(tensor.detach().clone())
        except RuntimeError:
            # Memory that several elements share cannot be written; its version can still rise.
            increment_version(tensor)


def _backward(outputs: Outputs) -> str | None:
    """The text of the error, or None."""
    edges: list[Any] = [edge for edge, _ in outputs]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.autograd.backward(edges, [gradient for _, gradient in outputs])
    except Exception as error:  # a Python backward may raise anything
        return str(error)
    return None
