//! A real browser, which speaks HTTP/2 where it is offered.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::authority::Authority;
use crate::common::browser::Browser;
use crate::common::folder::Folder;
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
