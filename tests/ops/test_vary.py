"""Calls varied so that what they keep can be told apart by what decides it."""

import contextlib
import random
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from gradguard.ops.model import ALWAYS, Form, Kind, Param  # noqa: E402
from tools.optable import generate, observe_vary  # noqa: E402
from tools.optable.observe import Refused, scene_of  # noqa: E402
from tools.optable.observe_bind import caller  # noqa: E402
from tools.optable.observe_rows import compared, learn_form  # noqa: E402
from tools.optable.observe_watch import Watched, watch_crossed, watch_scene  # noqa: E402

FORM = Form(
    params=(
        Param("x", Kind.TENSOR),
        Param("n", Kind.INT, "None", optional=True),
        Param("norm", Kind.STR, "None", optional=True),
    )
)


def pads(x: Any, n: int | None = None, norm: str | None = None) -> Any:
    """Keeps its argument, unless `n` makes it longer and a padded copy is kept; `norm` has no say in it."""
    if n is not None and n > x.shape[-1]:
        x = torch.nn.functional.pad(x, (0, n - x.shape[-1]))
    return x.sin() * (1 if norm is None else 2)


def watched(calls: list[dict[str, Any]]) -> list[Watched]:
    call = caller(pads, FORM)
    out = []
    for values in calls:
        with contextlib.suppress(Refused):
            out.append(watch_scene(scene_of(call, values), values))
    return out


def together() -> list[dict[str, Any]]:
    """Samples as a test suite has them: `n` and `norm` are given together, and `n` always pads."""
    return [{"x": torch.rand(4)}, {"x": torch.rand(4), "n": 6, "norm": "ortho"}]


def test_samples_that_vary_two_arguments_together_do_not_tell_which_decides() -> None:
    assert learn_form(FORM, watched(together()), native=False).forms[0].saves[0].when in (
        ("n=None",),
        ("norm=None",),
    )


def test_one_argument_at_a_time_and_combinations_tell_which_decides() -> None:
    base = watched(together())
    pool = observe_vary.pool(FORM, [w.values for w in base])
    varied = [v for w in base for v in observe_vary.one_at_a_time(FORM, w.values, pool)]
    calls = [*base, *watched(varied)]
    first = learn_form(FORM, calls, native=False).forms[0]
    crossed = watch_crossed(pads, FORM, [*compared(first), "norm"], calls)
    (saved,) = learn_form(FORM, [*calls, *crossed], native=False).forms[0].saves
    assert [clause for clause in saved.when if not clause.endswith("?")] == ["n=None"]
    assert any(clause.endswith("?") for clause in saved.when)


def test_combinations_of_what_a_condition_compares_refute_it() -> None:
    base = watched(together())
    first = learn_form(FORM, base, native=False).forms[0]
    more = watch_crossed(pads, FORM, compared(first), base)
    again = learn_form(FORM, [*base, *more], native=False).forms[0]
    assert first.saves[0].when != again.saves[0].when


def test_each_variation_changes_one_argument() -> None:
    form = Form(
        params=(
            Param("input", Kind.TENSOR),
            Param("weight", Kind.TENSOR, "None", optional=True),
            Param("size", Kind.INTS, "None", optional=True),
            Param("flag", Kind.BOOL, "False"),
        )
    )
    values = {"input": torch.rand(2, 3), "weight": torch.rand(3)}
    pool = observe_vary.pool(form, [values, {**values, "size": [1, 2]}])
    changed = list(observe_vary.one_at_a_time(form, values, pool))
    for call in changed:
        names = [n for n in {*call, *values} if not same(call.get(n), values.get(n))]
        dtypes = {t.dtype for t in call.values() if isinstance(t, torch.Tensor)}
        assert len(names) == 1 or len(dtypes) == 1, call
    assert any("weight" not in call for call in changed)
    assert any(call.get("flag") is True for call in changed)
    assert {1, 2, 3} <= {call["size"][0] for call in changed if call.get("size")}
    assert any(call["input"].is_complex() for call in changed)
    assert any(not call["input"].is_contiguous() for call in changed)
    assert any(call["input"].shape == (1, 3) for call in changed)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride()
    return a is b


def test_sizes_are_tried_shorter_equal_and_longer() -> None:
    pool = observe_vary.pool(FORM, [{"x": torch.rand(4)}])
    tried = {v.get("n") for v in observe_vary.one_at_a_time(FORM, {"x": torch.rand(4)}, pool)}
    assert tried >= {3, 4, 5}


def test_crossing_tries_every_pair() -> None:
    pool = {"n": [None, 3, 6], "norm": [None, "ortho"]}
    calls = list(observe_vary.crossed(FORM, ["n", "norm"], {"x": torch.rand(4)}, pool, random.Random(0)))
    pairs = {(c.get("n"), c.get("norm")) for c in calls}
    assert {(6, "ortho"), (6, None), (None, "ortho"), (3, "ortho")} <= pairs
    assert len(calls) <= observe_vary.CROSSED


def test_what_is_left_unvaried_exists_and_says_why() -> None:
    for name, why in observe_vary.UNSAFE.items():
        assert name in generate.callables()
        assert len(why) > 10


def test_a_condition_that_nothing_contradicts_stays() -> None:
    (saved,) = learn_form(FORM, watched([{"x": torch.rand(4)}]), native=False).forms[0].saves
    assert saved.when == ALWAYS
