//! Bodies that the application looks at where the server has them: bounded, and nothing of them is left behind.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::common::agent::{Agent, Body};
use crate::common::descriptors::raise_descriptors;
use crate::common::folder::{Folder, pattern};
use crate::common::leave_out;
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::program;
use crate::temporary::SmallDisk;

/// As many as `docs/bounds.md` says.
const CHUNKS: u64 = 128;

/// A server whose application has said that it takes bodies by reference.
fn server(settings: &str) -> Server {
    let make = |folder: &Path| {
        fs::create_dir(folder).expect("a folder");
        // The server's workers may be another user's.
        fs::set_permissions(folder, fs::Permissions::from_mode(0o1777)).expect("permissions");
    };
    server_and_disk(settings, make).0
}

/// The same; `make` makes the folder for bodies that wait in files.
fn server_and_disk<T>(settings: &str, make: impl FnOnce(&Path) -> T) -> (Server, T) {
    let folder = Folder::new();
    let socket = folder.base().join("app.sock");
    program::start(&socket, folder.base(), 4);
    let site = format!(
        "processes = 1\n[[site]]\n{{listen}}\n[[site.route]]\npath = '/app'\n[site.route.fastcgi]\n\
         to = 'unix:{{base}}/app.sock'\nconnections_max = 4\nqueue_max = 2000\nqueue_ms = 60000\n\
         temporary_folder = '{{base}}/temporary'\n{settings}"
    );
    let made = make(&folder.base().join("temporary"));
    let server = Server::run(folder, &site);
    upload(&server, 100_000);
    (server, made)
}

/// Sends a body at once, and gets it back.
fn upload(server: &Server, bytes: usize) {
    let body = pattern(bytes, 2);
    assert!(server.agent().send("POST", "/app/echo", body).body == body);
}

/// Waits until no chunk is in use, and nothing but one pool is left in the worker.
fn wait_until_nothing_is_left(server: &Server) {
    wait_until("no chunk is in use", || chunks_in_use(server) == 0);
    let worker = server.workers()[0].as_raw_nonzero();
    let lead_to = |what: &str| {
        let open = fs::read_dir(format!("/proc/{worker}/fd")).expect("its descriptors").flatten();
        open.filter_map(|entry| fs::read_link(entry.path()).ok())
            .filter(|target| target.to_string_lossy().contains(what))
            .count()
    };
    wait_until("files of bodies are closed", || lead_to("/temporary/") == 0);
    wait_until("there is one pool", || lead_to("memfd:baton-pool") == 1);
}

fn chunks_in_use(server: &Server) -> u64 {
    let status = server.status();
    let mut found = Vec::new();
    collect(&status, &mut found);
    found.iter().sum()
}

fn collect(value: &serde_json::Value, found: &mut Vec<u64>) {
    match value {
        serde_json::Value::Object(fields) => {
            found.extend(fields.get("body_chunks").and_then(serde_json::Value::as_u64));
            fields.values().for_each(|value| collect(value, found));
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
        _ => {}
    }
}

/// Goal: very many uploads at a time get their answers, take no more chunks than there are, and leave nothing. Method: all
/// send most of a body and stall; then every other one leaves, and the others go on.
fn a_thousand_uploads_leave_nothing(protocol: Protocol) {
    const UPLOADS: usize = 1_000;
    if raise_descriptors(4_000) < 3_000 {
        return leave_out("a thousand uploads", "too few descriptors (`ulimit -Hn`)");
    }
    let server = server("streamed_bodies_max = 2\n").over(protocol);
    let body = pattern(100_000, 3);
    let mut uploads: Vec<Agent> = (0..UPLOADS)
        .map(|_| {
            let mut client = server.agent();
            client.begin("POST", "a", "/app/echo", "", Body::Length(body.len()));
            client.send_body(&body[..60_000]);
            client
        })
        .collect();
    wait_until("all chunks are in use", || chunks_in_use(&server) == CHUNKS);
    upload(&server, 200_000);
    let mut number = 0;
    uploads.retain(|_| {
        number += 1;
        number % 2 == 0
    });
    for client in &mut uploads {
        client.send_body(&body[60_000..]);
        client.finish_body();
        assert!(client.response().body == body);
    }
    drop(uploads);
    wait_until_nothing_is_left(&server);
}

#[test]
fn a_thousand_uploads_leave_nothing_http1() {
    a_thousand_uploads_leave_nothing(Protocol::Http);
}

#[test]
fn a_thousand_uploads_leave_nothing_h2() {
    a_thousand_uploads_leave_nothing(Protocol::H2c);
}

/// Goal: a full disk refuses a body with its reason, and no other one. Method: a disk that is smaller than the body.
#[test]
fn a_full_disk_refuses_one_body() {
    let (server, disk) = server_and_disk("streamed_bodies_max = 0\n", SmallDisk::mount);
    if disk.is_none() {
        return leave_out("a full disk", "only root can mount one");
    }
    for _ in 0..3 {
        assert_eq!(server.agent().send("POST", "/app/echo", pattern(3_000_000, 2)).status, 503);
        upload(&server, 300_000);
    }
    assert!(server.said().contains("other files fill the disk"), "{}", server.said());
    wait_until_nothing_is_left(&server);
}

/// Goal: an application that dies, or is slow, with bodies in its hands leaves nothing. Method: each kind of upload fails
/// in its middle, again and again.
#[test]
fn applications_that_fail_leave_nothing() {
    for bodies in ["streamed_bodies_max = 2\n", "streamed_bodies_max = 0\n"] {
        let server = server(bodies);
        for _ in 0..20 {
            let mut client = server.agent();
            assert_eq!(client.send("POST", "/app/fails", pattern(300_000, 1)).status, 502);
        }
        upload(&server, 300_000);
        wait_until_nothing_is_left(&server);
    }
}
