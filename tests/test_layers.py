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
PURE = ("findings", "source", "tape", "rules", "fixplans", "check", "fixes", "ide")
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


@cache
def modules() -> dict[str, Path]:
    """The product's files by the names they are imported by."""
    found = {}
    for path in product_files():
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported_files(path: Path) -> set[Path]:
    """Files of the product that a file imports, anywhere in it, for types alone as well; of packages what is named."""
    package = path.relative_to(PACKAGE.parent).parent.parts
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            inner = {f"{module}.{alias.name}" for alias in node.names}
            names |= (inner & modules().keys()) or {module}
    return {modules()[name] for name in names if name in modules()}


def circles(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """What is left of a graph when all that leads into no circle, and all that no circle leads to, is taken away."""
    left = {name: targets & graph.keys() for name, targets in graph.items()}
    while True:
        reached = set().union(*left.values())
        ends = {name for name, targets in left.items() if not targets or name not in reached}
        if not ends:
            return left
        left = {name: targets - ends for name, targets in left.items() if name not in ends}


def circles_of(layer: str) -> dict[str, set[str]]:
    files = [path for path in product_files() if layer_of(path) == layer]
    return circles(
        {
            str(path.relative_to(PACKAGE)): {
                str(other.relative_to(PACKAGE)) for other in imported_files(path)
            }
            for path in files
        }
    )


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


@pytest.mark.parametrize("layer", list(table()))
def test_no_files_of_a_layer_import_each_other_in_a_circle(layer: str) -> None:
    found = circles_of(layer)
    assert not found, "\n".join(f"{name} imports {', '.join(sorted(found[name]))}" for name in sorted(found))


def test_circles_are_found() -> None:
    graph = {"top": {"a"}, "a": {"b"}, "b": {"c", "below"}, "c": {"a"}, "below": set(), "self": {"self"}}
    assert circles(graph) == {"a": {"b"}, "b": {"c"}, "c": {"a"}, "self": {"self"}}


def test_imports_inside_functions_lead_to_their_files() -> None:
    inside = {path.name for path in imported_files(PACKAGE / "main.py")}
    assert {"run.py", "server.py"} <= inside


def test_a_rule_looks_at_no_syntax() -> None:
    """It puts an event into words. `model.py` alone knows of nodes: of a compound statement it shows the first line."""
    looking = {
        path.name
        for path in product_files()
        if layer_of(path) == "rules" and path.name != "model.py"
        for _, module in imports(path)
        if module == "ast"
        or (module.startswith("gradguard.source") and module != "gradguard.source.printable")
    }
    assert looking == set()


def test_this_test_sees_imports_inside_functions() -> None:
    seen = {module for _, module in imports(PACKAGE / "main.py")}
    assert {"gradguard.runtime.run", "gradguard.lsp.server", "contextlib"} <= seen


def test_no_product_file_is_longer_than_the_limit() -> None:
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in product_files()}
    assert not {str(path.relative_to(ROOT)): lines for path, lines in lengths.items() if lines > LONGEST}
