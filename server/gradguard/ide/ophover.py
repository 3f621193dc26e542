"""The hover on an operation: what backward needs of this very call, and what may still be written.

Facts come from the op table, with the names that stand on the line in place of the table's roles.
"""

from __future__ import annotations

import ast
import copy
import re
from dataclasses import dataclass, field

from gradguard.findings import Span
from gradguard.ide import modulehover
from gradguard.ide.analysis import Analysis
from gradguard.ide.nodes import At, dotted, imports
from gradguard.ide.wording import Wording, listed
from gradguard.ops import conditions, table
from gradguard.ops.formulas import readable
from gradguard.ops.model import AliasKind, Condition, Form, Kind, Op
from gradguard.source.printable import quotable

_PLAIN_TYPES = (str, bytes, int, float, list, tuple, dict, set, frozenset)
_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.USub: "neg", ast.Invert: "invert",
}  # fmt: skip
_SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
}  # fmt: skip
_NO_FORMULA = "not implemented"
_SIMPLE = re.compile(r"[\w.\[\]]+")
_WORD = re.compile(r"[A-Za-z_]\w*")
_LONGEST = 40
_LONGEST_FORMULA = 160


@dataclass(frozen=True, slots=True)
class About:
    """Markdown about a stretch of the program."""

    text: str
    span: Span


@dataclass(slots=True)
class Use:
    """One call of an op: which text stands for which role."""

    shown: str
    """The name to show."""
    arguments: list[ast.expr]
    keywords: dict[str, ast.expr]
    result: str = ""
    """What the result is assigned to."""
    names: dict[str, str] = field(default_factory=dict)


def hover(analysis: Analysis, at: At, wording: Wording) -> About | None:
    """What is said about the op under the cursor; None where there is none."""
    source = analysis.source
    known = table.load(analysis.settings.release)
    bound = imports(source.tree)
    found = _operator(at) or _called(at, bound)
    if found is None or (known.module(found[0]) is None and known.op(found[0]) is None):
        text = modulehover.of_instance(at, source.tree, known, bound, wording)
        if text:
            return About(text, source.span(at.node))
    if found is None:
        return None
    name, use, node = found
    if name == "Tensor.backward":
        return About(_backward_text(use, wording), source.span(node))
    module = known.module(name)
    if module is not None:
        return About(modulehover.of_class(module, use.shown, wording), source.span(node))
    op = known.op(name)
    if op is None or not op.forms:
        return None
    use.result = _target(at)
    form = choose(op, use)
    return About(_text(op, form, use, wording), source.span(node))


def choose(op: Op, use: Use) -> Form:
    """The form that torch would run for these arguments, as far as their shape on the line tells."""
    for form in op.forms:
        if _fits(form, use):
            return form
    return op.forms[0]


def _operator(at: At) -> tuple[str, Use, ast.AST] | None:
    node = at.node
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        name = _OPERATORS[type(node.op)]
        return f"operator.{name}", Use(_short(node), [node.left, node.right], {}), node
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return f"operator.{_OPERATORS[type(node.op)]}", Use(_short(node), [node.operand], {}), node
    if isinstance(node, ast.AugAssign) and type(node.op) in _OPERATORS:
        shown = f"{_short(node.target)} {_sign(node.op)}= {_short(node.value)}"
        return f"operator.i{_OPERATORS[type(node.op)]}", Use(shown, [node.target, node.value], {}), node
    return None


def _called(at: At, bound: dict[str, str]) -> tuple[str, Use, ast.AST] | None:
    call = at.call()
    func = call.func if call is not None else at.node
    keywords = {each.arg: each.value for each in call.keywords if each.arg} if call else {}
    arguments = [each for each in call.args if not isinstance(each, ast.Starred)] if call else []
    public = dotted(func, bound)
    if public is not None:
        return public, Use(public, arguments, keywords), func
    if call is None or not isinstance(func, ast.Attribute) or at.node is not func:
        return None  # the cursor is on what the method is called on
    if any(hasattr(each, func.attr) for each in _PLAIN_TYPES) or _constructs(func.value):
        return None
    shown = f"{_short(func.value)}.{func.attr}"
    return f"Tensor.{func.attr}", Use(shown, [func.value, *arguments], keywords), func


