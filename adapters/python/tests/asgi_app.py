"""A plain ASGI application for the tests: one path for each thing that an application can do."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs

from wsgi_app import Look, pattern

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Page = Callable[[Scope, Receive, Send, dict[str, str]], Awaitable[None]]

TEXT = [(b"content-type", b"text/plain")]


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await lifespan(scope, receive, send)
        return
    assert scope["type"] == "http"
    query = {name: values[0] for name, values in parse_qs(scope["query_string"].decode()).items()}
    await PAGES[scope["path"].strip("/")](scope, receive, send, query)


async def lifespan(scope: Scope, receive: Receive, send: Send) -> None:
    assert (await receive())["type"] == "lifespan.startup"
    scope["state"]["greeting"] = b"started"
    await send({"type": "lifespan.startup.complete"})
    assert (await receive())["type"] == "lifespan.shutdown"
    with open(os.environ.get("ASGI_SHUTDOWN_FILE", os.devnull), "w") as file:
        file.write("stopped")
    await send({"type": "lifespan.shutdown.complete"})


async def refuses_to_start(scope: Scope, receive: Receive, send: Send) -> None:
    assert scope["type"] == "lifespan"
    await receive()
    await send({"type": "lifespan.startup.failed", "message": "no database"})


async def without_lifespan(scope: Scope, receive: Receive, send: Send) -> None:
    assert scope["type"] == "http"
    await size(scope, receive, send, {"n": "5"})


async def start(send: Send, status: int = 200, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    await send({"type": "http.response.start", "status": status, "headers": TEXT if headers is None else headers})


async def body(send: Send, data: bytes, more: bool = False) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": more})


async def size(_: Scope, _receive: Receive, send: Send, query: dict[str, str]) -> None:
    await start(send)
    await body(send, pattern(int(query["n"])))


async def pid(_: Scope, _receive: Receive, send: Send, _query: dict[str, str]) -> None:
    await start(send)
    await body(send, str(os.getpid()).encode())


async def scope_(scope: Scope, _: Receive, send: Send, _query: dict[str, str]) -> None:
    await start(send)
    await body(send, "\n".join(f"{name}={value!r}" for name, value in sorted(scope.items())).encode())


async def pieces(_: Scope, _receive: Receive, send: Send, query: dict[str, str]) -> None:
    await start(send)
    for number in range(int(query["count"])):
        await body(send, b"%d:" % number + pattern(int(query["n"])) + b"\n", more=True)
        await asyncio.sleep(float(query.get("wait", "0")))
    await body(send, b"")


async def view(_: Scope, _receive: Receive, send: Send, _query: dict[str, str]) -> None:
    await start(send)
    await send({"type": "http.response.body", "body": memoryview(b"abcdefgh").cast("I"), "more_body": True})
    await send({"type": "http.response.body", "body": bytearray(b"ij")})


async def status(_: Scope, _receive: Receive, send: Send, query: dict[str, str]) -> None:
    await start(send, int(query["code"]), [*TEXT, (b"x-here", b"yes")])
    await body(send, b"abc")


async def echo(_: Scope, receive: Receive, send: Send, _query: dict[str, str]) -> None:
    await start(send)
    while True:
        event = await receive()
        assert event["type"] == "http.request"
        await body(send, event["body"], more=event["more_body"])
        if not event["more_body"]:
            return


async def digest(_: Scope, receive: Receive, send: Send, _query: dict[str, str]) -> None:
    whole = b""
    more = True
    while more:
        event = await receive()
        whole += event["body"]
        more = event["more_body"]
    await start(send)
    await body(send, b"%d %s" % (len(whole), hashlib.sha256(whole).hexdigest().encode()))


async def views(scope: Scope, receive: Receive, send: Send, query: dict[str, str]) -> None:
    """Behind the body comes nothing but the end."""
    look = Look(query)
    async for view in scope["baton.body_views"]:
        look.take(view)
    told = look.told()
    end = asyncio.ensure_future(receive())
    await asyncio.sleep(0)
    assert not end.done()
    await start(send)
    await body(send, told)
    await end


async def ignores_body(_: Scope, _receive: Receive, send: Send, query: dict[str, str]) -> None:
    await start(send)
    await body(send, pattern(int(query["n"])))


async def fails(_: Scope, _receive: Receive, _send: Send, _query: dict[str, str]) -> None:
    raise LookupError("a secret of the application")


async def fails_late(_: Scope, _receive: Receive, send: Send, query: dict[str, str]) -> None:
    await start(send)
    await body(send, pattern(int(query["n"])), more=True)
    raise LookupError("a secret of the application")


async def forgets_to_end(_: Scope, _receive: Receive, send: Send, _query: dict[str, str]) -> None:
    await start(send)
    await body(send, b"abc", more=True)


async def fails_behind(_: Scope, _receive: Receive, send: Send, _query: dict[str, str]) -> None:
    await start(send)
    await body(send, b"abc")
    raise LookupError("after all is said")


async def wrong(_: Scope, _receive: Receive, send: Send, query: dict[str, str]) -> None:
    if query["how"] == "body first":
        await body(send, b"abc")
    elif query["how"] == "twice":
        await start(send)
        await start(send)
    elif query["how"] == "unknown":
        await send({"type": "http.response.telegram"})
    else:
        await start(send, 200, [(b"x-a", b"1\r\nx-b: 2")])
        await body(send, b"abc")


async def pathsend(_: Scope, _receive: Receive, send: Send, query: dict[str, str]) -> None:
    await start(send, int(query.get("code", "200")))
    await send({"type": "http.response.pathsend", "path": query["path"]})


async def until_disconnect(_: Scope, receive: Receive, send: Send, query: dict[str, str]) -> None:
    """Sends one piece, and writes the outcome to a file."""
    await start(send)
    await body(send, b"first\n", more=True)
    events: list[str] = []
    while not events or events[-1] != "http.disconnect":
        events.append((await receive())["type"])
    try:
        while True:
            await body(send, b"more\n" * 1000, more=True)
    except OSError as error:
        events.append(type(error).__name__)
    with open(query["path"], "w") as file:
        file.write(" ".join(events))


async def idle_stream(_: Scope, _receive: Receive, send: Send, query: dict[str, str]) -> None:
    """Pauses between its first and its last piece until a file exists."""
    await start(send)
    await body(send, b"first ", more=True)
    while not os.path.exists(query["go"]):
        await asyncio.sleep(0.01)
    await body(send, b"last")


async def gathers(_: Scope, _receive: Receive, send: Send, query: dict[str, str]) -> None:
    """Two tasks send at once."""
    await start(send)

    async def many() -> None:
        for _ in range(20):
            await body(send, b"0123456789" * int(query["n"]), more=True)

    await asyncio.gather(many(), many())
    await body(send, b"")


PAGES: dict[str, Page] = {
    page.__name__.strip("_"): page
    for page in (
        *(size, pid, scope_, pieces, view, status, echo, digest, views, ignores_body, fails, fails_late),
        *(forgets_to_end, fails_behind, wrong, pathsend, until_disconnect, idle_stream, gathers),
    )
}
