"""Whether every tensor that a stretch of code makes stays in it, as `torch.inference_mode()` asks.

A tensor made there may never be saved for a backward, nor written outside. So none may get out: names bound
there are read elsewhere as numbers only, nothing but numbers is returned, and nothing else is put away.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from gradguard.fixplans.blocks import function_around
from gradguard.source.blocks import around, gathered, kept, union

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LATER = (ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.Lambda, ast.ClassDef)
_PUTS = frozenset(
    {"append", "appendleft", "extend", "insert", "add", "update", "put", "put_nowait", "setdefault", "push"}
)
_NUMBERS = frozenset({"float", "int", "bool", "len", "str", "repr", "round"})
_OF_NUMBERS = frozenset({"min", "max", "sum", "abs", "sorted"})
_READS = frozenset({"item", "tolist", "numel", "dim", "size", "numpy"})
_MADE = (ast.Call, ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.BinOp)
"""Expressions that give something new, and what is put into it."""
_HOST = frozenset({"math", "np", "numpy", "time", "os"})


def stays_inside(trees: list[ast.Module], tree: ast.Module, chosen: ast.stmt) -> bool:
    """Whether no tensor made in a statement, or in the body of a function, is seen outside of it."""
    if _puts_away(trees, chosen):
        return False
    scope = chosen if isinstance(chosen, _FUNCTIONS) else function_around(tree, chosen) or tree
    numbers = _Numbers(kept(scope, "_gradguard_bindings", _Bindings))
    inside = set(ast.walk(chosen))
    for part in inside:
        if isinstance(part, _LATER) or (isinstance(part, _FUNCTIONS) and part is not chosen):
            return False
        if isinstance(part, ast.Return) and part.value is not None and not numbers.is_number(part.value):
            return False
        if isinstance(part, ast.stmt) and not all(numbers.is_number(value) for value in _put_away(part)):
            return False
        if isinstance(part, ast.Call) and not _keeps_numbers(part, numbers):
            return False
    if scope is chosen:
        return True
    bound = {part.id for part in inside if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    tensors = {name for name in bound if not numbers.is_number(ast.Name(name, ast.Load()))}
    reads = kept(scope, "_gradguard_read", _read)
    looks = kept(scope, "_gradguard_looks", _looks)
    outside = [
        part
        for name in sorted(tensors)
        for part in looks.get(name, ())
        if part not in inside and part not in reads
    ]
    return len(outside) <= MAX_LOOKS and all(_bound_anew(tree, chosen, part) for part in outside)


MAX_LOOKS = 50
"""Names that are read outside, beyond which nobody looks at each of them."""


def _looks(scope: ast.AST) -> dict[str, list[ast.Name]]:
    """Where each name is read, or changed."""
    changed = {part.target for part in ast.walk(scope) if isinstance(part, ast.AugAssign)}
    found: dict[str, list[ast.Name]] = {}
    for part in ast.walk(scope):
        if isinstance(part, ast.Name) and (isinstance(part.ctx, ast.Load) or part in changed):
            found.setdefault(part.id, []).append(part)
    return found


def _puts_away(trees: list[ast.Module], chosen: ast.stmt) -> bool:
    """Whether a function that may run there, by its name, puts away what may be a tensor."""
    files = [gathered(tree, "_gradguard_puts", _functions, _by_name) for tree in trees]
    waiting = [*_UNNAMED, *(hook for file in files for hook in file.hooks), *_called(chosen)]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for puts in (each for file in files for each in file.functions.get(name, ())):
            if puts.away:
                return True
            waiting += puts.calls
    return False


_UNNAMED = ("forward", "__call__", "__getitem__", "__iter__", "__next__", "__enter__", "__exit__", "")
"""Functions that run without being named: what modules, data sets and managers do, and hooks without a name."""
_CACHES = re.compile(r"cache|memo(?!r)")


class _Puts(NamedTuple):
    """Of a function: whether it puts away what may be a tensor, what it calls, and what it registers as hooks."""

    away: bool
    calls: frozenset[str]
    hooks: frozenset[str]


class _File(NamedTuple):
    """The functions of a file by name, and what any of them registers as hooks."""

    functions: dict[str, list[_Puts]]
    hooks: frozenset[str]


def _by_name(found: Iterable[list[tuple[str, _Puts]]]) -> _File:
    functions: dict[str, list[_Puts]] = {}
    for name, puts in chain.from_iterable(found):
        functions.setdefault(name, []).append(puts)
    return _File(functions, union(puts.hooks for each in functions.values() for puts in each))


def _functions(statement: ast.stmt) -> list[tuple[str, _Puts]]:
    """The functions in a statement at the top level; what it does itself belongs to one whose name nobody calls."""
    found = [("<top>", _Puts(False, frozenset(), frozenset(_hooks(statement))))]
    for node in ast.walk(statement):
        if isinstance(node, _FUNCTIONS):
            found.append((node.name, _Puts(_function_puts(node), frozenset(_called(node)), frozenset())))
        elif isinstance(node, ast.Call) and _HOOKING.search(ast.unparse(node.func)):
            given = [each for each in node.args if isinstance(each, ast.Lambda)]
            found += [
                ("", _Puts(_function_puts(each), frozenset(_called(each)), frozenset())) for each in given
            ]
    return found


_HOOKING = re.compile(r"\.register_\w*hook$")


def _hooks(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and _HOOKING.search(ast.unparse(node.func)):
            for given in node.args:
                if not isinstance(given, ast.Lambda):
                    # Of a call that makes a hook, what it makes is not known by name.
                    made = given.func if isinstance(given, ast.Call) else given
                    yield ast.unparse(made).rpartition(".")[2]


def _called(node: ast.AST) -> Iterator[str]:
    """Names of what is called in a node, or named there where it may be called."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr


