"""Which lines a finding may stand on, found by taking writes away and running the rest under torch."""

from __future__ import annotations

import ast
import copy
import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from tests.fuzz.carried import Trail, binds, noted
from tests.fuzz.verdict import PATH, Verdict, calling_lines, judge, run

Edit = Callable[[ast.stmt], ast.stmt]

NO_WRITE = frozenset({"requires_grad_", "detach_"})
LIBRARIES = ("F", "torch", "nn", "nn.init", "nn.utils", "torch.nn.functional", "torch.nn.init")


def culprits(code: str, verdict: Verdict) -> set[int]:
    """Lines at which a finding about this error is right: all lines of the statements at fault.

    A write is at fault if the error goes when it writes nothing, or comes though it is the only write. Where the
    statement that raises may be the fault itself (all rules but GG101), its lines count too; for a second backward so
    do the backward that freed the graph and the assignments that carry it over.
    """
    program = Program(code)
    statements = program.writers()
    if verdict.outcome == "silent":
        return _silent(program, statements)
    found = _lines(s for s in statements if program.gone([s], verdict))
    if not found and verdict.rule in ("GG101", "GG103"):
        found = _lines(s for s in statements if program.alone(s, statements, verdict))
    if verdict.rule == "GG101":
        found = found or _together(statements, lambda some: program.gone(some, verdict))
        # The same backward may go through a freed graph as well.
        return found | program.carried(statements)
    found |= _at(program.tree, verdict.line)
    if verdict.rule == "GG107":
        # The call that hands an inference tensor to the op that must save it is as good a place.
        found |= {line for caller in calling_lines(code) for line in _at(program.tree, caller)}
    return found | program.carried([]) if verdict.rule == "GG203" else found


def needed(code: str, verdict: Verdict, lines: Iterable[int]) -> set[int]:
    """Those of the lines with a write that belongs to a smallest set of writes which still raises.

    Finer than `culprits`, where a write is also what makes an op save something.
    """
    program = Program(code)
    statements = program.writers()
    wanted = set(lines)
    asked = [s for s in statements if wanted & _lines([s])]
    return _lines(s for s in asked if program.needed(s, statements, verdict))


def _silent(program: Program, statements: list[ast.stmt]) -> set[int]:
    """Writes without which gradients are right, or which make them wrong alone.

    Empty if gradients differ without any write: then the two runs differ for another reason.
    """
    if program.judged(statements) != "ok":
        return set()
    found = _lines(s for s in statements if program.judged([s]) == "ok")
    if not found:
        found = _lines(
            s for s in statements if program.judged([o for o in statements if o is not s]) == "silent"
        )
    return found or _together(statements, lambda some: program.judged(some) == "ok")


