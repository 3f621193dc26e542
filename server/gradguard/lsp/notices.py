"""What the user is told in words of its own: once, and again only when it is something else."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import Protocol

from lsprotocol import types as lsp

from gradguard.check.parsing import Problem
from gradguard.check.settings import options
from gradguard.check.workspace import LONGEST, TOO_LONG
from gradguard.ide.wording import Wording
from gradguard.lsp.configuration import SECTION
from gradguard.source.printable import printable

log = logging.getLogger(__name__)

MOST = 500
"""Characters of a message."""


class MessageWindow(Protocol):
    """The client, as far as it shows messages to its user."""

    @property
    def reachable(self) -> bool:
        """Whether it can be told anything."""

    def window_show_message(self, params: lsp.ShowMessageParams) -> None: ...


class Notices:
    """Shows messages. What comes of it also stands in the log.

    `wording` gives that of the client's language, which is known once the client has said it.
    """

    def __init__(self, client: MessageWindow, wording: Callable[[], Wording], log_file: str) -> None:
        self._client = client
        self._wording = wording
        self._log_file = log_file
        self._crash = ""
        self._crashed = False
        self._hanging: set[str] = set()
        self._editor: set[tuple[str, str]] = set()
        """What is wrong in the editor's settings, which come once for each folder and once for none."""

    def wrong(self, where: str, problems: Sequence[Problem]) -> None:
        """These settings are wrong, or were if there are no problems any more."""
        for problem in problems:
            log.warning("%s", problem)
        if not problems:
            log.info("%s: nothing is wrong any more", where)
        if where.startswith("editor"):
            problems = self._new(problems)
        if not problems:
            return
        wording = self._wording()
        first = problems[0]
        place = f"{first.where}:{first.line}" if first.line else first.where
        parts = [place, first.key, wording.message(first.message)]
        text = ": ".join(each for each in parts if each)
        if len(problems) > 1:
            text = wording.text("settings-more", problem=text, count=len(problems) - 1)
        self._show(lsp.MessageType.Warning, wording.text("settings-wrong", problem=text))

    def _new(self, problems: Sequence[Problem]) -> Sequence[Problem]:
        """Those that were not told, without keys of others that an editor may keep in the same place."""
        ours = {SECTION, *(option.editor_key for option in options().values())}
        mine = [each for each in problems if each.key.partition(".")[0] in ours]
        new = [each for each in mine if (each.key, each.message) not in self._editor]
        self._editor = {(each.key, each.message) for each in mine}
        return new

    def hangs(self, path: str) -> None:
        """A disk does not answer."""
        log.warning("%s: the disk does not answer; it counts as unreadable until it does", path)
        if not self._hanging:
            self._show(lsp.MessageType.Warning, self._wording().text("disk-hangs", file=path))
        self._hanging.add(path)

    def answers(self, path: str) -> None:
        """It answers again."""
        log.info("%s: the disk answers again", path)
        self._hanging.discard(path)

    def refused(self, path: str) -> None:
        """A document is too long."""
        log.warning("%s: %s; it is not analysed", path, TOO_LONG)
        name, count = os.path.basename(path), f"{LONGEST:,}"
        text = self._wording().text("too-long", file=name, count=count)
        self._show(lsp.MessageType.Warning, text)

    def crashed(self, path: str, details: str) -> None:
        """A fault of our own; told once in a session."""
        if details == self._crash:
            log.debug("the same internal error while analysing %s", path)
        else:
            log.error("internal error while analysing %s\n%s", path, details)
        self._crash = details
        if self._crashed:
            return
        self._crashed = True
        wording = self._wording()
        where = self._log_file or wording.text("the-log")
        message = wording.text("crash", file=os.path.basename(path), log=where)
        self._show(lsp.MessageType.Error, message)

    def _show(self, kind: lsp.MessageType, message: str) -> None:
        if not self._client.reachable:
            return
        params = lsp.ShowMessageParams(type=kind, message=harmless(message))
        self._client.window_show_message(params)


def harmless(message: str) -> str:
    """A message with names of others in it, of which VS Code would make links that run commands."""
    text = printable(message).replace("](", "] (")
    return text if len(text) <= MOST else text[: MOST - 3] + "..."
