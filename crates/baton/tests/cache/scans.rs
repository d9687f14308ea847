//! What a run through many things that are asked for once leaves of a film, by each policy; and what an operator sees of it.

use serde_json::Value;

use crate::common::agent::Agent;
use crate::common::folder::Folder;
use crate::common::server::{Server, wait_until};
use crate::films::{FILMS, Film, Manner};
use crate::site::status;

const BLOCK: u64 = 64 << 10;
/// Of the cache in memory.
const BLOCKS_MAX: u64 = 256;
/// Of the film.
const FILM_BLOCKS: u64 = 40;

fn server(policy: &str) -> Server {
    Server::run(
        Folder::new(),
        &format!(
            "processes = 1\n[shared_cache]\nmemory_bytes_max = '{} KiB'\nblock_bytes = '{} KiB'\npolicy = '{policy}'\n[[site]]\n{{listen}}\n\
             [[site.route]]\npath = '/film'\nproxy = 'http://{}/'\ncache = true\n",
            (BLOCKS_MAX * BLOCK) >> 10,
            BLOCK >> 10,
            FILMS.address()
        ),
    )
}

/// A viewer takes these blocks of a film.
fn view(agent: &mut Agent, film: &Film, blocks: std::ops::Range<u64>) -> String {
    let range = format!("Range: bytes={}-{}\r\n", blocks.start * BLOCK, blocks.end * BLOCK - 1);
    let response = agent.ask("GET", &film.address(), &range);
    assert_eq!((response.status, response.body.len() as u64), (206, (blocks.end - blocks.start) * BLOCK));
    status(&response)
}

/// The blocks in memory, by segment.
fn told(server: &Server, film: &Film) -> Vec<(u64, u64)> {
    let url = format!("http://localhost{}", film.address());
    let told: Value = serde_json::from_str(&server.ctl(&["cache", &url, "--json"])).expect("JSON");
    let here = told["responses"][0]["here"].as_array().cloned().unwrap_or_default();
    let number = |segment: &Value, key: &str| segment[key].as_u64().expect("a number");
    here.iter().map(|segment| (number(segment, "segment"), number(segment, "in_memory"))).collect()
}

/// What is asked for once, twice as much as the cache has room for.
#[derive(Clone, Copy, Debug)]
enum Scan {
    /// A viewer who stays to the end of a long film.
    Long,
    /// Small things.
    Many,
}

fn scan(agent: &mut Agent, scan: Scan) {
    let (count, blocks) = match scan {
        Scan::Long => (1, 2 * BLOCKS_MAX),
        Scan::Many => (BLOCKS_MAX, 2),
    };
    for _ in 0..count {
        let other = Film::show("once", blocks * BLOCK, Manner::Honest);
        let response = agent.get(&other.address());
        assert_eq!((response.status, response.body.len() as u64), (200, blocks * BLOCK));
    }
}

/// Goal: the beginning of a film that some have begun survives what is asked for once: with `reach` and `s3-fifo` all of that; with
/// `wu` films, whose beginnings have a share to themselves, but not the beginnings of many other things; with `lru` nothing.
/// Method: three viewers take the first block, one of them more. The operator sees the blocks before and after.
#[test]
fn the_beginning_of_a_film_survives_a_scan() {
    for (policy, kind, survives) in [
        ("reach", Scan::Long, true),
        ("reach", Scan::Many, true),
        ("s3-fifo", Scan::Many, true),
        ("wu", Scan::Long, true),
        ("wu", Scan::Many, false),
        ("lru", Scan::Long, false),
        ("lru", Scan::Many, false),
    ] {
        let server = server(policy);
        let film = Film::show("scanned", FILM_BLOCKS * BLOCK, Manner::Honest);
        let mut agent = server.agent();
        view(&mut agent, &film, 0..10);
        for _ in 0..3 {
            wait_until("the first block to be here", || view(&mut agent, &film, 0..1) == "baton; hit");
        }
        wait_until("all ten blocks", || {
            told(&server, &film).iter().map(|(_, blocks)| blocks).sum::<u64>() == 10
        });
        scan(&mut agent, kind);
        let left = told(&server, &film);
        let has_first = left.first().is_some_and(|(segment, _)| *segment == 0);
        assert_eq!(has_first, survives, "{policy}, {kind:?}: {left:?}");
        let is_hit = view(&mut agent, &film, 0..1) == "baton; hit";
        assert_eq!(is_hit, survives, "{policy}, {kind:?}");
    }
}

/// Goal: an operator reads which segments of a film are here, and is told why not if there is nothing to tell.
#[test]
fn an_operator_sees_segments() {
    let server = server("reach");
    let film = Film::show("seen", FILM_BLOCKS * BLOCK, Manner::Honest);
    let mut agent = server.agent();
    let url = format!("http://localhost{}", film.address());
    assert!(server.ctl(&["cache", &url]).contains("nothing is here"));
    // Segments of `reach` have 16 blocks.
    view(&mut agent, &film, 18..20);
    wait_until("two blocks", || told(&server, &film) == [(1, 2)]);
    let said = server.ctl(&["cache", &url]);
    for words in
        ["1 stored response", "200, 2621440 bytes, fresh for", "1 of 3 segments", "1: bytes 1048576-2097151"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(server.ctl_fails(&["cache", "/film/a"]).contains("does not say which host"));
    assert!(server.ctl_fails(&["cache", "http://a/other"]).contains("has no cache"));
}
