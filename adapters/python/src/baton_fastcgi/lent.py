"""Memory of the server's in which the application looks at bodies of requests (hand-over protocol, section 6)."""

from __future__ import annotations

import mmap
import os

from baton_fastcgi.records import BrokenProtocolError


class LentMemory:
    """A pool, or the file of one body, mapped for reading: the kernel refuses everything else."""

    def __init__(self, descriptor: int, size: int | None = None) -> None:
        """Maps `size` bytes, or all, and closes `descriptor`. Raises OSError or ValueError if there are not so many."""
        try:
            count = os.fstat(descriptor).st_size if size is None else size
            self._map = mmap.mmap(descriptor, count, prot=mmap.PROT_READ)
        finally:
            os.close(descriptor)
        self._memory = memoryview(self._map)

    def view(self, offset: int, count: int) -> memoryview:
        """The bytes from `offset` on. Raises `BrokenProtocolError` if they are not in this memory."""
        if not 0 < count <= len(self._memory) - offset:
            raise BrokenProtocolError(f"{count} bytes at {offset} of {len(self._memory)} that were lent")
        return self._memory[offset : offset + count]

    def close(self) -> None:
        """Unmaps it, as soon as the application has dropped what it has cut out of it."""
        self._memory.release()
        try:
            self._map.close()
        except BufferError:
            # Its last view unmaps it.
            return
