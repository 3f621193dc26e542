"""The shipped table: found by every spelling, decoded lazily, consistent in itself, loaded without torch."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gradguard.ops import codec, shipped, table
from gradguard.ops.conditions import holds, parse, roles_in
from gradguard.ops.model import AliasKind, Form, Kind, ModuleRow, Op
from gradguard.ops.names import partners

TABLE = table.load()
OPS = [op for name in TABLE.names() if (op := TABLE.op(name)) is not None]
MODULES = [row for name in TABLE.names() if (row := TABLE.module(name)) is not None]
ALIAS_FACTS = {"contiguous", "same_dtype", "same_device", "same_shape", "viewable"}


def test_loading_imports_neither_torch_nor_numpy() -> None:
    code = (
        "import sys; from gradguard.ops import table; t = table.load(); t.op('torch.sin'); t.module('torch.nn.Linear');"
        "print([m for m in ('torch', 'torchgen', 'numpy', 'yaml') if m in sys.modules])"
    )
    server = Path(table.__file__).parents[2]
    out = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(server)},
    )
    assert out.stdout.strip() == "[]"


def test_rows_are_decoded_when_asked_for() -> None:
    fresh = table.Table("2.13", "", *table.rows_of("2.13"))
    assert not fresh._ops
    fresh.op("torch.sin")
    assert list(fresh._ops) == ["torch.sin"]


def test_the_shipped_data_is_small() -> None:
    folder = Path(table.__file__).parent / "data"
    assert sum(f.stat().st_size for f in folder.iterdir()) < 1_000_000


@pytest.mark.parametrize(
    "name",
    [
        "torch.sigmoid",
        "Tensor.sigmoid",
        "torch.special.expit",
        "torch.nn.functional.relu",
        "torch.linalg.norm",
        "torch.fft.fft",
        "operator.add",
        "operator.iadd",
        "Tensor.__getitem__",
        "Tensor.__setitem__",
        "Tensor.__radd__",
        "Tensor.__rtruediv__",
        "Tensor.exp_",
        "Tensor.T",
        "torch.nn.init.xavier_uniform_",
        "torch.optim.SGD.step",
        "torch.utils.checkpoint.checkpoint",
        "torch.autograd.grad",
        "torch.distributed.all_reduce",
    ],
)
def test_every_public_spelling_has_a_row(name: str) -> None:
    op = TABLE.op(name)
    assert op is not None
    assert op.name == name
    assert op.forms


@pytest.mark.parametrize(
    "name",
    [
        "Linear",
        "BatchNorm2d",
        "LSTM",
        "MultiheadAttention",
        "CrossEntropyLoss",
        "Dropout",
        "Sequential",
        "LayerNorm",
    ],
)
def test_classes_of_torch_nn_have_a_row(name: str) -> None:
    row = TABLE.module(f"torch.nn.{name}")
    assert row is not None
    assert row.forms or row.container


def test_a_name_that_torch_lacks_has_no_row() -> None:
    assert TABLE.op("torch.no_such_function") is None
    assert TABLE.module("torch.nn.NoSuchModule") is None


def test_methods_call_their_tensor_self_and_functions_input() -> None:
    function, method = TABLE.op("torch.sin"), TABLE.op("Tensor.sin")
    assert function is not None
    assert method is not None
    assert [p.name for p in function.forms[0].params] == ["input", "out"]
    assert [p.name for p in method.forms[0].params] == ["self"]
    assert function.forms[0].saves[0].role == "input"
    assert method.forms[0].saves[0].role == "self"


def test_in_place_partners_are_known() -> None:
    for name, inplace in (
        ("Tensor.add", "Tensor.add_"),
        ("operator.add", "operator.iadd"),
        ("torch.relu", "torch.relu_"),
    ):
        out_of_place, in_place = TABLE.op(name), TABLE.op(inplace)
        assert out_of_place is not None
        assert in_place is not None
        assert out_of_place.inplace == inplace
        assert in_place.inplace_of == name
    assert partners("Tensor.__and__", {"Tensor.__iand__"}) == ("Tensor.__iand__", "")
    assert partners("operator.iand", {"operator.and_"}) == ("", "operator.and_")


def _roles(op: Op | ModuleRow, form: Form) -> set[str]:
    roles = {p.name for p in form.params} | set(form.results)
    if isinstance(op, ModuleRow):
        roles |= {f"self.{n}" for n, _ in (*op.parameters, *op.buffers)}
    owner = TABLE.module(op.name.rpartition(".")[0])
    if owner is not None:
        roles |= {p.name for p in owner.init}
    if op.name.startswith(("torch.optim.", "torch.autograd.")) or op.name == "Tensor.backward":
        roles |= {"params", "params.grad", "leaves.grad"}
    return roles


@pytest.mark.parametrize("rows", [OPS, MODULES], ids=["ops", "modules"])
def test_every_row_speaks_only_of_its_own_roles(rows: list[Op | ModuleRow]) -> None:
    for row in rows:
        for form in row.forms:
            roles = _roles(row, form)
            spoken = {s.role.partition("[")[0] for s in form.saves} | set(form.scattered)
            spoken |= {w.role for w in form.writes} | set(form.differentiable)
            spoken |= (
                {a.of for a in form.aliases} | {a.result for a in form.aliases} | set(form.nondifferentiable)
            )
            assert spoken <= roles, (row.name, spoken - roles)


@pytest.mark.parametrize("rows", [OPS, MODULES], ids=["ops", "modules"])
def test_every_condition_can_be_read(rows: list[Op | ModuleRow]) -> None:
    for row in rows:
        for form in row.forms:
            conditions = [form.given, form.nodes, form.frees, form.reads, *(s.when for s in form.saves)]
            conditions += [a.when for a in form.aliases] + [w.when for w in form.writes]
            known = _roles(row, form) | ALIAS_FACTS
            for condition in conditions:
                for name in roles_in(condition):
                    of = re.sub(r"(\[\d\])?(\.(ndim|kind|dtype|contiguous|others))?$", "", name)
                    assert of in known or name.startswith("self."), (row.name, name)


def test_a_saving_op_frees_what_it_saved() -> None:
    for op in OPS:
        for form in op.forms:
            if any("*" in s.when for s in form.saves):
                assert form.frees, op.name


def test_list_results_are_told_as_one_role() -> None:
    for op in OPS:
        for form in op.forms:
            if form.list_result:
                assert form.results == ("result",), op.name


def test_rows_survive_encoding() -> None:
    for op in OPS:
        for form in op.forms:
            assert codec.decode_form(json.loads(json.dumps(codec.encode_form(form)))) == form
    for row in MODULES:
        assert codec.decode_module(json.loads(json.dumps(codec.encode_module(row)))) == row


def test_a_table_survives_writing_and_reading() -> None:
    some = OPS[::7]
    data = shipped.read(shipped.serialise(some, MODULES[:3], [["Tensor.add", "torch.add"]]), "test")
    rows = {name: line for names, line in data.rows for name in names}
    groups = {name: group for group in data.groups for name in group}
    again = table.Table("2.13", "", rows, groups)
    for op in some:
        found = again.op(op.name)
        assert found is not None
        assert found.forms == op.forms, op.name


def test_data_with_a_missing_row_is_refused_by_name() -> None:
    text = shipped.serialise(OPS[:3], [])
    with pytest.raises(ValueError, match=r"some\.jsonl: the index names \d+ rows"):
        shipped.read("\n".join(text.split("\n")[:-2]) + "\n", "some.jsonl")


@pytest.mark.parametrize("text", ["a b:tensor", "x:tensors:int", ""])
def test_a_parameter_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"parameter|Kind"):
        codec.decode_params([text])


def test_versions() -> None:
    newest = table.VERSIONS[-1]
    assert table.load("2.13.0+cpu").version == "2.13"
    assert table.load("2.13").note == ""
    assert table.load(None).version == newest
    later = table.load("9.1")
    assert later.version == newest
    assert "9.1" in later.note
    earlier = table.load("2.1")
    assert earlier.version == table.BASE_VERSION
    assert "older" in earlier.note
    with pytest.raises(ValueError, match="not a torch version: 'new'"):
        table.load("new")


def test_versions_differ_where_torch_does() -> None:
    old, new = table.load("2.13"), table.load("2.14")
    assert old.op("torch.linalg.polar") is None
    polar = new.op("torch.linalg.polar")
    assert polar is not None
    assert polar.since == "2.14"
    assert old.op("torch.qr") is not None
    assert new.op("torch.qr") is None
    before, after = old.op("torch.maximum"), new.op("torch.maximum")
    assert before is not None
    assert after is not None
    assert before.forms[0].formulas != after.forms[0].formulas
    assert before.forms[0].saves[0].when == after.forms[0].saves[0].when


def test_conditions_have_three_truth_values() -> None:
    facts = {"a": True, "b": False}

    def lookup(atom: object) -> bool | None:
        return facts.get(atom.name)  # type: ignore[attr-defined]

    assert holds(("*",), lookup) is True
    assert holds((), lookup) is False
    assert holds(("a & b",), lookup) is False
    assert holds(("a & c",), lookup) is None
    assert holds(("b & c",), lookup) is False
    assert holds(("b", "a"), lookup) is True
    assert holds(("a & ?",), lookup) is None
    assert [a.value for a in parse("p!=2 & mode='sum'")] == [2, "sum"]
    with pytest.raises(ValueError, match="not a literal"):
        parse("p=nonsense")


def test_kinds_of_index_are_separate_forms() -> None:
    op = TABLE.op("Tensor.__getitem__")
    assert op is not None
    kinds = [form.params[1].kind for form in op.forms]
    assert kinds == [Kind.SLICES, Kind.MASK, Kind.TENSOR, Kind.ANY]
    assert op.forms[0].aliases[0].kind is AliasKind.VIEW
    assert not op.forms[1].aliases
    assert op.forms[1].reads == ("*",)
