"""A FastCGI request: parameters, body, and the server's offer."""

from __future__ import annotations

from typing import Callable

from baton_fastcgi.body import Body
from baton_fastcgi.client import ClientSocket
from baton_fastcgi.offer import PassFdOffer


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
        """Closes the client's socket, unless it was taken, and lets go of the body."""
        self.body.release()
        client = self.take_client()
        if client is not None:
            client.close()
