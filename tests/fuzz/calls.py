"""Calls that torch accepts: each public op with argument patterns that were tried under torch.

What an op saves, aliases or writes is not known here; only how it can be called. The names come from the
op table, so the fuzzer grows with it.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

CACHE = Path(__file__).with_name("calls.json")
"""What `python -m tests.fuzz.calls` found to work; trying all takes too long for every run."""

SLOT = re.compile(r"\b([A-Z])\b")

SHAPES: dict[str, tuple[str, tuple[int, ...]]] = {
    "M": ("f", (3, 3)),
    "V": ("f", (3,)),
    "S": ("f", ()),
    "B": ("f", (2, 3, 3)),
    "X": ("f", (2, 3, 4)),
    "Y": ("f", (3, 3, 2)),
    "C": ("f", (1, 2, 4, 4)),
    "W": ("f", (2, 2, 3, 3)),
    "I": ("i", (3,)),
    "J": ("i", (3, 3)),
    "K": ("b", (3, 3)),
}
"""Slot letters of the patterns: kind of dtype (float, index, bool) and shape."""

PATTERNS: tuple[str, ...] = (
    "M", "V", "S", "B", "X", "C", "J", "K",
    "M, M", "M, V", "V, V", "B, B", "V, M", "M, S", "S, M", "B, M", "M, B",
    "M, 2", "M, 0.5", "M, 1", "M, 0", "M, -1", "M, 3", "V, 0", "V, 2", "2, M", "0.5, M", "B, 0", "B, 1",
    "M, dim=0", "M, dim=-1", "M, dim=1", "M, p=0.5", "M, dim=1, keepdim=True", "M, 1, True",
    "M, 0, 1", "M, 1, 2", "M, 1, 0", "B, 1, 2", "M, 0, 0, 2", "M, 1, 0, 2", "M, 0.1, 0.9", "M, 0.2, None", "M, -1, 1",
    "M, 0, I", "M, 1, J", "M, I", "M, J", "J, M", "I, M", "M, [0, 2]", "I",
    "M, 0, I, M", "M, 1, J, M", "M, 0, I, 0.5", "M, 1, J, 0.5", "M, V, 0, 1", "M, M, 0.5", "M, 0.5, M", "M, 0, M",
    "M, (I,), V", "M, J, V", "M, 0, I, M, reduce='amax'", "M, 1, J, M, reduce='prod'", "M, M, 1",
    "M, K", "M, K, 0.5", "M, K, V", "M, K, M", "K, M, M", "K, M, 0.5",
    "M, M, M", "M, V, V", "V, M, V", "V, V, V", "B, B, B", "M, M, V", "M, M, B", "M, B, B", "M, M, M, value=0.5", "V, V, M",
    "M, M, M, alpha=0.5", "M, M, alpha=0.5",
    "M, (3,)", "M, (9,)", "M, 9", "M, (3, 3)", "M, 3, 3", "V, 3, 3", "M, (1, 0)", "M, (0, 1)", "M, [1, 2]", "M, 1, (3, 1)",
    "M, (1, 1)", "M, (0,)", "V, (3, 3)", "M, (2, 1)", "M, 2, 1", "B, (2, 0, 1)", "B, 2, 0, 1", "M, (2, 2), (1, 1)",
    "[M, M]", "[M, M], 0", "[M, M], 1", "[V, V]", "M, [M, M]", "(M, M), dim=0", "M, M, M, 0.5", "[M, M, M]", "V, V, V, V",
    "C, W", "C, W, stride=1, padding=1", "C, 2", "C, (2, 2)", "C, 2, 1", "X, Y", "X, 2", "X, 3", "X, 1", "C, [1, 1, 1, 1]",
    "C, scale_factor=2", "C, (2, 2), (1, 1)", "X, 2, 1", "X, scale_factor=2", "X, 8",
    "M, (3,), V, V", "M, None, None, V, V, True", "M, None, None, training=True", "M, V, V, training=False", "X, 3, V, V",
    "M, inplace=True", "M, 0.1, inplace=True", "M, 0.1, 0.5, inplace=True", "M, 0.5, True, True", "M, dtype=torch.float32",
    "M, 0.5, True", "M, 0.5, 0.1", "M, I, V", "J, M, reduction='sum'", "M, M, reduction='sum'", "M, M, reduction='none'",
    "M, I, reduction='sum'", "M, M, V, 0.5", "'ij,jk->ik', M, M", "'ij->ji', M", "'i,j->ij', V, V", "M, ord=2", "M, 2, 1",
    "M, 'fro'", "M, dtype=None", "M, offset=1", "M, 0, 0, 1", "M, (3, 2), (3, 1)", "M, (2, 2), (1, 1), 1", "M, diagonal=1",
    "M, approximate='tanh'", "M, beta=0.5", "M, torch.float32", "M, dims=(0,)", "M, (0, 1), (1, 0)", "M, memory_format=torch.contiguous_format",
)  # fmt: skip

AVOID = re.compile(  # matched anywhere in the public name
    r"empty|fbgemm_pack|resize|set_|^torch\.set|backward|_is_|quantiz|mkldnn|sparse|cuda|share_memory|pin_|storage|hook|retain_grad|"
    r"requires_grad|detach|numpy|dlpack|tolist|^torch\.(load|save|manual_seed|seed|initial)|fft|complex|polar|names|rename|"
    r"align|refine|compile|jit|func\.|vmap|deterministic|_copy$|stft|apply_|map_|map2|random_|log_normal_|cauchy|"
    r"geometric_|module_load|record_stream|is_shared|type$|\.new|item|__|view_as_real|as_strided|lobpcg|svd|eig|"
    r"Tensor\.(data|grad|T|H|mT|mH|shape|device|dtype|real|imag)$|sym_|cond$|while_loop|compute_type|\.to_|bernoulli_$|rrelu"
)
"""Not grown at random: uninitialised memory, global state, complex numbers, results known only up to a sign,
and `rrelu`, which saves its noise before it fills it, so that cloned saves give other gradients."""


@dataclass(frozen=True, slots=True)
class Call:
    """One way to call an op: `text` has `{0}`, `{1}` where the tensors in `slots` go."""

    name: str
    text: str
    slots: tuple[str, ...]
    inplace: bool


def sample(letter: str, shift: float = 0.0) -> torch.Tensor:
    """A tensor that fits the slot; floats lie in [shift, shift + 1)."""
    kind, shape = SHAPES[letter]
    if kind == "f":
        return torch.rand(shape) + shift
    if kind == "i":
        return torch.randint(0, 3, shape)
    return torch.rand(shape) > 0.4


def spelled(name: str, pattern: str) -> tuple[str, tuple[str, ...]] | None:
    """Source text of the call and its slots, as in `torch.add({0}, {1})`; None if the pattern cannot be a method."""
    slots: list[str] = []

    def mark(match: re.Match[str]) -> str:
        slots.append(match.group(1))
        return "{" + str(len(slots) - 1) + "}"

    text = SLOT.sub(mark, pattern)
    if name.startswith("Tensor."):
        if not text.startswith("{0}"):
            return None
        rest = text[3:].removeprefix(",").strip()
        return "{0}." + name.removeprefix("Tensor.") + f"({rest})", tuple(slots)
    short = name.replace("torch.nn.functional.", "F.")
    return f"{short}({text})", tuple(slots)


def tensors_of(value: Any) -> list[torch.Tensor]:
    """The tensors in a result, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in tensors_of(item)]
    return []


