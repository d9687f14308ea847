"""Responses on the client's own socket (hand-over protocol, section 4)."""

from __future__ import annotations

import errno
import time
from collections import deque
from collections.abc import Sequence
from enum import Enum

from baton_fastcgi.client import ClientSocket
from baton_fastcgi.connection import Connection
from baton_fastcgi.files import FileRange, Part
from baton_fastcgi.head import HttpHead
from baton_fastcgi.offer import APPLICATION_FAILED, CLIENT_GONE, COMPLETE, PassFdOffer, Progress, answered, rest
from baton_fastcgi.outlet import TruncatedFileError, send_stdout
from baton_fastcgi.records import Buffer
from baton_fastcgi.request import Request
from baton_fastcgi.vector import join_small

# Buffers of one send; a list of many small strings has been joined before.
_BUFFERS_MAX = 512


class _Use(Enum):
    HEAD = 1
    BODY = 2
    FRAMING = 3


class ClientOutlet:
    """Writes to the client until the response ends, or is handed back, or the client is gone.

    States: answering (`_client` is there) -> handed back (`_is_handed_back`), or gone (`is_gone`), or ended.
    """

    def __init__(
        self,
        connection: Connection,
        request: Request,
        client: ClientSocket,
        offer: PassFdOffer,
        status: int,
        head: HttpHead,
    ) -> None:
        self.is_gone = False
        self._connection = connection
        self._request = request
        self._client = client
        self._patience_s = offer.patience_ms / 1000
        self._head = head
        self._progress = Progress(status)
        self._has_begun = False
        self._is_handed_back = False
        # The unsent rest of the current piece.
        self._queue: deque[tuple[_Use, Part]] = deque()

    async def write(self, parts: Sequence[Part], *, last: bool) -> None:
        self._queue.extend(self._framed(parts, last=last))
        if not self._is_handed_back and not self.is_gone:
            await self._send_to_client()
        if self._is_handed_back:
            await self._send_to_server(last=last)
        elif last:
            await self._end(CLIENT_GONE if self.is_gone else COMPLETE)
        self._queue.clear()

    async def fail(self) -> None:
        if self._is_handed_back:
            await self._connection.flush()
            self._connection.hang_up()
        else:
            await self._end(CLIENT_GONE if self.is_gone else APPLICATION_FAILED)

    async def abandon(self) -> None:
        if self._is_handed_back:
            await self._connection.send(self._connection.finish(app_status=0))
        else:
            await self._end(CLIENT_GONE)

    async def give_back(self) -> None:
        """Hands the socket back between two pieces, because the server wants it."""
        if self._has_begun and not self._is_handed_back and not self.is_gone:
            self._is_handed_back = True
            await self._send_to_server(last=False)

    def _framed(self, parts: Sequence[Part], *, last: bool) -> list[tuple[_Use, Part]]:
        out: list[tuple[_Use, Part]] = []
        if not self._has_begun:
            self._has_begun = True
            out.append((_Use.HEAD, self._head.wire))
        length = sum(map(len, parts))
        ends_chunk = b""
        if self._head.is_chunked and length:
            out.append((_Use.FRAMING, b"%x\r\n" % length))
            ends_chunk = b"\r\n"
        out += [(_Use.BODY, part) for part in _joined(parts)]
        if self._head.is_chunked and last:
            ends_chunk += b"0\r\n\r\n"
        if ends_chunk:
            out.append((_Use.FRAMING, ends_chunk))
        return out

    async def _send_to_client(self) -> None:
        """Until the queue is empty, the client is gone, or the socket must be handed back."""
        deadline = 0.0
        while self._queue:
            if self._request.is_wanted_back:
                self._is_handed_back = True
                return
            try:
                taken = self._send_some()
            except OSError:
                self.is_gone = True
                return
            if taken:
                deadline = 0.0
                continue
            now = time.monotonic()
            deadline = deadline or now + self._patience_s
            if now >= deadline:
                self._is_handed_back = True
                return
            await self._connection.waiter.wait(writable=self._client.descriptor, timeout_s=deadline - now)
            if self._request.body.is_aborted:
                self.is_gone = True
                return

    def _send_some(self) -> int:
        first = self._queue[0][1]
        if isinstance(first, FileRange):
            return self._send_file(first)
        buffers: list[Buffer] = []
        for _, part in self._queue:
            if isinstance(part, FileRange) or len(buffers) == _BUFFERS_MAX:
                break
            buffers.append(part)
        taken = self._client.send_some(buffers, more=len(buffers) < len(self._queue))
        self._count(taken)
        return taken

    def _send_file(self, file: FileRange) -> int:
        try:
            taken = self._client.send_file(file.descriptor, file.offset, file.length)
        except BlockingIOError:
            return 0
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            # The file system does not support it: read and send.
            piece = file.read()
            if not file.length:
                self._queue.popleft()
            self._queue.appendleft((_Use.BODY, piece))
            return self._send_some()
        if not taken:
            raise TruncatedFileError
        file.skip(taken)
        self._progress.body_bytes += taken
        if not file.length:
            self._queue.popleft()
        return taken

    def _count(self, taken: int) -> None:
        """Removes sent bytes from the queue, and counts them."""
        while taken:
            use, part = self._queue.popleft()
            assert not isinstance(part, FileRange)
            count = min(taken, len(part))
            if count < len(part):
                self._queue.appendleft((use, memoryview(part)[count:]))
            taken -= count
            if use is _Use.HEAD:
                self._progress.head_bytes += count
            elif use is _Use.BODY:
                self._progress.body_bytes += count

    async def _send_to_server(self, *, last: bool) -> None:
        """The rest, as on the wire; closes the client's descriptor, then sends REST first."""
        if self._client.is_open:
            self._client.close()
            report = rest(self._connection.request_id, self._progress, may_go_on=self._head.may_go_on)
            await self._connection.send([report])
        await send_stdout(self._connection, [part for _, part in self._queue], last=last)

    async def _end(self, outcome: int) -> None:
        self._client.close()
        connection = self._connection
        report = answered(connection.request_id, self._progress, outcome=outcome, may_go_on=self._head.may_go_on)
        errors_and_end = connection.finish(app_status=0 if outcome == COMPLETE else 1)
        await connection.send([*errors_and_end[:-1], report, errors_and_end[-1]])


def _joined(parts: Sequence[Part]) -> list[Part]:
    """Small neighbours joined; files stay where they are."""
    out: list[Part] = []
    buffers: list[Buffer] = []
    for part in parts:
        if not isinstance(part, FileRange):
            buffers.append(part)
            continue
        if part.length:
            out += [*join_small(buffers), part]
            buffers = []
    return [*out, *join_small(buffers)]
