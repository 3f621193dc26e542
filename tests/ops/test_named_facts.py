"""What people trip over, named one by one: after these calls, writing the result or the input breaks backward, or not.

The lists were measured by hand, one program each; the table was learned otherwise, so they check each other.
"""

import pytest

from gradguard.ops import table
from gradguard.ops.conditions import Atom, holds
from gradguard.ops.model import ALWAYS, AliasKind, Form, Op

TABLE = table.load("2.13")
F = "torch.nn.functional."

RESULT_NEEDED = [
    F + "relu", "Tensor.relu_", F + "leaky_relu_", "torch.sigmoid", "torch.tanh", "torch.exp", F + "softmax",
    F + "softmin", F + "log_softmax", "torch.logsumexp", "torch.sqrt", "torch.rsqrt", "torch.reciprocal", "torch.norm",
    "torch.std", "torch.cdist", "torch.prod", "Tensor.exp_", "Tensor.sigmoid_", "Tensor.sqrt_",
]  # fmt: skip
RESULT_FREE = [
    "torch.add", "torch.sub", F + "linear", F + "conv1d", F + "batch_norm", F + "layer_norm", F + "group_norm",
    "torch.log", F + "gelu", F + "silu", F + "selu", F + "elu", F + "mish", F + "softplus", F + "logsigmoid",
    F + "leaky_relu", F + "relu6", F + "hardtanh", F + "hardswish", "torch.abs", "torch.clamp", F + "dropout",
    "torch.cat", "torch.mean", "torch.sum", "torch.var", F + "max_pool1d", "torch.cumsum", F + "embedding",
    F + "normalize", "torch.matmul", "torch.bmm", "torch.gather", "torch.where", "torch.sin", F + "glu", "Tensor.sin_",
]  # fmt: skip
INPUT_NEEDED = [
    F + "linear", F + "conv1d", F + "conv2d", F + "batch_norm", F + "layer_norm", F + "group_norm", "torch.log",
    "torch.sin", "torch.abs", "torch.clamp", F + "gelu", F + "silu", F + "elu", F + "selu", F + "mish", F + "softplus",
    F + "logsigmoid", F + "glu", F + "leaky_relu", F + "relu6", F + "hardtanh", F + "hardswish", "torch.norm",
    F + "normalize", "torch.logsumexp", "torch.std", "torch.var", "torch.prod", F + "max_pool1d",
    "torch.gather",
]  # fmt: skip
INPUT_FREE = [
    "torch.add", "torch.sub", F + "relu", "torch.sigmoid", "torch.tanh", "torch.exp", F + "softmax", F + "log_softmax",
    "torch.reciprocal", F + "dropout", "torch.cat", "torch.mean", "torch.sum", "torch.cumsum", "torch.where",
]  # fmt: skip
LOSSES_KEEPING_THE_PREDICTION = [
    "mse_loss",
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy_with_logits",
]
LOSSES_KEEPING_NOTHING_OF_IT = ["l1_loss", "cross_entropy", "triplet_margin_loss"]


def op(name: str) -> Op:
    found = TABLE.op(name)
    assert found is not None, name
    return found


def truth(form: Form, role: str, *, defaults: bool = True) -> bool | None:
    """Whether the role is saved when every argument requires grad and the rest has its default."""
    saved = next((s for s in form.saves if s.role == role), None)
    if saved is None:
        return False
    params = {p.name: p for p in form.params}

    def lookup(atom: Atom) -> bool | None:
        if not atom.relation:
            return True
        if atom.relation == "!":
            return False
        if atom.name in params and params[atom.name].default is not None:
            same = params[atom.name].default == repr(atom.value)
            return same if atom.relation == "=" else not same
        if atom.name.endswith(".contiguous"):
            return atom.relation == "="
        if atom.name.endswith(".ndim"):
            return (atom.value == 3) == (atom.relation == "=")
        return None

    return holds(saved.when, lookup)


def first(name: str) -> str:
    form = op(name).forms[0]
    return next(
        p.name for p in form.params if p.name in ("input", "self", "x1", "tensors", "tensor", "condition")
    )


def result_role(form: Form) -> str:
    return form.results[0]


@pytest.mark.parametrize("name", RESULT_NEEDED)
def test_backward_needs_the_result(name: str) -> None:
    form = op(name).forms[0]
    assert truth(form, result_role(form)) is True


@pytest.mark.parametrize("name", RESULT_FREE)
def test_backward_does_not_need_the_result(name: str) -> None:
    form = next((f for f in op(name).forms if f.results == ("result",)), op(name).forms[0])
    assert truth(form, result_role(form)) is False


@pytest.mark.parametrize("name", INPUT_NEEDED)
def test_backward_needs_the_input(name: str) -> None:
    assert truth(op(name).forms[0], first(name)) is True


@pytest.mark.parametrize("name", INPUT_FREE)
def test_backward_does_not_need_the_input(name: str) -> None:
    assert truth(op(name).forms[0], first(name)) is False


@pytest.mark.parametrize("name", LOSSES_KEEPING_THE_PREDICTION)
def test_losses_that_keep_the_prediction(name: str) -> None:
    assert truth(op(F + name).forms[0], "input") is True


@pytest.mark.parametrize("name", LOSSES_KEEPING_NOTHING_OF_IT)
def test_losses_that_do_not_keep_the_prediction(name: str) -> None:
    form = op(F + name).forms[0]
    assert truth(form, form.params[0].name) is False


def test_targets_and_indices_are_kept() -> None:
    for name, role in (
        (F + "cross_entropy", "target"),
        (F + "nll_loss", "target"),
        (F + "embedding", "input"),
        ("torch.gather", "index"),
        ("torch.index_select", "index"),
        ("torch.masked_fill", "mask"),
        ("torch.where", "condition"),
    ):
        forms = [f for f in op(name).forms if any(p.name == role for p in f.params) and f.differentiable]
        assert truth(forms[0], role) is True, name


