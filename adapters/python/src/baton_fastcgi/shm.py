"""Responses through the memory that the server shares (hand-over protocol, section 5)."""

from __future__ import annotations

from collections.abc import Sequence

from baton_fastcgi.connection import Connection, DisconnectedError
from baton_fastcgi.files import FileRange, Part
from baton_fastcgi.offer import SLICES_MAX, slices
from baton_fastcgi.outlet import PlainOutlet, TruncatedFileError, send_stdout
from baton_fastcgi.records import STDOUT, Buffer, record, stream_records
from baton_fastcgi.region import Region
from baton_fastcgi.vector import join_small

# Up to here a copy through the socket costs less than a range of the region and its FREED.
_INLINE_BYTES_MAX = 4096
# With less free space in the region, pieces are too small to be worth their records.
ROOM_BYTES_MIN = 16 * 1024


class RegionOutlet(PlainOutlet):
    """Large pieces go into the region, small ones (the head above all) as FCGI_STDOUT between them."""

    def __init__(self, connection: Connection, head: bytes, region: Region) -> None:
        super().__init__(connection, head)
        self._region = region
        # Wait for at least this much, so that a server that frees in small steps does not cause small pieces.
        self._turn_bytes = region.free_bytes // 4
        self._announced: list[tuple[int, int]] = []
        self._records: list[Buffer] = []

    async def _put(self, parts: Sequence[Part], *, last: bool) -> None:
        buffers: list[Buffer] = []
        for part in parts:
            if not isinstance(part, FileRange):
                buffers.append(part)
                continue
            await self._put_buffers(buffers)
            buffers = []
            await self._put_file(part)
        await self._put_buffers(buffers)
        self._close_announcement()
        if last:
            connection = self._connection
            self._records += [record(STDOUT, connection.request_id), *connection.finish(app_status=0)]
        await self._send_records()

    async def _put_buffers(self, buffers: Sequence[Buffer]) -> None:
        for buffer in join_small(buffers):
            if len(buffer) <= _INLINE_BYTES_MAX:
                self._put_inline(buffer)
                continue
            left = memoryview(buffer)
            while left:
                if not await self._has_room(len(left)):
                    self._put_inline(left)
                    break
                offset, room = self._region.next_range()
                count = min(room, len(left))
                self._region.memory[offset : offset + count] = left[:count]
                self._announce(offset, count)
                left = left[count:]

    async def _put_file(self, part: FileRange) -> None:
        while part.length:
            if not await self._has_room(part.length):
                await self._send_records()
                await send_stdout(self._connection, [part], last=False)
                return
            offset, room = self._region.next_range()
            count = part.read_into(self._region.memory[offset : offset + room])
            if count == 0:
                raise TruncatedFileError
            self._announce(offset, count)

    def _put_inline(self, buffer: Buffer) -> None:
        self._close_announcement()
        self._records += stream_records(STDOUT, self._connection.request_id, [buffer])

    def _announce(self, offset: int, count: int) -> None:
        self._region.use(count)
        if self._announced and sum(self._announced[-1]) == offset:
            begin, length = self._announced.pop()
            self._announced.append((begin, length + count))
            return
        if len(self._announced) == SLICES_MAX:
            self._close_announcement()
        self._announced.append((offset, count))

    def _close_announcement(self) -> None:
        if self._announced:
            self._records.append(slices(self._connection.request_id, self._announced))
            self._announced = []

    async def _has_room(self, wanted_bytes: int) -> bool:
        """Waits for room in the region. False if FREED cannot be read, because it follows an unread body."""
        wanted_bytes = min(wanted_bytes, self._turn_bytes)
        if self._region.free_bytes >= wanted_bytes:
            return True
        self._close_announcement()
        await self._send_records()
        while self._region.free_bytes < wanted_bytes:
            if self._connection.is_closed:
                raise DisconnectedError
            if not self._connection.wants_input:
                return False
            await self._connection.waiter.wait()
        return True

    async def _send_records(self) -> None:
        out, self._records = self._records, []
        await self._connection.send(out)