def _constructs(node: ast.expr) -> bool:
    """Whether an expression makes an object of a class, as names go: `Net().to(device)` is no op on a tensor."""
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return bool(name[:1].isupper())


def _fits(form: Form, use: Use) -> bool:
    positional = [each for each in form.params if not each.keyword_only]
    if len(use.arguments) > len(positional):
        # Sizes may be given one by one: `x.view(2, 3)`.
        if not (positional and positional[-1].kind is Kind.INTS):
            return False
    names = {each.name for each in form.params}
    if not use.keywords.keys() <= names:
        return False
    given = {each.name for each in positional[: len(use.arguments)]} | use.keywords.keys()
    if any(each.default is None and each.name not in given for each in form.params):
        return False
    pairs = [
        *zip(positional, use.arguments),
        *((p, use.keywords[p.name]) for p in form.params if p.name in use.keywords),
    ]
    return all(_accepts(param.kind, argument) for param, argument in pairs)


def _accepts(kind: Kind, argument: ast.expr) -> bool:
    if not isinstance(argument, ast.Constant):
        return True
    value = argument.value
    if kind in (Kind.TENSOR, Kind.TENSORS):
        return value is None
    if kind in (Kind.INT, Kind.INTS):
        return isinstance(value, int)
    if kind is Kind.STR:
        return isinstance(value, str)
    return True


def _text(op: Op, form: Form, use: Use, wording: Wording) -> str:
    names = _names(form, use, wording)
    saved: list[tuple[str, str]] = []
    for each in form.saves:
        condition, holds = _condition(each.when, form, use, names, wording)
        if _left_out(each.role, form, use):
            continue
        if holds is not False and (names.get(each.role, each.role), condition) not in saved:
            saved.append((names.get(each.role, each.role), condition))
    written = [names.get(each.role, each.role) for each in form.writes if _sure(each.when, form, use)]
    lines = [f"**`{use.shown}`** {_headline(saved, written, wording)}"]
    points: list[str] = []
    # What is saved in any case stands in the first line.
    points += [wording.text("op-saves-if", what=what, when=when) for what, when in saved if when]
    for role, formula in form.formulas[:3]:
        shown = _renamed(readable(formula), names)
        if formula != _NO_FORMULA and len(shown) <= _LONGEST_FORMULA:
            points.append(wording.text("op-formula", what=names.get(role, role), formula=shown))
    kept = {what for what, _ in saved}
    free = [
        names[p.name] for p in form.params if p.kind is Kind.TENSOR and p.name in names and p.name != "out"
    ]
    free = [each for each in dict.fromkeys([*free, *_results(form, names, wording)]) if each not in kept]
    free = [each for each in free if each not in written and _SIMPLE.fullmatch(each)]
    if saved:
        points.append(wording.text("op-do-not-write", what=listed(dict.fromkeys(what for what, _ in saved))))
    if free and form.formulas:
        points.append(wording.text("op-may-write", what=listed(free)))
    for what in dict.fromkeys(written):
        points.append(wording.text("op-writes", what=what))
    for alias in form.aliases:
        if alias.kind is AliasKind.SAME or not _possible(alias.when, form, use):
            continue
        key = "op-view" if alias.kind is AliasKind.VIEW else "op-maybe-view"
        points.append(wording.text(key, what=names.get(alias.of, alias.of)))
        if alias.multi:
            points.append(wording.text("op-multi-view"))
    if op.name.startswith("Tensor.") and _records_nothing(form) and not written:
        points.append(wording.text("op-keeps-graph", what=_first_name(form, names)))
    if _sure(form.reads, form, use):
        points.append(wording.text("op-reads"))
    if op.inplace and not written:
        points.append(wording.text("op-inplace", name=_inplace_name(op)))
    if points:
        lines += ["", *(f"- {point}" for point in dict.fromkeys(points))]
    return "\n".join(lines)


