"""Applications that run for as long as a file of tests does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from running import Served


@pytest.fixture(scope="module")
def wsgi() -> Iterator[Served]:
    """The WSGI application of the tests: one process, one thread, so that state left behind shows at once."""
    with Served("wsgi_app", "--processes", "1") as served:
        yield served


@pytest.fixture(scope="module")
def asgi() -> Iterator[Served]:
    """The ASGI application of the tests, in one process."""
    with Served("asgi_app", "--asgi", "--processes", "1") as served:
        yield served


@pytest.fixture
def big_file(tmp_path: Path) -> Path:
    """A file larger than any buffer on the path."""
    path = tmp_path / "roots" / "big.bin"
    path.parent.mkdir()
    path.write_bytes(bytes(range(256)) * 12_000 + b"end")
    return path
