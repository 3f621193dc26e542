"""`%load_ext gradguard` in a notebook: `%%gradguard` runs a cell under the monitor, `%gradguard_report` shows what it told."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from gradguard.disk.writing import replace_file
from gradguard.runtime.html import html_report
from gradguard.runtime.monitor import Monitor
from gradguard.runtime.report import RunReport
from gradguard.runtime.report_text import text_report

WORDS = "one of: %%gradguard, %%gradguard --light, %gradguard_report, %gradguard_report FILE.html"


class Magics:
    """What the two magics share: the report of the last watched cell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._last: RunReport | None = None

    def cell(self, line: str, text: str) -> None:
        """Runs a cell, which shows its own errors, and prints what was found."""
        words = shlex.split(line)
        if words not in ([], ["--light"]):
            print(f"gradguard: {WORDS}")
            return
        with Monitor(light=bool(words)) as monitor:
            ended = self._shell.run_cell(text)
            monitor.close(ended.error_before_exec or ended.error_in_exec)
        self._last = monitor.report
        print(monitor, end="")

    def report(self, line: str) -> None:
        """Prints the last report again, or writes it as a page."""
        words = shlex.split(line)
        if self._last is None:
            print("gradguard: no cell was watched yet; begin one with %%gradguard")
        elif not words:
            print(text_report(self._last), end="")
        elif len(words) == 1 and words[0].endswith(".html"):
            try:
                replace_file(
                    Path(words[0]), html_report(self._last, Path.cwd()).encode("utf-8", "backslashreplace")
                )
            except OSError as error:
                print(f"gradguard: cannot write {words[0]}: {error.strerror}")
        else:
            print(f"gradguard: {WORDS}")


def load(shell: Any) -> None:
    """Gives a shell of IPython the magics."""
    magics = Magics(shell)
    shell.register_magic_function(magics.cell, "cell", "gradguard")
    shell.register_magic_function(magics.report, "line", "gradguard_report")
