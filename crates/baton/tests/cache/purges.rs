//! What operators and clients purge, in every worker.

use crate::common::client::Client;
use crate::common::folder::Folder;
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::protocols;
use crate::site::{Site, Visitor, allow, status};

protocols::over_every_protocol!(
    what_is_fetched_during_a_change_is_not_for_later_clients,
    what_is_fetched_while_its_tag_is_purged_is_not_for_later_clients,
);

const OLD: &str = "200|Cache-Control: max-age=600||old";
const NEW: &str = "200|Cache-Control: max-age=600||new";

/// The line of `baton ctl purge`.
fn purge(site: &Site, what: &[&str]) -> String {
    site.server.ctl(&[&["purge"], what].concat())
}

mod operators {
    use super::operators_purge_urls_prefixes_and_tags;

    crate::architectures::under_every_architecture!(by name: operators_purge_urls_prefixes_and_tags);
}

/// Goal: an operator purges just what is named, and is told how much that was. Method: a server of its own, since what other
/// clients have invalidated there is dropped and counted with the next purge.
fn operators_purge_urls_prefixes_and_tags(architecture: &str) {
    let site = Site::start(architecture);
    Protocol::ALL.into_iter().for_each(|protocol| purge_urls_prefixes_and_tags(&site.over(protocol)));
}

fn purge_urls_prefixes_and_tags(site: &Site) {
    let mut visitor = site.visitor("purged");
    let path = visitor.path.clone();
    let at = |host: &str, rest: &str| format!("{}://{host}{path}{rest}", site.server.protocol().scheme());
    let mut holds = |rest: &str, answer: &str, expected: &str| {
        visitor.path = format!("{path}{rest}");
        let response = visitor.get(answer);
        assert_eq!(response.text(), expected, "{rest}: {}", status(&response));
    };
    let tag = path.replace('/', ".");
    let tagged = format!("200|Cache-Control: max-age=600|Cache-Tag: other, {tag}||old");
    let others = [at("elsewhere", ""), at("localhost:1", ""), at("localhost", "?"), at("localhost", "/")];
    for rest in ["", "/a", "/a/b", "?q"] {
        holds(rest, &tagged, "old");
    }
    for other in others {
        assert!(purge(site, &[&other]).starts_with("purged: 0 stored responses dropped"), "{other}");
    }
    holds("", "500", "old");

    let url = at("LOCALHOST", "#top");
    assert!(purge(site, &[&url]).starts_with("purged: 1 stored response dropped, in "));
    holds("", NEW, "new");
    holds("?q", "500", "old");

    assert!(purge(site, &["--prefix", &at("localhost", "/")]).starts_with("purged: 2 "));
    holds("/a", NEW, "new");
    holds("/a/b", NEW, "new");
    holds("", "500", "new");

    assert!(purge(site, &["--tag", &tag]).starts_with("purged: 1 "));
    holds("?q", NEW, "new");
    holds("/a", "500", "new");
}

/// Goal: a client that asks after a change gets what is there after it, though an earlier request is still on its way. Method: an
/// origin that answers the first request last.
fn what_is_fetched_during_a_change_is_not_for_later_clients(site: &Site) {
    let mut first = site.visitor("changing");
    // The one who has changed it asks again: under `mp` other clients have other caches, which hear of it a little later.
    let mut later = Visitor { agent: site.server.agent(), path: first.path.clone() };
    first.begin(&format!("wait {OLD}"), "");
    wait_until("the request at the origin", || !later.seen().is_empty());
    assert_eq!(later.ask("POST", "204", "").status, 204);
    assert_eq!(later.get(NEW).text(), "new", "the first answer has not come yet");
    allow(&first.path);
    assert_eq!(first.agent.response().text(), "old");
    assert_eq!(later.get("500").text(), "new", "the older response takes no newer one's place");
}

/// The same with a purge by tag: that the response has it is known only when its head comes.
fn what_is_fetched_while_its_tag_is_purged_is_not_for_later_clients(site: &Site) {
    let mut first = site.visitor("tagging");
    let mut later = Visitor { agent: site.server.agent(), path: first.path.clone() };
    let tag = first.path.replace('/', ".");
    first.begin(&format!("wait 200|Cache-Control: max-age=600|Cache-Tag: {tag}||old"), "");
    wait_until("the request at the origin", || !later.seen().is_empty());
    purge(site, &["--tag", &tag]);
    later.begin(NEW, "");
    allow(&first.path);
    assert_eq!(first.agent.response().text(), "old");
    assert_eq!(later.agent.response().text(), "new");
}

/// A server with two workers, each with a cache, and a listener for purges.
fn two_workers(architecture: &str) -> Site {
    let configuration = TWO_WORKERS
        .replace("{architecture}", architecture)
        .replace("{origin}", &crate::site::ORIGIN.address().to_string());
    Site { server: Server::run(Folder::new(), &configuration) }
}

const TWO_WORKERS: &str = r#"
architecture = "{architecture}"
processes = 2
[admin]
listen = "127.0.0.1:0"
purge = true
[[site]]
listen = "127.0.0.1:0"
[[site.route]]
path = "/c"
proxy = "http://{origin}/"
cache = { unkeyed_fields = ["X-Answer", "X-Kind"] }
"#;

