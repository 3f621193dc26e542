"""The corrections file: every entry has a reason, applies, and is right as far as torch can show it here."""

import json
import warnings
from pathlib import Path

import pytest

from gradguard.ops import table
from gradguard.ops.model import AliasKind, Form, Kind, Op, Param
from tools.optable import generate_corrections
from tools.optable.generate_corrections import (
    Addition,
    Change,
    Corrections,
    Resolved,
    apply,
    load,
    unresolved,
)

TABLE = table.load("2.13")
CORRECTIONS = load()


def test_every_entry_says_why() -> None:
    entries = [*CORRECTIONS.resolved, *CORRECTIONS.changes, *CORRECTIONS.additions]
    assert entries
    for entry in entries:
        assert len(entry.reason) > 30, entry


def test_every_change_is_in_the_shipped_data() -> None:
    for change in CORRECTIONS.changes:
        for name in change.names:
            op = TABLE.op(name) or TABLE.module(name)
            assert op is not None
            positions = range(len(op.forms)) if change.forms is None else change.forms
            assert all(op.forms[i].source == "corrected" for i in positions), name
    for addition in CORRECTIONS.additions:
        op = TABLE.op(addition.name)
        assert op is not None
        assert op.forms[0].unobserved == addition.reason


def test_a_tensor_on_the_same_device_is_handed_back() -> None:
    torch = pytest.importorskip("torch")
    x = torch.rand(3)
    assert x.cpu() is x
    alias = TABLE.op("Tensor.cpu").forms[0].aliases[0]  # type: ignore[union-attr]
    assert (alias.kind, alias.when) == (AliasKind.SAME, ("same_device",))
    assert x.to("meta") is not x


def test_values_leave_torch_without_an_operation() -> None:
    torch = pytest.importorskip("torch")
    from tools.optable.observe import reads_back, scene_of

    x = torch.rand(3)
    for name in ("numpy", "tolist"):
        assert not reads_back(scene_of(lambda v, name=name: getattr(v["x"], name)(), {"x": x}))
        assert TABLE.op(f"Tensor.{name}").forms[0].reads == ("*",)  # type: ignore[union-attr]


def test_a_copy_with_a_complex_result_is_not_differentiated() -> None:
    torch = pytest.importorskip("torch")
    x = torch.rand(3, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match="does not support automatic differentiation"):
        torch.view_as_complex_copy(x * 1)


def test_the_values_of_a_sparse_tensor_share_its_version_counter() -> None:
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sparse = torch.eye(3).to_sparse().coalesce()
    values = sparse.values()
    before = sparse._version
    values.zero_()
    assert sparse._version > before


def _op(name: str) -> Op:
    return Op(name, forms=(Form(params=(Param("self", Kind.TENSOR),)),))


def test_a_disagreement_without_an_entry_and_an_idle_entry_are_told() -> None:
    corrections = Corrections(
        (Resolved("Tensor.a*", "saves", "because"), Resolved("torch.b", "writes", "so")), (), ()
    )
    told, idle = unresolved([("Tensor.abs", "saves result: ..."), ("torch.c", "frees: ...")], corrections)
    assert told == ["torch.c: frees: ..."]
    assert idle == ["torch.b: writes"]


def test_changes_and_additions_are_made() -> None:
    corrections = Corrections(
        (),
        (Change(("Tensor.a",), None, {"reads": ["*"]}, "because"),),
        (Addition("Tensor.b", "Tensor.a", "as a does"),),
    )
    made = {op.name: op for op in apply([_op("Tensor.a")], [], corrections)[0]}
    assert made["Tensor.a"].forms[0].reads == ("*",)
    assert made["Tensor.a"].forms[0].source == "corrected"
    assert made["Tensor.b"].forms[0].reads == ("*",)
    assert made["Tensor.b"].forms[0].unobserved == "as a does"


def test_a_change_of_what_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no row 'Tensor\.gone'"):
        apply([], [], Corrections((), (Change(("Tensor.gone",), None, {}, "x"),), ()))
    with pytest.raises(ValueError, match=r"cannot add 'Tensor\.b'"):
        apply([], [], Corrections((), (), (Addition("Tensor.b", "Tensor.gone", "x"),)))


@pytest.mark.parametrize("part", ["disagreements", "changes", "additions"])
def test_a_wrong_entry_is_named(part: str, tmp_path: Path) -> None:
    raw = json.loads(generate_corrections.FILE.read_text("utf-8"))
    raw[part].append({"names": "x"})
    path = tmp_path / "corrections.json"
    path.write_text(json.dumps(raw), "utf-8")
    with pytest.raises(ValueError, match=rf"corrections\.json: {part}\[\d+\]: expected"):
        load(path)
