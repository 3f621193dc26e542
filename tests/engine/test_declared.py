"""An argument that an annotation declares a plain value keeps all that was noted of it."""

from __future__ import annotations

import ast

from gradguard.engine.domain.values import NOTED, Sym
from gradguard.engine.python.symbolic import declared


def test_what_a_declared_argument_says_of_gradients_stays() -> None:
    """`needs: bool` of `f(x.requires_grad)` asks for a gradient of `x` wherever it holds."""
    unknown = Sym(("a", 1))
    flag = Sym(("a", 1, "attr", "requires_grad"))
    flag.trains, flag.owner, flag.name = unknown, unknown, "requires_grad"
    inside = declared(flag, ast.Name("bool"))
    assert isinstance(inside, Sym)
    assert (inside.kind, flag.kind) == ("bool", "any")
    assert inside.trains is unknown
    assert all(getattr(inside, name) is getattr(flag, name) for name in NOTED)


def test_nothing_noted_is_left_once_it_is_forgotten() -> None:
    value = Sym(("a", 1))
    value.attributes["shape"], value.called, value.counted = 3, True, True
    value.forget()
    assert all(getattr(value, name) == getattr(Sym(value.key), name) for name in NOTED)
