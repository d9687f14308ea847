"""What the server offers with a request, and Baton's own records: the wire format of the hand-over protocol.

Section numbers are those of docs/handover-protocol.md.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Union

from baton_fastcgi.records import BATON, BrokenProtocolError, record

OFFER_NAME = b"BATON_OFFER"
# The name under which FCGI_GET_VALUES asks for transports, and what we can do (section 1).
TRANSPORTS_NAME = b"BATON_TRANSPORTS"
TRANSPORTS = b"passfd,shm"

PATIENCE_MS_DEFAULT = 100
SLICES_MAX = 1024

COMPLETE = 0
CLIENT_GONE = 1
APPLICATION_FAILED = 2

_SLICES = 1
_ANSWERED = 2
_REST = 3
_FREED = 4
_GIVE_BACK = 5
_DECLINED = 6
_TAKES_BODIES = 7
_FILE = 8

# Why the client's socket is declined: the server codes the body, the head asks it to act, the head is too long.
DECLINED_CODED = 1
DECLINED_INSTRUCTION = 2
DECLINED_HEAD = 3

_IS_COMPLETE = 1
_MAY_GO_ON = 2


@dataclass(frozen=True)
class Bodies:
    """How the request's body may come (section 6)."""

    # The server asks whether bodies may come by reference.
    asks: bool = False
    # Bytes of the pool whose descriptor comes with the request; 0: none does.
    pool_bytes: int = 0
    # The descriptor of the body's file comes with the request.
    has_file: bool = False

    @property
    def descriptors(self) -> int:
        """How many of the offer's descriptors these are: the last ones, the pool's before the file's."""
        return (self.pool_bytes > 0) + self.has_file


@dataclass(frozen=True)
class PassFdOffer:
    """The client's socket comes with the request (section 4). Times in milliseconds."""

    # Those of the body included, as with the other offers.
    descriptors: int
    minor: int
    keep: bool
    head: bool
    patience_ms: int
    # Complete lines, preceded by edits of the application's own fields (section 2).
    fields: bytes
    bodies: Bodies = Bodies()


@dataclass(frozen=True)
class ShmOffer:
    """The response may be written into shared memory (section 5): sizes and offsets in bytes.

    The region's descriptor comes with the first offer of a connection alone.
    """

    descriptors: int
    size: int
    at: int
    free: int
    bodies: Bodies = Bodies()


@dataclass(frozen=True)
class UnknownOffer:
    """A transport that we do not know: its descriptors are closed, the answer is ordinary FastCGI."""

    descriptors: int
    bodies: Bodies = Bodies()


Offer = Union[PassFdOffer, ShmOffer, UnknownOffer]


def parse_offer(value: bytes) -> Offer:
    """Reads the value of `BATON_OFFER`; raises `BrokenProtocolError` when a number in it is none."""
    line, _, fields = value.partition(b"\n")
    transport, *words = line.split()[:32] or [b""]
    numbers = {}
    for word in words:
        name, _, number = word.partition(b"=")
        if name in _OFFER_WORDS:
            if not number.isdigit() or len(number) > 10:
                raise BrokenProtocolError(f"an offer with {word!r}")
            numbers[name] = int(number)
    descriptors = numbers.get(b"fds", 0)
    bodies = Bodies(numbers.get(b"bodies") == 1, numbers.get(b"pool", 0), numbers.get(b"file") == 1)
    own = descriptors - bodies.descriptors
    if own < 0:
        raise BrokenProtocolError("an offer without the descriptors of its body")
    if transport in _PASSFD and own == 1:
        return PassFdOffer(
            descriptors=descriptors,
            minor=1 if numbers.get(b"minor", 0) else 0,
            keep=bool(numbers.get(b"keep", 0)),
            head=bool(numbers.get(b"head", 0)),
            patience_ms=numbers.get(b"patience", PATIENCE_MS_DEFAULT),
            fields=fields,
            bodies=bodies,
        )
    if transport == b"shm" and own <= 1:
        size, at, free = (numbers.get(name, 0) for name in (b"size", b"at", b"free"))
        if not (size > 0 and at < size and free <= size):
            raise BrokenProtocolError(f"an offer of {free} bytes at {at} of a region of {size}")
        return ShmOffer(descriptors, size, at, free, bodies)
    return UnknownOffer(descriptors, bodies)


