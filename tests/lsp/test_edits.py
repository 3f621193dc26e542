"""Random editing: after each step the answer is that of a cold run, and memory stays bounded."""

from __future__ import annotations

import os
import pathlib
import random

import pytest
from lsprotocol import types as lsp

from gradguard.source.text import Source
from tests.lsp import editor as editors
from tests.lsp.editor import REAL, ROOT, Editor

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHARE = int(os.environ.get("GRADGUARD_FUZZ", "1"))
"""Multiplies the length of random tests; 20 makes the soak test 10,000 edits long."""

PROGRAMS = [
    path
    for folder in ("graph", "inplace", "cases/*")
    for path in sorted(ROOT.glob(f"fixtures/{folder}/*.py"))[:7]
]

TRAINING = '''\
import torch
from torch import nn


class Net(nn.Module):
    """é😋"""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        h = torch.sigmoid(self.inner(x))
        h += 1
        boom(h)
        return h


def step(model, batch):
    out = model(batch)
    loss = (out - batch).pow(2).mean()
    boom(loss)
    return loss


def train(model, data, optimizer):
    total = 0
    for batch in data:
        loss = step(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
        hint(total)
    return total


w = torch.randn(3, requires_grad=True)
a = w.exp()
a.mul_(2)
a.sum().backward()
boom(a)
'''
WORDS = [
    "boom(x)", "hint(a.b)\n", "x = torch.exp(w)\n", "    ", "\n", "(", ")", "[", '"', '"""', "'", "#", "\\", ":", "\t",
    "def f(x):\n    boom(x)\n    return x\n", "class C:\n    def m(self):\n        boom(self)\n", "for i in x:\n    ",
    "é", "😋", "\r\n", "\x0c", "\u2028", "x.add_(1)\n", "loss.backward()\n", "with torch.no_grad():\n    ", "@", ",",
]  # fmt: skip


def shape(found: list[lsp.Diagnostic]) -> list[tuple[object, ...]]:
    """What must be the same in two answers."""
    return sorted(
        (
            each.code,
            each.message,
            each.severity,
            repr(each.range),
            repr([r.location.range for r in each.related_information or ()]),
        )
        for each in found
    )  # type: ignore[type-var]


class Typist:
    """Edits a document as people do: words, half words, paste, undo, deleted blocks."""

    def __init__(self, editor: Editor, uri: str, seed: int) -> None:
        self.editor, self.uri, self.random = editor, uri, random.Random(seed)
        self.past: list[str] = []

    def step(self) -> None:
        text, rng = self.editor.texts[self.uri], self.random
        kind = rng.random()
        at = rng.randrange(len(text) + 1)
        if kind < 0.45:
            self.past.append(text)
            word = rng.choice(WORDS)
            self.editor.edit(
                self.uri, at, at, word[: rng.randrange(1, len(word) + 1)] if rng.random() < 0.3 else word
            )
        elif kind < 0.6:
            self.past.append(text)
            self.editor.edit(self.uri, at, min(len(text), at + rng.randrange(1, 40)), "")
        elif kind < 0.7:
            self.past.append(text)
            source = rng.randrange(len(text) + 1)
            self.editor.edit(self.uri, at, at, text[source : source + 120])
        elif self.past:
            # Undo, once or all the way: that also brings back text that parses.
            before = self.past.pop()
            if rng.random() < 0.4:
                before = self.past[0] if self.past else before
                self.past.clear()
            self.editor.edit(self.uri, 0, len(text), before)


