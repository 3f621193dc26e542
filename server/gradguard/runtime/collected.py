"""Reports of monitors that end while tests run: the pytest plugin makes one of all. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

take: Callable[[Any], None] | None = None
"""Is given the report of each monitor that ends, if there is somebody who collects them."""
