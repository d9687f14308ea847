"""The client's own socket, for as long as the server lends it.

Its status flags belong to the server as well, so they are never changed: each call says that it must not wait.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from enum import Enum
from typing import Callable

from baton_fastcgi.records import Buffer
from baton_fastcgi.vector import send_some


class ClientSocket:
    """A connected stream socket that came as a descriptor; it is owned, and closed by `close`."""

    def __init__(self, descriptor: int) -> None:
        """Raises OSError, with `descriptor` closed, if it is not a socket."""
        # For users of epoll: since the server holds the socket, too, closing it would not remove it from epoll.
        self.when_closing: Callable[[], None] | None = None
        try:
            # The family does not matter for sending; naming one spares the system calls that would find it out.
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fileno=descriptor)
        except OSError:
            os.close(descriptor)
            raise

    @property
    def descriptor(self) -> int:
        """The descriptor, to wait for."""
        return self._socket.fileno()

    @property
    def is_open(self) -> bool:
        """False after `close`."""
        return self._socket.fileno() >= 0

    def send_some(self, buffers: Sequence[Buffer], *, more: bool) -> int:
        """Sends what the socket takes and returns how many bytes that were. OSError: the client is gone.

        `more` tells the kernel that the next send follows at once, so that it need not send a short packet.
        """
        return send_some(self._socket, buffers, socket.MSG_MORE if more else 0)

    def send_file(self, descriptor: int, offset: int, count: int) -> int:
        """Sends from a file what the socket takes, at most `count` bytes; 0 means the end of the file.

        Raises BlockingIOError when the socket takes nothing, another OSError when the client is gone.
        """
        return os.sendfile(self._socket.fileno(), descriptor, offset, count)

    def state(self) -> ClientState:
        """The client's state. Reads none of its input."""
        try:
            return (
                ClientState.SENDING if self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) else ClientState.GONE
            )
        except BlockingIOError:
            return ClientState.QUIET
        except OSError:
            return ClientState.GONE

    def close(self) -> None:
        """Closes this descriptor; the connection stays up as long as the server holds its own."""
        if self.when_closing is not None:
            self.when_closing()
            self.when_closing = None
        self._socket.close()


class ClientState(Enum):
    """The state of a client's socket."""

    QUIET = 1
    # It has sent more data, which hides its end.
    SENDING = 2
    # It has closed its side, or the connection is broken.
    GONE = 3
