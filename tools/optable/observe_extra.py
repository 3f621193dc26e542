"""Arguments for callables that torch's test suite does not cover, or covers only in part."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from tools.optable.observe_samples import Sample

Make = Callable[[], list[Sample]]


def _x(*shape: int) -> torch.Tensor:
    return torch.rand(*(shape or (3, 3)))


def _i(*values: int) -> torch.Tensor:
    return torch.tensor(values)


def _indices() -> list[Any]:
    mask, line = torch.tensor([[True, False, True]] * 3), torch.tensor([True, False, True])
    return [
        0, -1, slice(0, 2), slice(None, None, 2), None, Ellipsis, (0, 1), (slice(None), 1), (..., None), (0, slice(1, 3)),
        mask, line, mask.to(torch.uint8),
        _i(0, 2), _i(1), torch.tensor(1), torch.tensor([[0, 1], [2, 0]]),
        [0, 2], [True, False, True], (_i(0, 1), _i(1, 2)), (slice(None), _i(0, 1)), (_i(0, 1), slice(0, 2)), (line, 1),
        (slice(None), [0, 1]), (line, slice(None)),
    ]  # fmt: skip


def _getitem() -> list[Sample]:
    return [((x, index), {}) for index in _indices() for x in (_x(), _x(3, 3, 2))]


def _setitem() -> list[Sample]:
    out: list[Sample] = []
    for index in _indices():
        x = _x()
        out += [
            ((x, index, torch.rand(x[index].shape)), {}),
            ((x, index, 2.0), {}),
            ((x, index, torch.rand(())), {}),
        ]
    return out


def _to() -> list[Sample]:
    out: list[Sample] = []
    for x in (_x(), _x(2, 3, 4)):
        for dtype in (torch.float32, torch.float64, torch.float16, torch.int64):
            out += [
                ((x, dtype), {}),
                ((x, dtype), {"copy": True}),
                ((x,), {"dtype": dtype}),
                ((x, "cpu", dtype), {}),
            ]
            out += [
                ((x, torch.zeros(2, dtype=dtype)), {}),
                ((x, torch.zeros(2, dtype=dtype)), {"copy": True}),
            ]
        out += [
            ((x, "cpu"), {}),
            ((x, torch.device("cpu")), {}),
            ((x, "cpu"), {"copy": True}),
            ((x,), {"device": "cpu"}),
        ]
        out += [((x, "meta"), {}), ((x, "meta", torch.float64), {}), ((x, torch.zeros(2, device="meta")), {})]
    return out


def _attention() -> list[Sample]:
    out: list[Sample] = []
    for need, training, p in ((True, True, 0.0), (False, True, 0.0), (True, False, 0.5), (True, True, 0.5)):
        q, k, v = _x(4, 2, 6), _x(5, 2, 6), _x(5, 2, 6)
        args = (q, k, v, 6, 2, _x(18, 6), _x(18), None, None, False, p, _x(6, 6), _x(6))
        out.append((args, {"training": training, "need_weights": need}))
    return out


def _pair(*extra: Any) -> Make:
    return lambda: [((_x(), _x(), *extra), {}), ((_x(2, 3), _x(2, 3), *extra), {})]


def _new(function: Callable[[], list[tuple[Any, ...]]]) -> Make:
    return lambda: [(args, {}) for args in function()]


def _compressed(layout: str) -> list[Sample]:
    return [((getattr(_x(), layout)(),), {}), ((getattr(torch.eye(4), layout)(),), {})]


def _matmul() -> list[Sample]:
    """Every pair of numbers of dimensions, with sizes that broadcast, with ones that do not, and transposed."""
    shapes = ((3,), (3, 3), (2, 3, 3), (1, 3, 3), (2, 2, 3, 3), (1, 2, 3, 3), (2, 1, 3, 3))
    moved = ((_x, _x), (_moved, _x), (_x, _moved))
    return [((first(*a), second(*b)), {}) for first, second in moved for a in shapes for b in shapes]


def _moved(*shape: int) -> torch.Tensor:
    """Laid out in memory with its dimensions in the reverse order."""
    return _x(*shape[::-1]).permute(*range(len(shape))[::-1])


def _same(dims: int) -> list[Sample]:
    """Padding to the same size, on both sides alike and not."""
    return [
        ((_x(1, 2, *(6,) * dims), _x(3, 2, *(k,) * dims)), {"padding": "same", "dilation": d, **b})
        for k in (3, 2)
        for d in (1, 2)
        for b in ({}, {"bias": _x(3)})
    ]


_REDUCTIONS = ("none", "mean", "sum")


def _d(*shape: int) -> torch.Tensor:
    return torch.rand(*shape, dtype=torch.float64)


def _ctc() -> tuple[torch.Tensor, list[int], list[int]]:
    return torch.tensor([[1, 2], [2, 3]]), [6, 6], [2, 2]


def _pool(dims: int, *extra: Any) -> Make:
    sizes = (4,) * dims
    return lambda: [((_x(2, 3, *sizes), *extra, k), {}) for k in ([2] * dims, [3] * dims, 2)]


def _fractional(dims: int) -> Make:
    sizes = (6,) * dims
    return lambda: [
        ((_x(2, 3, *sizes), [2] * dims), {"output_size": [3] * dims, "return_indices": r})
        for r in (True, False)
    ]


EXTRA: dict[str, Make] = {
    "Tensor.__getitem__": _getitem,
    "operator.getitem": _getitem,
    "Tensor.__setitem__": _setitem,
    "operator.setitem": _setitem,
    "Tensor.to": _to,
    **{
        f"{head}.{name}{suffix}": partial(_compressed, layout)
        for head, suffix in (("Tensor", ""), ("torch", "_copy"))
        for layout, names in (
            ("to_sparse_csr", ("crow_indices", "col_indices")),
            ("to_sparse_csc", ("ccol_indices", "row_indices")),
        )
        for name in names
    },
    **{f"torch.{name}_copy": lambda: [((_x().to_sparse(),), {})] for name in ("indices", "values")},
    "torch.view_as_complex_copy": lambda: [((_x(3, 2),), {})],
    "Tensor.sparse_mask": lambda: [((_x(), torch.eye(3).to_sparse()), {})],
    "torch.conv_tbc": lambda: [
        ((_x(4, 2, 3), _x(2, 3, 4), _x(4), 0), {}),
        ((_x(4, 2, 3), _x(2, 3, 4), _x(4), 1), {}),
    ],
    "torch.nn.functional.conv_tbc": lambda: [((_x(4, 2, 3), _x(2, 3, 4), _x(4), 0), {})],
    "torch.segment_reduce": lambda: [((_x(4), r), {"lengths": _i(2, 2)}) for r in ("sum", "mean", "max")],
    "torch.quantize_per_tensor": lambda: [
        ((_x(), 0.1, 0, torch.quint8), {}),
        ((_x(), torch.tensor(0.1), torch.tensor(0), torch.quint8), {}),
    ],
    "torch.affine_grid_generator": lambda: [((_x(1, 2, 3), [1, 3, 4, 4], False), {})],
    "torch.native_norm": lambda: [((_x().to_sparse(),), {})],
    "torch.convolution": lambda: [((_x(1, 2, 5), _x(3, 2, 3), _x(3), [1], [0], [1], False, [0], 1), {})],
    "Tensor.resize_": lambda: [((_x(), s), {}) for s in ([3, 3], [9], [2, 2], [4, 4])],
    "Tensor.type": lambda: (
        [((_x(),), {}), ((_x(4),), {})]
        + [((_x(), d), {}) for d in (torch.float32, torch.float64, torch.int64)]
    ),
    "Tensor.copy_": lambda: (
        [((_x(), s), {}) for s in (_x(), _x(3), torch.rand(3, 3, dtype=torch.float64))] + [((_x(), 2.0), {})]
    ),
    "Tensor.contiguous": lambda: [((x,), {}) for x in (_x(), _x(4), _x(2, 3, 4))],
    "torch.nn.functional.multi_head_attention_forward": _attention,
    "Tensor.view": lambda: (
        [((_x(3, 4), s), {}) for s in ((4, 3), (12,), (3, 2, 2), (-1,))]
        + [((_x(3, 4), torch.int32), {}), ((_x(3, 4), torch.float64), {})]
    ),
    "Tensor.requires_grad_": lambda: [((_x(), v), {}) for v in (True,)],
    "Tensor.set_": _pair(),
    "torch.nn.functional.pad": lambda: [
        ((_x(2, 3, 4), pad), {"mode": mode})
        for mode in ("constant", "reflect", "replicate", "circular")
        for pad in ((1, 1), (0, 0), (1, 0))
    ],
    "torch.nn.functional.embedding": lambda: [
        ((_i(0, 1, 2), _x(4, 3)), {**k})
        for k in ({}, {"padding_idx": 1}, {"max_norm": 0.5}, {"sparse": True}, {"scale_grad_by_freq": True})
    ],
    "torch.nn.functional.batch_norm": lambda: [
        ((_x(4, 3, 2), m, v, w, b), {"training": t})
        for t in (True, False)
        for m, v in ((_x(3), _x(3)), (None, None))
        for w, b in ((_x(3), _x(3)), (None, None), (_x(3), None))
        if t or m is not None
    ],
    **{
        f"{head}.{name}": (
            lambda: (
                [((_x(),), {"min": 0.2, "max": 0.6}), ((_x(),), {"min": 0.2}), ((_x(),), {"max": 0.6})]
                + [((_x(),), {"min": _x(), "max": _x()}), ((_x(),), {"min": _x()}), ((_x(),), {"max": _x()})]
            )
        )
        for head in ("torch", "Tensor")
        for name in ("clip", "clip_", "clamp", "clamp_")
    },
    **{
        f"{head}.{name}": (
            lambda: (
                [
                    ((_x(), other), {"rounding_mode": mode})
                    for other in (_x(), 2.0)
                    for mode in (None, "floor", "trunc")
                ]
                + [((_x(), other), {}) for other in (_x(), 2.0)]
            )
        )
        for head in ("torch", "Tensor")
        for name in ("div", "div_", "divide", "divide_")
    },
    **{
        f"{head}.float_power_": (lambda: [((_d(3, 3), e), {}) for e in (_d(3, 3), 2.0, 3)])
        for head in ("torch", "Tensor")
    },
    "torch.einsum": lambda: [
        (("ij,jk->ik", _x(), _x()), {}),
        (("ij,jk->ik", [_x(), _x()]), {}),
        (("ii->i", _x()), {}),
        (("bij,bjk->bik", _x(2, 3, 4), _x(2, 4, 3)), {}),
        (("ij,j,k->ik", _x(), _x(3), _x(2)), {}),
        (("ij->ji", _x()), {}),
        (("ij,jk->k", _x(2, 3), _x(3, 4)), {}),
        (("bhij,bjhd->bihd", _x(2, 2, 3, 5), _x(2, 5, 2, 4)), {}),
        (("bihd,bjhd->bhij", _x(2, 3, 2, 4), _x(2, 5, 2, 4)), {}),
    ],
    "torch.embedding_bag": lambda: [((_x(5, 3), _i(0, 1, 2, 3), _i(0, 2)), {"mode": m}) for m in (0, 1, 2)],
    "torch.from_numpy": lambda: [((_x().numpy(),), {}), ((_x(4).numpy(),), {})],
    "torch.frombuffer": lambda: [((bytearray(16),), {"dtype": torch.float32})],
    "torch.nn.functional.fold": lambda: [
        ((_x(1, 12, 4), (3, 3), (2, 2)), {}),
        ((_x(1, 4, 9), (4, 4), 2), {}),
    ],
    "torch.nn.functional.affine_grid": lambda: [
        ((_x(1, 2, 3), [1, 3, 4, 4]), {}),
        ((_x(1, 3, 4), [1, 3, 4, 4, 4]), {}),
    ],
    "torch.nn.functional.ctc_loss": lambda: [
        ((_x(6, 2, 4).log_softmax(-1), *_ctc()), {"reduction": r}) for r in _REDUCTIONS
    ],
    "torch.ctc_loss": lambda: (
        [((_x(6, 2, 4).log_softmax(-1), *_ctc()), {})]
        + [((_x(6, 2, 4).log_softmax(-1), _ctc()[0], _i(6, 6), _i(2, 2)), {})]
    ),
    **{
        f"torch.nn.functional.{name}": (
            lambda: [
                ((_x(1, 2, 4, 4),), {"scale_factor": 2, **k})
                for k in ({}, {"mode": "bilinear"}, {"mode": "nearest"})
            ]
        )
        for name in ("upsample", "upsample_bilinear", "upsample_nearest")
    },
    "torch.nn.functional.upsample_bilinear": lambda: [((_x(1, 2, 4, 4),), {"scale_factor": 2})],
    "torch.nn.functional.upsample_nearest": lambda: [((_x(1, 2, 4, 4),), {"scale_factor": 2})],
    **{
        f"{place}{name}{d}d{suffix}": _pool(d, *args)
        for d in (1, 2, 3)
        for place, name, suffix, args in (
            ("torch.", "max_pool", "", ()),
            ("torch.nn.functional.", "lp_pool", "", (2.0,)),
            ("torch.", "max_pool", "_with_indices", ()),
            ("torch.nn.functional.", "max_pool", "_with_indices", ()),
            ("torch.nn.functional.", "avg_pool", "", ()),
        )
    },
    **{f"torch.nn.functional.fractional_max_pool{d}d_with_indices": _fractional(d) for d in (2, 3)},
    "torch.nn.functional.scaled_dot_product_attention": lambda: (
        [
            ((_x(2, 2, 4, 8), _x(2, 2, 4, 8), _x(2, 2, 4, 8)), k)
            for k in (
                {},
                {"is_causal": True},
                {"attn_mask": _x(4, 4)},
                {"attn_mask": _x(4, 4) > 0.3},
                {"dropout_p": 0.5},
            )
        ]
        + [((_x(2, 4, 8), _x(2, 4, 8), _x(2, 4, 8)), k) for k in ({}, {"attn_mask": _x(4, 4)})]
    ),
    **{
        f"{head}.cov": lambda: [
            ((x,), {"correction": c, **f, **a})
            for x in (_x(3, 4), _x(4))
            for c in (0, 1)
            for f in ({}, {"fweights": _i(1, 2, 1, 2)})
            for a in ({}, {"aweights": _x(4)})
        ]
        for head in ("torch", "Tensor")
    },
    **{f"{head}.conv{d}d": partial(_same, d) for d in (1, 2, 3) for head in ("torch", "torch.nn.functional")},
    "torch.nonzero": lambda: [((_x(),), {}), ((_x(),), {"as_tuple": True}), ((_x(4),), {"as_tuple": False})],
    "Tensor.nonzero": lambda: [((_x(),), {}), ((_x(),), {"as_tuple": True}), ((_x(4),), {"as_tuple": False})],
    "torch.gru_cell": lambda: [((_x(2, 3), _x(2, 4), _x(12, 3), _x(12, 4), _x(12), _x(12)), {})],
    "torch.rnn_tanh_cell": lambda: [((_x(2, 3), _x(2, 4), _x(4, 3), _x(4, 4), _x(4), _x(4)), {})],
    "torch.rnn_relu_cell": lambda: [((_x(2, 3), _x(2, 4), _x(4, 3), _x(4, 4), _x(4), _x(4)), {})],
    "torch.lstm_cell": lambda: [((_x(2, 3), [_x(2, 4), _x(2, 4)], _x(16, 3), _x(16, 4), _x(16), _x(16)), {})],
    "torch.batch_norm": lambda: [
        ((_x(4, 3, 2), w, b, _x(3), _x(3), t, 0.1, 1e-5, False), {})
        for t in (True, False)
        for w, b in ((_x(3), _x(3)), (None, None), (_x(3), None))
    ],
    "torch.instance_norm": lambda: [
        ((_x(4, 3, 2), _x(3), _x(3), _x(3), _x(3), t, 0.1, 1e-5, False), {}) for t in (True, False)
    ],
    "torch.nuclear_norm": lambda: [((_x(),), {}), ((_x(),), {"keepdim": True}), ((_x(), [0, 1]), {})],
    "torch.cosine_embedding_loss": lambda: [((_x(4, 3), _x(4, 3), torch.tensor([1, -1, 1, -1])), {})],
    "torch.chain_matmul": lambda: [((_x(), _x(), _x()), {}), ((_x(), _x()), {})],
    "torch.gradient": lambda: [
        ((_x(4, 4),), {"spacing": 0.5}),
        ((_x(4, 4),), {"dim": 0}),
        ((_x(4, 4),), {}),
        ((_x(4, 4),), {"spacing": [0.5, 0.5], "dim": [0, 1]}),
    ],
    "torch.grid_sampler": lambda: [((_x(1, 2, 4, 4), _x(1, 3, 3, 2), 0, 0, False), {})],
    "torch.linalg.cond": lambda: [
        ((_x() + torch.eye(3),), {}),
        ((_x() + torch.eye(3), 2), {}),
        ((_x() + torch.eye(3), "fro"), {}),
    ],
    **{
        f"Tensor.{name}": (lambda: [((_x().to_sparse(),), {}), ((_x(4).to_sparse(),), {})])
        for name in ("coalesce", "is_coalesced", "indices", "values")
    },
    "Tensor.cpu": lambda: [((_x(),), {}), ((_x(4),), {})],
    "Tensor.apply_": lambda: [((_x(), lambda v: v + 1), {}), ((_x(4), lambda v: v * 2), {})],
    "Tensor.map_": lambda: [((_x(), _x(), lambda a, b: a + b), {})],
    "Tensor.map2_": lambda: [((_x(), _x(), _x(), lambda a, b, c: a + b * c), {})],
    "Tensor.as_subclass": lambda: [((_x(), torch.nn.Parameter), {})],
    "Tensor.retain_grad": lambda: [],
    **dict.fromkeys(
        (
            "torch.matmul",
            "torch.linalg.matmul",
            "Tensor.matmul",
            "Tensor.__matmul__",
            "Tensor.__rmatmul__",
            "operator.matmul",
        ),
        _matmul,
    ),
    "torch.tensor": lambda: [(([1.0, 2.0],), {}), ((_x(),), {})],
    "torch.as_tensor": lambda: (
        [((v,), {}) for v in (_x(), _x(2), [1.0, 2.0])]
        + [((_x(),), {"dtype": d}) for d in (torch.float32, torch.float64)]
    ),
    "torch.asarray": lambda: (
        [((v,), {}) for v in (_x(), _x(2), [1.0, 2.0])] + [((_x(),), {"copy": c}) for c in (True, False)]
    ),
}
"""Samples by public name; they come before the test suite's."""


def samples(name: str) -> list[Sample]:
    return EXTRA[name]() if name in EXTRA else []
