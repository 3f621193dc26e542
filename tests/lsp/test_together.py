"""One mistake, one finding: whichever files are open and in whatever order, what is shown is what a cold command line says."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from gradguard.check.api import ordered
from gradguard.cli.configuration import Configuration
from gradguard.cli.worker import Checker, Job
from gradguard.findings import Finding
from gradguard.ide.analysis import analyse
from tests.lsp.inside import Inside

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHARE = int(os.environ.get("GRADGUARD_FUZZ", "1"))

FILES = {
    "pkg/__init__.py": ["", "from .helper import grown\n"],
    "pkg/helper.py": [
        "import torch\n\n\ndef grown(t):\n    t += 1\n    return t\n",
        "import torch\n\n\ndef grown(t):\n    return t + 1\n",
        "import torch\n\n\ndef grown(t):\n    y = t.exp()\n    y.mul_(2)\n    y.sum().backward()\n    return t\n",
        "# torch\nfrom .deep import grown\n",
    ],
    "pkg/deep.py": [
        "import torch\n\n\ndef grown(t):\n    t.mul_(3)\n    return t\n",
        "import torch\n\n\ndef grown(t):\n    t.mul_(3)  # gradguard: ignore[GG101]\n    return t\n",
    ],
    "use.py": [
        "import torch\nfrom pkg.helper import grown\n\nw = torch.rand(3, requires_grad=True)\ny = w.exp()\n"
        "grown(y)\ny.sum().backward()\n",
        "import torch\nimport pkg\n\nw = torch.rand(3, requires_grad=True)\ny = w.sigmoid()\n"
        "pkg.grown(y)\ny.sum().backward()\n",
    ],
    "other.py": [
        "import torch\nfrom pkg.helper import grown\n\n\ndef step(w):\n    y = w.tanh()\n    grown(y)\n    return y\n\n\n"
        "step(torch.rand(3, requires_grad=True)).sum().backward()\n",
    ],
}

Seen = tuple[str, int, str, int]
"""File, line, code and severity of what is shown."""
LEVELS = {"error": 1, "warning": 2, "information": 3, "hint": 4}


def cold(folder: Path, opened: set[str]) -> tuple[set[Seen], set[tuple[str, str, str, int]]]:
    """What the command line says of these files: in them, and in others as (importer, code, file, line)."""
    configuration = Configuration()
    checker = Checker(None)
    found: list[Finding] = []
    away: list[tuple[str, Finding]] = []
    needed: set[Any] = set()
    for name in sorted(opened):
        path = folder / name
        if not path.exists():
            continue
        report = checker.check(Job(str(path), configuration.of(path.parent), named=True)).report
        found += [*report.findings, *report.elsewhere]
        needed |= set(report.needed)
        away += [(name, each) for each in report.elsewhere]
    kept = [
        each
        for each in ordered(found)
        if each.code != "GG901" or not any((each.path, plan.span) in needed for plan in each.fixes)
    ]
    names = {str(folder / name): name for name in FILES}
    own = {
        (names[each.path], each.span.line, each.code, LEVELS[each.severity.value])
        for each in kept
        if names[each.path] in opened
    }
    others = {
        (name, each.code, names[each.path], each.span.line)
        for name, each in away
        if names[each.path] not in opened
    }
    return own, others


class Session:
    """An editor on a folder, in which files are opened, edited, closed, moved and restored."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.editor = Inside(analyser=analyse)
        self.opened: set[str] = set()
        self.past: list[str] = []

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def heard(self, *changes: tuple[str, int]) -> None:
        events = [{"uri": self.uri(name), "type": kind} for name, kind in changes]
        self.editor.notify("workspace/didChangeWatchedFiles", {"changes": events})

    def open(self, name: str) -> None:
        if (self.folder / name).exists():
            self.editor.open(self.uri(name), (self.folder / name).read_text())
            self.opened.add(name)

    def close(self, name: str) -> None:
        self.editor.close_document(self.uri(name))
        self.opened.discard(name)

    def write(self, name: str, text: str) -> None:
        """Edited and saved where it is open, changed on disk by something else where it is not."""
        there = (self.folder / name).exists()
        (self.folder / name).write_text(text)
        if name in self.opened:
            self.editor.replace(self.uri(name), text)
        self.heard((name, 2 if there else 1))

    def remove(self, name: str) -> None:
        if name in self.opened:
            self.close(name)
        (self.folder / name).unlink(missing_ok=True)
        self.heard((name, 3))

    def move_folder(self) -> None:
        """The package is renamed and comes back; editors hear of the files, or of the folder alone."""
        for name in [each for each in self.opened if each.startswith("pkg/")]:
            self.close(name)
        (self.folder / "pkg").rename(self.folder / "away")
        self.heard(("pkg", 3), ("away", 1))

    def bring_back(self) -> None:
        if (self.folder / "away").exists():
            (self.folder / "away").rename(self.folder / "pkg")
            self.heard(("away", 3), ("pkg", 1))

    def step(self, rng: random.Random) -> None:
        name = rng.choice(list(FILES))
        kind = rng.random()
        self.bring_back()
        if name not in self.opened and kind < 0.5:
            self.past.append(f"open {name}")
            self.open(name)
        elif name in self.opened and kind < 0.35:
            self.past.append(f"close {name}")
            self.close(name)
        elif kind < 0.75:
            number = rng.randrange(len(FILES[name]))
            self.past.append(f"write {name} {number}")
            self.write(name, FILES[name][number])
        elif kind < 0.92:
            self.past.append(f"remove {name}")
            self.remove(name)
        else:
            self.past.append("move the package")
            self.move_folder()

    def shown(self) -> tuple[set[Seen], set[tuple[str, str, str, int]], int]:
        """The same as `cold` for what the editor shows, and how many diagnostics that are."""
        latest: dict[str, list[Any]] = {}
        for message in (*self.editor.passed, *self.editor.sent):
            if message.get("method") == "textDocument/publishDiagnostics":
                latest[message["params"]["uri"]] = message["params"]["diagnostics"]
        uris = {self.uri(name): name for name in FILES}
        own: set[Seen] = set()
        others: set[tuple[str, str, str, int]] = set()
        count = 0
        for uri, items in latest.items():
            name = uris[uri]
            for each in items:
                count += 1
                first = (each.get("relatedInformation") or [None])[0]
                if first is not None and first["message"] == each["message"]:
                    place = first["location"]
                    line = place["range"]["start"]["line"] + 1
                    others.add((name, each["code"], uris[place["uri"]], line))
                else:
                    own.add((name, each["range"]["start"]["line"] + 1, each["code"], each["severity"]))
        return own, others, count

    async def compare(self) -> None:
        await self.editor.quiet()
        own, others = cold(self.folder, self.opened)
        said, led, count = self.shown()
        assert (said, led) == (own, others), self.past
        assert count == len(own) + len(others), self.past