def _function_puts(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool:
    """Whether a function puts what may be a tensor where it is found again when the function is over."""
    if any(_CACHES.search(ast.unparse(each).lower()) for each in getattr(function, "decorator_list", ())):
        return True
    numbers = _Numbers(_Bindings(function))
    for part in ast.walk(function):
        if isinstance(part, (ast.Global, ast.Nonlocal)):
            return True
        if isinstance(part, ast.stmt):
            if any(not numbers.is_number(value) for value in _put_away(part)) and not all(
                numbers.is_own(target) for target in _targets(part)
            ):
                return True
        elif isinstance(part, ast.Call) and not _keeps_numbers(part, numbers):
            assert isinstance(part.func, ast.Attribute)
            if not numbers.is_own(part.func.value):
                return True
    return False


def _targets(statement: ast.stmt) -> Iterator[ast.expr]:
    """The attributes and items that a statement binds."""
    for part in ast.walk(statement):
        if isinstance(part, (ast.Attribute, ast.Subscript)) and isinstance(part.ctx, ast.Store):
            yield part


def _put_away(statement: ast.stmt) -> Iterator[ast.expr]:
    """Values that a statement gives to attributes and items."""
    if isinstance(statement, ast.Assign):
        targets, value = statement.targets, statement.value
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)) and statement.value is not None:
        targets, value = [statement.target], statement.value
    elif isinstance(statement, (ast.For, ast.AsyncFor)):
        targets, value = [statement.target], statement.iter
    else:
        return
    if any(
        isinstance(part, (ast.Attribute, ast.Subscript)) and isinstance(part.ctx, ast.Store)
        for target in targets
        for part in ast.walk(target)
    ):
        yield value


