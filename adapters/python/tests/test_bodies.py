"""Bodies of requests that the server lends: in a pool, or in a file."""

from __future__ import annotations

import hashlib
import os
import struct
import tempfile
from collections.abc import Iterator

import pytest
from running import Served, wait_until
from server_side import NO_BODY, Pool, record, stdin_records
from wsgi_app import pattern

CHUNK = 65_536


@pytest.fixture
def pool() -> Iterator[Pool]:
    """A pool of eight chunks, with bytes that reveal any displacement."""
    pool = Pool(8 * CHUNK)
    pool.memory[:] = pattern(8 * CHUNK)
    yield pool
    pool.close()


def stdin(content: bytes) -> bytes:
    return stdin_records(content)[0]


@pytest.fixture
def body_file() -> Iterator[int]:
    """A file of 100,000 bytes that can only be read."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(pattern(100_000))
        file.flush()
        descriptor = os.open(file.name, os.O_RDONLY)
        yield descriptor
        os.close(descriptor)


def in_file(offset: int, count: int) -> bytes:
    return record(66, 1, b"\x08" + struct.pack(">QQ", offset, count))


@pytest.mark.parametrize("length", [0, 20_000_000])
def test_only_a_server_that_asks_is_told(wsgi: Served, length: int) -> None:
    with wsgi.connect() as app:
        app.lend("/ignores_body", "", NO_BODY, length=length)
        assert not app.result().takes_bodies
        app.lend("/ignores_body", "bodies=1", NO_BODY, length=length)
        assert app.result().takes_bodies


@pytest.mark.parametrize("kind", ["wsgi", "asgi"])
def test_the_server_is_told_before_a_long_body_comes(request: pytest.FixtureRequest, kind: str) -> None:
    """Else all of the first body of a connection would be copied."""
    served: Served = request.getfixturevalue(kind)
    with served.connect() as app:
        app.lend("/digest", "bodies=1", stdin(b"first"), length=20_000_000)
        assert app.next_record() == (66, 1, b"\x07")
        app.send(NO_BODY)
        result = app.result()
        assert (result.takes_bodies, result.body[:2]) == (False, b"5 ")


@pytest.mark.parametrize("kind", ["wsgi", "asgi"])
def test_pieces_of_all_kinds_make_one_body(
    request: pytest.FixtureRequest, kind: str, pool: Pool, body_file: int
) -> None:
    """`wsgi.input` and `receive` are as with any server. The pool serves later requests on the connection."""
    served: Served = request.getfixturevalue(kind)
    chunks = pool.slices((CHUNK, CHUNK), (5, 100))
    records = stdin(b"first") + chunks + in_file(10, 99_990) + stdin(b"last") + NO_BODY
    expected = b"first" + pattern(8 * CHUNK)[CHUNK : 2 * CHUNK] + pattern(8 * CHUNK)[5:105]
    expected += pattern(100_000)[10:] + b"last"
    with served.connect() as app:
        words = f"pool={8 * CHUNK} file=1"
        app.lend("/echo", words, records, [pool.descriptor, body_file])
        assert app.result().body == expected
        pool.memory[:3] = b"new"
        app.lend("/echo", "", pool.slices((0, 3)) + NO_BODY)
        assert app.result().body == b"new"


@pytest.mark.parametrize("kind", ["wsgi", "asgi"])
@pytest.mark.parametrize("keeps", ["", "?keep=1"])
def test_views_show_the_body_in_place(
    request: pytest.FixtureRequest, kind: str, pool: Pool, body_file: int, keeps: str
) -> None:
    """They cannot be written to, and end one after the other; one that an application has kept a part of, too."""
    served: Served = request.getfixturevalue(kind)
    content = pattern(8 * CHUNK)
    records = pool.slices((0, CHUNK), (CHUNK, CHUNK)) + in_file(0, 100_000) + stdin(b"end") + NO_BODY
    whole = content[: 2 * CHUNK] + pattern(100_000) + b"end"
    with served.connect() as app:
        for _ in range(3):
            app.lend(f"/views{keeps}", f"pool={8 * CHUNK} file=1", records, [pool.descriptor, body_file])
            assert app.result().body.decode() == f"{hashlib.sha256(whole).hexdigest()} 4 4 4"


@pytest.mark.parametrize("target", ["/views", "/digest", "/echo"])
def test_pieces_are_returned_while_the_body_goes_on(wsgi: Served, pool: Pool, target: str) -> None:
    """A server that has no more to lend gets some back before the end of the body."""
    with wsgi.connect() as app:
        ranges = [(at * CHUNK, CHUNK) for at in range(8)]
        app.lend(target, f"pool={8 * CHUNK}", pool.slices(*ranges), [pool.descriptor])
        kind, _, content = app.next_record() or (0, 0, b"")
        while kind == 6:
            kind, _, content = app.next_record() or (0, 0, b"")
        assert (kind, content[0]) == (66, 4)
        assert 2 * CHUNK <= int.from_bytes(content[1:], "big") <= 8 * CHUNK
        app.send(NO_BODY)
        result = app.result()
        assert result.is_complete
        assert result.freed_bytes <= 6 * CHUNK


def test_a_task_that_sends_and_one_that_reads_do_not_disturb_each_other(asgi: Served, pool: Pool) -> None:
    with asgi.connect() as app:
        ranges = [(at * CHUNK, CHUNK) for at in range(8)]
        app.lend("/echo", f"pool={8 * CHUNK}", pool.slices(*ranges) + NO_BODY, [pool.descriptor])
        assert app.result().body == pattern(8 * CHUNK)


@pytest.mark.parametrize(
    ("words", "records"),
    [
        ("pool=524288", Pool.slices((0, 524_289))),
        ("pool=524288", Pool.slices((524_288, 1))),
        ("pool=524288", Pool.slices((0, 0))),
        ("pool=524288", in_file(0, 1)),
        ("pool=524289", Pool.slices((0, 1))),
        ("", Pool.slices((0, 1))),
        ("pool=524288", record(66, 1, b"\x01")),
        ("pool=524288", record(66, 1, b"\x01\0\0\0")),
        ("pool=524288", record(66, 1, b"\x08\0\0\0")),
    ],
)
def test_places_that_were_not_lent_end_the_connection(wsgi: Served, pool: Pool, words: str, records: bytes) -> None:
    with wsgi.connect() as app:
        app.lend("/digest", words, records + NO_BODY, [pool.descriptor] if words else [])
        assert not app.result().is_complete
    with wsgi.connect() as app:
        assert app.plain("GET", "/size?n=5").body == pattern(5)


def test_nothing_is_left_behind(pool: Pool, body_file: int) -> None:
    """Neither of bodies that are read nor of those that are not, and of none once their connection has ended."""
    with Served("wsgi_app", "--processes", "0") as served:
        pid = served.process.pid
        with served.connect() as app:
            assert app.plain("GET", "/size?n=5").body == pattern(5)
            before = served.open_descriptors(pid) - 1
        for target in ("/views", "/views?once=1", "/digest", "/ignores_body"):
            with served.connect() as app:
                for _ in range(3):
                    records = pool.slices((0, CHUNK)) + in_file(0, 100_000) + NO_BODY
                    words = f"pool={8 * CHUNK} file=1"
                    app.lend(target, words, records, [pool.descriptor, body_file])
                    assert app.result().is_complete
                assert lent_mappings(pid) <= 1, "the file of a request that has ended"
        wait_until(lambda: served.open_descriptors(pid) == before, "as many descriptors as without a connection")
        assert lent_mappings(pid) == 0


def lent_mappings(pid: int) -> int:
    with open(f"/proc/{pid}/maps") as maps:
        return sum("memfd:pool" in line or "/tmp/tmp" in line for line in maps)
