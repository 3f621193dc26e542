"""Where models are registered: each under the full name of what it stands for.

A file of models has a registry of its own, and `library` adds them up; a name that has two models is an error there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.values import Frame, Instance, Value
from gradguard.engine.state.run import Run

Handler = Callable[[Run, Frame, Call, ast.AST], Value]
Method = Callable[[Run, Frame, Instance, Call, ast.AST], Value]

_H = TypeVar("_H")


class Registry:
    """Models of callables of torch, of other libraries, and of methods of torch's own classes."""

    def __init__(self) -> None:
        self.torch: dict[str, Handler] = {}
        """By path: `torch.nn.utils.clip_grad_norm_`."""
        self.external: dict[str, Handler] = {}
        """By path; of builtins, as `builtins.len`."""
        self.methods: dict[str, Method] = {}
        """By class and name: `Module.parameters`, `Optimizer.step`."""

    def torch_function(self, *paths: str) -> Callable[[Handler], Handler]:
        """The decorated function is the model of these callables of torch. Raises ValueError where one has a model."""
        return _entering(self.torch, paths)

    def external_function(self, *paths: str) -> Callable[[Handler], Handler]:
        """The same for callables of other libraries and for builtins."""
        return _entering(self.external, paths)

    def methods_of(self, cls: str, handlers: Mapping[str, Method]) -> None:
        """Models of a class's methods, by name. Raises ValueError where one has a model."""
        _enter(self.methods, {f"{cls}.{name}": handler for name, handler in handlers.items()})

    @classmethod
    def of(cls, parts: Iterable[Registry]) -> Registry:
        """All models of several. Raises ValueError where a name has two."""
        whole = cls()
        for part in parts:
            _enter(whole.torch, part.torch)
            _enter(whole.external, part.external)
            _enter(whole.methods, part.methods)
        return whole


def _entering(known: dict[str, Handler], paths: tuple[str, ...]) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        _enter(known, dict.fromkeys(paths, handler))
        return handler

    return register


def _enter(known: dict[str, _H], more: Mapping[str, _H]) -> None:
    twice = known.keys() & more.keys()
    if twice:
        raise ValueError(f"two models of {', '.join(sorted(twice))}")
    known.update(more)
