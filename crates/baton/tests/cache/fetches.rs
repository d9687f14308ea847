//! Responses on their way into the cache: clients that join, leave, and origins that fail.

use crate::common::folder::{Folder, pattern};
use crate::common::server::{Server, wait_until};
use crate::protocols;
use crate::site::{Site, Visitor, allow, status};

protocols::over_every_protocol!(
    a_response_that_is_cut_is_not_kept,
    a_client_that_leaves_costs_others_nothing,
);

mod shared {
    use super::one_fetch_for_all;

    crate::architectures::under_every_architecture!(by name: one_fetch_for_all);
}

const SLOW: &str = "wait 200|Cache-Control: max-age=60||#300000";

/// Goal: clients that want what is being fetched wait for it, and get it as it comes. Method: a server of its own. On a busy
/// machine the response may be complete before the server has read the other requests: what other tests fetch would evict it.
fn one_fetch_for_all(architecture: &str) {
    // There each client has a process, so a cache, of its own.
    if architecture == "mp" {
        return;
    }
    let site = Site::start(architecture);
    let is_joined = (0..20).any(|round| count_joined(&site, &format!("joined-{round}")) > 0);
    assert!(is_joined, "all came too late to join");
}

/// Asks forty times at once for what is not there. Returns how many clients were told that they have joined a fetch.
fn count_joined(site: &Site, name: &str) -> usize {
    let first = site.visitor(name);
    let mut visitors: Vec<_> =
        (0..40).map(|_| Visitor { agent: site.server.agent(), path: first.path.clone() }).collect();
    visitors.iter_mut().for_each(|visitor| visitor.begin(SLOW, ""));
    wait_until("the request at the origin", || !first.seen().is_empty());
    allow(&first.path);
    let answers = visitors.iter_mut().map(|visitor| {
        let response = visitor.agent.response();
        assert!(response.body == pattern(300_000, 7), "{}", response.line);
        status(&response)
    });
    let answers: Vec<_> = answers.collect();
    assert_eq!(first.seen().len(), 1, "{answers:?}");
    answers.iter().filter(|answer| *answer == "baton; fwd=uri-miss; collapsed").count()
}

/// Goal: what the cache has no room for reaches all who wait for it, and a client that takes nothing holds up others only
/// until it leaves. Method: far more bytes than the cache, and than all buffers on the way.
#[test]
fn what_does_not_fit_passes_through() {
    let configuration = LITTLE_ROOM.replace("{origin}", &crate::site::ORIGIN.address().to_string());
    let site = Site { server: Server::run(Folder::new(), &configuration) };
    let mut first = site.visitor("large");
    let path = first.path.clone();
    let mut second = Visitor { agent: site.server.agent(), path: path.clone() };
    for visitor in [&mut first, &mut second] {
        visitor.begin("wait 200|Cache-Control: max-age=60||#30000000", "");
    }
    wait_until("the request at the origin", || !second.seen().is_empty());
    allow(&path);
    assert_eq!((first.agent.head().status, second.agent.head().status), (200, 200));
    let begun = second.agent.at_least(1_000_000);
    drop(first);
    let rest = second.agent.body().unwrap_or_else(|cut| panic!("cut off after {} bytes", cut.0.len()));
    assert!([begun, rest].concat() == pattern(30_000_000, 7));
    let mut third = Visitor { agent: site.server.agent(), path };
    assert_eq!(third.get("200|Cache-Control: max-age=60||small").text(), "small");
    let held = "\"shared_cache\":{\"bytes\":5,\"fills\":0,\"objects\":1}";
    let status = || site.server.status_text().replace([' ', '\n'], "");
    wait_until("what is kept, in the status", || status().contains(held));
}

/// Goal: a client of a stored response that cannot be fetched in parts gets all of it, however slow it is, and whatever the
/// cache evicts meanwhile. Method: it reads the beginning, three times as much as there is room for goes through the cache,
/// and then it reads the rest.
#[test]
fn what_is_evicted_stays_for_a_slow_client() {
    let configuration = LITTLE_ROOM
        .replace("1 MiB", "32 MiB")
        .replace("{origin}", &crate::site::ORIGIN.address().to_string());
    let site = Site { server: Server::run(Folder::new(), &configuration) };
    let mut slow = site.visitor("slow");
    let answer = "200|Cache-Control: max-age=60||#20000000";
    assert!(slow.get(answer).body == pattern(20_000_000, 7));
    slow.begin(answer, "");
    let head = slow.agent.head();
    assert_eq!(head.field("cache-status").map(|status| status.starts_with("baton; hit")), Some(true));
    let begun = slow.agent.at_least(1_000_000);
    for number in 0..12 {
        assert_eq!(
            site.visitor(&format!("other-{number}")).get("200|Cache-Control: max-age=60||#8000000").status,
            200
        );
    }
    let mut next = Visitor { agent: site.server.agent(), path: slow.path.clone() };
    assert_eq!(next.get("200|Cache-Control: max-age=60||evicted").text(), "evicted");
    let rest = slow.agent.body().unwrap_or_else(|cut| panic!("cut off after {} bytes", cut.0.len()));
    assert!([begun, rest].concat() == pattern(20_000_000, 7));
}

const LITTLE_ROOM: &str = r#"
processes = 1
[shared_cache]
memory_bytes_max = "1 MiB"
[[site]]
{listen}
[[site.route]]
path = "/c"
proxy = "http://{origin}/"
cache = { unkeyed_fields = ["X-Answer", "X-Kind"] }
"#;

fn a_response_that_is_cut_is_not_kept(site: &Site) {
    let mut visitor = site.visitor("cut");
    visitor.begin("200|Cache-Control: max-age=60||%2000000", "");
    assert_eq!(visitor.agent.head().status, 200);
    assert!(visitor.agent.body().is_err());
    let mut visitor = Visitor { agent: site.server.agent(), path: visitor.path };
    assert_eq!(visitor.get("200|Cache-Control: max-age=60||whole").text(), "whole");
    assert_eq!(visitor.get("500").text(), "whole");
}

fn a_client_that_leaves_costs_others_nothing(site: &Site) {
    let mut first = site.visitor("left");
    first.begin("wait 200|Cache-Control: max-age=60||#500000", "");
    wait_until("the request at the origin", || !first.seen().is_empty());
    let path = first.path.clone();
    let mut second = Visitor { agent: site.server.agent(), path: path.clone() };
    second.begin("200|Cache-Control: max-age=60||its own", "");
    drop(first);
    allow(&path);
    let response = second.agent.response();
    assert!(response.body == pattern(500_000, 7) || response.text() == "its own");
    let hit = second.get("500");
    assert!(hit.body == response.body && status(&hit) == "baton; hit", "{}", status(&hit));
}
