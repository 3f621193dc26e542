"""What the places of a loop hold tensors in when it goes backward, so that a repair can take all of them out of their graph.

    tensor                      h
    tuple/tensor                the state of an LSTM
    list/tuple/tensor           one for each of several layers
    dict/tensor                 by name

What holds tensors and something else, or is not known, has no shape: nobody is to guess how to take it apart.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradguard.engine.domain.tensors import Place, Tensor
from gradguard.engine.domain.values import DictV, Frame, Instance, ListV, Sym, TupleV, Value
from gradguard.engine.state.run import Run
from gradguard.source.nodes import walk

DEEPEST = 3
Shapes = tuple[tuple[str, str], ...]
"""Places as the program spells them, each with the shape of what it holds."""


def shapes(run: Run, carried: Place) -> Shapes:
    """Of what the running loop, and the statement that carried a value over, bind."""
    nodes = [carried.node, *(loop.place.node for loop in run.loops if loop.kind != "comprehension")]
    texts = sorted({text for node in nodes for text in _bound(node)})
    found = ((text, shape(_value(run, text))) for text in texts)
    return tuple((text, each) for text, each in found if each)


def shape(value: Value, depth: int = 0) -> str:
    """The shape of a value; empty where it has none."""
    if isinstance(value, Sym):
        value = value.tensor
    if isinstance(value, Tensor):
        return "tensor"
    kind, items = "", []
    if isinstance(value, TupleV) and not value.names and not value.open:
        kind, items = "tuple", list(value.items)
    elif isinstance(value, ListV) and value.kind == "list":
        kind, items = "list", value.items
    elif isinstance(value, DictV) and value.kind == "dict":
        kind, items = "dict", [item for _, item in value.items.values()]
    if not items or depth == DEEPEST:
        return ""
    inner = {shape(item, depth + 1) for item in items}
    (only, *others) = inner
    return f"{kind}/{only}" if only and not others else ""


def _bound(node: ast.AST) -> Iterator[str]:
    for part in walk(node):
        if isinstance(part, (ast.Name, ast.Attribute)) and isinstance(part.ctx, ast.Store):
            yield ast.unparse(part)


def _value(run: Run, text: str) -> Value:
    """What a place holds; of an attribute of `self` elsewhere, what all objects hold that the frames name."""
    name, *rest = text.split(".")
    frame = run.frames[-1] if run.frames else None
    if frame is None or len(rest) > 1:
        return None
    home = frame.find(name)
    if not rest:
        return dict.get(home.variables, name) if home is not None else None
    holder = dict.get(home.variables, name) if home is not None else None
    if isinstance(holder, Instance):
        return holder.attributes.get(rest[0])
    values = [one.attributes[rest[0]] for one in _objects(run.frames) if rest[0] in one.attributes]
    return values[0] if name == "self" and len({shape(one) for one in values}) == 1 else None


def _objects(frames: list[Frame]) -> Iterator[Instance]:
    for frame in frames:
        for value in dict.values(frame.variables):
            if isinstance(value, Instance):
                yield value
