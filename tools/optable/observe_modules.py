"""Classes of `torch.nn`: built in many ways, called, and the row that what was seen amounts to."""

from __future__ import annotations

import inspect
import itertools
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn
from torch.testing._internal.common_modules import module_db

from gradguard.ops.model import ALWAYS, Condition, Form, Kind, ModuleRow, Param
from tools.optable import observe_extra_modules, observe_samples, observe_vary
from tools.optable.generate_signatures import parameters
from tools.optable.observe import Refused, Scene, can_require_grad, fresh, fresh_role
from tools.optable.observe_bind import bind, caller, default_of
from tools.optable.observe_learn import GIVEN, Facts, learn
from tools.optable.observe_rows import Learned, compared, learn_form, refine
from tools.optable.observe_watch import CROSSED_CALLS, Watched, different, watch_scene

BUILDS_A_CLASS = 24
VARIED_BUILDS = 6
VARIED_INPUTS = 4
MANY_ROLES, FEW_BUILDS = 10, 40
"""A module with that many arguments and parameters is built fewer times."""
CONTAINERS = (
    "Sequential",
    "ModuleList",
    "ModuleDict",
    "ParameterList",
    "ParameterDict",
    "Container",
    "Module",
)

Build = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(slots=True)
class Built:
    """One way of constructing and calling a module."""

    init: dict[str, Any]
    """Constructor arguments by name."""
    training: bool
    inputs: tuple[Any, ...]
    named_inputs: dict[str, Any]


def classes() -> dict[str, type[nn.Module]]:
    """Every public class of modules in `torch.nn`, by public name."""
    found = {}
    for name in sorted(dir(nn)):
        value = getattr(nn, name)
        if isinstance(value, type) and issubclass(value, nn.Module):
            found[f"torch.nn.{name}"] = value
    return found


def init_params(cls: type[nn.Module]) -> tuple[Param, ...]:
    signature = inspect.signature(cls.__init__)
    kept = [p for n, p in signature.parameters.items() if n != "self"]
    if [p.name for p in kept] == ["args", "kwargs"] and issubclass(cls, nn.RNNBase):
        # Recurrent modules pass everything on, after the mode that the class stands for.
        signature = inspect.signature(nn.RNNBase.__init__)
        kept = [p for n, p in signature.parameters.items() if n not in ("self", "mode")]
        if cls is nn.RNN:
            word = inspect.Parameter("nonlinearity", inspect.Parameter.KEYWORD_ONLY, default="tanh")
            kept.append(word)
    return parameters(signature.replace(parameters=kept))


def forward_form(cls: type[nn.Module]) -> Form:
    signature = inspect.signature(cls.forward)
    kept = [p for n, p in signature.parameters.items() if n != "self"]
    params = parameters(signature.replace(parameters=kept))
    return Form(params=params)


def make_row(name: str) -> tuple[ModuleRow, Learned]:
    """The row of a class. Its form is missing when no sample runs."""
    cls = classes()[name]
    init = init_params(cls)
    container = name.rpartition(".")[2] in CONTAINERS
    row = ModuleRow(name, init=init, container=container)
    if container:
        return row, Learned([])
    form = forward_form(cls)
    watching = _Watching(cls, init, form)
    watching.everything()
    form = replace(form, params=refine(form.params, watching.calls))
    learned = learn_form(form, watching.calls, native=False)
    if watching.crossed(list(dict.fromkeys(n for one in learned.forms for n in compared(one)))):
        learned = learn_form(form, watching.calls, native=False)
    examples = watching.examples
    row = replace(
        row,
        absent=_absent(init, examples),
        parameters=_members(init, examples, lambda m: m.named_parameters()),
        buffers=_members(init, examples, lambda m: m.named_buffers()),
        forms=tuple(f for f in learned.forms if not f.unobserved),
    )
    learned.refusals = watching.refusals
    return row, learned


class Example:
    """A module as built, kept for what its attributes are."""

    def __init__(self, build: Built, module: nn.Module) -> None:
        self.build = build
        self.module = module
        self.attributes = attributes(module)