def _left_out(role: str, form: Form, use: Use) -> bool:
    """Whether a role is a parameter that the line gives nothing, and that is None then."""
    positional = [each.name for each in form.params if not each.keyword_only]
    param = next((each for each in form.params if each.name == _whole(role)), None)
    if param is None or param.default != "None":
        return False
    return param.name not in use.keywords and param.name not in positional[: len(use.arguments)]


def _backward_text(use: Use, wording: Wording) -> str:
    keep = use.keywords.get("retain_graph", use.keywords.get("create_graph"))
    kept = isinstance(keep, ast.Constant) and keep.value is True
    lines = [f"**`{use.shown}`** {wording.text('backward-head-kept' if kept else 'backward-head')}", ""]
    lines.append(f"- {wording.text('backward-checks')}")
    lines.append(f"- {wording.text('backward-kept' if kept else 'backward-frees')}")
    return "\n".join(lines)


def _records_nothing(form: Form) -> bool:
    """Whether the result is outside the graph, whatever goes in."""
    if form.results and all(role in form.nondifferentiable for role in form.results):
        return True
    return not form.nodes or (
        bool(form.formulas) and all(formula == _NO_FORMULA for _, formula in form.formulas)
    )


def _first_name(form: Form, names: dict[str, str]) -> str:
    return names.get(form.params[0].name, form.params[0].name) if form.params else ""


def _inplace_name(op: Op) -> str:
    if op.name.startswith("operator."):
        return _SIGNS.get(op.name.removeprefix("operator."), "") + "="
    return op.inplace.rsplit(".", 1)[-1]


def _headline(saved: list[tuple[str, str]], written: list[str], wording: Wording) -> str:
    sure = [what for what, condition in saved if not condition]
    if sure:
        return wording.text("op-head-saves", what=listed(sure))
    if saved:
        return wording.text("op-head-may-save", what=listed(what for what, _ in saved))
    return (
        wording.text("op-head-writes", what=listed(written)) if written else wording.text("op-head-nothing")
    )


def _names(form: Form, use: Use, wording: Wording) -> dict[str, str]:
    names: dict[str, str] = {}
    positional = [each for each in form.params if not each.keyword_only]
    for param, argument in zip(positional, use.arguments):
        names[param.name] = _short(argument)
    for name, argument in use.keywords.items():
        names[name] = _short(argument)
    for saved in form.saves:
        if _whole(saved.role) in names:
            names.setdefault(saved.role, names[_whole(saved.role)] + saved.role[len(_whole(saved.role)) :])
    # In `x = x.exp()` the name means the argument until the line is done.
    result = "" if use.result in names.values() else use.result
    if len(form.results) == 1:
        names[form.results[0]] = result or wording.text("op-result")
    else:
        fields = form.field_names or form.results
        for index, role in enumerate(form.results):
            names[role] = f"{result}[{index}]" if result else f"{wording.text('op-result')} ({fields[index]})"
    return names


def _results(form: Form, names: dict[str, str], wording: Wording) -> list[str]:
    if any(alias.kind is AliasKind.SAME for alias in form.aliases if alias.when == ("*",)):
        return []
    return [names.get(role, role) for role in form.results if role not in form.nondifferentiable]


def _condition(
    when: Condition, form: Form, use: Use, names: dict[str, str], wording: Wording
) -> tuple[str, bool | None]:
    holds = conditions.holds(when, lambda atom: _known(atom, form, use))
    if holds is not None:
        return "", holds
    clauses = []
    doubtful = False
    roles = {param.name for param in form.params}
    certain: set[str] = set()
    for clause in when:
        atoms = [atom for atom in conditions.parse(clause) if _known(atom, form, use) is None]
        if any(_known(atom, form, use) is False for atom in conditions.parse(clause)):
            continue
        # `input.ndim=2` and the like: which shapes keep what is more than a hover should list.
        told = [atom for atom in atoms if _whole(atom.name.removesuffix(".others")) in roles]
        text = wording.text("and").join(_atom(atom, names, wording) for atom in told)
        if len(told) == len(atoms):
            certain.add(text)
        # Doubt adds nothing to what is said without it.
        doubtful = doubtful or (len(told) < len(atoms) and text not in certain)
        if told:
            clauses.append(text)
    text = wording.text("or").join(dict.fromkeys(clauses))
    if not doubtful:
        return text, None
    return wording.text("and").join(filter(None, (text, wording.text("shapes-decide")))), None


