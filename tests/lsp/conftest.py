from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.lsp import editor as editors
from tests.lsp.editor import REAL, Editor


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def editor() -> AsyncIterator[Editor]:
    """A client that takes pushed diagnostics, with the toy analyser."""
    started = await editors.start()
    yield started
    await editors.stop(started)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def real() -> AsyncIterator[Editor]:
    """The same with the real engine, started as editors start it."""
    started = await editors.start(REAL)
    yield started
    await editors.stop(started)