class Program:
    """A program and its variants, in which some statements are edited; lines stay where they are."""

    def __init__(self, code: str) -> None:
        self.tree = ast.parse(code)
        self._places: dict[ast.stmt, tuple[list[ast.stmt], int]] = {}
        for node in ast.walk(self.tree):
            for _, block in ast.iter_fields(node):
                if isinstance(block, list):
                    self._places |= {s: (block, i) for i, s in enumerate(block) if isinstance(s, ast.stmt)}

    def writers(self) -> list[ast.stmt]:
        """Statements that may write a tensor, constructors left out."""
        functions = [n for n in self._places if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
        inside = {n for f in functions for n in ast.walk(f)}
        return [n for n in self._places if n not in inside and _writes(n)]

    def compiled(self, statements: Iterable[ast.stmt], edit: Edit) -> types.CodeType:
        """The program with these statements edited."""
        kept = [(s, *self._places[s]) for s in statements]
        try:
            for statement, block, i in kept:
                edited = ast.copy_location(edit(copy.deepcopy(statement)), statement)
                block[i] = ast.fix_missing_locations(edited)
            return compile(self.tree, PATH, "exec")
        finally:
            for statement, block, i in kept:
                block[i] = statement

    def judged(self, statements: list[ast.stmt]) -> str:
        """What torch does when these statements write nothing."""
        return judge(self.compiled(statements, _neutral), HELPERS).outcome

    def gone(self, statements: list[ast.stmt], verdict: Verdict) -> bool:
        """Whether the program ends well, or by another error, when these statements write nothing."""
        after = run(self.compiled(statements, _neutral), names=HELPERS)[0]
        if after.outcome == "raises":
            return (after.rule, after.line) != (verdict.rule, verdict.line)
        return after.outcome == "ok"

    def alone(self, statement: ast.stmt, statements: list[ast.stmt], verdict: Verdict) -> bool:
        """Whether an error of this kind comes although all other statements write nothing."""
        others = [s for s in statements if s is not statement]
        after = run(self.compiled(others, _neutral), names=HELPERS)[0]
        return after.outcome == "raises" and after.rule == verdict.rule

    def needed(self, statement: ast.stmt, statements: list[ast.stmt], verdict: Verdict) -> bool:
        """Whether the write is left over when others are silenced, one by one, as long as the error comes."""

        def raises(silenced: list[ast.stmt]) -> bool:
            after = run(self.compiled(silenced, _neutral), names=HELPERS)[0]
            return after.outcome == "raises" and after.rule == verdict.rule

        silenced: list[ast.stmt] = []
        for other in reversed(statements):
            if other is not statement and raises([*silenced, other]):
                silenced.append(other)
        return not raises([*silenced, statement])

    def carried(self, statements: list[ast.stmt]) -> set[int]:
        """Lines that carry a freed graph into the backward that raises, when these statements write nothing."""
        binding = [s for s in self._places if binds(s)]
        silenced = set(statements)
        trail = Trail()

        def edit(node: ast.stmt) -> ast.stmt:
            quiet = _neutral(node) if any(_same_place(node, s) for s in silenced) else node
            return noted(quiet) if binds(quiet) else quiet

        code = self.compiled([*silenced.union(binding)], edit)
        with trail.watching():
            after = run(code, names=HELPERS | {"_seen": trail.seen})[0]
        return trail.lines if after.rule == "GG203" else set()


def _same_place(a: ast.stmt, b: ast.stmt) -> bool:
    return (a.lineno, a.col_offset) == (b.lineno, b.col_offset)


def _together(statements: list[ast.stmt], ends: Callable[[list[ast.stmt]], bool]) -> set[int]:
    """The last write that must go, with some before it, for the fault to go."""
    for count in range(2, len(statements) + 1):
        if ends(statements[:count]):
            return _lines([statements[count - 1]])
    return set()


def _lines(statements: Iterable[ast.stmt]) -> set[int]:
    return {n for s in statements for n in range(s.lineno, (s.end_lineno or s.lineno) + 1)}


def _at(tree: ast.Module, line: int | None) -> set[int]:
    """The lines of the innermost simple statement on a line."""
    if line is None:
        return set()
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or 0)]
    inner = min(nodes, key=lambda n: (n.end_lineno or 0) - n.lineno, default=None)
    return {line} if inner is None or hasattr(inner, "body") else _lines([inner])


# Writes


def _writes(node: ast.stmt) -> bool:
    """Whether a simple statement may write a tensor in place, by its look."""
    if isinstance(node, ast.AugAssign):
        return True
    if isinstance(node, ast.Assign) and any(_store(t) for t in node.targets):
        return True
    if not isinstance(node, (ast.Expr, ast.Assign, ast.Return)) or node.value is None:
        return False
    return any(_call_writes(inner) for inner in ast.walk(node.value))


def _store(target: ast.expr) -> bool:
    return isinstance(target, ast.Subscript) or (isinstance(target, ast.Attribute) and target.attr == "data")


