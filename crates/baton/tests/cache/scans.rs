//! What a run through many things that are asked for once leaves of a film, by each policy; and what an operator sees of it.

use std::sync::Arc;

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
    server_with(policy, "")
}

/// `more`: further settings of the cache.
fn server_with(policy: &str, more: &str) -> Server {
    Server::run(
        Folder::new(),
        &format!(
            "processes = 1\n[shared_cache]\n{more}memory_bytes_max = '{} KiB'\nblock_bytes = '{} KiB'\npolicy = '{policy}'\n[[site]]\n{{listen}}\n\
             {}{}{}",
            (BLOCKS_MAX * BLOCK) >> 10,
            BLOCK >> 10,
            route("/film", "true"),
            route("/wu", "{ policy = 'wu', segments = 'uniform:8' }"),
            route("/grouped", "{ segments = 'exponential' }")
        ),
    )
}

/// A route to the origin of films.
fn route(path: &str, cache: &str) -> String {
    format!("[[site.route]]\npath = '{path}'\nproxy = 'http://{}/'\ncache = {cache}\n", FILMS.address())
}

/// A film, and no file of MP4, whose index the cache would look for.
fn show(test: &str, blocks: u64) -> Arc<Film> {
    let film = Film::show(test, blocks * BLOCK, Manner::Honest);
    film.change(|state| state.fields.push_str("Content-Type: video/webm\r\n"));
    film
}

/// A viewer takes these blocks of a film.
fn view(agent: &mut Agent, film: &Film, blocks: std::ops::Range<u64>) -> String {
    let range = format!("Range: bytes={}-{}\r\n", blocks.start * BLOCK, blocks.end * BLOCK - 1);
    let response = agent.ask("GET", &film.address(), &range);
    assert_eq!((response.status, response.body.len() as u64), (206, (blocks.end - blocks.start) * BLOCK));
    status(&response)
}

/// What the operator is told of the response at a path.
fn told_at(server: &Server, path: &str) -> Value {
    let url = format!("http://localhost{path}");
    let told: Value = serde_json::from_str(&server.ctl(&["cache", &url, "--json"])).expect("JSON");
    told["responses"][0].clone()
}

/// The blocks in memory, by segment.
fn told(server: &Server, film: &Film) -> Vec<(u64, u64)> {
    let here = told_at(server, &film.address())["here"].as_array().cloned().unwrap_or_default();
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
        let other = show("once", blocks);
        let response = agent.get(&other.address());
        assert_eq!((response.status, response.body.len() as u64), (200, blocks * BLOCK));
    }
}

