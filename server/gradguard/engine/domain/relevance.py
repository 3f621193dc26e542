"""What code can do that the tape notices, told from its text alone.

A condition is asked once for each of its two ways because they may show different mistakes. Most do not: one way
logs, saves, seeds or prints, the other does nothing. `idle` says of a statement whether it is idle, that is, whether
running it could show or change nothing, provided that the names it reads hold no tensors:

    if args.track:                 idle: it binds a name, and calls what is not read
        run = wandb.init(name=tag)
    if step > 100:                 not idle: it writes an object
        self.warm = True

What names hold is known only where the statement stands; `trail` asks there.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gradguard.source.blocks import kept
from gradguard.source.nodes import children, walk

PURE = frozenset({
    "abs", "all", "any", "bool", "dict", "enumerate", "float", "format", "getattr", "hasattr", "int", "isinstance", "issubclass", "len",
    "list", "max", "min", "open", "print", "range", "repr", "round", "set", "sorted", "str", "sum", "tuple", "type", "zip",
})  # fmt: skip
"""Builtins that change nothing of what they are given."""

TENSOR_ONLY = frozenset({
    "backward", "requires_grad_", "detach", "detach_", "unsqueeze", "squeeze", "permute", "contiguous", "masked_fill", "masked_fill_",
    "log_softmax", "softmax", "sigmoid", "relu", "relu_", "exp", "exp_", "sqrt", "rsqrt", "tanh", "add_", "mul_", "sub_", "div_",
    "clamp_", "zero_", "fill_", "copy_", "normal_", "uniform_", "expand", "expand_as", "chunk", "unbind", "transpose", "flatten",
    "view", "reshape", "matmul", "bmm", "cumsum", "gather", "scatter_", "index_select", "repeat_interleave", "norm", "sin", "cos",
    "logsumexp", "clamp", "type_as", "new_zeros", "new_ones", "new_full", "new_empty", "new_tensor", "numel", "argmax", "topk", "nonzero", "index_copy_", "lerp_", "addcmul_",
})  # fmt: skip
"""Methods that only tensors have: whoever calls one on an unknown value tells what it is."""
CHANGING = frozenset({"backward", "manual_backward", "zero_grad", "train", "eval", "parameters", "named_parameters", "numpy", "tolist", "item", "is_floating_point"})  # fmt: skip
"""Further methods that tell an unknown object for a tensor or a network, or change it."""

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(slots=True)
class Idle:
    """What an idle piece of code needs to know of its surroundings to be idle."""

    paths: set[str] = field(default_factory=set)
    """Names, and attributes of names, whose values it uses: `args`, `args.seed`."""
    functions: set[str] = field(default_factory=set)
    """Those of them that it calls."""
    methods: set[tuple[str, str]] = field(default_factory=set)
    """Names of methods that it calls, each with the path of its object; this is empty where it is something else."""
    binds: set[str] = field(default_factory=set)
    """Names that it binds."""
    counts: set[str] = field(default_factory=set)
    """Names that it counts up: `n += 1`."""
    breaks: bool = False
    """It leaves the loop around it."""
    continues: bool = False
    """It leaves a pass of that."""
    returns: list[ast.Return] = field(default_factory=list)
    raises: bool = False


class _NotIdle(Exception):
    """The code may do something."""


def idle(node: ast.stmt | ast.expr) -> Idle | None:
    """What keeps a piece of code idle; None where it may do something."""
    return kept(node, "_gradguard_idle", _idle)


def _idle(node: ast.stmt | ast.expr) -> Idle | None:
    found = Idle()
    try:
        if isinstance(node, ast.expr):
            _expression(node, found)
        else:
            _statement(node, found, inside=False)
    except (_NotIdle, RecursionError):
        return None
    return found


def optional(statement: ast.stmt) -> tuple[ast.expr, ...]:
    """Parts of a statement's own expressions that are evaluated only where a condition in it allows."""
    return kept(statement, "_gradguard_optional", lambda node: tuple(_optional(node)))


