"""A process's descriptors and mappings during an answer, which show its transport from outside."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def holdings() -> str:
    """The links of its descriptors, and its mappings."""
    links = []
    for descriptor in os.listdir("/proc/self/fd"):
        # The folder's own descriptor is closed by now.
        with contextlib.suppress(FileNotFoundError):
            links.append(os.readlink(f"/proc/self/fd/{descriptor}") + "\n")
    return "".join(links) + Path("/proc/self/maps").read_text()
