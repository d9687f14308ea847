"""A small Starlette application: logins, uploads, downloads, streams, errors; the same pages as the Flask one."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import AsyncIterator

from holdings import holdings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from wsgi_app import pattern

FILE = os.environ.get("TEST_FILE", __file__)
STATE: dict[str, str] = {}


async def home(request: Request) -> Response:
    return PlainTextResponse(f"hello {request.cookies.get('user', 'stranger')}\n")


async def login(request: Request) -> Response:
    form = await request.form()
    if form["password"] != "right":
        return PlainTextResponse("no", 403)
    response = RedirectResponse("/", 302)
    response.set_cookie("user", str(form["user"]), httponly=True)
    response.set_cookie("second", "cookie")
    return response


def logout(_: Request) -> Response:
    """In a thread, as Starlette runs what is not async."""
    response = Response(status_code=204)
    response.delete_cookie("user")
    return response


async def upload(request: Request) -> Response:
    fields: dict[str, str] = {}
    files = {}
    async with request.form() as form:
        for name, value in form.multi_items():
            if isinstance(value, str):
                fields[name] = value
            else:
                data = await value.read()
                sha256 = hashlib.sha256(data).hexdigest()
                files[name] = {"bytes": len(data), "sha256": sha256, "name": value.filename}
    return JSONResponse({"fields": fields, "files": files})


async def raw(request: Request) -> Response:
    digest = hashlib.sha256()
    count = 0
    async for piece in request.stream():
        digest.update(piece)
        count += len(piece)
    return PlainTextResponse(f"{count} {digest.hexdigest()}")


async def download(_: Request) -> Response:
    return FileResponse(FILE, media_type="application/octet-stream", headers={"cache-control": "max-age=60"})


class Named(FileResponse):
    """Leaves the file to the server, as FileResponse itself does from version 0.36 on."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert "http.response.pathsend" in scope["extensions"]
        length = str(os.path.getsize(self.path)).encode()
        headers = [(b"content-type", b"application/octet-stream"), (b"content-length", length), (b"x-own", b"yes")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.pathsend", "path": str(self.path)})


async def named(_: Request) -> Response:
    return Named(FILE)


def holds(_: Request) -> Response:
    return PlainTextResponse(holdings())


async def stream(_: Request) -> Response:
    async def lines() -> AsyncIterator[str]:
        for number in range(1000):
            yield f"line {number}\n"

    return StreamingResponse(lines(), media_type="text/plain")


async def size(request: Request) -> Response:
    return Response(pattern(int(request.path_params["count"])), media_type="application/octet-stream")


async def error(_: Request) -> Response:
    raise LookupError("a secret of the application")


async def error_in_stream(_: Request) -> Response:
    async def lines() -> AsyncIterator[str]:
        yield "first\n"
        raise LookupError("a secret of the application")

    return StreamingResponse(lines(), media_type="text/plain")


@contextlib.asynccontextmanager
async def lifespan(_: Starlette) -> AsyncIterator[None]:
    STATE["is"] = "up"
    yield
    STATE.clear()


app = Starlette(
    lifespan=lifespan,
    routes=[
        Route("/", home),
        Route("/login", login, methods=["POST"]),
        Route("/logout", logout, methods=["POST"]),
        Route("/upload", upload, methods=["POST"]),
        Route("/raw", raw, methods=["POST"]),
        Route("/download", download),
        Route("/named", named),
        Route("/holds", holds),
        Route("/stream", stream),
        Route("/size/{count}", size),
        Route("/error", error),
        Route("/error-in-stream", error_in_stream),
    ],
)
