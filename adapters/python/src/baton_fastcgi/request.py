"""A FastCGI request: parameters, body, and the server's offer."""

from __future__ import annotations

from collections import deque
from typing import Callable

from baton_fastcgi.client import ClientSocket
from baton_fastcgi.offer import PassFdOffer


class Body:
    """The part of the request's body that has come and has not been read."""

    def __init__(self) -> None:
        self.held_bytes = 0
        self.is_ended = False
        self.is_aborted = False
        self._pieces: deque[bytes] = deque()

    def add(self, piece: bytes) -> None:
        """Takes the content of a STDIN record; an empty one ends the body."""
        if self.is_ended:
            return
        if not piece:
            self.is_ended = True
            return
        self._pieces.append(piece)
        self.held_bytes += len(piece)

    def abort(self) -> None:
        """The answer is no longer wanted, and no more of the body comes."""
        self.is_aborted = True

    def take(self, count_max: int) -> bytes:
        """The next bytes, at most `count_max`; empty when nothing has come, or the body has ended."""
        if not self._pieces:
            return b""
        piece = self._pieces.popleft()
        if len(piece) > count_max:
            self._pieces.appendleft(piece[count_max:])
            piece = piece[:count_max]
        self.held_bytes -= len(piece)
        return piece


class Request:
    """One request; names and values of `params` are bytes as they came, the offer is left out."""

    def __init__(self, params: dict[bytes, bytes]) -> None:
        self.params = params
        self.body = Body()
        # With `passfd`: the client's socket and how to use it.
        self.client: ClientSocket | None = None
        self.passfd: PassFdOffer | None = None
        # With `shm`: whether the connection's region may be used for the answer.
        self.may_use_region = False
        # The server has asked for the client's socket (GIVE_BACK).
        self.is_wanted_back = False
        self.when_wanted_back: Callable[[], None] | None = None

    def param(self, name: bytes, default: bytes = b"") -> bytes:
        """A parameter's value."""
        return self.params.get(name, default)

    @property
    def is_head(self) -> bool:
        """Whether the answer has no body because of its method."""
        return self.params.get(b"REQUEST_METHOD") == b"HEAD"

    def take_client(self) -> ClientSocket | None:
        """The client's socket; the caller closes it."""
        client, self.client = self.client, None
        return client

    def release(self) -> None:
        """Closes the client's socket, unless it was taken."""
        client = self.take_client()
        if client is not None:
            client.close()
