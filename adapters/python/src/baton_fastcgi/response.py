"""One response: from what an application says to bytes on the best way that the server offers.

LIFECYCLE: `start` (may be repeated) -> `write` (the first one fixes the head and chooses the outlet) -> the write that
is the last one, or `fail`, or `abandon`. What comes after that is ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from baton_fastcgi.connection import Connection
from baton_fastcgi.edits import CodedFor, Edits
from baton_fastcgi.files import File, FileRange, Part, allowed_roots, name_for_server, name_map, open_file
from baton_fastcgi.head import HEAD_BYTES_MAX, Head, HttpHead, cgi_head, http_head, make_head
from baton_fastcgi.offer import DECLINED_CODED, DECLINED_HEAD, DECLINED_INSTRUCTION, PassFdOffer
from baton_fastcgi.outlet import Outlet, PlainOutlet
from baton_fastcgi.passfd import ClientOutlet
from baton_fastcgi.records import Buffer
from baton_fastcgi.request import Request
from baton_fastcgi.shm import ROOM_BYTES_MIN, RegionOutlet

ROOTS_NAME = b"BATON_ZEROCOPY"
_OK = 200


class ShortBodyError(Exception):
    """The application ended its body before the Content-Length that it had declared."""


class Response:
    """Sends one response on a connection whose request was just taken."""

    def __init__(self, connection: Connection, request: Request) -> None:
        self.has_begun = False
        self.has_ended = False
        self._connection = connection
        self._request = request
        self._head: Head | None = None
        self._outlet: Outlet | None = None
        # Of the declared length; None: no length was declared.
        self._missing_bytes: int | None = None
        self._drops_body = False

    @property
    def is_started(self) -> bool:
        """Whether a head was given."""
        return self._head is not None

    @property
    def is_unwanted(self) -> bool:
        """Whether the client is known to be gone."""
        return self._request.body.is_aborted or (self._outlet is not None and self._outlet.is_gone)

    def start(self, head: Head) -> None:
        """Sets the head; it is sent with the first write."""
        self._head = head

    async def write(self, parts: Sequence[Buffer | FileRange | File], *, last: bool) -> None:
        """Sends `parts`; `last` completes the response. Files that are given by name are closed.

        Raises OSError if a named file cannot be opened, `BadHeadError`, `ShortBodyError` and `TruncatedFileError` when
        the application did not keep its word, `DisconnectedError` when the server is gone; then the caller says `fail`
        or `abandon`.
        """
        if self.has_ended:
            return
        with ExitStack() as opened:
            await self._write([_opened(part, opened) for part in parts], last=last)

    async def _write(self, parts: Sequence[Part], *, last: bool) -> None:
        outlet = self._outlet
        is_first = outlet is None
        if outlet is None:
            parts = self._begin(parts, last=last)
            outlet = self._outlet
            assert outlet is not None
            self.has_begun = True
        else:
            # The server may have asked meanwhile for the socket, or aborted the request.
            self._connection.waiter.look()
        parts = self._within_length(parts)
        if last and self._missing_bytes and not self._drops_body:
            await outlet.write(parts, last=False)
            raise ShortBodyError(f"{self._missing_bytes} bytes are missing of the declared Content-Length")
        # A response of a known length is complete with its last byte, even before the application ends it.
        last = last or (self._missing_bytes == 0 and not self._drops_body)
        if parts or last or is_first:
            await outlet.write(parts, last=last)
        self.has_ended = last

    async def fail(self) -> None:
        """Ends an incomplete response so that it does not look complete."""
        if not self.has_ended:
            self.has_ended = True
            await self._outlet_or_default().fail()

    async def abandon(self) -> None:
        """Ends a response that is no longer wanted."""
        if not self.has_ended:
            self.has_ended = True
            await self._outlet_or_default().abandon()

    async def give_back(self) -> None:
        """Gives the client's socket back now, if it is in use here."""
        if not self.has_ended and isinstance(self._outlet, ClientOutlet):
            await self._outlet.give_back()

    def _outlet_or_default(self) -> Outlet:
        if self._outlet is None:
            self._open_outlet(make_head(500, None, ()))
        assert self._outlet is not None
        return self._outlet

    # ----- the first write

    def _begin(self, parts: Sequence[Part], *, last: bool) -> Sequence[Part]:
        head = self._head
        if head is None:
            raise RuntimeError("a body before the head")
        if last:
            parts = self._name_files(head, parts)
            # For HEAD the application may have omitted the body, so its length is unknown.
            says_length = head.content_length is not None or head.instructs_server
            if head.has_body and not says_length and not self._request.is_head:
                head.content_length = sum(map(len, parts))
        # Names of files are sent for HEAD, too: the server needs their lengths.
        self._drops_body = not head.has_body or (self._request.is_head and not head.instructs_server)
        self._missing_bytes = None if head.instructs_server else head.content_length
        self._open_outlet(head)
        return parts

    def _name_files(self, head: Head, parts: Sequence[Part]) -> Sequence[Part]:
        """Lets the server send the files, if all of them are below its roots: then only their names go there."""
        roots = allowed_roots(self._request.param(ROOTS_NAME))
        if not roots or head.instructs_server or not head.has_body:
            return parts
        if head.content_length not in (None, sum(map(len, parts))):
            return parts
        if len(parts) == 1 and isinstance(parts[0], FileRange) and head.status == _OK:
            name = name_for_server(parts[0], roots)
            if name is not None:
                head.fields.append((b"X-Sendfile", name))
                head.content_length = None
                return ()
        mapped = name_map(parts, roots)
        if mapped is None:
            return parts
        head.fields.append((b"X-ZeroCopy", mapped[0]))
        head.content_length = None
        return mapped[1]

    def _open_outlet(self, head: Head) -> None:
        connection, request = self._connection, self._request
        client, offer = request.take_client(), request.passfd
        if client is not None and offer is not None:
            edits = Edits.parse(offer.fields)
            client_head = _client_head(head, offer, edits)
            if isinstance(client_head, HttpHead):
                self._outlet = ClientOutlet(connection, request, client, offer, head.status, client_head)
                return
            # Declined: ordinary FastCGI from the first byte on.
            client.close()
            if edits.terms is not None:
                connection.note_declined(client_head)
        wire = cgi_head(head)
        region = connection.region if request.may_use_region else None
        if region is not None and region.free_bytes >= ROOM_BYTES_MIN:
            self._outlet = RegionOutlet(connection, wire, region)
        else:
            self._outlet = PlainOutlet(connection, wire)

    # ----- every write

    def _within_length(self, parts: Sequence[Part]) -> Sequence[Part]:
        """What may be sent of `parts`: nothing beyond the declared length, and nothing where no body may be."""
        if self._drops_body:
            return ()
        if self._missing_bytes is None:
            return [part for part in parts if len(part)]
        allowed: list[Part] = []
        for part in parts:
            count = min(len(part), self._missing_bytes)
            if count == 0:
                continue
            if count < len(part):
                part = _first(part, count)
            self._missing_bytes -= count
            allowed.append(part)
        return allowed


def _client_head(head: Head, offer: PassFdOffer, edits: Edits) -> HttpHead | int:
    """The head for the client, or why the server must answer."""
    if head.instructs_server:
        return DECLINED_INSTRUCTION
    if edits.terms is not None:
        coded_for = edits.terms.judge(head.status, head.fields, head.content_length)
        if coded_for is CodedFor.THIS_ONE:
            return DECLINED_CODED
        if coded_for is CodedFor.OTHERS:
            edits.say_varies()
    client_head = http_head(head, offer, edits)
    return client_head if len(client_head.wire) <= HEAD_BYTES_MAX else DECLINED_HEAD


def _opened(part: Buffer | FileRange | File, stack: ExitStack) -> Part:
    if not isinstance(part, File):
        return part
    file = open_file(part.path)
    stack.callback(file.close)
    return file


def _first(part: Part, count: int) -> Part:
    if isinstance(part, FileRange):
        part.cut(count)
        return part
    return memoryview(part)[:count]
