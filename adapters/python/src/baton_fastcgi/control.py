"""How a serving process stops: by a signal, by the end of its supervisor, or by itself."""

from __future__ import annotations

import os
import signal
from types import FrameType

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Control:
    """Descriptors that become readable when there is something to be told, for epoll or an event loop.

    Signals arrive as bytes in a pipe, so they are seen by whichever thread is free. Without a watching process SIGHUP
    stops as well: the supervisor restarts this process.
    """

    def __init__(self, *, lifeline: int | None = None, ready: int | None = None) -> None:
        """`lifeline` ends when the watching process does; into `ready` one byte is written. Both are None without it.

        Has to be made in the main thread, since it sets signal handlers.
        """
        self._lifeline = lifeline
        self._ready = ready
        self._reading, self._writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        # A supervisor uses SIGTERM; a terminal's signals to the whole group are for the supervisor.
        self._stops = {signal.SIGTERM} if lifeline is not None else {*_STOP_SIGNALS, signal.SIGHUP}
        for number in (*_STOP_SIGNALS, signal.SIGHUP):
            signal.signal(number, _note)
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        self._is_stopped = False

    @property
    def descriptors(self) -> list[int]:
        """What to wait for."""
        return [self._reading] if self._lifeline is None else [self._reading, self._lifeline]

    def says_stop(self, descriptor: int) -> bool:
        """Looks at one of the descriptors that is readable; True once the process has to stop, and ever after."""
        if self._is_stopped or descriptor == self._lifeline:
            self._is_stopped = True
        elif any(number in self._stops for number in self._take_signals()):
            self.wake_all()
        return self._is_stopped

    def wake_all(self) -> None:
        """Stop: from now on the descriptors are readable, so that every waiting thread sees it."""
        self._is_stopped = True
        try:
            os.write(self._writing, b"\0")
        except BlockingIOError:
            return

    def say_ready(self) -> None:
        """The application is loaded and connections are taken."""
        if self._ready is not None:
            os.write(self._ready, b"r")
            os.close(self._ready)
            self._ready = None

    def _take_signals(self) -> bytes:
        try:
            return os.read(self._reading, 64)
        except BlockingIOError:
            return b""


def _note(_number: int, _frame: FrameType | None) -> None:
    """The wake-up pipe carries the signal."""
