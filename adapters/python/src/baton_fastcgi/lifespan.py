"""ASGI's lifespan protocol: the application's start-up and shut-down."""

from __future__ import annotations

import asyncio
import sys
import traceback
from typing import Any

from baton_fastcgi.asgi import ASGI_VERSIONS, Application, Message


class StartUpError(Exception):
    """The application reported that it cannot start."""


class Lifespan:
    """One `lifespan` call of an application. Applications may lack support for it."""

    def __init__(self, application: Application) -> None:
        self.state: dict[str, Any] = {}
        self._application = application
        self._events: asyncio.Queue[Message] = asyncio.Queue()
        self._is_up = asyncio.Event()
        self._is_down = asyncio.Event()
        self._failure: str | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns when the application is ready; raises `StartUpError`."""
        self._task = asyncio.ensure_future(self._run())
        self._events.put_nowait({"type": "lifespan.startup"})
        await self._is_up.wait()
        if self._failure is not None:
            await self._task
            raise StartUpError(self._failure)

    async def stop(self) -> None:
        """Returns when the application has tidied up."""
        if self._task is None or self._task.done():
            return
        self._events.put_nowait({"type": "lifespan.shutdown"})
        await self._is_down.wait()
        await self._task

    async def _run(self) -> None:
        scope = {"type": "lifespan", "asgi": ASGI_VERSIONS, "state": self.state}
        try:
            await self._application(scope, self._events.get, self._send)
        except Exception:
            # Before the start-up is complete an exception says that the protocol is not supported.
            if self._is_up.is_set() and self._failure is None:
                traceback.print_exc()
        finally:
            self._is_up.set()
            self._is_down.set()

    async def _send(self, message: Message) -> None:
        kind = message["type"]
        if kind == "lifespan.startup.complete":
            self._is_up.set()
        elif kind == "lifespan.startup.failed":
            self._failure = message.get("message", "") or "the application gave no reason"
            self._is_up.set()
        elif kind == "lifespan.shutdown.complete":
            self._is_down.set()
        elif kind == "lifespan.shutdown.failed":
            sys.stderr.write(f"baton-fastcgi: the application's shut-down failed: {message.get('message', '')}\n")
            self._is_down.set()
