"""Examples of a row: a write that backward does not mind, and one that makes it raise."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from gradguard.ops.conditions import Atom, holds
from gradguard.ops.model import AliasKind, Call, Condition, Form, ModuleRow, Op

_GRAD = "requires_grad=True) * 1"
PRELUDE = {
    "x": f"torch.rand(3, 3, {_GRAD}",
    "y": f"torch.rand(3, 3, {_GRAD}",
    "z": f"torch.rand(3, 3, {_GRAD}",
    "v": f"torch.rand(3, {_GRAD}",
    "w": f"torch.rand(3, {_GRAD}",
    "image": f"torch.rand(1, 2, 8, 8, {_GRAD}",
    "batch": f"torch.rand(2, 3, 3, {_GRAD}",
    "batch2": f"torch.rand(2, 3, 3, {_GRAD}",
    "grid": f"torch.rand(1, 3, 3, 2, {_GRAD}",
    "volume": f"torch.rand(1, 2, 8, 8, 8, {_GRAD}",
    "signal": f"torch.rand(1, 2, 8, {_GRAD}",
    "c": f"torch.rand(3, 3, dtype=torch.complex64, {_GRAD}",
    "kernel": f"torch.rand(4, 2, 3, 3, {_GRAD}",
    "i": "torch.tensor([0, 2, 1])",
    "j": "torch.tensor([[0, 1, 2], [1, 2, 0], [2, 0, 1]])",
    "m": "torch.tensor([[True, False, True]] * 3)",
    "sign": "torch.tensor([1.0, -1.0, 1.0])",
}
"""The variables that calls name; none of those that require grad is a leaf."""

LETTERS = "abdefghklnopqrstu"
"""Names for tensors that a call makes itself."""

_MAKES = re.compile(r"torch\.(?:rand|randint|tensor|eye|zeros|ones)\(")
_WORD = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*(?![\w(=.'\"])")


@dataclass(frozen=True, slots=True)
class Example:
    """A program that torch runs: `raises` says whether its last line does."""

    code: str
    raises: bool
    about: str


@dataclass(frozen=True, slots=True)
class Scene:
    """The lines up to the call, and what stands for each role in them."""

    lines: tuple[str, ...]
    roles: dict[str, str]
    """The text of each argument by role, tensors as variables."""
    makes: dict[str, str]
    """How each variable is made."""

    def requires_grad(self, role: str) -> bool:
        return any("requires_grad" in self.makes[name] for name in self.variables(role))

    def variables(self, role: str) -> list[str]:
        whole, _, index = role.removesuffix("]").partition("[")
        found = [word for word in _WORD.findall(self.roles.get(whole, "")) if word in self.makes]
        return found[int(index) :][:1] if index else found

    def others(self, role: str) -> str:
        """How many of a list require grad, seen from its first tensor: `all`, `some` or `none`."""
        needs = ["requires_grad" in self.makes[name] for name in self.variables(role)[1:]]
        return "none" if not any(needs) else "all" if all(needs) else "some"


def examples(row: Op | ModuleRow) -> list[Example]:
    """At most one safe write and one that makes backward raise, for the example call of the row."""
    call = row.example
    if call is None:
        return []
    form = row.forms[call.form]
    scene = _scene(row, call, form)
    found: dict[bool, Example] = {}
    for role, target in _targets(row, form, call, scene):
        told = _saved(row, form, call, scene, role)
        if told is None or told in found:
            continue
        lines = [*_start(row, call), "with torch.no_grad():"]
        lines += [f"    {target}.zero_()", "loss.backward()" + ("  # raises" if told else "")]
        why = "backward still needs" if told else "backward does not need"
        found[told] = Example("\n".join(lines), told, f"{why} `{role}`.")
    return [found[k] for k in sorted(found)]


def _start(row: Op | ModuleRow, call: Call) -> list[str]:
    form = row.forms[call.form]
    scene = _scene(row, call, form)
    return [*scene.lines, f"loss = {_loss(form, call, scene)}"]


def untouched(row: Op | ModuleRow, call: Call) -> str:
    """The program of a call without any write."""
    return "\n".join([*_start(row, call), "loss.backward()"])


def absence(row: Op | ModuleRow) -> str:
    """Why the page of the row lacks an example of either sort; empty when it has both, or needs none."""
    if not any(form.nodes for form in row.forms):
        return ""
    found = examples(row)
    if not found:
        told = next((form.unobserved for form in row.forms if form.unobserved), "")
        if row.example is not None:
            return (
                "No example: shapes or values decide what a call keeps, or it hands back what it was given."
            )
        if told:
            return f"No example: {told}."
        return "No example: torch records no call with arguments as simple as an example needs."
    form = row.forms[row.example.form] if row.example else row.forms[0]
    if len(found) == 2:
        return ""
    if found[0].raises:
        return "No example of a safe write: this call keeps all that could be written."
    if not form.saves:
        return (
            "No write breaks its backward: what it keeps, if anything, is neither an argument nor a result."
        )
    return "No example of a write that breaks backward: whether this call keeps anything is not certain."


def _scene(row: Op | ModuleRow, call: Call, form: Form) -> Scene:
    makes: dict[str, str] = {}
    names = iter(LETTERS)

    def named(text: str) -> str:
        """The argument with each tensor that it makes behind a variable."""
        if _MAKES.match(text):
            name = next(names)
            makes[name] = text
            return name
        for word in _WORD.findall(text):
            if word in PRELUDE:
                makes[word] = PRELUDE[word]
        return text

    arguments = []
    for text in call.arguments:
        key, _, value = text.partition("=") if re.match(r"[A-Za-z_]\w*=", text) else ("", "", text)
        if value.startswith("[torch."):
            made = f"[{', '.join(map(named, _items(value)))}]"
        else:
            made = named(value)
        arguments.append(f"{key}={made}" if key else made)
    lines = ["import torch", *(["import operator"] if row.name.startswith("operator.") else []), ""]
    lines += [f"{name} = {text}" for name, text in makes.items()]
    if isinstance(row, ModuleRow):
        lines.append(f"module = {row.name}({', '.join(call.build)})")
        lines.append(f"result = module({', '.join(arguments)})")
    else:
        text = f"{arguments[0]}.{row.name[7:]}" if call.attribute else call_text(row.name, arguments)
        lines.append(f"result = {text}" if form.results else text)
    return Scene(tuple(lines), _by_role(form, arguments), makes)


def _items(text: str) -> list[str]:
    """The elements of a list as text."""
    tree = ast.parse(text, mode="eval").body
    elements = tree.elts if isinstance(tree, ast.List) else []
    return [ast.get_source_segment(text, element) or "" for element in elements]


def _by_role(form: Form, arguments: list[str]) -> dict[str, str]:
    roles: dict[str, str] = {}
    positional = [a for a in arguments if not re.match(r"[A-Za-z_]\w*=", a)]
    for param in form.params:
        if param.keyword_only or not positional:
            break
        if param.variadic:
            roles[param.name], positional = ", ".join(positional), []
        else:
            roles[param.name] = positional.pop(0)
    for text in arguments:
        if re.match(r"[A-Za-z_]\w*=", text):
            key, _, value = text.partition("=")
            roles[key] = value
    return roles


def _targets(row: Op | ModuleRow, form: Form, call: Call, scene: Scene) -> Iterator[tuple[str, str]]:
    """Each role with a way to write it, where writing it writes nothing else that the call touched."""

    def may(when: Condition) -> bool:
        return holds(when, lambda atom: _fact(atom, row, form, call, scene)) is not False

    written = {w.role for w in form.writes if may(w.when)}
    counts: dict[str, int] = {}
    for role in scene.roles:
        for name in scene.variables(role):
            counts[name] = counts.get(name, 0) + 1
    for role in scene.roles:
        names = scene.variables(role)
        if names and counts[names[0]] == 1 and role not in written:
            yield role, names[0]
    if isinstance(row, ModuleRow):
        for name, when in row.parameters:
            if when == ("*",) and "." not in name:
                yield f"self.{name}", f"module.{name}"
    if form.list_result:
        return
    for index, role in enumerate(form.results):
        if role in form.nondifferentiable and role not in {s.role for s in form.saves}:
            continue
        shared = [a for a in form.aliases if a.result == role and a.of in scene.roles and may(a.when)]
        if all(a.kind is AliasKind.SAME and a.of in written for a in shared):
            yield role, "result" if len(form.results) == 1 else f"result[{index}]"


def _saved(row: Op | ModuleRow, form: Form, call: Call, scene: Scene, role: str) -> bool | None:
    """Whether the call keeps the role; None when that is not certain."""

    def lookup(atom: Atom) -> bool | None:
        return _fact(atom, row, form, call, scene)

    saved = [s for s in form.saves if s.role in (role, f"{role}[0]")]
    truths = [holds(s.when, lookup) for s in saved]
    around = [a.result for a in form.aliases if a.of == role] + [
        a.of for a in form.aliases if a.result == role
    ]
    if any(s.role in around for s in form.saves) and role not in {s.role for s in form.saves}:
        return None
    if any(truths):
        several = len(scene.variables(role)) > 1
        alone = all("[" in s.role or any(".others" in clause for clause in s.when) for s in saved)
        return None if several and not alone else True
    return None if None in truths else False


def _fact(atom: Atom, row: Op | ModuleRow, form: Form, call: Call, scene: Scene) -> bool | None:
    if not atom.relation or atom.relation == "!":
        if atom.name.startswith("self.") and isinstance(row, ModuleRow):
            name = atom.name[5:]
            when: Condition = next((c for n, c in row.parameters if n == name), ())
            grad = None if when not in ((), ("*",)) else bool(when)
        else:
            known = atom.name.partition("[")[0] in {p.name for p in form.params}
            grad = scene.requires_grad(atom.name) if known else None
        return None if grad is None else grad == (not atom.relation)
    head, _, last = atom.name.rpartition(".")
    if last == "others":
        return bool(scene.others(head) == atom.value) == (atom.relation == "=")
    if head and last in ("ndim", "kind", "dtype", "contiguous"):
        facts = [_made(scene.makes[name]).get(last) for name in scene.variables(head)]
        return (
            None
            if len(facts) != 1 or facts[0] is None
            else (facts[0] == atom.value) == (atom.relation == "=")
        )
    text = scene.roles.get(atom.name)
    if text is None:
        text = _told(atom.name, row, form, call)
    if text is None:
        return None
    if atom.value is None:
        return (text == "None") == (atom.relation == "=")
    return (text == repr(atom.value)) == (atom.relation == "=") if _literal(text) else None


def _made(text: str) -> dict[str, object]:
    """What the text that makes a tensor says of it."""
    facts: dict[str, object] = {"contiguous": True}
    if "complex" in text:
        facts["kind"] = "complex"
    elif text.startswith(("torch.rand(", "torch.eye(")):
        facts["kind"] = "float"
    if "dtype=torch." in text:
        facts["dtype"] = text.partition("dtype=torch.")[2].partition(")")[0].partition(",")[0]
    elif text.startswith(("torch.rand(", "torch.eye(")):
        facts["dtype"] = "float32"
    elif re.match(r"torch\.tensor\([\[\d, \]]*\)", text):
        facts["dtype"] = "int64"
    drawn = re.match(r"torch\.rand\(((?:\d+(?:, )?)*)", text)
    if drawn:
        facts["ndim"] = len(re.findall(r"\d+", drawn[1]))
    return facts


def _told(name: str, row: Op | ModuleRow, form: Form, call: Call) -> str | None:
    """The text of a value that the call leaves at its default, or gives to the constructor."""
    if name == "self.training":
        return "True"
    params = form.params
    if name.startswith("self.") and isinstance(row, ModuleRow):
        name, params = name[5:], row.init
        given = _by_role(Form(params=row.init), list(call.build))
        if name in given:
            return given[name]
    return next((p.default for p in params if p.name == name and p.default is not None), None)


def _literal(text: str) -> bool:
    return re.fullmatch(r"-?[\d.e-]+|True|False|None|'[^']*'", text) is not None


def _loss(form: Form, call: Call, scene: Scene) -> str:
    """What backward starts from: the first result that a gradient flows to."""
    if not form.results:
        written = next((w.role for w in form.writes if scene.variables(w.role)), "")
        result = scene.variables(written)[0] if written else "result"
    elif form.list_result:
        result = "result[0]"
    else:
        flows = [i for i, r in enumerate(form.results) if r not in form.nondifferentiable]
        result = "result" if len(form.results) == 1 else f"result[{flows[0] if flows else 0}]"
    return call.loss.replace("result", result)


def call_text(name: str, arguments: list[str]) -> str:
    """The call of a public name as Python writes it."""
    if name.startswith("Tensor."):
        return f"{arguments[0]}.{name[7:]}({', '.join(arguments[1:])})"
    return f"{name}({', '.join(arguments)})"
