"""libcst's parser, of which there are two: a compiled one, and the older one in Python that it still carries.

The compiled one is not there for every platform and Python, and not in a browser. The older one is slower and reads
Python up to 3.8: a text with `match`, or with parentheses around several `with` items, it refuses, and what stands there gets no edit.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable
from functools import cache
from typing import Any

NATIVE = "libcst.native"
READS = "3.8"
"""The newest Python that the older parser knows."""


def ensure() -> None:
    """Have libcst parse by the older parser where it lacks the compiled one. Raises ModuleNotFoundError where it is not installed."""
    libcst = importlib.import_module("libcst")
    try:
        importlib.import_module(NATIVE)
    except ImportError:
        module = types.ModuleType(NATIVE, __doc__)
        for name, start, whole in (
            ("parse_module", "file_input", True),
            ("parse_statement", "stmt_input", True),
            ("parse_expression", "expression_input", False),
        ):
            setattr(module, name, _parser(start, whole))
        sys.modules[NATIVE] = module
        setattr(libcst, NATIVE.rpartition(".")[2], module)


def _parser(start: str, whole: bool) -> Callable[..., Any]:
    """What takes the place of a function of the compiled module; `whole`: of a text with lines, not a piece of one."""

    def parse(source: str, encoding: str | None = None) -> Any:
        from libcst._parser.detect_config import detect_config
        from libcst._parser.python_parser import PythonCSTParser
        from libcst._parser.types.config import PartialParserConfig

        wanted = PartialParserConfig(python_version=READS)
        found = detect_config(
            source, partial=wanted, detect_trailing_newline=whole, detect_default_newline=whole
        )
        parser = PythonCSTParser(
            tokens=found.tokens, config=found.config, pgen_grammar=_grammar(), start_nonterminal=start
        )
        return parser.parse()

    return parse


@cache
def _grammar() -> Any:
    from libcst._parser.grammar import get_grammar
    from libcst._parser.parso.utils import parse_version_string

    return get_grammar(parse_version_string(READS), frozenset())