async def compare(editor: Editor, typist: Typist, steps: int) -> tuple[int, int]:
    """Edit and compare with cold runs after each step; the numbers of texts that parse and that do not."""
    counts = [0, 0]
    read = Source("x.py", editor.texts[typist.uri])
    for _ in range(steps):
        typist.step()
        text = editor.texts[typist.uri]
        read = Source.edited("x.py", text, read)
        warm = await editor.diagnostics(typist.uri)
        cold_uri = await editor.open(read.text)
        cold = await editor.diagnostics(cold_uri)
        editor.close(cold_uri)
        source = Source("x.py", text)
        assert not [each for each in typed(cold, read, source) if each not in shape(warm)], text
        assert not [each for each in shape(warm) if each not in typed(cold, read, source)], text
        assert len(shape(warm)) == len({repr(each) for each in shape(warm)}), text
        counts[bool(source.errors)] += 1
    # A text that is opened again has no past.
    again = await editor.diagnostics(await editor.open(editor.texts[typist.uri]))
    editor.close(typist.uri)
    editor.published.clear()
    reopened = await editor.open(editor.texts[typist.uri], typist.uri)
    assert shape(await editor.diagnostics(reopened)) == shape(again)
    return counts[0], counts[1]


def typed(cold: list[lsp.Diagnostic], read: Source, source: Source) -> list[tuple[object, ...]]:
    """What is shown in the typed text, worked out from a cold run of what is read for it.

    In a piece that parses everything, in a broken one what stands on unchanged statements, as do the places that
    explain it.
    """
    there = {
        line: read.places.read(line) if read.places else line for line in range(1, source.lines.count + 1)
    }
    lines = {other: line for line, other in there.items() if other is not None}
    whole = Source("x.py", read.text)

    def moved(where: lsp.Range) -> lsp.Range | None:
        first, last = whole.statement_lines(where.start.line + 1)
        run = [lines.get(line) for line in range(first, max(last, where.end.line + 1) + 1)]
        if run[0] is None or run != list(range(run[0], run[0] + len(run))):
            return None
        shift = run[0] - first
        return lsp.Range(
            lsp.Position(where.start.line + shift, where.start.character),
            lsp.Position(where.end.line + shift, where.end.character),
        )

    out = []
    for each in cold:
        where = moved(each.range)
        places = [moved(one.location.range) for one in each.related_information or ()]
        if where is None or (None in places and source.is_broken(where.start.line + 1)):
            continue
        shift = range(where.start.line + 1, where.end.line + 2)
        assert [source.line(n) for n in shift] == [
            whole.line(n) for n in range(each.range.start.line + 1, each.range.end.line + 2)
        ]
        related = repr([place for place in places if place is not None])
        out.append((each.code, each.message, each.severity, repr(where), related))
    return out


@pytest.mark.parametrize("seed", range(4))
async def test_random_edits_equal_cold_runs(editor: Editor, seed: int) -> None:
    uri = await editor.open(TRAINING)
    whole, broken = await compare(editor, Typist(editor, uri, seed), 60 * SHARE)
    assert whole > 5
    assert broken > 5


async def test_random_edits_equal_cold_runs_with_the_real_engine() -> None:
    started = await editors.start(REAL)
    try:
        uri = await started.open(TRAINING)
        assert {"GG101"} <= {each.code for each in await started.diagnostics(uri)}
        whole, broken = await compare(started, Typist(started, uri, 11), 60 * SHARE)
        assert whole > 5
        assert broken > 5
        assert not started.client.messages
    finally:
        await editors.stop(started)


async def test_random_edits_of_programs_equal_cold_runs() -> None:
    """One program, or with GRADGUARD_FUZZ=20 twenty of them and 2,400 edits."""
    started = await editors.start(REAL)
    counts = [0, 0]
    try:
        for number, path in enumerate(PROGRAMS[:SHARE]):
            uri = await started.open(path.read_text("utf-8"))
            found = await compare(started, Typist(started, uri, number), min(60 * SHARE, 120))
            counts = [one + other for one, other in zip(counts, found)]
            started.close(uri)
            started.published.clear()
        print(f"{sum(counts)} edits, {counts[1]} of them to texts that do not parse: all as cold runs")
        assert counts[1] > 5
        assert not started.client.messages
    finally:
        await editors.stop(started)


