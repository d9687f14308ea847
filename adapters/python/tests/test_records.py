"""The record reader and the pairs against any input and any cuts of it."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from server_side import pair, record

from baton_fastcgi import records
from baton_fastcgi.head import BadHeadError, make_head
from baton_fastcgi.offer import Bodies, PassFdOffer, ShmOffer, UnknownOffer, parse_offer
from baton_fastcgi.records import BrokenProtocolError, Record, RecordReader
from baton_fastcgi.vector import join_small, without_first

CONTENT = st.one_of(st.binary(max_size=300), st.integers(0, 65_535).map(lambda n: b"x" * n))
RECORDS = st.lists(st.builds(Record, st.integers(0, 255), st.integers(0, 65_535), CONTENT), max_size=8)


def feed(reader: RecordReader, data: bytes, cuts: list[int]) -> list[Record]:
    """Feeds `data` in pieces of the lengths `cuts`, cyclically, as far as the reader has room."""
    out: list[Record] = []
    at = turn = 0
    while at < len(data):
        space = reader.space()
        count = min(len(space), cuts[turn % len(cuts)], len(data) - at)
        assert count > 0, "the reader has no room"
        space[:count] = data[at : at + count]
        out += reader.take(count)
        at += count
        turn += 1
    return out


@settings(max_examples=60, deadline=None)
@given(RECORDS, st.lists(st.integers(1, 70_000), min_size=1, max_size=5), st.integers(0, 255))
def test_records_survive_any_cut(given_records: list[Record], cuts: list[int], padding: int) -> None:
    wire = b"".join(record(*each, padding=padding) for each in given_records)
    assert feed(RecordReader(), wire, cuts) == given_records


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=2000), st.lists(st.integers(1, 64), min_size=1, max_size=4))
def test_any_bytes_are_records_or_broken(data: bytes, cuts: list[int]) -> None:
    with contextlib.suppress(BrokenProtocolError):
        feed(RecordReader(), data, cuts)


def test_a_record_of_another_version_is_broken() -> None:
    with pytest.raises(BrokenProtocolError):
        feed(RecordReader(), b"\x02" + bytes(20), [8])


@settings(max_examples=60, deadline=None)
@given(st.lists(CONTENT, max_size=6))
def test_a_stream_is_cut_into_records_and_keeps_its_bytes(pieces: list[bytes]) -> None:
    wire = b"".join(records.stream_records(records.STDOUT, 7, pieces))
    read = feed(RecordReader(), wire, [65_536])
    assert b"".join(each.content for each in read) == b"".join(pieces)
    assert all(each.content and (each.kind, each.request_id) == (records.STDOUT, 7) for each in read)
    assert len(read) == -(-len(b"".join(pieces)) // records.CONTENT_BYTES)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.binary(max_size=200), st.binary(max_size=300)), max_size=6))
def test_pairs_are_read_as_written(given_pairs: list[tuple[bytes, bytes]]) -> None:
    block = b"".join(pair(*each) for each in given_pairs)
    assert block == b"".join(records.pair(*each) for each in given_pairs)
    assert list(records.pairs(block)) == given_pairs
    for end in range(len(block)):
        with contextlib.suppress(BrokenProtocolError):
            whole = list(records.pairs(block[:end]))
            assert whole == given_pairs[: len(whole)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=5000), max_size=6), st.integers(0, 30_000))
def test_vectors_lose_nothing(pieces: list[bytes], count: int) -> None:
    whole = b"".join(pieces)
    assert b"".join(join_small(pieces)) == whole
    assert b"".join(without_first(pieces, min(count, len(whole)))) == whole[count:]


@settings(max_examples=100, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=60),
        st.lists(
            st.sampled_from(
                [
                    b"passfd",
                    b"shm",
                    b"fds=1",
                    b"fds=2",
                    b"minor=1",
                    b"head=x",
                    b"size=10",
                    b"at=9",
                    b"free=10",
                    b"\n",
                    b"a=b",
                ]
            )
        ).map(b" ".join),
    )
)
def test_any_offer_is_read_or_broken(value: bytes) -> None:
    with contextlib.suppress(BrokenProtocolError):
        assert isinstance(parse_offer(value), (PassFdOffer, ShmOffer, UnknownOffer))


def test_offers_are_read() -> None:
    value = b"passfd fds=1 minor=1 keep=1 head=0 patience=100\nDate: now\r\n"
    assert parse_offer(value) == PassFdOffer(1, 1, True, False, 100, b"Date: now\r\n")
    assert parse_offer(b"passfd fds=1\n") == PassFdOffer(1, 0, False, False, 100, b"")
    assert parse_offer(b"shm size=100 at=99 free=100 fds=1\n") == ShmOffer(1, 100, 99, 100)
    assert parse_offer(b"carrier-pigeon fds=3\n") == UnknownOffer(3)
    assert parse_offer(b"") == UnknownOffer(0)
    bodies = Bodies(asks=True, pool_bytes=65_536, has_file=True)
    assert parse_offer(b"passfd fds=3 bodies=1 pool=65536 file=1\n").bodies == bodies
    assert parse_offer(b"shm size=9 at=0 free=9 fds=2 pool=65536 file=1\n").descriptors == 2


@pytest.mark.parametrize(
    "value", [b"shm size=10 at=10 free=1\n", b"shm size=10 at=0 free=11\n", b"shm free=0\n", b"x file=1\n"]
)
def test_offers_outside_their_region_are_broken(value: bytes) -> None:
    with pytest.raises(BrokenProtocolError):
        parse_offer(value)


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        (199, []),
        (1000, []),
        (200, [(b"X-A", b"1\r\nX-B: 2")]),
        (200, [(b"X-A", b"\0")]),
        (200, [(b"X A", b"1")]),
        (200, [(b"", b"1")]),
        (200, [(b"Content-Length", b"-1")]),
        (200, [(b"Content-Length", b"1"), (b"content-length", b"2")]),
        (302, [(b"Location", b"/a"), (b"Location", b"/b")]),
        (200, [(b"X-Sendfile", b"/a"), (b"X-Sendfile", b"/b")]),
    ],
)
def test_heads_that_nobody_should_see_are_refused(status: int, fields: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(BadHeadError):
        make_head(status, None, fields)
