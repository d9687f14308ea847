"""Files as pieces of a response body: sent from their descriptor, or named so that the server sends them."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from typing import Union

from baton_fastcgi.records import Buffer

# Of one file read at a time, when its bytes have to pass through this process.
READ_BYTES = 4 * 65_528
# The server's limits: names per response, bytes per name, and of the header with their positions.
_NAMES_MAX = 1024
_NAME_BYTES_MAX = 4096
_MAP_BYTES_MAX = 8 * 1024


class File:
    """A whole file as a piece of a response: `return [b"<pre>", File("/srv/log.txt"), b"</pre>"]`.

    Where the server allows it (`BATON_ZEROCOPY`) and all of the body is a list or tuple, only the file's name leaves
    the application. Else the bytes are sent from the file. What is sent is what the file holds at that time.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """`path` is made absolute now; the file is looked at when it is sent."""
        self.path = os.path.abspath(os.fspath(path))

    def __bytes__(self) -> bytes:
        with open(self.path, "rb") as file:
            return file.read()

    def __repr__(self) -> str:
        return f"File({self.path!r})"


class FileRange:
    """`length` bytes of an open regular file from `offset` on.

    `path` is its absolute name if this is all of the file, else None. `owns` says that `close` closes the descriptor.
    """

    def __init__(self, descriptor: int, offset: int, length: int, path: str | None, *, owns: bool = False) -> None:
        self.descriptor = descriptor
        self.offset = offset
        self.length = length
        self.path = path
        self._owns = owns

    def __len__(self) -> int:
        return self.length

    def skip(self, count: int) -> None:
        """Leaves out the first `count` bytes."""
        self.offset += count
        self.length -= count
        self.path = None

    def cut(self, length: int) -> None:
        """Leaves out everything after the first `length` bytes."""
        self.length = min(self.length, length)
        self.path = None

    def read(self, count_max: int = READ_BYTES) -> bytes:
        """Reads and leaves out the next bytes; empty if the file has become shorter than it was."""
        piece = os.pread(self.descriptor, min(count_max, self.length), self.offset)
        self.skip(len(piece))
        return piece

    def read_into(self, memory: memoryview) -> int:
        """Like `read`, into `memory`; returns how many bytes that were."""
        count = os.preadv(self.descriptor, [memory[: self.length]], self.offset)
        self.skip(count)
        return count

    def close(self) -> None:
        """Closes the descriptor if it is owned; twice is once."""
        if self._owns:
            self._owns = False
            os.close(self.descriptor)


Part = Union[Buffer, FileRange]


def open_file(path: str) -> FileRange:
    """All of the regular file `path`. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is not a regular file")
    except BaseException:
        os.close(descriptor)
        raise
    return FileRange(descriptor, 0, status.st_size, path, owns=True)


def allowed_roots(value: bytes) -> list[str]:
    """The folders of `BATON_ZEROCOPY`: files below them may be named."""
    return [root for root in os.fsdecode(value).split(":") if root.startswith("/")]


def name_for_server(file: FileRange, roots: list[str]) -> bytes | None:
    """The name under which the server may open `file`, if there is one: below a root, without a link on the way."""
    if file.path is None or not roots:
        return None
    real = os.path.realpath(file.path)
    for root in roots:
        real_root = os.path.realpath(root).rstrip("/")
        if not real.startswith(real_root + "/"):
            continue
        name = os.fsencode(root.rstrip("/") + real[len(real_root) :])
        if len(name) > _NAME_BYTES_MAX or any(byte < 0x20 or byte == 0x7F for byte in name):
            return None
        # The application may hold a file that has been replaced since: then its name means another one.
        try:
            named = os.stat(real)
        except OSError:
            return None
        return name if os.path.samestat(named, os.fstat(file.descriptor)) else None
    return None


def name_map(parts: Sequence[Part], roots: list[str]) -> tuple[bytes, list[Buffer]] | None:
    """The value of `X-ZeroCopy`, and the body with names instead of files; None unless all files can be named."""
    if not 0 < sum(isinstance(part, FileRange) for part in parts) <= _NAMES_MAX:
        return None
    pairs: list[bytes] = []
    body: list[Buffer] = []
    at = 0
    for part in parts:
        piece: Buffer | None = name_for_server(part, roots) if isinstance(part, FileRange) else part
        if piece is None:
            return None
        if isinstance(part, FileRange):
            pairs.append(b"%d/%d" % (at, len(piece)))
        body.append(piece)
        at += len(piece)
    value = b":".join(pairs)
    return (value, body) if len(value) <= _MAP_BYTES_MAX else None
