"""Grad mode and its neighbours."""

from __future__ import annotations

from dataclasses import dataclass

from gradguard.engine.domain.tensors import Place, Tri


@dataclass(slots=True)
class Modes:
    """Grad mode and its neighbours; saved and restored by `with` and decorators."""

    grad: Tri = True
    inference: bool = False
    autocast: bool = False
    why_off: Place | None = None
    """Where grad mode was switched off."""
    saved_hooks: bool = False
