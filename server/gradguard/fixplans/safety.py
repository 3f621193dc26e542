"""Code that a value without a graph would change: it looks for one, hooks into it, or differentiates through it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from gradguard.engine import Analysis
from gradguard.engine.domain.tensors import Place
from gradguard.fixplans.blocks import function_around
from gradguard.fixplans.model import Context
from gradguard.source.blocks import gathered
from gradguard.source.blocks import kept as remembered
from gradguard.source.text import Source

_TESTED = frozenset({"requires_grad", "is_leaf", "is_grad_enabled", "is_inference_mode_enabled"})
_HOOKED = frozenset({"register_hook", "retain_grad", "grad_fn", "needs_input_grad", "saved_tensors_hooks"})
"""What raises, is None, or is never called, without a graph."""
_DIFFERENTIATES = frozenset({"backward", "grad"})


def asks(context: Context) -> bool:
    """Whether any code goes another way where nothing is recorded, or hooks into what is."""
    return _any(context.analysis, "_gradguard_asks", _asks, (*_TESTED, *_HOOKED, *_REFUSING))


def hooks(context: Context) -> bool:
    """Whether any code is run for each gradient that comes by, or computes one of its own."""
    return _any(context.analysis, "_gradguard_hooks", _hooks, ("hook", "Function"))


def sees_ops(analysis: Analysis) -> bool:
    """Whether any code of the program is told of each op by its name."""
    return _any(analysis, "_gradguard_sees_ops", _overrides, ("__torch_",))


def reads_flags(analysis: Analysis) -> bool:
    """Whether any code asks a module if it works in place, or for all that it holds."""
    return _any(analysis, "_gradguard_flags", _reads_flags, ("inplace", "vars", "__dict__"))


def reads_versions(analysis: Analysis) -> bool:
    """Whether any code asks a tensor how often it was written."""
    return _any(analysis, "_gradguard_versions", _reads_versions, ("_version",))


def looks_into_graph(context: Context) -> bool:
    """Whether any code goes from node to node of a graph, or to what one has saved."""
    return _any(context.analysis, "_gradguard_walks", _walks, _NODES)


def second_order(context: Context) -> bool:
    """Whether any gradient is recorded to be differentiated itself."""
    return _any(context.analysis, "_gradguard_second", _second, ("create_graph",))


def caches_weights(context: Context) -> bool:
    """Whether modules give out weights that they computed once, with the graph of that time."""
    return _any(context.analysis, "_gradguard_weights", _caches_weights, ("cached",))


def pads(context: Context) -> bool:
    """Whether a transformer encoder is given padding: where nothing is recorded it leaves the padded places out."""
    return _any(context.analysis, "_gradguard_encoders", _makes_encoders, ("Transformer",)) and _any(
        context.analysis, "_gradguard_pads", _pads, ("key_padding_mask",)
    )


def _any(analysis: Analysis, name: str, ask: Callable[[ast.stmt], bool], words: Iterable[str]) -> bool:
    """Whether some statement answers yes; none does in a text that has none of the words."""

    def answered(source: Source, answers: Iterable[bool]) -> bool:
        return any(word in source.text for word in words) and any(answers)

    return any(
        gathered(source.tree, name, ask, partial(answered, source)) for source in analysis.sources.values()
    )


def differentiated_again(context: Context, place: Place, kept: ast.expr | None) -> bool:
    """Whether a backward starts from what is read out of `kept` again, as far as its name is seen."""
    if kept is None:
        return False
    tree = context.analysis.sources[place.path].tree
    scope = (function_around(tree, place.node) or tree) if isinstance(kept, ast.Name) else tree
    flow = remembered(scope, "_gradguard_flow", _flow)
    waiting = [ast.unparse(kept)]
    reached = set(waiting)
    while waiting:
        following = flow.bound.get(waiting.pop(), frozenset()) - reached
        reached |= following
        waiting += following
    return not reached.isdisjoint(flow.differentiated)


class _Flow(NamedTuple):
    """Where values go in a scope, by names and attributes as they are spelled."""

    bound: dict[str, frozenset[str]]
    """What statements bind that read one of these."""
    differentiated: frozenset[str]
    """What calls that differentiate read."""


def _flow(scope: ast.AST) -> _Flow:
    bound: dict[str, set[str]] = {}
    differentiated: set[str] = set()
    for part in ast.walk(scope):
        if isinstance(part, ast.stmt):
            names = frozenset(_bound(part))
            for value in _values(part) if names else ():
                for read in _read(value):
                    bound.setdefault(read, set()).update(names)
        elif isinstance(part, ast.Call) and ast.unparse(part.func).rpartition(".")[2] in _DIFFERENTIATES:
            differentiated.update(_read(part))
    return _Flow({name: frozenset(names) for name, names in bound.items()}, frozenset(differentiated))


def keeper(statement: ast.stmt | None) -> ast.expr | None:
    """What a statement puts something into: `acts` of `acts.append(h)` and of `acts[i] = h`, `self.h`."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        func = statement.value.func
        return func.value if isinstance(func, ast.Attribute) else None
    if isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
        target: ast.expr = statement.target
    elif isinstance(statement, ast.Assign):
        target = statement.targets[0]
    else:
        return None
    while isinstance(target, ast.Subscript):
        target = target.value
    return target


def _values(statement: ast.stmt) -> Iterator[ast.expr]:
    if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and statement.value is not None:
        yield statement.value
    elif isinstance(statement, (ast.For, ast.AsyncFor)):
        yield statement.iter
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        yield from statement.value.args


