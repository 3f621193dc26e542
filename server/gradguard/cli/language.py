"""The language in which the command line speaks: that of `--lang`, else that of the system's messages.

Reports that programs read stay English: their texts are matched and compared.
"""

from __future__ import annotations

import argparse
import sys
from functools import lru_cache

from gradguard.report.words import ENGLISH, Words, language


@lru_cache(maxsize=1)
def words() -> Words:
    """Words in the language that the user wants."""
    return worded(language(sys.argv[1:]))


def worded(wanted: str) -> Words:
    """Words in a language."""
    if wanted == ENGLISH:
        return Words()
    from gradguard.ide.wording import translated

    return Words(wanted, lambda message: translated(message, wanted))


def helped(parser: argparse.ArgumentParser, wanted: str) -> None:
    """Put the help of a parser, and of the commands below it, into a language."""
    if wanted == ENGLISH:
        return
    from gradguard.cli.korean import HELP

    def other(text: str | None) -> str | None:
        return HELP.get(text, text) if text else text

    parser.description, parser.epilog = other(parser.description), other(parser.epilog)
    for group in parser._action_groups:
        group.title = other(group.title)
    for action in parser._actions:
        if action.help is not argparse.SUPPRESS:
            action.help = other(action.help)
        if isinstance(action, argparse._SubParsersAction):
            for choice in action._choices_actions:
                choice.help = other(choice.help)
            for below in action.choices.values():
                helped(below, wanted)
