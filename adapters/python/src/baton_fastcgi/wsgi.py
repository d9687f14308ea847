"""WSGI (PEP 3333) over a FastCGI request: environ, input, errors, start_response and the iteration of the body."""

from __future__ import annotations

import os
import stat
import traceback
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Callable, Union

from baton_fastcgi.connection import Connection, DisconnectedError
from baton_fastcgi.environment import wsgi_environ
from baton_fastcgi.files import File, FileRange
from baton_fastcgi.head import BadHeadError, Head, make_head
from baton_fastcgi.records import Buffer
from baton_fastcgi.request import Request
from baton_fastcgi.response import Response
from baton_fastcgi.waiting import run
from baton_fastcgi.wsgi_streams import ErrorStream, body_views, open_input

Environ = dict[str, Any]
ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType]
Application = Callable[[Environ, Callable[..., Callable[[bytes], None]]], Iterable[Union[bytes, File]]]


class FileWrapper:
    """`wsgi.file_wrapper`: a file from its position on, as an iterable; returned as it is, it is sent by descriptor."""

    def __init__(self, filelike: Any, block_size: int = 65_536) -> None:
        self.filelike = filelike
        self.block_size = block_size
        if hasattr(filelike, "close"):
            self.close = filelike.close

    def __iter__(self) -> Iterator[bytes]:
        while True:
            block = self.filelike.read(self.block_size)
            if not block:
                return
            yield block

    def as_range(self) -> FileRange | None:
        """The rest of the file, if it is a regular file with a descriptor."""
        try:
            descriptor = self.filelike.fileno()
            status = os.fstat(descriptor)
            offset = self.filelike.tell()
        except (AttributeError, OSError, ValueError):
            return None
        if not stat.S_ISREG(status.st_mode) or offset > status.st_size:
            return None
        name = getattr(self.filelike, "name", None)
        path = os.path.abspath(os.fsdecode(name)) if isinstance(name, (str, bytes)) and offset == 0 else None
        return FileRange(descriptor, offset, status.st_size - offset, path)


class Exchange:
    """Runs an application once: one request, one response."""

    def __init__(self, connection: Connection, request: Request, root_path: bytes | None) -> None:
        self._connection = connection
        self._request = request
        self._response = Response(connection, request)
        self._errors = ErrorStream(connection)
        self._root_path = root_path

    def run(self, application: Application, *, multithread: bool, multiprocess: bool) -> None:
        """Calls the application and sends its response. Catches exceptions, except those that end the process."""
        environ: Environ = wsgi_environ(self._request, self._root_path)
        environ["wsgi.input"] = open_input(self._connection, self._request)
        environ["baton.body_views"] = body_views(self._connection)
        environ["wsgi.errors"] = self._errors
        environ["wsgi.multithread"] = multithread
        environ["wsgi.multiprocess"] = multiprocess
        environ["wsgi.file_wrapper"] = FileWrapper
        try:
            self._run(application, environ)
        except DisconnectedError:
            pass
        except Exception:
            self._report_failure()
        except BaseException:
            # SystemExit and the like: the process ends, but not with a client that waits.
            self._report_failure()
            raise
        finally:
            self._errors.end()

    def _run(self, application: Application, environ: Environ) -> None:
        iterable = application(environ, self._start_response)
        try:
            self._send_body(iterable)
        finally:
            close = getattr(iterable, "close", None)
            if close is not None:
                close()
        if not self._response.has_ended:
            run(self._response.abandon())

    def _send_body(self, iterable: Iterable[bytes | File]) -> None:
        if isinstance(iterable, FileWrapper):
            file = iterable.as_range()
            if file is not None:
                self._write([file], last=True)
                return
        if isinstance(iterable, (list, tuple)):
            self._write([_checked(part) for part in iterable], last=True)
            return
        for part in iterable:
            if self._response.is_unwanted:
                return
            if part or isinstance(part, File):
                self._write([_checked(part)], last=False)
        self._write([], last=True)

    def _write(self, parts: Sequence[Buffer | FileRange | File], *, last: bool) -> None:
        if not self._response.is_started:
            raise RuntimeError("the application has not called start_response")
        if not self._response.is_unwanted:
            run(self._response.write(parts, last=last))

    def _start_response(
        self, status: str, headers: list[tuple[str, str]], exc_info: ExceptionInfo | None = None
    ) -> Callable[[bytes], None]:
        if exc_info is not None:
            try:
                if self._response.has_begun:
                    raise exc_info[1].with_traceback(exc_info[2])
            finally:
                exc_info = None
        elif self._response.is_started:
            raise RuntimeError("start_response was called before, and no exc_info is given")
        self._response.start(_make_head(status, headers))
        return self._write_bytes

    def _write_bytes(self, data: bytes) -> None:
        try:
            self._write([_checked(data)], last=False)
        except DisconnectedError:
            # The client is gone, which is not the application's fault.
            return

    def _report_failure(self) -> None:
        """500 with the traceback on the error stream, or the end of a partly sent response."""
        response = self._response
        if self._request.body.is_aborted:
            return self._end_unwanted()
        self._errors.write(traceback.format_exc())
        try:
            if response.has_begun:
                run(response.fail())
            else:
                response.start(internal_server_error())
                run(response.write([SERVER_ERROR_TEXT], last=True))
        except DisconnectedError:
            return None
        return None

    def _end_unwanted(self) -> None:
        try:
            run(self._response.abandon())
        except DisconnectedError:
            return


SERVER_ERROR_TEXT = b"Internal Server Error\n"


def internal_server_error() -> Head:
    """The head of a response that replaces the application's."""
    return make_head(500, None, [(b"Content-Type", b"text/plain; charset=utf-8")])


def _checked(part: Any) -> bytes | File:
    if isinstance(part, (bytes, File)):
        return part
    raise TypeError(f"a response body consists of bytes, not of {type(part).__name__}")


def _make_head(status: str, headers: list[tuple[str, str]]) -> Head:
    if not isinstance(status, str) or not status[:3].isascii() or not status[:3].isdigit() or status[3:4].strip():
        raise BadHeadError(f"{status!r} is not a status line")
    try:
        fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        return make_head(int(status[:3]), status[4:].encode("latin-1"), fields)
    except UnicodeEncodeError:
        raise BadHeadError("a character beyond latin-1 in the status or a header") from None
