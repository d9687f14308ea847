"""FastCGI 1.0 on the wire: records and name-value pairs, from bytes and to bytes, without I/O.

Names are those of the FastCGI specification, sections 3.3 (records), 3.4 (pairs) and 8 (constants).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Union

Buffer = Union[bytes, bytearray, memoryview]

BEGIN_REQUEST = 1
ABORT_REQUEST = 2
END_REQUEST = 3
PARAMS = 4
STDIN = 5
STDOUT = 6
STDERR = 7
GET_VALUES = 9
GET_VALUES_RESULT = 10
UNKNOWN_TYPE = 11
# Baton's own records; their content begins with a kind byte.
BATON = 66

ROLE_RESPONDER = 1
KEEP_CONNECTION = 1

REQUEST_COMPLETE = 0
CANNOT_MULTIPLEX = 1
UNKNOWN_ROLE = 3

HEADER = struct.Struct(">BBHHBx")
HEADER_BYTES = 8
CONTENT_BYTES_MAX = 65_535
# What we put into one record at most: with its header it fills 64 KiB, and needs no padding.
CONTENT_BYTES = 65_528

_RECORD_BYTES_MAX = HEADER_BYTES + CONTENT_BYTES_MAX + 255
_LONG_LENGTH = 0x8000_0000


class BrokenProtocolError(Exception):
    """The peer broke the protocol: close its connection."""


class Record(NamedTuple):
    """One whole record, without its padding."""

    kind: int
    request_id: int
    content: bytes


class RecordReader:
    """Finds the records in a stream of bytes that arrives in any pieces.

    Bytes are received into `space()`, then `take(count)` tells which records they complete.
    It holds at most one incomplete record.
    """

    def __init__(self) -> None:
        self._bytes = bytearray(2 * _RECORD_BYTES_MAX)
        self._view = memoryview(self._bytes)
        self._filled = 0

    def space(self) -> memoryview:
        """Where to receive into: never empty, at least the size of the largest record."""
        return self._view[self._filled :]

    def take(self, count: int) -> list[Record]:
        """Says that `count` bytes have been received into `space()`, and returns the records they complete.

        Raises `BrokenProtocolError` for a version other than 1; the reader must not be used after that.
        """
        filled = self._filled + count
        at = 0
        records = []
        while filled - at >= HEADER_BYTES:
            version, kind, request_id, content_bytes, padding_bytes = HEADER.unpack_from(self._bytes, at)
            if version != 1:
                raise BrokenProtocolError(f"a record of version {version}, not 1")
            content_at = at + HEADER_BYTES
            end = content_at + content_bytes
            if end + padding_bytes > filled:
                break
            records.append(Record(kind, request_id, bytes(self._view[content_at:end])))
            at = end + padding_bytes
        if at:
            self._bytes[: filled - at] = self._bytes[at:filled]
        self._filled = filled - at
        return records


def record(kind: int, request_id: int, content: bytes = b"") -> bytes:
    """One record of at most `CONTENT_BYTES_MAX` bytes of content."""
    return HEADER.pack(1, kind, request_id, len(content), 0) + content


def stream_records(kind: int, request_id: int, pieces: Iterable[Buffer]) -> list[Buffer]:
    """`pieces` (of bytes) as records of a stream, for a vectored write: headers are added, nothing is copied.

    Empty pieces are left out, since an empty record would end the stream.
    """
    out: list[Buffer] = []
    content: list[Buffer] = []
    content_bytes = 0
    for piece in pieces:
        at = 0
        while at < len(piece):
            part = (
                piece
                if at == 0 and len(piece) <= CONTENT_BYTES - content_bytes
                else _part(piece, at, CONTENT_BYTES - content_bytes)
            )
            content.append(part)
            content_bytes += len(part)
            at += len(part)
            if content_bytes == CONTENT_BYTES:
                out.append(HEADER.pack(1, kind, request_id, content_bytes, 0))
                out += content
                content = []
                content_bytes = 0
    if content:
        out.append(HEADER.pack(1, kind, request_id, content_bytes, 0))
        out += content
    return out


def _part(piece: Buffer, at: int, count_max: int) -> memoryview:
    return memoryview(piece)[at : at + count_max]


def end_request(request_id: int, app_status: int, protocol_status: int) -> bytes:
    """The record that ends a request; `app_status` is any 32-bit number."""
    return record(END_REQUEST, request_id, struct.pack(">IB3x", app_status, protocol_status))


def unknown_type(kind: int) -> bytes:
    """The answer to a management record of a kind we do not know."""
    return record(UNKNOWN_TYPE, 0, struct.pack(">B7x", kind))


def pair(name: bytes, value: bytes) -> bytes:
    """One name-value pair."""
    return _length(len(name)) + _length(len(value)) + name + value


def _length(count: int) -> bytes:
    return bytes((count,)) if count < 128 else struct.pack(">I", count | _LONG_LENGTH)


def pairs(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The name-value pairs of a complete block, in their order; raises `BrokenProtocolError` when it is cut short."""
    at = 0
    end = len(block)
    while at < end:
        lengths = []
        for _ in range(2):
            if at >= end:
                raise BrokenProtocolError("name-value pairs that end within a length")
            length = block[at]
            at += 1
            if length >= 128:
                if at + 3 > end:
                    raise BrokenProtocolError("name-value pairs that end within a length")
                length = (length & 127) << 24 | int.from_bytes(block[at : at + 3], "big")
                at += 3
            lengths.append(length)
        value_at = at + lengths[0]
        pair_end = value_at + lengths[1]
        if pair_end > end:
            raise BrokenProtocolError("name-value pairs that end within a pair")
        yield block[at:value_at], block[value_at:pair_end]
        at = pair_end
