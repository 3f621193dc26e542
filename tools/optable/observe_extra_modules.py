"""Ways of building and calling the modules that torch's test suite does not cover."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

Call = tuple[tuple[Any, ...], dict[str, Any]]
Sample = tuple[Call, Call]


def _x(*shape: int) -> torch.Tensor:
    return torch.rand(*shape)


def _make(args: tuple[Any, ...], *inputs: Any, **kwargs: Any) -> Sample:
    return (args, kwargs), (inputs, {})


def _dropout(*shape: int) -> list[Sample]:
    return [_make((), _x(*shape), p=p, inplace=i) for p in (0.5, 0.0) for i in (False, True)]


def _unpool(d: int) -> list[Sample]:
    pool = getattr(nn, f"MaxPool{d}d")(2, return_indices=True)
    values, indices = pool(_x(1, 2, *(4,) * d))
    return [_make((2,), values, indices)]


def _decoder() -> list[Sample]:
    return [_make((nn.TransformerDecoderLayer(4, 2, 8, p), 2), _x(3, 1, 4), _x(3, 1, 4)) for p in (0.0, 0.1)]


def _bags() -> list[Sample]:
    ids, offsets = torch.tensor([0, 1, 2, 3]), torch.tensor([0, 2])
    return [_make((5, 3), ids, offsets, mode=m) for m in ("sum", "mean", "max")] + [
        _make((5, 3), ids, offsets, max_norm=1.0)
    ]


def _norms(name: str, d: int) -> list[Sample]:
    shape = (4, 3, *(4,) * max(1, d))
    return [_make((), _x(*shape), affine=a) for a in (True, False)]


def _synchronised() -> list[Sample]:
    """In one process, which needs no group of them: as it trains on the processor."""
    choices = [(a, t) for a in (True, False) for t in (True, False)]
    return [
        _make((3,), _x(4, 3, *rest), affine=a, track_running_stats=t)
        for rest in ((), (4,))
        for a, t in choices
    ]


def _fractional(d: int) -> list[Sample]:
    return [_make((2,), _x(1, 2, *(6,) * d), output_size=3, return_indices=r) for r in (False, True)]


def _linear_inputs() -> list[torch.Tensor]:
    """Of every number of dimensions, and transposed: what does not lie in memory row by row is copied."""
    return [_x(4), _x(5, 4), _x(4, 5).t(), _x(2, 5, 4), _x(4, 5, 2).permute(2, 1, 0), _x(2, 2, 5, 4)]


EXTRA: dict[str, Callable[[], list[Sample]]] = {
    "AdaptiveLogSoftmaxWithLoss": lambda: [_make((8, 10, [2, 5]), _x(4, 8), torch.tensor([0, 3, 6, 9]))],
    "AlphaDropout": lambda: _dropout(4, 3),
    "FeatureAlphaDropout": lambda: _dropout(4, 3, 2),
    "Dropout": lambda: _dropout(4, 3),
    "Dropout1d": lambda: _dropout(4, 3, 2),
    "Dropout2d": lambda: _dropout(4, 3, 2, 2),
    "Dropout3d": lambda: _dropout(4, 3, 2, 2, 2),
    "ChannelShuffle": lambda: [_make((2,), _x(1, 4, 2, 2))],
    "CosineSimilarity": lambda: [_make((), _x(4, 3), _x(4, 3)), _make((0,), _x(4, 3), _x(4, 3))],
    "CrossMapLRN2d": lambda: [_make((2,), _x(1, 4, 3, 3))],
    "EmbeddingBag": _bags,
    "Embedding": lambda: [_make((5, 3), torch.tensor([0, 1, 2]), max_norm=m) for m in (None, 0.1)],
    "Flatten": lambda: [_make((), _x(2, 3, 4)), _make((0,), _x(2, 3, 4)), _make((), _x(2, 3))],
    "Unflatten": lambda: [_make((1, (2, 3)), _x(2, 6))],
    "Fold": lambda: [_make(((3, 3), (2, 2)), _x(1, 12, 4))],
    "Unfold": lambda: [_make(((2, 2),), _x(1, 3, 4, 4)), _make((2,), _x(1, 3, 4, 4))],
    **{
        f"FractionalMaxPool{d}d": partial(_fractional, d) for d in (2, 3)
    },
    "Hardsigmoid": lambda: [_make((), _x(4, 3), inplace=i) for i in (False, True)],
    "RReLU": lambda: [_make((), _x(4, 3) - 0.5, inplace=i) for i in (False, True)],
    "Identity": lambda: [_make((), _x(4, 3))],
    "LazyLinear": lambda: [_make((3,), _x(4, 5), bias=b) for b in (True, False)],
    **{f"Lazy{kind}{d}d": partial(_norms, kind, d) for kind in ("BatchNorm", "InstanceNorm") for d in (1, 2, 3)},
    **{f"MaxUnpool{d}d": partial(_unpool, d) for d in (1, 2, 3)},
    "Linear": lambda: [_make((4, 3), x, bias=b) for x in _linear_inputs() for b in (True, False)],
    "NLLLoss2d": lambda: [_make((), _x(2, 3, 2, 2), torch.zeros(2, 2, 2, dtype=torch.long))],
    "PairwiseDistance": lambda: [_make((p,), _x(4, 3), _x(4, 3)) for p in (2.0, 1.0)],
    "PixelShuffle": lambda: [_make((2,), _x(1, 8, 2, 2))],
    "PixelUnshuffle": lambda: [_make((2,), _x(1, 2, 4, 4))],
    "SyncBatchNorm": _synchronised,
    "TransformerDecoder": _decoder,
    "TripletMarginLoss": lambda: [_make((), _x(4, 3), _x(4, 3), _x(4, 3), swap=s) for s in (False, True)],
    "TripletMarginWithDistanceLoss": lambda: [_make((), _x(4, 3), _x(4, 3), _x(4, 3), swap=s) for s in (False, True)],
    "Upsample": lambda: [_make((), _x(1, 2, 3, 3), scale_factor=2.0, mode=m) for m in ("nearest", "bilinear")],
    "UpsamplingBilinear2d": lambda: [_make((), _x(1, 2, 3, 3), scale_factor=2.0)],
    "UpsamplingNearest2d": lambda: [_make((), _x(1, 2, 3, 3), scale_factor=2.0)],
}  # fmt: skip
"""Samples by class name; they come before the test suite's."""


def samples(name: str) -> list[Sample]:
    return EXTRA[name]() if name in EXTRA else []
