"""Running one form of the op table on abstract arguments.

The order is torch's: refuse a forbidden write, record the node, save inputs at their version before the write,
write, give the written tensor its history, make results, save results.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache

from gradguard.ops.model import Alias, AliasKind, Condition, Form, Kind, Op, Param
from gradguard.tape import graphs, holders, layout, machine, shapes, sizes
from gradguard.tape.coerce import as_tensor, constant, is_number
from gradguard.tape.domain import Cut, Node, Place, Tensor, Tri, both, either
from gradguard.tape.events import InputRewritten, WriteFact
from gradguard.tape.run import Run
from gradguard.tape.truth import known_truth
from gradguard.tape.values import ArrayV, DictV, Instance, ListV, Sym, TorchName, TupleV, Value, tensors_in


@dataclass(slots=True)
class Call:
    """Arguments of one call, with the expressions they came from."""

    args: list[Value]
    kwargs: dict[str, Value]
    place: Place
    exprs: list[ast.AST | None]
    kwexprs: dict[str, ast.AST | None]
    name: str = ""
    """Last part of the callee's own name, whatever the program calls it."""
    open_args: bool = False
    """A `*args` or `**kwargs` of unknown content was passed."""

    def get(self, index: int, name: str, default: Value = None) -> Value:
        """Argument by position or name."""
        if index < len(self.args):
            return self.args[index]
        return self.kwargs.get(name, default)

    def expr(self, index: int, name: str = "") -> ast.AST | None:
        """Expression of an argument."""
        if index < len(self.exprs):
            return self.exprs[index]
        return self.kwexprs.get(name)


@dataclass(slots=True)
class Bound:
    """A call matched to a form: parameter name -> value and expression."""

    values: dict[str, Value]
    exprs: dict[str, ast.AST | None]
    given: set[str]
    module: Instance | None = None

    def tensors(self, role: str) -> list[Tensor]:
        """Tensors in a role; several for a list of tensors."""
        if role.startswith("self.") and self.module is not None:
            value = self.module.attributes.get(role[5:])
        else:
            value = self.values.get(role)
        return tensors_in(value)


def choose(run: Run, op: Op, call: Call, *, module: Instance | None = None) -> tuple[Form, Bound] | None:
    """The first form that accepts the arguments; a weak match only where no strong one exists."""
    weak: tuple[Form, Bound] | None = None
    for form in op.forms:
        bound, strength = bind(form, call)
        if bound is None:
            continue
        bound.module = module
        fits = holds(run, form.given, bound)
        if fits is False:
            continue
        strength = strength and fits is True
        if strength:
            return form, bound
        if weak is None:
            weak = form, bound
    return weak


def bind(form: Form, call: Call) -> tuple[Bound | None, bool]:
    """Match arguments to parameters as torch's argument parser does. Second result: no guess was needed."""
    bound = Bound({}, {}, set())
    strong = True
    index = 0
    names = {param.name for param in form.params}
    if not call.open_args and any(name not in names for name in call.kwargs):
        return None, False
    for param in form.params:
        if param.name in call.kwargs:
            value, expr = call.kwargs[param.name], call.kwexprs.get(param.name)
        elif not param.keyword_only and index < len(call.args):
            value, expr = call.args[index], call.exprs[index] if index < len(call.exprs) else None
            index += 1
            rest = call.args[index:]
            if (param.kind is Kind.INTS and rest and all(accepts_int(item) for item in (value, *rest))) or (
                param.variadic
                and param.kind is Kind.TENSORS
                and rest
                and not isinstance(value, (ListV, TupleV))
            ):
                value = TupleV((value, *rest))
                index = len(call.args)
        elif param.default is not None or param.optional or call.open_args:
            continue
        else:
            return None, False
        verdict = accepts(param, value)
        if verdict is None:
            return None, False
        strong = strong and verdict
        bound.values[param.name] = value
        bound.exprs[param.name] = expr
        bound.given.add(param.name)
    if index < len(call.args):
        return None, False
    defaults_into(form, bound)
    return bound, strong


def accepts_int(value: Value) -> bool:
    """Whether the value can stand for one int of a size."""
    return (isinstance(value, int) and not isinstance(value, bool)) or isinstance(value, (Sym, Tensor))


