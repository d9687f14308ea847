"""The body of a request: pieces that have come, as bytes or where the server has them."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from baton_fastcgi.lent import LentMemory

# The server lends four times as much (section 6 of the protocol), so it never waits for less.
_OWED_BYTES_MAX = 128 * 1024


class _Piece(NamedTuple):
    content: memoryview
    # Whether it lies in the pool, and is returned piece by piece.
    is_pooled: bool
    # Whether it takes memory of this process.
    is_own: bool


class Body:
    """The part of the request's body that has come and has not been read."""

    def __init__(self) -> None:
        # In memory of this process.
        self.held_bytes = 0
        self.is_ended = False
        self.is_aborted = False
        # The memory of a body that the server has in a file.
        self.file: LentMemory | None = None
        self._pieces: deque[_Piece] = deque()
        # What the application looks at in place.
        self._shown: memoryview | None = None
        self._shown_of_pool = 0
        self._owed = 0

    @property
    def is_read(self) -> bool:
        """Whether all of it has come and was taken."""
        return self.is_ended and not self._pieces

    def add(self, piece: bytes) -> None:
        """Takes the content of a STDIN record; an empty one ends the body."""
        if self.is_ended:
            return
        if not piece:
            self.is_ended = True
            return
        self._pieces.append(_Piece(memoryview(piece), is_pooled=False, is_own=True))
        self.held_bytes += len(piece)

    def add_lent(self, view: memoryview, *, is_pooled: bool) -> None:
        """Takes a piece in the pool, or in the file."""
        if not self.is_ended:
            self._pieces.append(_Piece(view, is_pooled, is_own=False))

    def abort(self) -> None:
        """The answer is no longer wanted, and no more of the body comes."""
        self.is_aborted = True

    def take(self, count_max: int) -> bytes:
        """A copy of the next bytes, at most `count_max`; empty when nothing has come, or the body has ended."""
        self._hide()
        if not self._pieces:
            return b""
        piece = self._pieces.popleft()
        part = piece.content[:count_max]
        if len(piece.content) > count_max:
            self._pieces.appendleft(piece._replace(content=piece.content[count_max:]))
        self._note_taken(piece, len(part))
        self._owed += len(part) if piece.is_pooled else 0
        return bytes(part)

    def show(self) -> memoryview:
        """The next piece where it is, until the next call of this or of `take`; empty as with `take`."""
        self._hide()
        if not self._pieces:
            return memoryview(b"")
        piece = self._pieces.popleft()
        self._note_taken(piece, len(piece.content))
        self._shown = piece.content.toreadonly()
        self._shown_of_pool = len(piece.content) if piece.is_pooled else 0
        return self._shown

    def take_owed(self) -> int:
        """How many bytes of the pool to return to the server now; 0: it does not need them yet."""
        if self._owed < _OWED_BYTES_MAX:
            return 0
        owed, self._owed = self._owed, 0
        return owed

    def release(self) -> None:
        """The request has ended, which returns everything to the server."""
        self._hide()
        self._pieces.clear()
        if self.file is not None:
            self.file.close()
            self.file = None

    def _note_taken(self, piece: _Piece, count: int) -> None:
        if piece.is_own:
            self.held_bytes -= count

    def _hide(self) -> None:
        shown, self._shown = self._shown, None
        if shown is None:
            return
        self._owed += self._shown_of_pool
        try:
            shown.release()
        except BufferError:
            # The application has it wrapped in something, as a Python function that still runs has.
            return
