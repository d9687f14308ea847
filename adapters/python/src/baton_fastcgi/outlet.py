"""Where a response goes: over the FastCGI connection, through shared memory (`shm.py`), to the client (`passfd.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from baton_fastcgi.connection import Connection
from baton_fastcgi.files import READ_BYTES, FileRange, Part
from baton_fastcgi.records import STDOUT, Buffer, record, stream_records
from baton_fastcgi.vector import join_small


class TruncatedFileError(Exception):
    """A file became shorter while it was sent: its promised length cannot be kept."""


class Outlet(Protocol):
    """Takes the bytes of one response, the head before the body."""

    @property
    def is_gone(self) -> bool:
        """Whether the client is known to be gone, so that output is dropped."""

    async def write(self, parts: Sequence[Part], *, last: bool) -> None:
        """Sends a piece of the body, with the head before the first one; `last` ends the request as complete.

        Raises `DisconnectedError` and `TruncatedFileError`.
        """

    async def fail(self) -> None:
        """Ends a request with an incomplete response, so that it does not look complete."""

    async def abandon(self) -> None:
        """Ends a request whose response is no longer wanted."""


async def send_stdout(connection: Connection, parts: Sequence[Part], *, last: bool) -> None:
    """Sends bytes and files as FCGI_STDOUT; `last` adds the end of the stream and of the request."""
    pending: list[Buffer] = []
    for part in parts:
        if not isinstance(part, FileRange):
            pending.append(part)
            continue
        while part.length:
            piece = part.read()
            if not piece:
                raise TruncatedFileError
            pending.append(piece)
            if sum(map(len, pending)) >= READ_BYTES:
                await connection.send(stream_records(STDOUT, connection.request_id, pending))
                pending = []
    out = stream_records(STDOUT, connection.request_id, join_small(pending))
    if last:
        out += [record(STDOUT, connection.request_id), *connection.finish(app_status=0)]
    await connection.send(out)


class PlainOutlet:
    """Ordinary FastCGI: head and body as FCGI_STDOUT."""

    is_gone = False

    def __init__(self, connection: Connection, head: bytes) -> None:
        self._connection = connection
        self._head = head

    async def write(self, parts: Sequence[Part], *, last: bool) -> None:
        head, self._head = self._head, b""
        await self._put([head, *parts] if head else parts, last=last)

    async def _put(self, parts: Sequence[Part], *, last: bool) -> None:
        await send_stdout(self._connection, parts, last=last)

    async def fail(self) -> None:
        # FastCGI has no record for a truncated response: close the connection.
        await self._connection.flush()
        self._connection.hang_up()

    async def abandon(self) -> None:
        await self._connection.send(self._connection.finish(app_status=0))