def _bound(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.Expr):
        into = keeper(statement)
        yield from [ast.unparse(into)] if into is not None else []
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    for target in targets:
        for part in ast.walk(target) if target is not None else ():
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                yield part.id


def _read(node: ast.expr) -> Iterator[str]:
    """The names and attributes that an expression looks at, other than for a number or a length."""
    waiting: list[ast.AST] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Call) and ast.unparse(part.func).rpartition(".")[2] in _NUMBERS:
            continue
        if isinstance(part, (ast.Name, ast.Attribute)) and isinstance(part.ctx, ast.Load):
            yield ast.unparse(part)
        waiting.extend(ast.iter_child_nodes(part))


_NUMBERS = frozenset({"item", "tolist", "detach", "float", "int", "bool", "len", "print"})


def _asks(statement: ast.stmt) -> bool:
    parameters: set[ast.AST] | None = None
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and node.attr in _HOOKED:
            return True
        if isinstance(node, ast.Attribute) and node.attr in _TESTED and isinstance(node.ctx, ast.Load):
            parameters = parameters if parameters is not None else set(_of_parameters(statement))
            if node not in parameters:
                return True
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr"):
            if any(isinstance(arg, ast.Constant) and arg.value in _TESTED | _HOOKED for arg in node.args):
                return True
        if isinstance(node, ast.Try) and node.handlers and any(map(_refuses, node.body)):
            return True
    return False


def _of_parameters(statement: ast.stmt) -> Iterator[ast.AST]:
    """Questions to parameters, which have no graph but the one they begin: `p.requires_grad for p in net.parameters()`."""
    for node in ast.walk(statement):
        if isinstance(node, (ast.For, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            sources = [node.iter] if isinstance(node, ast.For) else [each.iter for each in node.generators]
        elif isinstance(node, ast.Call) and any(isinstance(arg, ast.Lambda) for arg in node.args):
            sources = [arg for arg in node.args if not isinstance(arg, ast.Lambda)]
        else:
            sources = []
        if any("param" in ast.unparse(source).lower() for source in sources):
            yield from ast.walk(node)
        owner = node.value if isinstance(node, ast.Attribute) else None
        if owner is not None and _PARAMETER.search(ast.unparse(owner).lower()):
            yield node


_PARAMETER = re.compile(r"(param\w*|weight|bias)(\[[^\]]*\])?$")


def _refuses(statement: ast.stmt) -> bool:
    """Whether a statement calls what refuses a tensor with a graph."""
    return any(
        isinstance(part, ast.Call) and ast.unparse(part.func).rpartition(".")[2] in _REFUSING
        for part in ast.walk(statement)
    )


_REFUSING = frozenset({"numpy", "deepcopy", "asarray", "array", "__array__"})


def _overrides(statement: ast.stmt) -> bool:
    return any(
        isinstance(node, ast.FunctionDef) and node.name in ("__torch_function__", "__torch_dispatch__")
        for node in ast.walk(statement)
    )


def _reads_flags(statement: ast.stmt) -> bool:
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            if node.attr in ("inplace", "__dict__"):
                return True
        elif (isinstance(node, ast.Constant) and node.value == "inplace") or (
            isinstance(node, ast.Call) and ast.unparse(node.func) in ("vars", "builtins.vars") and node.args
        ):
            return True
    return False


def _reads_versions(statement: ast.stmt) -> bool:
    return any(
        (isinstance(node, ast.Attribute) and node.attr == "_version")
        or (isinstance(node, ast.Constant) and node.value == "_version")
        for node in ast.walk(statement)
    )


def _hooks(statement: ast.stmt) -> bool:
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and _HOOKING.fullmatch(node.attr):
            return True
        if isinstance(node, ast.ClassDef) and any(
            ast.unparse(base).endswith("Function") for base in node.bases
        ):
            return True
    return False


_HOOKING = re.compile(r"register_(?!\w*forward)\w*hook")


def _walks(statement: ast.stmt) -> bool:
    """A node of a graph is compared and printed without being looked into."""
    plain: set[ast.AST] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Compare):
            plain.update((node.left, *node.comparators))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "str", "repr", "type"):
            plain.update(node.args)
        elif isinstance(node, ast.FormattedValue):
            plain.add(node.value)
    return any(
        isinstance(node, ast.Attribute) and node.attr in _NODES and node not in plain
        for node in ast.walk(statement)
    )


_NODES = frozenset({"grad_fn", "next_functions"})


def _second(statement: ast.stmt) -> bool:
    return any(
        isinstance(node, ast.keyword) and node.arg == "create_graph" and not _is_false(node.value)
        for node in ast.walk(statement)
    )


def _caches_weights(statement: ast.stmt) -> bool:
    """`with parametrize.cached():`."""
    return any(
        isinstance(item.context_expr, ast.Call)
        and ast.unparse(item.context_expr.func).rpartition(".")[2] == "cached"
        for node in ast.walk(statement)
        if isinstance(node, (ast.With, ast.AsyncWith))
        for item in node.items
    )


def _makes_encoders(statement: ast.stmt) -> bool:
    return any(
        isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] in ("Transformer", "TransformerEncoder")
        and not any(
            keyword.arg == "enable_nested_tensor" and _is_false(keyword.value) for keyword in node.keywords
        )
        for node in ast.walk(statement)
    )


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _pads(statement: ast.stmt) -> bool:
    return any(
        isinstance(node, ast.keyword) and "key_padding_mask" in (node.arg or "")
        for node in ast.walk(statement)
    )