def with_related() -> dict[str, Any]:
    return {"capabilities": {"textDocument": {"publishDiagnostics": {"relatedInformation": True}}}}


@pytest_asyncio.fixture(loop_scope="module")
async def session(tmp_path: Path) -> Any:
    one = Session(tmp_path)
    for name, texts in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(texts[0])
    await one.editor.initialize(rootUri=tmp_path.as_uri(), **with_related())
    yield one
    one.editor.server.session.stop()


async def test_an_error_in_a_helper_is_shown_there_or_at_the_call(session: Session) -> None:
    session.open("use.py")
    await session.compare()
    _, led, _ = session.shown()
    assert led == {("use.py", "GG101", "pkg/helper.py", 5)}
    session.open("pkg/helper.py")
    await session.compare()
    said, led, _ = session.shown()
    assert (said, led) == ({("pkg/helper.py", 5, "GG101", 1)}, set())
    session.open("other.py")
    await session.compare()
    for name in ("use.py", "pkg/helper.py"):
        session.close(name)
        await session.compare()


async def test_helpers_that_go_and_come_back_are_followed_without_an_edit(session: Session) -> None:
    session.open("use.py")
    await session.compare()
    text = FILES["pkg/helper.py"][0]
    for _ in range(2):
        session.remove("pkg/helper.py")
        await session.compare()
        session.write("pkg/helper.py", text)
        await session.compare()
        assert session.shown()[1]
    session.move_folder()
    await session.compare()
    assert not session.shown()[1]
    session.bring_back()
    await session.compare()
    assert session.shown()[1]


async def test_folders_that_imports_go_through_are_watched(tmp_path: Path) -> None:
    editor = Inside(analyser=analyse)
    watches = {"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True}}}
    await editor.initialize(rootUri=tmp_path.as_uri(), capabilities=watches)
    editor.open((tmp_path / "use.py").as_uri(), "import torch\nfrom pkg.deep import f\nf(torch.rand(3))\n")
    globs: set[str] = set()
    while "**/pkg" not in globs:
        message = await editor.wait(lambda each: each.get("method") == "client/registerCapability")
        editor.answer(message["id"])
        for each in message["params"]["registrations"]:
            globs |= {one["globPattern"] for one in each["registerOptions"]["watchers"]}
    assert "**/deep" in globs
    editor.server.session.stop()


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_is_opened_edited_closed_and_moved(session: Session, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(30 * SHARE):
        session.step(rng)
        if rng.random() < 0.6:
            await session.compare()
    session.bring_back()
    await session.compare()
