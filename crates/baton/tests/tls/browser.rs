//! A real browser, which speaks HTTP/2 where it is offered.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::authority::Authority;
use crate::common::browser::Browser;
use crate::common::folder::Folder;
use crate::common::leave_out;
use crate::common::server::{Server, wait_until};

/// Goal: the demonstration site with all its images, over HTTP/2 and TLS.
#[test]
fn a_browser_shows_the_site_over_http2() {
    let folder = Folder::new();
    let site = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../apps/site");
    let copied = Command::new("cp").arg("-r").arg(site.join(".")).arg(folder.root()).status();
    assert!(copied.expect("cp").success());
    Authority::new("authority").issue(&["localhost"]).install(&folder, "a");
    let log = folder.base().join("access.log");
    let server = Server::run(
        folder,
        &format!(
            "[log]\naccess = \"{}\"\nformat = \"json\"\nbuffer_bytes = 0\n\
             [[site]]\nroot = \"{{root}}\"\nlisten = \"127.0.0.1:0 tls\"\nhosts = [\"localhost\"]\n\
             tls = {{ certificate = \"a.pem\", key = \"a.key\" }}\n",
            log.display()
        ),
    );
    let home = Folder::new();
    let mut browser = Browser::start(&home);
    browser.trust_any_certificate();
    browser.open(&format!("https://localhost:{}/", server.address().port()));
    browser.wait_for("[...document.images].every(image => image.complete && image.naturalWidth > 0)");
    assert_eq!(browser.run("performance.getEntriesByType('navigation')[0].nextHopProtocol"), "h2");
    let log = || fs::read_to_string(&log).unwrap_or_default();
    wait_until("the page and what it shows are logged", || log().matches(" HTTP/2.0\"").count() > 3);
    assert!(!log().contains(" HTTP/1."), "{}", log());
}

/// Goal: after the command that `baton local-ca` prints for Chromium, a page of `--tls local` opens without a warning, by name and
/// by address, over HTTP/2. Method: two browsers, each with a home of its own; the command runs in the second.
#[test]
fn a_browser_trusts_the_local_authority_by_the_printed_command() {
    if Command::new("certutil").arg("-H").output().is_err() {
        return leave_out("certutil", "it is not installed: scripts/setup-tests does so");
    }
    let data = tempfile::tempdir().expect("a folder");
    let baton = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
        command.args(arguments).env("XDG_DATA_HOME", data.path());
        command
    };
    let folder = Folder::new();
    folder.write("index.html", "<!doctype html><link rel=icon href=data:,>hello");
    let mut command =
        baton(&["serve", "root", "--tls", "local", "--listen", "127.0.0.1:0", "--control", "off"]);
    command.current_dir(folder.base());
    let server = Server::start(folder, command);
    let port = server.address().port();
    let urls = ["localhost", "127.0.0.1"].map(|host| format!("https://{host}:{port}/"));

    let stranger = Folder::new();
    let refused = Browser::start(&stranger).refusal(&urls[0]);
    assert_eq!(refused.as_deref(), Some("net::ERR_CERT_AUTHORITY_INVALID"));

    let told = baton(&["local-ca"]).output().expect("baton");
    let told = String::from_utf8(told.stdout).expect("text");
    let trust = told.lines().skip_while(|line| !line.starts_with("Chromium")).nth(1).expect("a command");
    let home = Folder::new();
    let trusted = Command::new("sh").args(["-euc", trust]).env("HOME", home.base()).output().expect("sh");
    assert!(trusted.status.success(), "{trust}: {trusted:?}");
    let mut browser = Browser::start(&home);
    for url in urls {
        browser.open(&url);
        assert_eq!(browser.run("document.body.innerText"), "hello");
        assert_eq!(browser.run("performance.getEntriesByType('navigation')[0].nextHopProtocol"), "h2");
    }
    assert!(browser.troubles().is_empty(), "{:?}", browser.troubles());
}
