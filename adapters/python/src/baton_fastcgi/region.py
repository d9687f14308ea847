"""The memory that the server shares with this connection, used as a ring (hand-over protocol, section 5)."""

from __future__ import annotations

import mmap
import os


class Region:
    """A mapped region of `size` bytes: the position of the next byte, and how many may be written."""

    def __init__(self, descriptor: int, size: int) -> None:
        """Maps `descriptor` and closes it. Raises OSError or ValueError if it is not memory of that size."""
        try:
            # mmap refuses a file shorter than the mapping, so no access can fail later.
            self._map = mmap.mmap(descriptor, size)
        finally:
            os.close(descriptor)
        self.memory = memoryview(self._map)
        self.size = size
        self._at = 0
        self._free = 0

    def begin(self, at: int, free: int) -> None:
        """A new request: where to begin, and how many bytes from there may be written."""
        self._at = at
        self._free = free

    @property
    def free_bytes(self) -> int:
        """How much may be written now."""
        return self._free

    def free(self, count: int) -> None:
        """The server says that `count` more bytes may be written."""
        self._free = min(self.size, self._free + count)

    def next_range(self) -> tuple[int, int]:
        """Offset and length of the bytes that may be written next, in one piece."""
        return self._at, min(self._free, self.size - self._at)

    def use(self, count: int) -> None:
        """Says that the first `count` bytes of `next_range` have been written."""
        self._at = (self._at + count) % self.size
        self._free -= count

    def close(self) -> None:
        """Unmaps the region."""
        self.memory.release()
        self._map.close()
