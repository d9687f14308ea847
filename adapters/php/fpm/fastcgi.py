"""A FastCGI client over a Unix socket, and what a server does with X-ZeroCopy: as little of both as the tests need."""

import re
import socket
import struct
from dataclasses import dataclass, field

BEGIN_REQUEST, END_REQUEST, PARAMS, STDIN, STDOUT, STDERR = 1, 3, 4, 5, 6, 7
TIMEOUT_S = 20


@dataclass
class Response:
    """What an application answered: the head as a list of (name, value), names in lower case."""

    headers: list
    body: bytes
    errors: bytes = b""
    names: list = field(default_factory=list)

    def header(self, name):
        values = [value for found, value in self.headers if found == name.lower()]
        return values[0] if values else None

    def expanded(self):
        """The body with each file in the place of its name, read from the file system now."""
        body, position = b"", 0
        for offset, length in self.names:
            with open(self.body[offset : offset + length], "rb") as file:
                body += self.body[position:offset] + file.read()
            position = offset + length
        return body + self.body[position:]


def named_spans(value, body_length):
    """The (offset, length) pairs of an X-ZeroCopy header, checked as the server checks them."""
    if value is None:
        return []
    assert re.fullmatch(r"\d+/\d+(:\d+/\d+)*", value), value
    spans = [tuple(map(int, pair.split("/"))) for pair in value.split(":")]
    end = 0
    for offset, length in spans:
        assert offset >= end and length > 0, f"unsorted or overlapping: {value}"
        end = offset + length
    assert end <= body_length, f"beyond the body: {value}"
    return spans


def _length(number):
    return bytes([number]) if number < 128 else struct.pack(">I", number | 0x80000000)


def _record(kind, content):
    return struct.pack(">BBHHBx", 1, kind, 1, len(content), 0) + content


def _read_exactly(connection, length):
    data = b""
    while len(data) < length:
        piece = connection.recv(length - len(data))
        if not piece:
            raise EOFError("the application closed the connection in the middle of a record")
        data += piece
    return data


class Exchange:
    """A request that was sent, to be read in pieces by those who want to see what comes when."""

    def __init__(self, path, parameters, content=b""):
        self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.connection.settimeout(TIMEOUT_S)
        self.connection.connect(path)
        encoded = b""
        for name, value in parameters.items():
            name, value = name.encode(), str(value).encode()
            encoded += _length(len(name)) + _length(len(value)) + name + value
        self.connection.sendall(
            _record(BEGIN_REQUEST, struct.pack(">HB5x", 1, 0))
            + _record(PARAMS, encoded)
            + _record(PARAMS, b"")
            + (_record(STDIN, content) if content else b"")
            + _record(STDIN, b"")
        )
        self.output, self.errors, self.ended = b"", b"", False

    def read_record(self):
        _, kind, _, length, padding = struct.unpack(">BBHHBx", _read_exactly(self.connection, 8))
        content = _read_exactly(self.connection, length + padding)[:length]
        if kind == STDOUT:
            self.output += content
        elif kind == STDERR:
            self.errors += content
        elif kind == END_REQUEST:
            self.ended = True

    def read_until(self, text):
        """Reads until the output so far holds `text`, which must be before its end."""
        while text not in self.output and not self.ended:
            self.read_record()
        assert not self.ended, "the whole response came at once"

    def finish(self):
        while not self.ended:
            self.read_record()
        self.connection.close()
        head, separator, body = self.output.partition(b"\r\n\r\n")
        assert separator, f"no head: {self.output[:200]}"
        headers = []
        for line in head.decode().split("\r\n"):
            name, _, value = line.partition(":")
            headers.append((name.lower(), value.strip()))
        response = Response(headers, body, self.errors)
        response.names = named_spans(response.header("x-zerocopy"), len(body))
        return response
