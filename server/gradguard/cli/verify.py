"""`gradguard verify FILE[::function]`: run a function with and without its in-place writes, in real torch.

    the function writes in place        it is compared with itself, every write made into a new tensor
    it does not                         the in-place forms that are proven for it are compared with it as it is
    --against OTHER                     it is compared with the same function of another file

Inputs come from a comment at the function, with the names of the file and of torch:

    # gradguard: inputs x=randn(4, 3, requires_grad=True)

Without `::function` the whole script runs.
"""

from __future__ import annotations

import argparse
import ast
import re
from pathlib import Path

from gradguard.cli.stderr import complain
from gradguard.disk.reading import Unreadable, decode, read_bytes
from gradguard.findings import Span
from gradguard.fixes.edit import applied
from gradguard.ide import inplace
from gradguard.runtime.verify import Comparison, Task, verify
from gradguard.source.printable import printable
from gradguard.source.text import Source

_INPUTS = re.compile(r"#\s*gradguard:\s*inputs\s+(?P<given>.*)$")
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Refused(Exception):
    """Why nothing was run."""


def run(arguments: argparse.Namespace) -> int:
    """Exit code: 0 the same, 1 not the same, 2 nothing could be compared."""
    try:
        task, said = _task(arguments.what, arguments.against)
    except Refused as error:
        complain(str(error))
        return 2
    print(printable(said), flush=True)
    found = verify(task, arguments.timeout)
    if found.trouble:
        complain(f"{arguments.what}: {found.trouble}")
        return 2
    print("\n".join(map(printable, report(found))))
    return 0 if found.holds else 1


def report(found: Comparison) -> list[str]:
    """The three checks, and what it is worth."""

    def line(name: str, wrong: tuple[str, ...], right: str) -> str:
        return f"  {name:<10} {'FAILS: ' + '; '.join(wrong) if wrong else right}"

    lines = [
        line("forward", found.forward, "same values"),
        line("backward", (found.backward,) if found.backward else (), "runs"),
        line("gradients", found.gradients, f"same ({found.compared} compared)"),
    ]
    if found.changed:
        lines.append(line("inputs", tuple(f"{name} is overwritten" for name in found.changed), ""))
    if found.backward or found.forward:
        lines[2] = line("gradients", (), "not reached")
    saved = found.peak_before - found.peak_after
    share = f" ({100 * saved / found.peak_before:.0f} %)" if found.peak_before else ""
    lines.append(
        f"  {'memory':<10} at most {_size(found.peak_after)} instead of {_size(found.peak_before)}:"
        f" {_size(abs(saved))}{share} {'saved' if saved >= 0 else 'more'}"
    )
    return lines


def _task(what: str, against: str | None) -> tuple[Task, str]:
    path, _, function = what.partition("::")
    source = _read(path)
    lines = range(1, source.lines.count + 1)
    inputs: dict[str, str] = {}
    if function:
        node = _definition(source, path, function)
        lines = range(_first(node), (node.end_lineno or node.lineno) + 1)
        inputs = _inputs(source, path, node)
    if against is not None:
        other = _read(against)
        return Task(path, other.text, source.text, function, inputs), f"{what} compared with {against}:"
    before = inplace.undone(source, lines, tensors=inputs)
    if before != source.text:
        return Task(path, before, source.text, function, inputs), f"{what} compared with itself out of place:"
    after = _in_place(source, lines)
    if after != source.text:
        return Task(
            path, source.text, after, function, inputs
        ), f"{what} made in place, compared with itself:"
    # Where nothing says what is a tensor, every augmented assignment may be to one.
    before = inplace.undone(source, lines, tensors=_names(source))
    if before == source.text:
        raise Refused(f"{what}: it writes nothing in place, and no in-place form of it is proven")
    return Task(path, before, source.text, function, inputs), f"{what} compared with itself out of place:"


def _names(source: Source) -> set[str]:
    return {node.id for node in ast.walk(source.tree) if isinstance(node, ast.Name)}


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


def _definition(source: Source, path: str, name: str) -> Definition:
    """Raises Refused, naming what there is."""
    body: list[ast.stmt] = source.tree.body
    found: Definition | None = None
    for part in name.split("."):
        here = [one for one in body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]
        found = next((one for one in here if one.name == part), None)
        if found is None:
            known = ", ".join(one.name for one in here) or "nothing"
            raise Refused(f"{path} has no {part}; it has {known}")
        body = found.body
    assert found is not None
    return found


def _first(node: Definition) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def _inputs(source: Source, path: str, node: Definition) -> dict[str, str]:
    """The inputs of the comments above a definition or at its head. Raises Refused where they cannot be read."""
    above = _first(node)
    while source.line(above - 1).lstrip().startswith("#"):
        above -= 1
    found: dict[str, str] = {}
    for number in range(above, node.body[0].lineno + 1):
        match = _INPUTS.search(source.line(number))
        if match is None:
            continue
        try:
            call = ast.parse(f"f({match['given']})", mode="eval").body
        except SyntaxError:
            call = None
        if (
            not isinstance(call, ast.Call)
            or call.args
            or any(keyword.arg is None for keyword in call.keywords)
        ):
            raise Refused(f"{path}:{number}: inputs are written as name=expression, ...")
        found.update({str(keyword.arg): ast.unparse(keyword.value) for keyword in call.keywords})
    return found


def _size(count: int) -> str:
    if count < 1024:
        return f"{count} B"
    value = count / 1024
    for unit in ("KiB", "MiB"):
        if value < 1024:
            return f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
