"""Compound statements of grown programs: branches, loops, no_grad blocks, functions, modules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import nn

from tests.fuzz.live import Frame, Helper, Place, Raised, Unusable, Writer
from tests.fuzz.statements import (
    any_write,
    backward,
    expression,
    fill,
    made,
    number,
    simple,
    write_augmented,
    write_call,
    write_idiom,
)

Body = Callable[[], None]


def some(w: Writer, least: int, most: int) -> Body:
    """A body of a few simple statements."""

    def body() -> None:
        wanted = w.count + w.rng.randint(least, most)
        for _ in range(most * 4):
            if w.count >= wanted:
                break
            simple(w)

    return body


# Grad modes

MODES: tuple[tuple[str, Callable[[], AbstractContextManager[Any]], float], ...] = (
    ("torch.no_grad()", torch.no_grad, 8),
    ("torch.enable_grad()", torch.enable_grad, 1),
    ("torch.set_grad_enabled(False)", lambda: torch.set_grad_enabled(False), 1),
    ("torch.set_grad_enabled(True)", lambda: torch.set_grad_enabled(True), 0.5),
    ("torch.inference_mode()", torch.inference_mode, 0.4),
    ("torch.autograd.set_detect_anomaly(False)", lambda: torch.autograd.set_detect_anomaly(False), 0.3),
)


def grad_mode(w: Writer) -> bool:
    text, enter, _ = w.rng.choices(MODES, [weight for *_, weight in MODES])[0]
    if "inference" in text and not w.style.raising:
        return False
    with enter():
        lines, failure = written(
            w, some(w, 1, 2) if w.rng.random() < 0.4 else lambda: (any_write(w), some(w, 0, 1)())
        )
    if not lines:
        return False
    place(w, f"with {text}:", lines)
    if failure is not None:
        raise failure
    return True


def written(w: Writer, body: Callable[[], Any]) -> tuple[list[str], Exception | None]:
    """The lines a body writes, and the end of the program if it came there."""
    with w.captured() as lines:
        try:
            body()
        except (Raised, Unusable) as failure:
            return lines, failure
    return lines, None


def place(w: Writer, header: str, lines: list[str]) -> None:
    """Puts lines under a header."""
    w.lines.append("    " * w.depth + header)
    w.lines.extend("    " * (w.depth + 1) + line for line in lines or ["pass"])


@contextmanager
def block(w: Writer, header: str) -> Any:
    """Statements written inside stand under `header`, also when the program ends there."""
    w.emit(header)
    w.count -= 1
    with w.indented():
        yield


# Branches


def condition(w: Writer) -> str | None:
    """A condition on plain values."""
    space = w.frame.space
    forms: list[str] = []
    for name in w.frame.names:
        value = space.get(name)
        if isinstance(value, bool):
            forms += [name, f"not {name}", name, f"{name} is True"]
        elif isinstance(value, (int, float)):
            forms += [f"{name} > 1", f"{name} < 3", f"{name} == 2"] + (
                [f"{name} % 2 == 0"] if isinstance(value, int) else []
            )
        elif isinstance(value, str):
            forms += [f'{name} == "train"', f'{name} != "train"', f'{name} in ("eval", "test")']
        elif isinstance(value, list):
            forms += [f"len({name}) > 1", name]
        elif isinstance(value, torch.Tensor) and w.rng.random() < 0.04:
            forms += [
                f"{name}.dim() == 2",
                f"{name}.requires_grad",
                f"{name}.shape[0] > 2" if value.dim() else f"{name}.is_leaf",
            ]
    if "self" in space:
        forms += ["self.training", "not self.training", "self.residual", "self.residual"]
    return w.rng.choice(forms) if forms else None


def branch(w: Writer) -> bool:
    text = condition(w)
    if text is None:
        return False
    taken = bool(eval(text, w.frame.space))
    both = w.rng.random() < 0.5
    with block(w, f"if {text}:"):
        _branch_body(w, taken)
    if both:
        with block(w, "else:"):
            _branch_body(w, not taken)
    return True


def _branch_body(w: Writer, taken: bool) -> None:
    known = list(w.frame.names)
    if taken:
        some(w, 1, 2)()
        if w.rng.random() < 0.5:
            # Names bound in the branch only are mostly not used after it.
            w.frame.names = [n for n in w.frame.names if n in known]
    else:
        with shadowed(w):
            some(w, 1, 2)()


@contextmanager
def shadowed(w: Writer) -> Any:
    """Writes statements that are not reached: they work on copies of the values."""
    frame, was = w.frame, w.shadow
    state = torch.get_rng_state()
    space = {
        k: _copy(v) for k, v in frame.space.items() if not isinstance(v, (nn.Module, torch.optim.Optimizer))
    }
    names = [n for n in frame.names if n in space]
    w.frame, w.shadow = (
        Frame(space, names, dict(frame.fixed), [p for p in frame.places if not p.startswith("self.")]),
        True,
    )
    try:
        yield
    finally:
        w.frame, w.shadow = frame, was
        torch.set_rng_state(state)


def _copy(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        now = Place.of("", value)
        copy = value.data.clone()
        if not now.grad or not copy.is_floating_point():
            return copy
        return copy.requires_grad_() if now.leaf else copy.requires_grad_() * 1
    if type(value) in (list, tuple):
        return type(value)(_copy(v) for v in value)
    if type(value) is dict and "__builtins__" not in value:
        return {k: _copy(v) for k, v in value.items()}
    if type(value).__name__ == "SimpleNamespace":
        return type(value)(**{k: _copy(v) for k, v in vars(value).items()})
    return value


# Loops


def loop(w: Writer, header: str, names: list[str], items: Iterable[Any], body: Callable[[], Any]) -> None:
    """A loop: the first pass runs while it is written, the others afterwards.

    `names` are bound to each of `items`; without names the header is run as it stands (`while`).
    """
    rest = iter(items)
    first = next(rest)
    fixed = dict(w.frame.fixed)
    for name in w.frame.names:
        value = w.frame.space.get(name)
        if isinstance(value, torch.Tensor):
            w.frame.fixed[name] = (tuple(value.shape), value.dtype)
    for name, value in zip(names, first if len(names) > 1 else (first,)):
        w.frame.know(name, value)
    lines, failure = written(w, body)
    w.frame.fixed = fixed
    place(w, header, lines)
    if failure is not None:
        raise failure
    again = f"for {', '.join(names)} in _rest:" if names else header
    w.frame.space["_rest"] = rest
    text = "\n".join([again, *("    " + line for line in lines or ["pass"])])
    try:
        exec(compile(text, "program.py", "exec"), w.frame.space)
    except Exception as error:
        w.refused(None, error, certain=True)
    finally:
        w.frame.space.pop("_rest", None)


def for_range(w: Writer) -> bool:
    n = w.rng.choice((2, 3))
    name = w.fresh("i")
    w.frame.fixed.pop(name, None)
    body = some(w, 1, 3)
    ints = [k for k in w.frame.names if type(w.frame.space.get(k)) is int and 0 < w.frame.space[k] < 4]
    bound = w.rng.choice(ints) if ints and w.rng.random() < 0.3 else str(n)
    count = w.frame.space.get(bound, n)
    loop(w, f"for {name} in range({bound}):", [name], range(count), body)
    return True


def for_items(w: Writer) -> bool:
    """Loops over a container or the rows of a tensor, writing to the element or collecting from it."""
    options: list[tuple[str, list[str], Callable[[], Iterable[Any]]]] = []
    for name in w.frame.names:
        value = w.frame.space.get(name)
        if isinstance(value, (list, tuple)) and value and all(isinstance(v, torch.Tensor) for v in value):
            options.append((name, ["t"], partial(list, value)))
            options.append((f"enumerate({name})", ["i", "t"], partial(enumerate, list(value))))
        elif isinstance(value, dict) and value and name in w.frame.names:
            options.append((f"{name}.values()", ["t"], partial(list, value.values())))
            options.append((f"{name}.items()", ["key", "t"], partial(list, value.items())))
        elif (
            isinstance(value, torch.Tensor)
            and value.is_floating_point()
            and 0 < value.dim() < 3
            and value.shape[0] < 4
        ):
            if Place.of(name, value).broken:
                continue
            options.append((name, ["row"], partial(iter, value)))
            options.append((f"zip({name}, {name})", ["row", "other"], partial(zip, value, value)))
    if not options:
        return False
    text, names, look = w.rng.choice(options)
    try:
        items = list(look())
    except RuntimeError:  # torch does not give the rows of every tensor
        return False
    if not items:
        return False
    names = [w.fresh(n) for n in names]
    looped = next(n for n in w.frame.names if n in re.split(r"\W+", text))
    if not isinstance(w.frame.space[looped], torch.Tensor):
        # The body must not lengthen what the loop runs over.
        w.frame.names.remove(looped)
    try:
        loop(w, f"for {', '.join(names)} in {text}:", names, items, some(w, 1, 2))
    finally:
        if looped not in w.frame.names:
            w.frame.names.append(looped)
    return True


def accumulation(w: Writer) -> bool:
    """A sum over iterations, or results put into a list, with the backward afterwards."""
    total, n = w.fresh("total"), w.rng.choice((2, 3, 4))
    start = w.rng.choice(("0", "0.0", "torch.zeros(())", "[]", "torch.zeros(3)", "torch.zeros(4, 3)"))
    if not (w.assign(total, start) or start == "[]"):
        if start in ("0", "0.0"):
            w.frame.know(total, eval(start))
            w.emit(f"{total} = {start}")
        else:
            return False
    if start == "[]" and total not in w.frame.space:
        w.frame.know(total, [])
        w.emit(f"{total} = []")
    index = w.fresh("i")

    def body() -> None:
        some(w, 0, 2)()
        place = w.pick("f", (3,) if start in ("torch.zeros(3)", "torch.zeros(4, 3)") else None, grad=True)
        if place is None:
            return
        a = place.text
        forms = {
            "[]": (
                "{t}.append({a})",
                "{t}.append({a}.sum())",
                "{t}.append({a}.detach())",
                "{t} += [{a}.mean()]",
                "{t}.append({a}.clone())",
            ),
            "torch.zeros(3)": (
                "{t} += {a}",
                "{t} = {t} + {a}",
                "{t}.add_({a})",
                "{t} = {t} * 0.9 + {a}",
                "{t} += {t} * {a}",
                "{t}.mul_({a})",
            ),
            "torch.zeros(4, 3)": (
                "{t}[{i}] = {a}",
                "{t}[{i}] += {a}",
                "{t}[{i}].add_({a})",
                "{t}[{i}] = torch.tanh({t}[{i} - 1] + {a})",
                "{t}[{i}] = {t}[{i} - 1] * {a}",
                "{t}[{i}].copy_({a})",
            ),
        }.get(
            start,
            ("{t} += {a}.sum()", "{t} = {t} + {a}.mean()", "{t} += ({a} * {a}).sum()", "{t} -= {a}.sum()"),
        )
        w.run(w.rng.choice(forms).format(t=total, a=a, i=index))

    loop(w, f"for {index} in range({n}):", [index], range(n), body)
    value = w.frame.space.get(total)
    if isinstance(value, list) and value:
        text = w.rng.choice(
            (
                "torch.stack({t}).sum()",
                "sum({t})",
                "torch.cat([t.reshape(-1) for t in {t}]).sum()",
                "sum(t.sum() for t in {t})",
            )
        ).format(t=total)
        w.assign(w.fresh("loss"), text)
    return True


def while_loop(w: Writer) -> bool:
    name = w.fresh("step")
    w.frame.know(name, 0)
    w.emit(f"{name} = 0")

    def body() -> None:
        some(w, 1, 2)()
        w.run(f"{name} += 1")

    loop(w, f"while {name} < 2:", [], [None], body)
    return True


# Functions


def function(w: Writer) -> bool:
    """A helper above the program, and its first call here."""
    arguments = [p for p in (w.pick("f"), w.pick("f", stale=True)) if p is not None]
    arguments = arguments[: w.rng.choice((1, 2, 2))]
    if not arguments or w.depth > 3:
        return False
    name = w.fresh(
        w.rng.choice(("helper", "update", "block", "mix", "scale", "encode", "step_fn", "normalize", "head"))
    )
    params = w.rng.sample(("x", "h", "t", "inp", "feat", "skip"), len(arguments))
    flag = w.rng.random() < 0.3
    space = dict(w.base)
    frame = Frame(space)
    for param, place in zip(params, arguments):
        frame.know(param, place.tensor)
    if flag:
        frame.know("training", True)
    caller, w.frame = w.frame, frame
    decorated = w.rng.random() < 0.08
    given = [p.text for p in arguments]
    answer: list[tuple[Any, str]] = []
    with torch.no_grad() if decorated else nullcontext():
        body, failure = written(w, lambda: answer.append(_function_body(w)))
    result, returned = answer[0] if answer else (None, "")
    w.frame = caller
    signature = ", ".join(params + (["training=True"] if flag else []))
    lines = ["@torch.no_grad()"] if decorated else []
    lines.append(f"def {name}({signature}):")
    lines += ["    " + line for line in body + ([f"return {returned}"] if returned else []) or ["pass"]]
    w.head.append("\n".join(lines))
    target = caller_target(w, result) if isinstance(result, (torch.Tensor, tuple)) else ""
    _finish_call(w, name, given, params, result, target)
    if failure is not None:
        raise failure
    w.helpers.append(Helper(name, tuple(p.tensor for p in arguments)))
    return True


def caller_target(w: Writer, result: Any) -> str:
    """What a call's result is bound to."""
    if isinstance(result, tuple):
        return ", ".join([w.fresh("first"), w.fresh("second")])
    return w.target(result)


