"""Which parts of a statement carry a graph into what it keeps."""

from __future__ import annotations

import ast

from gradguard.engine.domain.events import GraphKept
from gradguard.engine.domain.tensors import Place
from gradguard.findings import Applicability, FixPlan, spans_text
from gradguard.fixplans.blocks import may_be_plain, settled
from gradguard.fixplans.model import Context
from gradguard.fixplans.safety import asks, differentiated_again, keeper
from gradguard.source.blocks import gathered, union

_DISPLAYS = (ast.Tuple, ast.List, ast.Set, ast.Dict)
_WITHOUT_GRAPH = (*_DISPLAYS, ast.Name, ast.Lambda, ast.BoolOp)
_NUMBERS = frozenset({"float", "int", "bool", "str", "len", "repr"})


def detached(
    context: Context,
    title: str,
    applicability: Applicability,
    statement: ast.stmt | None,
    place: Place,
    name: str,
    *,
    accumulates: bool = False,
    many: bool = False,
    inside: bool = False,
    fed: tuple[str, ...] | None = None,
) -> list[FixPlan]:
    """Detach what a statement accumulates or stores; no plan where it does not name the tensors.

    name: what is kept. many: that is a tuple of tensors. inside: what is stored only holds the tensor, so that
    the parts of a display alone may be one. fed: names of the values with a graph that are accumulated, empty
    for one without a name.
    """
    found = _accumulated(statement, name) if accumulates else _stored(statement, name)
    if len(found) > 1 and fed is not None:
        if "" in fed:
            return []  # one of the terms is it, and nobody knows which
        found = [part for part in found if any(_mentions(part, each) for each in fed)]
    if inside and statement is not None:
        shown = {
            id(part) for each in ast.walk(statement) if isinstance(each, _DISPLAYS) for part in _parts(each)
        }
        found = [part for part in found if id(part) in shown]
    if not found or any(may_be_plain(context, part, place) for part in found):
        return []
    spans = [context.analysis.span(Place(place.path, part)) for part in found]
    also = spans_text(*spans[1:])
    data = {"name": name, "also": also, "many": "1" if many else ""}
    given = {key: value for key, value in data.items() if value and (many or key != "name")}
    return context.plan("detach-kept", title, applicability, found[0], place, **given)


def without_graph(context: Context, event: GraphKept) -> Applicability:
    """Whether the program stays what it is when what a statement keeps has no graph."""
    again = differentiated_again(context, event.place, keeper(event.statement))
    if asks(context) or again or event.trained or event.shared or _identified(context, event):
        return Applicability.UNSAFE
    return settled(context, Applicability.SAFE)


def _identified(context: Context, event: GraphKept) -> bool:
    """Whether any code asks if something is the very tensor that is kept, by its name or by what keeps it."""
    kept = keeper(event.statement)
    names = {event.text, ast.unparse(kept) if kept is not None else ""}
    tree = context.analysis.sources[event.place.path].tree
    return not names.isdisjoint(gathered(tree, "_gradguard_identified", _compared, union))


def _compared(statement: ast.stmt) -> frozenset[str]:
    """What a statement asks by `is` to be another object: names, or what parts are taken out of."""
    found = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Compare) and any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            sides = [node.left, *node.comparators]
            if not any(isinstance(side, ast.Constant) for side in sides):
                found |= {
                    ast.unparse(side.value if isinstance(side, ast.Subscript) else side) for side in sides
                }
    return frozenset(found)


def _accumulated(statement: ast.stmt | None, name: str) -> list[ast.expr]:
    if isinstance(statement, ast.AugAssign):
        return _terms(statement.value, ast.unparse(statement.target))
    if isinstance(statement, ast.Assign):
        if isinstance(statement.targets[0], ast.Subscript) and isinstance(statement.value, ast.Name):
            return [statement.value]  # `losses[step] = loss`
        targets = [ast.unparse(target) for target in statement.targets]
        target = next((each for each in targets if _mentions(statement.value, each)), None)
        return _terms(statement.value, target) if target is not None else _elements(statement.value, name)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return _argument(statement.value, name) if ast.unparse(statement.value.func).endswith("_") else []
    return []


def _stored(statement: ast.stmt | None, name: str) -> list[ast.expr]:
    if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
        return _elements(statement.value, name) if statement.value is not None else []
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return _argument(statement.value, name)
    return []


def _argument(call: ast.Call, name: str) -> list[ast.expr]:
    """What the last argument that carries a graph gives away."""
    values = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg is not None)]
    return next((found for value in reversed(values) if (found := _elements(value, name))), [])


def _elements(value: ast.expr, name: str) -> list[ast.expr]:
    """The value, or those parts of a display that carry the graph."""
    if isinstance(value, ast.IfExp):
        return [*_elements(value.body, name), *_elements(value.orelse, name)]
    if isinstance(value, ast.BinOp) and any(isinstance(s, _DISPLAYS) for s in (value.left, value.right)):
        # `losses + [loss]`: what one side adds.
        sides = [side for side in (value.left, value.right) if isinstance(side, _DISPLAYS)]
        return [part for side in sides for part in _elements(side, name)]
    if not isinstance(value, _DISPLAYS):
        # Another name than the tensor's own holds something that contains it.
        contains = isinstance(value, (ast.Name, ast.Attribute)) and ast.unparse(value) != name
        return [] if _plain(value) or contains or isinstance(value, (ast.Starred, ast.BoolOp)) else [value]
    parts = _parts(value)
    exact = [part for part in parts if ast.unparse(part) == name]
    near = exact or [part for part in parts if name and _mentions(part, name) and not _plain(part)]
    rest = [part for part in parts if not _plain(part)]
    return near or (rest if len(rest) == 1 and not isinstance(rest[0], _WITHOUT_GRAPH) else [])


def _parts(display: ast.expr) -> list[ast.expr]:
    values = display.values if isinstance(display, ast.Dict) else getattr(display, "elts", [])
    return [value.value if isinstance(value, ast.Starred) else value for value in values]


def _terms(value: ast.expr, target: str) -> list[ast.expr]:
    """Terms of a sum that do not contain what they are added to; of a product with a number, the other factor."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)) and _mentions(value, target):
        return [*_terms(value.left, target), *_terms(value.right, target)]
    if _mentions(value, target) or _literal(value):
        return [] if _literal(value) or _scaled(value, target) else [value]
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mult, ast.Div)):
        if _literal(value.left) and not _literal(value.right):
            return _terms(value.right, target)
        if _literal(value.right):
            return _terms(value.left, target)
    return [value]


def _scaled(value: ast.expr, target: str) -> bool:
    """`0.9 * target`: what is carried already has no graph once the other terms are detached."""
    if ast.unparse(value) == target:
        return True
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mult, ast.Div)):
        return _scaled(value.left, target) or _scaled(value.right, target)
    return False


def _literal(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _literal(node.operand)
    if isinstance(node, ast.BinOp):
        return _literal(node.left) and _literal(node.right)
    return isinstance(node, ast.Constant)


def _plain(node: ast.expr) -> bool:
    """Whether a value is no tensor with a graph, to the eye: a number, a text, what was detached."""
    if isinstance(node, ast.Call):
        func = node.func
        read = isinstance(func, ast.Attribute) and func.attr in ("item", "tolist", "detach")
        return read or (isinstance(func, ast.Name) and func.id in _NUMBERS)
    return _literal(node) or isinstance(node, ast.JoinedStr)


def _mentions(node: ast.expr, name: str) -> bool:
    return bool(name) and any(
        isinstance(part, ast.expr) and ast.unparse(part) == name for part in ast.walk(node)
    )
