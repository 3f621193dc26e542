"""The page of an op: complete, readable, and its examples do what they say under torch."""

import pytest

from gradguard.ops import examples, listing, render, table
from gradguard.ops.model import Call, Form, Kind, Op, Param, Saved
from gradguard.ops.wording import all_of, grouped, words

TABLE = table.load("2.13")


def test_the_page_of_an_op_says_what_backward_needs_and_what_may_be_written() -> None:
    page = render.explain_op("torch.sigmoid", TABLE)
    assert page.startswith("# torch.sigmoid\n")
    assert "- `result`, always" in page
    assert "sigmoid_backward(grad, result)" in page
    assert "**Safe**: backward does not need `input`" in page
    assert "**Not safe**: backward still needs `result`" in page
    assert "`Tensor.sigmoid`" in page


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (("other",), "if `other` requires grad"),
        (("a", "b", "c"), "if `a`, `b` or `c` requires grad"),
        (("training=True",), "if `training=True`"),
        (("inplace!=True",), "if `inplace=False`"),
        (("weight!=None", "n=None"), "if `weight` is given or `n` is not given"),
        (("input.ndim=1 & other",), "if `input` has 1 dimension and `other` requires grad"),
        (("input.kind!='complex'",), "if `input` is not complex"),
        (("input.contiguous=True",), "if `input` is contiguous"),
        (("target.dtype='int64'",), "if `target` is of dtype `int64`"),
        (("hx[0]",), "if `hx[0]` requires grad"),
        (("tensors.others='all'",), "if every other tensor of `tensors` requires grad"),
        (("p!=2",), "if `p != 2`"),
        (("n=None", "?"), "if `n` is not given or sometimes (shapes or values decide)"),
        (("input & ?",), "sometimes if `input` requires grad (shapes or values decide)"),
    ],
)
def test_conditions_are_put_into_words(condition: tuple[str, ...], text: str) -> None:
    assert words(condition) == text


def test_many_parameters_of_a_module_stand_together() -> None:
    roles = [f"self.{n}_l{i}" for i in range(3) for n in ("weight_ih", "weight_hh")]
    assert all_of(["input", *roles]) == "`input`, 6 parameters (`weight_ih`, `weight_hh` of every layer)"
    assert words(("input", *roles)) == "if `input` or a parameter of it requires grad"
    assert grouped([("a", ("x",)), ("b", ()), ("c", ("x",))])[0] == ("`a`, `c`", ("x",))


def test_no_line_of_the_listing_is_a_wall_of_text() -> None:
    for line in listing.render_ops(TABLE):
        assert len(line.saves) < 1500, line.name


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


def test_a_page_without_an_example_of_either_sort_says_why() -> None:
    for name in TABLE.names():
        row = TABLE.op(name) or TABLE.module(name)
        assert row is not None
        if any(form.nodes for form in row.forms) and len(examples.examples(row)) < 2:
            assert examples.absence(row), name
            assert examples.absence(row) in render.explain_op(name, TABLE)


def test_the_table_of_ops_is_searched_by_part_or_pattern() -> None:
    assert [line.name for line in listing.render_ops(TABLE, "torch.sigmoid")] == [
        "torch.sigmoid",
        "torch.sigmoid_",
    ]
    lines = listing.render_ops(TABLE, "Tensor.exp?")
    assert "Tensor.exp_" in [line.name for line in lines]
    line = next(line for line in lines if line.name == "Tensor.exp_")
    assert line.saves == "`result`"
    assert line.writes == "`self`"
    assert line.formula == "self: grad * result.conj()"


def test_an_example_makes_its_tensors_where_the_call_says_how() -> None:
    form = Form(
        params=(Param("tensors", Kind.TENSORS), Param("dim", Kind.INT, "0")),
        differentiable=("tensors",),
        saves=(Saved("result", ("dim=0",)),),
    )
    made = "torch.rand(2, requires_grad=True) * 1"
    op = Op("torch.thing", forms=(form,), example=Call((f"[{made}, {made}]", "dim=0")))
    safe, unsafe = examples.examples(op)
    assert safe.code.splitlines()[2:5] == [
        f"a = {made}",
        f"b = {made}",
        "result = torch.thing([a, b], dim=0)",
    ]
    assert (safe.raises, unsafe.raises) == (False, True)
    assert "    result.zero_()" in unsafe.code


def test_every_example_does_what_it_says() -> None:
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    version = ".".join(torch.__version__.split(".")[:2])
    from tools.optable.generate_examples import BROKEN, runs

    known = table.load(version)
    found = 0
    for name in known.names():
        row = known.op(name) or known.module(name)
        for example in examples.examples(row) if row is not None else ():
            found += 1
            assert runs(example.code) == (BROKEN if example.raises else ""), f"{name}\n{example.code}"
    assert found > 1500
