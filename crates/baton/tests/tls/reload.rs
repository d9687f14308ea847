//! New certificates while clients are served.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::scope;

use super::authority::{Authority, Issued};
use super::client::Client;
use crate::common::folder::Folder;
use crate::common::server::{Server, wait_until};

/// A server with two workers and the certificate `a.pem`, and further settings.
fn server(issued: &Issued, settings: &str) -> Server {
    let folder = Folder::new();
    folder.write("index.html", "hello");
    issued.install(&folder, "a");
    Server::run(
        folder,
        &format!(
            "processes = 2\n{settings}\n[[site]]\nroot = \"{{root}}\"\nlisten = \"127.0.0.1:0 tls\"\n\
             tls = {{ certificate = \"a.pem\", key = \"a.key\" }}\n"
        ),
    )
}

fn serves(server: &Server, client: &Client, issued: &Issued) -> bool {
    client.connect(server.address(), "a.test").expect("a handshake").has(issued)
}

/// Clients come and go while the certificate is replaced: each is served by the old one or the new one. A connection
/// that was there goes on.
#[test]
fn no_request_is_lost_while_a_certificate_is_replaced() {
    let authority = Authority::new("authority");
    let (old, new) = (authority.issue(&["a.test"]), authority.issue(&["a.test"]));
    let server = server(&old, "");
    let client = Client::new(&authority);
    let mut kept = client.connect(server.address(), "a.test").expect("a handshake");
    let (over, served) = (AtomicBool::new(false), AtomicUsize::new(0));
    let wait_for_more = || {
        let before = served.load(Ordering::Relaxed);
        wait_until("more requests", || served.load(Ordering::Relaxed) > before + 50);
    };
    scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                // A client of its own, with sessions of its own.
                let client = Client::new(&authority);
                while !over.load(Ordering::Relaxed) {
                    let response = client.get(server.address(), "a.test").expect("a response");
                    assert!(response.ends_with("\r\n\r\nhello"), "{response}");
                    served.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        wait_for_more();
        new.install(server.folder(), "a");
        wait_for_more();
        server.ctl(&["reload"]);
        assert!(serves(&server, &Client::new(&authority), &new), "from the reload on");
        wait_for_more();
        over.store(true, Ordering::Relaxed);
    });
    assert!(kept.has(&old) && kept.get("a.test").is_ok());
}

/// The configuration may be half edited: only the certificates are read.
#[test]
fn changed_files_are_noticed_if_that_is_asked_for() {
    let authority = Authority::new("authority");
    let (old, new) = (authority.issue(&["a.test"]), authority.issue(&["a.test"]));
    let server = server(&old, "[tls]\nwatch_ms = 20");
    fs::write(server.folder().base().join("baton.toml"), "half").expect("a file");
    // The certificate without its key is refused, and taken when the key has followed.
    fs::write(server.folder().base().join("a.pem"), &new.certificate).expect("a file");
    server.wait_until_said("not reloaded, the old certificates stay");
    assert!(server.said().contains("does not belong to the certificate"), "{}", server.said());
    assert!(serves(&server, &Client::new(&authority), &old));
    new.install(server.folder(), "a");
    wait_until("the new certificate", || serves(&server, &Client::new(&authority), &new));
    server.wait_until_said("reloaded the certificates");
}

/// Connections in clear text go on; new ones speak TLS.
#[test]
fn an_address_learns_tls_by_a_reload() {
    let authority = Authority::new("authority");
    let folder = Folder::new();
    folder.write("index.html", "hello");
    authority.issue(&["a.test"]).install(&folder, "a");
    let server = Server::run(folder, "[[site]]\nroot = \"{root}\"\nlisten = \"127.0.0.1:0\"\n");
    let mut kept = server.connect();
    assert_eq!(kept.get("/").text(), "hello");
    let file = server.folder().base().join("baton.toml");
    let text = fs::read_to_string(&file)
        .expect("a file")
        .replace("127.0.0.1:0\"", "127.0.0.1:0 tls\"\ntls = { certificate = \"a.pem\", key = \"a.key\" }");
    fs::write(&file, text).expect("a file");
    server.ctl(&["reload"]);
    assert!(Client::new(&authority).get(server.address(), "a.test").expect("a response").ends_with("hello"));
    assert_eq!(kept.get("/").text(), "hello");
}

#[test]
fn a_reload_with_a_bad_certificate_changes_nothing() {
    let authority = Authority::new("authority");
    let old = authority.issue(&["a.test"]);
    let server = server(&old, "");
    fs::write(server.folder().base().join("a.key"), "damaged").expect("a file");
    server.signal(rustix::process::Signal::HUP);
    server.wait_until_said("a.key: no private key in it");
    assert!(serves(&server, &Client::new(&authority), &old));
}

/// Workers run as another user, who cannot read the key: neither at the start nor at a reload.
#[test]
fn the_master_reads_keys_that_workers_cannot() {
    if !rustix::process::geteuid().is_root() {
        return crate::common::leave_out("all", "only root can drop privileges");
    }
    let authority = Authority::new("authority");
    let (old, new) = (authority.issue(&["a.test"]), authority.issue(&["a.test"]));
    let folder = Folder::new();
    folder.write("index.html", "hello");
    fs::create_dir(folder.base().join("private")).expect("a folder");
    let private = |folder: &Folder, issued: &Issued| {
        issued.install(folder, "private/a");
        let closed = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(folder.base().join("private"), closed).expect("permissions");
    };
    private(&folder, &old);
    let server = Server::run(
        folder,
        "user = \"nobody\"\n[[site]]\nroot = \"{root}\"\nlisten = \"127.0.0.1:0 tls\"\n\
         tls = { certificate = \"private/a.pem\", key = \"private/a.key\" }\n",
    );
    assert!(serves(&server, &Client::new(&authority), &old));
    private(server.folder(), &new);
    server.ctl(&["reload"]);
    assert!(serves(&server, &Client::new(&authority), &new));
}
