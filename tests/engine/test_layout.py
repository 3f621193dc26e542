"""Sizes, strides and overlap against torch's own."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gradguard.engine.domain import strides

SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


@st.composite
def laid_out(draw: st.DrawFn) -> torch.Tensor:
    """A tensor with strides of its own: permuted, sliced or expanded."""
    tensor = torch.zeros(draw(SHAPES))
    for _ in range(draw(st.integers(0, 2))):
        kind = draw(st.sampled_from(["permute", "slice", "expand", "unsqueeze"]))
        if kind == "permute":
            tensor = tensor.permute(draw(st.permutations(range(tensor.dim()))))
        elif kind == "slice":
            dim = draw(st.integers(0, tensor.dim() - 1))
            tensor = tensor.narrow(dim, 0, max(1, tensor.size(dim) - 1))
        elif kind == "expand":
            tensor = tensor.expand(draw(st.integers(1, 3)), *tensor.shape)
        else:
            tensor = tensor.unsqueeze(draw(st.integers(0, tensor.dim())))
    return tensor


@given(laid_out())
@settings(max_examples=200, deadline=None)
def test_contiguity_is_that_of_torch(tensor: torch.Tensor) -> None:
    assert strides.is_contiguous(tuple(tensor.shape), tensor.stride()) == tensor.is_contiguous()


@given(laid_out(), st.data())
@settings(max_examples=200, deadline=None)
def test_view_is_possible_exactly_where_torch_makes_one(tensor: torch.Tensor, data: st.DataObject) -> None:
    total = tensor.numel()
    first = data.draw(st.sampled_from([n for n in range(1, total + 1) if total % n == 0]))
    wanted = data.draw(
        st.sampled_from([(total,), (first, total // first), (1, total), (first, 1, total // first)])
    )
    try:
        expected: tuple[int, ...] | None = tensor.view(wanted).stride()
    except RuntimeError:
        expected = None
    found = strides.view_strides(tuple(tensor.shape), tensor.stride(), wanted)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        # Where a size is 1 the stride is anybody's choice.
        assert [s for s, n in zip(found, wanted, strict=True) if n != 1] == [
            s for s, n in zip(expected, wanted, strict=True) if n != 1
        ]


@given(laid_out())
@settings(max_examples=100, deadline=None)
def test_overlap_is_refused_exactly_where_torch_refuses(tensor: torch.Tensor) -> None:
    try:
        tensor.add_(1)
        refused = False
    except RuntimeError:
        refused = True
    assert strides.overlaps(tuple(tensor.shape), tensor.stride()) == refused
