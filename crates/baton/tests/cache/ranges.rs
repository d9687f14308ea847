//! Objects in parts: what the origin is asked for, and what clients get of honest origins and of others.

use std::fs;
use std::ops::Range;

use baton_http::Stamp;

use crate::common::agent::{Agent, Body, CutOff};
use crate::common::client::Response;
use crate::common::server::wait_until;
use crate::films::{Film, Manner, bytes_of};
use crate::protocols;
use crate::site::{Site, status};

protocols::over_every_protocol!(
    a_range_fetches_its_blocks,
    the_last_bytes_of_what_is_not_here,
    parts_are_completed,
    ranges_of_an_origin_without_ranges,
    objects_without_a_strong_tag_come_as_a_whole,
    parts_may_leave_out_a_date_that_is_known,
    origins_that_lie_about_parts,
    a_cut_origin_is_asked_for_the_rest,
    a_film_that_changes_is_never_mixed,
);

/// The default.
const BLOCK: u64 = 256 << 10;

/// Twelve blocks, and a part of one.
const LENGTH: u64 = 12 * BLOCK + 4711;

fn ask(agent: &mut Agent, film: &Film, range: &str) -> Response {
    agent.ask("GET", &film.address(), &format!("Range: bytes={range}\r\n"))
}

#[track_caller]
fn expect_part(response: &Response, version: u8, bytes: Range<u64>) {
    let place = format!("bytes {}-{}/{LENGTH}", bytes.start, bytes.end - 1);
    assert_eq!((response.status, response.field("content-range")), (206, Some(&*place)));
    assert!(response.body == bytes_of(version, bytes), "other bytes");
}

fn a_range_fetches_its_blocks(site: &Site) {
    let film = Film::show("part", LENGTH, Manner::Honest);
    let mut agent = site.server.agent();
    let part = ask(&mut agent, &film, "1000000-1000099");
    expect_part(&part, 1, 1_000_000..1_000_100);
    assert_eq!(status(&part), "baton; fwd=uri-miss; stored");
    assert_eq!(film.asked(), ["bytes=786432-1048575"]);
    assert_eq!(film.seen()[0].field("accept-encoding"), Some("identity"));
    // The client had its bytes before the block was complete.
    wait_until("the block to be stored", || {
        let hit = ask(&mut agent, &film, "800000-1048575");
        expect_part(&hit, 1, 800_000..1_048_576);
        status(&hit) == "baton; hit"
    });
    assert_eq!(film.asked().len(), 1);
    // Its second block is not here.
    let more = ask(&mut agent, &film, "1048000-1100000");
    expect_part(&more, 1, 1_048_000..1_100_001);
    // The first fetch may not have noticed its end.
    assert!(["baton; fwd=partial", "baton; fwd=partial; collapsed"].contains(&&*status(&more)), "{more:?}");
    assert_eq!(film.asked()[1..], ["bytes=1048576-1310719"]);
    assert_eq!(film.seen()[1].field("if-range"), Some("\"1\""));
    let none = ask(&mut agent, &film, "99999999-");
    assert_eq!((none.status, none.field("content-range")), (416, Some(&*format!("bytes */{LENGTH}"))));
    assert_eq!(film.asked().len(), 2);
    let several = ask(&mut agent, &film, "0-9,20-29");
    assert_eq!((several.status, several.body.len() as u64), (200, LENGTH));
}

fn the_last_bytes_of_what_is_not_here(site: &Site) {
    let film = Film::show("suffix", LENGTH, Manner::Honest);
    let mut agent = site.server.agent();
    expect_part(&ask(&mut agent, &film, "-100"), 1, LENGTH - 100..LENGTH);
    // The first block tells the length.
    assert_eq!(film.asked(), ["bytes=0-262143", "bytes=3145728-"]);
    expect_part(&ask(&mut agent, &film, "0-4"), 1, 0..5);
    assert_eq!(film.asked().len(), 2);
}

fn parts_are_completed(site: &Site) {
    let film = Film::show("completed", LENGTH, Manner::Honest);
    let mut agent = site.server.agent();
    for range in ["600000-700000", "2000000-2000001", "-5"] {
        assert_eq!(ask(&mut agent, &film, range).status, 206);
    }
    let whole = agent.get(&film.address());
    assert_eq!((whole.status, whole.field("content-range")), (200, None));
    assert!(whole.body == bytes_of(1, 0..LENGTH));
    assert_eq!(film.sent(), LENGTH, "each byte once: {:?}", film.asked());
    let hit = agent.get(&film.address());
    assert!(hit.body == whole.body && status(&hit) == "baton; hit");
    assert_eq!(film.sent(), LENGTH);
}

fn ranges_of_an_origin_without_ranges(site: &Site) {
    let film = Film::show("no-ranges", LENGTH, Manner::Whole);
    let mut agent = site.server.agent();
    expect_part(&ask(&mut agent, &film, "3000000-3000009"), 1, 3_000_000..3_000_010);
    expect_part(&ask(&mut agent, &film, "5-9"), 1, 5..10);
    assert!(film.sent() < LENGTH + BLOCK, "{} bytes for {:?}", film.sent(), film.asked());
}