def accepts(param: Param, value: Value) -> bool | None:
    """True: fits; False: fits by conversion or guess; None: does not fit."""
    kind = param.kind
    if kind is Kind.ANY:
        return True
    if value is None:
        return True if param.optional or param.default == "None" else None
    if isinstance(value, Sym):
        return _accepts_unknown(kind, value)
    if kind is Kind.TENSOR:
        return (
            True
            if isinstance(value, Tensor)
            else (False if is_number(value) or isinstance(value, ArrayV) else None)
        )
    if kind is Kind.MASK:
        return _mask(value)
    if kind is Kind.SLICES:
        return _slices(value)
    if kind is Kind.TENSORS:
        if isinstance(value, (ListV, TupleV)):
            return (
                True if all(isinstance(item, (Tensor, Sym)) or item is None for item in value.items) else None
            )
        return False if isinstance(value, Tensor) else None
    if kind in (Kind.NUMBER, Kind.FLOAT, Kind.INT):
        if isinstance(value, float) and kind is Kind.INT:
            return None
        return True if is_number(value) else (False if isinstance(value, Tensor) else None)
    if kind is Kind.INTS:
        if isinstance(value, (ListV, TupleV)):
            return None if any(isinstance(item, (float, str)) for item in value.items) else True
        return (
            True
            if isinstance(value, int) and not isinstance(value, bool)
            else (False if isinstance(value, Tensor) else None)
        )
    if kind is Kind.BOOL:
        # Python functions take anything for a flag; it counts by its truth.
        return (
            True
            if isinstance(value, bool)
            else (False if isinstance(value, (int, float, ListV, TupleV)) else None)
        )
    if kind is Kind.STR:
        return True if isinstance(value, str) else None
    if kind is Kind.DTYPE:
        return True if isinstance(value, TorchName) and shapes.is_dtype(value.path) else None
    return None


def _mask(value: Value) -> bool | None:
    if isinstance(value, TupleV) and len(value.items) == 1:
        value = value.items[0]
    if not isinstance(value, Tensor):
        return None
    return True if value.dtype in ("bool", "uint8") else (False if value.dtype is None else None)


def _slices(value: Value) -> bool | None:
    if isinstance(value, TupleV):
        return None if any(_slices(item) is None for item in value.items) else True
    return None if isinstance(value, (Tensor, ListV, bool, str)) else True


def _accepts_unknown(kind: Kind, value: Sym) -> bool | None:
    known = value.kind
    if known == "any":
        return not (kind is Kind.STR or kind is Kind.DTYPE)
    if known == "tensor":
        return True if kind is Kind.TENSOR else (False if kind is Kind.TENSORS else None)
    if known in ("int", "number", "bool", "index"):
        if kind in (Kind.NUMBER, Kind.INT, Kind.FLOAT, Kind.INTS, Kind.BOOL):
            return True
        return False if kind is Kind.TENSOR else None
    if known == "str":
        return True if kind is Kind.STR else None
    if known == "dtype":
        return True if kind is Kind.DTYPE else None
    if known == "device":
        return None
    return False


def apply(
    run: Run, op: Op, form: Form, bound: Bound, place: Place, *, name: str = "", kind: str = "op"
) -> Value:
    """Run the form; the result is a Tensor, a tuple of them, or a value without tensors."""
    _coerce(run, op, form, bound)
    name = name or op.name.rpartition(".")[2]
    inputs = [tensor for role in form.differentiable for tensor in bound.tensors(role)]
    if bound.module is not None:
        # The state of a recurrent layer comes as a tensor or a tuple of them.
        states = [p.name for p in form.params if p.kind is Kind.ANY and p.name not in form.differentiable]
        inputs += [tensor for name_ in states for tensor in bound.tensors(name_)]
    needs: Tri = False
    unknown = any(_unknown(bound.values.get(role)) for role in form.differentiable)
    if inputs or unknown:
        either_needs = either(machine.requires(run, inputs), both(run.modes.grad, None) if unknown else False)
        needs = both(either_needs, holds(run, form.nodes, bound))
    targets = [
        (tensor, w, sure)
        for w in form.writes
        for sure in (holds(run, w.when, bound),)
        if sure is not False
        for tensor in bound.tensors(w.role)
    ]
    # What an op writes without handing it back (`Embedding(max_norm=...)`) it writes under no_grad.
    returned = {alias.of for alias in form.aliases if alias.kind is AliasKind.SAME and alias.of != "out"}
    for tensor, w, sure in targets:
        if (
            w.counted
            and w.role in returned
            and not _writable(
                run, tensor, inputs, place, name, bound.exprs.get(w.role), kind, sure, _maker(bound)
            )
        ):
            return tensor
    if run.rewritten:
        _read_again(run, inputs, place)
    cuts = _cuts(run, inputs, bound)
    node: Node | None = None
    if needs is not False:
        node = machine.record(
            run, name, place, inputs, certain=needs is True, frees=holds(run, form.frees, bound)
        )
        _save(run, node, form, bound, place)
    for tensor, w, sure in targets:
        if name.strip("_") in INPLACE_VIEWS:
            layout.view(name, tensor, bound.values, tensor)
        how = "out" if w.role == "out" else kind if w.counted else "statistics"
        machine.write(
            run,
            tensor,
            place,
            name,
            kind=how,
            counted=w.counted,
            certain=sure is True,
            expr=bound.exprs.get(w.role),
            checked=False,
            sources=inputs,
            maker=_maker(bound),
        )
        if w.counted and w.role in returned:
            machine.rebase(run, tensor, node)
    result = _results(run, op, form, bound, place, node, needs, name)
    if cuts:
        written = {tensor.number for tensor, _, _ in targets}
        for tensor in tensors_in(result):
            if tensor.number not in written:
                tensor.cuts = tensor.cuts | cuts
    if node is not None:
        _save_results(run, node, form, bound, result, place)
    return result


