//! Sessions go on: at another worker, after a reload, at another server.

use super::authority::Authority;
use super::client::{Client, openssl};
use crate::common::folder::Folder;
use crate::common::server::{Server, wait_until};

/// A server with four workers, and further settings.
fn server(authority: &Authority, settings: &str) -> Server {
    let folder = Folder::new();
    folder.write("index.html", "hello");
    authority.issue(&["a.test"]).install(&folder, "a");
    Server::run(
        folder,
        &format!(
            "processes = 4\n{settings}\n[[site]]\nroot = \"{{root}}\"\nlisten = \"127.0.0.1:0 tls\"\n\
             tls = {{ certificate = \"a.pem\", key = \"a.key\" }}\n"
        ),
    )
}

/// Connects, takes the tickets, and says whether a session was resumed.
fn is_resumed(client: &Client, server: &Server) -> bool {
    let mut connection = client.connect(server.address(), "a.test").expect("a handshake");
    connection.get("a.test").expect("a response");
    connection.is_resumed()
}

/// The kernel chooses the worker of each connection. They are made until several workers have had some, as these say once a
/// second.
#[test]
fn every_worker_resumes_sessions_of_the_others() {
    let authority = Authority::new("authority");
    let server = server(&authority, "");
    let client = Client::new(&authority);
    assert!(!is_resumed(&client, &server));
    let accepting = || {
        let status = server.ctl(&["--json", "status"]);
        let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
        let workers = status["workers"].as_array().cloned().unwrap_or_default();
        workers.iter().filter(|worker| worker["connections_accepted"].as_u64() > Some(0)).count()
    };
    wait_until("several workers had connections", || {
        assert!(is_resumed(&client, &server));
        accepting() > 1
    });
}

/// A ticket is used again and again, while the server replaces its keys: after the second time no worker opens it.
#[test]
fn keys_of_tickets_are_replaced() {
    let authority = Authority::new("authority");
    let server = server(&authority, "[tls]\nsession_s = 2");
    let session = server.folder().base().join("session");
    let session = session.to_str().expect("a path");
    assert!(openssl(server.address(), &["-tls1_2", "-sess_out", session]).contains("\nNew, TLSv1.2"));
    wait_until("the session is forgotten", || {
        openssl(server.address(), &["-tls1_2", "-sess_in", session]).contains("\nNew, TLSv1.2")
    });
}

#[test]
fn sessions_outlive_reloads_workers_and_servers() {
    let authority = Authority::new("authority");
    let mut server = server(&authority, "");
    let client = Client::new(&authority);
    assert!(!is_resumed(&client, &server));
    server.ctl(&["reload"]);
    assert!(is_resumed(&client, &server), "after a reload");
    let workers = server.workers();
    for worker in &workers {
        rustix::process::kill_process(*worker, rustix::process::Signal::KILL).expect("a signal");
    }
    wait_until("new workers", || {
        server.workers().len() == 4 && !server.workers().iter().any(|one| workers.contains(one))
    });
    assert!(is_resumed(&client, &server), "by new workers");
    server.ctl(&["upgrade"]);
    assert!(server.ended().success());
    assert!(is_resumed(&client, &server), "by a new server");
}
