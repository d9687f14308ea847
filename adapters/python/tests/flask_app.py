"""A small Flask application: logins, uploads, downloads, streams, errors."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import Any

from flask import Flask, Response, abort, redirect, request, send_file, session, url_for
from holdings import holdings
from wsgi_app import pattern

app = Flask(__name__)
app.secret_key = "for tests only"
# Responses must not depend on the time of the request.
app.config["SESSION_REFRESH_EACH_REQUEST"] = False
FILE = os.environ.get("TEST_FILE", __file__)


@app.get("/")
def home() -> str:
    return f"hello {session.get('user', 'stranger')}\n"


@app.post("/login")
def login() -> Any:
    if request.form["password"] != "right":
        abort(403)
    session["user"] = request.form["user"]
    return redirect(url_for("home"))


@app.post("/logout")
def logout() -> Any:
    session.clear()
    return "", 204


@app.post("/upload")
def upload() -> dict[str, Any]:
    files = {
        name: {"bytes": len(data := file.read()), "sha256": hashlib.sha256(data).hexdigest(), "name": file.filename}
        for name, file in request.files.items()
    }
    return {"fields": request.form, "files": files}


@app.post("/raw")
def raw() -> str:
    digest = hashlib.sha256()
    count = 0
    while piece := request.stream.read(10_000):
        digest.update(piece)
        count += len(piece)
    return f"{count} {digest.hexdigest()}"


@app.get("/download")
def download() -> Response:
    return send_file(FILE, mimetype="application/octet-stream", etag=False, last_modified=0)


@app.get("/stream")
def stream() -> Response:
    def lines() -> Iterator[str]:
        for number in range(1000):
            yield f"line {number}\n"

    return Response(lines(), mimetype="text/plain")


@app.get("/size/<int:count>")
def size(count: int) -> Response:
    return Response(pattern(count), mimetype="application/octet-stream")


@app.get("/holds")
def holds() -> Response:
    return Response(holdings(), mimetype="text/plain")


@app.get("/error")
def error() -> str:
    raise LookupError("a secret of the application")


@app.get("/error-in-stream")
def error_in_stream() -> Response:
    def lines() -> Iterator[str]:
        yield "first\n"
        raise LookupError("a secret of the application")

    return Response(lines(), mimetype="text/plain")
