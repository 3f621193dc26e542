"""Grad mode, inference mode and autocast."""

from __future__ import annotations

from dataclasses import dataclass

from gradguard.engine.domain.tensors import Place, Tri


@dataclass(slots=True)
class Modes:
    """The modes that are set at a point of the program; `with` and decorators save and restore them."""

    grad: Tri = True
    inference: bool = False
    autocast: bool = False
    why_off: Place | None = None
    """Where grad mode was switched off."""
    saved_hooks: bool = False
