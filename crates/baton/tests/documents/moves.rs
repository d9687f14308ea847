//! Documents move, pages and redirects lead to them, and they come home.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::common::client::Client;
use crate::common::folder::pattern;
use crate::common::server::{Server, wait_until};
use crate::crawler::{Crawler, links};
use crate::servers::{IMAGES, Servers, Settings, get, split, status};

/// Pages move where both servers say so.
const PAGES: &str = ", pages = true";

/// Goal: an operator is told why a document stays: by its type, as a page, pinned by pages that are named, or asked for too little.
#[test]
fn an_operator_is_told_why_a_document_stays() {
    let servers = Servers::start(1, Settings::default());
    let folder = servers.home.folder();
    folder.write("pin.html", "<img crossorigin src='/img/pinned.png'>").write("img/pinned.png", "p");
    let told = |path: &str| servers.home.ctl(&["documents", path]);
    for (path, words) in [
        ("/s.js", "none of `types`"),
        ("/", "`pages` is off"),
        ("/img/pinned.png", "needs its own origin: /pin.html"),
        ("/img/0.png", "this server is not busier than"),
        ("/none", "no site that shares its load has such a document"),
    ] {
        wait_until(&format!("{path}: {words}"), || told(path).contains(words));
    }
    let told: serde_json::Value =
        serde_json::from_str(&servers.home.ctl(&["documents", "/img/pinned.png", "--json"])).expect("JSON");
    assert_eq!(told["told"][0]["pinned_by"], json!(["/pin.html"]));
}

/// Goal: a document comes home for load alone: while its peer is less busy it stays longer than the time after which it may be
/// recalled, and comes home when the peer has become the busier server. Its old address leads home, and so do pages.
#[test]
fn documents_of_a_busy_peer_come_home() {
    let servers = Servers::start(1, Settings { home: ", recall_ms = 1000", ..Settings::default() });
    servers.busy_until("documents are away", |servers| !servers.announced().is_empty());
    let address = servers.announced().remove(0);
    let may_be_recalled = Instant::now() + Duration::from_secs(3);
    servers.busy_until("time passes", |_| Instant::now() > may_be_recalled);
    assert!(servers.announced().contains(&address));
    let recalled = || servers.status()["recalled"].clone();
    assert_eq!(recalled(), json!({ "busier": 0, "silent": 0 }), "the home server is the busier one");
    let peer = servers.peers[0].as_ref().expect("a peer");
    let copies = [split(&address).1.to_owned()];
    servers
        .busy_with_until((peer, &copies), "it comes home", |servers| !servers.announced().contains(&address));
    let recalled = recalled();
    assert!(recalled["busier"].as_u64() > Some(0) && recalled["silent"] == 0, "{recalled}");
    assert!(servers.home.ctl(&["documents"]).contains(" busier)"));
    let index = format!("{}/", servers.url(0));
    wait_until("pages show it from home", || !get(&index, "").text().contains(&address));
    let image = address.rsplit_once('/').expect("a path").1;
    let original = format!("{}/img/{image}", servers.url(0));
    assert_eq!(get(&original, "").status, 200);
    wait_until("the peer to send clients home", || {
        let copy = get(&address, "");
        (copy.status, copy.field("location")) == (307, Some(&*original))
    });
}