def test_multiplication_keeps_what_the_other_operand_needs() -> None:
    form = op("torch.mul").forms[0]
    assert {s.role: s.when for s in form.saves} == {"input": ("other",), "other": ("input",)}
    number = op("torch.mul").forms[1]
    assert not number.saves
    assert number.frees == ALWAYS


def test_in_place_multiplication_keeps_a_copy_of_what_it_overwrites() -> None:
    form = op("Tensor.mul_").forms[0]
    assert [s.role for s in form.saves] == ["other"]


def test_division_of_a_number_keeps_its_reciprocal_not_the_argument() -> None:
    number = op("Tensor.__rtruediv__").forms[1]
    assert not number.saves
    assert number.frees == ALWAYS


def test_the_largest_keeps_what_it_needs() -> None:
    forms = {len(f.params): f for f in op("Tensor.max").forms if f.params[-1].name != "other"}
    assert {s.role for s in op("Tensor.max").forms[0].saves} == {"self", "result"}
    by_dim = next(f for f in forms.values() if f.results == ("result0", "result1"))
    assert [s.role for s in by_dim.saves] == ["result1"]
    assert by_dim.field_names == ("values", "indices")
    assert by_dim.nondifferentiable == ("result1",)


def test_a_second_backward() -> None:
    for name in ("torch.sum", "torch.add", "Tensor.view", "Tensor.t", "torch.cat"):
        assert op(name).forms[0].frees == (), name
    for name in ("torch.exp", "torch.sin", "torch.prod"):
        assert op(name).forms[0].frees == ALWAYS, name


def test_views() -> None:
    for name in (
        "Tensor.view",
        "Tensor.t",
        "Tensor.squeeze",
        "Tensor.unsqueeze",
        "Tensor.select",
        "Tensor.narrow",
    ):
        aliases = op(name).forms[0].aliases
        assert [a.kind for a in aliases] == [AliasKind.VIEW], name
    for name in ("Tensor.split", "Tensor.chunk", "Tensor.unbind"):
        assert all(a.multi for a in op(name).forms[0].aliases), name
        assert op(name).forms[0].list_result, name
    assert op("Tensor.expand").forms[0].aliases[0].expands
    assert not any(a.of == "self" for a in op("Tensor.clone").forms[0].aliases)


def test_may_be_views() -> None:
    reshape = op("Tensor.reshape").forms[0].aliases[0]
    assert (reshape.kind, reshape.when) == (AliasKind.MAYBE, ("viewable",))
    contiguous = op("Tensor.contiguous").forms[0].aliases[0]
    assert (contiguous.kind, contiguous.when) == (AliasKind.SAME, ("contiguous",))
    for name in ("Tensor.float", "Tensor.double", "Tensor.type_as"):
        same = op(name).forms[0].aliases[0]
        assert (same.kind, same.when) == (AliasKind.SAME, ("same_dtype",)), name


def test_dropout_hands_its_argument_back_in_evaluation() -> None:
    form = op(F + "dropout").forms[0]
    same = next(a for a in form.aliases if a.kind is AliasKind.SAME)
    assert any("training" in clause for clause in same.when)
    assert form.writes[0].role == "input"
    assert "inplace=True" in form.writes[0].when[0]


def test_running_statistics_are_written_unseen() -> None:
    form = op(F + "batch_norm").forms[0]
    written = {w.role: w for w in form.writes}
    assert set(written) == {"running_mean", "running_var"}
    assert not any(w.counted for w in form.writes)
    assert all("training=True" in w.when[0] for w in form.writes)


def test_a_fused_optimizer_writes_unseen() -> None:
    writes = op("torch.optim.Adam.step").forms[0].writes
    assert [(w.counted, w.when) for w in writes] == [(True, ("fused!=True",)), (False, ("fused=True",))]
    assert [w.counted for w in op("torch.optim.RMSprop.step").forms[0].writes] == [True]


def test_host_reads() -> None:
    for name in (
        "Tensor.item",
        "Tensor.nonzero",
        "Tensor.__bool__",
        "Tensor.__float__",
        "Tensor.tolist",
        "Tensor.cpu",
    ):
        assert op(name).forms[0].reads, name
    for name in ("Tensor.sum", "torch.where", "Tensor.view"):
        forms = [f for f in op(name).forms if len(f.params) != 1 or name != "torch.where"]
        assert not forms[-1].reads, name


def test_linear_keeps_weight_only_for_the_input_and_a_transposed_input_as_a_copy() -> None:
    row = TABLE.module("torch.nn.Linear")
    assert row is not None
    saves = {s.role: s.when for s in row.forms[0].saves}
    kept = ("self.weight & input.contiguous=True", "self.weight & input.ndim=2")
    assert saves == {"input": kept, "self.weight": ("input",)}
    assert dict(row.parameters) == {"weight": ALWAYS, "bias": ("bias=True",)}


def test_batch_norm_module_counts_only_its_counter() -> None:
    row = TABLE.module("torch.nn.BatchNorm1d")
    assert row is not None
    counted = {w.role: w.counted for w in row.forms[0].writes}
    assert counted == {
        "self.running_mean": False,
        "self.running_var": False,
        "self.num_batches_tracked": True,
    }


def test_an_embedding_with_max_norm_writes_its_weight() -> None:
    row = TABLE.module("torch.nn.Embedding")
    assert row is not None
    assert [(w.role, w.when, w.counted) for w in row.forms[0].writes] == [
        ("self.weight", ("self.max_norm!=None",), True)
    ]