fn objects_without_a_strong_tag_come_as_a_whole(site: &Site) {
    for tag in ["", "ETag: W/\"1\"\r\n"] {
        let film = Film::show("weak", LENGTH, Manner::Honest);
        film.change(|state| state.fields = format!("Cache-Control: max-age=600\r\n{tag}"));
        let mut agent = site.server.agent();
        let part = ask(&mut agent, &film, "1000000-1000009");
        expect_part(&part, 1, 1_000_000..1_000_010);
        assert_eq!(film.asked(), ["bytes=786432-1048575", "-"], "a part, which is of no use");
        // It was fetched to its end: little was missing, or the next client waits for it.
        let whole = agent.get(&film.address());
        assert!(whole.body == bytes_of(1, 0..LENGTH), "{tag}");
    }
}

/// An origin whose parts say nothing that their client knows already, such as the date that it has named in If-Range.
fn parts_may_leave_out_a_date_that_is_known(site: &Site) {
    let film = Film::show("brief", LENGTH, Manner::Brief);
    // With an older date it would be stale.
    let now = std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_secs();
    let date = String::from_utf8_lossy(&Stamp::at(now).date).into_owned();
    film.change(|state| {
        state.fields = format!(
            "Cache-Control: max-age=600\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nDate: {date}\r\n"
        );
    });
    let mut agent = site.server.agent();
    for first in [1_000_000, 3_000_000, 2_000_000] {
        let part = ask(&mut agent, &film, &format!("{first}-{}", first + 9));
        expect_part(&part, 1, first..first + 10);
    }
    assert_eq!(film.asked().len(), 3, "one request for each range: {:?}", film.asked());
    expect_part(&ask(&mut agent, &film, "1000000-1000009"), 1, 1_000_000..1_000_010);
    assert_eq!(film.asked().len(), 3, "what was stored is there");
}

/// Whatever an origin says of its parts, a client gets bytes of one version in their places, or sees that it does not.
fn origins_that_lie_about_parts(site: &Site) {
    let manners = [
        Manner::Shorter(1),
        Manner::Shorter(BLOCK),
        Manner::Shifted,
        Manner::OtherTotals,
        Manner::Unplaced,
        Manner::Multipart,
        Manner::Gzip,
        Manner::Refused,
    ];
    for manner in manners {
        for begins_honestly in [true, false] {
            let film = Film::show("lies", LENGTH, if begins_honestly { Manner::Honest } else { manner });
            let mut agent = site.server.agent();
            if begins_honestly {
                expect_part(&ask(&mut agent, &film, "300000-300009"), 1, 300_000..300_010);
                film.change(|state| state.manner = manner);
            }
            for bytes in [500_000..1_000_000, 0..2_000_000] {
                let range = format!("Range: bytes={}-{}\r\n", bytes.start, bytes.end - 1);
                agent.begin("GET", "localhost", &film.address(), &range, Body::None);
                let head = agent.head();
                let (body, is_cut) = match agent.body() {
                    Ok(body) => (body, false),
                    Err(CutOff(body)) => (body, true),
                };
                if is_cut {
                    agent = site.server.agent();
                }
                let case = format!("{manner:?} {begins_honestly} {bytes:?} {}", head.line);
                let place = head.field("content-range").unwrap_or_default();
                let is_plain = head.status == 206 && head.field("content-encoding").is_none();
                if is_plain && place.starts_with(&format!("bytes {}-{}/", bytes.start, bytes.end - 1)) {
                    let expected = bytes_of(1, bytes.clone());
                    assert!(
                        expected.starts_with(&body) && (is_cut || body.len() == expected.len()),
                        "{case}"
                    );
                } else {
                    // What the origin says to the client's own request is the origin's to answer for.
                    assert!(!status(&head).contains("stored"), "{case}: {}", status(&head));
                    assert!(head.status != 200 || body == bytes_of(1, 0..LENGTH), "{case}");
                }
            }
        }
    }
}

fn a_cut_origin_is_asked_for_the_rest(site: &Site) {
    let film = Film::show("cut", LENGTH, Manner::CutAfter(1_000_000));
    let mut agent = site.server.agent();
    let whole = agent.get(&film.address());
    assert!(whole.status == 200 && whole.body == bytes_of(1, 0..LENGTH));
    assert_eq!(film.asked(), ["-", "bytes=786432-"]);
    assert_eq!(film.seen()[1].field("if-range"), Some("\"1\""));
}

/// Who has bytes of the old version is cut, with the reason in the log; who comes then gets the new one.
fn a_film_that_changes_is_never_mixed(site: &Site) {
    let film = Film::show("changed", LENGTH, Manner::StallsAfter(1_000_000));
    let mut first = site.server.agent();
    first.begin("GET", "localhost", &film.address(), "", Body::None);
    assert_eq!(first.head().status, 200);
    let begun = first.at_least(900_000);
    film.replace(2, Manner::Honest);
    let CutOff(rest) = first.body().expect_err("the rest of another version");
    let got = [begun, rest].concat();
    assert!(got == bytes_of(1, 0..got.len() as u64) && got.len() <= 1_000_000);
    let mut second = site.server.agent();
    expect_part(&ask(&mut second, &film, "10-2000000"), 2, 10..2_000_001);
    assert!(second.get(&film.address()).body == bytes_of(2, 0..LENGTH));
    wait_until("the reason in the log", || {
        let text = fs::read_to_string(site.server.folder().base().join("access.log")).unwrap_or_default();
        text.lines().any(|line| line.contains(&film.path) && line.contains("\"changed\""))
    });
}