def _keeps_numbers(call: ast.Call, numbers: _Numbers) -> bool:
    """Whether a call puts nothing but numbers into a container or a meter."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _PUTS:
        return True
    return all(numbers.is_number(value) for value in (*call.args, *(each.value for each in call.keywords)))


class _Bindings:
    """What is bound to the names of a scope, and put into what they name."""

    def __init__(self, scope: ast.AST) -> None:
        self.values: dict[str, list[ast.expr | None]] = {}
        self.named: dict[str, list[ast.expr | None]] = {}
        """What each name is bound to as a whole, without what is put into it."""
        for node in ast.walk(scope):
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    self._bind(target, node.value)
            elif isinstance(node, (ast.For, ast.AsyncFor)):
                self._bind_loop(node)
            elif isinstance(node, (ast.comprehension, ast.withitem)):
                bound = node.target if isinstance(node, ast.comprehension) else node.optional_vars
                if bound is not None:
                    self._bind(bound, None)
            elif isinstance(node, ast.arg):
                self.values.setdefault(node.arg, []).append(None)
                self.named.setdefault(node.arg, []).append(None)
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in _PUTS
            ):
                if isinstance(node.func.value, ast.Name):
                    given = [*node.args, *(each.value for each in node.keywords)]
                    self.values.setdefault(node.func.value.id, []).extend(given)

    def _bind(self, target: ast.expr, value: ast.expr | None) -> None:
        whole = target
        while isinstance(whole, (ast.Subscript, ast.Attribute, ast.Starred)):
            whole = whole.value
        if isinstance(whole, (ast.Tuple, ast.List)):
            pairs = (
                zip(whole.elts, value.elts)
                if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(whole.elts)
                else ((each, None) for each in whole.elts)
            )
            for each, own in pairs:
                self._bind(each, own)
        elif isinstance(whole, ast.Name):
            self.values.setdefault(whole.id, []).append(value)
            if whole is target:
                self.named.setdefault(whole.id, []).append(value)

    def _bind_loop(self, loop: ast.For | ast.AsyncFor) -> None:
        name = ast.unparse(loop.iter.func) if isinstance(loop.iter, ast.Call) else ""
        count: ast.expr = ast.Constant(0)
        if name == "range":
            self._bind(loop.target, count)
        elif name == "enumerate" and isinstance(loop.target, ast.Tuple) and len(loop.target.elts) == 2:
            self._bind(loop.target.elts[0], count)
            self._bind(loop.target.elts[1], None)
        else:
            self._bind(loop.target, None)


class _Numbers:
    """Which names of a scope hold plain numbers, texts, or containers of them, whatever is bound to them."""

    def __init__(self, bindings: _Bindings) -> None:
        self.values, self.named = bindings.values, bindings.named
        self.known: dict[str, bool] = {}

    def is_number(self, node: ast.expr) -> bool:
        """Whether a value is none that autograd could meet, as far as can be seen."""
        if isinstance(node, (ast.Constant, ast.JoinedStr)):
            return True
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Attribute):
            return node.attr in ("shape", "ndim", "dtype", "device")
        if isinstance(node, ast.Subscript):
            return self.is_number(node.value)
        if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Tuple, ast.List, ast.Set, ast.Dict)):  # fmt: skip
            return all(
                self.is_number(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)
            )
        return False

    def is_own(self, node: ast.expr) -> bool:
        """Whether what a name stands for, of which this is an item, was made in the scope."""
        while isinstance(node, ast.Subscript):
            node = node.value
        values = self.named.get(node.id, [None]) if isinstance(node, ast.Name) else [None]
        return all(isinstance(value, _MADE) for value in values)

    def _name(self, name: str) -> bool:
        if name not in self.known:
            self.known[name] = True  # of names bound to each other the rest decides
            values = self.values.get(name, [None])
            self.known[name] = all(value is not None and self.is_number(value) for value in values)
        return self.known[name]

    def _call(self, call: ast.Call) -> bool:
        func = call.func
        if isinstance(func, ast.Attribute):
            return func.attr in _READS or (isinstance(func.value, ast.Name) and func.value.id in _HOST)
        if not isinstance(func, ast.Name):
            return False
        return func.id in _NUMBERS or (func.id in _OF_NUMBERS and all(map(self.is_number, call.args)))


def _read(scope: ast.AST) -> set[ast.AST]:
    """Names that stand where only the host reads them: `total.item()`, `float(total)`, in a text."""
    found: set[ast.AST] = set()
    for part in ast.walk(scope):
        if (
            isinstance(part, ast.Call)
            and isinstance(part.func, ast.Name)
            and part.func.id in {*_NUMBERS, "print"}
        ):
            found.update(part.args)
        elif (
            isinstance(part, ast.Attribute) and part.attr in {*_READS, "shape", "ndim", "dtype", "device"}
        ) or isinstance(part, ast.FormattedValue):
            found.add(part.value)
    return found


def _bound_anew(tree: ast.Module, chosen: ast.stmt, load: ast.Name) -> bool:
    """Whether a name that is read outside has always been bound again since `chosen` ran."""
    mine, theirs = around(tree, chosen), around(tree, load)
    common = sum(one[0] is other[0] for one, other in zip(mine, theirs))
    if not common or len(theirs) < common:
        return False
    block, at = theirs[common - 1]
    index = mine[common - 1][1]
    if at == index:
        return False
    heads = [one[position] for one, position in theirs[common - 1 :]]
    if any(_is_local(head, load.id) for head in heads):
        return True
    called = any(isinstance(head, _FUNCTIONS) for head in heads)
    looped = any(isinstance(one[position], (ast.For, ast.While)) for one, position in mine[: common - 1])
    if at < index and not called and not looped:
        return True  # it was read before
    candidates = [] if called else block[:at] if index > at else block[index + 1 : at]
    for inner, position in theirs[common:]:
        candidates = [*candidates, *inner[:position]]
    return any(_binds(statement, load.id) for statement in candidates) or any(
        isinstance(head, (ast.For, ast.AsyncFor))
        and not any(part is load for part in ast.walk(head.iter))
        and _names(head.target, load.id)
        for head in heads
    )


def _is_local(function: ast.stmt, name: str) -> bool:
    """Whether a function has a name of its own that is spelled alike."""
    if not isinstance(function, _FUNCTIONS):
        return False
    parts = list(ast.walk(function))
    if any(isinstance(part, (ast.Global, ast.Nonlocal)) and name in part.names for part in parts):
        return False
    return any(
        (isinstance(part, ast.arg) and part.arg == name)
        or (isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Store))
        for part in parts
    )


def _binds(statement: ast.stmt, name: str) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return any(_names(target, name) for target in targets)


def _names(target: ast.expr, name: str) -> bool:
    if isinstance(target, (ast.Tuple, ast.List)):
        return any(_names(each, name) for each in target.elts)
    return isinstance(target, ast.Name) and target.id == name
