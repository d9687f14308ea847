"""One FastCGI connection, the application's end: requests that come, records that go.

LIFECYCLE: waiting for a request -> `take_request` -> the request under way (its body comes, records are sent)
-> `finish` -> waiting again, if the server keeps the connection, else closed. One request at a time: another one that
begins meanwhile is refused with CANNOT_MULTIPLEX.
"""

from __future__ import annotations

import array
import os
import socket
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Callable, TypeVar

from baton_fastcgi import records
from baton_fastcgi.body import Body
from baton_fastcgi.client import ClientSocket
from baton_fastcgi.lent import LentMemory
from baton_fastcgi.offer import (
    OFFER_NAME,
    TRANSPORTS,
    TRANSPORTS_NAME,
    Bodies,
    Freed,
    GiveBack,
    LentFile,
    LentSlices,
    Offer,
    PassFdOffer,
    ShmOffer,
    declined,
    freed,
    parse_baton_record,
    parse_offer,
    takes_bodies,
)
from baton_fastcgi.records import BrokenProtocolError, Buffer, Record, RecordReader
from baton_fastcgi.region import Region
from baton_fastcgi.request import Request
from baton_fastcgi.vector import send_some, without_first
from baton_fastcgi.waiting import MakeWaiter

# Parameters of one request: well above what servers accept as a head.
PARAMS_BYTES_MAX = 1 << 20
# Of a request's body that the application has not read; more waits in the kernel.
BODY_BYTES_MAX = 1 << 20
# Of error output that has not been sent.
ERROR_BYTES_MAX = 64 * 1024
# Descriptors that have come and belong to no request yet.
_DESCRIPTORS_MAX = 16
# A body of more than that may come by reference (hand-over protocol, section 6).
_SHORT_BODY_BYTES = 16 * 1024
_LINGER_S = 1.0

Piece = TypeVar("Piece", bytes, memoryview)


class DisconnectedError(Exception):
    """The server has closed the connection or broken the protocol."""


