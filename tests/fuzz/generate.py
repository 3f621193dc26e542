"""Grows one valid program for a seed: the same text for the same seed, in every process."""

from __future__ import annotations

import io
import random
import warnings
from collections import Counter
from contextlib import redirect_stdout
from dataclasses import dataclass

import torch

from tests.fuzz.blocks import compound
from tests.fuzz.live import Raised, Style, Unusable, Writer, rule_of
from tests.fuzz.modules import (
    bare_update,
    model_again,
    model_write,
    module,
    recurrent,
    step_between,
    training_loop,
)
from tests.fuzz.statements import backward, gradient_use, leaf, made, simple, write_hidden
from tests.fuzz.verdict import judge

ATTEMPTS = 6
LEAST, MOST = 6, 40


@dataclass(frozen=True, slots=True)
class Grown:
    """A program, with counts of the statement kinds and ops in it."""

    text: str
    kinds: Counter[str]
    ops: Counter[str]
    attempts: int


def program(seed: int) -> str:
    """A program of 6 to 40 statements that fails, if it does, by an error of autograd only."""
    return grow(seed).text


def grow(seed: int) -> Grown:
    """`program` with what it is made of."""
    rng = random.Random(seed)
    raising = rng.random() < 0.36
    hiding = 0.6 if not raising and rng.random() < 0.15 else 0.03
    best: Grown | None = None
    state = torch.get_rng_state()
    try:
        for attempt in range(ATTEMPTS):
            style = Style(raising, rng.choice((0.15, 0.3, 0.45)), hiding, rng.random() < 0.3)
            w = Writer(random.Random(rng.getrandbits(64)), style)
            torch.default_generator.manual_seed(0)
            ended = _attempt(w)
            if ended is None or not LEAST <= _statements(w) <= MOST:
                continue
            best = Grown(_text(w, ended), w.kinds, w.ops, attempt + 1)
            if ended == raising and (hiding < 0.5 or judge(best.text).outcome == "silent"):
                break
    finally:
        torch.set_rng_state(state)
        torch.set_grad_enabled(True)
    return best or Grown(FALLBACK, Counter(), Counter(), ATTEMPTS)


FALLBACK = "import torch\n\nx = torch.rand(3, requires_grad=True)\ny = x.exp()\nz = y * 2\nloss = z.sum()\nloss.backward()\nprint(x.grad)\n"


def _statements(w: Writer) -> int:
    return sum(bool(line.strip()) for line in w.lines) + sum(text.count("\n") for text in w.head)


def _attempt(w: Writer) -> bool | None:
    """Writes the program: True if it ends by an error, None if it cannot be used."""
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            w.rng.choices(LAYOUTS, [4, 3, 3, 1])[0](w)
        except Raised:
            return True
        except Unusable:
            return None
        except RuntimeError as error:
            # Looking at a tensor whose view is broken raises like using it.
            if rule_of(str(error)) is None:
                raise
            return None
    return False


def _leaves(w: Writer) -> None:
    for _ in range(w.rng.randint(1, 3)):
        made(w, "leaf", leaf)


def _flat(w: Writer) -> None:
    """A script: values, statements, a backward at the end."""
    _leaves(w)
    wanted = w.rng.randint(8, 26)
    for _ in range(wanted * 3):
        if len(w.lines) >= wanted:
            break
        if w.rng.random() < 0.25:
            compound(w)
        else:
            simple(w)
    _ending(w)


def _modular(w: Writer) -> None:
    """A model, called and trained by hand or in a loop."""
    _leaves(w)
    made(w, "module", module)
    for _ in range(w.rng.randint(1, 6)):
        _step(w)
    if w.rng.random() < 0.6:
        made(w, "training loop", training_loop)
    for _ in range(w.rng.randint(0, 2)):
        _step(w)
    _ending(w)


def _loops(w: Writer) -> None:
    """Loops of several kinds, one after the other."""
    _leaves(w)
    for _ in range(w.rng.randint(1, 6)):
        simple(w)
    made(w, "recurrent loop", recurrent) if w.rng.random() < 0.5 else made(w, "training loop", training_loop)
    for _ in range(w.rng.randint(1, 5)):
        simple(w)
    if w.rng.random() < 0.5:
        compound(w)
    _ending(w)


def _optimized(w: Writer) -> None:
    """Leaves trained by an optimizer or by hand, several backwards."""
    _leaves(w)
    for _ in range(w.rng.randint(1, 3)):
        for _ in range(w.rng.randint(2, 7)):
            simple(w)
        made(w, "backward", backward)
        made(w, "gradient use", gradient_use if w.rng.random() < 0.5 else step_between)
        if w.rng.random() < 0.4:
            made(w, "update by hand", bare_update)
    _ending(w)


LAYOUTS = (_flat, _modular, _loops, _optimized)


def _step(w: Writer) -> None:
    name, _, maker = w.rng.choices(STEPS, [weight for _, weight, _ in STEPS])[0]
    made(w, name, maker)


STEPS = (
    ("simple", 5, simple),
    ("compound", 2, compound),
    ("model call", 2, model_again),
    ("model write", 1, model_write),
    ("optimizer step", 0.7, step_between),
    ("gradient use", 0.5, gradient_use),
)


def _ending(w: Writer) -> None:
    if w.style.hidden > 0.5:
        for _ in range(w.rng.randint(1, 3)):
            made(w, "hidden write", write_hidden)
    for _ in range(4):
        if made(w, "backward", lambda w: backward(w, last=True)):
            break
    for _ in range(w.rng.choice((0, 0, 1, 2))):
        if w.rng.random() < 0.4:
            made(w, "gradient use", gradient_use)
        else:
            simple(w)


def _text(w: Writer, ended: bool) -> str:
    """The whole file: imports, functions and classes, the script or a `main`."""
    imports = [
        "import torch",
        w.rng.choice(("import torch.nn as nn", "from torch import nn")),
        w.rng.choice(("import torch.nn.functional as F", "from torch.nn import functional as F")),
    ]
    whole = "\n".join(w.head + w.lines)
    imports = [line for line, used in zip(imports, (True, "nn." in whole, "F." in whole)) if used]
    if "SimpleNamespace" in whole:
        imports.insert(0, "from types import SimpleNamespace\n")
    parts = ["\n".join(imports) + "\n"]
    body = list(w.lines)
    if ended and w.rng.random() < 0.4:
        body.append(w.rng.choice(("print(torch.is_grad_enabled())", 'print("done")', "torch.manual_seed(1)")))
    seeded = w.rng.random() < 0.5
    in_main = w.rng.random() < 0.2
    for text in w.head:
        parts.append("\n" + text + "\n")
    if in_main:
        inner = [
            "    " + line if line else line for line in (["torch.manual_seed(0)"] if seeded else []) + body
        ]
        parts.append("\ndef main():\n" + "\n".join(inner) + "\n")
        parts.append('\nif __name__ == "__main__":\n    main()\n' if w.rng.random() < 0.5 else "\nmain()\n")
    else:
        parts.append(
            ("\n" if w.head else "") + "\n".join((["torch.manual_seed(0)"] if seeded else []) + body) + "\n"
        )
    return "\n".join(parts) if w.head else "".join(parts)
