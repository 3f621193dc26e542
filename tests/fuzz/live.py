"""A program that runs while it is written: each statement is tried under torch before it is kept."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tests.fuzz.calls import sane, tensors_of

AUTOGRAD_ERRORS: tuple[tuple[str, str], ...] = (
    ("modified by an inplace operation", "GG101"),
    ("leaf Variable that requires grad", "GG102"),
    ("used in an in-place operation", "GG102"),
    ("is a view and is being modified inplace", "GG103"),
    ("is a view and its base or another view of its base has been modified", "GG103"),
    ("Can't detach views in-place", "GG103"),
    ("A view was created in no_grad mode", "GG103"),
    ("A view was created in inference mode", "GG103"),
    ("more than one element of the written-to tensor", "GG104"),
    ("some elements of the input tensor and the written-to tensor refer to a single memory", "GG104"),
    ("Inference tensors cannot be saved", "GG107"),
    ("Inplace update to inference tensor", "GG107"),
    ("backward through the graph a second time", "GG203"),
    ("does not require grad and does not have a grad_fn", "GG205"),
)
"""Words of torch's errors that the checker should foresee, and the rule that speaks of them."""


def rule_of(error: str) -> str | None:
    """The rule for an error text of torch; None if the error is not about autograd."""
    for words, code in AUTOGRAD_ERRORS:
        if words in error:
            return code
    return None


class Raised(Exception):
    """The program has come to its end: torch raised an error of autograd in it."""


class Unusable(Exception):
    """The program failed for another reason than autograd, or in another way than wanted."""


@dataclass(slots=True)
class Frame:
    """The names one piece of code can see."""

    space: dict[str, Any]
    names: list[str] = field(default_factory=list)
    fixed: dict[str, tuple[tuple[int, ...], torch.dtype]] = field(default_factory=dict)
    """Names that must keep their shape: they go round a loop."""
    places: list[str] = field(default_factory=list)
    """Expressions besides plain names that give tensors, such as `self.scale`."""

    def know(self, name: str, value: Any) -> None:
        self.space[name] = value
        if name in self.names:
            self.names.remove(name)
        self.names.append(name)


@dataclass(frozen=True, slots=True)
class Place:
    """An expression that gives a tensor, the tensor it gives now, and what autograd says of it."""

    text: str
    tensor: torch.Tensor
    kind: str
    """f float, i integer, b bool"""
    grad: bool
    leaf: bool
    broken: bool
    """One of several views whose base was written since: any use of it raises."""

    @staticmethod
    def of(text: str, tensor: torch.Tensor) -> Place:
        kind = "f" if tensor.is_floating_point() else "b" if tensor.dtype is torch.bool else "i"
        try:
            return Place(text, tensor, kind, tensor.requires_grad, tensor.is_leaf, False)
        except RuntimeError:
            return Place(text, tensor, kind, True, False, True)


@dataclass(slots=True)
class Style:
    """What the program is to be like; drawn once per program."""

    raising: bool
    """Wanted: a program that raises."""
    writes: float
    hidden: float
    """Share of writes that the version counter does not see."""
    early: bool
    """An error may come from a forward statement, not only from backward."""


@dataclass(frozen=True, slots=True)
class Helper:
    """A function of the program and values it was called with."""

    name: str
    arguments: tuple[torch.Tensor, ...]


@dataclass(frozen=True, slots=True)
class Model:
    """A module instance of the program: its name and the shape it takes."""

    name: str
    shape: tuple[int, ...]


