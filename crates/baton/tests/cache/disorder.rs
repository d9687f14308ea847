//! Random clients of a film whose origin misbehaves and changes at random.

use std::ops::Range;
use std::thread;

use crate::common::agent::{Body, CutOff};
use crate::common::client::Response;
use crate::common::server::Server;
use crate::films::{Film, Manner, bytes_of};
use crate::site::site;

/// Goal: whatever clients want and the origin does, a body is of the version that its head names, in its place, and whole or
/// visibly cut; and in the end the film is there for all. Method: seeds choose ranges, which clients leave early, and what the
/// origin does next. `BATON_DISORDER=4711` repeats one.
#[test]
fn no_body_is_mixed() {
    let one = std::env::var("BATON_DISORDER").ok().map(|text| text.parse().expect("a seed"));
    let seeds: Range<u64> = one.map_or(0..6, |seed| seed..seed + 1);
    for seed in seeds {
        eprintln!("BATON_DISORDER={seed}");
        disorder(&site("auto").server, &mut fastrand::Rng::with_seed(seed));
    }
}

const LENGTH: u64 = 3_000_000;

fn disorder(server: &Server, random: &mut fastrand::Rng) {
    let film = Film::show("disorder", LENGTH, Manner::Honest);
    thread::scope(|scope| {
        for _ in 0..6 {
            let mut random = random.fork();
            let film = &film;
            scope.spawn(move || (0..6).for_each(|_| visit(server, film, &mut random)));
        }
        for _ in 0..8 {
            thread::yield_now();
            let manner = choose_manner(random);
            match random.bool() {
                true => film.replace(random.u8(1..5), manner),
                false => film.change(|state| state.manner = manner),
            }
            // Clients are in the middle of something whenever the next request reaches the origin.
            visit(server, &film, random);
        }
    });
    film.replace(9, Manner::Honest);
    // What is here is fresh; a client that wants to know asks the origin, and from then on all have the new version.
    let now = server.agent().ask("GET", &film.address(), "Cache-Control: no-cache\r\n");
    assert!(now.body == bytes_of(9, 0..LENGTH), "{}", now.line);
    let then = server.agent().ask("GET", &film.address(), "Range: bytes=-1000\r\n");
    assert!(then.status == 206 && then.body == bytes_of(9, LENGTH - 1000..LENGTH), "{}", then.line);
}

fn choose_manner(random: &mut fastrand::Rng) -> Manner {
    let less = random.u64(1..600_000);
    let manners = [
        Manner::Honest,
        Manner::Honest,
        Manner::Whole,
        Manner::Shorter(less),
        Manner::Shifted,
        Manner::OtherTotals,
        Manner::Unplaced,
        Manner::Gzip,
        Manner::Refused,
        Manner::CutAfter(less),
    ];
    random.choice(manners).expect("one of them")
}

/// A client asks for something, and looks at what it gets.
fn visit(server: &Server, film: &Film, random: &mut fastrand::Rng) {
    let (first, count) = (random.u64(..LENGTH), random.u64(1..1_500_000));
    let range = match random.u8(..5) {
        0 => String::new(),
        1 => format!("Range: bytes=-{count}\r\n"),
        2 => format!("Range: bytes={first}-\r\n"),
        _ => format!("Range: bytes={first}-{}\r\n", (first + count).min(LENGTH) - 1),
    };
    let mut agent = server.agent();
    agent.begin("GET", "localhost", &film.address(), &range, Body::None);
    let head = agent.head();
    if random.u8(..4) == 0 && head.status < 300 {
        // It leaves.
        let _ = agent.piece();
        return;
    }
    let (body, is_cut) = match agent.body() {
        Ok(body) => (body, false),
        Err(CutOff(body)) => (body, true),
    };
    // Of these the origin itself says nothing that could be compared.
    if head.status >= 300 || head.field("content-encoding").is_some() {
        return;
    }
    let Some(bytes) = place_of(&head) else { return };
    let tag = head.field("etag").expect("a tag").trim_matches('"').parse::<u8>().expect("a version");
    let expected = bytes_of(tag, bytes.start..bytes.end.min(LENGTH));
    let case = format!("{range:?} {} {:?} {} bytes", head.line, head.field("cache-status"), body.len());
    assert!(expected.starts_with(&body), "other bytes: {case}");
    assert!(is_cut || body.len() == expected.len(), "not whole: {case}");
}

/// Which bytes a response says that it has.
fn place_of(head: &Response) -> Option<Range<u64>> {
    if head.status == 200 {
        return Some(0..LENGTH);
    }
    let (place, _) = head.field("content-range")?.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = place.split_once('-')?;
    Some(first.parse().ok()?..last.parse::<u64>().ok()? + 1)
}
