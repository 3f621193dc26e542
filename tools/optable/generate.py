"""Builds the shipped op data: `python -m tools.optable.generate`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

import torch

from gradguard.ops import shipped, table
from gradguard.ops.model import Form, ModuleRow, Op
from gradguard.ops.names import partners
from tools.optable import (
    generate_corrections,
    generate_examples,
    generate_formulas,
    generate_groups,
    generate_native,
    generate_run,
    observe_modules,
    observe_special,
    observe_twins,
    observe_vary,
)
from tools.optable.generate_forms import Draft, drafts
from tools.optable.generate_names import Function, properties, public_callables
from tools.optable.generate_native import NativeForm
from tools.optable.observe_rows import compared, learn_form, refine
from tools.optable.observe_watch import watch, watch_crossed

DATA = Path(table.__file__).parent / "data"
ROUNDS = 2
"""How often combinations of the arguments that the conditions compare are tried, and the conditions learnt again."""


@dataclass(slots=True)
class Made:
    """A row with how it came about."""

    op: Op
    disagreements: list[str] = field(default_factory=list)
    calls: int = 0
    refusals: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.optable.generate", description=__doc__)
    parser.add_argument("--out", type=Path, help="file to write (default: the shipped data of this torch)")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes (default: %(default)s)")
    parser.add_argument(
        "--only", default="", help="only names that contain this text, printed instead of written"
    )
    options = parser.parse_args(argv)
    version = ".".join(torch.__version__.split(".")[:2])
    built = build(options.only, options.jobs)
    if options.only:
        print(built.text)
        return 0
    text = differences(built.text, version)
    out: Path = options.out or DATA / f"{version}.jsonl"
    out.parent.mkdir(exist_ok=True)
    out.write_text(text, encoding="utf-8")
    print(f"{out}: {len(text.encode())} bytes", file=sys.stderr)
    for problem in built.problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if built.problems else 0


def text_for(version: str, jobs: int) -> str:
    """What the data file of a version should hold, made with the torch that is installed."""
    return differences(build(jobs=jobs).text, version)


def differences(text: str, version: str) -> str:
    """The whole data for the base version; for a newer one the rows that differ from those before it."""
    before = [v for v in table.VERSIONS if table.key(v) < table.key(version)]
    if version == table.BASE_VERSION or not before:
        return text
    old, old_groups = table.rows_of(before[-1])
    new = shipped.read(text, version)
    changed: list[tuple[list[str], str]] = []
    kept: set[str] = set()
    for names, line in new.rows:
        kept.update(names)
        different = [n for n in names if old.get(n) != line]
        if different:
            # A name that is new says since when it exists; one that changed keeps what it said.
            known, fresh = [n for n in different if n in old], [n for n in different if n not in old]
            changed += [(known, line)] if known else []
            changed += [(fresh, shipped.since(line, version))] if fresh else []
    gone = sorted(set(old) - kept)
    groups = [g for g in new.groups if any(old_groups.get(n) != g for n in g)]
    grouped = {n for g in new.groups for n in g}
    groups += [[n] for n in sorted(old_groups) if n not in grouped]
    return shipped.write(shipped.Data(changed + ([(gone, shipped.GONE)] if gone else []), groups))


@dataclass(slots=True)
class Table:
    """The text of a data file, and what keeps it from being shipped."""

    text: str
    problems: list[str]


def build(only: str = "", jobs: int = 2) -> Table:
    """Observes everything whose name contains `only` and puts the rows together."""
    names = [n for n in sorted(callables()) if only in n]
    made: list[Made] = []
    for name, result, error in generate_run.over(names, make, jobs):
        if result is None:
            print(f"{name}: no row: {error}", file=sys.stderr)
        else:
            made.append(result)
    modules: list[ModuleRow] = []
    for name, row, error in generate_run.over(
        [n for n in observe_modules.classes() if only in n], make_module, jobs
    ):
        if row is None:
            print(f"{name}: no row: {error}", file=sys.stderr)
        else:
            modules.append(row)
    ops = [m.op for m in made if m.op.forms]
    special_ops, special_modules = special(only)
    ops += special_ops
    report(made, modules + special_modules)
    corrections = generate_corrections.load()
    disagreements = [(m.op.name, text) for m in made for text in m.disagreements]
    unresolved, idle = generate_corrections.unresolved(disagreements, corrections)
    if not only:
        ops, modules = generate_corrections.apply(ops, modules, corrections)
        ops = [_example_again(op) for op in ops]
        modules = [_example_again(row) for row in modules]
    grouped = generate_groups.groups(ops)
    ops = generate_groups.share_formulas(ops, grouped)
    ops = generate_formulas.given(ops, generate_formulas.derivatives())
    problems = [f"disagreement without an entry: {text}" for text in unresolved]
    if not only:
        problems += [f"entry without a disagreement: {text}" for text in idle]
    return Table(shipped.serialise(ops, modules + special_modules, grouped), problems)


Row = TypeVar("Row", Op, ModuleRow)


def _example_again(row: Row) -> Row:
    """The row without its example where a correction has made it say what torch does not do."""
    if any(form.source == "corrected" for form in row.forms) and not generate_examples.holds(row):
        return replace(row, example=None)
    return row


def make_module(name: str) -> ModuleRow:
    """The row of one class of `torch.nn`."""
    row, learned = observe_modules.make_row(name)
    if not row.forms and not row.container:
        why = learned.refusals[0] if learned.refusals else "no sample"
        return replace(row, extra=(("unobserved", why[:120]),))
    return replace(row, example=generate_examples.module_example(row))


def special(only: str) -> tuple[list[Op], list[ModuleRow]]:
    """Optimizers, checkpointing, backward, collectives."""
    ops: list[Op] = []
    modules: list[ModuleRow] = []
    for name in observe_special.optimizer_classes():
        if only in name:
            module, found = observe_special.optimizer_rows(name)
            modules.append(module)
            ops += found
    others = [observe_special.checkpoint_op(), *observe_special.backward_ops()]
    if only in "torch.distributed." or "distributed" in only:
        others += observe_special.collective_ops()
    return ops + [op for op in others if only in op.name], modules


@lru_cache(maxsize=1)
def callables() -> dict[str, Function]:
    """Every public name that gets a row by observation, with its callable."""
    return {
        name: f for name, f in {**public_callables(), **properties()}.items() if name != "Tensor.backward"
    }


@lru_cache(maxsize=1)
def native() -> dict[str, list[NativeForm]]:
    return generate_native.load()


def make(name: str) -> Made:
    """The row of one public callable, from what the generator says and from what torch does."""
    function = callables()[name]
    found = drafts(name, function, native())
    watched, refusals = watch(
        function, [d.form for d in found], name, [d.told for d in found], strict=all(d.strict for d in found)
    )
    made = Made(Op(name), refusals=[r for r in refusals if r][:1])
    forms: list[Form] = []
    for draft, calls, refusal in zip(found, watched, refusals):
        form = replace(draft.form, params=refine(draft.form.params, calls))
        learned = learn_form(form, calls, native=draft.told, refusal=refusal)
        for _ in range(0 if draft.told or name in observe_vary.UNSAFE else ROUNDS):
            asked = [n for one in learned.forms for n in compared(one)]
            more = watch_crossed(function, form, list(dict.fromkeys(asked)), calls) if asked else []
            if not more:
                break
            calls = [*calls, *more]
            again = learn_form(form, calls, native=draft.told)
            settled = again.forms == learned.forms
            learned = again
            if settled:
                break
        made.calls += learned.calls
        made.disagreements += learned.disagreements
        for one in learned.forms:
            if one.unobserved and not draft.told:
                made.dropped.append(", ".join(p.name for p in one.params))
            else:
                forms.append(one)
    twin = callables().get(partners(name, callables())[1])
    op = replace(
        made.op,
        forms=tuple(forms),
        lenient=twin is not None
        and any(
            observe_twins.lenient(function, twin, draft.form, [w.values for w in calls])
            for draft, calls in zip(found, watched)
        ),
    )
    made.op = replace(
        op, example=generate_examples.op_example(op, attribute=isinstance(function, attrgetter))
    )
    return made


def report(made: list[Made], modules: list[ModuleRow]) -> None:
    """What a maintainer should look at, on stderr."""
    for m in made:
        if not m.op.forms and not m.dropped:
            print(f"{m.op.name}: nothing says what it takes", file=sys.stderr)
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
    bare = [m.name for m in modules if dict(m.extra).get("unobserved")]
    print(f"{len(modules)} classes, not observed: {bare}", file=sys.stderr)


def draft_forms(name: str) -> list[Draft]:
    return drafts(name, callables()[name], native())


if __name__ == "__main__":
    sys.exit(main())
