"""ASGI 3 (HTTP) over a FastCGI request: the scope, `receive` and `send`."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, MutableMapping, Sequence
from typing import Any, Callable
from urllib.parse import unquote_to_bytes

from baton_fastcgi.client import ClientSocket, ClientState
from baton_fastcgi.connection import Connection, DisconnectedError
from baton_fastcgi.environment import split_path, url_scheme
from baton_fastcgi.files import File
from baton_fastcgi.head import make_head
from baton_fastcgi.records import Buffer
from baton_fastcgi.request import Request
from baton_fastcgi.response import Response
from baton_fastcgi.waiting import LoopWaiter
from baton_fastcgi.wsgi import SERVER_ERROR_TEXT, internal_server_error

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

ASGI_VERSIONS = {"version": "3.0", "spec_version": "2.4"}
# Of the request's body in one event.
_EVENT_BYTES = 64 * 1024
_PATHSEND = "http.response.pathsend"
_DISCONNECT: Message = {"type": "http.disconnect"}


class ClientGoneError(OSError):
    """Raised by `send` once the client is gone, as version 2.4 of the specification requires."""


class Exchange:
    """Runs an application once: one request, one response."""

    def __init__(self, connection: Connection, waiter: LoopWaiter, request: Request) -> None:
        self._connection = connection
        self._waiter = waiter
        self._request = request
        self._response = Response(connection, request)
        # One piece of the response at a time, whichever of the application's tasks sends it.
        self._sending = asyncio.Lock()
        self._has_read_body = False
        self._watched_client: ClientSocket | None = request.client

    async def run(self, application: Application, root_path: bytes | None, state: dict[str, Any]) -> None:
        """Calls the application and sends its response. Catches its exceptions."""
        self._request.when_wanted_back = self._give_back_soon
        scope = make_scope(self._request, root_path, state)
        scope["baton.body_views"] = self._body_views()
        try:
            await application(scope, self._receive, self._send)
            if not self._response.has_ended and not self._response.is_unwanted:
                raise RuntimeError("the application returned before its response was complete")
            async with self._sending:
                await self._response.abandon()
        except DisconnectedError:
            pass
        except Exception:
            text = traceback.format_exc()
            async with self._sending:
                await self._report_failure(text)

    async def _body_views(self) -> AsyncIterator[memoryview]:
        """`baton.body_views`: the pieces of the body as they come, where they are."""
        while view := await self._connection.show_body():
            yield view
        self._has_read_body = True

    async def _receive(self) -> Message:
        body = self._request.body
        if not self._has_read_body:
            try:
                piece = await self._connection.read_body(_EVENT_BYTES)
            except ConnectionAbortedError:
                return dict(_DISCONNECT)
            self._has_read_body = body.is_read
            return {"type": "http.request", "body": piece, "more_body": not self._has_read_body}
        client = self._watched_client
        while not (self._response.has_ended or self._response.is_unwanted):
            state = client.state() if client is not None and client.is_open else None
            if state is ClientState.GONE:
                break
            if state is ClientState.QUIET and client is not None:
                await self._waiter.wait_for_client(client)
            else:
                await self._waiter.wait()
        return dict(_DISCONNECT)

    async def _send(self, message: Message) -> None:
        kind = message["type"]
        if self._response.is_unwanted:
            raise ClientGoneError("the client is gone")
        if kind == "http.response.start":
            if self._response.is_started:
                raise RuntimeError("http.response.start was sent twice")
            if message.get("trailers"):
                raise RuntimeError("trailers are not supported")
            fields = ((bytes(name), bytes(value)) for name, value in message.get("headers", ()))
            self._response.start(make_head(message["status"], None, fields))
        elif kind == "http.response.body":
            body = message.get("body", b"")
            parts = [body if isinstance(body, bytes) else memoryview(body).cast("B")]
            await self._write(parts, last=not message.get("more_body", False))
        elif kind == _PATHSEND:
            await self._write([File(message["path"])], last=True)
        else:
            raise RuntimeError(f"{kind!r} is not an event of a response")

    async def _write(self, parts: Sequence[Buffer | File], *, last: bool) -> None:
        if not self._response.is_started:
            raise RuntimeError("a body was sent before http.response.start")
        try:
            async with self._sending:
                await self._response.write(parts, last=last)
        except DisconnectedError:
            raise ClientGoneError("the server has closed the connection") from None
        if self._response.has_ended:
            self._waiter.wake()

    async def _report_failure(self, text: str) -> None:
        """500 with the traceback on the error stream, or the end of a partly sent response."""
        response = self._response
        try:
            if response.has_ended:
                # The client has its answer; later errors go to the process's own log.
                sys.stderr.write(text)
            elif response.is_unwanted:
                await response.abandon()
            else:
                self._connection.add_error_output(text.encode("utf-8", "backslashreplace"))
                if response.has_begun:
                    await response.fail()
                else:
                    response.start(internal_server_error())
                    await response.write([SERVER_ERROR_TEXT], last=True)
        except DisconnectedError:
            return

    def _give_back_soon(self) -> None:
        self._giving_back = asyncio.ensure_future(self._give_back())

    async def _give_back(self) -> None:
        try:
            async with self._sending:
                await self._response.give_back()
        except DisconnectedError:
            return


def make_scope(request: Request, root_path: bytes | None, state: dict[str, Any]) -> Scope:
    """The `http` scope of a request; `state` is a copy of the application's start-up state for each request."""
    script_name, path_info = split_path(request, root_path)
    path = script_name + path_info
    uri = request.param(b"REQUEST_URI").partition(b"?")[0]
    return {
        "type": "http",
        "asgi": ASGI_VERSIONS,
        "http_version": request.param(b"SERVER_PROTOCOL", b"HTTP/1.0").decode("latin-1").rpartition("/")[2],
        "method": request.param(b"REQUEST_METHOD", b"GET").decode("latin-1").upper(),
        "scheme": url_scheme(request),
        "path": path.decode("utf-8", "replace"),
        "raw_path": uri if unquote_to_bytes(uri) == path else path,
        "query_string": request.param(b"QUERY_STRING"),
        "root_path": script_name.decode("utf-8", "replace"),
        "headers": _headers(request),
        "client": _address(request, b"REMOTE_ADDR", b"REMOTE_PORT"),
        "server": _address(request, b"SERVER_NAME", b"SERVER_PORT"),
        "state": state.copy(),
        "extensions": {_PATHSEND: {}},
    }


def _headers(request: Request) -> list[tuple[bytes, bytes]]:
    headers = []
    for name, value in request.params.items():
        if name.startswith(b"HTTP_"):
            headers.append((name[5:].replace(b"_", b"-").lower(), value))
        elif value and name in (b"CONTENT_TYPE", b"CONTENT_LENGTH"):
            headers.append((name.replace(b"_", b"-").lower(), value))
    return headers


def _address(request: Request, host_name: bytes, port_name: bytes) -> tuple[str, int] | None:
    host = request.param(host_name).decode("latin-1")
    port = request.param(port_name)
    return (host, int(port) if port.isdigit() else 0) if host else None