_PASSFD = frozenset((b"passfd", b"passfd-edits", b"passfd-joins", b"passfd-codes"))
_OFFER_WORDS = frozenset(
    (
        *(b"fds", b"minor", b"keep", b"head", b"patience", b"size", b"at", b"free"),
        *(b"bodies", b"pool", b"file"),
    )
)


def slices(request_id: int, ranges: Iterable[tuple[int, int]]) -> bytes:
    """Announces (offset, length) of output in the region: at most `SLICES_MAX` ranges."""
    return record(BATON, request_id, bytes((_SLICES,)) + b"".join(struct.pack(">II", *each) for each in ranges))


@dataclass
class Progress:
    """How far an answer on the client's socket has come: status, and bytes that the client's socket has taken."""

    status: int
    head_bytes: int = 0
    body_bytes: int = 0


def answered(request_id: int, progress: Progress, *, outcome: int, may_go_on: bool) -> bytes:
    """The answer has ended; the connection can go on only after a complete one."""
    complete = outcome == COMPLETE
    flags = (_IS_COMPLETE if complete else 0) | (_MAY_GO_ON if complete and may_go_on else 0)
    return _report(_ANSWERED, request_id, flags, outcome, progress)


def rest(request_id: int, progress: Progress, *, may_go_on: bool) -> bytes:
    """The rest of the answer is handed back to the server."""
    return _report(_REST, request_id, _MAY_GO_ON if may_go_on else 0, 0, progress)


def declined(request_id: int, why: int) -> bytes:
    """Says why the client's socket is not used; for a server whose offer says what is coded."""
    return record(BATON, request_id, bytes((_DECLINED, why)))


def takes_bodies(request_id: int) -> bytes:
    """Says that bodies may come by reference on this connection; for a server that has asked."""
    return record(BATON, request_id, bytes((_TAKES_BODIES,)))


def freed(request_id: int, count: int) -> bytes:
    """Returns the oldest `count` bytes of the pool that the server has lent."""
    return record(BATON, request_id, struct.pack(">BI", _FREED, count))


def _report(kind: int, request_id: int, flags: int, outcome: int, progress: Progress) -> bytes:
    content = struct.pack(">BBBHQQ", kind, flags, outcome, progress.status, progress.head_bytes, progress.body_bytes)
    return record(BATON, request_id, content)


@dataclass(frozen=True)
class Freed:
    """`count` bytes of the region may be written again."""

    count: int


@dataclass(frozen=True)
class GiveBack:
    """The server wants the client's socket back."""


@dataclass(frozen=True)
class LentSlices:
    """The next bytes of the body are in the pool: offset and length of each piece."""

    ranges: list[tuple[int, int]]


@dataclass(frozen=True)
class LentFile:
    """The next `count` bytes of the body are in the request's file, from `offset` on."""

    offset: int
    count: int


def parse_baton_record(content: bytes) -> Freed | GiveBack | LentSlices | LentFile | None:
    """Reads a record of type 66 from the server; kinds that we do not know are None."""
    if content[:1] == bytes((_FREED,)):
        if len(content) != 5:
            raise BrokenProtocolError("a FREED record of a wrong length")
        return Freed(int.from_bytes(content[1:], "big"))
    if content == bytes((_GIVE_BACK,)):
        return GiveBack()
    if content[:1] == bytes((_SLICES,)):
        if len(content) % 8 != 1 or not 0 < len(content) // 8 <= SLICES_MAX:
            raise BrokenProtocolError("a SLICES record of a wrong length")
        return LentSlices(list(struct.iter_unpack(">II", content[1:])))
    if content[:1] == bytes((_FILE,)):
        if len(content) != 17:
            raise BrokenProtocolError("a FILE record of a wrong length")
        return LentFile(*struct.unpack(">QQ", content[1:]))
    return None
