"""The server's end of FastCGI and of the hand-over protocol, written from the documents and sharing no code with the
package: what Baton does with an application, as far as the package can see it.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

LIMIT_S = 20.0
FIELDS = b"Date: Fri, 20 Nov 2026 12:00:00 GMT\r\nServer: baton\r\n"


def record(kind: int, request_id: int, content: bytes = b"", padding: int = 0) -> bytes:
    return struct.pack(">BBHHBx", 1, kind, request_id, len(content), padding) + content + bytes(padding)


def pair(name: bytes, value: bytes) -> bytes:
    lengths = b"".join(bytes([n]) if n < 128 else struct.pack(">I", n | 0x80000000) for n in (len(name), len(value)))
    return lengths + name + value


def begin(request_id: int = 1, keep: bool = True, role: int = 1) -> bytes:
    return record(1, request_id, struct.pack(">HB5x", role, 1 if keep else 0))


def params_records(params: dict[str, str | bytes], request_id: int = 1, offer: bytes | None = None) -> bytes:
    block = pair(b"BATON_OFFER", offer) if offer is not None else b""
    block += b"".join(pair(n.encode(), v if isinstance(v, bytes) else v.encode()) for n, v in params.items())
    out = b"".join(record(4, request_id, block[i : i + 60_000]) for i in range(0, len(block), 60_000))
    return out + record(4, request_id)


def stdin_records(body: bytes, request_id: int = 1) -> list[bytes]:
    out = [record(5, request_id, body[i : i + 65_535]) for i in range(0, len(body), 65_535)]
    return [*out, record(5, request_id)]


NO_BODY = record(5, 1)


def request_params(method: str, target: str, headers: dict[str, str], body: bytes) -> dict[str, str | bytes]:
    path, _, query = target.partition("?")
    params: dict[str, str | bytes] = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "REQUEST_URI": target,
        "SERVER_PROTOCOL": "HTTP/1.1",
        "SERVER_NAME": "shop.test",
        "SERVER_PORT": "80",
        "REMOTE_ADDR": "192.0.2.7",
        "REMOTE_PORT": "5555",
        "REQUEST_SCHEME": "http",
    }
    if body:
        params["CONTENT_LENGTH"] = str(len(body))
    for name, value in headers.items():
        key = name.upper().replace("-", "_")
        params[key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") or key.startswith("BATON_") else "HTTP_" + key] = value
    return params


@dataclass
class Answered:
    flags: int
    outcome: int
    status: int
    head_bytes: int
    body_bytes: int


@dataclass
class Result:
    """All that came back for one request."""

    stdout: bytes = b""
    stderr: bytes = b""
    # STDOUT content that came in records, not through the region.
    inline_bytes: int = 0
    slices: list[tuple[int, int]] = field(default_factory=list)
    answered: Answered | None = None
    rest: Answered | None = None
    # Why the client's socket was not used.
    declined: int | None = None
    # The application takes bodies by reference, and has returned so many bytes of the pool.
    takes_bodies: bool = False
    freed_bytes: int = 0
    app_status: int | None = None
    protocol_status: int | None = None
    # The client's bytes, by `passfd`.
    wire: bytes = b""

    @property
    def is_complete(self) -> bool:
        return self.app_status is not None

    def cgi(self) -> tuple[list[tuple[bytes, bytes]], bytes]:
        head, _, body = self.stdout.partition(b"\r\n\r\n")
        fields = [line.partition(b": ")[::2] for line in head.split(b"\r\n")]
        return [(name, value) for name, value in fields], body

    @property
    def status(self) -> bytes:
        return dict(self.cgi()[0]).get(b"Status", b"")

    @property
    def body(self) -> bytes:
        return self.cgi()[1]

    def header(self, name: str) -> bytes | None:
        for key, value in self.cgi()[0]:
            if key.lower() == name.lower().encode():
                return value
        return None


class Application:
    """A connection to an application, as the server holds it."""

    def __init__(self, address: str | tuple[str, int]) -> None:
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        deadline = time.monotonic() + LIMIT_S
        while True:
            self.socket = socket.socket(family, socket.SOCK_STREAM)
            self.socket.settimeout(LIMIT_S)
            try:
                self.socket.connect(address)
                break
            except (FileNotFoundError, ConnectionRefusedError):
                self.socket.close()
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
        self._received = bytearray()
        self._unsent = bytearray()
        self.socket.setblocking(False)
        self.region: mmap.mmap | None = None
        self.region_fd = -1

    def __enter__(self) -> Application:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()
        if self.region is not None:
            self.region.close()
            os.close(self.region_fd)
            self.region = None

    def send(self, data: bytes, descriptors: Iterable[int] = ()) -> None:
        """Sends what can be sent now; `next_record` sends the rest while it waits, as a server would."""
        fds = list(descriptors)
        if fds:
            assert not self._unsent
            data = data[socket.send_fds(self.socket, [data], fds) :]
        self._unsent += data
        self._send_some()

    def _send_some(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: self.socket.send(self._unsent)]
        except BlockingIOError:
            return
        except (BrokenPipeError, ConnectionResetError):
            # Its answers before it closed can still be read.
            self._unsent.clear()

    def _receive(self) -> bytes:
        readable, writable, _ = select.select([self.socket], [self.socket] if self._unsent else [], [], LIMIT_S)
        if writable:
            self._send_some()
        elif not readable:
            raise TimeoutError("the application neither answers nor reads")
        if not readable:
            return self._receive()
        try:
            return self.socket.recv(1 << 20)
        except ConnectionResetError:
            return b""

    def next_record(self) -> tuple[int, int, bytes] | None:
        """The next record; None at the end of the connection."""
        while True:
            if len(self._received) >= 8:
                _, kind, request_id, length, padding = struct.unpack_from(">BBHHB", self._received)
                end = 8 + length + padding
                if len(self._received) >= end:
                    content = bytes(self._received[8 : 8 + length])
                    del self._received[:end]
                    return kind, request_id, content
            piece = self._receive()
            if not piece:
                return None
            self._received += piece

    def result(self, request_id: int = 1, free: bool = True, on_record: Callable[[int], None] | None = None) -> Result:
        """Everything up to END_REQUEST, or the end of the connection."""
        result = Result()
        stdout = bytearray()
        while True:
            each = self.next_record()
            if each is None:
                break
            kind, got_id, content = each
            assert got_id == request_id
            if on_record is not None:
                on_record(kind)
            if kind == 6:
                stdout += content
                result.inline_bytes += len(content)
            elif kind == 7:
                result.stderr += content
            elif kind == 3:
                result.app_status, result.protocol_status = struct.unpack(">IB3x", content)
                break
            elif kind == 66 and content[0] == 1:
                freed = 0
                for at in range(1, len(content), 8):
                    offset, length = struct.unpack_from(">II", content, at)
                    assert self.region is not None
                    assert length > 0
                    assert offset + length <= len(self.region)
                    stdout += self.region[offset : offset + length]
                    # Overwrite freed bytes, so that a late use shows.
                    self.region[offset : offset + length] = b"\xee" * length
                    result.slices.append((offset, length))
                    freed += length
                if free:
                    self.send(record(66, request_id, b"\x04" + struct.pack(">I", freed)))
            elif kind == 66 and content[0] == 2:
                assert result.answered is None
                result.answered = Answered(*struct.unpack(">BBHQQ", content[1:]))
            elif kind == 66 and content[0] == 3:
                assert result.rest is None
                assert not stdout
                result.rest = Answered(*struct.unpack(">BBHQQ", content[1:]))
            elif kind == 66 and content[0] == 6:
                result.declined = content[1]
            elif kind == 66 and content == b"\x07":
                assert not result.takes_bodies
                result.takes_bodies = True
            elif kind == 66 and content[0] == 4:
                result.freed_bytes += int.from_bytes(content[1:], "big")
            else:
                raise AssertionError(f"a record of kind {kind}: {content!r}")
        result.stdout = bytes(stdout)
        return result

    def lend(self, target: str, words: str, records: bytes, descriptors: Iterable[int] = (), length: int = 0) -> None:
        """Sends a request whose body comes as `records` say, with an offer of no transport."""
        params = request_params("POST", target, {"CONTENT_LENGTH": str(length)}, b"")
        fds = list(descriptors)
        offer = f"unknown fds={len(fds)} {words}\n".encode()
        self.send(begin() + params_records(params, offer=offer), fds)
        self.send(records)

    # ----- whole requests, one function for each transport

    def plain(
        self, method: str, target: str, headers: dict[str, str] | None = None, body: bytes = b"", keep: bool = True
    ) -> Result:
        params = request_params(method, target, headers or {}, body)
        self.send(begin(keep=keep) + params_records(params))
        self.send(b"".join(stdin_records(body)))
        return self.result()

    def shm(
        self,
        method: str,
        target: str,
        headers: dict[str, str] | None = None,
        body: bytes = b"",
        size: int = 256 * 1024,
        at: int = 0,
        free: int | None = None,
    ) -> Result:
        params = request_params(method, target, headers or {}, body)
        fds = []
        if self.region is None:
            self.region_fd = os.memfd_create("region")
            os.ftruncate(self.region_fd, size)
            self.region = mmap.mmap(self.region_fd, size)
            fds = [self.region_fd]
        words = f"shm size={len(self.region)} at={at} free={len(self.region) if free is None else free}"
        offer = words + (" fds=1" if fds else "") + "\n"
        self.send(begin() + params_records(params, offer=offer.encode()), fds)
        self.send(b"".join(stdin_records(body)))
        return self.result()

    def passfd(
        self,
        method: str,
        target: str,
        headers: dict[str, str] | None = None,
        body: bytes = b"",
        minor: int = 1,
        keep: int = 1,
        patience: int = 5000,
        edits: bytes = b"",
    ) -> Result:
        """The client reads all the time, as one that is quick."""
        with Client() as client:
            self.offer_client(client, method, target, headers, body, minor, keep, patience, edits)
            self.send(b"".join(stdin_records(body)))
            reader = client.read_in_background()
            result = self.result()
            # The application must have closed its descriptor by now: then this ends the connection.
            client.served.close()
            result.wire = reader()
            return result

    def offer_client(
        self,
        client: Client,
        method: str,
        target: str,
        headers: dict[str, str] | None = None,
        body: bytes = b"",
        minor: int = 1,
        keep: int = 1,
        patience: int = 5000,
        edits: bytes = b"",
    ) -> None:
        params = request_params(method, target, headers or {}, body)
        params["SERVER_PROTOCOL"] = f"HTTP/1.{minor}"
        head = int(method == "HEAD")
        name = b"passfd-codes" if edits else b"passfd"
        words = b" fds=1 minor=%d keep=%d head=%d patience=%d new=word\n" % (minor, keep, head, patience)
        self.send(begin() + params_records(params, offer=name + words + edits + FIELDS), [client.served.fileno()])


class Pool:
    """Memory as a server lends it: sealed against every writer but this one."""

    def __init__(self, size: int) -> None:
        self.descriptor = os.memfd_create("pool", os.MFD_ALLOW_SEALING)
        os.ftruncate(self.descriptor, size)
        self.memory = mmap.mmap(self.descriptor, size)
        # Python has no name for F_SEAL_FUTURE_WRITE before 3.13.
        seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | 0x10
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)

    def close(self) -> None:
        self.memory.close()
        os.close(self.descriptor)

    @staticmethod
    def slices(*ranges: tuple[int, int]) -> bytes:
        return record(66, 1, b"\x01" + b"".join(struct.pack(">II", *each) for each in ranges))


class Client:
    """A client's connection over loopback: its own end, and the one that the server holds."""

    def __init__(self, receive_bytes: int | None = None) -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            self.socket = socket.socket()
            if receive_bytes is not None:
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
            self.socket.settimeout(LIMIT_S)
            self.socket.connect(listener.getsockname())
            self.served, _ = listener.accept()
        if receive_bytes is not None:
            self.served.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, receive_bytes)
        self.served.setblocking(False)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()
        self.served.close()

    def read_all(self) -> bytes:
        pieces = []
        while True:
            try:
                piece = self.socket.recv(1 << 20)
            except ConnectionResetError:
                break
            if not piece:
                break
            pieces.append(piece)
        return b"".join(pieces)

    def read_in_background(self) -> Callable[[], bytes]:
        """Starts reading to the end; the function that is returned waits for it."""
        pieces: list[bytes] = []
        thread = threading.Thread(target=lambda: pieces.append(self.read_all()), daemon=True)
        thread.start()

        def join() -> bytes:
            thread.join(LIMIT_S)
            assert pieces, "the connection to the client has not ended: a copy of it is open"
            return pieces[0]

        return join


