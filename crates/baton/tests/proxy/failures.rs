//! Origins that fail: the client can tell, the two logs say why, and the next request is not concerned.

use crate::common::agent::{Body, CutOff};
use crate::common::folder::Folder;
use crate::common::port::free_address;
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::manners::allow;
use crate::protocols;
use crate::site::{ORIGIN, Site, logged, target};

protocols::over_every_protocol!(no_response, part_of_a_response, too_slow, nothing_of_anothers);

/// One line each in the access log and in the error log, with the reason.
fn said(site: &Site, path: &str, failure: &str, words: &str) {
    let line = site.line_of(path);
    assert_eq!(
        (line["outcome"].as_str(), line["origin"]["failure"].as_str()),
        (Some("origin-failed"), Some(failure))
    );
    let said = format!("origin http://{}/: GET {path}: ", ORIGIN.address());
    wait_until(&said, || site.server.said().contains(&said));
    let all = site.server.said();
    let reasons: Vec<_> = all.lines().filter_map(|line| line.split_once(&*said)).collect();
    assert!(reasons.len() == 1 && reasons[0].1.contains(words), "{reasons:?}");
}

fn no_response(site: &Site) {
    let mut agent = site.server.agent();
    for manner in ["gone", "reset"] {
        let path = target(site, manner, "none");
        assert_eq!(agent.get(&path).status, 502, "{manner}");
        said(site, &path, "ended-early", "closed its connection");
    }
    assert_eq!(agent.get(&target(site, "whole", "none")).status, 200);
}

fn part_of_a_response(site: &Site) {
    for manner in ["short", "short-chunks", "reset-in-body"] {
        let path = target(site, manner, "part");
        let mut agent = site.server.agent();
        agent.begin("GET", "localhost", &path, "", Body::None);
        assert_eq!(agent.head().status, 200, "{manner}");
        assert_eq!(agent.at_least(4), b"some");
        allow(&path);
        assert_eq!(agent.body(), Err(CutOff(Vec::new())), "{manner}");
        said(site, &path, "ended-early", "before its response was complete");
    }
}

fn too_slow(site: &Site) {
    let path = target(site, "silent", "slow").replace("/o/", "/hasty/");
    assert_eq!(site.server.get(&path).status, 504);
    said(site, &path, "head-timed-out", "did not come in time");
    let path = target(site, "stalls", "slow").replace("/o/", "/hasty/");
    let mut agent = site.server.agent();
    agent.begin("GET", "localhost", &path, "", Body::None);
    assert_eq!(agent.head().status, 200);
    assert_eq!(agent.body(), Err(CutOff(b"some".to_vec())));
    said(site, &path, "timed-out", "neither took nor gave");
}

/// Bytes behind a response are not the next one.
fn nothing_of_anothers(site: &Site) {
    let mut agent = site.server.agent();
    for _ in 0..10 {
        assert_eq!(agent.get(&target(site, "stray", "own")).text(), "mine");
        let path = target(site, "whole", "own");
        assert!(agent.get(&path).text().contains(&path["/o".len()..]));
    }
}

/// Goal: an origin at which nothing listens, and one that is not there, say so.
#[test]
fn nothing_listens() {
    let address = free_address();
    let server = Server::run(
        Folder::new(),
        &format!(
            "[log]\naccess = '{{base}}/access.log'\nformat = 'json'\nflush_ms = 10\n[[site]]\n{{listen}}\n\
             [[site.route]]\npath = '/refused'\nproxy = 'http://{address}'\n\
             [[site.route]]\npath = '/missing'\nproxy = 'unix:{{base}}/nothing.sock'\n"
        ),
    );
    for (path, words) in [("/refused", "is it running?"), ("/missing", "is it running?")] {
        for protocol in Protocol::ALL {
            let target = format!("{path}?{protocol:?}");
            assert_eq!(server.over(protocol).get(&target).status, 502);
            assert_eq!(logged(&server, &target)["origin"]["failure"], "no-connection");
            wait_until(words, || {
                server.said().lines().any(|line| line.contains(&target) && line.contains(words))
            });
        }
    }
}
