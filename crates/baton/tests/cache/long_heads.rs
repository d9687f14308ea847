//! Long heads: cookies, tags of caches, policies of content.

use crate::answering::{Parameters, answer_fastcgi, answer_scgi};
use crate::common::folder::{Folder, install_program};
use crate::common::protocol::Protocol;
use crate::common::server::Server;
use crate::origin::{Origin, Peer};
use crate::site::status;

/// Goal: heads that portals and shops have get through, whatever answers, and are kept like others. Beyond the bound, the
/// log names the setting. Method: each response has as many long fields as its request says.
#[test]
fn long_heads_get_through() {
    let server = start("");
    for protocol in [Protocol::Http, Protocol::H2c] {
        let mut agent = server.over(protocol).agent();
        for answerer in ANSWERERS {
            for kind in ["direct", "kept"] {
                for fields in [20, 50, 70] {
                    let path = format!("/{kind}/{answerer}/run.cgi?{fields}-{protocol:?}");
                    for again in [false, true] {
                        let response = agent.get(&path);
                        let long = response.fields.iter().filter(|(name, _)| name == "x-long").count();
                        assert_eq!((response.status, long), (200, fields), "{path}");
                        let is_hit = status(&response).ends_with("; hit");
                        assert_eq!(is_hit, again && kind == "kept" && fields < 70, "{path}");
                    }
                }
                assert_eq!(agent.get(&format!("/{kind}/{answerer}/run.cgi?80")).status, 502, "{answerer}");
            }
            server.wait_until_said("longer than 65536 bytes, which `limits.response_head_bytes_max` allows");
        }
    }
}

#[test]
fn the_bound_is_a_setting() {
    let server = start("[limits]\nresponse_head_bytes_max = \"128 KiB\"\n");
    let mut agent = server.agent();
    for answerer in ANSWERERS {
        for (fields, status) in [(80, 200), (160, 502)] {
            let response = agent.get(&format!("/direct/{answerer}/run.cgi?{fields}"));
            assert_eq!(response.status, status, "{answerer} {fields}");
        }
    }
}

const ANSWERERS: [&str; 6] = ["unix", "shm", "passfd", "scgi", "cgi", "proxy"];

fn start(limits: &str) -> Server {
    let folder = Folder::new();
    install_program(&folder.path("run.cgi"), CGI);
    let origin = Origin::start(answer_as_origin).address();
    let mut configuration = format!("processes = 1\n{limits}[[site]]\n{{listen}}\nroot = \"{{root}}\"\n");
    for answerer in ANSWERERS {
        let socket = folder.base().join(format!("{answerer}.sock"));
        let how = match answerer {
            "cgi" => "root = \"{root}\"\ncgi = { scripts = [\".cgi\"] }".to_owned(),
            "proxy" => format!("proxy = \"http://{origin}/\""),
            "scgi" => {
                answer_scgi(&socket, answer);
                format!("scgi = {{ to = \"unix:{}\" }}", socket.display())
            }
            transport => {
                answer_fastcgi(&socket, answer);
                let to = format!("to = \"unix:{}\", transport = \"{transport}\"", socket.display());
                format!("fastcgi = {{ {to}, passfd_users = [\"{{user}}\"] }}")
            }
        };
        for (kind, cache) in [("direct", ""), ("kept", "cache = true\n")] {
            let path = format!("path = \"/{kind}/{answerer}\"");
            configuration.push_str(&format!("[[site.route]]\n{path}\n{how}\n{cache}"));
        }
    }
    Server::run(folder, &configuration)
}

/// A head with as many long fields as the query begins with.
fn head(query: &str) -> String {
    let fields = query.split('-').next().and_then(|fields| fields.parse().ok()).expect("a number");
    let long = format!("X-Long: {}\r\n", "v".repeat(900)).repeat(fields);
    format!("Cache-Control: max-age=600\r\nContent-Type: text/plain\r\n{long}")
}

fn answer(parameters: &Parameters) -> String {
    format!("{}\r\nbody\n", head(&parameters["QUERY_STRING"]))
}

fn answer_as_origin(peer: &mut Peer) {
    while let Some(seen) = peer.request() {
        let query = seen.path().split_once('?').map_or("", |(_, query)| query);
        peer.answer(&head(query), "body\n");
    }
}

const CGI: &str = r#"#!/bin/sh
printf 'Cache-Control: max-age=600\nContent-Type: text/plain\n'
left=${QUERY_STRING%%-*}
while [ "$left" -gt 0 ]; do
  printf 'X-Long: %0900d\n' 0
  left=$((left - 1))
done
printf '\nbody\n'
"#;
