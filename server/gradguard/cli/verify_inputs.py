"""What `verify` calls a function with: its `# gradguard: inputs` comment, else what its text says of its parameters."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gradguard.source.text import Source

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Function = ast.FunctionDef | ast.AsyncFunctionDef

_INPUTS = re.compile(r"#\s*gradguard:\s*inputs\s+(?P<given>.*)$")
_SHAPE = re.compile(r"[(\[]\s*(?P<sizes>[A-Za-z0-9_]+(?:\s*(?:,|[x×*](?=\s))\s*[A-Za-z0-9_]+)*)\s*,?\s*[)\]]")
_NO_SIZES = frozenset(
    [
        "tensor",
        "torch",
        "optional",
        "int",
        "float",
        "bool",
        "str",
        "list",
        "tuple",
        "none",
        "default",
        "array",
        "ndarray",
        "floattensor",
        "longtensor",
    ]
)
_MANY = re.compile(r"(?:\w+\.)?(?:[lL]ist|[tT]uple|Sequence|Iterable)\[(?:\w+\.)*Tensor(?:, .*)?\]")
_NUMBERS = {"int": "2", "float": "0.5", "bool": "True", "complex": "1j"}
_WHOLE = re.compile(
    r"Long|int64|Int\b|\bind(ex|ices)\b|\bids?\b|\blabels?\b|\btokens?\b|\bintegers?\b|class ind", re.I
)
_TRUTH = re.compile(r"BoolTensor|\bBool\b|\bboolean\b|\bbool\b|\bmask\b", re.I)
_SMALL = re.compile(
    r"^(eps|lr|p|rate|alpha|beta|gamma|scale|momentum|decay|temperature|weight_decay|dropout)$"
)
_COUNT = re.compile(
    r"^(n|k|i|num|count|size|dim|axis|step|steps|width|depth|features|channels|heads|(n|num|in|out)_\w+|\w+_dim)$"
)


class Refused(Exception):
    """Why nothing was run."""


@dataclass(slots=True)
class Inputs:
    """Parameter -> expression, of one function."""

    line: int
    given: dict[str, str] = field(default_factory=dict)
    guessed: dict[str, str] = field(default_factory=dict)
    """Where those that no comment gives come from."""
    missing: list[str] = field(default_factory=list)
    example: str = ""
    """A comment with every input, to be pasted above the line."""


def definitions(body: Iterable[ast.stmt]) -> Iterator[Definition]:
    """Functions and classes of a body, also those under an `if` or a `with`, and not those within another."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node
            continue
        for name in ("body", "orelse", "finalbody"):
            yield from definitions(getattr(node, name, ()))
        for each in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            yield from definitions(each.body)


def chain(source: Source, path: str, name: str) -> list[Definition]:
    """The definitions on the way to a dotted name, the last is what it names. Raises Refused, naming what there is."""
    body: list[ast.stmt] = source.tree.body
    found: list[Definition] = []
    for part in name.split("."):
        here = list(definitions(body))
        named = [one for one in here if one.name == part and not _is_setter(one)]
        if not named:
            known = ", ".join(dict.fromkeys(one.name for one in here)) or "nothing"
            where = f"{found[-1].name} in {path}" if found else path
            raise Refused(f"{where} has no {part}; it has {known}")
        found.append(named[-1])
        body = named[-1].body
    return found


def _is_setter(node: Definition) -> bool:
    return any(
        isinstance(each, ast.Attribute) and each.attr in ("setter", "deleter") for each in node.decorator_list
    )