/// A busy server lends images; its pages show them from where they are, and old addresses redirect.
#[test]
fn documents_of_a_busy_server_are_served_by_its_peers() {
    let servers = Servers::start(2, Settings::default());
    let home = servers.url(0);
    let index = format!("{home}/");
    let plain = get(&index, "");
    let plain_tag = plain.field("etag").expect("a tag").to_owned();
    assert!(!plain.text().contains("~migrate"));

    servers.busy_until("three documents are away", |servers| servers.announced().len() >= 3);
    let away = servers.announced();
    let page = get(&index, "");
    let shown = links(&index, &page);
    let known = away.iter().filter(|address| shown.contains(address)).count();
    assert!(known >= 3, "{away:?} {shown:?}");
    for address in &away {
        let image = address.rsplit_once('/').expect("a path").1;
        let number: usize = image.trim_end_matches(".png").parse().expect("an image");
        let old = get(&format!("{home}/img/{image}?v=1"), "");
        assert_eq!((old.status, old.field("cache-control")), (307, Some("no-store")));
        assert_eq!(old.field("location"), Some(&*format!("{address}?v=1")));
        let copy = get(address, "");
        assert_eq!((copy.status, &*copy.body), (200, pattern(2_000 + number, number as u64)), "{address}");
    }
    let copy = get(&away[0], "");
    let image = away[0].rsplit_once('/').expect("a path").1;
    assert_eq!(copy.field("link"), Some(&*format!("<{home}/img/{image}>; rel=\"canonical\"")));
    assert_eq!(copy.field("x-robots-tag"), Some("noindex"));
    let tag = copy.field("etag").expect("a tag");
    assert_eq!(get(&away[0], &format!("If-None-Match: {tag}\r\n")).status, 304);
    let part = get(&away[0], "Range: bytes=10-19\r\n");
    assert_eq!((part.status, part.body), (206, copy.body[10..20].to_vec()));

    // The page is another one, with its own tag; conditions and ranges are about that one.
    let tag = page.field("etag").expect("a tag");
    assert_ne!(tag, plain_tag);
    assert_eq!(page.field("vary"), plain.field("vary"));
    let again = get(&index, &format!("If-None-Match: {plain_tag}\r\n"));
    assert_eq!(again.status, 200);
    let part = get(&index, "Range: bytes=0-14\r\n");
    assert_eq!((part.status, part.text()), (206, "<!doctype html>"));
    let length = part.field("content-range").expect("a range").rsplit_once('/').expect("a length").1;
    assert!(length.parse::<usize>().expect("a number") > plain.body.len());
    assert_eq!(get(&index, "").field("content-type"), plain.field("content-type"));

    // What pages need from their own origin has not moved, however busy.
    for path in ["s.js", "s.css", "font.woff2", "sub/page.html"] {
        assert_eq!(get(&format!("{home}/{path}"), "").status, 200, "{path}");
    }
    let told = servers.home.ctl(&["documents"]);
    assert!(told.contains(&away[0]) && told.contains(&servers.url(1)), "{told}");
    // One document: where it is, as clients see it.
    let first = format!("/img/{}", away[0].rsplit_once('/').expect("a path").1);
    let told = servers.home.ctl(&["documents", &first]);
    assert!(told.contains(&format!("{first}: away: clients get 307 to {}", away[0])), "{told}");
    let told = servers.home.explain(&first);
    for words in [format!("away, at {}", away[0]), format!("Location: {}", away[0])] {
        assert!(told.contains(&words) && told.contains("307"), "{words}: {told}");
    }
    let peer = servers.peers.iter().flatten().next().expect("a peer");
    assert_eq!(status(peer)["lent"].as_array().map(Vec::len), Some(0));

    // What monitoring reads: workers are asked for their counts every now and then.
    let metric = |server: &Server, name: &str| {
        let admin = *server.addresses().last().expect("an address for monitoring");
        let page = Client::connect(admin).get("/metrics").text().to_owned();
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.rsplit_once(' ')?.1.parse().ok());
        line.unwrap_or_else(|| panic!("{name} in {page}"))
    };
    servers.busy_until("the counts are known", |servers| {
        let of_home = |name| -> u64 { metric(&servers.home, name) };
        of_home("baton_documents_lent{") >= 3
            && of_home("baton_documents_moves_total{") >= 3
            && of_home("baton_documents_redirects_total{") >= 3
            && of_home("baton_documents_copies_total{") == 0
            && servers.peers.iter().flatten().any(|peer| metric(peer, "baton_documents_copies_total{") >= 1)
    });
}

/// A client that follows links finds everything at any time, and every address that was ever given out goes on to work.
#[test]
fn no_address_dies_while_documents_move_and_change() {
    let servers = Servers::start(2, Settings { home: PAGES, peer: PAGES, ..Settings::default() });
    let index = format!("{}/", servers.url(0));
    let mut crawler = Crawler::default();
    for round in 0..3 {
        servers.busy_until("documents are away", |servers| servers.announced().len() >= IMAGES / 2);
        assert_eq!(crawler.visit(&index), [""; 0]);
        let pages: Vec<_> = crawler.seen.iter().filter(|url| url.ends_with("page.html")).cloned().collect();
        for page in pages {
            assert_eq!(crawler.visit(&page), [""; 0]);
        }
        assert_eq!(crawler.dead(), [""; 0]);
        // What changes comes home, and is seen there.
        for number in 0..IMAGES {
            servers
                .home
                .folder()
                .replace(&format!("img/{number}.png"), pattern(3_000, round * 100 + number as u64));
        }
        let has_come_home = |url: &String| {
            let found = crawler.follow(url).expect("it works").1;
            found.body.len() == 3_000
                && (0..IMAGES).any(|number| found.body == pattern(3_000, round * 100 + number as u64))
        };
        let images: Vec<_> = (0..IMAGES).map(|number| format!("{}img/{number}.png", index)).collect();
        let deadline = Instant::now() + crate::common::server::PATIENCE;
        let mut has_come_home = has_come_home;
        while !images.iter().all(&mut has_come_home) {
            assert!(Instant::now() < deadline, "a changed document is not seen");
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(crawler.dead(), [""; 0]);
    }
}

/// A copy of a page shows what its original shows, from the peer's address.
#[test]
fn pages_move_if_they_are_allowed_to() {
    let home = ", pages = true, types = []";
    let servers = Servers::start(1, Settings { home, peer: PAGES, ..Settings::default() });
    let page = format!("{}/sub/page.html", servers.url(0));
    servers.busy_until("the page is away", |servers| {
        (0..20).for_each(|_| {
            get(&page, "");
        });
        servers.announced().iter().any(|address| address.ends_with("/sub/page.html"))
    });
    let mut crawler = Crawler::default();
    let (at, copy) = crawler.follow(&page).expect("it works");
    assert!(at.starts_with(&servers.url(1)), "{at}");
    assert!(copy.text().starts_with(&format!("<base href=\"{page}\">")), "{}", copy.text());
    assert!(
        !at.contains("index.html") && get(&format!("{}/", servers.url(0)), "").status == 200,
        "the entry point stays"
    );
}
