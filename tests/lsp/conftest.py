from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.lsp import editor as editors
from tests.lsp.editor import Editor


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def editor() -> AsyncIterator[Editor]:
    """A client that takes pushed diagnostics, with the toy analyser."""
    started = await editors.start()
    yield started
    await editors.stop(started)
