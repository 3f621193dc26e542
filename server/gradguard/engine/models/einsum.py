"""`torch.einsum`: both ways of writing its subscripts, and when its result is a view of its operand."""

from __future__ import annotations

import ast

from gradguard.engine.autograd import machine
from gradguard.engine.dispatch import torchcalls
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import MISSING, Frame, ListV, Sym, TupleV, Value
from gradguard.engine.models.registry import Registry
from gradguard.engine.state.coerce import as_tensor
from gradguard.engine.state.run import Run

MODELS = Registry()

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@MODELS.torch_function("torch.einsum")
def _einsum(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    call = _spelled(call)
    equation = call.get(0, "equation")
    operands = [_tensor(run, value) for value in _operands(call)]
    if isinstance(equation, str) and len(operands) == 1 and operands[0] is not None:
        return _rearranged(run, frame, equation, operands[0], call, node)
    made = _by_table(run, frame, call, node)
    if len(operands) > 1 and isinstance(made, Tensor) and made.node is not None:
        # Two operands are multiplied, which keeps one for the other's gradient.
        made.node.frees = True
    return made


def _by_table(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    made = torchcalls.call_op(run, frame, "torch.einsum", call, node, name="einsum")
    return torchcalls.unknown_op(run, call, "einsum") if made is MISSING else made


def _operands(call: Call) -> list[Value]:
    rest = call.args[1:]
    if len(rest) == 1 and isinstance(rest[0], (ListV, TupleV)):
        return list(rest[0].items)
    return rest


def _tensor(run: Run, value: Value) -> Tensor | None:
    if isinstance(value, Sym):
        return as_tensor(run, value)
    return value if isinstance(value, Tensor) else None


def _rearranged(run: Run, frame: Frame, equation: str, operand: Tensor, call: Call, node: ast.AST) -> Value:
    """Of one operand: a view where no subscript is summed over, else a sum."""
    taken, arrow, given = equation.replace(" ", "").partition("->")
    if not arrow:
        given = "".join(sorted(c for c in set(taken) if c.isalpha() and taken.count(c) == 1))
        given = ("..." if "..." in taken else "") + given
    if set(taken) - set(given):
        summed = Call([operand, run.fresh("int")], {}, call.place, [call.expr(1), None], {}, "sum")
        return torchcalls.call_op(run, frame, "torch.sum", summed, node, name="einsum")
    return machine.make_view(run, operand, "einsum", call.place)


def _spelled(call: Call) -> Call:
    """`einsum(a, [0, 1], b, [1], [0])` as `einsum("ij,j->i", a, b)`."""
    if not call.args or isinstance(call.args[0], str):
        return call
    operands, subscripts = call.args[0::2], call.args[1::2]
    exprs = call.exprs[0::2]
    result = ""
    if len(operands) > len(subscripts):
        last = _letters(operands.pop())
        exprs = exprs[: len(operands)]
        if last is None:
            return call
        result = f"->{last}"
    texts = [_letters(one) for one in subscripts]
    if any(text is None for text in texts):
        return call
    equation = ",".join(text for text in texts if text is not None) + result
    return Call([equation, *operands], call.kwargs, call.place, [None, *exprs], call.kwexprs, call.name)


def _letters(value: Value) -> str | None:
    if not isinstance(value, (ListV, TupleV)):
        return None
    letters = []
    for item in value.items:
        if item is Ellipsis:
            letters.append("...")
        elif isinstance(item, int) and 0 <= item < len(_LETTERS):
            letters.append(_LETTERS[item])
        else:
            return None
    return "".join(letters)
