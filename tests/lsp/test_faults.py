"""An internal error that costs a function or a fix is told once, and the editor keeps everything else."""

from __future__ import annotations

import logging
import pathlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from gradguard.engine.models import library
from gradguard.findings import FixPlan
from gradguard.fixes import api
from gradguard.ide.analysis import analyse
from gradguard.source.text import Source
from tests.lsp.inside import Inside

pytestmark = pytest.mark.asyncio(loop_scope="module")

BAD = """\
def {name}():
    y = torch.rand(3, requires_grad=True).exp()
    y += 1
    y.sum().backward()
"""
TEXT = (
    "import torch\n"
    + BAD.format(name="one")
    + "def faulty(x):\n    return torch.erf(x)\n"
    + BAD.format(name="two")
)


@pytest_asyncio.fixture(loop_scope="module")
async def editor() -> AsyncIterator[Inside]:
    started = Inside(analyser=analyse)
    await started.initialize()
    yield started
    started.server.session.stop()


@pytest.fixture
def engine_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> object:
        raise ZeroDivisionError("at work")

    monkeypatch.setitem(library.REGISTRY.torch, "torch.erf", broken)


def told(editor: Inside) -> list[str]:
    """Messages that were shown to the user."""
    return [each["params"]["message"] for each in editor.sent if each.get("method") == "window/showMessage"]


def lines(diagnostics: list[dict[str, Any]]) -> list[int]:
    return [each["range"]["start"]["line"] + 1 for each in diagnostics]


async def test_a_function_with_a_fault_costs_no_other_and_is_told_once(
    engine_fails: None, editor: Inside, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    uri = (tmp_path / "train.py").as_uri()
    messages = []
    with caplog.at_level(logging.ERROR):
        editor.open(uri, TEXT)
        for number in range(3):
            await editor.quiet()
            messages += told(editor)
            assert lines(await editor.diagnostics(uri)) == [number + 4, number + 10]
            editor.type(uri, "\n")
    assert len(messages) == 1
    assert "train.py" in messages[0]
    assert sum("ZeroDivisionError: at work" in each.getMessage() for each in caplog.records) == 1


async def offered(editor: Inside, uri: str, *only: str) -> list[dict[str, Any]]:
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
    context = {"diagnostics": [], **({"only": [*only]} if only else {})}
    asked = {"textDocument": {"uri": uri}, "range": whole, "context": context}
    found: list[dict[str, Any]] = (await editor.request("textDocument/codeAction", asked))["result"]
    return found


@pytest.fixture
def fix_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fix of the first finding has a mistake."""
    own = api.edits

    def edits(plan: FixPlan, source: Source) -> tuple[api.Edit, ...] | None:
        if plan.span.line <= 5:
            raise ZeroDivisionError("at work")
        return own(plan, source)

    monkeypatch.setattr(api, "edits", edits)


async def test_a_fix_with_a_fault_costs_no_other(
    fix_fails: None, editor: Inside, tmp_path: pathlib.Path
) -> None:
    uri = (tmp_path / "train.py").as_uri()
    editor.open(uri, TEXT)
    assert lines(await editor.diagnostics(uri)) == [4, 10]
    actions = [each for each in await offered(editor, uri, "quickfix") if "Ignore" not in each["title"]]
    # Where no fix can be made, the menu leads to the explanation.
    assert [each["title"].partition(" ")[0] for each in actions if "edit" not in each] == ["Explain"]
    fixes = [each for each in actions if "edit" in each]
    assert fixes
    assert all(
        change["range"]["start"]["line"] > 5 for fix in fixes for change in fix["edit"]["changes"][uri]
    )
    await editor.quiet()


async def test_everything_else_is_fixed_at_once(
    fix_fails: None, editor: Inside, tmp_path: pathlib.Path
) -> None:
    uri = (tmp_path / "train.py").as_uri()
    editor.open(uri, TEXT)
    await editor.diagnostics(uri)
    (fix,) = await offered(editor, uri, "source.fixAll")
    assert {change["range"]["start"]["line"] for change in fix["edit"]["changes"][uri]} <= {8, 9}
