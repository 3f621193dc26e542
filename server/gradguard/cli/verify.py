"""`gradguard verify FILE[::function]`: run a function with and without its in-place writes, in real torch.

    the function writes in place        it is compared with what it means: no write reaches what a backward needs
    it does not                         the in-place forms that are proven for it are compared with it as it is
    --against OTHER                     it is compared with the same function of another file

Inputs come from a comment at the function, with the names of the file and of torch:

    # gradguard: inputs x=randn(4, 3, requires_grad=True)

What it leaves out is taken from annotations, from shapes in the docstring and from defaults (`verify_inputs.py`).
Without `::function` the whole script runs.
"""

from __future__ import annotations

import argparse
import ast
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from gradguard.cli.stderr import complain
from gradguard.cli.verify_inputs import Inputs, Refused, chain, first_line, inputs
from gradguard.disk.reading import Unreadable, decode, read_bytes
from gradguard.findings import Span
from gradguard.fixes.edit import applied
from gradguard.ide import inplace
from gradguard.runtime.verify import NO_WRITES, Comparison, Task, verify
from gradguard.source.printable import printable
from gradguard.source.text import Source


class Asking(Refused):
    """What is missing has been asked for."""


@dataclass(slots=True)
class Asked:
    """What was asked for, read and understood."""

    what: str
    source: Source
    lines: range
    task: Task
    told: Inputs | None = None
    against: str = ""


def run(arguments: argparse.Namespace) -> int:
    """Exit code: 0 compared and the same, 1 not the same, 2 nothing could be compared."""
    try:
        asked = _asked(arguments.what, arguments.against, arguments.arguments)
        task, said = _task(asked)
        _say(asked, said)
        found = verify(task, arguments.timeout)
        if found.trouble == NO_WRITES and task.before == task.after:
            task, said = _made_in_place(asked)
            _say(asked, said)
            found = verify(task, arguments.timeout)
    except Asking:
        return 2
    except Refused as error:
        complain(str(error))
        return 2
    if found.trouble:
        complain(f"{arguments.what}: {found.trouble}")
        if asked.told is not None and asked.told.guessed and "does not run" in found.trouble:
            _ask(asked.told, task.path, "if other inputs are meant, write above")
        return 2
    print("\n".join(map(printable, report(found))))
    return 0 if found.holds else 1


def _say(asked: Asked, said: str) -> None:
    print(printable(said), flush=True)
    if asked.told is not None and asked.told.guessed:
        shown = (
            f"{name}={asked.told.given[name]} (from {where})" for name, where in asked.told.guessed.items()
        )
        print(printable(f"  {'inputs':<10} {', '.join(shown)}"), flush=True)


def report(found: Comparison) -> list[str]:
    """The three checks, and what it is worth."""

    def line(name: str, wrong: tuple[str, ...], right: str) -> str:
        return f"  {name:<10} {'FAILS: ' + '; '.join(wrong) if wrong else right}"

    lines = [
        line("forward", found.forward, f"same values ({found.values} compared)"),
        line("backward", (found.backward,) if found.backward else (), "runs"),
        line("gradients", found.gradients, f"same ({found.compared} compared)"),
    ]
    if not found.reached:
        lines[1:] = [line(name, (), "not reached") for name in ("backward", "gradients")]
    elif found.backward:
        lines[2] = line("gradients", (), "not reached")
    elif not found.compared:
        lines[1] = line("backward", (), "none: no result requires a gradient")
        lines[2] = line("gradients", (), "none compared; an input with requires_grad=True has one")
    if found.changed:
        lines.append(line("arguments", tuple(f"{name} is overwritten" for name in found.changed), ""))
    if found.writes:
        own = [str(number) for number in found.writes if number]
        told = [f"line{'s' if len(own) > 1 else ''} {', '.join(own)}"] if own else []
        lines.append(
            line("writes", (), " and ".join([*told, *(["in other files"] if 0 in found.writes else [])]))
        )
    for each in found.unseen:
        number, _, through = each.partition(":")
        what = "shares memory with NumPy, which writes it" if "NumPy" in through else "writes through .data"
        lines.append(
            line(
                "unseen",
                (),
                f"line {number} {what}: for autograd the new values are constants, and the history is the old one",
            )
        )
    if found.peak_before:
        saved = found.peak_before - found.peak_after
        lines.append(
            f"  {'memory':<10} at most {_size(found.peak_after)} instead of {_size(found.peak_before)}:"
            f" {_size(abs(saved))} ({100 * abs(saved) / found.peak_before:.0f} %) {'saved' if saved >= 0 else 'more'}"
        )
    elif found.holds:
        lines.append(
            line("memory", (), "not known: the form to compare with was not the same when it was measured")
        )
    if found.tolerance:
        lines.append(line("tolerance", (), found.tolerance))
    return [*lines, *(line("note", (), each) for each in found.notes)]


