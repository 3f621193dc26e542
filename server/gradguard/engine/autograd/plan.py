"""What `apply` asks of a form each time it runs, worked out once."""

from __future__ import annotations

from functools import lru_cache

from gradguard.engine.state.coerce import constant
from gradguard.ops.model import AliasKind, Form, Kind, Saved


class Plan:
    """A form's roles, sorted by what is done with them."""

    __slots__ = (
        "coerced",
        "defaults",
        "form",
        "names",
        "numbers",
        "returned",
        "saved_arguments",
        "saved_results",
        "sources",
        "states",
    )

    def __init__(self, form: Form) -> None:
        params = form.params
        self.form = form
        self.names = frozenset(param.name for param in params)
        self.defaults = tuple(
            (param.name, "=" + param.name, constant(param.default))
            for param in params
            if param.default is not None
        )
        self.coerced = tuple(
            (index, param.name, param.kind)
            for index, param in enumerate(params)
            if param.kind in (Kind.TENSOR, Kind.TENSORS)
        )
        """Position, name and kind of the parameters that take tensors."""
        self.states = tuple(
            param.name for param in params if param.kind is Kind.ANY and param.name not in form.differentiable
        )
        self.numbers = tuple(param.name for param in params if param.kind in (Kind.NUMBER, Kind.FLOAT))
        self.returned = frozenset(
            alias.of for alias in form.aliases if alias.kind is AliasKind.SAME and alias.of != "out"
        )
        """What an op writes without handing it back (`Embedding(max_norm=...)`) it writes under no_grad."""
        self.sources = (
            *(name for _, name, _ in self.coerced),
            *(role for role in form.differentiable if role.startswith("self.")),
        )
        """Roles of the tensors that a result takes after."""
        self.saved_arguments: tuple[Saved, ...] = tuple(
            saved for saved in form.saves if not saved.role.startswith("result")
        )
        self.saved_results: tuple[Saved, ...] = tuple(
            saved for saved in form.saves if saved.role.startswith("result")
        )


_PLANS: dict[int, Plan] = {}


def plan(form: Form) -> Plan:
    """The plan of a form."""
    known = _PLANS.get(id(form))
    if known is None or known.form is not form:
        known = _PLANS[id(form)] = Plan(form)
    return known


@lru_cache(maxsize=4096)
def short(name: str) -> str:
    """The last part of an op's name, without underscores at its ends: `add` for `Tensor.__add__`."""
    return name.rpartition(".")[2].strip("_")
