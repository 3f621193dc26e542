"""Which fixes a finding about a write offers, and which of them keep the program's numbers.

The tape decides. A write may become a new tensor if the rebound name alone leads to the written memory
(`Analysis.sharing`); a clone of what an op saves changes nothing for anybody else, so it is safe wherever the
saved value can be named.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gradguard.engine.domain.events import SavedTensorMutated, WriteFact
from gradguard.engine.domain.sharing import ELSEWHERE, NOBODY, Sharing
from gradguard.engine.domain.tensors import Place
from gradguard.findings import Applicability, FixPlan, spans_text
from gradguard.fixplans.blocks import after, function_around, may_be_plain
from gradguard.fixplans.model import Context
from gradguard.fixplans.safety import reads_flags, sees_ops
from gradguard.ops import table
from gradguard.ops.table import Table
from gradguard.rules.model import quoted
from gradguard.source.blocks import around, gathered, union
from gradguard.source.loops import fills_rows

HARMLESS = frozenset(
    {
        "dtype",
        "untyped",
        "shape",
        "index",
        "mask",
        "value",
        "number",
        "layout",
        "view",
        "whole",
        "truth",
        "alone",
    }
)
"""Reasons that do not matter to a new tensor, or only to how it is spelled."""
_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)
_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def ways_out(context: Context, event: SavedTensorMutated) -> list[FixPlan]:
    """Fixes for a write to a saved tensor, the ones that keep its numbers first."""
    plans = [*rewritten(context, event.write), *saved_cloned(context, event)]
    if event.write.statement is not None:
        plans += after(
            context, event.write.statement, event.write.place, event.backward, "Write after the backward"
        )
    return sorted(plans, key=lambda plan: plan.applicability is not Applicability.SAFE)


def rewritten(context: Context, write: WriteFact) -> list[FixPlan]:
    """A new tensor in place of the write."""
    flag = without_flag(context, write)
    if flag:
        return flag
    node, statement = write.place.node, write.statement
    target = written(write)
    if (
        target is None
        or not isinstance(statement, _SIMPLE)
        or write.kind in ("numpy", "data", "step", "collective", "buffers")
    ):
        return []
    if not _directly(statement, node):
        return []
    sharing = context.analysis.sharing.get(node)
    if sharing is None:
        return []
    spelled = [ast.unparse(part) for part in _peeled(target)]
    name = next((text for text in spelled if text in sharing.slots), "")
    if write.kind == "augmented" and not sharing.slots and isinstance(target, ast.Name):
        name = target.id  # the statement binds it, whatever else it was bound to on the way
    if not name and (sharing.slots or write.kind == "augmented"):
        return []
    # An operator binds what it wrote anew as it is.
    own = {"guarded"} if write.kind == "augmented" and name == spelled[0] else set()
    safe = sharing.slots <= {name} and sharing.reasons <= HARMLESS | own and not context.analysis.limits
    safe = (
        safe and not sees_ops(context.analysis) and not _lies_otherwise(context, write.place, name, sharing)
    )
    applicability = Applicability.SAFE if safe else Applicability.UNSAFE
    if not name and isinstance(node, ast.Call) and not _says_it_writes(node):
        return []  # a function that writes what it is given cannot be made to give a new tensor here
    if not name and write.op.rstrip("_") in table.UNLIKE:
        return []  # nor can a value without a name be cloned first
    if write.kind in ("op", "augmented", "out") and (not name or name == spelled[0]):
        form = {"form": "clone"} if "dtype" in sharing.reasons else {}
        if form and may_be_plain(context, target, write.place):
            return []
        title = f"Write {quoted(name or write.text)} out of place"
        return context.plan("out-of-place", title, applicability, node, write.place, name=name, **form)
    if not name or not _assignable(name):
        return []
    return [
        *_put(context, write, name, sharing, applicability),
        *context.plan(
            "clone-before",
            f"Clone {quoted(name)} before the write",
            applicability,
            node,
            write.place,
            name=name,
        ),
    ]


def _lies_otherwise(context: Context, place: Place, name: str, sharing: Sharing) -> bool:
    """Whether the program asks how the tensor lies in memory, which a new one may answer otherwise."""
    asked = _LIE if "view" in sharing.reasons else frozenset({"_version"})
    tree = context.analysis.sources[place.path].tree
    questions = {(attribute, name) for attribute in asked}
    return not questions.isdisjoint(gathered(tree, "_gradguard_lies", _questions, union))


def _questions(statement: ast.stmt) -> frozenset[tuple[str, str]]:
    """What a statement asks of memory, and whose."""
    return frozenset(
        (part.attr, ast.unparse(part.value))
        for part in ast.walk(statement)
        if isinstance(part, ast.Attribute) and part.attr in _LIE
    )


_LIE = frozenset({"_version", "_base", "_is_view", "stride", "storage_offset", "is_contiguous", "as_strided"})


def made_anew(context: Context, place: Place, text: str, kind: str = "") -> list[FixPlan]:
    """A new tensor for a write that others are meant to see: unsafe. `kind`: another plan than the usual ones."""
    node = place.node
    if isinstance(node, ast.Assign):
        target: ast.expr | None = node.targets[0]
    elif isinstance(node, ast.AugAssign) or (isinstance(node, ast.Call) and _says_it_writes(node)):
        target = _receiver(ast.parse(text, mode="eval").body) if text and "…" not in text else None
    else:
        target = None
    part = isinstance(target, ast.Subscript)
    while isinstance(target, ast.Subscript):
        target = target.value
    if not isinstance(target, (ast.Name, ast.Attribute)) or (isinstance(node, ast.Assign) and not part):
        return []
    name = ast.unparse(target)
    if part:
        title = f"Clone {quoted(name)} before the write"
        return context.plan("clone-before", title, Applicability.UNSAFE, node, place, name=name)
    if kind and not isinstance(target, ast.Name):
        return []
    title = f"Write {quoted(name)} out of place"
    return context.plan(kind or "out-of-place", title, Applicability.UNSAFE, node, place, name=name)


def _says_it_writes(call: ast.Call) -> bool:
    """Whether the call itself is the write: `add_`, `out=`, `inplace=True`; not a function that makes it."""
    name = ast.unparse(call.func).rpartition(".")[2]
    flags = any(keyword.arg in ("out", "inplace") for keyword in call.keywords)
    given = any(isinstance(arg, ast.Constant) and arg.value is True for arg in call.args)
    return flags or given or (name.endswith("_") and not name.startswith("_"))


def copied(context: Context, write: WriteFact) -> list[FixPlan]:
    """`.copy()` where a written NumPy array is taken from its tensor by name."""
    tree = context.analysis.sources[write.place.path].tree
    around = function_around(tree, write.place.node) or tree
    name = root_name(write.text)
    for node in ast.walk(around):
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == name for target in node.targets):
            value = node.value
            if isinstance(value, ast.Call) and ast.unparse(value.func).endswith(".numpy"):
                title = f"Let {quoted(name)} have memory of its own"
                return context.plan("copy-array", title, Applicability.UNSAFE, value, write.place)
    return []


def root_name(text: str) -> str:
    """The name that an expression starts with; empty where it starts with none."""
    found = re.match(r"[^\W\d]\w*", text)
    return found.group() if found else ""


def without_flag(context: Context, write: WriteFact) -> list[FixPlan]:
    """`inplace=True` dropped where the modules are made that write at this place."""
    makers = {
        context.analysis.span(each.maker): each.maker
        for each in [write, *(event.write for event in context.events.writes_at(write.place))]
        if each.maker is not None and isinstance(each.maker.node, ast.Call)
    }
    if not all(_flagged(context.table, maker.node) for maker in makers.values()):
        return []
    if write.maker is None or any(maker.path != write.place.path for maker in makers.values()):
        return []
    first, *others = sorted(makers)
    sharing = [context.analysis.sharing.get(maker.node, NOBODY) for maker in makers.values()]
    safe = (
        not context.analysis.limits
        and not reads_flags(context.analysis)
        and all(not each.slots and each.reasons <= {*HARMLESS, "argument"} for each in sharing)
    )
    also = spans_text(*others)
    name = ast.unparse(makers[first].node.func)  # type: ignore[attr-defined]
    return context.plan(
        "drop-inplace",
        f"Make `{name}` work out of place",
        Applicability.SAFE if safe else Applicability.UNSAFE,
        makers[first].node,
        makers[first],
        **({"also": also} if also else {}),
    )


def _flagged(ops: Table, maker: ast.AST) -> bool:
    """Whether a module is made with its flag `inplace` in sight; others write what they keep themselves."""
    if not isinstance(maker, ast.Call):
        return False
    if any(keyword.arg == "inplace" for keyword in maker.keywords):
        return True
    last = maker.args[-1] if maker.args and not maker.keywords else None
    row = ops.module(f"torch.nn.{ast.unparse(maker.func).rpartition('.')[2]}")
    names = [param.name for param in row.init] if row is not None else []
    return (
        isinstance(last, ast.Constant)
        and last.value is True
        and names[len(maker.args) - 1 :][:1] == ["inplace"]
    )


def _put(
    context: Context, write: WriteFact, name: str, sharing: Sharing, applicability: Applicability
) -> list[FixPlan]:
    """`y[mask] = 0.0` with `masked_fill`, `y[mask] = z[mask]` with `torch.where`, `y[i] = v` with `index_put`."""
    statement = write.statement
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or write.kind != "setitem":
        return []
    target, value = statement.targets[0], statement.value
    if not isinstance(target, ast.Subscript) or ast.unparse(target.value) != name:
        return []
    stacked = _stacked(context, write, name)
    if any(not isinstance(part, _QUIET) for part in ast.walk(target.slice)):
        return stacked  # the order in which calls are made would change
    how = ""
    if "mask" not in sharing.reasons or _compares(target.slice, name):
        same = isinstance(value, ast.Subscript) and ast.unparse(value.slice) == ast.unparse(target.slice)
        how = "masked-fill" if _number(value) else "where" if same and "dtype" not in sharing.reasons else ""
    if how:
        if how == "where" and "layout" in sharing.reasons:  # the new tensor would lie as the mask does
            applicability = Applicability.UNSAFE
        title = f"Fill a new {quoted(name)} with `{'torch.where' if how == 'where' else 'masked_fill'}`"
        made = context.plan("masked-write", title, applicability, statement, write.place, name=name, how=how)
    elif "index" not in sharing.reasons and not {"value", "number"} <= sharing.reasons:
        title = f"Put the values into a new {quoted(name)} with `index_put`"
        data = {"name": name} if "number" in sharing.reasons else {"name": name, "number": "yes"}
        made = context.plan("index-put", title, applicability, statement, write.place, **data)
    else:
        made = []
    return [*made, *stacked]


_QUIET = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Tuple, ast.Compare, ast.UnaryOp, ast.BinOp, ast.expr_context, ast.cmpop, ast.unaryop, ast.operator)  # fmt: skip
"""What calls nothing, as far as a program that indexes tensors goes."""


def _compares(index: ast.expr, name: str) -> bool:
    """Whether an index compares the tensor with numbers, so that it is a mask of its own shape."""
    if not isinstance(index, ast.Compare):
        return False
    sides = [index.left, *index.comparators]
    own = [ast.unparse(side) == name for side in sides]
    return sum(own) == 1 and all(mine or _number(side) for mine, side in zip(own, sides))


def _stacked(context: Context, write: WriteFact, name: str) -> list[FixPlan]:
    """Rows written one by one in a loop, collected and stacked instead."""
    title = f"Collect the rows of {quoted(name)} and stack them"
    if write.statement is None:
        return []
    for block, index in around(context.analysis.sources[write.place.path].tree, write.statement):
        loop = block[index]
        if not isinstance(loop, ast.For) or write.statement not in loop.body or not index:
            continue
        before = block[index - 1]
        if not isinstance(before, ast.Assign) or not fills_rows(loop, name, before.value):
            continue
        if [ast.unparse(target) for target in before.targets] == [name]:
            span = context.analysis.span(Place(write.place.path, before))
            made = spans_text(span)
            return context.plan(
                "stack-rows", title, Applicability.UNSAFE, write.statement, write.place, name=name, made=made
            )
    return []


def _number(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant) and isinstance(inner.value, (int, float))


def saved_cloned(context: Context, event: SavedTensorMutated) -> list[FixPlan]:
    """A clone for every op that saved what this write changes; none where one of them cannot be given one."""
    places: dict[ast.AST, Place] = {}
    first: SavedTensorMutated | None = None
    for other in context.events.writes_at(event.write.place):
        if not isinstance(other, SavedTensorMutated):
            continue
        expr = clonable(context, other)
        if expr is None or other.saved.place.path != event.write.place.path:
            return []
        if may_be_plain(context, expr, other.saved.place):
            return []
        places[expr] = other.saved.place
        first = first or other
    if not places:
        return []
    spans = sorted(context.analysis.span(Place(place.path, node)) for node, place in places.items())
    op, text = event.saved.op, event.saved.text or event.write.text
    title = f"Give `{op}` a clone of {quoted(text)}"
    if event.saved.role.startswith("result"):
        title = f"Clone the result of `{op}`"
    also = spans_text(*spans[1:])
    node = next(
        node for node, place in places.items() if context.analysis.span(Place(place.path, node)) == spans[0]
    )
    # An op that finds in its operand what it has just written computes something else from a clone of it.
    sharing = context.analysis.sharing
    reread = any(sharing.get(place.node, NOBODY).reasons & {"reread", "overlap"} for place in places.values())
    told = any(_shows_its_text(context, place, node) for node, place in places.items())
    unlike = reread or told or sees_ops(context.analysis)
    safe = Applicability.UNSAFE if unlike else Applicability.SAFE
    return context.plan("clone", title, safe, node, places[node], **({"also": also} if also else {}))


def _shows_its_text(context: Context, place: Place, node: ast.AST) -> bool:
    """Whether an expression stands in `f"{...=}"`, which shows how it is written, or may."""
    tree = context.analysis.sources[place.path].tree
    return node in gathered(tree, "_gradguard_shown", _shown, union)


def _shown(statement: ast.stmt) -> frozenset[ast.AST]:
    """What stands in a text behind an equals sign."""
    return frozenset(
        part
        for text in ast.walk(statement)
        if isinstance(text, ast.JoinedStr)
        for before, value in zip(text.values, text.values[1:])
        if isinstance(before, ast.Constant) and str(before.value).rstrip().endswith("=")
        for part in ast.walk(value)
    )


def clonable(context: Context, event: SavedTensorMutated) -> ast.expr | None:
    """The expression whose clone the op could save instead; None where there is none."""
    saved = event.saved
    node, expr = saved.place.node, saved.expr
    if not isinstance(expr, ast.expr) or isinstance(expr, (ast.List, ast.Tuple, ast.ListComp, ast.Starred)):
        return None
    if saved.role.startswith("result"):
        fresh = node not in context.analysis.sharing and event.write.place.node is not node
        return expr if saved.role == "result" and expr is node and fresh else None
    if saved.role in ("indices", "mask") and not isinstance(expr, ast.Name):
        return None
    if saved.role.startswith(("self.", "running")) or expr is node:
        return None
    if node in context.analysis.sharing and saved.role in ("self", "input"):
        return None
    return expr if any(part is expr for part in ast.walk(node)) else None


def written(write: WriteFact) -> ast.expr | None:
    """The expression that names the written tensor."""
    node = write.place.node
    if isinstance(node, ast.AugAssign):
        return node.target
    if isinstance(node, ast.Assign):
        return next(
            (t for t in node.targets if isinstance(t, ast.Subscript) and _spells(t, write.text)), None
        )
    if not isinstance(node, ast.Call):
        return None
    if write.kind == "out":
        return next((keyword.value for keyword in node.keywords if keyword.arg == "out"), None)
    func = node.func
    if isinstance(func, ast.Attribute) and func.attr == write.op and _spells(func.value, write.text):
        return _receiver(func.value)
    first = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "input"), None)
    return first if first is not None and _spells(first, write.text) else None


def _receiver(node: ast.expr) -> ast.expr:
    """`y` of `y.mul_(2)` in `y.mul_(2).add_(1)`."""
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr.endswith("_")
        and not node.func.attr.startswith("_")
    ):
        node = node.func.value
    return node


def _spells(node: ast.expr, text: str) -> bool:
    spelled = " ".join(ast.unparse(node).split())
    return spelled == text or (text.endswith("…") and spelled.startswith(text[:-1]))


def _peeled(node: ast.expr) -> Iterator[ast.expr]:
    """An expression, and what is left of it without its last subscript, attribute or method call, and so on."""
    while True:
        yield node
        if isinstance(node, (ast.Subscript, ast.Attribute)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return


def _assignable(name: str) -> bool:
    return ELSEWHERE not in name and not name.endswith(")")


def _directly(statement: ast.stmt, node: ast.AST) -> bool:
    """Whether the statement's own scope evaluates the node: not a lambda's or a comprehension's."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        one = waiting.pop()
        if one is node:
            return True
        if not isinstance(one, _SCOPES):
            waiting.extend(ast.iter_child_nodes(one))
    return False
