"""Plans for backward calls: one for two, a flag less, a step behind them."""

from __future__ import annotations

import ast

from gradguard.engine.domain.events import RetainGraph, SavedTensorMutated, SecondBackward
from gradguard.engine.domain.tensors import Place
from gradguard.findings import Applicability, FixPlan, spans_text
from gradguard.fixplans.blocks import after, between, function_around, settled
from gradguard.fixplans.caught import caught
from gradguard.fixplans.detaching import detached
from gradguard.fixplans.model import Context
from gradguard.fixplans.safety import hooks, looks_into_graph
from gradguard.fixplans.sharing import graph_kept, stopped
from gradguard.rules.model import quoted
from gradguard.source.blocks import above
from gradguard.source.loops import alone


def graph_used_again(context: Context, event: SecondBackward) -> list[FixPlan]:
    """State is detached where it is put away, or behind the backward; backwards of one graph become one, or keep it."""
    carried = event.carried
    path = event.place.path
    tree = context.analysis.sources[path].tree
    if carried is None:
        one_file = event.first.path == path == event.second.path
        summed = _summed(context, event, tree) or _losses_summed(context, event, tree) if one_file else []
        return stopped(context, event) or [*summed, *graph_kept(context, event)]
    return _cut(context, event, carried, tree)


def _cut(context: Context, event: SecondBackward, carried: Place, tree: ast.Module) -> list[FixPlan]:
    """What a pass carries into the next, detached as it is held; no plan where that is not known of all of it."""
    node, behind = carried.node, event.second
    shapes = dict(event.shapes)
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Attribute, ast.Subscript)):
        held = shapes.get(ast.unparse(node.targets[0]), "tensor")
        if held not in ("tensor", "tuple/tensor"):
            return []
        title = f"Detach {quoted(event.text)}"
        many = held != "tensor"
        name = ast.unparse(node.value) if many else event.text
        return detached(context, title, Applicability.UNSAFE, node, carried, name, many=many)
    if behind.path != carried.path or function_around(tree, node) is not function_around(tree, behind.node):
        return []
    names = _carried_names(tree, node, behind.node, event.text, shapes)
    if not names:
        return []
    title = f"Detach {' and '.join(map(quoted, names))} after the backward"
    code = [detaching_code(name, shapes[name]) for name in names]
    data = {"code": "\n".join(code)}
    return context.plan("detach-after", title, Applicability.UNSAFE, behind.node, behind, **data)


def _carried_names(
    tree: ast.Module, node: ast.AST, behind: ast.AST, text: str, shapes: dict[str, str]
) -> list[str]:
    """What is carried: what the statement both reads and binds, else all that a pass reads before it binds it."""
    loop = next((one for one in above(tree, behind) if isinstance(one, (ast.For, ast.While))), None)
    passing = {
        part.id
        for one in ast.walk(loop or tree)
        if isinstance(one, (ast.For, ast.comprehension))
        for part in ast.walk(one.target)
        if isinstance(part, ast.Name)
    }
    statement = next((one for one in above(tree, node) if isinstance(one, ast.stmt)), None)
    if isinstance(statement, ast.Assign):
        bound = [_names(target, ast.Store) for target in statement.targets]
        read = _names(statement.value, ast.Load)
        own = [name for name in dict.fromkeys(n for one in bound for n in one) if name in read]
        if own and not passing.intersection(own):
            return own if all(name in shapes for name in own) else []
    if text in shapes and text not in passing and statement is not None:
        return [text]
    if loop is None:
        return []
    reads, binds = (_names(loop, context) for context in (ast.Load, ast.Store))
    return [
        name
        for name, held in shapes.items()
        if held != "tensor"
        and name in binds
        and name not in passing
        and name in reads
        and reads[name][0] <= binds[name][0]
    ]


def _names(node: ast.AST, context: type[ast.expr_context]) -> dict[str, tuple[int, int]]:
    """Names that are read, or bound, in a stretch of a program, and where that is first."""
    found: dict[str, tuple[int, int]] = {}
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, context):
            place = part.lineno, part.col_offset
            found[part.id] = min(found.get(part.id, place), place)
    return found


def detaching_code(name: str, held: str) -> str:
    """The statement that takes what a place holds out of its graph."""
    return f"{name} = {_detached(name, held.split('/'), 0)}"


