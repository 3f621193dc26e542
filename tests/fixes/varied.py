"""Programs for each kind of fix, many of them: its fixtures in other clothes, fixed, and run by torch. Runs in workers.

What is worn: another indentation and a block around it, statements in front, comments behind statements, operators without
blanks (`y+=1`). None of it changes what a program does.
"""

from __future__ import annotations

import io
import random
import re
import textwrap
import tokenize
from collections.abc import Sequence
from pathlib import Path

import torch

from gradguard.check.settings import Settings
from gradguard.cli.worker import Checker, Job
from gradguard.ide.edits import applied
from gradguard.ide.trial import Trials
from gradguard.source.text import Source
from tests.fixes.judging import SAME, SECOND, fixed, run

ROOT = Path(__file__).resolve().parents[2] / "fixtures" / "fixes"


def kinds() -> list[str]:
    """Kinds of fixes that have fixtures."""
    return sorted(path.name for path in ROOT.iterdir() if path.is_dir())


def program(kind: str, seed: int) -> str:
    """A program with something to fix."""
    chance = random.Random(f"{kind} {seed}")
    files = sorted(path for path in (ROOT / kind).glob("*.py") if not path.name.endswith(".fixed.py"))
    text = (
        chance.choice(files).read_bytes().decode().replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")
    )
    if chance.random() < 0.5:
        text = _commented(text, chance)
    if chance.random() < 0.5:
        text = re.sub(r"^(\s*[\w.]+) ([-+*/]=) (?=\S)", r"\1\2", text, flags=re.MULTILINE)
    head = "".join(f"unused_{number} = {number}\n" for number in range(chance.randrange(3)))
    if chance.random() < 0.4 and "import *" not in text and '"""' not in text and "\f" not in text:
        text = "if True:\n" + textwrap.indent(text, chance.choice(["  ", "    ", "\t"]))
    return head + text


def _commented(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        line = token.start[0] - 1
        if token.type == tokenize.NEWLINE and "#" not in lines[line] and chance.random() < 0.5:
            lines[line] += f"  # note {line}"
    return "\n".join(lines)


def judged(kind: str, seeds: Sequence[int]) -> tuple[int, list[str]]:
    """How many programs a fix of this kind is offered in, and what is wrong with those that come out."""
    torch.set_num_threads(1)
    count, wrong = 0, []
    for seed in seeds:
        code = program(kind, seed)
        found = _made(code, kind)
        if found is None:
            continue
        count += 1
        wrong += [f"seed {seed}: {each}\n{code}\n->\n{found[0]}" for each in _wrong(code, *found)]
    return count, wrong


def _made(code: str, kind: str) -> tuple[str, set[int]] | None:
    source, checker = Source("/program.py", code), Checker(None)
    job = Job("/program.py", Settings(), data=code.encode())
    report = checker.source_checked(job, source)
    trials = Trials(source, report, lambda each: checker.source_checked(job, each))
    for finding in report.findings:
        for plan in finding.fixes:
            edits = trials.edits(finding, plan) if plan.kind == kind else None
            if edits:
                touched = {line for span, _ in edits for line in range(span.line, span.end_line + 1)}
                return applied(source, edits), touched
    return None


def _wrong(before: str, after: str, touched: set[int]) -> list[str]:
    found = []
    for number, line in enumerate(before.splitlines(), 1):
        if number not in touched and line.strip() and line not in after.splitlines():
            found.append(f"line {number} is not kept: {line!r}")
    had, has = run(before), run(after)
    if has.error and has.error[:SAME] != had.error[:SAME]:
        # Another mistake of the same program, which the first one hid.
        if not had.error or SECOND not in has.error:
            found.append(f"raises {has.error}, where it was {had.error or 'nothing'!r}")
    everything = fixed(after, unsafe=True)[0].after
    if fixed(everything, unsafe=True)[0].count:
        found.append("fixing it again changes it again")
    return found