class Connection:
    """A connection that was accepted; `sock` becomes non-blocking.

    Input: `receive`. Commands: `send`, `finish`, `close`. News: `take_request`, `is_closed`, and the request's own.
    """

    def __init__(self, sock: socket.socket, make_waiter: MakeWaiter, *, requests_at_once: int) -> None:
        sock.setblocking(False)
        self.is_closed = False
        # No request has come yet, but a server that connects is about to send one.
        self.is_fresh = True
        self.region: Region | None = None
        # Where the server lends bodies of requests.
        self._pool: LentMemory | None = None
        self._owes_word = False
        self._is_sending = False
        self._socket = sock
        self._is_local = sock.family == socket.AF_UNIX
        self._requests_at_once = requests_at_once
        self._reader = RecordReader()
        self._descriptors: deque[int] = deque()
        self._request_id = 0
        self._keeps_connection = True
        self._params: bytearray | None = None
        self._request: Request | None = None
        self._is_taken = False
        # Answers to management records, and the application's error output: sent before any other output.
        self._waiting_output: list[Buffer] = []
        self._errors: deque[bytes] = deque()
        self._errors_bytes = 0
        self._sent_errors = False
        # Why the client's socket is not used for the current request.
        self._declined: int | None = None
        # The request was answered before all of its body had come.
        self._left_body = False
        self.waiter = make_waiter(self)

    @property
    def descriptor(self) -> int:
        """The socket's descriptor."""
        return self._socket.fileno()

    @property
    def wants_input(self) -> bool:
        """False when the body that waits for the application has reached its bound."""
        request = self._request
        return not self.is_closed and (request is None or request.body.held_bytes < BODY_BYTES_MAX)

    @property
    def request_id(self) -> int:
        """Of the current request."""
        return self._request_id

    @property
    def keeps_connection(self) -> bool:
        """Whether the server wants the connection to outlive the request that came last."""
        return self._keeps_connection

    # ----- input

    def receive(self) -> None:
        """Receives once without waiting, and handles the records that have become complete."""
        try:
            count = self._receive_bytes()
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            count = 0
        if count == 0:
            self.hung_up()
            return
        try:
            for each in self._reader.take(count):
                self._handle(each)
        except BrokenProtocolError:
            self.hung_up()

    def hung_up(self) -> None:
        """The server is gone, and the client with it."""
        self.is_closed = True
        if self._request is not None:
            self._request.body.abort()

    def hang_up(self) -> None:
        """Closes the connection without an end of the request: the only sign of a truncated answer."""
        self.hung_up()

    def _receive_bytes(self) -> int:
        if not self._is_local:
            return self._socket.recv_into(self._reader.space())
        count, ancillary, flags, _ = self._socket.recvmsg_into(
            [self._reader.space()], _ANCILLARY_BYTES, socket.MSG_CMSG_CLOEXEC
        )
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                arrived = array.array("i")
                arrived.frombytes(data[: len(data) - len(data) % arrived.itemsize])
                self._descriptors.extend(arrived)
        if flags & socket.MSG_CTRUNC or len(self._descriptors) > _DESCRIPTORS_MAX:
            return 0
        return count

    def _handle(self, each: Record) -> None:
        kind, request_id, content = each
        if request_id == 0:
            self._handle_management(kind, content)
        elif kind == records.BEGIN_REQUEST:
            self._handle_begin(request_id, content)
        elif request_id != self._request_id:
            # Ignore records of a request that was answered or refused.
            return
        elif kind == records.PARAMS:
            self._handle_params(content)
        elif kind == records.ABORT_REQUEST:
            self._handle_abort()
        elif self._request is None:
            return
        elif kind == records.STDIN:
            self._request.body.add(content)
        elif kind == records.BATON:
            self._handle_news(self._request, content)

    def _handle_management(self, kind: int, content: bytes) -> None:
        if kind != records.GET_VALUES:
            self._waiting_output.append(records.unknown_type(kind))
            return
        known = {
            b"FCGI_MAX_CONNS": b"%d" % self._requests_at_once,
            b"FCGI_MAX_REQS": b"%d" % self._requests_at_once,
            b"FCGI_MPXS_CONNS": b"0",
        }
        if self._is_local:
            known[TRANSPORTS_NAME] = TRANSPORTS
        values = (records.pair(name, known[name]) for name, _ in records.pairs(content) if name in known)
        self._waiting_output.append(records.record(records.GET_VALUES_RESULT, 0, b"".join(values)))

    def _handle_begin(self, request_id: int, content: bytes) -> None:
        if len(content) != 8:
            raise BrokenProtocolError("a BEGIN_REQUEST record of a wrong length")
        role = int.from_bytes(content[:2], "big")
        if self._request_id:
            self._refuse(request_id, records.CANNOT_MULTIPLEX)
        elif role != records.ROLE_RESPONDER:
            self._keeps_connection = bool(content[2] & records.KEEP_CONNECTION)
            self._refuse(request_id, records.UNKNOWN_ROLE)
        else:
            self._keeps_connection = bool(content[2] & records.KEEP_CONNECTION)
            self.is_fresh = False
            self._request_id = request_id
            self._params = bytearray()

    def _refuse(self, request_id: int, why: int) -> None:
        if self._descriptors:
            raise BrokenProtocolError("descriptors with a request that is refused")
        self._waiting_output.append(records.end_request(request_id, 0, why))

    def _handle_params(self, content: bytes) -> None:
        if self._params is None:
            raise BrokenProtocolError("parameters after their end")
        self._params += content
        if len(self._params) > PARAMS_BYTES_MAX:
            raise BrokenProtocolError("too many parameters")
        if content:
            return
        params = list(records.pairs(bytes(self._params)))
        self._params = None
        offer_value = params.pop(0)[1] if params and params[0][0] == OFFER_NAME else None
        request = Request(dict(params))
        request.params.pop(OFFER_NAME, None)
        if offer_value is not None:
            self._take_offer(request, parse_offer(offer_value))
        self._request = request

    def _take_offer(self, request: Request, offer: Offer) -> None:
        if offer.descriptors > len(self._descriptors):
            raise BrokenProtocolError("an offer without its descriptors")
        own = [self._descriptors.popleft() for _ in range(offer.descriptors - offer.bodies.descriptors)]
        self._take_bodies(request, offer.bodies)
        try:
            if isinstance(offer, PassFdOffer):
                request.client = ClientSocket(own.pop())
                request.passfd = offer
            elif isinstance(offer, ShmOffer):
                if own:
                    self._replace_region(own.pop(), offer.size)
                if self.region is not None and self.region.size == offer.size:
                    self.region.begin(offer.at, offer.free)
                    request.may_use_region = True
        except (OSError, ValueError):
            # The descriptors do not match the offer. Answer in the ordinary way.
            pass
        finally:
            for descriptor in own:
                os.close(descriptor)

    def _take_bodies(self, request: Request, bodies: Bodies) -> None:
        try:
            if bodies.pool_bytes:
                old, self._pool = self._pool, LentMemory(self._descriptors.popleft(), bodies.pool_bytes)
                if old is not None:
                    old.close()
            if bodies.has_file:
                request.body.file = LentMemory(self._descriptors.popleft())
        except (OSError, ValueError) as error:
            # The body comes there, and nowhere else.
            raise BrokenProtocolError("memory of a body that cannot be mapped") from error
        if bodies.asks:
            length = request.param(b"CONTENT_LENGTH")
            if length.isdigit() and int(length) <= _SHORT_BODY_BYTES:
                # It goes with the answer, and takes no system call.
                self._owes_word = True
            else:
                self._waiting_output.append(takes_bodies(self._request_id))

    def _replace_region(self, descriptor: int, size: int) -> None:
        old, self.region = self.region, None
        if old is not None:
            old.close()
        self.region = Region(descriptor, size)

    def _handle_abort(self) -> None:
        if self._request is None:
            # Without parameters, the owner of the descriptors is unknown.
            self._refuse(self._request_id, records.REQUEST_COMPLETE)
            self._forget()
        else:
            self._request.body.abort()

    def _handle_news(self, request: Request, content: bytes) -> None:
        news = parse_baton_record(content)
        if isinstance(news, Freed):
            if self.region is not None:
                self.region.free(news.count)
        elif isinstance(news, LentSlices):
            for offset, count in news.ranges:
                request.body.add_lent(_view(self._pool, offset, count), is_pooled=True)
        elif isinstance(news, LentFile):
            request.body.add_lent(_view(request.body.file, news.offset, news.count), is_pooled=False)
        elif isinstance(news, GiveBack):
            request.is_wanted_back = True
            if request.when_wanted_back is not None:
                request.when_wanted_back()

    # ----- requests

    def take_request(self) -> Request | None:
        """A new request with complete parameters; each is returned once."""
        if self._request is None or self._is_taken or self.is_closed:
            return None
        self._is_taken = True
        return self._request

    async def next_request(self, stops: Callable[[], bool]) -> Request | None:
        """Waits for the next request; None when the connection has ended, or `stops` is true while none has begun."""
        while True:
            try:
                await self.flush()
            except DisconnectedError:
                return None
            request = self.take_request()
            if request is not None or self.is_closed:
                return request
            if not self._request_id and (stops() or not self._keeps_connection):
                return None
            await self.waiter.wait()

    async def read_body(self, count_max: int) -> bytes:
        """The next bytes of the request's body, at most `count_max`, as soon as there are any; empty at its end.

        Raises ConnectionAbortedError when no more can come.
        """
        if self._request is None:
            return b""
        body = self._request.body
        return await self._next_of(body, lambda: body.take(count_max))

    async def show_body(self) -> memoryview:
        """The next piece of the request's body where it is, as soon as there is one; empty at its end.

        It is valid until the next piece is read, or the request ends. Raises ConnectionAbortedError as `read_body`.
        """
        if self._request is None:
            return memoryview(b"")
        body = self._request.body
        return await self._next_of(body, body.show)

    async def _next_of(self, body: Body, take: Callable[[], Piece]) -> Piece:
        while True:
            piece = take()
            await self._tell_of_body(body)
            if piece or body.is_ended:
                return piece
            if body.is_aborted:
                raise ConnectionAbortedError("the client went away before its request was complete")
            await self.waiter.wait()

    async def _tell_of_body(self, body: Body) -> None:
        """Returns what was read of the pool, and says, if that has not been said, that bodies may come there."""
        owed = body.take_owed()
        if owed:
            self._waiting_output.append(freed(self._request_id, owed))
        # Records of a response must not be cut by another task: what sends at the time sends this as well.
        if self._waiting_output and not self._is_sending:
            try:
                await self.send(())
            except DisconnectedError:
                raise ConnectionAbortedError("the server has closed the connection") from None

    def finish(self, app_status: int) -> list[Buffer]:
        """The records that end the request, for the last `send`; then the connection is ready for the next one.

        `app_status` is the exit status of a CGI program: 0 is success.
        """
        ends: list[Buffer] = self._take_errors()
        if self._sent_errors:
            ends.append(records.record(records.STDERR, self._request_id))
        if self._owes_word:
            ends.append(takes_bodies(self._request_id))
        if self._declined is not None:
            ends.append(declined(self._request_id, self._declined))
        ends.append(records.end_request(self._request_id, app_status, records.REQUEST_COMPLETE))
        self._forget()
        return ends

    def note_declined(self, why: int) -> None:
        """The client's socket is not used for the current request; the server is told why."""
        self._declined = why

    def _forget(self) -> None:
        if self._request is not None:
            self._left_body = not self._request.body.is_ended
            self._request.release()
        self._request = None
        self._request_id = 0
        self._params = None
        self._is_taken = False
        self._sent_errors = False
        self._declined = None
        self._owes_word = False

    # ----- output

    def add_error_output(self, text: bytes) -> bool:
        """Keeps error output of the application, to send with the next output; from any thread.

        False, and nothing is kept, when the bound is reached: it has to be flushed first. The same when the request
        has been answered.
        """
        is_full = self._errors_bytes + len(text) > ERROR_BYTES_MAX and self._errors
        if is_full or not self._request_id:
            return False
        self._errors_bytes += len(text)
        self._errors.append(text)
        return True

    def _take_errors(self) -> list[Buffer]:
        errors = []
        # Piece by piece, since another thread may be adding some.
        while self._errors:
            errors.append(self._errors.popleft())
        self._errors_bytes = 0
        if errors:
            self._sent_errors = True
        return records.stream_records(records.STDERR, self._request_id, errors)

    async def flush(self) -> None:
        """Sends pending output."""
        if self._errors or self._waiting_output:
            await self.send(())

    async def send(self, buffers: Iterable[Buffer]) -> None:
        """Sends records, with what waited before them; raises `DisconnectedError`.

        While the server takes nothing, input is received.
        """
        waited, self._waiting_output = self._waiting_output, []
        left: Sequence[Buffer] = [*waited, *(self._take_errors() if self._request_id else ()), *buffers]
        self._is_sending = True
        try:
            while left:
                if self.is_closed:
                    raise DisconnectedError
                left = without_first(left, send_some(self._socket, left))
                if left:
                    await self.waiter.wait(writable=self.descriptor)
                else:
                    # A task that reads the body may have come meanwhile.
                    left, self._waiting_output = self._waiting_output, []
        except OSError:
            self.hung_up()
            raise DisconnectedError from None
        finally:
            self._is_sending = False

    async def linger(self) -> None:
        """The last thing before a close. What the server still sends of a request that is answered is read for a while.

        A close with unread bytes would be a reset, which can overtake the answer.
        """
        deadline = time.monotonic() + _LINGER_S
        try:
            if self._left_body and not self.is_closed:
                self._socket.shutdown(socket.SHUT_WR)
                while not self.is_closed and time.monotonic() < deadline:
                    await self.waiter.wait(timeout_s=deadline - time.monotonic())
        except OSError:
            pass
        self.hung_up()

    def close(self) -> None:
        """Closes the socket and received descriptors."""
        self.hung_up()
        if self._request is not None:
            self._request.release()
        while self._descriptors:
            os.close(self._descriptors.popleft())
        if self.region is not None:
            self.region.close()
            self.region = None
        if self._pool is not None:
            self._pool.close()
            self._pool = None
        self._socket.close()


_ANCILLARY_BYTES = socket.CMSG_SPACE(_DESCRIPTORS_MAX * array.array("i").itemsize)


def _view(memory: LentMemory | None, offset: int, count: int) -> memoryview:
    if memory is None:
        raise BrokenProtocolError("a piece of a body in memory that has not come")
    return memory.view(offset, count)
