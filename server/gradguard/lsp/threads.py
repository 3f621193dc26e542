"""Whether Python can start threads here: in a browser it cannot."""

from __future__ import annotations

import sys

NONE = ("emscripten", "wasi")


def there_are() -> bool:
    """Whether a thread can be started."""
    return sys.platform not in NONE