def reads_after(scope: ast.AST, body: list[ast.stmt], name: str) -> bool:
    """Whether a function may read a name that these statements of it bind: outside of them, or in their next pass."""
    if any(name in kept(statement, "_gradguard_carried", _carried) for statement in body):
        return True
    inside = sum(kept(statement, "_gradguard_loads", _loads)[name] for statement in body)
    return kept(scope, "_gradguard_loads", _loads)[name] > inside


def refuses(node: ast.If) -> bool:
    """Whether the body of an `if` does nothing but raise."""
    return kept(node, "_gradguard_refuses", _refuses)


def _refuses(node: ast.If) -> bool:
    return isinstance(node.body[-1], ast.Raise) and all(idle(one) is not None for one in node.body)


def _loads(node: ast.AST) -> Counter[str]:
    """How often a statement reads each name; of a function, how often its body does."""
    body = node.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)) else [node]
    return Counter(name for part in body for name, stores in _uses(part) if not stores)


def _carried(statement: ast.stmt) -> frozenset[str]:
    """Names that a statement reads before it binds them."""
    first: dict[str, bool] = {}
    for name, stores in _uses(statement):
        first.setdefault(name, stores)
    return frozenset(name for name, stores in first.items() if not stores)


def _statement(node: ast.stmt, found: Idle, *, inside: bool) -> None:
    """`inside`: in a loop that is part of the piece."""
    kind = type(node)
    if kind is ast.Expr:
        _expression(node.value, found)  # type: ignore[attr-defined]
    elif kind is ast.Assign:
        _expression(node.value, found)  # type: ignore[attr-defined]
        for target in node.targets:  # type: ignore[attr-defined]
            _target(target, found)
    elif kind is ast.AnnAssign:
        if node.value is not None:  # type: ignore[attr-defined]
            _expression(node.value, found)  # type: ignore[attr-defined]
        _target(node.target, found)  # type: ignore[attr-defined]
    elif kind is ast.AugAssign:
        _target(node.target, found)  # type: ignore[attr-defined]
        _expression(node.value, found)  # type: ignore[attr-defined]
        found.counts.add(node.target.id)  # type: ignore[attr-defined]
    elif kind is ast.If or kind is ast.While:
        _expression(node.test, found)  # type: ignore[attr-defined]
        _block(node.body, found, inside=inside or kind is ast.While)  # type: ignore[attr-defined]
        _block(node.orelse, found, inside=inside)  # type: ignore[attr-defined]
    elif kind is ast.For:
        _expression(node.iter, found)  # type: ignore[attr-defined]
        _target(node.target, found)  # type: ignore[attr-defined]
        _block(node.body, found, inside=True)  # type: ignore[attr-defined]
        _block(node.orelse, found, inside=inside)  # type: ignore[attr-defined]
    elif kind is ast.Return:
        if node.value is not None:  # type: ignore[attr-defined]
            _expression(node.value, found)  # type: ignore[attr-defined]
        found.returns.append(node)  # type: ignore[arg-type]
    elif kind is ast.Raise:
        found.raises = True
    elif kind is ast.Assert:
        _expression(node.test, found)  # type: ignore[attr-defined]
        found.raises = True
    elif kind is ast.Break:
        found.breaks = found.breaks or not inside
    elif kind is ast.Continue:
        found.continues = found.continues or not inside
    elif kind is ast.Import or kind is ast.ImportFrom:
        found.binds.update((one.asname or one.name).partition(".")[0] for one in node.names)  # type: ignore[attr-defined]
    elif kind is not ast.Pass:
        raise _NotIdle


def _block(body: Iterable[ast.stmt], found: Idle, *, inside: bool) -> None:
    for statement in body:
        _statement(statement, found, inside=inside)


def _target(target: ast.expr, found: Idle) -> None:
    if isinstance(target, ast.Name):
        found.binds.add(target.id)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for part in target.elts:
            _target(part, found)
    else:
        raise _NotIdle