def sane(tensor: torch.Tensor) -> bool:
    """Dense CPU numbers of modest size, without NaN."""
    if (
        tensor.layout is not torch.strided
        or tensor.is_complex()
        or tensor.is_quantized
        or tensor.numel() > 200
    ):
        return False
    if not tensor.is_floating_point():
        return True
    return bool(tensor.numel() == 0 or tensor.detach().abs().max() < 1e3)


def _works(name: str, pattern: str) -> bool:
    """Whether torch runs the call and its backward on numbers in some range."""
    spelling = spelled(name, pattern)
    if spelling is None:
        return False
    text, slots = spelling
    code = compile(text.format(*(f"a{i}" for i in range(len(slots)))), name, "eval")
    for shift in (0.0, 1.5, -0.5):
        given = [_not_leaf(sample(letter, shift)) for letter in slots]
        try:
            result = eval(code, {f"a{i}": t for i, t in enumerate(given)} | {"torch": torch, "F": F})
            found = tensors_of(result)
            wanted = [t for t in found if t.requires_grad]
            if 0 < len(found) < 5 and all(sane(t) and t.numel() for t in found):
                if wanted:
                    torch.stack([t.sum() for t in wanted]).sum().backward()
                return True
        except Exception:
            continue
    return False


def _not_leaf(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.requires_grad_() * 1 if tensor.is_floating_point() else tensor


def table_names() -> list[str]:
    """Every public spelling in the op table that Python can call."""
    from gradguard.ops.table import load

    return sorted(set(load().names()))


def try_all(names: Iterable[str]) -> dict[str, list[str]]:
    """The patterns that work for each name; slow (tens of seconds)."""
    found: dict[str, list[str]] = {}
    with _quiet():
        for name in names:
            if not AVOID.search(name) and not name.startswith(("torch._", "Tensor._", "operator.")):
                works = [pattern for pattern in PATTERNS if _works(name, pattern)]
                if works:
                    found[name] = works
    return found


@lru_cache(maxsize=1)
def _cached() -> dict[str, Any]:
    """What CACHE holds."""
    known: dict[str, Any] = json.loads(CACHE.read_text())
    return known


def patterns(*, inplace: bool) -> dict[str, list[str]]:
    """The ops that write their first argument, or those that do not, with their patterns; in a fixed order."""
    return _sorted_out()[inplace]


@lru_cache(maxsize=1)
def _sorted_out() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    pure: dict[str, list[str]] = {}
    writing: dict[str, list[str]] = {}
    for name, known in _cached()["calls"].items():
        for pattern in known:
            (writing if _writes(name, pattern) else pure).setdefault(name, []).append(pattern)
    return pure, writing


def _writes(name: str, pattern: str) -> bool:
    return name.endswith("_") or "inplace=True" in pattern or "True, True" in pattern


@cache
def call(name: str, pattern: str) -> Call:
    """The call of that op by that pattern."""
    spelling = spelled(name, pattern)
    assert spelling is not None, (name, pattern)
    return Call(name, *spelling, _writes(name, pattern))


@contextmanager
def _quiet() -> Iterator[None]:
    """No warnings, and the random state as it was."""
    state = torch.get_rng_state()
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch.set_rng_state(state)


@dataclass(frozen=True, slots=True)
class Layer:
    """A module that maps a tensor of some shape to a tensor: its constructor and the slot letter it takes."""

    name: str
    text: str
    letter: str


LAYER_ARGUMENTS = ("", "3", "3, 3", "2", "2, 2", "1", "(3,)", "-1", "0.5", "3, 3, 1", "2, 2, 3", "1, 3", "inplace=True", "0.1, inplace=True", "dim=-1", "3, affine=False", "3, bias=False", "3, 3, bias=False", "3, track_running_stats=False", "0.1, 0.5", "0.0, 1.0")  # fmt: skip


@lru_cache(maxsize=1)
def layers() -> tuple[Layer, ...]:
    """Layers of `torch.nn` that take one float tensor and keep it small."""
    return tuple(Layer(*row) for row in _cached()["layers"])


def try_layers() -> tuple[Layer, ...]:
    """The layers that work."""
    found: list[Layer] = []
    with _quiet():
        for name in sorted(dir(nn)):
            kind = getattr(nn, name)
            if not isinstance(kind, type) or not issubclass(kind, nn.Module) or _NOT_LAYERS.search(name):
                continue
            for arguments in LAYER_ARGUMENTS:
                text = f"nn.{name}({arguments})"
                try:
                    layer = eval(text, {"nn": nn})
                except Exception:
                    continue
                found += [Layer(name, text, letter) for letter in "MBXC" if _layer_works(layer, letter)]
    return tuple(found)


_NOT_LAYERS = re.compile(
    r"^Lazy|Loss|RNN|GRU|LSTM|^(Module|Container|Sequential|Bilinear)|List$|Dict$|^Uninit|Circular|^RReLU"
)


def _layer_works(layer: nn.Module, letter: str) -> bool:
    try:
        out = layer(_not_leaf(sample(letter)))
        if (
            not isinstance(out, torch.Tensor)
            or not out.is_floating_point()
            or not sane(out)
            or not out.numel()
        ):
            return False
        if out.requires_grad:
            out.sum().backward()
    except Exception:
        return False
    return True


def update() -> str:
    """Tries everything again, writes CACHE, says how much was found."""
    tried, tried_layers = try_all(table_names()), try_layers()
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(found)}" for name, found in tried.items())
    kinds = ",\n".join(json.dumps([layer.name, layer.text, layer.letter]) for layer in tried_layers)
    head = f'"torch": {json.dumps(torch.__version__.split("+")[0])}'
    CACHE.write_text(f'{{{head}, "calls": {{\n{rows}\n}}, "layers": [\n{kinds}\n]}}\n')
    return f"{len(tried)} ops, {sum(map(len, tried.values()))} calls, {len(tried_layers)} layers"


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(update())
