"""The head of a response: checked once, then written for the server (CGI) or for the client (HTTP/1)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus

from baton_fastcgi.edits import Edits, Field
from baton_fastcgi.offer import PassFdOffer

# Limit of a server for the head of a CGI response.
HEAD_BYTES_MAX = 16 * 1024

# Instructions to the server, which must see the response.
INSTRUCTIONS = frozenset((b"x-zerocopy", b"x-sendfile", b"x-accel-redirect"))

# Fields of one hop, and fields that are the server's own (hand-over protocol, section 4).
_NOT_FORWARDED = frozenset(
    (
        *(b"status", b"date", b"server"),
        *(b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade"),
    )
)
# More that nginx understands (X-Accel-Buffering, ...): the server may see it, the client does not.
_FOR_SERVER = b"x-accel-"
_ONCE = INSTRUCTIONS | {b"location"}
_IS_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch
_HAS_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]").search
_REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}
# Statuses without a body, and the length to send: clients expect one with 205.
_WITHOUT_BODY = {204: None, 205: 0, 304: None}


class BadHeadError(ValueError):
    """The application's status or fields cannot be sent."""


@dataclass
class Head:
    """Status, reason and fields; `fields` has no length, `content_length` is the body's length in bytes if known."""

    status: int
    reason: bytes
    fields: list[Field]
    content_length: int | None

    @property
    def has_body(self) -> bool:
        """Whether this status has a body (RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5)."""
        return self.status not in _WITHOUT_BODY

    @property
    def instructs_server(self) -> bool:
        """Whether a field names something that the server has to do."""
        return any(name.lower() in INSTRUCTIONS for name, _ in self.fields)


def make_head(status: int, reason: bytes | None, fields: Iterable[Field]) -> Head:
    """Checks the application's head; a reason of None is the usual one. Raises `BadHeadError`."""
    if not 200 <= status <= 999:
        raise BadHeadError(f"{status} is not the status of a response")
    if reason is None:
        reason = _REASONS.get(status, b"")
    if _HAS_CONTROL(reason):
        raise BadHeadError("a control character in the reason")
    kept: list[Field] = []
    seen: set[bytes] = set()
    content_length: int | None = None
    for name, value in fields:
        if not _IS_TOKEN(name):
            raise BadHeadError(f"{name!r} is not the name of a field")
        if _HAS_CONTROL(value):
            raise BadHeadError(f"a control character in the value of {name!r}")
        lower = name.lower()
        if lower in _ONCE:
            if lower in seen:
                raise BadHeadError(f"two values of {name!r}")
            seen.add(lower)
        if lower == b"content-length":
            length = _length(value)
            if content_length not in (None, length):
                raise BadHeadError("two values of Content-Length")
            content_length = length
        elif lower not in _NOT_FORWARDED:
            kept.append((name, value.strip(b" \t")))
    return Head(status, reason.strip(b" \t"), kept, _WITHOUT_BODY.get(status, content_length))


def _length(value: bytes) -> int:
    digits = value.strip(b" \t")
    if not digits.isdigit() or len(digits) > 18:
        raise BadHeadError(f"Content-Length is {value!r}")
    return int(digits)


def cgi_head(head: Head) -> bytes:
    """The head for the server. It always has a `Status`, so that a `Location` never is a local redirect."""
    status = b"Status: %d %s\r\n" % (head.status, head.reason) if head.reason else b"Status: %d\r\n" % head.status
    return b"".join((status, *_lines(head.fields), _length_line(head), b"\r\n"))


@dataclass(frozen=True)
class HttpHead:
    """The head for the client, and its framing."""

    wire: bytes
    is_chunked: bool
    may_go_on: bool


def http_head(head: Head, offer: PassFdOffer, edits: Edits) -> HttpHead:
    """The head for the client: section 4 of the hand-over protocol, the same bytes as the server would make."""
    status = b"HTTP/1.1 %d %s\r\n" % (head.status, head.reason)
    is_unknown = head.has_body and head.content_length is None and not offer.head
    is_chunked = is_unknown and offer.minor > 0
    may_go_on = offer.keep and (is_chunked or not is_unknown)
    ends = b"Transfer-Encoding: chunked\r\n" if is_chunked else b""
    if not may_go_on:
        ends += b"Connection: close\r\n"
    elif not offer.minor:
        ends += b"Connection: keep-alive\r\n"
    own = [field for field in head.fields if not field[0].lower().startswith(_FOR_SERVER)]
    wire = b"".join((status, edits.fields, *edits.apply(own), _length_line(head), ends, b"\r\n"))
    return HttpHead(wire, is_chunked, may_go_on)


def _lines(fields: Iterable[Field]) -> list[bytes]:
    return [b"%s: %s\r\n" % field for field in fields]


def _length_line(head: Head) -> bytes:
    return b"" if head.content_length is None else b"Content-Length: %d\r\n" % head.content_length
