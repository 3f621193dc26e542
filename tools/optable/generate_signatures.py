"""Forms of the callables that no yaml file describes: Python functions, and methods bound by hand in C++.

Python functions are read with `inspect`; the others from the stub files that ship with torch.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from gradguard.ops.model import Form, Kind, Param

_TENSOR_NAMES = frozenset(
    [
        "self",
        "input",
        "other",
        "target",
        "weight",
        "bias",
        "tensor",
        "input1",
        "input2",
        "input3",
        "anchor",
        "positive",
        "negative",
        "running_mean",
        "running_var",
        "query",
        "key",
        "value",
        "attn_mask",
        "mat1",
        "mat2",
        "x1",
        "x2",
        "indices",
        "theta",
        "grid",
        "per_sample_weights",
        "offsets",
        "var",
        "log_probs",
        "targets",
        "key_padding_mask",
        "index",
        "src",
        "source",
        "mask",
        "tensor1",
        "tensor2",
        "A",
        "B",
    ]
)
"""Parameters that are tensors where a Python signature does not say so; observation corrects a wrong guess."""


def forms_of(name: str, function: Callable[..., Any]) -> list[Form]:
    """The forms of a public callable, most specific first; empty when nothing describes it."""
    head, _, last = name.rpartition(".")
    if last == "__getitem__" or name == "operator.getitem":
        return _getitem(_first_name(head))
    if last == "__setitem__" or name == "operator.setitem":
        return _setitem(_first_name(head))
    if head == "operator":
        return _operator(last, "input")
    if last.startswith("__") and last.strip("_") in _BINARY:
        return _operator(last.strip("_"), "self")
    signature = _inspect(function)
    if signature is not None:
        return [Form(params=_from_inspect(signature, method=head == "Tensor"))]
    stubs = _tensor_stub() if head == "Tensor" else _function_stub()
    forms = [Form(params=p) for params in stubs.get(last, ()) for p in _alternatives(params)]
    if not forms and head == "Tensor":
        forms = [Form(params=(Param("self", Kind.TENSOR),))]
    # What takes anything is tried last.
    return sorted(forms, key=lambda f: any(p.kind is Kind.ANY and not p.keyword_only for p in f.params))


def _first_name(head: str) -> str:
    return "self" if head == "Tensor" else "input"


_UNARY = frozenset(
    [
        "abs",
        "neg",
        "pos",
        "invert",
        "index",
        "not_",
        "truth",
        "bool",
        "float",
        "int",
        "long",
        "complex",
        "len",
        "iter",
        "reversed",
        "nonzero",
    ]
)
_BINARY = frozenset(
    [
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "matmul",
        "and",
        "or",
        "and_",
        "or_",
        "xor",
        "lshift",
        "rshift",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "div",
        "iadd",
        "isub",
        "imul",
        "itruediv",
        "ifloordiv",
        "imod",
        "ipow",
        "iand",
        "ior",
        "ixor",
        "ilshift",
        "irshift",
        "idiv",
        "imatmul",
        "radd",
        "rsub",
        "rmul",
        "rtruediv",
        "rfloordiv",
        "rmod",
        "rpow",
        "rmatmul",
        "rand",
        "ror",
        "rxor",
        "rlshift",
        "rrshift",
        "rdiv",
    ]
)


def _operator(name: str, first: str) -> list[Form]:
    me = Param(first, Kind.TENSOR)
    if name in _UNARY:
        return [Form(params=(me,))]
    if name not in _BINARY:
        return [Form(params=(me, Param("other", Kind.ANY)))]
    forms = [Form(params=(me, Param("other", kind))) for kind in (Kind.TENSOR, Kind.NUMBER)]
    if first == "input" and name[0] != "i":
        forms.append(Form(params=(Param(first, Kind.NUMBER), Param("other", Kind.TENSOR))))
    return forms


INDEX_KINDS = (Kind.SLICES, Kind.MASK, Kind.TENSOR, Kind.ANY)
"""Numbers and slices give a view; a mask, an index tensor, and lists or mixtures of them give a copy."""


def _getitem(first: str) -> list[Form]:
    return [Form(params=(Param(first, Kind.TENSOR), Param("index", kind))) for kind in INDEX_KINDS]


def _setitem(first: str) -> list[Form]:
    return [
        Form(params=(Param(first, Kind.TENSOR), Param("index", kind), Param("value", value)))
        for kind in INDEX_KINDS
        for value in (Kind.TENSOR, Kind.NUMBER)
    ]


def _inspect(function: Callable[..., Any]) -> inspect.Signature | None:
    # Functions that choose between two by a flag close over the two: the general one comes first.
    code = getattr(function, "__code__", None)
    while code is not None and "if_false" in code.co_freevars:
        cells = dict(zip(code.co_freevars, function.__closure__ or ()))
        function = cells["if_false"].cell_contents
        code = getattr(function, "__code__", None)
    try:
        return inspect.signature(inspect.unwrap(function))
    except (TypeError, ValueError):
        return None


def parameters(signature: inspect.Signature) -> tuple[Param, ...]:
    """The parameters of a Python callable, without `self`."""
    return _from_inspect(signature, method=False, private=True)


def _from_inspect(signature: inspect.Signature, *, method: bool, private: bool = False) -> tuple[Param, ...]:
    params: list[Param] = []
    for index, p in enumerate(signature.parameters.values()):
        if not private and p.name.startswith("_") and p.default is not inspect.Parameter.empty:
            continue
        if p.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        default = None if p.default is inspect.Parameter.empty else _literal(p.default)
        if method and index == 0:
            params.append(Param("self", Kind.TENSOR))
            continue
        annotation = "" if p.annotation is inspect.Parameter.empty else _annotation_text(p.annotation)
        kind, optional = kind_of(annotation)
        if not annotation:
            kind = _guess(p.name, p.default)
        elif kind in (Kind.TENSOR, Kind.TENSORS) and isinstance(p.default, (int, float, tuple)):
            kind = Kind.ANY  # a number by default, a tensor at will
        if p.kind is inspect.Parameter.VAR_POSITIONAL:
            many = {Kind.TENSOR: Kind.TENSORS, Kind.INT: Kind.INTS}.get(kind, Kind.ANY)
            params.append(Param(p.name, many, None, variadic=True))
            continue
        keyword = p.kind is inspect.Parameter.KEYWORD_ONLY
        params.append(Param(p.name, kind, default, keyword, optional or default == "None"))
    return tuple(params)


def _guess(name: str, default: Any) -> Kind:
    if name in _TENSOR_NAMES and default in (None, inspect.Parameter.empty):
        return Kind.TENSOR
    for kind, of in ((Kind.BOOL, bool), (Kind.INT, int), (Kind.FLOAT, float), (Kind.STR, str)):
        if isinstance(default, of):
            return kind
    return Kind.ANY


def _annotation_text(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation
    if isinstance(annotation, type) and not hasattr(annotation, "__args__"):
        return annotation.__name__
    return str(annotation)


def _literal(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float, str)):
        return "None" if isinstance(value, float) and value != value else repr(value)
    if isinstance(value, (tuple, list)) and all(
        isinstance(v, (bool, int, float, str, type(None))) for v in value
    ):
        return repr(value)
    return "None"


_WORDS: tuple[tuple[Kind, str], ...] = (
    (Kind.TENSORS, r"(list|tuple|sequence|iterable|broadcastinglist\d?)\[[^\]]*tensor"),
    (Kind.INTS, r"(list|tuple|sequence|broadcastinglist\d?)\[[^\]]*\b_?int|_size\b|\bsize\b|_size_\d|_shape"),
    (Kind.TENSOR, r"tensor"),
    (Kind.BOOL, r"\b_?bool\b"),
    (Kind.NUMBER, r"number|_complex|\bcomplex\b"),
    (Kind.FLOAT, r"\b_?float\b"),
    (Kind.INT, r"\b_?(sym)?int\b"),
    (Kind.STR, r"\bstr\b"),
    (Kind.DTYPE, r"dtype"),
)


def kind_of(annotation: str) -> tuple[Kind, bool]:
    """The kind that an annotation says, and whether it admits None."""
    text = annotation.lower().replace("torch.", "").replace("typing.", "")
    optional = "optional" in text or re.search(r"\bnone\b", text) is not None
    if "callable" in text:
        return Kind.ANY, optional
    for kind, pattern in _WORDS:
        if re.search(pattern, text):
            # A union of a tensor and something else takes both; the alternatives are separate forms.
            return kind, optional
    return Kind.ANY, optional


# --- stub files ----------------------------------------------------------------------------------------------------

StubParams = list[tuple[Param, str]]


@lru_cache(maxsize=1)
def _tensor_stub() -> dict[str, list[StubParams]]:
    path = Path(torch.__file__).parent / "_C" / "__init__.pyi"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == "TensorBase":
            return _stub_functions(node.body)
    raise LookupError(f"no class TensorBase in {path}")


@lru_cache(maxsize=1)
def _function_stub() -> dict[str, list[StubParams]]:
    path = Path(torch.__file__).parent / "_C" / "_VariableFunctions.pyi"
    return _stub_functions(ast.parse(path.read_text(encoding="utf-8")).body)


def _stub_functions(body: Iterable[ast.stmt]) -> dict[str, list[StubParams]]:
    found: dict[str, list[StubParams]] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(_stub_params(node.args))
    return found


def _stub_params(args: ast.arguments) -> StubParams:
    out: StubParams = []
    positional = [*args.posonlyargs, *args.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(args.defaults)) + list(args.defaults)
    for arg, default in zip(positional, defaults):
        out.append(_stub_param(arg, default, keyword_only=False))
    if args.vararg is not None:
        text = "" if args.vararg.annotation is None else ast.unparse(args.vararg.annotation)
        kind = {Kind.TENSOR: Kind.TENSORS, Kind.INT: Kind.INTS}.get(kind_of(text)[0], Kind.ANY)
        out.append((Param(args.vararg.arg, kind, None, variadic=True), text))
    for arg, default in zip(args.kwonlyargs, args.kw_defaults):
        out.append(_stub_param(arg, default, keyword_only=True))
    return out


def _stub_param(arg: ast.arg, default: ast.expr | None, *, keyword_only: bool) -> tuple[Param, str]:
    text = "" if arg.annotation is None else ast.unparse(arg.annotation)
    kind, optional = (Kind.TENSOR, False) if arg.arg == "self" else kind_of(text)
    value = None
    if default is not None:
        try:
            value = repr(ast.literal_eval(default))
        except ValueError:
            value = "None"
    return Param(arg.arg, kind, value, keyword_only, optional or value == "None"), text


def _alternatives(params: StubParams) -> list[tuple[Param, ...]]:
    """One list of parameters, or two where one parameter is a tensor or a number."""
    for index, (param, text) in enumerate(params):
        low = text.lower()
        if param.kind is Kind.TENSOR and ("number" in low or "complex" in low or "_int" in low):
            number = Param(param.name, Kind.NUMBER, param.default, param.keyword_only, param.optional)
            plain = [p for p, _ in params]
            return [tuple(plain), (*plain[:index], number, *plain[index + 1 :])]
    return [tuple(p for p, _ in params)]