/// Asks over ever new connections until both workers have stored what the origin answers.
fn fill_both(site: &Site, path: &str, answer: &str) {
    let mut stored = 0;
    wait_until("a miss in each worker", || {
        let mut visitor = Visitor { agent: site.server.agent(), path: path.to_owned() };
        stored += usize::from(status(&visitor.get(answer)).contains("stored"));
        stored == 2
    });
}

mod several_workers {
    use super::*;

    #[test]
    fn each_purges_before_that_is_confirmed() {
        for architecture in ["n-copy", "auto"] {
            let site = two_workers(architecture);
            let path = site.visitor("everywhere").path;
            fill_both(&site, &path, OLD);
            let url = format!("http://localhost{path}");
            assert_eq!(purge(&site, &[&url]), "purged: 2 stored responses dropped, in 2 workers\n");
            fill_both(&site, &path, NEW);
            assert_eq!(purge(&site, &["--all"]), "purged: 2 stored responses dropped, in 2 workers\n");
            fill_both(&site, &path, OLD);
        }
    }

    /// Goal: a successful POST through one worker ends what all of them hold. Method: new connections, which reach both.
    #[test]
    fn each_hears_of_a_change() {
        for architecture in ["n-copy", "auto"] {
            let site = two_workers(architecture);
            let path = site.visitor("changed").path;
            fill_both(&site, &path, OLD);
            let mut visitor = Visitor { agent: site.server.agent(), path: path.clone() };
            assert_eq!(visitor.ask("POST", "500", "").status, 500);
            let kept = Visitor { agent: site.server.agent(), path: path.clone() }.get(NEW);
            assert_eq!(kept.text(), "old", "a change that failed is none");
            assert_eq!(visitor.ask("POST", "204", "").status, 204);
            fill_both(&site, &path, NEW);
        }
    }

    /// Goal: a worker that is started after a purge holds nothing of before.
    #[test]
    fn a_worker_that_returns_purges_too() {
        let site = two_workers("n-copy");
        let path = site.visitor("returned").path;
        fill_both(&site, &path, OLD);
        for worker in site.server.workers() {
            rustix::process::kill_process(worker, rustix::process::Signal::KILL).expect("a worker");
        }
        // However many are back yet.
        assert!(purge(&site, &["--all"]).starts_with("purged: 0 "));
        wait_until("both serve again", || {
            let status: serde_json::Value = site.server.status();
            status["workers"].as_array().expect("workers").iter().all(|worker| worker["serves"] == true)
        });
        fill_both(&site, &path, NEW);
    }
}

/// Goal: only a program that was told to purges by the admin listener, no page in an operator's browser. Method: each
/// request as an attacker would have a browser send it, then what is cached.
#[test]
fn the_admin_listener_purges_for_programs_only() {
    let site = two_workers("n-copy");
    let path = site.visitor("admin").path;
    fill_both(&site, &path, OLD);
    let admin = *site.server.addresses().last().expect("the admin listener");
    let ask = |line: &str, fields: &str, body: &str| {
        let mut client = Client::connect(admin);
        client.send(format!("{line} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n{body}"));
        let response = client.response();
        (response.status, response.text().to_owned())
    };
    let all = "{\"all\":true}";
    let json = "Content-Type: application/json\r\nContent-Length: 12\r\n";
    for (line, fields, status) in [
        ("GET /purge", json.to_owned(), 405),
        ("PURGE /purge", json.to_owned(), 405),
        ("OPTIONS /purge", "Origin: http://evil\r\nAccess-Control-Request-Method: POST\r\n".into(), 405),
        ("POST /%70urge", json.to_owned(), 405),
        ("POST /purge/.", json.to_owned(), 405),
        ("POST /purge", "Content-Type: text/plain\r\nContent-Length: 12\r\n".into(), 415),
        (
            "POST /purge",
            "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 12\r\n".into(),
            415,
        ),
        ("POST /purge", format!("{json}Origin: http://evil\r\n"), 403),
        ("POST /purge", format!("{json}Sec-Fetch-Site: cross-site\r\n"), 403),
        ("POST /purge", json.replace("12", "11"), 400),
    ] {
        let body = if line.starts_with("POST") { all } else { "" };
        let fields = if body.is_empty() { fields.replace("Content-Length: 12\r\n", "") } else { fields };
        assert_eq!(ask(line, &fields, body).0, status, "{line} {fields}");
    }
    let (status, told) = ask("POST /purge", "Content-Type: application/json\r\nContent-Length: 2\r\n", "{}");
    assert!(status == 400 && told.contains("nothing to purge"), "{told}");
    let kept = Visitor { agent: site.server.agent(), path: path.clone() }.get(NEW);
    assert_eq!(kept.text(), "old");

    let body = format!("{{\"urls\":[\"http://localhost{path}\"]}}");
    let fields = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    let (status, told) = ask("POST /purge", &fields, &body);
    assert_eq!((status, told.as_str()), (200, "{\"purged\":{\"responses\":2,\"workers\":2}}\n"));
    fill_both(&site, &path, NEW);
}
