"""The programs that `gradguard run` takes: what Python takes in their place, started as Python starts them.

The program sees its own `sys.argv`, `sys.path` and `__main__`.
"""

from __future__ import annotations

import importlib.machinery
import linecache
import os
import runpy
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import decode_source
from pathlib import Path
from typing import Any

from gradguard.runtime import handlers

COMMAND = "<command>"
"""Stands for the file of what `-c` is given. Python says `<string>`, as of all code that is made while it runs."""

STDIN = "<stdin>"


class NotStarted(Exception):
    """There is no such program."""


@dataclass(frozen=True, slots=True)
class Program:
    """command: the words after `gradguard run`. file: what is the user's own code, wherever it lies."""

    command: tuple[str, ...]
    file: str
    start: Callable[[], None]


def module(name: str, arguments: list[str]) -> Program:
    def start() -> None:
        sys.argv = [name, *arguments]
        _search_first(os.getcwd())
        try:
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        except ImportError as error:
            if _raised_in(error) == runpy.run_module.__code__.co_filename:
                raise NotStarted(str(error)) from None
            raise

    return Program(("-m", name, *arguments), "", start)


def code(text: str, arguments: list[str]) -> Program:
    """What `-c` is given. Raises SyntaxError or ValueError."""
    return _text(text.encode("utf-8", "surrogatepass"), COMMAND, ["-c", *arguments], ("-c", text, *arguments))


def standard_input(arguments: list[str]) -> Program:
    """Raises SyntaxError or ValueError."""
    return _text(sys.stdin.buffer.read(), STDIN, ["-", *arguments], ("-", *arguments))


def _text(data: bytes, name: str, argv: list[str], command: tuple[str, ...]) -> Program:
    compiled = handlers.compiled(data, name)
    _remember(name, data)

    def start() -> None:
        sys.argv = argv
        _search_first("")
        exec(compiled, _main().__dict__)

    return Program(command, name, start)


def path(name: str, arguments: list[str]) -> Program:
    """A script, or a folder or an archive with `__main__`. Raises OSError, SyntaxError, ValueError or NotStarted."""
    full = os.path.abspath(name)
    command = (name, *arguments)
    if os.path.isdir(full) or (os.path.isfile(full) and full.endswith((".zip", ".pyz"))):
        return _folder(name, full, command)
    data = Path(full).read_bytes()
    compiled = handlers.compiled(data, full)
    if not os.path.isfile(full):  # a pipe gives its text once, and who quotes it would wait for more
        _remember(full, data)

    def start() -> None:
        sys.argv = list(command)
        _search_first(os.path.dirname(full))
        exec(compiled, _main(__file__=full).__dict__)

    return Program(command, full, start)


def _folder(name: str, full: str, command: tuple[str, ...]) -> Program:
    spec = importlib.machinery.PathFinder.find_spec("__main__", [full])
    loader: Any = spec.loader if spec is not None else None
    if loader is None or not hasattr(loader, "get_code"):
        raise NotStarted(f"{name} has no __main__.py")

    def start() -> None:
        sys.argv = list(command)
        _search_first(full)
        compiled = loader.get_code("__main__")
        main = _main(__file__=compiled.co_filename, __package__="", __loader__=loader, __spec__=spec)
        exec(compiled, main.__dict__)

    return Program(command, os.path.join(full, "__main__.py"), start)


def _remember(name: str, data: bytes) -> None:
    """What is quoted of a text that cannot be read again."""
    lines = decode_source(data).splitlines(keepends=True)
    linecache.cache[name] = (len(data), None, lines, name)


def _main(**names: Any) -> types.ModuleType:
    made = types.ModuleType("__main__")
    made.__dict__.update(names, __builtins__=__builtins__)
    sys.modules["__main__"] = made
    return made


def _search_first(folder: str) -> None:
    """Python looks for modules of a program beside it, first of all; not beside the command that started it."""
    command = getattr(sys.modules["__main__"], "__file__", None)
    if command and sys.path[:1] in (
        [os.path.dirname(os.path.abspath(command))],
        [os.path.dirname(os.path.realpath(command))],
    ):
        del sys.path[0]
    sys.path.insert(0, folder)


def _raised_in(error: BaseException) -> str:
    """The file of the function that raised an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else trace.tb_frame.f_code.co_filename
