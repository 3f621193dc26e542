"""Fixes as an editor gets them: offered at the finding, their edits resolved, in place only when asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException

from gradguard.check.settings import Settings
from gradguard.cli.fix import fix
from gradguard.cli.worker import Checker, Job
from gradguard.lsp.actions import FIX_ALL
from tests.lsp import editor as editors
from tests.lsp.editor import REAL, Editor
from tests.lsp.test_notebooks import open_cells

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


HEAD = "import torch\nfrom torch import nn\n\nx = torch.rand(3, requires_grad=True)\n"
PROGRAMS = {
    "one fix makes room for the next": HEAD + (
        "total = 0\nfor i in range(3):\n    y = x.exp()\n    y += 1\n    y.sum().backward()\n"
        "    total += y.sum()\nx -= 0.1 * x.grad\nprint(total)\n"
    ),
    "two rounds of their own": HEAD + (
        "def fit(w):\n    total = 0\n    for i in range(3):\n        y = w.exp()\n        y.mul_(2)\n"
        "        y.sum().backward()\n        total += y.sum()\n    return total\n\n\n"
        "losses = []\nfor i in range(3):\n    z = x.tanh()\n    z.add_(1); z.mul_(2)\n    z.sum().backward()\n"
        "    losses.append(z.sum())\nprint(fit(x), losses)\n"
    ),
    "writes that share a line": HEAD + (
        "a = x.exp()\nb = x.tanh().exp()\nc = a.add_(1).exp() + b.mul_(2).exp()\nc.mul_(2)\nc.sum().backward()\n"
    ),
    "two modules of one call": HEAD + (
        "net = nn.Sequential(nn.Sigmoid(), nn.ReLU(inplace=True), nn.Sigmoid(), nn.ReLU(inplace=True))\n"
        "net(x).sum().backward()\n"
    ),
    "an import that is missing, and no line end": (
        "from torch import rand\n\nx = rand(3, requires_grad=True)\ny = rand(3, requires_grad=True)\n"
        "(x * y).sum().backward()\nx -= 0.1 * x.grad\ny -= 0.1 * y.grad"
    ),
    "Windows": (HEAD + "a = x.exp()\na += 1\nb = a.exp(); b += 1; b.sum().backward()\n").replace("\n", "\r\n"),
    "wide characters": HEAD + "y = x.exp()\ns = '😀é'; y.add_(1); y.mul_(2)\ny.sum().backward()\n",
    "an idle comment": HEAD.replace("nn\n", "nn  # gradguard: ignore[GG101]\n", 1) + "y = x.exp()\ny += 1\ny.sum().backward()\n",
    "some may not be made": HEAD + "y = x.exp()\nold = y\ny += 1\nz = x.exp()\nz += 1\n(y + z + old).sum().backward()\n",
}  # fmt: skip


def fixed_on_the_command_line(text: str) -> tuple[str, int]:
    """The text after `--fix`, and how many rounds that took."""
    done = fix(Job("/nowhere/train.py", Settings(), data=text.encode()), Checker(None), unsafe=False)
    return done.after, done.rounds


@pytest.mark.parametrize("what", PROGRAMS)
async def test_everything_at_once_is_what_the_command_line_makes(real: Editor, what: str) -> None:
    text = PROGRAMS[what]
    wanted, _ = fixed_on_the_command_line(text)
    assert wanted != text
    uri = await real.open(text)
    (action,) = await real.actions(uri, "rand", [FIX_ALL])
    assert await apply(real, uri, action) == wanted
    await real.diagnostics(uri)
    assert await real.actions(uri, "rand", [FIX_ALL]) == []


async def test_several_rounds_are_among_them() -> None:
    assert max(fixed_on_the_command_line(text)[1] for text in PROGRAMS.values()) > 1


async def test_at_once_for_a_client_that_does_not_resolve() -> None:
    def eager(capabilities: lsp.ClientCapabilities) -> None:
        assert capabilities.text_document
        assert capabilities.text_document.code_action
        capabilities.text_document.code_action.resolve_support = None

    started = await editors.start(REAL, change=eager)
    try:
        text = PROGRAMS["one fix makes room for the next"]
        uri = await started.open(text)
        (action,) = await started.actions(uri, "rand", [FIX_ALL])
        assert action.edit is not None
        assert await apply(started, uri, action) == fixed_on_the_command_line(text)[0]
    finally:
        await editors.stop(started)


async def test_a_text_that_changed_is_not_fixed(real: Editor) -> None:
    uri = await real.open(RAISES)
    (action,) = await real.actions(uri, "import", [FIX_ALL])
    real.replace(uri, "x.exp()", "x.tanh()")
    with pytest.raises(JsonRpcException):
        await real.resolved(action)


async def test_a_cell_is_fixed_alone(real: Editor) -> None:
    """Every round stays in its cell, also where lines come and go."""
    texts = [
        "import torch  # gradguard: ignore[GG101]\nx = torch.rand(3, requires_grad=True)\n",
        "%time\ntotal = 0\nfor i in range(3):\n    y = x.exp()\n    y.add_(1)\n    y.sum().backward()\n    total += y.sum()\nx -= x.grad",
        "print(x)  # gradguard: ignore[GG101]",
    ]
    _, cells = open_cells(real, *texts)
    await real.diagnostics(cells[1])
    (action,) = await real.actions(cells[1], "total", [FIX_ALL])
    edit = (await real.resolved(action)).edit
    assert edit is not None
    real.apply(edit)
    assert [real.texts[cell] for cell in (cells[0], cells[2])] == [texts[0], texts[2]]
    assert real.texts[cells[1]] == (
        "%time\ntotal = 0\nfor i in range(3):\n    y = x.exp()\n    y = y.add(1)\n    y.sum().backward()\n"
        "    total += y.sum().detach()\nwith torch.no_grad():\n    x -= x.grad"
    )
