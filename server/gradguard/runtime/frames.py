"""Where in the user's code something happened.

A `Site` is the chain of the user's frames, innermost first; frames of libraries are left out, except that the
place where a module was called from outside is remembered. Sites are interned: one object for one chain.
No frame is ever kept, for that would keep its variables alive.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import NamedTuple

USER, LIBRARY, MODULE_CALL, RUNNER = 0, 1, 2, 3
MODULE_CALLS = {"_wrapped_call_impl", "_call_impl"}
# Functions that run the user's code: nothing above them is of interest.
RUNNERS = {"pytest_pyfunc_call": "python.py", "run_code": "interactiveshell.py"}


class Place(NamedTuple):
    """One instruction of the user's code."""

    code: CodeType
    instruction: int

    @property
    def path(self) -> str:
        return self.code.co_filename

    @property
    def line(self) -> int:
        """0 if the interpreter does not know."""
        return self.position[0]

    @property
    def position(self) -> tuple[int, int, int, int]:
        """First line, last line, first and last column (0-based utf-8 bytes, -1 if unknown) of the expression."""
        index = max(self.instruction, 0) // 2
        if sys.version_info >= (3, 11):
            for number, (line, end_line, column, end_column) in enumerate(self.code.co_positions()):
                if number == index and line is not None:
                    known = column is not None and end_column is not None
                    return (
                        line,
                        end_line or line,
                        column if known else -1,  # type: ignore[return-value]
                        end_column if known else -1,  # type: ignore[return-value]
                    )
        line = 0
        for start, end, number in self.code.co_lines():
            if start <= self.instruction < end and number is not None:
                line = number
        return (line, line, -1, -1)


class Site:
    """A chain of places, innermost first.

    root: index in `places` of the place outside all modules that called into one; None if no module was entered.
    made: nodes recorded there so far. use: what is counted for the module call it lies in.
    """

    __slots__ = ("made", "number", "places", "root", "use")

    def __init__(self, number: int, places: tuple[Place, ...], root: int | None) -> None:
        self.number = number
        self.places = places
        self.root = root
        self.made = 0
        self.use: RootUse | None = None

    @property
    def inner(self) -> Place | None:
        return self.places[0] if self.places else None

    @property
    def root_place(self) -> Place | None:
        return None if self.root is None else self.places[self.root]

    def __repr__(self) -> str:
        return " <- ".join(f"{os.path.basename(p.path)}:{p.line}" for p in self.places)


@dataclass(slots=True)
class RootUse:
    """How often the graphs of one module call in the user's code were recorded, and how often run backward."""

    site: Site
    recorded: int = 0
    executed: int = 0
    calls: int = 0


class Frames:
    """Tells the user's code from libraries and makes sites."""

    def __init__(self, always_user: tuple[str, ...] = ()) -> None:
        paths = sysconfig.get_paths()
        roots = {paths["stdlib"], paths["platstdlib"], os.path.dirname(os.path.abspath(__file__))}
        self._library_roots = tuple(os.path.realpath(p) + os.sep for p in roots)
        self._user_files = {os.path.realpath(p) for p in always_user}
        # What is no file, such as the code that `-c` is given.
        self._texts = {p for p in always_user if p.startswith("<")}
        self._kinds: dict[int, int] = {}
        self._codes: dict[int, CodeType] = {}
        self._files: dict[str, bool] = {}
        self._sites: dict[tuple[int, ...], Site] = {}
        self.base: FrameType | None = None

    def ignore(self, folder: str) -> None:
        """Code below a folder is a library's, as for a harness that runs the user's code."""
        self._library_roots += (os.path.realpath(folder) + os.sep,)

    def is_user_file(self, name: str) -> bool:
        known = self._files.get(name)
        if known is None:
            known = self._files[name] = self._decide(name)
        return known

    def _decide(self, name: str) -> bool:
        if name.startswith("<"):
            return name in self._texts or name.startswith(("<ipython-input", "<stdin>", "<console>"))
        path = os.path.realpath(name)
        if path in self._user_files:
            return True
        if "site-packages" in path or "dist-packages" in path:
            return False
        return not path.startswith(self._library_roots)

    def user_files(self) -> list[str]:
        """Files of the user's code that ran, in the order in which they were first seen."""
        names = (self._codes[key].co_filename for key, kind in self._kinds.items() if kind == USER)
        return list(dict.fromkeys(names))

    def kind(self, code: CodeType) -> int:
        key = id(code)
        known = self._kinds.get(key)
        if known is None:
            # The code object is kept so that its id stays its own.
            self._codes[key] = code
            if code.co_name in MODULE_CALLS and code.co_filename.endswith("module.py"):
                known = MODULE_CALL
            elif code.co_filename.endswith(RUNNERS.get(code.co_name, "\0")):
                known = RUNNER
            else:
                known = USER if self.is_user_file(code.co_filename) else LIBRARY
            self._kinds[key] = known
        return known

    def site(self, frame: FrameType | None) -> Site:
        """The site of `frame` and its callers, up to the frame that started the watching."""
        kinds = self._kinds
        base = self.base
        key: list[int] = []
        while frame is not None:
            code = frame.f_code
            number = id(code)
            kind = kinds.get(number)
            if kind is None:
                kind = self.kind(code)
            if kind == USER:
                key.append(number)
                key.append(frame.f_lasti)
            elif kind == MODULE_CALL:
                key.append(-1)
            if frame is base or kind == RUNNER:
                break
            frame = frame.f_back
        packed = tuple(key)
        site = self._sites.get(packed)
        if site is None:
            site = self._sites[packed] = self._make(packed)
        return site

    def _make(self, key: tuple[int, ...]) -> Site:
        places: list[Place] = []
        root: int | None = None
        index = 0
        while index < len(key):
            if key[index] == -1:
                # The last mark wins: the outermost module call.
                root = len(places)
                index += 1
                continue
            places.append(Place(self._codes[key[index]], key[index + 1]))
            index += 2
        if root is not None and root >= len(places):
            root = None
        return Site(len(self._sites), tuple(places), root)

    def user_frame(self, frame: FrameType | None) -> FrameType | None:
        """The innermost frame of the user's code at or above `frame`."""
        while frame is not None and self.kind(frame.f_code) != USER:
            if frame is self.base:
                return None
            frame = frame.f_back
        return frame
