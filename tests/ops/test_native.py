"""What torch's own code generator says: guards, copies, overload order, parameter names."""

import subprocess
import sys
from functools import lru_cache

import pytest

pytest.importorskip("torchgen")

from gradguard.ops.model import ALWAYS, NEVER, Kind
from tools.optable import generate_native
from tools.optable.generate_native import NativeForm, python_default


@lru_cache(maxsize=1)
def native() -> dict[str, list[NativeForm]]:
    return generate_native.load()


def test_it_needs_no_torch() -> None:
    code = "import sys; import tools.optable.generate_native as g; g.load(); print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


def test_a_save_is_guarded_by_the_gradient_that_uses_it() -> None:
    form = native()["torch.mul"][0].form
    assert {s.role: s.when for s in form.saves} == {"input": ("other",), "other": ("input",)}
    assert set(form.frees) == {"input", "other"}


def test_a_formula_for_several_arguments_is_not_guarded() -> None:
    form = native()["torch.convolution"][0].form
    assert {s.role: s.when for s in form.saves} == {"input": ALWAYS, "weight": ALWAYS}


def test_in_place_forms_keep_a_copy_of_what_they_overwrite() -> None:
    assert native()["Tensor.sin_"][0].form.saves == ()
    assert native()["Tensor.sin_"][0].form.frees == ALWAYS
    assert [s.role for s in native()["Tensor.exp_"][0].form.saves] == ["result"]


def test_overloads_stand_in_the_order_of_the_argument_parser() -> None:
    kinds = [[p.kind for p in f.form.params if p.name != "out"] for f in native()["torch.max"]]
    assert kinds == [[Kind.TENSOR], [Kind.TENSOR, Kind.TENSOR], [Kind.TENSOR, Kind.INT, Kind.BOOL]]


def test_several_results_and_their_names() -> None:
    form = native()["torch.max"][2].form
    assert form.results == ("result0", "result1")
    assert form.field_names == ("values", "indices")
    assert form.nondifferentiable == ("result1",)
    assert [s.role for s in form.saves] == ["result1"]


def test_integers_and_comparisons_record_nothing() -> None:
    for name in ("torch.argmax", "torch.eq", "torch.isnan", "torch.zeros"):
        assert all(f.form.nodes == NEVER for f in native()[name]), name


def test_composite_functions_say_so() -> None:
    assert native()["torch.matmul"][0].composite
    assert not native()["torch.bmm"][0].composite


def test_a_node_without_a_formula_is_told() -> None:
    form = native()["torch.heaviside"][0].form
    assert form.nodes == ALWAYS
    assert {text for _, text in form.formulas} == {generate_native.NOT_IMPLEMENTED}


@pytest.mark.parametrize(
    ("text", "python"),
    [("nullptr", "None"), ("true", "True"), ("{0,1}", "[0, 1]"), ("1e-05", "1e-05"), ('"none"', "'none'"),
     ("at::Reduction::Mean", "0"), ("::std::nullopt", "None"), ("c10::Whatever", "None")],
)  # fmt: skip
def test_defaults_are_python(text: str, python: str) -> None:
    assert python_default(text) == python
