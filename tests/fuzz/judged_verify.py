"""Both texts of a case in plain torch: does the one that writes compute what its twin does? And what `verify` says."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import types
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from gradguard.cli import verify as command
from gradguard.runtime import verify_child
from gradguard.runtime.verify import NO_WRITES, read_comparison
from tests.fuzz.verifying import Case, grown

SAME, DIFFERS, NOTHING = 0, 1, 2
NAMES = {SAME: "same", DIFFERS: "differs", NOTHING: "nothing to compare", None: "torch gave no verdict"}


@dataclass
class Judged:
    """What torch says of a seed, and what `verify` does; `expected` None where the twin itself does not run."""

    seed: int
    expected: int | None
    got: int
    why: str
    said: str


class Raised(Exception):
    """A text raises where it runs, or where it runs backward."""


def batch(seeds: list[int]) -> list[Judged]:
    """Grows, judges and verifies."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        return [judged(grown(seed), Path(folder)) for seed in seeds]


def judged(case: Case, folder: Path) -> Judged:
    """The verdict of torch beside that of `verify`."""
    expected, why = verdict(case)
    path, other = folder / "case.py", folder / "twin.py"
    path.write_text(case.text)
    other.write_text(case.twin)
    try:
        asked = command._asked(f"{path}::{case.function}", str(other) if case.against else None, [])
        task, _ = command._task(asked)
        found = read_comparison(verify_child.compare(asdict(task)))
        if found.trouble == NO_WRITES:
            task, _ = command._made_in_place(asked)
            found = read_comparison(verify_child.compare(asdict(task)))
    except command.Refused as error:
        return Judged(case.seed, expected, NOTHING, why, str(error))
    said = found.trouble or "\n".join(command.report(found))
    return Judged(
        case.seed, expected, NOTHING if found.trouble else SAME if found.holds else DIFFERS, why, said
    )


def verdict(case: Case) -> tuple[int | None, str]:
    """What is to be said, and why."""
    try:
        values, gradients, _ = _ran(case, case.twin)
    except Raised as error:
        return None, f"twin: {error}"
    try:
        got, own, written = _ran(case, case.text)
    except Raised as error:
        return DIFFERS, str(error)
    if not case.reads:
        # One that returns nothing is there for what it writes; a generator returns what it yields.
        overwritten = DIFFERS if "list(" in case.call else SAME
        return (overwritten, "x is overwritten") if written else (NOTHING, "returns nothing")
    for kind, right, seen in (("value", values, got), ("gradient", gradients, own)):
        for number, (one, two) in enumerate(zip(right, seen)):
            if not _equal(one, two):
                return DIFFERS, f"{kind} {number}: {two} instead of {one}"
    return (DIFFERS, "x is overwritten") if written else (SAME, "")


def _equal(one: Any, two: Any) -> bool:
    if one is None or two is None or not isinstance(one, torch.Tensor):
        return one is two or one == two or (one != one and two != two)
    return one.dtype == two.dtype and torch.allclose(one, two, rtol=1e-5, atol=0, equal_nan=True)


def _ran(case: Case, text: str) -> tuple[list[Any], list[Any], bool]:
    """Values, gradients, and whether `x` was written."""
    module = sys.modules["judged"] = types.ModuleType("judged")
    exec(text, module.__dict__)
    names: dict[str, Any] = {"m": module, "asyncio": asyncio, "kept": []}
    given = eval(f"dict({case.inputs})", dict(module.__dict__))
    names.update(given)
    before = given["x"].clone() if "x" in given else None
    arguments = ", ".join(f"{name}={name}" for name in given if name != "self")
    leaf = None if case.leaf == "kept[0]" else eval(case.leaf, names)
    if leaf is not None and not leaf.is_leaf:
        leaf.retain_grad()
    try:
        names["r"] = eval(case.call.format(a=arguments), names)
        values = [eval(each, names) for each in case.reads]
        if case.leaf == "kept[0]":
            leaf = names["kept"][0]
        kept = [each.detach().clone() if isinstance(each, torch.Tensor) else each for each in values]
        roots = {id(each): each for each in values if isinstance(each, torch.Tensor) and each.requires_grad}
        weights = [_weights(each) for each in roots.values()]
        if roots:
            torch.autograd.backward(list(roots.values()), weights)
    except Exception as error:
        raise Raised(f"{type(error).__name__}: {error}") from None
    assert leaf is not None
    gradient = leaf.grad if leaf.requires_grad else None
    written = before is not None and (given["x"]._version > 0 or not _equal(before, given["x"]))
    return kept, [None if gradient is None else gradient.clone()], written


def _weights(root: torch.Tensor) -> torch.Tensor:
    count = torch.arange(1, root.numel() + 1, dtype=torch.float64) / 7
    return count.view(root.shape).to(root.dtype)


def told(seeds: list[int]) -> tuple[list[str], dict[str, int]]:
    """Where `verify` says what torch does not, and how often torch said what."""
    answers = batch(seeds)
    wrong = [
        f"seed {each.seed}: torch says {NAMES[each.expected]} ({each.why}), verify {NAMES[each.got]}\n{each.said}"
        for each in answers
        if each.expected is not None and each.got != each.expected
    ]
    counted = Counter(NAMES[each.expected] for each in answers)
    return wrong, {name: counted[name] for name in NAMES.values()}
