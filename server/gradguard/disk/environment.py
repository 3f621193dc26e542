"""What is installed beside a Python, told by the metadata of its packages: nothing is imported."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache

METADATA = re.compile(r"torch-(\d+\.\d[^-]*?)(?:-py[\d.]+)?\.(?:dist|egg)-info", re.IGNORECASE)
ENVIRONMENTS = ("VIRTUAL_ENV", "CONDA_PREFIX")
"""Variables that name the environment in use, where gradguard runs in one of its own (pipx, uvx)."""
MOST_FOLDERS = 200


@cache
def torch_beside() -> str:
    """The release of torch that this Python would import, else that of the active environment, such as `2.13.0+cpu`.

    Empty where there is none. It is looked up once: who installs another one starts the server again.
    """
    return torch_in(sys.path) or torch_in(_active(os.environ.get(name, "") for name in ENVIRONMENTS))


def torch_in(folders: Iterable[str]) -> str:
    """The release in the first of these folders that has one, by the name of its metadata's folder."""
    for _, folder in zip(range(MOST_FOLDERS), folders):
        try:
            with os.scandir(folder or ".") as entries:
                found = [match[1] for entry in entries if (match := METADATA.fullmatch(entry.name))]
        except OSError:  # a zip, or a folder that is no longer there
            continue
        if found:
            return max(found)
    return ""


def _active(roots: Iterable[str]) -> Iterator[str]:
    for root in roots:
        if not root:
            continue
        yield os.path.join(root, "Lib", "site-packages")
        try:
            versions = sorted(os.listdir(os.path.join(root, "lib")))
        except OSError:
            continue
        yield from (
            os.path.join(root, "lib", name, "site-packages")
            for name in versions
            if name.startswith("python3")
        )
