"""`wsgi.input` and `wsgi.errors` of a request."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterator
from typing import Any

from baton_fastcgi.connection import Connection, DisconnectedError
from baton_fastcgi.request import Request
from baton_fastcgi.waiting import run


class ErrorStream(io.TextIOBase):
    """`wsgi.errors`: the server's error log during the request, this process's standard error afterwards."""

    def __init__(self, connection: Connection) -> None:
        self._connection: Connection | None = connection
        self._thread = threading.get_ident()

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        connection = self._connection
        data = text.encode("utf-8", "backslashreplace")
        if data and (connection is None or not connection.add_error_output(data)):
            self.flush()
            if connection is None or not connection.add_error_output(data):
                sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        # Other threads of the application may write, but only the one that answers sends.
        connection = self._connection
        if connection is None or self._thread != threading.get_ident():
            return
        try:
            run(connection.flush())
        except DisconnectedError:
            return

    def end(self) -> None:
        """The request has ended."""
        self._connection = None


def open_input(connection: Connection, request: Request) -> io.BufferedIOBase:
    """`wsgi.input`: the request's body as it comes."""
    if request.body.is_read:
        return io.BytesIO()
    return io.BufferedReader(_Input(connection))


def body_views(connection: Connection) -> Iterator[memoryview]:
    """`baton.body_views`: the pieces of the body as they come, where they are."""
    while True:
        view = run(connection.show_body())
        if not view:
            return
        yield view


class _Input(io.RawIOBase):
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        memory = memoryview(buffer).cast("B")
        piece = run(self._connection.read_body(len(memory)))
        memory[: len(piece)] = piece
        return len(piece)
