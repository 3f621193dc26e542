"""Classes of `torch.nn`: built in many ways, called, and the row that what was seen amounts to."""

from __future__ import annotations

import inspect
import itertools
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.testing._internal.common_modules import module_db

from gradguard.ops import observe_extra_modules, observe_samples
from gradguard.ops.generate_signatures import parameters
from gradguard.ops.model import ALWAYS, Condition, Form, ModuleRow, Param
from gradguard.ops.observe import Refused, Scene, can_require_grad, fresh
from gradguard.ops.observe_bind import bind, caller, default_of
from gradguard.ops.observe_learn import GIVEN, Facts, learn
from gradguard.ops.observe_rows import Learned, Watched, learn_form, refine, watch_scene

BUILDS_A_CLASS = 24
VARIED_BUILDS = 6
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
    builds, calls, refusals = _watch(cls, init, form)
    form = replace(form, params=refine(form.params, calls))
    learned = learn_form(form, calls, native=False)
    row = replace(
        row,
        absent=_absent(init, builds),
        parameters=_members(init, builds, lambda m: m.named_parameters()),
        buffers=_members(init, builds, lambda m: m.named_buffers()),
        forms=tuple(f for f in learned.forms if not f.unobserved),
    )
    learned.refusals = refusals
    return row, learned


class Example:
    """A module as built, kept for what its attributes are."""

    def __init__(self, build: Built, module: nn.Module) -> None:
        self.build = build
        self.module = module
        self.attributes = attributes(module)


def _watch(
    cls: type[nn.Module], init: tuple[Param, ...], form: Form
) -> tuple[list[Example], list[Watched], list[str]]:
    examples: list[Example] = []
    calls: list[Watched] = []
    refusals: list[str] = []
    base = list(builds(cls, init))
    # At random, as the samples alternate flags in a fixed order.
    chosen = random.Random(0).sample(base, min(len(base), BUILDS_A_CLASS * 2))
    varied = [
        v
        for b in chosen[:: max(1, len(chosen) // VARIED_BUILDS)][:VARIED_BUILDS]
        for v in _variations(init, b)
    ]
    for build in [b for pair in itertools.zip_longest(chosen, varied) for b in pair if b is not None]:
        if len(calls) >= FEW_BUILDS and sum(len(w.values) for w in calls) > len(calls) * MANY_ROLES:
            break
        values = bind(form, build.inputs, build.named_inputs, strict=False)
        if values is None:
            refusals.append(f"forward does not take {len(build.inputs)} arguments")
            continue
        try:
            module = construct(cls, build)
            calls.append(
                watch_scene(scene(cls, build, form, values), {**values, **members(module)}, turn=len(calls))
            )
        except Refused as refusal:
            refusals.append(str(refusal))
            continue
        except Exception as error:
            refusals.append(f"{type(error).__name__}: {error}")
            continue
        examples.append(Example(build, module))
        calls[-1].literals = examples[-1].attributes
    return examples, calls, refusals


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
        arguments = {n: fresh(v, grad=n in grads) for n, v in values.items()}
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