def _expression(node: ast.expr, found: Idle) -> None:
    if isinstance(node, (ast.Name, ast.Attribute)):
        path = dotted(node)
        if path:
            found.paths.add(path)
        elif isinstance(node, ast.Attribute):
            _expression(node.value, found)
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            found.functions.add(node.func.id)
        elif isinstance(node.func, ast.Attribute):
            found.methods.add((dotted(node.func.value), node.func.attr))
            _expression(node.func.value, found)
        else:
            raise _NotIdle
        for part in (*node.args, *(keyword.value for keyword in node.keywords)):
            _expression(part, found)
    elif isinstance(node, _SIMPLE):
        for child in children(node):
            if isinstance(child, ast.expr):
                _expression(child, found)
    else:
        raise _NotIdle


_SIMPLE = (
    ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.Subscript,
    ast.Slice, ast.JoinedStr, ast.FormattedValue, ast.Starred,
)  # fmt: skip


def dotted(node: ast.expr) -> str:
    """`a.b.c` of names and attributes alone; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join((node.id, *reversed(parts)))


def _optional(statement: ast.AST) -> Iterator[ast.expr]:
    waiting = [child for child in children(statement) if not isinstance(child, ast.stmt)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.ExceptHandler, ast.Lambda)) or type(node).__name__ == "match_case":
            continue
        if isinstance(node, ast.IfExp):
            yield from (node.body, node.orelse)
        elif isinstance(node, ast.BoolOp):
            yield from node.values[1:]
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            if any(part.ifs for part in node.generators):
                yield node
        elif isinstance(node, ast.Compare) and len(node.ops) > 1:
            yield from node.comparators[1:]
        waiting.extend(children(node))


_Use = tuple[str, bool]
"""A name, and whether it is bound there."""
_USES = "_gradguard_uses"


def _uses(node: ast.AST) -> tuple[_Use, ...]:
    """Each use of a name in the order of evaluation."""
    # Each `elif` stands in the `else` of the one before it: a chain of hundreds is asked from its end, which nests nothing.
    chain = [node]
    while isinstance(node, ast.If) and len(node.orelse) == 1 and not hasattr(node, _USES):
        node = node.orelse[0]
        chain.append(node)
    while len(chain) > 1:
        kept(chain.pop(), _USES, _used)
    return kept(chain[0], _USES, _used)


def _used(node: ast.AST) -> tuple[_Use, ...]:
    found: list[_Use] = []
    _add_parts(node, found)
    return tuple(found)


def _add_uses(node: ast.AST, found: list[_Use]) -> None:
    if isinstance(node, ast.Name):
        found.append((node.id, not isinstance(node.ctx, ast.Load)))
    elif isinstance(node, ast.stmt):
        found += _uses(node)
    else:
        _add_parts(node, found)


def _add_parts(node: ast.AST, found: list[_Use]) -> None:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        if not isinstance(node, ast.Lambda):
            found.append((node.name, True))
        found += [(name, False) for name in _read_by(node)]
        return
    if isinstance(node, ast.Assign):
        parts: Iterable[ast.AST] = (node.value, *node.targets)
    elif isinstance(node, ast.AugAssign):
        if isinstance(node.target, ast.Name):
            found.append((node.target.id, False))
        parts = (node.value, node.target)
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        parts = (node.iter, node.target, *node.body, *node.orelse)
    elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        parts = (*node.generators, node.elt)
    elif isinstance(node, (ast.Global, ast.Nonlocal)):
        found += [(name, False) for name in node.names]
        return
    else:
        parts = children(node)
    for part in parts:
        _add_uses(part, found)


def _read_by(function: Scope) -> Iterator[str]:
    """Names that a function reads of those around it: where it is made, and whenever it runs."""
    arguments = function.args
    local = {one.arg for one in walk(arguments) if isinstance(one, ast.arg)}
    body = function.body if isinstance(function.body, list) else [function.body]
    uses: list[_Use] = []
    for part in body:
        _add_uses(part, uses)
    declared = {
        name
        for part in body
        for one in walk(part)
        if isinstance(one, (ast.Global, ast.Nonlocal))
        for name in one.names
    }
    local |= {name for name, stores in uses if stores}
    local -= declared
    yield from (name for name, stores in uses if not stores and name not in local)
    before = (*arguments.defaults, *arguments.kw_defaults, *getattr(function, "decorator_list", ()))
    for part in before:
        if part is not None:
            found: list[_Use] = []
            _add_uses(part, found)
            yield from (name for name, _ in found)
