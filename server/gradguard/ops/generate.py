"""Builds the shipped op data: `python -m gradguard.ops.generate`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import torch

from gradguard.ops import generate_native, generate_run, shipped
from gradguard.ops.generate_forms import Draft, drafts
from gradguard.ops.generate_names import Function, properties, public_callables
from gradguard.ops.generate_native import NativeForm
from gradguard.ops.model import Form, Op
from gradguard.ops.observe_rows import learn_form, refine, watch

DATA = Path(__file__).parent / "data"


@dataclass(slots=True)
class Made:
    """A row with how it came about."""

    op: Op
    disagreements: list[str] = field(default_factory=list)
    calls: int = 0
    refusals: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m gradguard.ops.generate", description=__doc__)
    parser.add_argument("--out", type=Path, help="file to write (default: the shipped data of this torch)")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes (default: %(default)s)")
    parser.add_argument(
        "--only", default="", help="only names that contain this text, printed instead of written"
    )
    options = parser.parse_args(argv)
    version = ".".join(torch.__version__.split(".")[:2])
    names = [n for n in sorted(callables()) if options.only in n]
    made: list[Made] = []
    for name, result, error in generate_run.over(names, make, options.jobs):
        if result is None:
            print(f"{name}: no row: {error}", file=sys.stderr)
        else:
            made.append(result)
    report(made)
    text = shipped.serialise([m.op for m in made if m.op.forms], [])
    if options.only:
        print(text)
        return 0
    out: Path = options.out or DATA / f"{version}.jsonl"
    out.parent.mkdir(exist_ok=True)
    out.write_text(text, encoding="utf-8")
    print(f"{out}: {len(text.encode())} bytes", file=sys.stderr)
    return 0


@lru_cache(maxsize=1)
def callables() -> dict[str, Function]:
    return {**public_callables(), **properties()}


@lru_cache(maxsize=1)
def native() -> dict[str, list[NativeForm]]:
    return generate_native.load()


def make(name: str) -> Made:
    """The row of one public callable, from what the generator says and from what torch does."""
    function = callables()[name]
    found = drafts(name, function, native())
    watched, refusals = watch(function, [d.form for d in found], name)
    made = Made(Op(name), refusals=refusals[:1])
    forms: list[Form] = []
    for draft, calls in zip(found, watched):
        form = replace(draft.form, params=refine(draft.form.params, calls))
        learned = learn_form(form, calls, native=draft.told)
        made.calls += learned.calls
        made.disagreements += learned.disagreements
        for one in learned.forms:
            if one.unobserved and not draft.told:
                made.dropped.append(", ".join(p.name for p in one.params))
            else:
                forms.append(one)
    made.op = replace(made.op, forms=tuple(forms), **_partners(name))
    return made


def _partners(name: str) -> dict[str, str]:
    """The in-place partner of a name, or the name that an in-place one is the partner of."""
    head, _, last = name.rpartition(".")
    known = callables()
    if last.startswith("__"):
        bare = last.strip("_")
        if f"{head}.__i{bare}__" in known:
            return {"inplace": f"{head}.__i{bare}__"}
        return (
            {"inplace_of": f"{head}.__{bare[1:]}__"}
            if bare[0] == "i" and f"{head}.__{bare[1:]}__" in known
            else {}
        )
    if head == "operator":
        if f"operator.i{last.strip('_')}" in known:
            return {"inplace": f"operator.i{last.strip('_')}"}
        outer = next((n for n in (last[1:], f"{last[1:]}_") if f"operator.{n}" in known), "")
        return {"inplace_of": f"operator.{outer}"} if last[0] == "i" and outer else {}
    if last.endswith("_"):
        return {"inplace_of": f"{head}.{last[:-1]}"} if f"{head}.{last[:-1]}" in known else {}
    return {"inplace": f"{head}.{last}_"} if f"{head}.{last}_" in known else {}


def report(made: list[Made]) -> None:
    """What a maintainer should look at, on stderr."""
    for m in made:
        for text in m.disagreements:
            print(f"{m.op.name}: {text}", file=sys.stderr)
    for m in made:
        if m.dropped:
            why = m.refusals[0] if m.refusals else "no sample"
            print(f"{m.op.name}: form not observed, left out: ({m.dropped}): {why[:100]}", file=sys.stderr)
    sources = Counter(form.source for m in made for form in m.op.forms)
    unobserved = sum(bool(form.unobserved) for m in made for form in m.op.forms)
    print(
        f"{sum(bool(m.op.forms) for m in made)} callables of {len(made)}, forms {dict(sources)}, "
        f"{unobserved} not observed, {sum(m.calls for m in made)} calls, "
        f"{sum(len(m.disagreements) for m in made)} disagreements",
        file=sys.stderr,
    )


def draft_forms(name: str) -> list[Draft]:
    return drafts(name, callables()[name], native())


if __name__ == "__main__":
    sys.exit(main())