def _finish_call(w: Writer, name: str, given: list[str], params: list[str], result: Any, target: str) -> None:
    exec(compile(w.head[-1], "program.py", "exec"), w.base)
    w.frame.space[name] = w.base[name]
    if w.rng.random() < 0.2:
        given = given[:1] + [f"{p}={g}" for p, g in zip(params[1:], given[1:])]
    call = f"{name}({', '.join(given)})"
    if not target:
        w.emit(call)
        return
    w.emit(f"{target} = {call}")
    names = target.split(", ")
    for n, value in zip(names, result if isinstance(result, tuple) else (result,)):
        w.frame.know(n, value)


def _function_body(w: Writer) -> tuple[Any, str]:
    """Writes the body; the value and text of what it returns."""
    if w.rng.random() < 0.4:
        made(w, "write in helper", w.rng.choice((write_call, write_augmented, write_idiom)))
    if w.rng.random() < 0.15 and w.helpers:
        call_again(w)
    some(w, 1, 4)()
    if w.rng.random() < 0.15:
        branch(w)
    roll = w.rng.random()
    if roll < 0.15:
        return None, ""
    if roll < 0.3 and (a := w.pick("f")) and (b := w.pick("f")):
        return (a.tensor, b.tensor), f"{a.text}, {b.text}"
    if roll < 0.6 and (text := expression(w)) is not None:
        value = w.value(text)
        if isinstance(value, torch.Tensor):
            return value, text
    place = w.pick("f", stale=True)
    return (place.tensor, place.text) if place else (None, "")