def _detached(text: str, held: list[str], depth: int) -> str:
    kind, *inner = held
    if kind == "tensor":
        return f"{text}.detach()"
    each = _EACH[depth]
    if kind == "dict":
        return f"{{key: {_detached(each, inner, depth + 1)} for key, {each} in {text}.items()}}"
    made = f"{_detached(each, inner, depth + 1)} for {each} in {text}"
    return f"tuple({made})" if kind == "tuple" else f"[{made}]"


_EACH = ("each", "part", "piece")


def _summed(context: Context, event: SecondBackward, tree: ast.Module) -> list[FixPlan]:
    """`(a + b).backward()` for two backwards that follow one another."""
    found = between(tree, event.first.node, event.second.node)
    if found is None or found[2] != found[1] + 1:
        return []
    block, one, two = found
    source = context.analysis.sources[event.first.path]
    if not _is_plain(block[one], event.first.node) or not _is_plain(block[two], event.second.node):
        return []
    if not alone(source, block, one):
        return []
    span = context.analysis.span(event.second)
    second = spans_text(span)
    together = not event.apart and not hooks(context) and not caught(context, event.second)
    return context.plan(
        "sum-backwards",
        "Sum both and go backward once",
        Applicability.SAFE if together else Applicability.UNSAFE,
        event.first.node,
        event.first,
        second=second,
    )


def _losses_summed(context: Context, event: SecondBackward, tree: ast.Module) -> list[FixPlan]:
    """`sum(losses).backward()` for `for loss in losses: loss.backward()`, where a backward frees what they share."""
    call = event.second.node
    loop = next((one for one in above(tree, call) if isinstance(one, ast.For)), None)
    if not event.losses or loop is None or loop.orelse or len(loop.body) != 1:
        return []
    match loop:
        case ast.For(ast.Name(each), iterable, [ast.Expr(value)]) if value is call:
            pass
        case _:
            return []
    if not _is_plain(loop.body[0], call) or ast.unparse(call).partition(".")[0] != each:
        return []
    if isinstance(iterable, ast.Call) and ast.unparse(iterable.func) in ("enumerate", "zip"):
        return []
    title = "Sum them and go backward once"
    return context.plan("sum-losses", title, Applicability.UNSAFE, loop, event.second)


def _is_plain(statement: ast.stmt, node: ast.AST) -> bool:
    """`loss.backward()` and nothing else, whatever becomes of the graph."""
    return (
        isinstance(statement, ast.Expr)
        and statement.value is node
        and isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "backward"
        and not node.args
        and all(keyword.arg == "retain_graph" for keyword in node.keywords)
    )


def retained(context: Context, event: RetainGraph) -> list[FixPlan]:
    """The flag dropped where nothing can need it."""
    if not event.certain:
        return []
    node = event.place.node
    if not isinstance(node, ast.Call):
        return []
    data: dict[str, str] = {}
    if not any(keyword.arg == "retain_graph" for keyword in node.keywords):
        name = ast.unparse(node.func)
        method = isinstance(node.func, ast.Attribute) and not name.endswith(
            ("autograd.backward", "autograd.grad")
        )
        index = 1 if method else 3 if name.endswith("grad") else 2
        if index >= len(node.args) or any(isinstance(arg, ast.Starred) for arg in node.args):
            return []  # it comes with `**options`
        data["position"] = str(index)
    shared = event.shared or looks_into_graph(context)
    safe = settled(context, Applicability.UNSAFE if shared else Applicability.SAFE)
    return context.plan("drop-retain-graph", "Drop `retain_graph=True`", safe, node, event.place, **data)


def stepped(context: Context, event: SavedTensorMutated) -> list[FixPlan]:
    """What still needs the old values is computed behind the step; a graph of an earlier pass is cut off.

    The step is never moved behind the other backward: it would take that one's gradients, too.
    """
    if event.carried is not None:
        return graph_used_again(context, event.carried)
    step, backward = event.write.place, event.backward
    tree = context.analysis.sources[step.path].tree
    if event.saved.place.path != step.path or backward is None or backward.path != step.path:
        return []
    found = between(tree, event.saved.place.node, step.node)
    if found is None:
        return []
    block, made, at = found
    statement = block[made]
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return []
    name = statement.targets[0].id
    reads = {part.id for part in ast.walk(statement.value) if isinstance(part, ast.Name)}
    for other in block[made + 1 : at + 1]:
        for part in ast.walk(other):
            if isinstance(part, ast.Name) and (
                part.id == name or (part.id in reads and not isinstance(part.ctx, ast.Load))
            ):
                return []
    return after(context, statement, event.saved.place, step, f"Compute {quoted(name)} after the step")
