"""Settings that are wrong: the user is told once, and documents are diagnosed with what is right."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from gradguard.check import pyproject
from gradguard.ide.wording import translated
from gradguard.lsp import configuration
from gradguard.lsp.notices import harmless
from tests.lsp.inside import Inside

pytestmark = pytest.mark.asyncio(loop_scope="module")

FIND = "import torch\nboom(x)\nhint(x)\n"


@pytest_asyncio.fixture(loop_scope="module")
async def editor(tmp_path: Path) -> AsyncIterator[Inside]:
    started = Inside()
    await started.initialize(rootUri=tmp_path.as_uri())
    yield started
    started.server.session.stop()


def told(editor: Inside) -> list[str]:
    """What was shown to the user since it was last asked for."""
    shown = [each["params"] for each in editor.sent if each.get("method") == "window/showMessage"]
    kept = [each for each in editor.sent if each.get("method") != "window/showMessage"]
    editor.sent.clear()
    editor.sent.extend(kept)
    assert all(each["type"] == 2 for each in shown)
    return [each["message"] for each in shown]


async def codes(editor: Inside, uri: str) -> list[str]:
    """Codes of what is shown for a document."""
    await editor.quiet()
    shown = [
        each["params"]["diagnostics"]
        for each in editor.sent
        if each.get("method") == "textDocument/publishDiagnostics" and each["params"]["uri"] == uri
    ]
    return [each["code"] for each in shown[-1]]


async def changed(editor: Inside, file: Path, text: str) -> None:
    """A file is another on disk, and the server hears of it."""
    file.write_text(text)
    editor.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": file.as_uri(), "type": 2}]})
    await editor.quiet()


WRONG = {
    "a pattern": ('exclude = ["a\\\\"]', "exclude"),
    "a pattern for rules": ('per-file-ignores = {"a\\\\" = ["GG101"]}', "per-file-ignores"),
    "a level": ('rules = {GG101 = "loud"}', "GG101"),
    "a key": ("nonsense = 1", "nonsense"),
    "a key that would be a link": ('"[x](command:y)" = 1', "[x] (command:y)"),
    "depth": ("deep = " + "[" * 20_000, "Nested too deeply"),
    "no TOML": ("ignore = [", "not valid TOML"),
    "a number": ("exclude = " + "9" * 10_000, ""),
    "folders out of the project": ('src = ["../other"]', "src"),
}


@pytest.mark.parametrize("name", list(WRONG))
async def test_what_is_wrong_is_told_once_and_the_rest_is_in_force(
    editor: Inside, tmp_path: Path, name: str
) -> None:
    wrong, word = WRONG[name]
    file = tmp_path / "pyproject.toml"
    file.write_text(f'[tool.gradguard]\nignore = ["GG301"]\n{wrong}\n')
    uris = [(tmp_path / each).as_uri() for each in ("a.py", "b.py", "in/c.py")]
    for uri in uris:
        editor.open(uri, FIND)
    for uri in uris:
        assert await codes(editor, uri) == ["GG101"]
        editor.type(uri, "\n")
    await editor.quiet()
    (message,) = told(editor)
    assert str(file) in message
    assert word in message
    # Another mistake is told, the same one again is not, and once more after it was away.
    await changed(editor, file, "[tool.gradguard]\nother = 1\n")
    assert len(told(editor)) == 1
    await changed(editor, file, "[tool.gradguard]\nother = 1\n")
    assert not told(editor)
    await changed(editor, file, "[tool.gradguard]\n")
    assert not told(editor)
    await changed(editor, file, "[tool.gradguard]\nother = 1\n")
    assert len(told(editor)) == 1


AT_ITS_PLACE = {
    'ignore = [\n  "GG301",\n  "item-in-lop",  # 많이\n]': (
        '"item-in-lop"',
        'did you mean "item-in-loop"?',
        2,
    ),
    "[tool.gradguard.rules]\nGG999 = 'off'": ("GG999", 'did you mean "GG', 2),
    "ignor = []": ("ignor", 'unknown key; did you mean "ignore"?', 2),
    "exclude = 1  # 😋": ("exclude", "expected a list of strings, found 1", 2),
    'rules = { GG101 = "loud" }': ('"loud"', "found", 2),
    "select = [GG1]": ("GG1]", "not valid TOML", 1),
}


@pytest.mark.parametrize("text", list(AT_ITS_PLACE))
async def test_what_is_wrong_is_shown_at_its_place(editor: Inside, tmp_path: Path, text: str) -> None:
    place, word, severity = AT_ITS_PLACE[text]
    file = tmp_path / "pyproject.toml"
    body = f'[project]\nname = "x"\n\n[tool.gradguard]\n{text}\n'

    async def shown(wrong: bool) -> list[Any]:
        message = await editor.wait(
            lambda each: (
                each.get("method") == "textDocument/publishDiagnostics"
                and each["params"]["uri"] == file.as_uri()
                and bool(each["params"]["diagnostics"]) is wrong
            )
        )
        return list(message["params"]["diagnostics"])

    await changed(editor, file, body)  # although no document is open
    (found,) = await shown(True)
    assert word in found["message"]
    assert (found["severity"], found["source"]) == (severity, "gradguard")
    start, end = found["range"]["start"], found["range"]["end"]
    assert start["line"] == end["line"]
    line = body.split("\n")[start["line"]].encode("utf-16-le")
    assert line[2 * start["character"] : 2 * end["character"]].decode("utf-16-le") == place
    await changed(editor, file, "[tool.gradguard]\n")
    assert await shown(False) == []


async def test_the_status_of_an_editor_is_told_all_that_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.gradguard]\nignor = []\n")
    editor = Inside()
    await editor.initialize(rootUri=tmp_path.as_uri(), initializationOptions={"status": True})
    message = await editor.wait(lambda each: each.get("method") == "$/gradguard/settingsProblems")
    (problem,) = message["params"]["problems"]
    assert problem.startswith(f"{tmp_path / 'pyproject.toml'}:2: [tool.gradguard] ignor: ")
    editor.server.session.stop()


IN_ITS_PLACE: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "link in a circle": lambda path: path.symlink_to(path),
    "folder": lambda path: path.mkdir(),
    "too large": lambda path: path.write_text("x = 1 # gradguard\n" * 100_000),
    "not UTF-8": lambda path: path.write_bytes(b"[tool.gradguard]\nexclude = '\xff'\n"),
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
@pytest.mark.parametrize("kind", IN_ITS_PLACE)
async def test_what_cannot_be_read_is_told_once(editor: Inside, tmp_path: Path, kind: str) -> None:
    IN_ITS_PLACE[kind](tmp_path / "pyproject.toml")
    for name in ("a.py", "b.py"):
        editor.open((tmp_path / name).as_uri(), FIND)
        assert await codes(editor, (tmp_path / name).as_uri()) == ["GG101", "GG301"]
    (message,) = told(editor)
    assert "pyproject.toml" in message


async def test_a_fault_of_ours_is_told_and_leaves_what_the_editor_sets_in_force(
    editor: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("asked to fail")

    (tmp_path / "pyproject.toml").write_text("[tool.gradguard]\n")
    editor.notify("workspace/didChangeConfiguration", {"settings": {"gradguard": {"ignore": ["GG301"]}}})
    await editor.quiet()
    monkeypatch.setattr(pyproject, "parse_text", fails)
    uri = (tmp_path / "a.py").as_uri()
    editor.open(uri, FIND)
    assert await codes(editor, uri) == ["GG101"]
    (message,) = told(editor)
    assert "internal error RuntimeError" in message
    assert "asked to fail" in caplog.text
    editor.type(uri, "\n")
    assert await codes(editor, uri) == ["GG101"]
    monkeypatch.setattr(configuration, "parse", fails)
    editor.notify("workspace/didChangeConfiguration", {"settings": {"gradguard": {"ignore": []}}})
    await editor.quiet()
    editor.type(uri, "\n")
    assert await codes(editor, uri) == ["GG101", "GG301"]
    assert len(told(editor)) == 1


async def test_settings_of_the_editor_are_told_once_and_keys_of_others_not_at_all(editor: Inside) -> None:
    async def settings(**values: Any) -> None:
        editor.notify("workspace/didChangeConfiguration", {"settings": {"gradguard": values}})
        await editor.quiet()

    await settings(exclude=["a\\"], noSuchKey=1, python={"path": "x"})
    (message,) = told(editor)
    assert "exclude" in message
    await settings(exclude=["a\\"], noSuchKey=2, ignore=[])
    assert not told(editor)
    await settings(exclude=["!"])
    assert len(told(editor)) == 1


async def test_it_is_told_in_the_language_of_the_editor(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.gradguard]\nignore = [")
    editor = Inside()
    await editor.initialize(rootUri=tmp_path.as_uri(), locale="ko")
    editor.open((tmp_path / "a.py").as_uri(), FIND)
    await editor.quiet()
    (message,) = told(editor)
    assert "나머지 설정" in message
    editor.server.session.stop()


MISTAKES = (
    "x = " + "[" * 20_000, "ignore = [", "nonsense = 1", "selekt = []", "perFileIgnores = {}", "run = 1", "all = 1",
    "x = 1" + "9" * 5000, 'torch-version = "x"', "torch-version = 1", "exclude = 1", "exclude = [1]", 'exclude = ["!"]',
    'exclude = ["a\\\\"]', 'exclude = ["[z-a]"]', "per-file-ignores = 1", 'select = ["GG999"]', "rules = 1",
    'rules = {GG101 = "loud"}', 'rules = {GG999 = "off"}', "a" + ".b" * 100 + " = 1",
    "\n".join(f"x{number} = 1" for number in range(99)), "[[tool.gradguard.x]]",
)  # fmt: skip


@pytest.mark.parametrize("number", range(len(MISTAKES)))
async def test_what_is_wrong_is_said_in_korean(number: int) -> None:
    parsed = pyproject.parse_text("[tool.gradguard]\n" + MISTAKES[number], "pyproject.toml")
    assert parsed is not None
    assert parsed.problems
    for problem in parsed.problems:
        assert re.search("[\uac00-\ud7a3]", translated(problem.message, "ko")), problem


async def test_nothing_of_others_becomes_a_link_or_a_line_of_its_own() -> None:
    assert harmless("a\x1b[31m\n[x](command:y) \u202eb") == r"a\x1b[31m\n[x] (command:y) \u202eb"
    assert len(harmless("x" * 10_000)) <= 500