def first_line(node: Definition) -> int:
    """Of a definition, its decorators included."""
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def inputs(source: Source, path: str, found: list[Definition]) -> Inputs:
    """The inputs of the last of these definitions. Raises Refused where a comment cannot be read."""
    node, owner = found[-1], found[-2] if len(found) > 1 else None
    comment: dict[str, str] = {}
    target: Definition = node
    if isinstance(node, ast.ClassDef):
        owner, comment = node, _comment(source, path, node)
        calls = [one for one in definitions(node.body) if one.name in ("forward", "__call__")]
        target = calls[-1] if calls else node
    comment.update(_comment(source, path, target))
    told = Inputs(first_line(target), dict(comment))
    if isinstance(target, ast.ClassDef):
        return told
    sizes: dict[str, int] = {}
    method = isinstance(owner, ast.ClassDef) and not _decorated(target, "staticmethod")
    names = [each.arg for each in _required(target)][1 if method else 0 :]
    docs = "\n".join(ast.get_docstring(one) or "" for one in (target, owner) if one is not None)
    annotations = {each.arg: each.annotation for each in _parameters(target)}
    for name in names:
        if name not in told.given:
            _guess_into(told, name, annotations.get(name), docs, sizes)
    if (
        isinstance(owner, ast.ClassDef)
        and method
        and not _decorated(target, "classmethod")
        and "self" not in told.given
    ):
        _self_into(told, owner)
    told.example = _example(source, told, names)
    return told


def _guess_into(
    told: Inputs, name: str, annotation: ast.expr | None, docs: str, sizes: dict[str, int]
) -> None:
    guess = _guess(name, annotation, docs, sizes)
    if guess is None:
        told.missing.append(name)
    else:
        told.given[name], told.guessed[name] = guess


def _self_into(told: Inputs, owner: ast.ClassDef) -> None:
    """An object to call a method of, where its constructor needs something."""
    made = next((one for one in definitions(owner.body) if one.name == "__init__"), None)
    if made is None or isinstance(made, ast.ClassDef):
        return
    wanted = _required(made)[1:]
    docs = "\n".join(ast.get_docstring(one) or "" for one in (made, owner))
    guesses = {each.arg: _guess(each.arg, each.annotation, docs, {}) for each in wanted}
    shown = ", ".join(f"{name}={guess[0] if guess else _by_name(name)}" for name, guess in guesses.items())
    if all(guesses.values()):
        if wanted:
            told.given["self"], told.guessed["self"] = (
                f"{owner.name}({shown})",
                "its constructor's annotations",
            )
    else:
        told.missing.insert(0, f"self={owner.name}({shown})")


def _parameters(node: Function) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _required(node: Function) -> list[ast.arg]:
    """Those without a default."""
    positional = [*node.args.posonlyargs, *node.args.args]
    named = [each for each, default in zip(node.args.kwonlyargs, node.args.kw_defaults) if default is None]
    return [*positional[: len(positional) - len(node.args.defaults)], *named]


def _decorated(node: Definition, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in node.decorator_list)


def _comment(source: Source, path: str, node: Definition) -> dict[str, str]:
    """The inputs of the comments above a definition or at its head. Raises Refused where they cannot be read."""
    above = first_line(node)
    while source.line(above - 1).lstrip().startswith("#"):
        above -= 1
    last = node.lineno if isinstance(node, ast.ClassDef) else node.body[0].lineno
    found: dict[str, str] = {}
    for number in range(above, last + 1):
        match = _INPUTS.search(source.line(number))
        if match is None:
            continue
        try:
            call = ast.parse(f"f({match['given']})", mode="eval").body
        except SyntaxError:
            call = None
        if (
            not isinstance(call, ast.Call)
            or call.args
            or any(keyword.arg is None for keyword in call.keywords)
        ):
            raise Refused(f"{path}:{number}: inputs are written as name=expression, ...")
        found.update({str(keyword.arg): ast.unparse(keyword.value) for keyword in call.keywords})
    return found


def _guess(
    name: str, annotation: ast.expr | None, docs: str, sizes: dict[str, int]
) -> tuple[str, str] | None:
    """An expression and where it comes from; None where the text says too little."""
    written = _plain(annotation)
    if written in _NUMBERS:
        return _NUMBERS[written], "its annotation"
    said = _said_of(name, docs)
    shape = _shape(said, sizes)
    where = "the docstring"
    if isinstance(annotation, ast.Subscript) and isinstance(annotation.slice, ast.Tuple):
        # Float[Tensor, "batch 3"], as jaxtyping writes it.
        for each in annotation.slice.elts:
            if isinstance(each, ast.Constant) and isinstance(each.value, str) and "Tensor" in written:
                shape, where = _sizes(each.value.split(), sizes), "its annotation"
    if shape is None and not re.fullmatch(r"(\w+\.)*\w*Tensor", written):
        if not _MANY.fullmatch(written):
            return None
        one = _tensor("", "", (4, 4))
        return f"[{one}, {one}]", "its annotation, with shapes of our own"
    if shape is None:
        shape, where = (4, 4), "its annotation, with a shape of our own"
    return _tensor(name, f"{written} {said}", shape), where


