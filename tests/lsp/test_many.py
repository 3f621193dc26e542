"""However many documents are open, an edit costs what it costs with a few: counted in steps, not in time."""

from __future__ import annotations

import asyncio
import gc
import pathlib
from collections.abc import Awaitable, Callable

import pytest

from tests.lsp.inside import Inside, Steps

FEW, MANY = 20, 2000


async def type_in_one(editor: Inside, folder: pathlib.Path) -> None:
    uri = (folder / "m3.py").as_uri()
    editor.type(uri, "\n")
    await editor.diagnostics(uri)


async def type_in_a_module_that_others_import(editor: Inside, folder: pathlib.Path) -> None:
    uri = (folder / "shared.py").as_uri()
    editor.type(uri, "\n")
    await editor.diagnostics(uri)


async def open_and_close_one_more(editor: Inside, folder: pathlib.Path) -> None:
    uri = (folder / "more.py").as_uri()
    editor.open(uri, "import torch\nboom(x)\n")
    await editor.diagnostics(uri)
    editor.close_document(uri)


async def ask_for_a_hover_and_actions(editor: Inside, folder: pathlib.Path) -> None:
    document = {"uri": (folder / "m3.py").as_uri()}
    place = {"line": 1, "character": 1}
    await editor.request("textDocument/hover", {"textDocument": document, "position": place})
    await editor.request(
        "textDocument/codeAction",
        {"textDocument": document, "range": {"start": place, "end": place}, "context": {"diagnostics": []}},
    )


async def save_one(editor: Inside, folder: pathlib.Path) -> None:
    uri = (folder / "m3.py").as_uri()
    editor.type(uri, "\n")
    editor.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
    await editor.diagnostics(uri)


async def change_a_file_on_disk(editor: Inside, folder: pathlib.Path) -> None:
    (folder / "other.py").write_text(f"x = {editor.versions}\n"[:60])
    change = {"uri": (folder / "other.py").as_uri(), "type": 2}
    editor.notify("workspace/didChangeWatchedFiles", {"changes": [change]})
    await editor.quiet()


ACTIONS = (
    type_in_one,
    type_in_a_module_that_others_import,
    open_and_close_one_more,
    ask_for_a_hover_and_actions,
    save_one,
    change_a_file_on_disk,
)


async def prepared(folder: pathlib.Path, count: int, steps: Steps) -> tuple[Inside, int]:
    """A server with documents open; the steps that the last of them took to be opened."""
    editor = Inside(steps)
    await editor.initialize(rootUri=folder.as_uri())
    editor.open((folder / "shared.py").as_uri(), "import torch\ndef f(x): return x\n")
    for number in range(count):
        imported = "boom(shared.f)" if number < 5 else "boom(x)"
        if number == 5:
            imported = "boom(other.f)"
        editor.open((folder / f"m{number}.py").as_uri(), f"import torch\n{imported}\n")
    await editor.quiet()
    for number in range(5):  # whatever is made on first use
        editor.open((folder / f"last{number}.py").as_uri(), "import torch\nboom(x)\n")
        await editor.quiet()
    with steps.counted():
        for number in range(5, 15):
            editor.open((folder / f"last{number}.py").as_uri(), "import torch\nboom(x)\n")
            await editor.diagnostics((folder / f"last{number}.py").as_uri())
    await editor.quiet()
    return editor, steps.count


async def cost(
    editor: Inside,
    folder: pathlib.Path,
    steps: Steps,
    action: Callable[[Inside, pathlib.Path], Awaitable[None]],
) -> int:
    """Steps of an action, the least of three times: the loop may look for messages once more or less."""
    counts = []
    for _ in range(4):
        gc.collect()
        with steps.counted():
            await action(editor, folder)
            await editor.quiet()
        counts.append(steps.count)
    return min(counts[1:])


@pytest.fixture(scope="module")
def costs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, int]]:
    """Steps of each action with few documents open and with many."""

    async def measure(count: int, steps: Steps) -> dict[str, int]:
        folder = tmp_path_factory.mktemp("many")
        (folder / "other.py").write_text("def f(x): return x\n")
        editor, opening = await prepared(folder, count, steps)
        found = {each.__name__: await cost(editor, folder, steps, each) for each in ACTIONS}
        editor.server.session.stop()
        return {**found, "open_ten": opening}

    steps = Steps()
    with steps.watched():
        few, many = (asyncio.run(measure(count, steps)) for count in (FEW, MANY))
    return {name: (few[name], many[name]) for name in few}


@pytest.mark.parametrize("name", [*(each.__name__ for each in ACTIONS), "open_ten"])
def test_the_steps_of_an_action_do_not_grow_with_open_documents(
    costs: dict[str, tuple[int, int]], name: str
) -> None:
    few, many = costs[name]
    print(f"{name}: {few} steps with {FEW} documents open, {many} with {MANY}")
    assert few > 100
    assert many <= 1.2 * few
