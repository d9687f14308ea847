//! A browser on the site of the demonstration, and copies of it unpacked by those who wrote the codings.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::folder::Folder;
use crate::common::server::{Server, wait_until};

/// Of the repository.
fn site() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../apps/site")
}

/// The site, copied to where the workers' user may read it.
fn start() -> Server {
    let folder = Folder::new();
    copy(&site(), &folder.root());
    let log = folder.base().join("access.log");
    let log = format!("--access-log={}", log.display());
    Server::serve(folder, &["--log-format", "json", "--set", "log.buffer_bytes=0", &log])
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

/// Requests and their statuses, from the access log.
fn logged(server: &Server) -> BTreeSet<(String, u64)> {
    let log = fs::read_to_string(server.folder().base().join("access.log")).expect("the log");
    log.lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("an object per line"))
        .map(|line| {
            (
                line["request"].as_str().expect("a request").to_owned(),
                line["status"].as_u64().expect("a status"),
            )
        })
        .collect()
}

/// Loads the first page in a real browser. It finds the title, and fetches what the page refers to.
#[test]
fn a_browser_shows_the_site() {
    let server = start();
    let profile = server.folder().base().join("profile");
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args([
            "--disable-background-networking",
            "--disable-dev-shm-usage",
            "--no-proxy-server",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("http://{}/", server.address()))
        .stderr(Stdio::null())
        .process_group(server.folder().group())
        .output()
        .expect("chromium: scripts/setup-tests installs it");
    let page = String::from_utf8_lossy(&output.stdout);
    let source = fs::read_to_string(site().join("index.html")).expect("the page");
    let title =
        source.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next()).expect("a title");
    assert!(page.contains(&format!("<title>{title}</title>")), "{page}");

    wait_until("the page's parts are fetched", || {
        let logged = logged(&server);
        let fetched = |path: &str| logged.contains(&(format!("GET {path} HTTP/1.1"), 200));
        fetched("/")
            && fetched("/style.css")
            && logged.iter().any(|(line, status)| line.starts_with("GET /images/") && *status == 200)
    });
    assert!(logged(&server).iter().all(|(_, status)| *status < 400), "{:?}", logged(&server));
}

/// Fetches pages in each coding. curl unpacks them, and then they are what they were.
#[test]
fn packed_copies_unpack_to_the_pages() {
    let server = start();
    for page in ["index.html", "style.css", "feed.json"] {
        let original = fs::read(site().join(page)).expect("a page");
        for coding in ["gzip", "br", "zstd"] {
            let output = Command::new("curl")
                .args(["--silent", "--compressed", "--noproxy", "*", "--include", "--header"])
                .arg(format!("Accept-Encoding: {coding}"))
                .arg(format!("http://{}/{page}", server.address()))
                .output()
                .expect("curl");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains(&format!("Content-Encoding: {coding}\r\n")), "{page} {coding}: {text}");
            assert!(output.stdout.ends_with(&original), "{page} {coding}");
        }
    }
}
