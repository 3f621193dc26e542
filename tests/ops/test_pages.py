"""The page of an op: complete, readable, and its examples do what they say under torch."""

import random
import secrets

import pytest

from gradguard.ops import render, table

TABLE = table.load("2.13")
SEED = secrets.randbelow(2**31)


def test_the_page_of_an_op_says_what_backward_needs_and_what_may_be_written() -> None:
    page = render.explain_op("torch.sigmoid", TABLE)
    assert page.startswith("# torch.sigmoid\n")
    assert "- `result`, always" in page
    assert "sigmoid_backward(grad, result)" in page
    assert "**Safe**: backward does not need `input`" in page
    assert "**Not safe**: backward still needs `result`" in page
    assert "`Tensor.sigmoid`" in page


def test_conditions_are_put_into_words() -> None:
    page = render.explain_op("torch.mul", TABLE)
    assert "`input`, if `other` requires grad" in page
    assert render.words(("p!=2 & training=True", "?")) == (
        "if `p != 2` and `training == True` or in some cases (depends on shapes or values)"
    )


def test_the_page_of_a_container_and_of_a_view() -> None:
    assert "what its children record" in render.explain_op("torch.nn.Sequential", TABLE)
    assert "`result` shares memory with `self`" in render.explain_op("Tensor.t", TABLE)
    assert "one of several views" in render.explain_op("Tensor.unbind", TABLE)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(KeyError, match=r"torch\.nothing"):
        render.explain_op("torch.nothing", TABLE)


def test_every_name_has_a_page() -> None:
    for name in TABLE.names():
        assert render.explain_op(name, TABLE).startswith(f"# {name}\n")


def test_the_table_of_ops_is_searched_by_part_or_pattern() -> None:
    assert [line.name for line in render.render_ops(TABLE, "torch.sigmoid")] == [
        "torch.sigmoid",
        "torch.sigmoid_",
    ]
    lines = render.render_ops(TABLE, "Tensor.exp?")
    assert "Tensor.exp_" in [line.name for line in lines]
    line = next(line for line in lines if line.name == "Tensor.exp_")
    assert line.saves == "`result`"
    assert line.writes == "`self`"
    assert line.formula == "self: grad * result.conj()"


def test_examples_do_what_they_say() -> None:
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    from gradguard.ops.generate_examples import runs

    chooser = random.Random(SEED)
    found = [
        (name, example)
        for name in TABLE.names()
        if (row := TABLE.op(name) or TABLE.module(name)) is not None
        for example in render.examples(row)
    ]
    assert len(found) > 800
    for name, example in chooser.sample(found, 120):
        outcome = runs(example.code)
        expected = "modified by an inplace operation" if example.raises else ""
        assert outcome == expected, f"seed {SEED}: {name}\n{example.code}"