def _call_writes(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and (_inplace(node) or _may_be_module(node))


def _inplace(node: ast.Call) -> bool:
    name = _name(node)
    if name.startswith("__i") or name == "load_state_dict" or (name == "step" and not node.args):
        return True
    if any(k.arg in ("out", "inplace") for k in node.keywords) and not (name[:1].isupper()):
        return True
    if _flag_given(node):
        return True
    return name.endswith("_") and not name.endswith("__") and name not in NO_WRITE


def _flag_given(node: ast.Call) -> bool:
    """`F.relu(x, 3)`: the parameter `inplace` given by position, true for whatever is truthy."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if owner is None or ast.unparse(owner) not in ("F", "nn.functional", "torch.nn.functional"):
        return False
    function = getattr(functional, _name(node), None)
    names = list(inspect.signature(function).parameters) if inspect.isfunction(function) else []
    place = names.index("inplace") if "inplace" in names else len(node.args)
    given = node.args[place] if place < len(node.args) else None
    return given is not None and not (isinstance(given, ast.Constant) and not given.value)


def _may_be_module(node: ast.Call) -> bool:
    """`self.fc(x)`, `model(x)`, `nn.ReLU(inplace=True)(x)`"""
    function = node.func
    if isinstance(function, ast.Call):
        return _name(function)[:1].isupper()
    while isinstance(function, (ast.Attribute, ast.Subscript)):
        function = function.value
    if not isinstance(function, ast.Name) or function.id in ("torch", "nn", "F", "print", "range", "super"):
        return False
    return function.id == "self" or (
        isinstance(node.func, ast.Name) and bool(node.args) and not function.id[0].isupper()
    )


def _name(node: ast.Call) -> str:
    function = node.func
    return (
        function.attr
        if isinstance(function, ast.Attribute)
        else function.id
        if isinstance(function, ast.Name)
        else ""
    )


def _neutral(node: ast.stmt) -> ast.stmt:
    """The statement without its write, so that later statements still run."""
    if isinstance(node, ast.AugAssign):
        if isinstance(node.target, ast.Name):
            value = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
            return ast.copy_location(ast.Assign([node.target], value), node)
        return ast.copy_location(ast.Pass(), node)
    assert isinstance(node, (ast.Assign, ast.Expr, ast.Return))
    if isinstance(node, ast.Assign) and any(_store(t) for t in node.targets):
        return ast.copy_location(ast.Pass(), node)
    if isinstance(node.value, ast.Call) and _inplace(node.value):
        name = _written_name(node.value)
        if name:
            node.value = _set_aside(node.value, name)
            return node
        if isinstance(node, ast.Expr):
            return ast.copy_location(ast.Pass(), node)
    assert node.value is not None
    node.value = _Harmless().visit(node.value)
    return node


def _written_name(call: ast.Call) -> str:
    """`y` in `y.exp_()` and `F.relu_(y)`; empty if the written tensor has no name of its own."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if owner is not None and ast.unparse(owner) not in LIBRARIES:
        return owner.id if isinstance(owner, ast.Name) else ""
    if any(k.arg == "out" for k in call.keywords):
        return ""
    first = call.args[0] if call.args else None
    return first.id if isinstance(first, ast.Name) else ""


def _set_aside(call: ast.Call, name: str) -> ast.expr:
    """`y.exp_()` as `(y := _aside(y, lambda y: y.exp_()))`."""
    write = ast.parse(f"lambda {name}: 0", mode="eval").body
    assert isinstance(write, ast.Lambda)
    write.body = call
    value = ast.Call(ast.Name("_aside", ast.Load()), [ast.Name(name, ast.Load()), write], [])
    return ast.NamedExpr(ast.Name(name, ast.Store()), value)


class _Harmless(ast.NodeTransformer):
    """`x.relu_()` works on a clone, modules run with their `inplace` flags off."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not _call_writes(node):
            return node
        if not _inplace(node):
            node.func = ast.Call(ast.Name("_quiet", ast.Load()), [node.func], [])
            return node
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if owner is not None and ast.unparse(owner) not in LIBRARIES:
            assert isinstance(node.func, ast.Attribute)
            node.func.value = _clone(owner)
        elif node.args:
            node.args[0] = _clone(node.args[0])
        return node


def _clone(node: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(node, "clone", ast.Load()), [], [])


def _quiet(function: Any) -> Any:
    """The same callable; one of torch's modules runs with every `inplace` flag off."""
    if not isinstance(function, nn.Module) or not type(function).__module__.startswith("torch."):
        return function

    def quiet(*args: Any, **kwargs: Any) -> Any:
        loud = [m for m in function.modules() if getattr(m, "inplace", False)]
        for m in loud:
            m.inplace = False  # type: ignore[assignment]
        try:
            return function(*args, **kwargs)
        finally:
            for m in loud:
                m.inplace = True  # type: ignore[assignment]

    return quiet


def _aside(tensor: Any, write: Callable[[Any], Any]) -> Any:
    """What the write gives on a clone, so that the op still saves what it saves.

    Where nothing is recorded there is nothing to save, and the tensor stays what it is: a parameter stays a leaf.
    """
    if not isinstance(tensor, torch.Tensor) or not torch.is_grad_enabled():
        return tensor
    if tensor.is_leaf and tensor.requires_grad:
        return tensor
    result = write(tensor.clone())
    return result if isinstance(result, torch.Tensor) and result.requires_grad else tensor


HELPERS = {"_quiet": _quiet, "_aside": _aside}
