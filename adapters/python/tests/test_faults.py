"""Faults of the application, the client, the server, and on the wire. Afterwards everything works again."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from running import Served, wait_until
from server_side import (
    NO_BODY,
    Client,
    begin,
    pair,
    params_records,
    record,
    request_params,
    unchunk,
)
from wsgi_app import pattern

PARAMS = request_params("GET", "/size?n=5", {}, b"")
REQUEST = begin() + params_records(PARAMS) + NO_BODY


@pytest.fixture(autouse=True)
def _still_serves(wsgi: Served) -> Iterator[None]:
    """After each test the same process answers, and holds no descriptor that it did not hold before."""
    with wsgi.connect() as app:
        assert app.plain("GET", "/size?n=5").body == pattern(5)
    (worker,) = wsgi.workers()
    before = wsgi.open_descriptors(worker)
    yield
    assert wsgi.workers() == [worker]
    with wsgi.connect() as app:
        assert app.plain("GET", "/size?n=5").body == pattern(5)
    wait_until(lambda: wsgi.open_descriptors(worker) <= before, "descriptors to be closed")


# ----- the application


@pytest.mark.parametrize("transport", ["plain", "shm", "passfd"])
def test_an_exception_is_for_the_log_and_not_for_the_client(wsgi: Served, transport: str) -> None:
    with wsgi.connect() as app:
        result = getattr(app, transport)("GET", "/fails")
    answer = result.wire or result.stdout
    assert b"500 Internal Server Error" in answer
    assert b"LookupError: a secret of the application" in result.stderr
    assert b"secret" not in answer
    assert b"Traceback" not in answer
    assert result.app_status == 0


@pytest.mark.parametrize("transport", ["plain", "shm"])
@pytest.mark.parametrize("query", ["n=10", "n=300000", "n=10&length=500"])
def test_a_failure_in_the_middle_ends_the_connection_instead_of_the_request(
    wsgi: Served, transport: str, query: str
) -> None:
    with wsgi.connect() as app:
        result = getattr(app, transport)("GET", f"/fails_late?{query}")
        assert not result.is_complete
        assert b"LookupError" in result.stderr
        assert b"secret" not in result.stdout


@pytest.mark.parametrize("query", ["n=10", "n=300000", "n=10&length=500"])
@pytest.mark.parametrize("minor", [0, 1])
def test_a_failure_in_the_middle_of_an_answer_on_the_clients_socket_is_reported(
    wsgi: Served, query: str, minor: int
) -> None:
    with wsgi.connect() as app:
        result = app.passfd("GET", f"/fails_late?{query}", minor=minor)
        report = result.answered
        assert report is not None
        assert (report.flags, report.outcome) == (0, 2)
        assert not result.wire.endswith(b"0\r\n\r\n")
        assert b"LookupError" in result.stderr
        assert result.app_status == 1
        # The connection to the application is as good as before.
        assert app.plain("GET", "/size?n=5").body == pattern(5)


def test_a_body_shorter_than_its_length_is_a_failure(wsgi: Served) -> None:
    target = "/pieces?count=1&n=10&length=5000"
    with wsgi.connect() as app:
        passed = app.passfd("GET", target)
        report = passed.answered
        assert report is not None
        assert (report.flags, report.outcome, report.body_bytes) == (0, 2, 13)
        assert b"bytes are missing" in passed.stderr
        assert not app.plain("GET", target).is_complete


def test_the_same_when_all_of_the_body_is_known_with_the_head(wsgi: Served) -> None:
    target = "/field?name=Content-Length&value=5000"
    with wsgi.connect() as app:
        passed = app.passfd("GET", target)
        report = passed.answered
        assert report is not None
        assert (report.flags, report.outcome, report.status, report.body_bytes) == (0, 2, 200, 4)
        assert passed.wire.endswith(b"\r\n\r\nbody")
        plain = app.plain("GET", target)
        assert not plain.is_complete
        assert plain.body == b"body"


@pytest.mark.parametrize("transport", ["plain", "passfd"])
def test_a_file_that_becomes_shorter_is_a_failure(wsgi: Served, tmp_path: Path, transport: str) -> None:
    path = tmp_path / "shrinking"
    path.write_bytes(b"")
    os.truncate(path, 50_000_000)
    with wsgi.connect() as app, Client(8192) as client:
        if transport == "passfd":
            app.offer_client(client, "GET", f"/names_file?path={path}", patience=60_000)
            app.send(NO_BODY)
            client.socket.recv(10)
        else:
            params = request_params("GET", f"/names_file?path={path}", {}, b"")
            app.send(begin() + params_records(params) + NO_BODY)
            assert app.next_record() is not None
        os.truncate(path, 0)
        reader = client.read_in_background() if transport == "passfd" else None
        result = app.result()
        assert b"TruncatedFileError" in result.stderr
        if reader is None:
            assert not result.is_complete
            return
        assert result.answered is not None
        assert (result.answered.flags, result.answered.outcome) == (0, 2)
        client.served.close()
        assert len(reader()) < 50_000_000


@pytest.mark.parametrize(
    "target",
    [
        "/field?name=X-A&value=a%0D%0AX-B:%20b",
        "/field?name=X%20A&value=a",
        "/field?name=Content-Length&value=many",
        "/status?line=100%20Continue",
        "/status?line=nonsense",
        "/status?line=2000%20OK",
    ],
)
def test_heads_that_would_mislead_somebody_become_500(wsgi: Served, target: str) -> None:
    with wsgi.connect() as app:
        result = app.plain("GET", target)
        assert result.status == b"500 Internal Server Error"
        assert result.header("X-B") is None
        assert app.passfd("GET", target).wire.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")


def test_close_is_called_whatever_happens(wsgi: Served, tmp_path: Path) -> None:
    path = tmp_path / "closed"
    with wsgi.connect() as app:
        app.plain("GET", f"/closes?count=3&path={path}")
        # Output after the answer does not go to the next request.
        assert app.plain("GET", "/size?n=5").stderr == b""
    wsgi.wait_for_log("closed at last")
    # The answer does not wait for it.
    wait_until(lambda: path.exists() and path.read_text() == "0", "close() after the whole body")
    path.unlink()
    with wsgi.connect() as app, Client() as client:
        client.socket.close()
        app.offer_client(client, "GET", f"/closes?count=5000&path={path}")
        app.send(NO_BODY)
        report = app.result().answered
        assert report is not None
        assert (report.flags, report.outcome) == (0, 1)
    # The rest was not requested, as the client was gone.
    wait_until(lambda: path.exists() and path.read_text(), "close() after part of the body")
    assert int(path.read_text()) > 0


# ----- the client


@pytest.mark.parametrize("received", [0, 1, 100, 5000, 400_000])
def test_a_client_that_goes_away_is_reported(wsgi: Served, received: int) -> None:
    with wsgi.connect() as app, Client() as client:
        app.offer_client(client, "GET", "/pieces?count=2000&n=10000", patience=10_000)
        app.send(NO_BODY)
        while received > 0:
            received -= len(client.socket.recv(received))
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.socket.close()
        result = app.result()
        report = result.answered
        assert report is not None
        assert (report.flags, report.outcome) == (0, 1)
        assert result.rest is None
        assert app.plain("GET", "/size?n=5").body == pattern(5)


def test_an_aborted_request_is_ended(wsgi: Served) -> None:
    """While its body is awaited, and in the middle of its answer."""
    params = request_params("POST", "/digest", {"Content-Length": "100"}, b"")
    with wsgi.connect() as app:
        app.send(begin() + params_records(params) + record(5, 1, b"some") + record(2, 1))
        assert app.result().is_complete
        params = request_params("GET", "/pieces?count=100000&n=10&wait=0.01", {}, b"")
        app.send(begin() + params_records(params) + NO_BODY)
        assert app.next_record() is not None
        app.send(record(2, 1))
        assert app.result().is_complete
        assert app.plain("GET", "/size?n=5").body == pattern(5)


def test_a_request_aborted_before_its_parameters_is_ended(wsgi: Served) -> None:
    with wsgi.connect() as app:
        app.send(begin() + record(2, 1))
        assert app.result().is_complete
        assert app.plain("GET", "/size?n=5").body == pattern(5)


# ----- the server


@pytest.mark.parametrize("cut", range(0, len(REQUEST), 7))
def test_the_server_may_close_anywhere_in_a_request(wsgi: Served, cut: int) -> None:
    with wsgi.connect() as app:
        app.send(REQUEST[:cut])


def test_a_request_may_come_byte_by_byte(wsgi: Served) -> None:
    with wsgi.connect() as app:
        for at in range(len(REQUEST)):
            app.send(REQUEST[at : at + 1])
        assert app.result().body == pattern(5)


def test_the_server_may_close_with_a_client_handed_over(wsgi: Served) -> None:
    """The socket of a client must not stay open in the application."""
    for cut in (8, 30, 200, None):
        with Client() as client:
            with wsgi.connect() as app:
                offer = b"passfd fds=1 minor=1 keep=1 head=0 patience=100\n"
                data = begin() + params_records(request_params("GET", "/digest", {}, b""), offer=offer)
                app.send(data[:cut], [client.served.fileno()])
            client.served.close()
            assert client.read_all() == b""


def test_the_server_may_close_while_it_is_answered(wsgi: Served) -> None:
    with wsgi.connect() as app:
        app.send(begin() + params_records(request_params("GET", "/pieces?count=1000&n=100000", {}, b"")) + NO_BODY)
        assert app.next_record() is not None


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x01" * 100_000,
        b"\x01\x01\x00\x01\x00\x03\x00\x00abc",
        begin() + record(4, 1, b"\x05") + record(4, 1),
        begin() + record(4, 1, b"\xff\xff\xff\xff\xff\xff\xff\xff") + record(4, 1),
        begin() + record(4, 1, pair(b"BATON_OFFER", b"passfd fds=1\n")) + record(4, 1),
        begin() + record(4, 1, pair(b"BATON_OFFER", b"passfd fds=-1\n")) + record(4, 1),
        begin() + params_records({"A": "b"}) + record(4, 1, b"more"),
        REQUEST[:-8] + record(66, 1, b"\x04x"),
        b"".join(begin() + record(4, 1, b"x" * 65_535) for _ in range(40)),
    ],
)
def test_garbage_ends_its_connection(wsgi: Served, garbage: bytes) -> None:
    with wsgi.connect() as app:
        app.send(garbage + bytes([9]) * 70_000)
        while (each := app.next_record()) is not None:
            assert each[0] == 3


def test_descriptors_that_nobody_announced_are_closed(wsgi: Served) -> None:
    with Client() as client:
        with wsgi.connect() as app:
            app.send(REQUEST, [client.served.fileno()] * 3)
            assert app.result().body == pattern(5)
        client.served.close()
        assert client.read_all() == b""


@pytest.mark.parametrize("count", [17, 100])
def test_too_many_descriptors_end_the_connection(wsgi: Served, count: int) -> None:
    with Client() as client:
        with wsgi.connect() as app:
            app.send(REQUEST, [client.served.fileno()] * count)
            assert not app.result().is_complete
        client.served.close()
        assert client.read_all() == b""


def test_what_is_not_what_was_offered_is_answered_in_the_ordinary_way(wsgi: Served, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100)
    with open(path, "r+b") as file, wsgi.connect() as app:
        for offer in (b"passfd fds=1 minor=1\n", b"shm size=100000 at=0 free=100000 fds=1\n"):
            app.send(begin() + params_records(PARAMS, offer=offer), [file.fileno()])
            app.send(NO_BODY)
            result = app.result()
            assert (result.body, result.answered, result.slices) == (pattern(5), None, [])


def test_an_offer_in_another_place_is_no_offer(wsgi: Served) -> None:
    with wsgi.connect() as app:
        params = {**request_params("GET", "/environment", {}, b""), "BATON_OFFER": "passfd fds=1\n"}
        app.send(begin() + params_records(params) + NO_BODY)
        result = app.result()
        assert result.answered is None
        assert b"BATON_OFFER" not in result.body


# ----- FastCGI beyond one request


def test_values_are_told(wsgi: Served) -> None:
    names = (b"FCGI_MAX_CONNS", b"FCGI_MAX_REQS", b"FCGI_MPXS_CONNS", b"BATON_TRANSPORTS", b"UNKNOWN")
    with wsgi.connect() as app:
        app.send(record(9, 0, b"".join(pair(name, b"") for name in names)))
        each = app.next_record()
        assert each is not None
        assert each[:2] == (10, 0)
        assert each[2] == (
            pair(b"FCGI_MAX_CONNS", b"1")
            + pair(b"FCGI_MAX_REQS", b"1")
            + pair(b"FCGI_MPXS_CONNS", b"0")
            + pair(b"BATON_TRANSPORTS", b"passfd,shm")
        )
        assert app.plain("GET", "/size?n=5").body == pattern(5)


def test_unknown_management_records_are_told_to_be_unknown(wsgi: Served) -> None:
    with wsgi.connect() as app:
        app.send(record(99, 0, b"what"))
        assert app.next_record() == (11, 0, b"\x63" + bytes(7))


def test_other_roles_and_a_second_request_are_refused(wsgi: Served) -> None:
    with wsgi.connect() as app:
        app.send(begin(role=2) + params_records(PARAMS) + NO_BODY)
        assert app.result().protocol_status == 3
        app.send(begin(1) + begin(2) + params_records(PARAMS, 2) + params_records(PARAMS) + NO_BODY)
        refused = app.next_record()
        assert refused is not None
        assert (refused[1], refused[2][4]) == (2, 1)
        assert app.result().body == pattern(5)


def test_a_connection_that_is_not_to_be_kept_is_closed(wsgi: Served) -> None:
    with wsgi.connect() as app:
        assert app.plain("GET", "/size?n=5", keep=False).is_complete
        assert app.next_record() is None


def test_a_body_that_nobody_reads_does_not_cost_the_answer(wsgi: Served) -> None:
    """A connection that is closed with bytes unread is reset, which could overtake the answer."""
    for keep in (True, False):
        with wsgi.connect() as app:
            result = app.plain("POST", "/ignores_body?n=300000", body=b"b" * 5_000_000, keep=keep)
            assert result.body == pattern(300_000)
            assert result.is_complete


def test_paths_are_divided_as_the_server_says(wsgi: Served) -> None:
    with wsgi.connect() as app:
        params = request_params("GET", "/environment", {"Proxy": "http://evil", "X-Own": "\u00e9"}, b"")
        params["SCRIPT_NAME"] = "/mounted"
        params["HTTPS"] = "on"
        app.send(begin() + params_records(params) + NO_BODY)
        lines = app.result().body.decode("latin-1").splitlines()
        assert "SCRIPT_NAME='/mounted'" in lines
        assert "PATH_INFO='/environment'" in lines
        assert "wsgi.url_scheme='https'" in lines
        assert "HTTP_X_OWN='\u00c3\u00a9'" in lines
        assert not any(line.startswith("HTTP_PROXY") for line in lines)
        # nginx's customary parameters: no PATH_INFO, all of the path in SCRIPT_NAME.
        del params["PATH_INFO"]
        params["SCRIPT_NAME"] = "/environment"
        app.send(begin() + params_records(params) + NO_BODY)
        lines = app.result().body.decode("latin-1").splitlines()
        assert "SCRIPT_NAME=''" in lines
        assert "PATH_INFO='/environment'" in lines


def test_random_streams_end_their_connection_or_are_answered(wsgi: Served) -> None:
    """The process survives any input; the fixture checks it."""
    seed = pattern(40_000)
    for number in range(60):
        damaged = bytearray(REQUEST * 3)
        for step in range(4):
            at = struct.unpack_from(">H", seed, number * 64 + step * 4)[0] % len(damaged)
            damaged[at] = seed[number * 64 + step * 4 + 2]
        with wsgi.connect() as app:
            app.send(bytes(damaged))
            app.socket.shutdown(socket.SHUT_WR)
            while app.next_record() is not None:
                pass


def test_chunks_are_lower_case_and_whole(wsgi: Served) -> None:
    with wsgi.connect() as app:
        wire = app.passfd("GET", "/pieces?count=2&n=1000").wire
        assert b"\r\n\r\n3eb\r\n0:" in wire
        assert wire.endswith(b"\n\r\n0\r\n\r\n")
        assert unchunk(wire).count(b"\n") > 2
