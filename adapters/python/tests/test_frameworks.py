"""Flask and Starlette behind every transport and behind a real nginx: common uses give equal answers."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from running import Served, wait_until
from ways import BATON, Answer, BatonWay, DirectWay, NginxWay, Way
from wsgi_app import pattern

WAYS = ["plain", "shm", "passfd", "nginx", "nginx-kept"]
if BATON is not None:
    WAYS += ["baton-unix", "baton-shm", "baton-passfd"]
APPLICATIONS = {"flask": ("flask_app:app",), "starlette": ("starlette_app:app", "--asgi")}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "download.bin"
    path.write_bytes(pattern(1_234_567))
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return path


@pytest.fixture(scope="module", params=APPLICATIONS)
def served(request: pytest.FixtureRequest, file: Path) -> Iterator[Served]:
    os.environ["TEST_FILE"] = str(file)
    with Served(*APPLICATIONS[request.param], "--processes", "1", "--threads", "2") as running:
        yield running


@pytest.fixture(scope="module", params=WAYS)
def way(request: pytest.FixtureRequest, served: Served) -> Iterator[Way]:
    made = make_way(request.param, served)
    yield made
    made.close()


def make_way(name: str, served: Served) -> Way:
    if name.startswith("nginx"):
        return NginxWay(served, name)
    return BatonWay(served, name) if name.startswith("baton") else DirectWay(served, name)


def multipart(fields: dict[str, bytes], files: dict[str, bytes]) -> tuple[dict[str, str], bytes]:
    out = b""
    for name, value in {**fields, **files}.items():
        filename = f'; filename="{name}.bin"' if name in files else ""
        out += b'--cut\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n' % (name.encode(), filename.encode())
        out += value + b"\r\n"
    return {"Content-Type": "multipart/form-data; boundary=cut"}, out + b"--cut--\r\n"


def cookies(answer: Answer) -> str:
    return "; ".join(value.partition(";")[0] for value in answer.all("set-cookie"))


def test_logging_in_and_out(way: Way) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert way.ask("POST", "/login", form, b"user=ada&password=wrong").status == 403
    login = way.ask("POST", "/login", form, b"user=ada&password=right")
    assert (login.status, login.field("location")) == (302, "/")
    assert way.ask("GET", "/", {"Cookie": cookies(login)}).body == b"hello ada\n"
    logout = way.ask("POST", "/logout", {"Cookie": cookies(login)})
    assert (logout.status, logout.body) == (204, b"")
    assert len(logout.all("set-cookie")) == 1
    assert way.ask("GET", "/").body == b"hello stranger\n"


def test_uploads(way: Way) -> None:
    small, large = b"small", pattern(3_000_000)
    headers, body = multipart({"title": b"a title"}, {"one": small, "two": large})
    answer = json.loads(way.ask("POST", "/upload", headers, body).body)
    assert answer["fields"] == {"title": "a title"}
    assert {name: (each["bytes"], each["sha256"]) for name, each in answer["files"].items()} == {
        "one": (len(small), hashlib.sha256(small).hexdigest()),
        "two": (len(large), hashlib.sha256(large).hexdigest()),
    }
    answer_raw = way.ask("POST", "/raw", {"Content-Type": "application/octet-stream"}, large)
    assert answer_raw.body.decode() == f"{len(large)} {hashlib.sha256(large).hexdigest()}"


def test_downloads(way: Way, file: Path) -> None:
    whole = way.ask("GET", "/download")
    assert whole.body == file.read_bytes()
    assert whole.field("content-length") == "1234567"
    part = way.ask("GET", "/download", {"Range": "bytes=100000-399999"})
    assert (part.status, part.body) == (206, file.read_bytes()[100_000:400_000])
    head = way.ask("HEAD", "/download")
    assert (head.body, head.field("content-length")) == (b"", "1234567")


def test_streams(way: Way) -> None:
    answer = way.ask("GET", "/stream")
    assert answer.body == b"".join(b"line %d\n" % number for number in range(1000))
    assert answer.field("content-length") is None


def test_errors(way: Way) -> None:
    answer = way.ask("GET", "/error")
    assert answer.status == 500
    assert b"secret" not in answer.body
    assert b"Traceback" not in answer.body
    assert way.ask("GET", "/nowhere").status == 404
    cut = way.ask("GET", "/error-in-stream")
    if way.name.startswith("baton") and cut.status == 502:
        # All of it was there, and had failed, before anything of it was sent.
        assert b"first" not in cut.body
    else:
        # nginx takes the end of a connection that it does not keep for the end of the response.
        assert not cut.is_complete or way.name == "nginx"
        assert cut.body == b"first\n" or way.name == "passfd"
    assert b"secret" not in cut.body
    assert way.ask("GET", "/").body == b"hello stranger\n"


def test_tracebacks_reach_the_log_of_the_server(served: Served) -> None:
    """Errors that a framework neither catches nor logs are on the error stream; nginx writes them to its error log."""
    direct = DirectWay(served, "passfd")
    answer = direct.ask("GET", "/error-in-stream")
    direct.close()
    assert b"LookupError: a secret of the application" in answer.stderr
    nginx = NginxWay(served, "nginx-kept")
    nginx.ask("GET", "/error-in-stream")
    # It cuts long ones, so the last line may be missing.
    wait_until(lambda: 'FastCGI sent in stderr: "Traceback' in nginx.log, "the traceback")
    nginx.close()


def test_answers_are_identical_on_all_ways(served: Served) -> None:
    ways = {name: make_way(name, served) for name in WAYS}
    for method, target in (
        ("GET", "/"),
        ("GET", "/download"),
        ("HEAD", "/download"),
        ("GET", "/stream"),
        ("GET", "/nowhere"),
        ("POST", "/nowhere"),
        ("GET", "/size/0"),
        ("GET", "/size/1"),
        ("GET", "/size/70000"),
        ("GET", "/size/5000000"),
    ):
        body = b"a=b" if method == "POST" else b""
        answers = {name: each.ask(method, target, {}, body) for name, each in ways.items()}
        first = answers["plain"]
        assert first.is_complete
        for name, answer in answers.items():
            assert (answer.status, answer.body) == (first.status, first.body), (name, target)
            assert sorted(answer.fields) == sorted(first.fields), (name, target)
            # nginx puts its own fields first.
            if not name.startswith("nginx"):
                assert answer.fields == first.fields, (name, target)
    for each in ways.values():
        each.close()


def test_whole_files_are_named_where_the_server_allows_it(served: Served, file: Path) -> None:
    direct = DirectWay(served, "passfd")
    answer = direct.ask("GET", "/download", {"BATON_ZEROCOPY": str(file.parent)})
    direct.close()
    assert (answer.field("x-sendfile"), answer.body) == (str(file), b"")
    assert answer.field("cache-control") is not None
    assert answer.field("last-modified") is not None