@dataclass(slots=True)
class _Watching:
    """A class as it is built and called, one way after the other."""

    cls: type[nn.Module]
    init: tuple[Param, ...]
    form: Form
    examples: list[Example] = field(default_factory=list)
    calls: list[Watched] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)

    def everything(self) -> None:
        """The samples, and each with one argument changed."""
        base = list(builds(self.cls, self.init))
        # At random, as the samples alternate flags in a fixed order.
        chosen = random.Random(0).sample(base, min(len(base), BUILDS_A_CLASS * 2))
        varied = [
            v
            for b in chosen[:: max(1, len(chosen) // VARIED_BUILDS)][:VARIED_BUILDS]
            for v in _variations(self.init, b)
        ]
        for build in [b for pair in itertools.zip_longest(chosen, varied) for b in pair if b is not None]:
            if self._enough():
                return
            self._attempt(build)
        for base_call, example in list(zip(self.calls, self.examples))[:VARIED_INPUTS]:
            for build in _other_inputs(self.form, example.build):
                if not self._enough():
                    self._attempt(build, base_call)

    def crossed(self, names: Sequence[str]) -> bool:
        """Combinations of the attributes that conditions compare; whether there were any."""
        before = len(self.calls)
        chooser = random.Random(0)
        known = [e.build for e in self.examples]
        for base_call in different(self.calls, CROSSED_CALLS):
            if sum(len(w.values) for w in self.calls) > len(self.calls) * MANY_ROLES:
                break
            at = next(i for i, w in enumerate(self.calls) if w is base_call)
            for build in crossed(self.init, names, known[at], known, chooser):
                self._attempt(build, base_call)
        return len(self.calls) > before

    def _enough(self) -> bool:
        many = sum(len(w.values) for w in self.calls) > len(self.calls) * MANY_ROLES
        return len(self.calls) >= FEW_BUILDS and many

    def _attempt(self, build: Built, like: Watched | None = None) -> None:
        values = bind(self.form, build.inputs, build.named_inputs, strict=False)
        if values is None:
            self.refusals.append(f"forward does not take {len(build.inputs)} arguments")
            return
        try:
            module = construct(self.cls, build)
            watched = watch_scene(
                scene(self.cls, build, self.form, values),
                {**values, **members(module)},
                turn=len(self.calls),
                like=like,
            )
        except Refused as refusal:
            self.refusals.append(str(refusal))
            return
        except Exception as error:
            self.refusals.append(f"{type(error).__name__}: {error}")
            return
        self.examples.append(Example(build, module))
        watched.literals = self.examples[-1].attributes
        self.calls.append(watched)


def crossed(
    init: tuple[Param, ...],
    names: Sequence[str],
    build: Built,
    known: Sequence[Built],
    chooser: random.Random,
) -> Iterator[Built]:
    """The module built with combinations of the attributes among the names, as `self.training`."""
    shape = Form(params=(*init, Param("training", Kind.BOOL)))
    wanted = [n.removeprefix("self.") for n in names if n.startswith("self.")]
    if not wanted:
        return
    pool = observe_vary.pool(shape, [{**b.init, "training": b.training} for b in known])
    given = {**build.init, "training": build.training}
    for values in observe_vary.crossed(shape, wanted, given, pool, chooser):
        made = {n: v for n, v in values.items() if n != "training"}
        yield replace(build, init=made, training=values["training"])


def _other_inputs(form: Form, build: Built) -> Iterator[Built]:
    """The same module called with one tensor of another size or order in memory."""
    values = bind(form, build.inputs, build.named_inputs, strict=False)
    for changed in observe_vary.one_at_a_time(Form(params=()), values or {}, {}):
        yield replace(build, inputs=(), named_inputs=changed)


def construct(cls: type[nn.Module], build: Built) -> nn.Module:
    torch.default_generator.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = cls(**build.init) if _by_name(cls) else cls(*build.init.values())
        if any(
            isinstance(t, nn.parameter.UninitializedTensorMixin)
            for t in (*module.parameters(), *module.buffers())
        ):
            with torch.no_grad():
                module(*fresh(build.inputs, grad=False), **fresh(build.named_inputs, grad=False))
    return module.train(build.training)


def _by_name(cls: type[nn.Module]) -> bool:
    kinds = [p.kind for p in inspect.signature(cls.__init__).parameters.values()]
    return inspect.Parameter.VAR_KEYWORD in kinds or inspect.Parameter.VAR_POSITIONAL not in kinds


def members(module: nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers as roles."""
    named = [*module.named_parameters(), *module.named_buffers()]
    return {f"self.{name}": t for name, t in named}


def scene(cls: type[nn.Module], build: Built, form: Form, values: dict[str, Any]) -> Scene:
    """Each run builds the module anew; its parameters require grad by role."""

    def set_up(grads: frozenset[str]) -> tuple[Callable[[], Any], dict[str, Any]]:
        module = construct(cls, build)
        torch.default_generator.manual_seed(0)
        for name, parameter in module.named_parameters():
            if can_require_grad(parameter):
                parameter.requires_grad_(f"self.{name}" in grads)
        arguments = {n: fresh_role(n, v, grads) for n, v in values.items()}
        call = caller(module, form)
        return lambda: call(arguments), {**arguments, **members(module)}

    return set_up


def attributes(module: nn.Module) -> dict[str, Any]:
    """Literal attributes by `self.name`; other values stand as given."""
    found: dict[str, Any] = {"self.training": module.training}
    for name in [p.name for p in init_params(type(module))]:
        if hasattr(module, name):
            value = getattr(module, name)
            simple = value is None or isinstance(value, (bool, int, float, str))
            found[f"self.{name}"] = value if simple else GIVEN
    return found


# --- ways of building ----------------------------------------------------------------------------------------------


def builds(cls: type[nn.Module], init: tuple[Param, ...]) -> Iterator[Built]:
    shape = Form(params=init)
    for training in (True, False):
        for (args, kwargs), (inputs, named) in _inputs(cls, training):
            values = bind(shape, args, kwargs, strict=False)
            if values is not None:
                yield Built(values, training, inputs, named)


def _inputs(cls: type[nn.Module], training: bool) -> Iterator[tuple[Build, Build]]:
    observe_samples.seed(0)
    yield from observe_extra_modules.samples(cls.__name__)
    for info in module_db:
        if info.module_cls is not cls:
            continue
        observe_samples.seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = info.module_inputs_func(
                info, device="cpu", dtype=torch.float32, requires_grad=False, training=training
            )
        for m in found:
            if m.forward_input is not None and observe_samples.usual(
                (m.forward_input.args, m.forward_input.kwargs)
            ):
                yield (
                    (tuple(m.constructor_input.args), dict(m.constructor_input.kwargs)),
                    (tuple(m.forward_input.args), dict(m.forward_input.kwargs)),
                )


def _variations(init: tuple[Param, ...], build: Built) -> Iterator[Built]:
    """The same module with one flag flipped, in both modes."""
    for param in init:
        if param.name in ("device", "dtype"):
            continue
        for value in _others(param, build.init.get(param.name)):
            yield replace(build, init={**build.init, param.name: value})
    yield replace(build, training=not build.training)


def _others(param: Param, given: Any) -> tuple[Any, ...]:
    if param.default in ("True", "False"):
        now = given if isinstance(given, bool) else param.default == "True"
        return (not now,)
    if param.name == "reduction":
        return tuple(r for r in ("none", "mean", "sum") if r != (given or "mean"))
    if param.name in ("p", "dropout") and isinstance(default_of(param), float):
        return tuple(v for v in (0.0, 0.5) if v != given)
    if param.name == "max_norm":
        return (1.0,) if given is None else (None,)
    return ()


# --- what exists ---------------------------------------------------------------------------------------------------


def _init_facts(init: tuple[Param, ...], example: Example) -> Facts:
    literals: dict[str, Any] = {}
    for param in init:
        value = example.build.init.get(param.name, default_of(param))
        simple = value is None or isinstance(value, (bool, int, float, str))
        literals[param.name] = value if simple else GIVEN
    return Facts(frozenset(), literals, {})


def _absent(init: tuple[Param, ...], examples: Sequence[Example]) -> tuple[str, ...]:
    return tuple(p.name for p in init if examples and not any(hasattr(e.module, p.name) for e in examples))


def _members(
    init: tuple[Param, ...], examples: Sequence[Example], named: Callable[[nn.Module], Any]
) -> tuple[tuple[str, Condition], ...]:
    """Names of parameters or buffers with the constructor arguments that make them exist."""
    names = dict.fromkeys(itertools.chain.from_iterable([n for n, _ in named(e.module)] for e in examples))
    out = []
    for name in names:
        seen = [(_init_facts(init, e), any(n == name for n, _ in named(e.module))) for e in examples]
        out.append((name, ALWAYS if all(there for _, there in seen) else learn(seen)))
    return tuple(out)
