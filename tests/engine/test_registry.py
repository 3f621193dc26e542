"""Models are registered once."""

from __future__ import annotations

import pytest

from gradguard.engine.models.library import REGISTRY
from gradguard.engine.models.registry import Registry


def nothing(*_: object) -> None:
    """A model of something that gives None."""


def test_a_second_model_of_one_name_is_an_error() -> None:
    one = Registry()
    one.torch_function("torch.erf", "torch.erfc")(nothing)
    with pytest.raises(ValueError, match=r"two models of torch\.erf$"):
        one.torch_function("torch.erf")(nothing)
    with pytest.raises(ValueError, match=r"two models of torch\.erf, torch\.erfc"):
        Registry.of((one, one))


def test_methods_are_told_apart_by_their_class() -> None:
    one = Registry()
    one.methods_of("Module", {"to": nothing})
    one.methods_of("Optimizer", {"to": nothing})
    assert set(one.methods) == {"Module.to", "Optimizer.to"}


def test_the_engine_knows_models_of_every_kind() -> None:
    assert {"torch.tensor", "torch.utils.checkpoint.checkpoint"} <= REGISTRY.torch.keys()
    assert "builtins.len" in REGISTRY.external
    assert {"Module.parameters", "Optimizer.step"} <= REGISTRY.methods.keys()
