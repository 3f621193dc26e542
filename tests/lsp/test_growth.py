"""What can be done about many findings at once is told in steps that grow with their number."""

from __future__ import annotations

import pathlib

import pytest

from tests.counting import LINEAR
from tests.lsp.inside import Inside, Steps

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_actions_for_all_findings_of_a_document(tmp_path: pathlib.Path) -> None:
    steps = Steps()
    with steps.watched():
        editor = Inside(steps)
        await editor.initialize()
        taken = []
        for count in (50, 50, 200):  # the first for what is made once
            uri = (tmp_path / f"train{len(taken)}.py").as_uri()
            editor.open(uri, "import torch\n" + "boom(x)\n" * count)
            assert len(await editor.diagnostics(uri)) == count
            await editor.quiet()
            whole = {"start": {"line": 0, "character": 0}, "end": {"line": count + 1, "character": 0}}
            asked = {"textDocument": {"uri": uri}, "range": whole, "context": {"diagnostics": []}}
            with steps.counted():
                answer = await editor.request("textDocument/codeAction", asked)
            assert len(answer["result"]) >= count
            taken.append(steps.count)
        editor.server.session.stop()
    assert taken[2] < LINEAR * taken[1]
