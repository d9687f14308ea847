//! A browser on the demonstration site, and compressed copies decoded by the reference programs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::browser::Browser;
use crate::common::folder::{Folder, pattern};
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

/// The access log.
fn lines(server: &Server) -> Vec<Value> {
    let log = fs::read_to_string(server.folder().base().join("access.log")).expect("the log");
    log.lines().map(|line| serde_json::from_str(line).expect("an object per line")).collect()
}

/// Requests and their statuses.
fn logged(server: &Server) -> BTreeSet<(String, u64)> {
    let pair = |line: &Value| Some((line["request"].as_str()?.to_owned(), line["status"].as_u64()?));
    lines(server).iter().map(|line| pair(line).expect("a request and its status")).collect()
}

fn sent(line: &Value) -> u64 {
    line["body_bytes"].as_u64().expect("a number")
}

/// Opens every page in a real browser. It shows the title and all images, and has nothing to complain of.
#[test]
fn a_browser_shows_the_site() {
    let server = start();
    let mut browser = Browser::start(server.folder());
    for (path, file) in [
        ("/", "index.html"),
        ("/collection.html", "collection.html"),
        ("/lens.html", "lens.html"),
        ("/tides.html", "tides.html"),
        ("/visit/", "visit/index.html"),
    ] {
        browser.open(&format!("http://{}{path}", server.address()));
        let source = fs::read_to_string(site().join(file)).expect("the page");
        let title = source.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next());
        assert_eq!(browser.run("document.title").as_str(), title, "{path}");
        // Those as well that would be loaded when one comes near them.
        browser.run("for (const image of document.images) image.loading = 'eager'");
        browser.wait_for("[...document.images].every(image => image.complete && image.naturalWidth > 0)");
    }
    assert_eq!(browser.troubles(), [""; 0]);
    wait_until("the pages' parts are fetched", || {
        let logged = logged(&server);
        let fetched = |path: &str| logged.contains(&(format!("GET {path} HTTP/1.1"), 200));
        fetched("/style.css") && logged.iter().any(|(line, _)| line.starts_with("GET /images/"))
    });
}

/// Plays a recording as large as a video, from near its end: the browser requests only what it needs.
#[test]
fn a_browser_asks_for_parts_of_what_it_plays() {
    let server = start();
    let samples = pattern(RECORDING_BYTES, 8);
    server.folder().write("recording.wav", [&wave_head(RECORDING_BYTES as u32), samples].concat());
    let mut browser = Browser::start(server.folder());
    browser.open(&format!("http://{}/", server.address()));
    let played = browser.run(
        "new Promise((done, failed) => {
             const recording = new Audio();
             recording.preload = 'metadata';
             recording.onerror = () => failed(recording.error.message);
             recording.onloadedmetadata = () => {
                 recording.onseeked = () => done([recording.duration, recording.currentTime]);
                 recording.currentTime = recording.duration - 10;
             };
             recording.src = '/recording.wav';
         })",
    );
    let seconds = RECORDING_BYTES as f64 / 16_000.0;
    assert_eq!((played[0].as_f64(), played[1].as_f64()), (Some(seconds), Some(seconds - 10.0)));
    wait_until("a part from near the end was fetched", || {
        let parts = lines(&server)
            .into_iter()
            .filter(|line| line["request"] == "GET /recording.wav HTTP/1.1" && line["outcome"] == "complete");
        parts
            .into_iter()
            .any(|line| line["status"] == 206 && (100_000..RECORDING_BYTES as u64 / 2).contains(&sent(&line)))
    });
    assert_eq!(browser.troubles(), [""; 0]);
}

/// Of the samples of a recording, 16,000 a second.
const RECORDING_BYTES: usize = 20_000_000;

/// The head for samples of 16 bits, 8,000 per second.
fn wave_head(bytes: u32) -> Vec<u8> {
    let mut head = b"RIFF".to_vec();
    head.extend((36 + bytes).to_le_bytes());
    head.extend(b"WAVEfmt ");
    head.extend(16_u32.to_le_bytes());
    // Not packed, one channel; samples and bytes a second; bytes and bits of a sample.
    head.extend([1_u16, 1].map(u16::to_le_bytes).concat());
    head.extend([8_000_u32, 16_000].map(u32::to_le_bytes).concat());
    head.extend([2_u16, 16].map(u16::to_le_bytes).concat());
    head.extend(b"data");
    head.extend(bytes.to_le_bytes());
    head
}

/// Fetches pages in each coding; decoded by curl, they equal the originals.
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