class Writer:
    """Text and state of the program so far."""

    def __init__(self, rng: random.Random, style: Style) -> None:
        self.rng = rng
        self.style = style
        self.head: list[str] = []
        """Functions and classes, above everything else."""
        self.lines: list[str] = []
        self.depth = 0
        self.count = 0
        self.kinds: Counter[str] = Counter()
        self.ops: Counter[str] = Counter()
        self.base: dict[str, Any] = {"torch": torch, "nn": nn, "F": F, "SimpleNamespace": SimpleNamespace}
        self.frame = Frame(dict(self.base))
        self.serial = 0
        self.shadow = False
        """What is written now is not reached when the program runs; it works on copies."""
        self.stale: list[torch.Tensor] = []
        """Tensors whose graph has been freed."""
        self.helpers: list[Helper] = []
        self.models: list[Model] = []
        self.layers: list[tuple[str, str]] = []
        """In a `forward`: expressions for the module's layers, and the slot letter each takes."""

    # Text

    def emit(self, text: str) -> None:
        self.lines.extend("    " * self.depth + line for line in text.split("\n"))
        self.count += 1

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Lines written inside stand one level deeper; an empty block gets a `pass`."""
        start = len(self.lines)
        self.depth += 1
        try:
            yield
        finally:
            if len(self.lines) == start:
                self.lines.append("    " * self.depth + "pass")
            self.depth -= 1

    @contextmanager
    def captured(self, depth: int = 0) -> Iterator[list[str]]:
        """Lines written inside go to the list instead of the program."""
        kept, self.lines, kept_depth, self.depth = self.lines, [], self.depth, depth
        mine = self.lines
        try:
            yield mine
        finally:
            self.lines, self.depth = kept, kept_depth

    # Running

    def run(self, text: str, *, certain: bool = False) -> bool:
        """Runs and keeps a statement. False: torch refused it, nothing was kept.

        Raises Raised when the statement raises as the style wants, Unusable when it does not and `certain` says
        that the statement may have had effects before it failed.
        """
        try:
            exec(compile(text, "program.py", "exec"), self.frame.space)
        except (Raised, Unusable):
            raise
        except Exception as error:
            self.refused(text, error, certain)
            return False
        self.emit(text)
        return True

    def refused(self, text: str | None, error: Exception, certain: bool) -> None:
        """A statement failed: the program's end, an unusable program, or a statement to forget.

        `text` is None where the statement is written already.
        """
        if self.shadow:
            return
        code = rule_of(str(error))
        if code is None or isinstance(error, (SyntaxError, NameError)):
            if certain:
                raise Unusable(f"{text}: {error}") from error
            return
        backward = code in ("GG101", "GG203", "GG205")
        if code == "GG203" and self.rng.random() < 0.6:
            # The easiest error to come by; leave room for the others.
            raise Unusable(str(error)) from error
        if self.style.raising and (backward or certain or (self.style.early and self.rng.random() < 0.5)):
            if text is not None:
                self.emit(text)
            self.kinds[f"ends with {code}"] += 1
            raise Raised(str(error)) from error
        if certain or backward:
            raise Unusable(str(error)) from error

    def value(self, text: str) -> Any:
        """The value of an expression now; None if torch refuses or the numbers get out of hand."""
        try:
            result = eval(compile(text, "program.py", "eval"), self.frame.space)
        except Exception as error:
            self.last_error = error
            return None
        tensors = tensors_of(result)
        if tensors and not all(sane(t) and t.numel() for t in tensors):
            return None
        return result

    last_error: Exception | None = None

    def assign(self, name: str, expression: str) -> bool:
        """`name = expression`, if torch accepts it and a looping name keeps its shape."""
        value = self.value(expression)
        if value is None:
            error, self.last_error = self.last_error, None
            if error is not None and rule_of(str(error)) in ("GG103", "GG107"):
                self.refused(f"{name} = {expression}", error, False)
            return False
        if not self.keeps_shape(name, value):
            return False
        self.frame.know(name, value)
        self.emit(f"{name} = {expression}")
        return True

    def keeps_shape(self, name: str, value: Any) -> bool:
        """Whether the name may be bound to the value although it goes round a loop."""
        want = self.frame.fixed.get(name)
        if want is None:
            return True
        return isinstance(value, torch.Tensor) and (tuple(value.shape), value.dtype) == want

    # What there is

    def places(self) -> list[Place]:
        """Every expression in sight that gives a tensor, newest names last."""
        found: list[Place] = []
        for name in self.frame.names:
            _collect(name, self.frame.space.get(name), found)
        for text in self.frame.places:
            value = self.value(text)
            if isinstance(value, torch.Tensor):
                found.append(Place.of(text, value))
        return found

    def pick(
        self,
        kind: str = "f",
        shape: tuple[int, ...] | None = None,
        *,
        rank: int | None = None,
        grad: bool | None = None,
        stale: bool = False,
    ) -> Place | None:
        """A place that fits, rather a recent one; one whose graph is freed only if `stale`."""
        stale = stale or (self.style.raising and self.rng.random() < 0.08)
        fitting = [
            place
            for place in self.places()
            if place.kind == kind
            and (shape is None or tuple(place.tensor.shape) == shape)
            and (rank is None or place.tensor.dim() == rank)
            and (grad is None or place.grad == grad)
            and (stale or not place.grad or not any(place.tensor is t for t in self.stale))
            and (not place.broken or self.style.raising)
        ]
        if not fitting:
            return None
        if self.rng.random() < 0.5:
            fitting = fitting[-3:]
        return self.rng.choice(fitting)

    def fresh(self, stem: str | None = None) -> str:
        """A name not used yet in this frame."""
        stem = stem or self.rng.choice(NAMES)
        if stem not in self.frame.space and stem not in RESERVED:
            return stem
        while True:
            self.serial += 1
            name = f"{stem}{self.serial}"
            if name not in self.frame.space:
                return name

    def target(self, value: torch.Tensor | None = None) -> str:
        """A name to bind: mostly new, sometimes one that is in use."""
        if self.rng.random() < 0.35:
            mine = [n for n in self.frame.names if isinstance(self.frame.space.get(n), torch.Tensor)]
            mine = [n for n in mine if value is None or self.keeps_shape(n, value)]
            if mine:
                return self.rng.choice(mine[-4:])
        return self.fresh()


NAMES = ("x", "y", "z", "h", "out", "feat", "hidden", "w", "scores", "logits", "probs", "state", "a", "b", "u", "v", "emb", "attn", "q", "k", "mu", "res", "tmp", "energy")  # fmt: skip
RESERVED = frozenset({"F", "nn", "torch"})


def _collect(text: str, value: Any, found: list[Place], depth: int = 0) -> None:
    if isinstance(value, torch.Tensor):
        found.append(Place.of(text, value))
    elif depth > 1:
        return
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value[:4]):
            _collect(f"{text}[{i}]", item, found, depth + 1)
    elif isinstance(value, dict):
        for key, item in list(value.items())[:4]:
            _collect(f"{text}[{key!r}]".replace("'", '"'), item, found, depth + 1)
    elif isinstance(value, SimpleNamespace):
        for key, item in vars(value).items():
            _collect(f"{text}.{key}", item, found, depth + 1)
