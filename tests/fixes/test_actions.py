"""Fixes as an editor gets them: offered at the finding, their edits resolved, in place only when asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from lsprotocol import types as lsp

from tests.lsp import editor as editors
from tests.lsp.editor import REAL, Editor

pytestmark = pytest.mark.asyncio(loop_scope="module")

RAISES = "import torch\n\nx = torch.rand(3, requires_grad=True)\ny = x.exp()\ny.add_(1)\ny.sum().backward()\n"
PLAIN = "import torch\n\nx = torch.rand(3, requires_grad=True)\ny = x * 2\ny = y + 1\ny.sum().backward()\n"
REWRITE = [lsp.CodeActionKind.RefactorRewrite.value]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def real() -> AsyncIterator[Editor]:
    started = await editors.start(REAL)
    try:
        yield started
    finally:
        await editors.stop(started)


async def apply(editor: Editor, uri: str, action: lsp.CodeAction) -> str:
    """The text after the action."""
    resolved = await editor.resolved(action)
    assert resolved.edit is not None
    editor.apply(resolved.edit)
    return editor.texts[uri]


async def test_the_safe_fix_is_preferred_and_resolved(real: Editor) -> None:
    uri = await real.open(RAISES)
    found = await real.actions(uri, "y.add_(1)", [lsp.CodeActionKind.QuickFix.value])
    (preferred,) = [each for each in found if each.is_preferred]
    assert preferred.title == "Write `y` out of place"
    assert preferred.edit is None
    assert await apply(real, uri, preferred) == RAISES.replace("y.add_(1)", "y = y.add(1)")
    assert await real.diagnostics(uri) == []


async def test_everything_at_once(real: Editor) -> None:
    uri = await real.open(RAISES)
    (action,) = await real.actions(uri, "import", ["source.fixAll.gradguard"])
    assert await apply(real, uri, action) == RAISES.replace("y.add_(1)", "y = y.add(1)")


async def test_in_place_where_it_is_proven(real: Editor) -> None:
    uri = await real.open(PLAIN)
    assert not await real.actions(uri, "y = x * 2", REWRITE)
    (action,) = await real.actions(uri, "y = y + 1", REWRITE)
    assert action.title == "Make `y` in place"
    assert await apply(real, uri, action) == PLAIN.replace("y = y + 1", "y += 1")
    assert await real.diagnostics(uri) == []


async def test_not_in_place_where_an_op_saved_it(real: Editor) -> None:
    uri = await real.open(PLAIN.replace("x * 2", "x.exp()"))
    assert not await real.actions(uri, "y = y + 1", REWRITE)
