//! What applications and origins are asked for, by whatever way a request comes to their route, with and without a cache.

use crate::answering::{Parameters, answer_fastcgi, answer_scgi};
use crate::common::client::Response;
use crate::common::folder::{Folder, install_program};
use crate::common::server::Server;
use crate::origin::{Origin, Peer};

crate::everywhere!(
    every_way_asks_for_the_same,
    an_absolute_target_is_the_client_s,
    what_the_key_lacks_reaches_nothing,
);

/// Ways to a route: what a client asks for, and the query that arrives. Those of `SCRIPTS` lead to scripts only.
const WAYS: [(&str, &str); 7] = [
    ("/run.sh/direct?x=1", "x=1"),
    ("/tried/a/b?x=1", "id=/tried/a/b&x=1"),
    ("/tried/a%26b?x=%20y", "id=/tried/a%26b&x=%20y"),
    ("/named/n%26m/info?x=1", "name=n%26m&x=1"),
    ("/kept/x?y=2", "y=2"),
    ("/bare/x?y=2", ""),
    ("/twice/n/info?x=1", "name=n&x=1"),
];
const SCRIPTS: [(&str, &str); 2] = [("/folder/?x=1", "x=1"), ("/fallback/a?x=1", "x=1")];

/// Goal: a cache changes nothing of what is asked. Method: everything that answers tells what it was asked; each way is
/// gone without a cache, with one that has nothing, with one that has the answer, and by a POST.
fn every_way_asks_for_the_same(server: &Server) {
    for answerer in ANSWERERS {
        let scripts = if answerer == "proxy" { &[][..] } else { &SCRIPTS };
        for (target, query) in WAYS.iter().chain(scripts) {
            let direct = asked(server, &format!("{answerer}.direct"), "GET", target);
            let told: Vec<_> = direct.text().lines().collect();
            assert_eq!((direct.status, told[0]), (200, *query), "{answerer} {target}");
            assert!(answerer == "proxy" || told[1] == *target, "{answerer} {target}: {told:?}");
            for host in ["kept", "kept", "direct"] {
                let method = if host == "direct" { "POST" } else { "GET" };
                let again = asked(server, &format!("{answerer}.{host}"), method, target);
                assert_eq!(again.text(), direct.text(), "{answerer} {method} {target}, {host}");
            }
            let kept = asked(server, &format!("{answerer}.kept"), "GET", target);
            assert!(
                kept.field("cache-status").is_some_and(|word| word.contains("hit")),
                "{answerer} {target}"
            );
            let posted = asked(server, &format!("{answerer}.kept"), "POST", target);
            assert_eq!(posted.text(), direct.text(), "{answerer} POST {target}");
        }
    }
}

/// `REQUEST_URI` is what the client has asked for, also where it has named the host in its request line.
fn an_absolute_target_is_the_client_s(server: &Server) {
    if server.protocol().is_http2() {
        return;
    }
    for answerer in ANSWERERS.into_iter().filter(|answerer| *answerer != "proxy") {
        for host in ["direct", "kept"] {
            let host = format!("{answerer}.{host}");
            let response = asked(server, &host, "GET", &format!("http://{host}/tried/absolute?x=1"));
            let told: Vec<_> = response.text().lines().collect();
            assert_eq!(told[..2], ["id=/tried/absolute&x=1", "/tried/absolute?x=1"], "{host}");
        }
    }
}

/// Goal: a parameter that the key leaves out is no part of the target that a rewrite makes either, or one client would
/// choose what others get. Where it decides about the path, the cache is not asked.
fn what_the_key_lacks_reaches_nothing(server: &Server) {
    for answerer in ANSWERERS {
        let host = format!("{answerer}.kept");
        let response = asked(server, &host, "GET", "/tried/dropped?x=1&utm_a=evil");
        assert_eq!(response.text().lines().next(), Some("id=/tried/dropped&x=1"), "{answerer}");
        let status = |response: &Response| response.field("cache-status").map(str::to_owned);
        let odd = asked(server, &host, "GET", "/odd?utm_a=evil");
        assert_eq!(status(&odd).as_deref(), Some("baton; fwd=bypass; detail=path"), "{answerer}");
        assert!(odd.text().contains("/utm_a=evil"), "{answerer}: {}", odd.text());
        let even = asked(server, &host, "GET", "/odd?x=2");
        assert!(even.text().contains("/x=2"), "{answerer}: {}", even.text());
    }
}

