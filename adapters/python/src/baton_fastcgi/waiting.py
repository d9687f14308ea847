"""How the protocol waits: the one difference between threads and event loops.

Everything that talks to the server is written once, as coroutines over non-blocking sockets that wait for nothing but
`Waiter.wait`. Under an event loop that suspends them. In a thread it blocks in `poll` instead and never suspends, so
that `run` can drive such a coroutine to its end with plain calls.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Coroutine
from typing import Any, Callable, Protocol, TypeVar

from baton_fastcgi.client import ClientSocket

T = TypeVar("T")


class Input(Protocol):
    """The side of a connection that its waiter looks after."""

    @property
    def descriptor(self) -> int:
        """The connection's socket."""

    @property
    def wants_input(self) -> bool:
        """False while more input has to stay in the kernel, and after the end."""

    def receive(self) -> None:
        """Receives available input, without waiting."""

    def hung_up(self) -> None:
        """Notes that the peer has gone, though input is not wanted."""


class Waiter(Protocol):
    """Waits for something to happen on a connection."""

    async def wait(self, *, writable: int | None = None, timeout_s: float | None = None) -> bool:
        """Returns when input has been received, or the descriptor `writable` takes bytes, or it is False: time is up.

        It may return early; callers look at what they wait for, again and again.
        """

    def look(self) -> None:
        """Receives available input, unless another thread does."""


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that waits by `BlockingWaiter` only."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError("a coroutine of an event loop was run in a thread")


class BlockingWaiter:
    """Waits in `poll(2)`."""

    def __init__(self, source: Input) -> None:
        self._source = source

    async def wait(self, *, writable: int | None = None, timeout_s: float | None = None) -> bool:
        source = self._source
        own = source.descriptor
        interest = {own: select.POLLIN if source.wants_input else 0}
        if writable is not None:
            interest[writable] = interest.get(writable, 0) | select.POLLOUT
        poll = select.poll()
        for descriptor, events in interest.items():
            poll.register(descriptor, events)
        ready = poll.poll(None if timeout_s is None else max(0.0, timeout_s * 1000))
        for descriptor, events in ready:
            if descriptor != own:
                continue
            if events & select.POLLIN:
                source.receive()
            elif events & (select.POLLHUP | select.POLLERR):
                source.hung_up()
        return bool(ready)

    def look(self) -> None:
        if self._source.wants_input:
            self._source.receive()


class LoopWaiter:
    """Waits on an asyncio loop. Receives input as it comes, also without a waiter."""

    def __init__(self, source: Input, loop: asyncio.AbstractEventLoop) -> None:
        self._source = source
        self._loop = loop
        self._waiting: set[asyncio.Future[bool]] = set()
        self._is_reading = False
        self.update()

    def update(self) -> None:
        """Call it when `wants_input` may have changed for another reason than input."""
        if self._source.wants_input != self._is_reading:
            self._is_reading = not self._is_reading
            if self._is_reading:
                self._loop.add_reader(self._source.descriptor, self._receive)
            else:
                self._loop.remove_reader(self._source.descriptor)

    def close(self) -> None:
        """Forgets the socket; call it before closing the socket."""
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._source.descriptor)
        self.wake()

    def wake(self) -> None:
        """Wakes all waiters."""
        for future in self._waiting:
            _settle(future, True)

    async def wait(self, *, writable: int | None = None, timeout_s: float | None = None) -> bool:
        self.update()
        future: asyncio.Future[bool] = self._loop.create_future()
        timer = None if timeout_s is None else self._loop.call_later(timeout_s, _settle, future, False)
        if writable is not None:
            self._loop.add_writer(writable, _settle, future, True)
        self._waiting.add(future)
        try:
            return await future
        finally:
            self._waiting.discard(future)
            if writable is not None:
                self._loop.remove_writer(writable)
            if timer is not None:
                timer.cancel()

    async def wait_for_client(self, client: ClientSocket) -> None:
        """Like `wait`, and also returns when the client has sent something or closed, or the socket is closed here."""
        descriptor = client.descriptor
        future: asyncio.Future[bool] = self._loop.create_future()

        def forget() -> None:
            self._loop.remove_reader(descriptor)
            client.when_closing = None
            _settle(future, True)

        client.when_closing = forget
        self._loop.add_reader(descriptor, _settle, future, True)
        self._waiting.add(future)
        try:
            await future
        finally:
            self._waiting.discard(future)
            if client.when_closing is forget:
                forget()

    def look(self) -> None:
        """Nothing to do: the loop looks all the time."""

    def _receive(self) -> None:
        self._source.receive()
        self.update()
        self.wake()


def _settle(future: asyncio.Future[bool], value: bool) -> None:
    if not future.done():
        future.set_result(value)


MakeWaiter = Callable[[Input], Waiter]