def call_again(w: Writer) -> bool:
    """A helper called once more, with other tensors of the same shapes."""
    if not w.helpers:
        return False
    helper = w.rng.choice(w.helpers)
    given = []
    for value in helper.arguments:
        place = w.pick("f", tuple(value.shape), grad=value.requires_grad)
        if place is None:
            return False
        given.append(place.text)
    call = f"{helper.name}({', '.join(given)})"
    try:
        code = compile(f"_result = {call}", "program.py", "exec")
        exec(code, w.frame.space)
    except Exception as error:
        w.refused(call, error, certain=True)
        return False
    result = w.frame.space.pop("_result")
    if isinstance(result, torch.Tensor):
        name = w.target(result)
        w.frame.know(name, result)
        w.emit(f"{name} = {call}")
    elif isinstance(result, tuple):
        names = [w.fresh("first"), w.fresh("second")]
        for n, value in zip(names, result):
            w.frame.know(n, value)
        w.emit(f"{', '.join(names)} = {call}")
    else:
        w.emit(call)
    return True


def small_function(w: Writer) -> bool:
    """A lambda, or a function defined where it is used that sees the names around it."""
    a = w.pick("f")
    if a is None:
        return False
    name = w.fresh(w.rng.choice(("act", "gate", "fn")))
    if w.rng.random() < 0.5:
        body = w.rng.choice(
            (
                "t.sigmoid() * {n}",
                "torch.relu(t) + t",
                "t.mul_({n})",
                "t * t",
                "t.exp()",
                "F.relu(t, inplace=True)",
                "t.add_({n}).tanh()",
            )
        ).format(n=number(w))
        text = f"{name} = lambda t: {body}"
    else:
        inner = w.rng.choice(
            (
                "t += {n}",
                "t.mul_({n})",
                "t = t.exp()",
                "t = t + {c}",
                "t[0] = {n}",
                "t = F.relu(t, inplace=True)",
            )
        ).format(n=number(w), c=fill(w, "M"))
        text = f"def {name}(t):\n    {inner}\n    return t * t"
    exec(text, w.frame.space)
    trial = w.frame.space[name]
    try:
        with torch.no_grad():
            trial(a.tensor.detach().clone())
    except Exception:
        return False
    w.emit(text)
    call = w.rng.choice((f"{name}({a.text})", f"{name}({a.text})", f"sum(map({name}, [{a.text}]))"))
    try:
        value = eval(call, w.frame.space)
    except Exception as error:
        w.refused(call, error, certain=False)
        return True
    target = w.target(value)
    w.frame.know(target, value)
    w.emit(f"{target} = {call}")
    return True