/// What answers, each at two hosts: `fastcgi.direct` and `fastcgi.kept`.
const ANSWERERS: [&str; 4] = ["fastcgi", "scgi", "cgi", "proxy"];

fn asked(server: &Server, host: &str, method: &str, target: &str) -> Response {
    server.agent().ask_host(host, method, target, "")
}

/// Starts what answers, and makes the sites in front of it.
pub(crate) fn sites(folder: &Folder) -> String {
    for name in ["run.sh", "folder/index.sh"] {
        folder.write(name, "");
        install_program(&folder.path(name), CGI);
    }
    answer_fastcgi(&folder.base().join("fastcgi.sock"), tell);
    answer_scgi(&folder.base().join("scgi.sock"), tell);
    let origin = Origin::start(tell_target).address().to_string();
    let sites = ANSWERERS.into_iter().flat_map(|answerer| {
        let (routes, how) = match answerer {
            "proxy" => (ORIGIN, format!("proxy = \"http://{origin}/\"")),
            "cgi" => (SCRIPT, "cgi = { scripts = [\".sh\"] }".into()),
            _ => (SCRIPT, SOCKET.replace("{answerer}", answerer)),
        };
        [("direct", ""), ("kept", CACHE)].map(|(kind, cache)| {
            let site = [SITE, routes].concat().replace("{name}", &format!("{answerer}.{kind}"));
            site.replace("{how}", &how).replace("{cache}", cache)
        })
    });
    sites.collect()
}

const CACHE: &str = "cache = { default_s = 600, drop_parameters = [\"utm_*\"] }";

const SOCKET: &str = r#"{answerer} = { to = "unix:{base}/{answerer}.sock", scripts = [".sh"] }"#;

const SITE: &str = r#"
[[site]]
name = "{name}"
hosts = ["{name}"]
{listen}

[[site.route]]
regex = '^/named/(?<name>[^/]*)/(.*)$'
rewrite = { to = "/run.sh/$2?name=$name&$query" }

[[site.route]]
path = "/twice"
rewrite = { to = "/named$rest" }

[[site.route]]
path = "/kept"
rewrite = { to = "/run.sh" }

[[site.route]]
path = "/bare"
rewrite = { to = "/run.sh?" }

[[site.route]]
path = "/odd"
rewrite = { to = "/run.sh/$query?" }
"#;

const SCRIPT: &str = r#"
[[site.route]]
path = "/"
root = "{root}"
index = ["index.sh"]
try_files = ["$path", "$path/", "/run.sh?id=$path&$query"]
{how}
{cache}

[[site.route]]
path = "/fallback"
root = "{root}"
fallback = "run.sh"
{how}
{cache}
"#;

const ORIGIN: &str = r#"
[[site.route]]
path = "/tried"
root = "{root}"
try_files = ["$path", "/run.sh?id=$path&$query"]

[[site.route]]
path = "/run.sh"
{how}
{cache}
"#;

const CGI: &str = r#"#!/bin/sh
printf 'Content-Type: text/plain\n\n%s\n%s\n' "$QUERY_STRING" "$REQUEST_URI"
printf '%s\n%s\n' "$SCRIPT_NAME" "$PATH_INFO"
"#;

fn tell(parameters: &Parameters) -> String {
    let told = ["QUERY_STRING", "REQUEST_URI", "SCRIPT_NAME", "PATH_INFO"];
    let told = told.map(|name| parameters.get(name).map_or("", String::as_str));
    format!("Content-Type: text/plain\r\n\r\n{}\n", told.join("\n"))
}

fn tell_target(peer: &mut Peer) {
    while let Some(seen) = peer.request() {
        let target = seen.path();
        peer.answer("", format!("{}\n{target}\n", target.split_once('?').map_or("", |(_, query)| query)));
    }
}
