//! Responses of applications, which are kept like those of origins.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::answering::{Parameters, answer_fastcgi, answer_scgi};
use crate::common::folder::{Folder, install_program};
use crate::common::server::Server;
use crate::site::status;

/// Goal: applications of each kind have their responses kept, and a POST to them ends what is kept, also where they could
/// answer on the client's own socket. Method: each response has another number, so what is kept shows.
#[test]
fn responses_of_applications_are_kept_until_something_changes() {
    let folder = Folder::new();
    let script = folder.path("count.cgi");
    install_program(&script, CGI);
    for transport in TRANSPORTS {
        answer_fastcgi(&folder.base().join(format!("{transport}.sock")), response);
    }
    answer_scgi(&folder.base().join("scgi.sock"), response);
    let fastcgi: String = TRANSPORTS.map(|word| FASTCGI.replace("{transport}", word)).concat();
    let server = Server::run(folder, &format!("{SITE}{fastcgi}"));
    let paths = TRANSPORTS.map(|word| format!("/{word}/x")).into_iter();
    for path in paths.chain(["/scgi/x".into(), "/cgi/count.cgi".into()]) {
        let mut agent = server.agent();
        let mut get = || {
            let response = agent.get(&path);
            (response.text().trim().to_owned(), status(&response))
        };
        let (first, stored) = get();
        assert_eq!(stored, "baton; fwd=uri-miss; stored", "{path}");
        assert_eq!(get(), (first.clone(), "baton; hit".into()), "{path}");
        let changed = server.agent().send("POST", &path, b"a body");
        assert_eq!((changed.status, status(&changed).as_str()), (204, "baton; fwd=method"), "{path}");
        let (second, stored) = get();
        assert_eq!(stored, "baton; fwd=uri-miss; stored", "{path}");
        assert_ne!(first, second, "{path}");
        assert_eq!(get().0, second, "{path}");
    }
}

/// How an application answers with the FastCGI protocol.
const TRANSPORTS: [&str; 4] = ["unix", "shm", "passfd", "auto"];

const SITE: &str = r#"
processes = 1
[[site]]
listen = "127.0.0.1:0"
root = "{root}"
[[site.route]]
path = "/scgi"
scgi = { to = "unix:{base}/scgi.sock" }
cache = true
[[site.route]]
path = "/cgi"
root = "{root}"
cgi = { scripts = [".cgi"] }
cache = true
"#;

const FASTCGI: &str = r#"
[[site.route]]
path = "/{transport}"
fastcgi = { to = "unix:{base}/{transport}.sock", transport = "{transport}", passfd_users = ["{user}"] }
cache = true
"#;

const CGI: &str = r#"#!/bin/sh
case $REQUEST_METHOD in
GET) echo 'Cache-Control: max-age=600'; echo 'Content-Type: text/plain'; echo; echo $$ ;;
*) echo 'Status: 204 No Content'; echo ;;
esac
"#;

/// The response to a request, by its method.
fn response(parameters: &Parameters) -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    match &*parameters["REQUEST_METHOD"] {
        "GET" => {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            format!("Cache-Control: max-age=600\r\nContent-Type: text/plain\r\n\r\n{number}")
        }
        _ => "Status: 204 No Content\r\n\r\n".into(),
    }
}