/// Goal: the beginning of a film that some have begun survives what is asked for once: with `auto`, `reach` and `s3-fifo` all of that;
/// with `wu` films, whose beginnings have a share to themselves, but not the beginnings of many other things; with `lru` nothing.
/// Method: three viewers take the first block, one of them more. The operator sees the blocks before and after.
#[test]
fn the_beginning_of_a_film_survives_a_scan() {
    for (policy, kind, survives) in [
        ("auto", Scan::Long, true),
        ("auto", Scan::Many, true),
        ("reach", Scan::Long, true),
        ("reach", Scan::Many, true),
        ("s3-fifo", Scan::Many, true),
        ("wu", Scan::Long, true),
        ("wu", Scan::Many, false),
        ("lru", Scan::Long, false),
        ("lru", Scan::Many, false),
    ] {
        let server = server(policy);
        let film = show("scanned", FILM_BLOCKS);
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

/// Goal: short responses, more than the cache may have objects, displace each other: they neither push out a film nor keep further
/// ones from being stored. The film went, and then nothing was stored any more.
#[test]
fn short_responses_beyond_the_bound_of_objects_displace_each_other() {
    let server = server_with("auto", "objects_max = 64\n");
    let film = show("few", FILM_BLOCKS);
    let mut agent = server.agent();
    view(&mut agent, &film, 0..1);
    wait_until("the block of the film", || told(&server, &film) == [(0, 1)]);
    for _ in 0..120 {
        let short = show("short", 1);
        wait_until("it is stored", || {
            agent.get(&short.address());
            !told(&server, &short).is_empty()
        });
    }
    assert_eq!(told(&server, &film), [(0, 1)]);
}

/// Goal: beyond the bound of objects, short responses that are asked for once push out none that is asked for often, although they
/// have hardly any bytes.
#[test]
fn short_responses_beyond_the_bound_of_objects_push_out_no_popular_one() {
    let server = server_with("auto", "objects_max = 64\n");
    let pages: Vec<_> = (0..8).map(|_| show("page", 2)).collect();
    let mut agent = server.agent();
    let mut is_hit = |page: &Film| status(&agent.get(&page.address())) == "baton; hit";
    for page in &pages {
        (0..3).for_each(|_| wait_until("the page to be here", || is_hit(page)));
    }
    for _ in 0..200 {
        is_hit(&Film::show("short", 1, Manner::Honest));
    }
    for page in &pages {
        assert!(is_hit(page), "{}", page.path);
    }
}

/// Goal: an operator reads which segments of a film are here, and is told why not if there is nothing to tell.
#[test]
fn an_operator_sees_segments() {
    let server = server("reach");
    let film = show("seen", FILM_BLOCKS);
    let mut agent = server.agent();
    let url = format!("http://localhost{}", film.address());
    assert!(server.ctl(&["cache", &url]).contains("nothing is here"));
    // Segments of `reach` have 16 blocks.
    view(&mut agent, &film, 18..20);
    wait_until("two blocks", || told(&server, &film) == [(1, 2)]);
    let said = server.ctl(&["cache", &url]);
    for words in [
        "1 stored response",
        "200, 2621440 bytes, fresh for",
        "kept by reach;",
        "1 of 3 segments",
        "1: bytes 1048576-2097151",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(server.ctl_fails(&["cache", "/film/a"]).contains("does not say which host"));
    assert!(server.ctl_fails(&["cache", "http://a/other"]).contains("has no cache"));
}

/// Goal: a route's policy counts first, then what the response is: a film or not. Method: responses on three routes, of which the
/// operator is told.
#[test]
fn routes_and_films_have_policies_of_their_own() {
    let server = server("auto");
    let mut agent = server.agent();
    let film = show("film", FILM_BLOCKS);
    let short = show("short", 2);
    let file = Film::show("file", FILM_BLOCKS * BLOCK, Manner::Honest);
    for (route, film, policy) in [
        ("/film", &film, "reach"),
        ("/film", &short, "s3-fifo"),
        ("/film", &file, "s3-fifo"),
        ("/wu", &film, "wu/uniform:8"),
        ("/wu", &file, "wu/uniform:8"),
        ("/grouped", &film, "reach/exponential"),
        ("/grouped", &file, "s3-fifo/exponential"),
    ] {
        let path = format!("{route}{}", film.path);
        assert_eq!(agent.get(&path).status, 200);
        assert_eq!(told_at(&server, &path)["policy"], policy, "{path}");
    }
    let films = server.explain("/film/x");
    assert!(
        films.contains("evicted by s3-fifo; video and sound of more than 2097152 bytes by reach\n"),
        "{films}"
    );
    assert!(server.explain("/wu/x").contains("evicted by wu/uniform:8\n"));
}

/// Goal: a viewer who asks for a film in parts is one viewer. Method: with `s3-fifo` what is used once more in the small queue
/// survives a scan. One viewer takes the first segment in four parts, which is one use; four viewers take it as well.
#[test]
fn parts_of_one_viewer_are_one_use() {
    for (viewers, survives) in [(1, false), (4, true)] {
        let server = server("s3-fifo");
        let mut agent = server.agent();
        let film = show("parts", FILM_BLOCKS);
        for _ in 0..viewers {
            for block in 0..4 {
                view(&mut agent, &film, block..block + 1);
            }
        }
        wait_until("all four blocks", || told(&server, &film) == [(0, 4)]);
        scan(&mut agent, Scan::Many);
        assert_eq!(!told(&server, &film).is_empty(), survives, "{viewers} viewers");
    }
}
