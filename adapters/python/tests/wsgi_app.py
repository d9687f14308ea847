"""A plain WSGI application for the tests: one path for each thing that an application can do."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import parse_qs

from baton_fastcgi import File

Environ = dict[str, Any]
TEXT = [("Content-Type", "text/plain")]


def pattern(count: int) -> bytes:
    """Bytes that reveal any displacement."""
    block = b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(128))
    return (block * (count // len(block) + 1))[:count]


def application(environ: Environ, start_response: Any) -> Iterable[Any]:
    page = PAGES[environ["PATH_INFO"].strip("/")]
    query = {name: values[0] for name, values in parse_qs(environ["QUERY_STRING"]).items()}
    return page(environ, start_response, query)


def size(_: Environ, start_response: Any, query: dict[str, str]) -> Iterable[bytes]:
    start_response("200 OK", [*TEXT, ("X-Pid", str(os.getpid()))])
    return [pattern(int(query["n"]))]


def pid(_: Environ, start_response: Any, _query: dict[str, str]) -> Iterable[bytes]:
    start_response("200 OK", TEXT)
    return [str(os.getpid()).encode()]


def environment(environ: Environ, start_response: Any, _: dict[str, str]) -> Iterable[bytes]:
    start_response("200 OK", TEXT)
    return [f"{name}={value!r}\n".encode("latin-1", "replace") for name, value in sorted(environ.items())]


def pieces(_: Environ, start_response: Any, query: dict[str, str]) -> Iterator[bytes]:
    start_response("200 OK", [*TEXT, *([("Content-Length", query["length"])] if "length" in query else [])])
    for number in range(int(query["count"])):
        yield b"%d:" % number + pattern(int(query["n"])) + b"\n"
        yield b""
        if "wait" in query:
            time.sleep(float(query["wait"]))


def many(_: Environ, start_response: Any, query: dict[str, str]) -> Iterable[bytes]:
    start_response("200 OK", TEXT)
    return [b"%d," % number for number in range(int(query["count"]))]


def written(_: Environ, start_response: Any, _query: dict[str, str]) -> Iterable[bytes]:
    write = start_response("201 Created", TEXT)
    write(b"one ")
    write(b"two ")
    return [b"three"]


def echo(environ: Environ, start_response: Any, query: dict[str, str]) -> Iterable[bytes]:
    start_response("200 OK", TEXT)
    source = environ["wsgi.input"]
    if "lines" in query:
        return [b"%d\n" % len(line) for line in source]
    return iter(lambda: source.read(int(query.get("read", "10000"))), b"")


def digest(environ: Environ, start_response: Any, _: dict[str, str]) -> Iterable[bytes]:
    body = environ["wsgi.input"].read()
    start_response("200 OK", TEXT)
    return [b"%d %s" % (len(body), hashlib.sha256(body).hexdigest().encode())]


class Look:
    """At a body where it is: which pieces came, and what became of them and of a try to change them."""

    def __init__(self, query: dict[str, str]) -> None:
        self.keeps_first = "keep" in query
        self.hashed = hashlib.sha256()
        self.seen: list[memoryview] = []
        self.refused = 0
        self.kept: memoryview | None = None

    def take(self, view: memoryview) -> None:
        self.hashed.update(view)
        try:
            view[0] = 0
        except TypeError:
            self.refused += 1
        if self.kept is None and self.keeps_first:
            self.kept = view[:]
        self.seen.append(view)

    def told(self) -> bytes:
        ended = sum(repr(view).startswith("<released") for view in self.seen)
        return f"{self.hashed.hexdigest()} {len(self.seen)} {self.refused} {ended}".encode()


def views(environ: Environ, start_response: Any, query: dict[str, str]) -> Iterable[bytes]:
    look = Look(query)
    for view in environ["baton.body_views"]:
        look.take(view)
        if "once" in query:
            break
    told = look.told()
    start_response("200 OK", TEXT)
    return [told]


def ignores_body(_: Environ, start_response: Any, query: dict[str, str]) -> Iterable[bytes]:
    start_response("200 OK", TEXT)
    return [pattern(int(query.get("n", "5")))]


def status(_: Environ, start_response: Any, query: dict[str, str]) -> Iterable[bytes]:
    start_response(query["line"], [("X-Here", "yes"), ("Content-Length", "3"), ("Date", "never"), ("Server", "me")])
    return [b"abc"]


def field(_: Environ, start_response: Any, query: dict[str, str]) -> Iterable[bytes]:
    start_response("200 OK", [*TEXT, (query["name"], query["value"])])
    return [b"body"]


def cookies(environ: Environ, start_response: Any, _: dict[str, str]) -> Iterable[bytes]:
    start_response("200 OK", [*TEXT, ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2; Path=/")])
    return [environ.get("HTTP_COOKIE", "").encode()]


def fails(_: Environ, _start_response: Any, _query: dict[str, str]) -> Iterable[bytes]:
    raise LookupError("a secret of the application")


def fails_late(_: Environ, start_response: Any, query: dict[str, str]) -> Iterator[bytes]:
    start_response("200 OK", [*TEXT, *([("Content-Length", query["length"])] if "length" in query else [])])
    yield pattern(int(query.get("n", "10")))
    raise LookupError("a secret of the application")


def fails_and_says_so(_: Environ, start_response: Any, _query: dict[str, str]) -> Iterable[bytes]:
    start_response("200 OK", TEXT)
    try:
        raise LookupError
    except LookupError:
        start_response("503 Busy", [("Retry-After", "5")], sys.exc_info())
    return [b"busy"]


def exits(_: Environ, _start_response: Any, _query: dict[str, str]) -> Iterable[bytes]:
    sys.exit(1)


def dies(_: Environ, start_response: Any, query: dict[str, str]) -> Iterator[bytes]:
    start_response("200 OK", TEXT)
    if "late" in query:
        yield pattern(int(query["late"]))
    os._exit(9)


def errors(environ: Environ, start_response: Any, query: dict[str, str]) -> Iterable[bytes]:
    stream = environ["wsgi.errors"]
    for number in range(int(query.get("count", "2"))):
        print(f"line {number} \u20ac", file=stream)
    stream.flush()
    start_response("200 OK", TEXT)
    stream.writelines(["behind"])
    return [b"said"]


def sends_file(environ: Environ, start_response: Any, query: dict[str, str]) -> Iterable[bytes]:
    file = open(query["path"], "rb")  # noqa: SIM115 - the server closes it
    file.seek(int(query.get("seek", "0")))
    start_response("200 OK", [*TEXT, *([("Content-Length", query["length"])] if "length" in query else [])])
    wrapped: Iterable[bytes] = environ["wsgi.file_wrapper"](file, 8192)
    return wrapped


def mixes_files(_: Environ, start_response: Any, query: dict[str, str]) -> Iterable[bytes | File]:
    start_response(query.get("status", "200 OK"), TEXT)
    parts: list[bytes | File] = [b"before ", File(query["path"]), b" between ", File(query["path"]), b" after"]
    return iter(parts) if "stream" in query else parts


def names_file(_: Environ, start_response: Any, query: dict[str, str]) -> Iterable[File]:
    start_response(query.get("status", "200 OK"), TEXT)
    return [File(query["path"])]


def sleeps(_: Environ, start_response: Any, query: dict[str, str]) -> Iterable[bytes]:
    time.sleep(float(query["s"]))
    start_response("200 OK", TEXT)
    return [str(os.getpid()).encode()]


def waits_for_file(_: Environ, start_response: Any, query: dict[str, str]) -> Iterable[bytes]:
    """Creates one file when it begins, and answers when another one exists."""
    open(query["begun"], "w").close()
    while not os.path.exists(query["go"]):
        time.sleep(0.01)
    start_response("200 OK", TEXT)
    return [b"went"]


def lingers(_: Environ, start_response: Any, query: dict[str, str]) -> Iterator[bytes]:
    """Has sent its declared length, and continues until a file exists."""
    start_response("200 OK", [*TEXT, ("Content-Length", "4")])
    yield b"said"
    while not os.path.exists(query["go"]):
        time.sleep(0.01)
    yield b"and more"


class Closing:
    """A body that reports its close in a file and on the error stream."""

    def __init__(self, path: str, count: int, errors: Any) -> None:
        self.path = path
        self.left = count
        self.errors = errors

    def __iter__(self) -> Iterator[bytes]:
        while self.left:
            self.left -= 1
            yield pattern(10_000)

    def close(self) -> None:
        with open(self.path, "w") as file:
            file.write(str(self.left))
        print("closed at last", file=self.errors)


def closes(environ: Environ, start_response: Any, query: dict[str, str]) -> Iterable[bytes]:
    start_response("200 OK", TEXT)
    return Closing(query["path"], int(query["count"]), environ["wsgi.errors"])


PAGES: dict[str, Callable[[Environ, Any, dict[str, str]], Iterable[Any]]] = {
    page.__name__: page
    for page in (
        *(
            size,
            pid,
            environment,
            pieces,
            many,
            written,
            echo,
            digest,
            views,
            ignores_body,
            status,
            field,
            cookies,
            fails,
        ),
        *(fails_late, fails_and_says_so, exits, dies, errors, sends_file, mixes_files, names_file, sleeps),
        *(waits_for_file, closes, lingers),
    )
}
