"""Where an object's attribute is found among its classes, and which of torch's classes it derives from."""

from __future__ import annotations

import pytest

from gradguard.engine.domain.classes import class_lookup, is_subclass, kind_of, linear
from gradguard.engine.domain.values import ClassV, External, Instance, TorchName, Value

MODULE, OPTIMIZER = "torch.nn.Module", "torch.optim.Optimizer"


def diamond() -> dict[str, ClassV]:
    """Four classes as the engine holds them, and as Python made them where it is asked."""
    top = ClassV("Top", [], {"name": "Top", "only": "Top"})
    left, right = ClassV("Left", [top], {}), ClassV("Right", [top], {"name": "Right"})
    return {one.name: one for one in (top, left, right, ClassV("Bottom", [left, right], {}))}


def test_the_lookup_order_of_a_diamond_is_that_of_python() -> None:
    names: dict[str, type] = {}
    exec(
        "class Top: pass\nclass Left(Top): pass\nclass Right(Top): pass\nclass Bottom(Left, Right): pass",
        names,
    )
    order = [one.name for one in linear(diamond()["Bottom"]) if isinstance(one, ClassV)]
    assert order == [one.__name__ for one in names["Bottom"].__mro__[:-1]]


def test_an_attribute_is_that_of_the_first_class_that_has_it() -> None:
    bottom = diamond()["Bottom"]
    assert [class_lookup(bottom, name) for name in ("name", "only", "other")] == ["Right", "Top", None]


def test_a_class_that_is_its_own_base_has_an_end() -> None:
    odd = ClassV("Odd", [], {})
    odd.bases.append(odd)
    assert linear(odd) == (odd,)


@pytest.mark.parametrize(
    ("base", "path", "derives"),
    [
        (TorchName(MODULE), MODULE, True),
        (TorchName("torch.nn.Linear"), MODULE, True),
        (External("lightning.LightningModule"), MODULE, True),
        (External("somewhere.Thing"), MODULE, False),
        (TorchName("torch.optim.SGD"), OPTIMIZER, True),
        (TorchName("torch.optim.lr_scheduler.StepLR"), OPTIMIZER, False),
    ],
)
def test_a_class_derives_from_what_its_bases_derive_from(base: Value, path: str, derives: bool) -> None:
    middle = ClassV("Middle", [base], {})
    own = ClassV("Own", [middle], {})
    assert is_subclass(own, path) is derives
    assert (kind_of(Instance(own)) == path.rpartition(".")[2]) is derives
