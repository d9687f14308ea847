"""One process that serves ASGI: an asyncio loop, a task for each connection."""

from __future__ import annotations

import asyncio
import math
import socket
import traceback
from typing import Any

from baton_fastcgi.asgi import Application, Exchange
from baton_fastcgi.connection import Connection
from baton_fastcgi.control import Control
from baton_fastcgi.lifespan import Lifespan
from baton_fastcgi.settings import Settings
from baton_fastcgi.threaded import FRESH_S
from baton_fastcgi.waiting import Input, LoopWaiter

# Before it is tried again after an error of accept (no descriptors left, above all), in seconds.
_PAUSE_S = 0.1


class LoopedServer:
    """Serves `application` until `control` says stop, or the process has answered its share of requests."""

    def __init__(self, application: Application, listener: socket.socket, settings: Settings, control: Control) -> None:
        self._application = application
        self._listener = listener
        self._settings = settings
        self._control = control
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle: set[LoopWaiter] = set()
        self._requests = 0
        self._is_accepting = False
        self._stopped_at = math.inf

    def run(self) -> None:
        """Returns when the last request has been answered; raises `StartUpError`."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._listener.setblocking(False)
        for descriptor in self._control.descriptors:
            self._loop.add_reader(descriptor, self._look_at_control, descriptor)
        lifespan = Lifespan(self._application)
        await lifespan.start()
        self._state: dict[str, Any] = lifespan.state
        self._accept_if_room()
        self._control.say_ready()
        await self._stopping.wait()
        self._stop_accepting()
        self._stopped_at = self._loop.time()
        self._wake_idle()
        self._loop.call_later(FRESH_S, self._wake_idle)
        if self._tasks:
            await asyncio.wait(self._tasks)
        await lifespan.stop()

    def _look_at_control(self, descriptor: int) -> None:
        if self._control.says_stop(descriptor):
            for each in self._control.descriptors:
                self._loop.remove_reader(each)
            self._stopping.set()

    def _wake_idle(self) -> None:
        for waiter in self._idle:
            waiter.wake()

    def _lets_go(self, connection: Connection) -> bool:
        """Whether to close an idle connection, but not one of a server that has just connected."""
        if not self._stopping.is_set():
            return False
        return not connection.is_fresh or self._loop.time() >= self._stopped_at + FRESH_S

    # ----- connections

    def _accept_if_room(self) -> None:
        if not (self._is_accepting or self._stopping.is_set()) and len(self._tasks) < self._settings.connections:
            self._is_accepting = True
            self._loop.add_reader(self._listener, self._accept)

    def _stop_accepting(self) -> None:
        if self._is_accepting:
            self._is_accepting = False
            self._loop.remove_reader(self._listener)

    def _accept(self) -> None:
        try:
            accepted = self._listener.accept()[0]
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError:
            self._stop_accepting()
            self._loop.call_later(_PAUSE_S, self._accept_if_room)
            return
        task = self._loop.create_task(self._serve(accepted))
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        if len(self._tasks) >= self._settings.connections:
            self._stop_accepting()

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._accept_if_room()

    async def _serve(self, accepted: socket.socket) -> None:
        waiters: list[LoopWaiter] = []

        def make_waiter(source: Input) -> LoopWaiter:
            waiters.append(LoopWaiter(source, self._loop))
            return waiters[0]

        at_once = self._settings.connections * max(1, self._settings.processes)
        connection = Connection(accepted, make_waiter, requests_at_once=at_once)
        try:
            await self._answer_all(connection, waiters[0])
            await connection.linger()
        except Exception:
            traceback.print_exc()
        finally:
            waiters[0].close()
            connection.close()

    async def _answer_all(self, connection: Connection, waiter: LoopWaiter) -> None:
        root_path: bytes | None = self._settings.root_path_bytes
        while True:
            self._idle.add(waiter)
            request = await connection.next_request(lambda: self._lets_go(connection))
            self._idle.discard(waiter)
            if request is None:
                return
            await Exchange(connection, waiter, request).run(self._application, root_path, self._state)
            self._requests += 1
            if self._settings.requests_max and self._requests >= self._settings.requests_max:
                self._stopping.set()
            if not connection.keeps_connection:
                return
