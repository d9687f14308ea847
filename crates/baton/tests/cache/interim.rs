//! Interim responses of a fetch: who gets them, and who does not.

use crate::common::agent::Agent;
use crate::common::folder::pattern;
use crate::common::protocol::Protocol;
use crate::films::{Film, Manner, bytes_of};
use crate::protocols;
use crate::site::{Site, Visitor, allow};

protocols::over! { http_auto "auto" Http [
    all_who_wait_get_hints hints_for_a_user_are_for_no_other hints_come_in_front_of_the_head_only
] }
protocols::over! { https_pipeline "pipeline" Https [all_who_wait_get_hints hints_for_a_user_are_for_no_other] }
protocols::over! { h2c_amped "amped" H2c [all_who_wait_get_hints] }
protocols::over! { h2_auto "auto" H2 [all_who_wait_get_hints hints_come_in_front_of_the_head_only] }

const HINTED: &str = "hint 200|Cache-Control: max-age=60||#3000";

/// Goal: all who wait for the head of a fetch get its interim responses, each once. Method: the origin goes on when they have
/// them.
fn all_who_wait_get_hints(site: &Site) {
    let mut first = site.visitor("hints");
    first.begin(HINTED, "");
    expect_hint(&mut first);
    let path = first.path.clone();
    let mut others: Vec<_> = (0..3).map(|_| visitor_of(site, &path)).collect();
    for other in &mut others {
        other.begin(HINTED, "");
        expect_hint(other);
    }
    let mut old = (site.server.protocol() == Protocol::Http).then(|| {
        let mut client = site.server.connect();
        client.send(format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n"));
        client
    });
    allow(&path);
    for visitor in others.iter_mut().chain([&mut first]) {
        expect_hint(visitor);
    }
    allow(&path);
    for visitor in others.iter_mut().chain([&mut first]) {
        let response = visitor.agent.response();
        assert!(response.status == 200 && response.body == pattern(3000, 7), "{}", response.line);
    }
    assert_eq!(first.seen().len(), 1);
    if let Some(old) = &mut old {
        assert_eq!(old.head().status, 200, "HTTP/1.0 knows no interim responses");
    }
}

/// Goal: a client with other cookies waits for the fetch of the first one, but its hints may be about that one's user.
fn hints_for_a_user_are_for_no_other(site: &Site) {
    let mut first = site.visitor("private-hints");
    first.begin(HINTED, "Cookie: user=1\r\n");
    expect_hint(&mut first);
    let mut other = visitor_of(site, &first.path);
    other.begin("500", "Cookie: user=2\r\n");
    (0..2).for_each(|_| allow(&first.path));
    expect_hint(&mut first);
    assert!(first.agent.response().body == pattern(3000, 7));
    let response = other.agent.response();
    assert!(response.status == 200 && response.body == pattern(3000, 7), "{}", response.line);
}

/// Goal: parts of a film that are fetched while a client reads it bring no interim responses into its body.
fn hints_come_in_front_of_the_head_only(site: &Site) {
    const BLOCK: u64 = 256 << 10;
    let film = Film::show("hinted", 8 * BLOCK, Manner::Honest);
    let mut agent = site.server.agent();
    let range = format!("Range: bytes={}-{}\r\n", 3 * BLOCK, 4 * BLOCK - 1);
    assert_eq!(agent.ask("GET", &film.address(), &range).status, 206);
    film.change(|state| state.manner = Manner::Hinting);
    let whole = agent.get(&film.address());
    assert!(whole.body == bytes_of(1, 0..8 * BLOCK), "{}", whole.line);
    assert!(film.asked().len() > 2, "{:?}", film.asked());
}

fn visitor_of(site: &Site, path: &str) -> Visitor {
    Visitor { agent: site.server.agent(), path: path.to_owned() }
}

#[track_caller]
fn expect_hint(visitor: &mut Visitor) {
    let link = match &mut visitor.agent {
        Agent::Http1(client) => {
            let head = client.head();
            assert_eq!(head.status, 103, "{}", head.line);
            head.field("link").map(str::to_owned)
        }
        Agent::Http2(client) => {
            let (status, fields) = client.interim();
            assert_eq!(status, 103);
            fields.into_iter().find(|(name, _)| name == "link").map(|(_, value)| value)
        }
    };
    assert_eq!(link.as_deref(), Some("</a.css>; rel=preload"));
}