def _asked(what: str, against: str | None, arguments: list[str]) -> Asked:
    """Raises Refused."""
    path, _, function = what.partition("::")
    source = _read(path)
    lines = range(1, source.lines.count + 1)
    task = Task(path, source.text, source.text, function, arguments=tuple(arguments))
    told = None
    if function:
        found = chain(source, path, function)
        node = found[-1]
        lines = range(first_line(node), (node.end_lineno or node.lineno) + 1)
        told = inputs(source, path, found)
        _refuse_missing(told, path, what)
        task = replace(task, inputs=told.given)
        around = next((at for at, one in enumerate(found[:-1]) if not isinstance(one, ast.ClassDef)), None)
        if around is not None:
            outer = inputs(source, path, found[: around + 1])
            _refuse_missing(outer, path, f"{path}::{found[around].name}")
            task = replace(task, outer={name: value for name, value in outer.given.items() if name != "self"})
            task = replace(
                task,
                inputs={**({"self": outer.given["self"]} if "self" in outer.given else {}), **told.given},
            )
    if against is not None:
        task = replace(task, before=_read(against).text, other_file=True)
    return Asked(what, source, lines, task, told, against or "")


def _refuse_missing(told: Inputs, path: str, what: str) -> None:
    if told.missing:
        names = ", ".join(each.partition("=")[0] for each in told.missing)
        complain(f"{what}: nothing says what {names} {'is' if len(told.missing) == 1 else 'are'}")
        _ask(told, path, "write above")
        raise Asking


def _ask(told: Inputs, path: str, how: str) -> None:
    print(printable(f"{how} line {told.line} of {path}, with values of your own:"), file=sys.stderr)
    print(printable(told.example), file=sys.stderr)


def _task(asked: Asked) -> tuple[Task, str]:
    """What is compared with what, and that in words."""
    if asked.against:
        return asked.task, f"{asked.what} compared with {asked.against}:"
    if not _writes(asked.source, asked.lines):
        after = _in_place(asked.source, asked.lines)
        if after != asked.source.text:
            return replace(asked.task, after=after), f"{asked.what} made in place, compared with itself:"
    return asked.task, f"{asked.what} compared with itself out of place:"


def _made_in_place(asked: Asked) -> tuple[Task, str]:
    """Raises Refused where there is no in-place form."""
    after = _in_place(asked.source, asked.lines)
    if after == asked.source.text:
        raise Refused(f"{asked.what}: {NO_WRITES}, and no in-place form of it is proven")
    return replace(asked.task, after=after), f"{asked.what} made in place, compared with itself:"


def _writes(source: Source, lines: range) -> bool:
    """Whether anything on these lines looks like a write; when it has run, it is known."""
    for node in ast.walk(source.tree):
        if getattr(node, "lineno", 0) not in lines:
            continue
        if isinstance(node, ast.AugAssign):
            return True
        if isinstance(node, ast.Assign) and any(isinstance(each, ast.Subscript) for each in node.targets):
            return True
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            if (name.endswith("_") and not name.endswith("__")) or any(
                k.arg in ("inplace", "out") for k in node.keywords
            ):
                return True
    return False


def _in_place(source: Source, lines: range) -> str:
    """The text with the in-place forms that are proven, one after the other."""
    # Loads libcst.
    from gradguard.fixes import api

    tried = 0
    while True:
        span = Span(lines.start, 1, lines.stop - 1, len(source.line(lines.stop - 1)) + 1)
        plans = inplace.rewrites(source, span, unseen=True)
        edits = next((made for plan in plans if (made := api.edits(plan, source))), None)
        tried += 1
        if edits is None or tried > len(lines) + 1:
            return source.text
        source = Source(source.path, applied(source, edits))


def _read(path: str) -> Source:
    try:
        source = Source(path, decode(read_bytes(Path(path))).text)
    except Unreadable as error:
        raise Refused(f"{path}: {error}") from None
    if source.errors:
        first = source.errors[0]
        raise Refused(f"{path}:{first.line}: {first.message}")
    return source


def _size(count: int) -> str:
    if count < 1024:
        return f"{count} B"
    value = count / 1024
    for unit in ("KiB", "MiB"):
        if value < 1024:
            return f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
