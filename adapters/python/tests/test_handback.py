"""The client's socket is handed back when the client reads nothing, or the server wants it (section 4)."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from running import Served
from server_side import FIELDS, NO_BODY, Client, Result, record, unchunk
from wsgi_app import pattern

SMALL_BUFFERS = 8192
GIVE_BACK = record(66, 1, b"\x05")


def read_so_far(client: Client, count: int) -> bytes:
    received = b""
    while len(received) < count:
        received += client.socket.recv(count - len(received))
    return received


def check_rest(result: Result, client: Client, expected: bytes) -> bytes:
    """REST says exactly how much the client's socket has taken; the rest of the bytes on the wire follows."""
    report = result.rest
    assert report is not None
    assert result.answered is None
    assert result.app_status == 0
    assert report.head_bytes > 0
    # The application has closed its descriptor: ours is the last one.
    client.served.close()
    taken = client.read_all()
    body = expected.partition(b"\r\n\r\n")[2]
    whole = taken + result.stdout
    assert unchunk(whole) == expected
    assert report.head_bytes == min(len(taken), len(whole.partition(b"\r\n\r\n")[0]) + 4)
    assert report.body_bytes <= len(taken) - report.head_bytes
    assert len(body) >= report.body_bytes
    return taken


@pytest.mark.parametrize(
    "target", ["/size?n=2000000", "/pieces?count=30&n=100000", "/sends_file?path=FILE", "/mixes_files?path=FILE"]
)
def test_a_client_that_takes_nothing_holds_no_application(wsgi: Served, big_file: Path, target: str) -> None:
    target = target.replace("FILE", str(big_file))
    with wsgi.connect() as app, Client(SMALL_BUFFERS) as client:
        expected = unchunk(app.passfd("GET", target).wire)
        app.offer_client(client, "GET", target, patience=20)
        app.send(NO_BODY)
        taken = check_rest(app.result(), client, expected)
        assert len(taken) < 1_000_000
        assert app.plain("GET", "/size?n=3").body == pattern(3)


def test_a_length_counts_only_the_body(wsgi: Served) -> None:
    with wsgi.connect() as app, Client(SMALL_BUFFERS) as client:
        expected = app.passfd("GET", "/size?n=2000000").wire
        app.offer_client(client, "GET", "/size?n=2000000", patience=20)
        app.send(NO_BODY)
        result = app.result()
        taken = check_rest(result, client, expected)
        report = result.rest
        assert report is not None
        assert report.head_bytes + report.body_bytes == len(taken)
        assert (report.flags, report.status) == (2, 200)


def test_rest_says_that_the_connection_cannot_go_on(wsgi: Served) -> None:
    with wsgi.connect() as app, Client(SMALL_BUFFERS) as client:
        app.offer_client(client, "GET", "/pieces?count=30&n=100000", minor=0, patience=20)
        app.send(NO_BODY)
        report = app.result().rest
        assert report is not None
        assert report.flags == 0


def test_a_client_that_reads_slowly_but_steadily_is_answered(wsgi: Served) -> None:
    """Every byte taken restarts the patience."""
    with wsgi.connect() as app, Client(SMALL_BUFFERS) as client:
        app.offer_client(client, "GET", "/size?n=600000", patience=2000)
        app.send(NO_BODY)
        results: list[Result] = []
        waiting = threading.Thread(target=lambda: results.append(app.result()))
        waiting.start()
        received = b""
        while not received.endswith(pattern(600_000)[-100:]):
            received += client.socket.recv(5000)
        waiting.join()
        report = results[0].answered
        assert report is not None
        assert (report.flags, report.body_bytes) == (3, 600_000)
        assert received.endswith(pattern(600_000))


def test_the_server_gets_the_socket_back_when_it_asks(wsgi: Served) -> None:
    """While the application waits for the client."""
    with wsgi.connect() as app, Client(SMALL_BUFFERS) as client:
        expected = app.passfd("GET", "/size?n=2000000").wire
        app.offer_client(client, "GET", "/size?n=2000000", patience=60_000)
        app.send(NO_BODY)
        first = read_so_far(client, 1000)
        app.send(GIVE_BACK)
        result = app.result()
        assert result.rest is not None
        client.served.close()
        assert first + client.read_all() + result.stdout == expected


def test_the_server_gets_the_socket_back_between_pieces(wsgi: Served) -> None:
    """Though the client takes everything at once."""
    with wsgi.connect() as app, Client() as client:
        app.offer_client(client, "GET", "/pieces?count=100&n=10&wait=0.02", patience=60_000)
        app.send(NO_BODY)
        first = read_so_far(client, 200)
        app.send(GIVE_BACK)
        result = app.result()
        assert result.rest is not None
        client.served.close()
        wire = unchunk(first + client.read_all() + result.stdout)
        assert wire.count(b"\n") == wire.partition(b"\r\n\r\n")[0].count(b"\n") + 2 + 100
        assert FIELDS in wire


def test_an_application_that_fails_after_the_hand_back_never_looks_complete(wsgi: Served) -> None:
    with wsgi.connect() as app, Client(SMALL_BUFFERS) as client:
        app.offer_client(client, "GET", "/fails_late?n=2000000", patience=20)
        app.send(NO_BODY)
        result = app.result()
        assert result.rest is not None
        assert b"LookupError" in result.stderr
        assert not result.is_complete
        assert not result.stdout.endswith(b"0\r\n\r\n")