def _whole(role: str) -> str:
    """The parameter of a role: `hx` of `hx[0]`."""
    return role.partition("[")[0]


def _atom(atom: conditions.Atom, names: dict[str, str], wording: Wording) -> str:
    if atom.name.endswith(".others"):
        role = atom.name.removesuffix(".others")
        return wording.text("other-requires-grad", what=names.get(role, role))
    if atom.relation in ("=", "!="):
        sign = "==" if atom.relation == "=" else "!="
        return f"`{atom.name} {sign} {atom.value!r}`"
    key = "requires-no-grad" if atom.relation == "!" else "requires-grad"
    return wording.text(key, what=names.get(atom.name, atom.name))


def _known(atom: conditions.Atom, form: Form, use: Use) -> bool | None:
    """What the line itself tells about a condition."""
    if atom.name == "*":
        return True
    param = next((each for each in form.params if each.name == _whole(atom.name)), None)
    if param is None:
        return None
    positional = [each.name for each in form.params if not each.keyword_only]
    given = use.keywords.get(param.name)
    if given is None and param.name in positional:
        index = positional.index(param.name)
        given = use.arguments[index] if index < len(use.arguments) else None
    if atom.relation not in ("=", "!="):
        # A number or a missing argument never requires grad.
        if given is None or isinstance(given, ast.Constant):
            return atom.relation == "!"
        return None
    if given is not None and not isinstance(given, ast.Constant):
        return atom.relation == "!=" if atom.value is None and _is_expression(given) else None
    try:
        value = given.value if isinstance(given, ast.Constant) else ast.literal_eval(param.default or "None")
    except (ValueError, SyntaxError):
        return None
    same = value == atom.value and type(value) is type(atom.value)
    return same if atom.relation == "=" else not same


def _is_expression(node: ast.expr) -> bool:
    return isinstance(node, (ast.BinOp, ast.Call))


def _sure(when: Condition, form: Form, use: Use) -> bool:
    return conditions.holds(when, lambda atom: _known(atom, form, use)) is True


def _possible(when: Condition, form: Form, use: Use) -> bool:
    return conditions.holds(when, lambda atom: _known(atom, form, use)) is not False


def _renamed(formula: str, names: dict[str, str]) -> str:
    """A formula in the names of the line; those of several words stay roles, so that it can still be read."""
    return _WORD.sub(lambda word: _simple(names.get(word.group(), ""), word.group()), formula)


def _simple(name: str, role: str) -> str:
    return name if _SIMPLE.fullmatch(name) else role


def _target(at: At) -> str:
    """What the result of the op under the cursor is assigned to, empty where something else is."""
    op = at.call() or at.node
    for node in at.path:
        if isinstance(node, ast.Assign) and node.value is op and len(node.targets) == 1:
            if isinstance(node.targets[0], (ast.Name, ast.Attribute)):
                return _short(node.targets[0])
    return ""


def _sign(op: ast.operator) -> str:
    return _SIGNS[_OPERATORS[type(op)]]


def _short(node: ast.AST) -> str:
    try:
        text = quotable(ast.unparse(node))
    except (ValueError, RecursionError):
        return "…"
    if len(text) > _LONGEST:
        text = quotable(ast.unparse(_Shortened().visit(copy.deepcopy(node))))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


class _Shortened(ast.NodeTransformer):
    """`torch.linspace(…) + phase`: calls without their arguments."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        return ast.Call(self.visit(node.func), [ast.Name("…", ast.Load())], [])
