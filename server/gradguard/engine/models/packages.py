"""Which packages are installed: torch is, or the program would not run."""

from __future__ import annotations

import ast

from gradguard.engine.domain import versions
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.values import External, Frame, Value
from gradguard.engine.models.registry import Registry
from gradguard.engine.state.run import Run

MODELS = Registry()


@MODELS.external_function("importlib.util.find_spec")
def _find_spec(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    return External("importlib.machinery.ModuleSpec") if call.get(0, "name") == "torch" else run.fresh()


@MODELS.external_function("importlib.metadata.version", "importlib_metadata.version")
def _version(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    named = call.get(0, "distribution_name")
    return str(versions.of_torch(run.table.version)) if named == "torch" else run.fresh("str")


@MODELS.external_function(
    "packaging.version.parse", "packaging.version.Version", "pkg_resources.parse_version"
)
def _parse(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    text = call.get(0, "version")
    if isinstance(text, versions.VersionV):
        return text
    found = versions.parsed(text) if isinstance(text, str) else None
    return found if found is not None else run.fresh()
