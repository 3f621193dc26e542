"""What code can do that the tape notices, told from its text alone.

A condition is asked once for each of its two ways because they may show different mistakes. Most do not: one way
logs, saves, seeds or prints, the other does nothing. `Relevance` says of a statement whether it is idle, that is,
whether running it could show or change nothing, provided that the names it reads hold no tensors:

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


class Relevance:
    """Answers for the statements of the files of one analysis, each worked out once."""

    def __init__(self, path: str = "", tree: ast.Module | None = None) -> None:
        self._path, self._tree = path, tree
        self._idle: dict[ast.AST, Idle | None] = {}
        self._optional: dict[ast.stmt, tuple[ast.expr, ...]] = {}
        self._loads: dict[ast.AST, Counter[str]] = {}
        self._first: dict[ast.AST, frozenset[str]] = {}
        self._refuses: dict[ast.If, bool] = {}

    def top(self, path: str) -> ast.Module | None:
        """The top level that binds a name of this file's: known of the analysed file alone."""
        return self._tree if path == self._path else None

    def idle(self, node: ast.stmt | ast.expr) -> Idle | None:
        """What keeps a piece of code idle; None where it may do something."""
        if node not in self._idle:
            found = Idle()
            try:
                if isinstance(node, ast.expr):
                    _expression(node, found)
                else:
                    _statement(node, found, inside=False)
                self._idle[node] = found
            except (_NotIdle, RecursionError):
                self._idle[node] = None
        return self._idle[node]

    def optional(self, statement: ast.stmt) -> tuple[ast.expr, ...]:
        """Parts of a statement's own expressions that are evaluated only where a condition in it allows."""
        known = self._optional.get(statement)
        if known is None:
            known = self._optional[statement] = tuple(_optional(statement))
        return known

    def reads_after(self, scope: ast.AST, body: list[ast.stmt], name: str) -> bool:
        """Whether a function may read a name that these statements of it bind: outside of them, or in their next pass."""
        if any(name in self._carried(statement) for statement in body):
            return True
        return self._count(scope)[name] > sum(self._count(statement)[name] for statement in body)

    def refuses(self, node: ast.If) -> bool:
        """Whether the body of an `if` does nothing but raise."""
        known = self._refuses.get(node)
        if known is None:
            body = self.idle(node.body[-1]) if isinstance(node.body[-1], ast.Raise) else None
            known = body is not None and all(self.idle(one) is not None for one in node.body)
            self._refuses[node] = known
        return known

    def _count(self, node: ast.AST) -> Counter[str]:
        known = self._loads.get(node)
        if known is None:
            body = node.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else [node]
            known = self._loads[node] = Counter(
                name for part in body for name, stores in _uses(part) if not stores
            )
        return known

    def _carried(self, statement: ast.AST) -> frozenset[str]:
        known = self._first.get(statement)
        if known is None:
            first: dict[str, bool] = {}
            for name, stores in _uses(statement):
                first.setdefault(name, stores)
            known = frozenset(name for name, stores in first.items() if not stores)
            self._first[statement] = known
        return known


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements of a compound statement that run where it stands."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    for name in ("body", "orelse", "finalbody"):
        held = getattr(node, name, None)
        if isinstance(held, list):
            yield held
    for handler in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield handler.body


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
        for child in ast.iter_child_nodes(node):
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
    waiting = [child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)]
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
        waiting.extend(ast.iter_child_nodes(node))


def _uses(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """Each use of a name in the order of evaluation, and whether it binds the name."""
    if isinstance(node, ast.Name):
        yield node.id, not isinstance(node.ctx, ast.Load)
        return
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        if not isinstance(node, ast.Lambda):
            yield node.name, True
        yield from ((name, False) for name in _read_by(node))
        return
    if isinstance(node, ast.Assign):
        parts: list[ast.AST] = [node.value, *node.targets]
    elif isinstance(node, ast.AugAssign):
        if isinstance(node.target, ast.Name):
            yield node.target.id, False
        parts = [node.value, node.target]
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        parts = [node.iter, node.target, *node.body, *node.orelse]
    elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        parts = [*node.generators, node.elt]
    elif isinstance(node, (ast.Global, ast.Nonlocal)):
        yield from ((name, False) for name in node.names)
        return
    else:
        parts = list(ast.iter_child_nodes(node))
    for part in parts:
        yield from _uses(part)


def _read_by(function: Scope) -> Iterator[str]:
    """Names that a function reads of those around it: where it is made, and whenever it runs."""
    arguments = function.args
    local = {one.arg for one in ast.walk(arguments) if isinstance(one, ast.arg)}
    body = function.body if isinstance(function.body, list) else [function.body]
    uses = [use for part in body for use in _uses(part)]
    declared = {
        name
        for part in body
        for one in ast.walk(part)
        if isinstance(one, (ast.Global, ast.Nonlocal))
        for name in one.names
    }
    local |= {name for name, stores in uses if stores}
    local -= declared
    yield from (name for name, stores in uses if not stores and name not in local)
    before = (*arguments.defaults, *arguments.kw_defaults, *getattr(function, "decorator_list", ()))
    for part in before:
        if part is not None:
            yield from (name for name, _ in _uses(part))