INPLACE_VIEWS = frozenset({"t", "transpose", "swapaxes", "swapdims", "unsqueeze", "squeeze"})
"""In-place ops that change sizes and strides, not numbers."""


def _cuts(run: Run, inputs: list[Tensor], bound: Bound) -> frozenset[Cut]:
    """Cuts behind the result: those of the arguments, and one more where grad mode is off."""
    cuts: frozenset[Cut] = frozenset()
    for tensor in inputs:
        if tensor.cuts:
            cuts |= tensor.cuts
    for value in bound.values.values():
        if isinstance(value, Sym) and "__cuts__" in value.facts:
            cuts |= value.facts["__cuts__"]
    off = run.modes.why_off
    if run.modes.grad is False and off is not None and any(t.requires_grad is not False for t in inputs):
        cut = run.cuts_under.setdefault(off.node, Cut(off, "no_grad", ""))
        for tensor in inputs:
            if tensor.requires_grad is not False:
                cut.leaves.update(graphs.leaves_of(tensor))
        cuts |= {cut}
    return cuts


def _read_again(run: Run, inputs: list[Tensor], place: Place) -> None:
    """A tensor that a sub-module rewrote is read by its caller."""
    for tensor in inputs:
        known = run.rewritten.get(tensor.number)
        if known is not None and known.depth >= run.depth and tensor.counter.value == known.version:
            del run.rewritten[tensor.number]
            run.emit(InputRewritten(known.call, False, known.text, known.write.op, place, known.write.place))


def _writable(
    run: Run,
    tensor: Tensor,
    inputs: list[Tensor],
    place: Place,
    name: str,
    expr: ast.AST | None,
    kind: str,
    sure: Tri,
    maker: Place | None,
) -> bool:
    fact = WriteFact(
        name, place, machine.source_text(expr) or tensor.bound_name, kind, True, run.statement, maker=maker
    )
    if machine.check_write(run, tensor, machine.requires(run, (tensor, *inputs)), fact, sure is True):
        return True
    holders.note(run, tensor, place, inputs, maker)
    return False


def _maker(bound: Bound) -> Place | None:
    return bound.module.made if bound.module is not None else None


def _unknown(value: Value) -> bool:
    """An unknown value that may be a tensor that requires grad."""
    return isinstance(value, Sym) and value.tensor is None and value.kind == "any" and not value.data


def _coerce(run: Run, op: Op, form: Form, bound: Bound) -> None:
    """Unknown values that stand where a tensor must stand are tensors.

    The second operand of an arithmetic operator may just as well be a number; it stays unknown.
    """
    operator = op.name.rpartition(".")[2].strip("_") in _ARITHMETIC
    for index, param in enumerate(form.params):
        value = bound.values.get(param.name)
        if operator and index and isinstance(value, Sym) and value.tensor is None:
            continue
        if param.kind is Kind.TENSOR and isinstance(value, Sym) and value.kind in ("any", "tensor"):
            bound.values[param.name] = as_tensor(run, value)
        elif param.kind is Kind.TENSORS and isinstance(value, (ListV, TupleV)):
            for item in value.items:
                if isinstance(item, Sym):
                    as_tensor(run, item)


