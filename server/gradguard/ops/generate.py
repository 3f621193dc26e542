"""Builds the shipped op data: `python -m gradguard.ops.generate [--check] [--out FILE]`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from gradguard.ops import codec, generate_native
from gradguard.ops.generate_names import public_callables
from gradguard.ops.model import Form, ModuleRow, Op
from gradguard.ops.roles import rename

DATA = Path(__file__).parent / "data"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m gradguard.ops.generate", description=__doc__)
    parser.add_argument("--out", type=Path, help="file to write (default: the shipped data of this torch)")
    options = parser.parse_args(argv)
    version = ".".join(torch.__version__.split(".")[:2])
    ops = stage_one()
    text = serialise(ops, [])
    out: Path = options.out or DATA / f"{version}.jsonl"
    out.parent.mkdir(exist_ok=True)
    out.write_text(text, encoding="utf-8")
    print(f"{out}: {len(ops)} rows, {len(text.encode())} bytes", file=sys.stderr)
    return 0


def stage_one() -> list[Op]:
    native = generate_native.load()
    callables = public_callables()
    ops: list[Op] = []
    for name, function in callables.items():
        short = name.rsplit(".", 1)[-1]
        forms = native.get(name)
        if forms is None and getattr(torch._C._nn, short, None) is function:
            forms = native.get(f"torch._C._nn.{short}")
        if (
            forms is None
            and name.startswith("torch.nn.functional.")
            and getattr(torch, short, None) is function
        ):
            forms = native.get(f"torch.{short}")
        if forms is None and name.startswith("operator."):
            short = f"__{short.strip('_')}__"
        if forms is None and short.startswith("__"):
            bare = short.strip("_")
            method = {"truediv": "div", "radd": "add", "rmul": "mul"}.get(bare, bare)
            for candidate in (method, f"{method[1:]}_" if method.startswith("i") else ""):
                forms = forms or native.get(f"Tensor.{candidate}")
        if forms and not any(f.composite for f in forms):
            ops.append(Op(name, forms=tuple(f.form for f in forms)))
    return ops


def serialise(ops: Iterable[Op], modules: Iterable[ModuleRow]) -> str:
    """Rows of equal content share one line; the first line names them."""
    lines: dict[str, list[str]] = {}
    for op in sorted(ops, key=lambda o: o.name):
        row = codec.encode_op(replace(op, forms=tuple(_with_self(f) for f in op.forms)))
        if _shares(op):
            row["first"] = "input"
        del row["name"], row["names"]
        lines.setdefault(_dump(row), []).append(op.name)
    for module in sorted(modules, key=lambda m: m.name):
        lines[_dump(codec.encode_module(module))] = [module.name]
    index = {"rows": list(lines.values())}
    return "\n".join([_dump(index), *lines]) + "\n"


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _shares(op: Op) -> bool:
    """Whether the row can be stored under `self` for a method and a function alike."""
    return all(f.params and f.params[0].name in ("self", "input") for f in op.forms)


def _with_self(form: Form) -> Form:
    return rename(form, "input", "self") if form.params and form.params[0].name == "input" else form


if __name__ == "__main__":
    sys.exit(main())
