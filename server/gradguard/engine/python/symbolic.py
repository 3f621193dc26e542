"""Symbolic arguments for functions that nobody calls: defaults stand for themselves, annotations tell the rest."""

from __future__ import annotations

import ast

from gradguard.engine.domain import classes
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.keys import SETTING, Key
from gradguard.engine.domain.values import FunctionV, ListV, Sym, TupleV, Value
from gradguard.engine.state.coerce import as_tensor
from gradguard.engine.state.run import Run


def arguments(run: Run, function: FunctionV, call: Call) -> None:
    """Fill a call with symbolic arguments for what is not given yet."""
    run.arguments_likely = trains(function)
    arguments = function.node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    for parameter in positional[len(call.args) :]:
        call.args.append(_argument(run, function, parameter))
        call.exprs.append(None)
    for parameter in arguments.kwonlyargs:
        call.kwargs[parameter.arg] = _argument(run, function, parameter)
    if arguments.vararg is not None or arguments.kwarg is not None:
        # The caller may give any number of further ones.
        call.open_args = True


def _argument(run: Run, function: FunctionV, parameter: ast.arg) -> Value:
    default = function.defaults.get(parameter.arg)
    if isinstance(default, (bool, int, float, str)) or (
        parameter.arg in function.defaults and default is not None
    ):
        return default
    kind = annotated(parameter.annotation)
    if kind.startswith("list of "):
        return _several(run, kind.removeprefix("list of "), parameter.arg)
    if kind.startswith("tuple of "):
        return TupleV(tuple(_several(run, kind.removeprefix("tuple of "), parameter.arg).items), open=True)
    if kind.startswith((EXACTLY, ANY_NUMBER)):
        return _plain(run, kind, parameter.arg, may_be_none=parameter.arg in function.defaults)
    made = run.fresh(kind, text=parameter.arg)
    if function.name == "__init__":
        made.key = Key(SETTING, made.key)
    if kind == "tensor":
        as_tensor(run, made).bound_name = parameter.arg
        if parameter.arg in function.defaults and default is None:
            return made if run.oracle.decide(("given", parameter.arg, id(function.node))) else None
    return made


def trains(function: FunctionV) -> bool:
    """Whether what a function computes is differentiated by convention: methods of modules, and losses."""
    owner = function.owner
    if owner is not None and classes.is_subclass(owner, "torch.nn.Module"):
        return True
    return "loss" in function.name.lower() or "forward" in function.name or function.name == "training_step"


def _several(run: Run, kind: str, name: str) -> ListV:
    """A caller's list: two items stand for all."""
    made = ListV(open=True, escaped=True)
    for _ in range(2):
        item = run.fresh(kind, text=name)
        if kind == "tensor":
            as_tensor(run, item)
        made.items.append(item)
    return made


def _plain(run: Run, kind: str, name: str, *, may_be_none: bool) -> Value:
    """A caller's tuple of plain values, and of tensors among them."""
    if may_be_none:
        return run.fresh(text=name)
    counted = kind.startswith(EXACTLY)
    kinds = kind.removeprefix(EXACTLY).split() if counted else [kind.removeprefix(ANY_NUMBER)] * MAX_RANK
    items = [run.fresh(one, text=name) for one in kinds]
    for item in items:
        if item.kind == "tensor":
            item.key = Key(SETTING, item.key)
            as_tensor(run, item)
    return TupleV(tuple(items), open=not counted)


MAX_ANNOTATION = 1000
"""Characters of an annotation that stands in quotes."""


def annotated(annotation: ast.expr | None) -> str:
    """Kind of an annotated parameter: that of an unknown value, or of several (`list of`, `tuple of`, `exactly`...)."""
    if annotation is None:
        return "any"
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        if len(annotation.value) > MAX_ANNOTATION:
            return "any"
        try:
            return annotated(ast.parse(annotation.value, mode="eval").body)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return "any"
    if isinstance(annotation, ast.BinOp):
        parts = [part for part in (annotation.left, annotation.right) if not _is_none(part)]
        kinds = {annotated(part) for part in parts}
        kind = kinds.pop() if len(kinds) == 1 else "any"
        return kind if len(parts) > 1 else _or_none(kind)
    if isinstance(annotation, ast.Subscript):
        outer = _last(annotation.value)
        inner = annotation.slice
        if outer == "Optional":
            return _or_none(annotated(inner))
        first = inner.elts[0] if isinstance(inner, ast.Tuple) and inner.elts else inner
        kind = annotated(first)
        if outer in ("List", "list", "Sequence") and kind != "any" and " " not in kind:
            return f"list of {kind}"
        elements = inner.elts if isinstance(inner, ast.Tuple) else []
        if outer in ("Tuple", "tuple") and kind == "tensor" and _PLAIN.isdisjoint(map(annotated, elements)):
            return f"tuple of {kind}"
        if outer in ("Tuple", "tuple") and elements:
            return _numbers(elements)
        return "any"
    return _KINDS.get(_last(annotation), "any")


def declared(value: Value, annotation: ast.expr) -> Value:
    """What an argument is inside of the function: of an unknown one the annotation says whether it is a plain value.

    To the caller it stays as unknown as it was.
    """
    if not isinstance(value, Sym) or value.kind != "any" or value.tensor is not None:
        return value
    kind = annotated(annotation)
    if kind not in _PLAIN:
        return value
    made = Sym(value.key, kind, data=value.data, text=value.text)
    made.note_as(value)
    return made


def _or_none(kind: str) -> str:
    """A tuple stands for itself, and would never be None."""
    return "any" if kind.startswith((EXACTLY, ANY_NUMBER)) else kind


def _numbers(elements: list[ast.expr]) -> str:
    """Kind of a tuple of plain values, such as a shape; tensors that stand among numbers are settings like them."""
    more = isinstance(elements[-1], ast.Constant) and elements[-1].value is ...
    kinds = [annotated(one) for one in (elements[:-1] if more else elements)]
    if not kinds or not (_PLAIN | {"tensor"}).issuperset(kinds):
        return "any"
    return f"{ANY_NUMBER}{kinds[0]}" if more else EXACTLY + " ".join(kinds)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


_PLAIN = frozenset({"int", "number", "bool", "str"})

EXACTLY, ANY_NUMBER = "exactly ", "any number of "
"""How the kinds of tuples of plain values begin."""

MAX_RANK = 6
"""So many sizes stand for a shape of unknown length."""

_KINDS = {
    "Tensor": "tensor", "FloatTensor": "tensor", "LongTensor": "tensor", "BoolTensor": "tensor", "int": "int", "float": "number",
    "bool": "bool", "str": "str",
}  # fmt: skip


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
