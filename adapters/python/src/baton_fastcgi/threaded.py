"""One process that serves WSGI: threads that take turns at one epoll.

Each thread waits in the same epoll, takes one event and deals with it: a new connection, or the next request on a kept
one. A connection is armed for one event (EPOLLONESHOT), so it belongs to one thread at a time, and between requests to
none: an idle connection holds no thread, and a request is never passed from one thread to another.
"""

from __future__ import annotations

import select
import socket
import threading
import time
import traceback
from contextlib import suppress

from baton_fastcgi.connection import Connection, DisconnectedError
from baton_fastcgi.control import Control
from baton_fastcgi.doorway import COURTESY_S, Doorway
from baton_fastcgi.request import Request
from baton_fastcgi.settings import Settings
from baton_fastcgi.waiting import BlockingWaiter, run
from baton_fastcgi.wsgi import Application, Exchange

# How long a server that has just connected may take to send its request, once the process is stopping; in seconds.
FRESH_S = 0.5

_NEXT_REQUEST = select.EPOLLIN | select.EPOLLONESHOT


class ThreadedServer:
    """Serves `application` until `control` says stop, or the process has answered its share of requests."""

    def __init__(self, application: Application, listener: socket.socket, settings: Settings, control: Control) -> None:
        self._application = application
        self._settings = settings
        self._control = control
        self._epoll = select.epoll()
        self._doorway = Doorway(listener, self._epoll)
        self._lock = threading.Lock()
        self._connections: dict[int, Connection] = {}
        # Descriptors of connections that no thread deals with, and of those that epoll knows.
        self._idle: set[int] = set()
        self._registered: set[int] = set()
        self._requests = 0
        self._is_stopping = False
        self._stopped_at = 0.0

    def run(self) -> None:
        """Serves in this thread and as many others as are wanted; returns when the last request has been answered."""
        for descriptor in self._control.descriptors:
            self._epoll.register(descriptor, select.EPOLLIN)
        others = [
            threading.Thread(target=self._serve, name=f"baton-fastcgi-{number}", daemon=True)
            for number in range(1, self._settings.threads)
        ]
        for thread in others:
            thread.start()
        self._control.say_ready()
        self._serve()
        for thread in others:
            thread.join()
        self._epoll.close()

    def _serve(self) -> None:
        while True:
            with self._lock:
                if self._is_stopping:
                    break
                self._doorway.open(is_full=len(self._connections) >= self._settings.threads)
            for descriptor, _ in self._epoll.poll(maxevents=1):
                self._dispatch(descriptor)
        # Descriptors of `control` stay readable, so that the other threads wake up as well.
        with self._lock:
            self._doorway.close()
        self._close_idle()

    def _dispatch(self, descriptor: int) -> None:
        if descriptor == self._doorway.descriptor:
            if self._doorway.is_courteous:
                self._accept_late()
            else:
                self._accept()
        elif descriptor in self._control.descriptors:
            if self._control.says_stop(descriptor):
                self._stop()
        else:
            connection = self._take_idle(descriptor)
            if connection is not None:
                self._serve_connection(connection)

    def _accept_late(self) -> None:
        with self._lock:
            self._doorway.close()
        events = self._epoll.poll(COURTESY_S, maxevents=1)
        with self._lock:
            if not self._is_stopping:
                self._doorway.open(is_full=True)
        if not events:
            self._accept()
        for descriptor, _ in events:
            if descriptor != self._doorway.descriptor:
                self._dispatch(descriptor)

    def _accept(self) -> None:
        accepted = self._doorway.accept()
        if accepted is None:
            return
        at_once = self._settings.threads * max(1, self._settings.processes)
        connection = Connection(accepted, BlockingWaiter, requests_at_once=at_once)
        with self._lock:
            self._connections[connection.descriptor] = connection
        self._serve_connection(connection)

    def _take_idle(self, descriptor: int) -> Connection | None:
        with self._lock:
            if descriptor not in self._idle:
                return None
            self._idle.remove(descriptor)
            return self._connections[descriptor]

    def _serve_connection(self, connection: Connection) -> None:
        """Answers the available requests, then leaves the connection to the thread that sees the next one."""
        connection.receive()
        self._answer_all(connection)
        self._leave(connection)

    def _serve_last(self, connection: Connection) -> None:
        """Answers a request that has come just before the end. A server that has just connected is waited for."""
        connection.receive()
        while connection.is_fresh and not connection.is_closed:
            left_s = self._stopped_at + FRESH_S - time.monotonic()
            if left_s <= 0:
                break
            run(connection.waiter.wait(timeout_s=left_s))
        self._answer_all(connection)
        self._close(connection)

    def _answer_all(self, connection: Connection) -> None:
        while not connection.is_closed:
            request = connection.take_request()
            if request is None:
                break
            self._answer(connection, request)
            if self._is_stopping or not connection.keeps_connection:
                run(connection.linger())

    def _answer(self, connection: Connection, request: Request) -> None:
        settings = self._settings
        exchange = Exchange(connection, request, settings.root_path_bytes)
        try:
            exchange.run(self._application, multithread=settings.threads > 1, multiprocess=settings.processes > 1)
        except BaseException:
            # The application ends the process, or we have a bug: another process goes on.
            traceback.print_exc()
            connection.hang_up()
            self._stop()
        self._requests += 1
        if settings.requests_max and self._requests >= settings.requests_max:
            self._stop()

    def _leave(self, connection: Connection) -> None:
        with suppress(DisconnectedError):
            run(connection.flush())
        with self._lock:
            if not connection.is_closed and not self._is_stopping:
                self._await_request(connection.descriptor)
                return
        if connection.is_closed:
            self._close(connection)
        else:
            self._serve_last(connection)

    def _await_request(self, descriptor: int) -> None:
        self._idle.add(descriptor)
        if descriptor in self._registered:
            self._epoll.modify(descriptor, _NEXT_REQUEST)
        else:
            self._registered.add(descriptor)
            self._epoll.register(descriptor, _NEXT_REQUEST)

    def _close(self, connection: Connection) -> None:
        descriptor = connection.descriptor
        with self._lock:
            del self._connections[descriptor]
            if descriptor in self._registered:
                self._registered.remove(descriptor)
                self._epoll.unregister(descriptor)
            connection.close()

    def _stop(self) -> None:
        self._stopped_at = time.monotonic()
        self._is_stopping = True
        self._control.wake_all()

    def _close_idle(self) -> None:
        with self._lock:
            idle = [self._connections[descriptor] for descriptor in self._idle]
            self._idle.clear()
        for connection in idle:
            self._serve_last(connection)