_ARITHMETIC = frozenset({
    "add", "sub", "mul", "truediv", "div", "pow", "floordiv", "mod", "radd", "rsub", "rmul", "rtruediv", "rpow", "iadd", "isub",
    "imul", "itruediv", "ipow", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor", "multiply", "subtract", "divide", "rmod",
    "rfloordiv",
})  # fmt: skip
"""Operators whose other operand is as often a number as a tensor."""


def _save(run: Run, node: Node, form: Form, bound: Bound, place: Place) -> None:
    if run.modes.saved_hooks:
        return
    for saved in form.saves:
        if saved.role.startswith("result"):
            continue
        kept = holds(run, saved.when, bound)
        if kept is False:
            continue
        sure = kept is True and not run.modes.autocast
        # Statistics that this very call updates are kept, but its backward uses those of the batch.
        read = not any(
            w.role == saved.role and not w.counted and holds(run, w.when, bound) is True for w in form.writes
        )
        expr = bound.exprs.get(saved.role)
        for tensor in bound.tensors(saved.role):
            machine.save(run, node, saved.role, tensor, certain=sure, why=saved.why, expr=expr, read=read)


def _save_results(run: Run, node: Node, form: Form, bound: Bound, result: Value, place: Place) -> None:
    if run.modes.saved_hooks:
        return
    for saved in form.saves:
        if not saved.role.startswith("result"):
            continue
        kept = holds(run, saved.when, bound)
        if kept is False:
            continue
        for tensor in _result_role(form, saved.role, result):
            machine.save(run, node, saved.role, tensor, certain=kept is True, why=saved.why, expr=place.node)


def _result_role(form: Form, role: str, result: Value) -> list[Tensor]:
    if isinstance(result, Tensor):
        return [result]
    if isinstance(result, TupleV):
        if form.list_result:
            return tensors_in(result)
        if role in form.results and form.results.index(role) < len(result.items):
            return tensors_in(result.items[form.results.index(role)])
    return []


def _results(
    run: Run, op: Op, form: Form, bound: Bound, place: Place, node: Node | None, needs: Tri, name: str
) -> Value:
    if not form.results:
        return None
    if form.list_result:
        count = shapes.list_length(op.name, bound.values)
        alias = form.aliases[0] if form.aliases else None
        if alias is not None and len(bound.tensors(alias.of)) > 1:
            # One result for each tensor of a list (`broadcast_tensors`, `atleast_1d`).
            count = len(bound.tensors(alias.of))
        made = tuple(
            _result(run, op, form, "result", bound, place, node, needs, name, alias, index=index)
            for index in range(count or 3)
        )
        return TupleV(made, open=count is None)
    made_all = []
    for role in form.results:
        aliases = [alias for alias in form.aliases if alias.result == role]
        made_all.append(_result_of_aliases(run, op, form, role, bound, place, node, needs, name, aliases))
    if len(made_all) == 1:
        return made_all[0]
    return TupleV(tuple(made_all), names=form.field_names)


def _result_of_aliases(
    run: Run,
    op: Op,
    form: Form,
    role: str,
    bound: Bound,
    place: Place,
    node: Node | None,
    needs: Tri,
    name: str,
    aliases: list[Alias],
) -> Value:
    for alias in aliases:
        sources = bound.tensors(alias.of)
        if not sources:
            continue
        shared = holds(run, alias.when, bound, source=sources[0], op=op)
        if shared is False or (shared is None and len(sources) > 1):
            # Only one tensor rearranged can be a view (`einsum("ij->ji", x)`); of several, none is.
            continue
        if alias.kind is AliasKind.SAME and shared is True:
            return sources[0]
        return _result(run, op, form, role, bound, place, node, needs, name, alias, sure=shared is True)
    return _result(run, op, form, role, bound, place, node, needs, name, None)


