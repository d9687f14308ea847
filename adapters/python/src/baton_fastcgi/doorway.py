"""The listening socket of a process with threads: open, and shared fairly with the other processes."""

from __future__ import annotations

import select
import socket

# How long a process with enough connections leaves a new one to the others, in seconds.
COURTESY_S = 0.01


class Doorway:
    """The listening socket as one of the things that an epoll waits for.

    A server keeps connections and gives a request to an idle one, so connections should be spread over processes as
    threads are. A process with a connection for each thread is *full*: it waits a moment before it takes another
    one, so that processes that are not full come first, but no connection waits for ever.

    Of processes that are not full the kernel wakes one per connection (EPOLLEXCLUSIVE), those that are full it always
    wakes: else the wake-up could go to a full one alone.
    """

    def __init__(self, listener: socket.socket, epoll: select.epoll) -> None:
        self._listener = listener
        self._epoll = epoll
        self._mode = 0
        listener.setblocking(False)

    @property
    def descriptor(self) -> int:
        """The listening socket."""
        return self._listener.fileno()

    @property
    def is_courteous(self) -> bool:
        """Whether it was opened as the doorway of a full process."""
        return self._mode == select.EPOLLIN

    def open(self, *, is_full: bool) -> None:
        """Waits for connections from now on."""
        mode = select.EPOLLIN if is_full else select.EPOLLIN | select.EPOLLEXCLUSIVE
        if mode != self._mode:
            # The kernel does not change an exclusive registration.
            self.close()
            self._epoll.register(self.descriptor, mode)
            self._mode = mode

    def close(self) -> None:
        """Stops waiting for connections; the socket stays open."""
        if self._mode:
            self._epoll.unregister(self.descriptor)
            self._mode = 0

    def accept(self) -> socket.socket | None:
        """The next connection; None when another process or thread was faster."""
        try:
            return self._listener.accept()[0]
        except OSError:
            return None