def _plain(annotation: ast.expr | None) -> str:
    if annotation is None:
        return ""
    text = annotation.value if isinstance(annotation, ast.Constant) else ast.unparse(annotation)
    text = re.sub(r"\s*\|\s*None$|^None\s*\|\s*", "", str(text))
    inner = re.fullmatch(r"(?:\w+\.)*Optional\[(.*)\]", text)
    return inner[1] if inner else text


def _said_of(name: str, docs: str) -> str:
    """What a docstring says of a parameter: its line, and those below that stand further in."""
    lines = docs.splitlines()
    head = re.compile(
        rf"^\s*(?:[-*]\s+)?(?::param\s+(?:\S+\s+)?|:type\s+|@param\s+)?`{{0,2}}{re.escape(name)}`{{0,2}}\s*[:(\[—–=-]"
    )
    for number, line in enumerate(lines):
        if not head.match(line):
            continue
        inside = len(line) - len(line.lstrip())
        said = [line.strip()[len(name) :]]
        for more in lines[number + 1 : number + 4]:
            if not more.strip() or len(more) - len(more.lstrip()) <= inside:
                break
            said.append(more.strip())
        return " ".join(said)
    return ""


def _shape(said: str, sizes: dict[str, int]) -> tuple[int, ...] | None:
    for match in _SHAPE.finditer(said):
        words = re.findall(r"[A-Za-z0-9_]+", re.sub(r"(?<=\s)[x×](?=\s)", ",", match["sizes"]))
        if any(word.lower() in _NO_SIZES for word in words):
            continue
        if len(words) > 1 or re.search(r"shape|size", said[: match.start()], re.I):
            return _sizes(words, sizes)
    return None


def _sizes(words: list[str], sizes: dict[str, int]) -> tuple[int, ...] | None:
    """The same word has the same size everywhere, and different words have different ones."""
    if not all(re.fullmatch(r"\w+", word) for word in words):
        return None
    return tuple(int(word) if word.isdigit() else sizes.setdefault(word, len(sizes) + 2) for word in words)


def _tensor(name: str, said: str, shape: tuple[int, ...]) -> str:
    plain = ", ".join(map(str, shape))
    if _TRUTH.search(said) or name.endswith("mask"):
        return f"rand({plain}) > 0.5"
    if _WHOLE.search(f"{said} {name}"):
        return f"randint(0, 2, ({plain},))"
    kind = ", dtype=float64" if re.search("Double|float64", said) else ""
    kind = ", dtype=complex64" if re.search("[Cc]omplex", said) else kind
    # Not a leaf, to which no function may write, but what a function is mostly given.
    return f"randn({plain}{kind}, requires_grad=True).clone()"


def _by_name(name: str) -> str:
    """What a parameter may be that nothing is known of, for an example."""
    if name.endswith("mask"):
        return "rand(2, 3) > 0.5"
    if _WHOLE.search(name.replace("_", " ")):
        return "randint(0, 2, (2,))"
    if _SMALL.match(name):
        return "0.1"
    return "2" if _COUNT.match(name) else "randn(2, 3, requires_grad=True)"


def _example(source: Source, told: Inputs, names: list[str]) -> str:
    shown: Mapping[str, str] = told.given
    parts = [f"{name}={shown[name]}" for name in ("self",) if name in shown]
    parts += [each for each in told.missing if "=" in each]
    parts += [f"{name}={shown.get(name) or _by_name(name)}" for name in names]
    parts += [f"{name}={value}" for name, value in shown.items() if name not in (*names, "self")]
    line = source.line(told.line)
    return f"{line[: len(line) - len(line.lstrip())]}# gradguard: inputs {', '.join(parts)}"
