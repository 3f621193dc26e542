"""Sizes and strides of views, where they are known.

With them three questions have exact answers: is the tensor contiguous (`reshape` then makes a view), does an
`expand` make elements overlap (in-place writes are then refused), and can a shape be had without a copy. The
arithmetic is that of `at::native`; `computeStride` is the one that decides for `view` and `reshape`.
"""

from __future__ import annotations

Shape = tuple[int, ...]

MAX_RANK = 64
"""Dimensions of a tensor whose sizes are followed; torch itself takes no more in most places."""
MAX_SIZE = 2**63
"""Above every size: sizes are signed numbers of 64 bits."""


def possible(shape: tuple[object, ...] | None) -> bool:
    """Whether a tensor may have these sizes, which are known or not."""
    if shape is None or len(shape) > MAX_RANK:
        return shape is None
    return all(size < MAX_SIZE for size in shape if isinstance(size, int))


def contiguous_strides(shape: Shape) -> Shape:
    """Strides of a freshly made tensor, in elements."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def channels_last_strides(shape: Shape) -> Shape:
    """Strides of images or volumes whose channels, their second dimension, lie next to each other."""
    batch, channels, *places = shape
    steps = contiguous_strides((batch, *places, channels))
    return (steps[0], steps[-1], *steps[1:-1])


def is_contiguous(shape: Shape, strides: Shape) -> bool:
    """As `Tensor.is_contiguous()` has it: dimensions of size 1 do not matter."""
    if 0 in shape:
        return True
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1:
            if stride != step:
                return False
            step *= size
    return True


def is_dense(shape: Shape, strides: Shape) -> bool:
    """Whether the elements fill their memory without gaps and without overlap, in any order of the dimensions."""
    step = 1
    moving = [(stride, size) for size, stride in zip(shape, strides, strict=True) if size != 1]
    for stride, size in sorted(moving):
        if stride != step:
            return False
        step *= size
    return True


def overlaps(shape: Shape, strides: Shape) -> bool:
    """Whether torch sees internal overlap: a dimension of several elements with stride 0."""
    if is_contiguous(shape, strides):
        return False
    return any(size > 1 and stride == 0 for size, stride in zip(shape, strides, strict=True))


def view_strides(shape: Shape, strides: Shape, new: Shape) -> Shape | None:
    """Strides of `view(new)`, None where it needs a copy."""
    if 0 in shape:
        return contiguous_strides(new)
    result = [0] * len(new)
    at = len(new) - 1
    chunk_base = strides[-1] if strides else 1
    old_elements = 1
    new_elements = 1
    if not shape:
        return tuple(1 for _ in new) if all(size == 1 for size in new) else None
    for dim in range(len(shape) - 1, -1, -1):
        old_elements *= shape[dim]
        if dim == 0 or (shape[dim - 1] != 1 and strides[dim - 1] != old_elements * chunk_base):
            while at >= 0 and (new_elements < old_elements or new[at] == 1):
                result[at] = new_elements * chunk_base
                new_elements *= new[at]
                at -= 1
            if new_elements != old_elements:
                return None
            if dim > 0:
                chunk_base = strides[dim - 1]
                old_elements = new_elements = 1
    return tuple(result) if at == -1 else None


def expanded(shape: Shape, strides: Shape, sizes: tuple[int, ...]) -> tuple[Shape, Shape] | None:
    """Sizes and strides of `expand(sizes)`; None where torch refuses."""
    if len(sizes) < len(shape):
        return None
    new_shape: list[int] = []
    new_strides: list[int] = []
    offset = len(sizes) - len(shape)
    for index, wanted in enumerate(sizes):
        if index < offset:
            if wanted < 0:
                return None
            new_shape.append(wanted)
            new_strides.append(0)
            continue
        size, stride = shape[index - offset], strides[index - offset]
        if wanted in (-1, size):
            new_shape.append(size)
            new_strides.append(stride)
        elif size == 1:
            new_shape.append(wanted)
            new_strides.append(0)
        else:
            return None
    return tuple(new_shape), tuple(new_strides)


def broadcast(*shapes: Shape) -> Shape | None:
    """The common shape of several, None where they do not fit."""
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[int] = []
    for at in range(1, rank + 1):
        sizes = {shape[-at] for shape in shapes if len(shape) >= at} - {1}
        if len(sizes) > 1:
            return None
        result.append(sizes.pop() if sizes else 1)
    return tuple(reversed(result))


def product(sizes: tuple[object, ...] | None) -> int | None:
    """Number of elements, None when a size is unknown."""
    if sizes is None:
        return None
    total = 1
    for size in sizes:
        if not isinstance(size, int):
            return None
        total *= size
    return total
