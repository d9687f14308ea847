"""ASGI under every transport: scope, events, lifespan, disconnects, many requests at once in one process."""

from __future__ import annotations

import os
import select
import signal
import threading
from pathlib import Path

import pytest
from running import Served, wait_until
from server_side import (
    LIMIT_S,
    NO_BODY,
    Application,
    Client,
    as_http,
    begin,
    params_records,
    record,
    request_params,
    unchunk,
)
from wsgi_app import pattern

TARGETS = [
    "/size?n=0",
    "/size?n=65529",
    "/size?n=3000001",
    "/pieces?count=5&n=10",
    "/pieces?count=3&n=100000",
    "/view",
    "/status?code=404",
    "/status?code=204",
    "/status?code=205",
    "/status?code=304",
    "/status?code=299",
    "/fails",
    "/gathers?n=1",
    "/wrong?how=body+first",
    "/wrong?how=twice",
    "/wrong?how=unknown",
    "/wrong?how=header",
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_answers_are_identical(asgi: Served, method: str, target: str) -> None:
    with asgi.connect() as app:
        plain = app.plain(method, target)
        assert plain.is_complete
        assert (plain.body == b"") == (method == "HEAD" or any(word in target for word in ("n=0", "204", "205", "304")))
        assert app.shm(method, target).stdout == plain.stdout
        for minor in (1, 0):
            passed = app.passfd(method, target, minor=minor)
            assert unchunk(passed.wire) == as_http(plain, method, minor=minor)
            assert passed.answered is not None
            assert passed.answered.outcome == 0


def test_an_exception_is_for_the_log_and_not_for_the_client(asgi: Served) -> None:
    with asgi.connect() as app:
        result = app.plain("GET", "/fails")
        assert result.status == b"500 Internal Server Error"
        assert b"LookupError: a secret" in result.stderr
        assert b"secret" not in result.stdout


@pytest.mark.parametrize("target", ["/fails_late?n=10", "/fails_late?n=300000", "/forgets_to_end"])
def test_a_failure_in_the_middle_never_looks_complete(asgi: Served, target: str) -> None:
    with asgi.connect() as app:
        passed = app.passfd("GET", target)
        assert passed.answered is not None
        assert (passed.answered.flags, passed.answered.outcome) == (0, 2)
        assert not passed.wire.endswith(b"0\r\n\r\n")
        assert b"Traceback" in passed.stderr
        shm = app.shm("GET", target)
        assert not shm.is_complete
    with asgi.connect() as app:
        assert not app.plain("GET", target).is_complete


def test_a_failure_behind_the_end_is_logged_by_the_process(asgi: Served) -> None:
    with asgi.connect() as app:
        assert app.plain("GET", "/fails_behind").is_complete
        assert app.plain("GET", "/size?n=5").stderr == b""
    asgi.wait_for_log("after all is said")


def test_the_scope(asgi: Served) -> None:
    with asgi.connect() as app:
        headers = {"X-Own": "1", "Content-Type": "text/x", "Cookie": "a=b"}
        params = request_params("PUT", "/scope?a=%20b", headers, b"")
        params["SCRIPT_NAME"] = ""
        params["HTTPS"] = "on"
        app.send(begin() + params_records(params) + NO_BODY)
        lines = app.result().body.decode().splitlines()
    for line in (
        "method='PUT'",
        "path='/scope'",
        "raw_path=b'/scope'",
        "query_string=b'a=%20b'",
        "root_path=''",
        "scheme='https'",
        "http_version='1.1'",
        "client=('192.0.2.7', 5555)",
        "server=('shop.test', 80)",
        "state={'greeting': b'started'}",
        "extensions={'http.response.pathsend': {}}",
    ):
        assert line in lines
    (got,) = (line for line in lines if line.startswith("headers="))
    for field in ((b"x-own", b"1"), (b"content-type", b"text/x"), (b"cookie", b"a=b")):
        assert repr(field) in got


def test_paths_are_decoded_and_below_the_root(asgi: Served) -> None:
    with asgi.connect() as app:
        params = request_params("GET", "/scope", {}, b"")
        params["SCRIPT_NAME"] = "/scope"
        params["PATH_INFO"] = "/"
        params["REQUEST_URI"] = "/sc%6Fpe/?x"
        app.send(begin() + params_records(params) + NO_BODY)
        lines = app.result().body.decode().splitlines()
    assert "root_path='/scope'" in lines
    assert "path='/scope/'" in lines
    assert "raw_path=b'/sc%6Fpe/'" in lines


def test_bodies_of_requests_arrive_whole(asgi: Served) -> None:
    body = pattern(2_500_000)
    with asgi.connect() as app:
        for transport in (app.plain, app.shm):
            assert transport("POST", "/echo", body=body).body == body
        assert unchunk(app.passfd("POST", "/echo", body=body).wire).partition(b"\r\n\r\n")[2] == body
        # A request with an unread body, and the next one after it.
        for transport in (app.plain, app.shm):
            assert transport("POST", "/ignores_body?n=900000", body=body * 3).body == pattern(900_000)
        assert app.plain("POST", "/digest", body=b"x").body.startswith(b"1 ")


def test_files_are_named_or_sent(asgi: Served, big_file: Path) -> None:
    target = f"/pathsend?path={big_file}"
    with asgi.connect() as app:
        for result in (
            app.plain("GET", target, {"BATON_ZEROCOPY": str(big_file.parent)}),
            app.passfd("GET", target, {"BATON_ZEROCOPY": str(big_file.parent)}),
        ):
            assert (result.header("X-Sendfile"), result.body) == (str(big_file).encode(), b"")
        plain = app.plain("GET", target)
        assert plain.body == big_file.read_bytes()
        assert app.passfd("GET", target).wire == as_http(plain)
        assert app.shm("GET", target).stdout == plain.stdout
        assert app.plain("GET", "/pathsend?path=/nonexistent").status == b"500 Internal Server Error"


def test_the_rest_is_handed_back(asgi: Served, big_file: Path) -> None:
    for target in ("/size?n=2000000", "/pieces?count=30&n=100000", f"/pathsend?path={big_file}", "/gathers?n=20000"):
        with asgi.connect() as app, Client(8192) as client:
            expected = unchunk(app.passfd("GET", target).wire)
            app.offer_client(client, "GET", target, patience=20)
            app.send(NO_BODY)
            result = app.result()
            assert result.rest is not None
            assert result.is_complete
            client.served.close()
            assert unchunk(client.read_all() + result.stdout) == expected


def test_the_server_gets_the_socket_back_while_the_application_says_nothing(asgi: Served, tmp_path: Path) -> None:
    go = tmp_path / "go"
    with asgi.connect() as app, Client() as client:
        app.offer_client(client, "GET", f"/idle_stream?go={go}")
        app.send(NO_BODY)
        first = client.socket.recv(10_000)
        assert first.endswith(b"\r\n\r\n6\r\nfirst \r\n")
        app.send(record(66, 1, b"\x05"))
        each = app.next_record()
        assert each is not None
        assert each[0] == 66
        assert each[2][0] == 3
        client.served.close()
        assert client.read_all() == b""
        go.touch()
        assert app.result().stdout == b"4\r\nlast\r\n0\r\n\r\n"


@pytest.mark.parametrize("how", ["abort", "close", "client"])
def test_an_application_learns_that_nobody_waits(asgi: Served, tmp_path: Path, how: str) -> None:
    told = tmp_path / "told"
    with asgi.connect() as app, Client() as client:
        target = f"/until_disconnect?path={told}"
        if how == "client":
            app.offer_client(client, "GET", target)
            app.send(NO_BODY)
            client.socket.recv(10)
            client.socket.close()
        else:
            app.send(begin() + params_records(request_params("GET", target, {}, b"")) + NO_BODY)
            assert app.next_record() is not None
            if how == "abort":
                app.send(record(2, 1))
            else:
                app.close()
        wait_until(lambda: told.exists() and told.read_text(), "the application to report")
        assert told.read_text() == "http.request http.disconnect ClientGoneError"
        if how == "abort":
            assert app.result().is_complete
        if how == "client":
            result = app.result()
            assert result.answered is not None
            assert (result.answered.flags, result.answered.outcome) == (0, 1)
            assert result.stderr == b""


def test_a_client_that_has_sent_its_next_request_is_not_gone(asgi: Served, tmp_path: Path) -> None:
    """Pipelined requests wait in the kernel for the server."""
    told = tmp_path / "told"
    with asgi.connect() as app, Client() as client:
        client.socket.sendall(b"GET /next HTTP/1.1\r\n\r\n")
        app.offer_client(client, "GET", f"/until_disconnect?path={told}")
        app.send(NO_BODY)
        received = b""
        while not received.endswith(b"first\n\r\n"):
            received += client.socket.recv(1000)
        app.send(record(66, 1, b"\x05"))
        each = app.next_record()
        assert each is not None
        assert each[2][0] == 3
        assert not told.exists()
        assert client.served.recv(100).startswith(b"GET /next")


def test_requests_are_answered_at_once_in_one_process(asgi: Served, tmp_path: Path) -> None:
    go = tmp_path / "go"
    apps: list[Application] = []
    for _ in range(30):
        app = asgi.connect()
        apps.append(app)
        app.send(begin() + params_records(request_params("GET", f"/idle_stream?go={go}", {}, b"")) + NO_BODY)
        assert app.next_record() is not None
    go.touch()
    for app in apps:
        assert app.result().stdout == b"last"
        app.close()


def test_no_more_connections_than_allowed_are_taken() -> None:
    options = ("--asgi", "--processes", "1", "--connections", "2")
    with Served("asgi_app", *options) as served, served.connect() as one, served.connect() as two:
        assert one.plain("GET", "/size?n=5").is_complete
        assert two.plain("GET", "/size?n=5").is_complete
        with served.connect() as three:
            three.send(begin() + params_records(request_params("GET", "/size?n=5", {}, b"")) + NO_BODY)
            assert two.plain("GET", "/size?n=5").is_complete
            assert not select.select([three.socket], [], [], 0)[0]
            one.close()
            assert three.result().body == pattern(5)


def test_descriptors_are_closed(asgi: Served) -> None:
    with asgi.connect() as app:
        assert app.plain("GET", "/size?n=5").is_complete
    (worker,) = asgi.workers()
    before = asgi.open_descriptors(worker)
    for _ in range(10):
        with asgi.connect() as app, Client() as client:
            app.shm("GET", "/size?n=50000")
            app.passfd("GET", "/size?n=50000")
            app.offer_client(client, "GET", "/pieces?count=1000&n=10&wait=0.01")
            app.send(NO_BODY)
    wait_until(lambda: asgi.open_descriptors(worker) <= before, "descriptors to be closed")


def test_lifespan_and_the_end(tmp_path: Path) -> None:
    told, go = tmp_path / "stopped", tmp_path / "go"
    os.environ["ASGI_SHUTDOWN_FILE"] = str(told)
    try:
        with Served("asgi_app", "--asgi", "--processes", "1") as served, served.connect() as app:
            app.send(begin() + params_records(request_params("GET", f"/idle_stream?go={go}", {}, b"")) + NO_BODY)
            assert app.next_record() is not None
            served.process.send_signal(signal.SIGTERM)
            assert not told.exists()
            go.touch()
            assert app.result().stdout == b"last"
            assert served.process.wait(LIMIT_S) == 0
            assert told.read_text() == "stopped"
    finally:
        del os.environ["ASGI_SHUTDOWN_FILE"]


def test_an_application_may_refuse_to_start_or_know_no_lifespan() -> None:
    for processes in ("0", "1"):
        with Served("asgi_app:refuses_to_start", "--asgi", "--processes", processes) as served:
            assert served.process.wait(LIMIT_S) != 0
            assert "no database" in served.log
    with Served("asgi_app:without_lifespan", "--asgi", "--processes", "1") as served, served.connect() as app:
        assert app.plain("GET", "/").body == pattern(5)
        assert served.log == ""


def test_a_process_is_recycled_after_its_requests() -> None:
    with Served("asgi_app", "--asgi", "--processes", "1", "--requests-max", "5") as served:
        pids = set()
        for _ in range(4):
            with served.connect() as app:
                for _ in range(5):
                    pids.add(app.plain("GET", "/pid").body)
                assert app.next_record() is None
        assert len(pids) == 4


def test_many_connections_mix_nothing_up(asgi: Served) -> None:
    failures: list[str] = []

    def ask(number: int) -> None:
        with asgi.connect() as app:
            for turn in range(20):
                count = (number * 7919 + turn * 104_729) % 300_000
                result = getattr(app, ("plain", "shm", "passfd")[turn % 3])("GET", f"/size?n={count}")
                body = result.wire.partition(b"\r\n\r\n")[2] if result.wire else result.body
                if body != pattern(count):
                    failures.append(f"{number} {turn} {count}")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
