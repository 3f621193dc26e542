"""`gradguard explain`: the page of a rule, or what a torch operation saves."""

from __future__ import annotations

import argparse
import difflib
import sys

from gradguard.check.catalogue import catalogue
from gradguard.check.parsing import version_problem
from gradguard.cli.configuration import assumed
from gradguard.cli.language import words
from gradguard.cli.output import colour_wanted
from gradguard.cli.pages import page
from gradguard.cli.stderr import complain


def run(arguments: argparse.Namespace) -> int:
    """Print a page and return the exit code."""
    what = arguments.what.strip()
    if arguments.torch and (problem := version_problem(arguments.torch)):
        return _refuse(f"--torch: {problem}")
    rule = catalogue().rule(what)
    if rule is not None:
        text = page(rule.name, words().language)
        if text is None:
            text = f"# {rule.code} {rule.name}\n\n{rule.summary}\n"
        return _show(text, arguments.color)

    from gradguard.ops import table

    known = table.load(assumed(arguments.torch))
    for name in _spellings(what):
        if known.op(name) is not None or known.module(name) is not None:
            from gradguard.ops import render

            return _show(render.explain_op(name, known), arguments.color)
    return _refuse(_unknown(what, known.names()))


def _spellings(what: str) -> list[str]:
    """What people write for an operation: `sigmoid`, `F.relu`, `nn.ReLU`, `x.exp_()`."""
    name = what.removesuffix("()")
    aliases = {
        "F.": "torch.nn.functional.",
        "nn.": "torch.nn.",
        "Tensor.": "Tensor.",
        "torch.Tensor.": "Tensor.",
    }
    full = [name]
    full += [
        replacement + name[len(short) :] for short, replacement in aliases.items() if name.startswith(short)
    ]
    last = name.rpartition(".")[2]
    if "." not in name or (name.count(".") == 1 and not name.startswith(("torch.", "nn.", "F."))):
        full += [f"{prefix}.{last}" for prefix in ("torch", "Tensor", "torch.nn.functional", "torch.nn")]
    return full


def _unknown(what: str, names: object) -> str:
    listed = [str(name) for name in names]  # type: ignore[attr-defined]
    rules = [rule.name for rule in catalogue().rules] + [rule.code for rule in catalogue().rules]
    near = difflib.get_close_matches(what, rules + listed, n=3, cutoff=0.6)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f'"{what}" is neither a rule nor a torch operation{hint}'


def _show(text: str, colour: str) -> int:
    if not text.endswith("\n"):
        text += "\n"
    if not colour_wanted(colour, sys.stdout.isatty()):
        sys.stdout.write(text)
        return 0
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.style import Style
    from rich.syntax import ANSISyntaxTheme
    from rich.theme import Theme

    from gradguard.report.pieces import CODE, MARKDOWN

    code = ANSISyntaxTheme({tuple(kind.split(".")): Style.parse(style) for kind, style in CODE.items()})
    markdown = Markdown(text, code_theme=code)  # type: ignore[arg-type]
    Console(force_terminal=True, theme=Theme(MARKDOWN)).print(markdown)
    return 0


def _refuse(message: str) -> int:
    complain(message)
    return 2
