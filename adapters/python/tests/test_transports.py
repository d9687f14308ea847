"""The same answers under every transport, byte by byte, and what each transport promises beyond that."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from running import Served
from server_side import NO_BODY, Client, Result, as_http, begin, params_records, request_params, unchunk
from wsgi_app import pattern

from baton_fastcgi.offer import DECLINED_CODED, DECLINED_INSTRUCTION

# Requests that succeed by every transport.
TARGETS = [
    "/size?n=0",
    "/size?n=1",
    "/size?n=65528",
    "/size?n=65529",
    "/size?n=300000",
    "/size?n=3000001",
    "/pieces?count=5&n=10",
    "/pieces?count=3&n=100000",
    "/pieces?count=40&n=4096",
    "/pieces?count=2&n=10&length=26",
    "/pieces?count=3&n=10&length=20",
    "/pieces?count=0&n=0",
    "/many?count=5000",
    "/written",
    "/status?line=404%20Not%20Found",
    "/status?line=204%20No%20Content",
    "/status?line=205%20Reset%20Content",
    "/status?line=304%20Not%20Modified",
    "/status?line=299%20",
    "/status?line=500%20Own%20words",
    "/field?name=Location&value=/elsewhere",
    "/field?name=X-Accel-Buffering&value=no",
    "/field?name=Connection&value=close",
    "/cookies",
    "/fails",
    "/fails_and_says_so",
]


@pytest.mark.parametrize("target", TARGETS)
def test_answers_are_identical(wsgi: Served, target: str) -> None:
    with wsgi.connect() as app:
        plain = app.plain("GET", target)
        assert plain.is_complete
        shm = app.shm("GET", target)
        assert shm.stdout == plain.stdout
        for minor in (1, 0):
            for keep in (1, 0):
                passed = app.passfd("GET", target, minor=minor, keep=keep)
                assert unchunk(passed.wire) == as_http(plain, minor=minor, keep=bool(keep))
                assert passed.stdout == b""
                check_report(passed)


def check_report(passed: Result) -> None:
    """ANSWERED counts the bytes that the client has received."""
    report = passed.answered
    assert report is not None
    head, _, body = unchunk(passed.wire).partition(b"\r\n\r\n")
    assert (report.outcome, report.status) == (0, int(passed.wire[9:12]))
    assert (report.head_bytes, report.body_bytes) == (len(head) + 4, len(body))
    assert report.flags == (1 if b"\r\nConnection: close" in head else 3)
    assert (passed.app_status, passed.protocol_status) == (0, 0)


@pytest.mark.parametrize("target", ["/size?n=100", "/pieces?count=3&n=100", "/status?line=200%20OK"])
@pytest.mark.parametrize("minor", [0, 1])
def test_head_has_the_fields_and_no_body(wsgi: Served, target: str, minor: int) -> None:
    with wsgi.connect() as app:
        plain = app.plain("HEAD", target)
        passed = app.passfd("HEAD", target, minor=minor)
        assert plain.body == b""
        assert passed.wire == as_http(plain, "HEAD", minor=minor)
        assert app.shm("HEAD", target).stdout == plain.stdout
        report = passed.answered
        assert report is not None
        assert (report.flags, report.body_bytes) == (3, 0)


def test_status_line_and_fields_of_an_answer_on_the_clients_socket(wsgi: Served) -> None:
    with wsgi.connect() as app:
        wire = app.passfd("GET", "/status?line=404%20Not%20Found").wire
    assert wire == (
        b"HTTP/1.1 404 Not Found\r\nDate: Fri, 20 Nov 2026 12:00:00 GMT\r\nServer: baton\r\n"
        b"X-Here: yes\r\nContent-Length: 3\r\n\r\nabc"
    )


@pytest.mark.parametrize(
    ("edits", "fields"),
    [
        (b"/x-here\r\n", b""),
        (b"/X-Here\r\n?X-Here: no\r\n", b"X-Here: no\r\n"),
        (b"?X-Here: no\r\n?X-There: a: b\r\n", b"X-Here: yes\r\nX-There: a: b\r\n"),
        (b"+x-here: no, YES\r\n+X-There: a\r\n", b"x-here: yes, no\r\nX-There: a\r\n"),
        (b"/X-Here\r\n+X-Here: *, no\r\n", b"X-Here: *\r\n"),
        (b"~0 image/*\r\n/X-Here\r\n", b""),
    ],
)
def test_edits_change_the_fields_of_an_answer_on_the_clients_socket(wsgi: Served, edits: bytes, fields: bytes) -> None:
    with wsgi.connect() as app:
        wire = app.passfd("GET", "/status?line=404%20Not%20Found", edits=edits).wire
    assert wire == (
        b"HTTP/1.1 404 Not Found\r\nDate: Fri, 20 Nov 2026 12:00:00 GMT\r\nServer: baton\r\n"
        + fields
        + b"Content-Length: 3\r\n\r\nabc"
    )


@pytest.mark.parametrize(
    ("terms", "target", "declined", "varies"),
    [
        (b"~50 text/*", "/size?n=100", DECLINED_CODED, False),
        (b"~101 text/*", "/size?n=100", None, True),
        (b"~- text/*", "/size?n=100", None, True),
        (b"~50 image/*", "/size?n=100", None, False),
        (b"~many text/*", "/size?n=100", DECLINED_CODED, False),
        (b"~50 text/*", "/field?name=Content-Encoding&value=br", None, False),
        (b"~0 text/*", "/field?name=Cache-Control&value=a, no-transform", None, False),
        (b"~50 text/*", "/field?name=X-Sendfile&value=/secret", DECLINED_INSTRUCTION, False),
    ],
)
def test_what_the_server_codes_is_declined(
    wsgi: Served, terms: bytes, target: str, declined: int | None, varies: bool
) -> None:
    with wsgi.connect() as app:
        result = app.passfd("GET", target.replace(" ", "%20"), edits=terms + b"\r\n")
        assert (result.declined, result.wire == b"") == (declined, declined is not None)
        assert (b"\r\nVary: Accept-Encoding\r\n" in result.wire) == varies
        if declined is not None:
            assert result.stdout == app.plain("GET", target.replace(" ", "%20")).stdout


@pytest.mark.parametrize("name", ["X-Sendfile", "X-Accel-Redirect", "X-ZeroCopy", "x-sendfile"])
def test_instructions_to_the_server_are_not_answered_by_the_application(wsgi: Served, name: str) -> None:
    with wsgi.connect() as app:
        result = app.passfd("GET", f"/field?name={name}&value=/secret")
        assert result.wire == b""
        assert result.answered is None
        assert result.header(name) == b"/secret"
        assert result.body == b"body"


def test_a_head_that_is_too_large_for_the_protocol_is_the_servers_business(wsgi: Served) -> None:
    with wsgi.connect() as app:
        result = app.passfd("GET", f"/field?name=X-Large&value={'v' * 17_000}")
        assert (result.wire, result.answered) == (b"", None)
        assert result.header("X-Large") == b"v" * 17_000


def test_an_unknown_transport_is_declined_and_its_descriptors_are_closed(wsgi: Served) -> None:
    with wsgi.connect() as app, Client() as client:
        params = params_records(request_params("GET", "/size?n=5", {}, b""), offer=b"pigeon fds=2\n")
        app.send(begin() + params, [client.served.fileno(), client.served.fileno()])
        app.send(NO_BODY)
        assert app.result().body == pattern(5)
        client.served.close()
        assert client.read_all() == b""


def test_the_offer_is_hidden_from_the_application(wsgi: Served) -> None:
    with wsgi.connect() as app:
        wire = app.passfd("GET", "/environment").wire
    assert b"PATH_INFO='/environment'" in wire
    assert b"BATON_OFFER" not in wire


@pytest.mark.parametrize(
    ("size", "at", "free"), [(65_536, 0, 65_536), (65_536, 60_000, 30_000), (20_000, 19_999, 16_384)]
)
def test_a_ring_that_is_smaller_than_the_answer_is_used_in_turns(wsgi: Served, size: int, at: int, free: int) -> None:
    with wsgi.connect() as app:
        result = app.shm("GET", "/size?n=500000", size=size, at=at, free=free)
        assert result.body == pattern(500_000)
        assert result.slices[0][0] == at
        assert result.inline_bytes < 20_000


def test_a_region_with_hardly_any_room_is_not_used(wsgi: Served) -> None:
    with wsgi.connect() as app:
        result = app.shm("GET", "/size?n=500000", size=65_536, at=10, free=1)
        assert (result.slices, result.body) == ([], pattern(500_000))


def test_an_answer_ends_with_its_last_byte(wsgi: Served, tmp_path: Path) -> None:
    """Not when the application does, which may have things to tidy up."""
    go = tmp_path / "go"
    with wsgi.connect() as app, Client() as client:
        app.offer_client(client, "GET", f"/lingers?go={go}")
        app.send(NO_BODY)
        report = app.result().answered
        assert report is not None
        assert (report.flags, report.body_bytes) == (3, 4)
        go.touch()
        assert app.plain("GET", "/size?n=5").body == pattern(5)


def test_the_region_stays_mapped_for_the_life_of_the_connection(wsgi: Served) -> None:
    with wsgi.connect() as app:
        for at in (0, 100, 250_000):
            result = app.shm("GET", "/size?n=100000", at=at)
            assert result.body == pattern(100_000)
            assert sum(length for _, length in result.slices) == 100_000
            assert app.plain("GET", "/size?n=7").body == pattern(7)


def test_a_region_that_was_never_sent_is_not_used(wsgi: Served) -> None:
    with wsgi.connect() as app:
        params = params_records(
            request_params("GET", "/size?n=50000", {}, b""), offer=b"shm size=4096 at=0 free=4096\n"
        )
        app.send(begin() + params + NO_BODY)
        result = app.result()
        assert (result.slices, result.body) == ([], pattern(50_000))


def test_an_unread_body_does_not_stop_an_answer_through_the_region(wsgi: Served) -> None:
    """FREED follows an unread body: the rest must go in records."""
    with wsgi.connect() as app:
        result = app.shm("POST", "/ignores_body?n=2000000", body=b"b" * 8_000_000, size=65_536)
        assert result.body == pattern(2_000_000)
        assert app.plain("GET", "/size?n=9").body == pattern(9)


def test_bodies_of_requests_arrive_whole(wsgi: Served) -> None:
    body = pattern(2_500_000)
    with wsgi.connect() as app:
        for transport in (app.plain, app.shm):
            assert transport("POST", "/echo", body=body).body == body
        assert unchunk(app.passfd("POST", "/echo", body=body).wire).partition(b"\r\n\r\n")[2] == body
        lines = app.plain("POST", "/echo?lines=1", body=b"one\n\nthree").body
        assert lines == b"4\n1\n5\n"


def test_the_clients_socket_stays_as_it_is(wsgi: Served) -> None:
    """The flag is shared with the server, and the socket is open for the next answer."""
    with wsgi.connect() as app, Client() as client:
        for _ in range(3):
            app.offer_client(client, "GET", "/size?n=100")
            app.send(NO_BODY)
            report = app.result().answered
            assert report is not None
            assert report.flags == 3
            received = client.socket.recv(100_000)
            assert received.endswith(b"\r\n\r\n" + pattern(100))
            with pytest.raises(BlockingIOError):
                client.served.recv(1)


def test_error_output_goes_to_the_server_with_every_transport(wsgi: Served) -> None:
    expected = "line 0 \u20ac\nline 1 \u20ac\nbehind".encode()
    with wsgi.connect() as app:
        for transport in (app.plain, app.shm, app.passfd):
            result = transport("GET", "/errors")
            assert result.stderr == expected
            assert result.is_complete
        many = app.passfd("GET", "/errors?count=20000")
        assert many.stderr.count(b"\n") == 20_000


# ----- files


def roots_of(big_file: Path) -> dict[str, str]:
    return {"BATON_ZEROCOPY": f"/nonexistent:{big_file.parent}"}


@pytest.mark.parametrize("page", ["sends_file", "names_file"])
def test_a_whole_file_is_named_where_the_server_allows_it(wsgi: Served, big_file: Path, page: str) -> None:
    with wsgi.connect() as app:
        for result in (
            app.plain("GET", f"/{page}?path={big_file}", roots_of(big_file)),
            app.shm("GET", f"/{page}?path={big_file}", roots_of(big_file)),
            app.passfd("GET", f"/{page}?path={big_file}", roots_of(big_file)),
        ):
            assert result.wire == b""
            assert result.header("X-Sendfile") == str(big_file).encode()
            assert result.header("Content-Length") is None
            assert result.body == b""


@pytest.mark.parametrize("page", ["sends_file", "names_file"])
def test_a_file_is_sent_where_it_cannot_be_named(wsgi: Served, big_file: Path, page: str) -> None:
    outside = {"BATON_ZEROCOPY": "/nonexistent:relative:/usr"}
    content = big_file.read_bytes()
    with wsgi.connect() as app:
        for headers in ({}, outside):
            plain = app.plain("GET", f"/{page}?path={big_file}", headers)
            assert plain.header("X-Sendfile") is None
            assert plain.header("Content-Length") == str(len(content)).encode()
            assert plain.body == content
            assert app.shm("GET", f"/{page}?path={big_file}", headers).stdout == plain.stdout
            assert app.passfd("GET", f"/{page}?path={big_file}", headers).wire == as_http(plain)


def test_part_of_a_file_is_never_named(wsgi: Served, big_file: Path) -> None:
    content = big_file.read_bytes()
    with wsgi.connect() as app:
        for query, expected in (("seek=1000", content[1000:]), ("length=777", content[:777])):
            target = f"/sends_file?path={big_file}&{query}"
            plain = app.plain("GET", target, roots_of(big_file))
            assert plain.body == expected
            assert app.passfd("GET", target, roots_of(big_file)).wire == as_http(plain)
            assert app.shm("GET", target, roots_of(big_file)).stdout == plain.stdout


def test_files_between_text_are_named_by_a_map(wsgi: Served, big_file: Path) -> None:
    name = str(big_file).encode()
    with wsgi.connect() as app:
        for result in (
            app.plain("GET", f"/mixes_files?path={big_file}", roots_of(big_file)),
            app.passfd("GET", f"/mixes_files?path={big_file}", roots_of(big_file)),
        ):
            second = 7 + len(name) + 9
            assert result.header("X-ZeroCopy") == b"7/%d:%d/%d" % (len(name), second, len(name))
            assert result.body == b"before " + name + b" between " + name + b" after"
            assert result.header("Content-Length") is None


@pytest.mark.parametrize("stream", ["", "&stream=1"])
def test_files_between_text_are_sent_where_they_cannot_be_named(wsgi: Served, big_file: Path, stream: str) -> None:
    content = big_file.read_bytes()
    target = f"/mixes_files?path={big_file}{stream}"
    with wsgi.connect() as app:
        plain = app.plain("GET", target)
        assert plain.body == b"before " + content + b" between " + content + b" after"
        assert app.shm("GET", target).stdout == plain.stdout
        assert unchunk(app.passfd("GET", target).wire) == as_http(plain)


def test_links_that_lead_out_of_the_roots_are_not_named(wsgi: Served, big_file: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("outside")
    link = big_file.parent / "link.txt"
    link.symlink_to(outside)
    inside = big_file.parent / "inside.bin"
    inside.symlink_to(big_file)
    with wsgi.connect() as app:
        result = app.plain("GET", f"/names_file?path={link}", roots_of(big_file))
        assert (result.header("X-Sendfile"), result.body) == (None, b"outside")
        result = app.plain("GET", f"/names_file?path={inside}", roots_of(big_file))
        assert result.header("X-Sendfile") == str(big_file).encode()


def test_a_file_with_another_status_is_named_by_a_map(wsgi: Served, big_file: Path) -> None:
    """X-Sendfile could become 206 or 304, which an error page must not."""
    with wsgi.connect() as app:
        result = app.plain("GET", f"/names_file?path={big_file}&status={quote('404 Gone')}", roots_of(big_file))
        assert result.status == b"404 Gone"
        assert (result.header("X-Sendfile"), result.body) == (None, str(big_file).encode())


def test_names_that_cannot_stand_in_a_header_are_not_named(wsgi: Served, big_file: Path) -> None:
    odd = big_file.parent / "line\nend"
    odd.write_text("odd")
    with wsgi.connect() as app:
        result = app.plain("GET", f"/names_file?path={quote(str(odd))}", roots_of(big_file))
        assert (result.header("X-Sendfile"), result.body) == (None, b"odd")


def test_a_file_that_does_not_exist_is_a_failure_of_the_application(wsgi: Served) -> None:
    with wsgi.connect() as app:
        result = app.plain("GET", "/names_file?path=/nonexistent/file")
        assert result.status == b"500 Internal Server Error"
        assert b"FileNotFoundError" in result.stderr
        assert b"nonexistent" not in result.stdout