def _result(
    run: Run,
    op: Op,
    form: Form,
    role: str,
    bound: Bound,
    place: Place,
    node: Node | None,
    needs: Tri,
    name: str,
    alias: Alias | None,
    *,
    sure: bool = True,
    index: int | None = None,
) -> Tensor:
    if alias is not None:
        source = bound.tensors(alias.of)
        if source:
            of = source[index] if index is not None and len(source) > 1 else source[0]
            view = machine.make_view(run, of, name, place, multi=alias.multi, sure=sure)
            shapes.result_dtype(op.name, view, bound.values)
            if len(source) > 1:
                layout.one_of(op.name, view, source, of)
            elif index is None:
                layout.view(op.name, view, bound.values, source[0])
            else:
                layout.piece(op.name, view, bound.values, source[0], index)
            return view
    made = run.tensor(place)
    if role not in form.nondifferentiable and needs is not False:
        made.requires_grad = needs
        made.leaf = False if needs else None
        made.node = node
        made.likely = node is not None and node.likely
    roles = [param.name for param in form.params if param.kind in (Kind.TENSOR, Kind.TENSORS)]
    roles += [name for name in form.differentiable if name.startswith("self.")]
    tensors = [tensor for name in roles for tensor in bound.tensors(name)]
    shapes.like(made, tensors, differentiable=role not in form.nondifferentiable)
    shapes.result_dtype(op.name, made, bound.values)
    shape = (
        sizes.result_shape(op, form, bound.values, bool(op.inplace_of), bound.module)
        if role in ("result", "result0")
        else None
    )
    layout.fresh(made, shape, tensors)
    made.sure = all(t.sure for t in tensors) if tensors else True
    return made


def holds(
    run: Run, when: Condition, bound: Bound, *, source: Tensor | None = None, op: Op | None = None
) -> Tri:
    """Truth of a condition for these arguments."""
    if when == ("*",):
        return True
    if not when:
        return False
    return either(
        *[both(*[_atom(run, atom, bound, source, op) for atom in clause]) for clause in _parse(when)]
    )


@lru_cache(maxsize=4096)
def _parse(when: Condition) -> tuple[tuple[tuple[str, str, object], ...], ...]:
    clauses = []
    for clause in when:
        atoms: list[tuple[str, str, object]] = []
        for atom in clause.split(" & "):
            name, sep, literal = atom.partition("!=")
            if sep:
                atoms.append(("ne", name, constant(literal)))
                continue
            name, sep, literal = atom.partition("=")
            if sep:
                atoms.append(("eq", name, constant(literal)))
            else:
                atoms.append(("nograd", atom[1:], None) if atom.startswith("!") else ("grad", atom, None))
        clauses.append(tuple(atoms))
    return tuple(clauses)


_MEMORY_FACTS = frozenset({"contiguous", "same_dtype", "same_device", "same_shape", "viewable"})


def _atom(run: Run, atom: tuple[str, str, object], bound: Bound, source: Tensor | None, op: Op | None) -> Tri:
    kind, name, literal = atom
    if kind == "nograd":
        needs = _atom(run, ("grad", name, None), bound, source, op)
        return None if needs is None else not needs
    if kind == "grad":
        if name == "*":
            return True
        if name == "?":
            return None
        if name in _MEMORY_FACTS:
            return shapes.memory_fact(name, source, bound.values, op.name if op else "")
        if _unknown(bound.values.get(name)):
            return both(run.modes.grad, None)
        return machine.requires(run, bound.tensors(name))
    if name.endswith(".ndim"):
        ranks = {len(t.shape) if t.shape is not None else None for t in bound.tensors(name[:-5])}
        if len(ranks) != 1 or None in ranks:
            return None
        value = ranks.pop()
    elif name.startswith("self.") and bound.module is not None:
        value = bound.module.training if name == "self.training" else bound.module.attributes.get(name[5:])
    elif name in bound.values:
        value = bound.values[name]
    else:
        value = _default(bound, name)
    if isinstance(value, Sym):
        return None
    if isinstance(literal, bool) and not isinstance(value, bool):
        flag = known_truth(value)
        return None if flag is None else (flag is literal) is (kind == "eq")
    if isinstance(value, (Tensor, ListV, TupleV, DictV, Instance)):
        equal = False
    else:
        equal = (type(value) is type(literal) and value == literal) or (
            is_number(value) and is_number(literal) and value == literal
        )
    return equal if kind == "eq" else not equal


def _default(bound: Bound, name: str) -> Value:
    return bound.values.get("=" + name)


def defaults_into(form: Form, bound: Bound) -> None:
    """Make defaults visible to conditions, marked apart from arguments that were given."""
    for param in form.params:
        if param.name not in bound.given and param.default is not None:
            bound.values["=" + param.name] = constant(param.default)