def as_http(result: Result, method: str = "GET", minor: int = 1, keep: bool = True) -> bytes:
    """Baton's answer to the client from an ordinary response, framed as in section 4."""
    fields, body = result.cgi()
    status = dict(fields)[b"Status"]
    out = b"HTTP/1.1 " + (status if b" " in status else status + b" ") + b"\r\n" + FIELDS
    length = None
    for name, value in fields:
        if name.lower() == b"content-length":
            length = value
        elif name != b"Status" and not name.lower().startswith(b"x-accel-"):
            out += name + b": " + value + b"\r\n"
    has_no_body = status[:3] in (b"204", b"304")
    is_unknown = length is None and not has_no_body and method != "HEAD"
    if length is not None:
        out += b"Content-Length: " + length + b"\r\n"
    if is_unknown and minor:
        out += b"Transfer-Encoding: chunked\r\n"
    if not keep or (is_unknown and not minor):
        out += b"Connection: close\r\n"
    elif not minor:
        out += b"Connection: keep-alive\r\n"
    return out + b"\r\n" + body


def unchunk(wire: bytes) -> bytes:
    """The answer with its body decoded from its chunks, which must be complete."""
    head, _, rest = wire.partition(b"\r\n\r\n")
    if b"Transfer-Encoding: chunked" not in head:
        return wire
    body = bytearray()
    while True:
        size, _, rest = rest.partition(b"\r\n")
        count = int(size, 16)
        if count == 0:
            assert rest == b"\r\n", "bytes after the last chunk"
            return head + b"\r\n\r\n" + bytes(body)
        assert rest[count : count + 2] == b"\r\n"
        body += rest[:count]
        rest = rest[count + 2 :]
