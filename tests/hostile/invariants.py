"""What must hold after any command in any repository."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.hostile.alphabet import acting, commands
from tests.hostile.arena import Arena, Done
from tests.hostile.repositories import Repository

ANNOTATION = re.compile(r"::(error|warning|notice) file=[^:\n]*,title=[^:\n]*::[^\n]*")


def holds(
    made: Repository, done: Done, before: dict[str, Any], changed: frozenset[str] = frozenset()
) -> None:
    """Raise an AssertionError that says what does not hold and what was planted.

    changed: names of files that the command may write.
    """
    try:
        ended_in_order(done)
        nothing_ran(made.arena)
        nothing_else_changed(made.arena, before, changed)
        nothing_is_left_running(made.arena)
        words_are_harmless(done)
        what_is_not_read_is_said(made, done)
        mistakes_are_found(made, done)
    except AssertionError as error:
        raise AssertionError(
            f"{' '.join(done.words)} after {made.planted}: {error}\n{done.errors[-3000:]}"
        ) from None


def ended_in_order(done: Done) -> None:
    assert done.code in (0, 1, 2), f"exit code {done.code}"
    assert "internal error" not in done.errors
    assert "Traceback" not in done.errors
    assert done.code != 2 or done.errors.strip(), "exit code 2 without a word"


def nothing_ran(arena: Arena) -> None:
    assert not arena.trace.exists(), "something of the repository was run"


def nothing_else_changed(arena: Arena, before: dict[str, Any], changed: frozenset[str]) -> None:
    now = arena.snapshot()
    for name in sorted(before.keys() | now.keys()):
        if name.rsplit("/", 1)[-1] not in changed:
            was, is_now = before.get(name), now.get(name)
            # A file that is replaced changes the time of its folder.
            if changed and was and is_now and was[0] == is_now[0] and was[0].startswith("0o4"):
                continue
            assert was == is_now, f"{name!r} was {was}, is {is_now}"


def nothing_is_left_running(arena: Arena) -> None:
    assert not arena.running(), "processes are left"


def words_are_harmless(done: Done) -> None:
    form = next((word.partition("=")[2] for word in done.words if word.startswith("--format=")), "text")
    assert not acting(done.errors), f"characters that act, on stderr: {acting(done.errors)}"
    assert not commands(done.errors), f"commands on stderr: {commands(done.errors)}"
    if form in ("json", "sarif", "gitlab"):
        if done.out:
            json.loads(done.out.decode("utf-8"))
        return
    if "--diff" in done.words:
        return  # what a patch tool is to apply is the very text of the file
    assert not acting(done.text), f"characters that act: {acting(done.text)}"
    meant = ANNOTATION.fullmatch if form == "github" else re.compile("(?!)").fullmatch
    wrong = [line for line in commands(done.text) if not meant(line)]
    assert not wrong, f"commands: {wrong}"


def what_is_not_read_is_said(made: Repository, done: Done) -> None:
    if done.code == 2 or done.words[-1] != ".":
        return  # refused as a whole, or not about the whole
    said = done.errors + done.text
    for name in made.unread:
        assert name in said, f"{name} was not read, and nothing says so"


def mistakes_are_found(made: Repository, done: Done) -> None:
    if "--format=json" not in done.words or not done.out:
        return
    report = done.json
    found = {each["file"].rsplit("/", 1)[-1] for each in report["findings"] if each["code"] == "GG101"}
    cut = {each["file"].rsplit("/", 1)[-1] for each in report["limits"]}
    for name in made.mistakes:
        assert name in found or name in cut or name in done.errors, (
            f"nothing is said of the mistake in {name}"
        )
