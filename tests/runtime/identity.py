"""Runs every operator of torch's own sample database plainly and under the monitor, in a worker of the oracle."""

from __future__ import annotations

import contextlib
import sys
import warnings
from dataclasses import dataclass
from typing import Any

SAMPLES = 3
COMPARE = "tests.runtime.identity:compare_ops"


def _inside(how: str) -> Any:
    import torch

    return {
        "no_grad": torch.no_grad,
        "inference_mode": torch.inference_mode,
        "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    }.get(how, contextlib.nullcontext)()


# "frozen": grad mode is on, but nothing requires grad.
WAYS = ("grad", "frozen", "no_grad", "inference_mode", "autocast")


@dataclass(frozen=True, slots=True)
class Compared:
    """Operators run, those whose bits differ, by way, and failures of the monitor."""

    ran: int
    different: tuple[tuple[str, str], ...]
    troubles: tuple[str, ...]


def compare_ops(share: int, of: int) -> Compared:
    """Every `of`-th operator from `share` on: in each way results, gradients and second gradients must be the same bits."""
    from torch.testing._internal.common_methods_invocations import op_db

    from gradguard.runtime.watched_run import WatchedRun

    different: list[tuple[str, str]] = []
    troubles: list[str] = []
    ran = 0
    for op in sorted(op_db, key=lambda o: (o.name, o.variant_test_name))[share::of]:
        for way in WAYS:
            plain = _run(op, way, None)
            if plain is None:
                continue
            ran += 1
            run = WatchedRun()
            watched = _run(op, way, run)
            if plain != watched:
                different.append((f"{op.name} {op.variant_test_name}".strip(), way))
            troubles.extend(f"{op.name}: {t}" for t in run.troubles[:1])
    return Compared(ran, tuple(different), tuple(troubles))


def _run(op: Any, way: str, run: Any) -> list[Any] | None:
    """Bits of results, gradients and second gradients of a few samples; an error counts as a result. None: not usable."""
    import torch

    found: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.manual_seed(0)
            grad = op.supports_autograd and way != "frozen"
            samples = list(op.sample_inputs("cpu", torch.float32, requires_grad=grad))[:SAMPLES]
        except Exception:
            return None
        if run is not None:
            run.start(sys._getframe())
        try:
            for sample in samples:
                torch.manual_seed(1)
                try:
                    found.append(_sample(op, sample, way))
                except Exception as error:
                    found.append(f"{type(error).__name__}: {str(error)[:200]}")
        finally:
            if run is not None:
                run.stop()
    return found


def _sample(op: Any, sample: Any, way: str) -> list[Any]:
    import torch
    from torch.utils._pytree import tree_leaves

    with _inside(way):
        result = op(sample.input, *sample.args, **sample.kwargs)
        bits = [_bits(t) for t in tree_leaves(result)]
    given = [t for t in tree_leaves((sample.input, sample.args)) if isinstance(t, torch.Tensor)]
    # What it wrote to, and how often.
    bits.extend(_bits(t) for t in given)
    leaves = [t for t in given if t.requires_grad and not t.is_inference()]
    roots = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor) and t.requires_grad]
    if way not in ("grad", "autocast") or not leaves or not roots:
        return bits
    total = sum(t.abs().sum() for t in roots)
    first = torch.autograd.grad(total, leaves, create_graph=op.supports_gradgrad, allow_unused=True)
    bits.extend(_bits(g) for g in first)
    again = [g.abs().sum() for g in first if g is not None and g.requires_grad]
    if again:
        bits.extend(_bits(g) for g in torch.autograd.grad(sum(again), leaves, allow_unused=True))
    return bits


def _bits(value: Any) -> Any:
    import torch

    if not isinstance(value, torch.Tensor):
        return repr(value)
    if value.layout is not torch.strided:
        value = value.to_dense()
    about = (value.is_inference(), value._is_view(), None if value.is_inference() else value._version)
    plain = value.detach().resolve_conj().resolve_neg().contiguous()
    return (
        str(value.dtype),
        tuple(value.shape),
        about,
        plain.flatten().view(torch.uint8).numpy().tobytes() if plain.numel() else b"",
    )