@pytest.mark.skipif(not pathlib.Path("/proc/self/status").exists(), reason="reads memory use from /proc")
async def test_memory_stays_bounded_over_many_edits() -> None:
    started = await editors.start(REAL)
    try:
        server = started.client._server
        assert server is not None
        uri = await started.open(TRAINING * 3)
        typist = Typist(started, uri, 3)

        async def edits(count: int) -> int:
            """Make edits; what the server holds after them, in KiB."""
            for number in range(count):
                if number % 50 == 0:
                    started.edit(uri, 0, len(started.texts[uri]), TRAINING * 3)
                    typist.past.clear()
                typist.step()
                if number % 5 == 0:
                    await started.diagnostics(uri)
                    del started.published[:-1]
            await started.diagnostics(uri)
            return resident(server.pid)

        early = await edits(100 * SHARE)
        late = await edits(400 * SHARE)
        print(
            f"{500 * SHARE} edits: {early / 1024:.1f} MB after a fifth of them, {late / 1024:.1f} MB at the end"
        )
        assert late - early < 15_000
        assert late < 150_000
        assert not started.client.messages
        assert not [each for each in started.client.log_messages if each.type == lsp.MessageType.Error]
        started.edit(uri, 0, len(started.texts[uri]), TRAINING * 3)
        last = await started.diagnostics(uri)
        assert shape(last) == shape(await started.diagnostics(await started.open(TRAINING * 3)))
    finally:
        await editors.stop(started)


def resident(process: int) -> int:
    """Memory of a process in KiB."""
    for line in pathlib.Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")


def extremes() -> dict[str, str]:
    """Texts no one writes."""
    return {
        "50,000 lines": "import torch\n" + "x = torch.exp(x)\n" * 50_000,
        "deep brackets": "import torch\nx = " + "(" * 5000,
        "deep attributes": "import torch\nx" + ".a" * 20_000 + "\n",
        "deep unary": "import torch\nx = " + "-" * 20_000 + "1\n",
        "deep blocks": "import torch\n"
        + "".join(" " * n + "if x:\n" for n in range(99))
        + " " * 99
        + "pass\n",
        "long sum": "import torch\nx = " + " + ".join(["x"] * 20_000) + "\n",
        "binary": "import torch\n" + "".join(chr(n % 256) for n in range(20_000)),
        "surrogates": "import torch\n\ud800 = 1\nboom('\udfff')\n",
        "one bracket": "(torch",
        "null": "import torch\n\0\n",
        "one line": "import torch; " + "x = torch.exp(x); " * 5000,
        "open quotes": 'import torch\n"""' + "x = 1\n" * 2000,
        "import itself": "import torch, extreme\nextreme.f(torch)\n",
    }


@pytest.mark.parametrize("name", list(extremes()))
async def test_extreme_texts_cost_no_traceback(real: Editor, name: str) -> None:
    uri = await real.open(extremes()[name], real.uri("extreme.py"))
    await real.diagnostics(uri)
    real.edit(uri, 5, 5, "x")
    await real.diagnostics(uri)
    real.close(uri)
    assert not real.client.messages
    assert not [each for each in real.client.log_messages if each.type == lsp.MessageType.Error]


async def test_modules_that_import_each_other(real: Editor, tmp_path: pathlib.Path) -> None:
    (tmp_path / "one.py").write_text("import torch, two\ndef f(x): return two.g(x)\n")
    (tmp_path / "two.py").write_text("import torch, one\ndef g(x): return one.f(x)\nfrom three import *\n")
    (tmp_path / "three.py").write_text("from three import *\nfrom one import f\n")
    for name in ("one.py", "two.py", "three.py"):
        await real.open((tmp_path / name).read_text(), (tmp_path / name).as_uri())
    assert not real.client.messages


async def test_the_training_text_is_what_the_tests_think() -> None:
    assert not Source("x.py", TRAINING).errors
    assert ROOT.joinpath("server", "gradguard").is_dir()
