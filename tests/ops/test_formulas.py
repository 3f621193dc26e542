"""Torch's C++ formulas as a person reads them."""

import pytest

from gradguard.ops import table
from gradguard.ops.formulas import readable


@pytest.mark.parametrize(
    ("torch_says", "shown"),
    [
        ("grad * result.conj()", "grad * result.conj()"),
        ("grad.defined() ? f(grad, {1, 2}) : std::tuple<Tensor, Tensor>()", "f(grad, [1, 2])"),
        ("GradMode::is_enabled() ? twice(grad, input) : silu_backward(grad, input)", "silu_backward(grad, input)"),
        ("accumulate ? grad : grad.put(index, at::zeros(1), false)", "grad if accumulate else grad.put(index, zeros(1), False)"),
        ("-grad * self.div(other, /*rounding_mode=*/\"trunc\")", "-grad * self.div(other, rounding_mode=\"trunc\")"),
        ("elu_backward(grad, /* is_result */ true, result)", "elu_backward(grad, is_result=True, result)"),
        ("where(self != other, grad, 0)", "where(self != other, grad, 0)"),
        ("solve(LU, left, !adjoint)", "solve(LU, left, not adjoint)"),
        ("f(bias->sym_sizes(), x.sym_size(dim.back()))", "f(bias.shape, x.shape[dim[-1]])"),
        ("grad.defined() ? (training ? a(x) : b(x)) : c()", "a(x) if training else b(x)"),
    ],
)  # fmt: skip
def test_spelling(torch_says: str, shown: str) -> None:
    assert readable(torch_says) == shown


def test_brackets_stay_closed_in_every_formula_of_the_table() -> None:
    known = table.load("2.13")
    seen = 0
    for name in known.names():
        op = known.op(name)
        for _, formula in (pair for form in (op.forms if op else ()) for pair in form.formulas):
            shown = readable(formula)
            seen += 1
            assert all(shown.count(a) == shown.count(b) for a, b in ("()", "[]")), formula
            assert not any(cpp in shown for cpp in ("->", "/*", "grad.defined()")), formula
    assert seen > 1000


@pytest.mark.parametrize(
    "name",
    ["operator.mul", "operator.truediv", "torch.softmax", "Tensor.softmax", "torch.nn.functional.layer_norm", "torch.conv2d"],
)  # fmt: skip
def test_an_operation_made_of_one_other_has_its_formula(name: str) -> None:
    op = table.load("2.13").op(name)
    assert op is not None
    assert any("grad" in text for form in op.forms for _, text in form.formulas)