def tensor_loop_write(w: Writer) -> bool:
    """`for t in (a, b): t.add_(1)`, the way people change several tensors at once."""
    a, b = w.pick("f", stale=True), w.pick("f", stale=True)
    if a is None or b is None:
        return False
    write = w.rng.choice(
        (
            "t.add_({n})",
            "t.mul_({n})",
            "t.zero_()",
            "t.clamp_(0, 1)",
            "t += {n}",
            "t *= {n}",
            "F.relu(t, inplace=True)",
            "t.detach().mul_({n})",
        )
    ).format(n=number(w))
    text = f"for t in ({a.text}, {b.text}):\n    {write}"
    if w.rng.random() < 0.3:
        text = f"[t.mul_({number(w)}) for t in ({a.text}, {b.text})]"
    leafy = [p for p in (a, b) if p.leaf and p.grad]
    if torch.is_grad_enabled() and leafy and not (w.style.raising and w.style.early):
        return False
    return w.run(text, certain=True)


COMPOUND: tuple[tuple[str, float, Callable[[Writer], bool]], ...] = (
    ("grad mode block", 2, grad_mode),
    ("branch", 2, branch),
    ("for range", 1.2, for_range),
    ("for items", 1, for_items),
    ("accumulation", 1, accumulation),
    ("while", 0.3, while_loop),
    ("helper function", 2, function),
    ("helper again", 1.5, call_again),
    ("small function", 0.8, small_function),
    ("write in loop over tensors", 0.5, tensor_loop_write),
    ("backward", 1.5, backward),
)


def compound(w: Writer) -> bool:
    name, _, maker = w.rng.choices(COMPOUND, [weight for _, weight, _ in COMPOUND])[0]
    return made(w, name, maker)
