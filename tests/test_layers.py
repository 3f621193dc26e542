"""The layers of ARCHITECTURE.md are those of the code, and no file outgrows its reader."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "server" / "gradguard"
LONGEST = 600
PURE = ("findings", "source", "engine", "rules", "check", "fixes", "ide")
IMPURE_MODULES = {
    "asyncio", "http", "multiprocessing", "random", "shutil", "socket", "subprocess", "tempfile", "threading", "time",
    "urllib",
}  # fmt: skip


@dataclass(frozen=True)
class Layer:
    imports: frozenset[str]
    outside: frozenset[str]


@cache
def table() -> dict[str, Layer]:
    """The table below `## Layers`: names in backquotes."""
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    section = text.split("\n## Layers\n", 1)[1].split("\n## ", 1)[0]
    layers = {}
    for row in re.findall(r"^\|(.*)\|$", section, re.MULTILINE)[2:]:
        name, _, imports, outside = (cell.strip() for cell in row.split("|"))
        layers[name.strip("`")] = Layer(
            frozenset(re.findall(r"`(\S+?)`", imports)), frozenset(re.findall(r"`(\S+?)`", outside))
        )
    return layers


@cache
def product_files() -> tuple[Path, ...]:
    return tuple(path for path in sorted(PACKAGE.rglob("*.py")) if "__pycache__" not in path.parts)


def layer_of(path: Path) -> str:
    """The layer of a file; empty for the package's own `__init__` and `__main__`."""
    return layer_in(path.relative_to(PACKAGE).with_suffix("").parts)


def layer_in(parts: Sequence[str]) -> str:
    """The layer of a module given by the parts of its name: a room of the engine, or the first folder."""
    if not parts or parts[0].startswith("__"):
        return ""
    if parts[0] == "engine" and len(parts) > 1 and (PACKAGE / "engine" / parts[1]).is_dir():
        return f"engine/{parts[1]}"
    return parts[0]


@cache
def imports(path: Path) -> tuple[tuple[int, str], ...]:
    """Line and full name of every module that a file imports, anywhere in it."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    package = ["gradguard", *path.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            if module == "gradguard":
                yield from ((node.lineno, f"gradguard.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, module


def test_the_table_names_the_layers_there_are() -> None:
    assert set(table()) == {layer_of(path) for path in product_files()} - {""}


def test_the_table_points_one_way() -> None:
    order = list(table())
    for name, layer in table().items():
        assert layer.imports <= set(order)
        assert name not in layer.imports
    seen: set[str] = set()
    left = dict(table())
    while left:
        free = [name for name, layer in left.items() if layer.imports <= seen]
        assert free, f"a circle among {sorted(left)}"
        seen.update(free)
        for name in free:
            del left[name]


@pytest.mark.parametrize("layer", list(table()))
def test_a_layer_imports_what_its_row_allows(layer: str) -> None:
    row = table()[layer]
    wrong = []
    for path in product_files():
        if layer_of(path) != layer:
            continue
        for line, module in imports(path):
            first, _, rest = module.partition(".")
            if first == "gradguard":
                target = layer_in(rest.split(".") if rest else ())
                allowed = not target or target == layer or target in row.imports
            elif first in sys.stdlib_module_names or first == "__future__":
                allowed = not (layer.partition("/")[0] in PURE and first in IMPURE_MODULES)
            else:
                allowed = first in row.outside
            if not allowed:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {module}")
    assert not wrong, "\n".join(wrong)


def test_this_test_sees_imports_inside_functions() -> None:
    seen = {module for _, module in imports(PACKAGE / "cli" / "main.py")}
    assert {"gradguard.runtime.run", "gradguard.lsp.server", "contextlib"} <= seen


def test_no_product_file_is_longer_than_the_limit() -> None:
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in product_files()}
    assert not {str(path.relative_to(ROOT)): lines for path, lines in lengths.items() if lines > LONGEST}
