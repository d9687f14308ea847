//! Clients that others wrote: curl, and an HTTP library.

use std::fs;
use std::process::Command;

use crate::common::server::Server;
use crate::museum::{ALPHABET, PATTERNS, folder, pattern_of};

crate::architectures::under_every_architecture!(
    curl_gets_what_it_asks_for,
    curl_resumes_a_download,
    a_library_gets_what_it_asks_for
);

/// What curl prints.
fn curl(server: &Server, arguments: &[&str], path: &str) -> Vec<u8> {
    let mut command = Command::new("curl");
    command
        .args(["--silent", "--show-error", "--fail", "--max-time", "10", "--noproxy", "*"])
        .args(arguments);
    let output = command.arg(format!("http://{}{path}", server.address())).output().expect("curl");
    assert!(
        output.status.success(),
        "curl {arguments:?} {path}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

fn curl_gets_what_it_asks_for(server: &Server) {
    for (name, _) in PATTERNS {
        let path = format!("/{name}");
        assert!(curl(server, &[], &path) == pattern_of(name), "{name}");
        assert!(curl(server, &["--http1.0"], &path) == pattern_of(name), "{name}");
    }
    assert_eq!(curl(server, &["--location"], "/folder"), b"the folder's index\n");
    assert_eq!(curl(server, &["--range", "2-4"], "/alphabet.txt"), b"cde");
    let status = ["--output", "/dev/null", "--write-out", "%{http_code} %{num_connects}"];
    assert_eq!(
        curl(server, &[&status[..], &["--time-cond", "1 Jan 2001"]].concat(), "/alphabet.txt"),
        b"304 1"
    );
    assert_eq!(curl(server, &[&status[..], &["--head"]].concat(), "/1m.bin"), b"200 1");
    // A body that curl announces with Expect, and one that it sends in chunks.
    let upload = folder().path("1m.bin").to_str().expect("UTF-8").to_owned();
    let upload = format!("@{upload}");
    let body = ["--request", "GET", "--data-binary", &upload];
    assert_eq!(curl(server, &body, "/alphabet.txt"), ALPHABET.as_bytes());
    let chunked = [&body[..], &["--header", "Transfer-Encoding: chunked"]].concat();
    assert_eq!(curl(server, &chunked, "/alphabet.txt"), ALPHABET.as_bytes());
}

/// Half of a file, then the rest: by range, with the tag as the condition.
fn curl_resumes_a_download(server: &Server) {
    let target = tempfile::NamedTempFile::new().expect("a file");
    let content = pattern_of("1m.bin");
    fs::write(target.path(), &content[..300_000]).expect("half a file");
    let tag = server.get("/1m.bin").field("etag").expect("a tag").to_owned();
    let name = target.path().to_str().expect("UTF-8");
    curl(
        server,
        &["--continue-at", "-", "--output", name, "--header", &format!("If-Range: {tag}")],
        "/1m.bin",
    );
    assert!(fs::read(target.path()).expect("the file") == content);
}

/// `ureq`: an agent that keeps its connection, with strict parsing.
fn a_library_gets_what_it_asks_for(server: &Server) {
    let agent = ureq::Agent::config_builder().http_status_as_error(false).proxy(None).build().new_agent();
    let url = |path: &str| format!("http://{}{path}", server.address());
    for _ in 0..2 {
        for (name, _) in PATTERNS {
            let mut response = agent.get(url(&format!("/{name}"))).call().expect("an answer");
            assert!(response.body_mut().read_to_vec().expect("a body") == pattern_of(name), "{name}");
        }
        let mut missing = agent.get(url("/none")).call().expect("an answer");
        assert_eq!(missing.status(), 404);
        assert!(missing.body_mut().read_to_string().expect("a page").contains("404"));
        assert_eq!(
            agent.head(url("/1m.bin")).call().expect("an answer").headers()["content-length"],
            "1048576"
        );
        let mut followed = agent.get(url("/folder")).call().expect("an answer");
        assert_eq!(followed.body_mut().read_to_string().expect("a page"), "the folder's index\n");
        let refused = agent.post(url("/small.txt")).send(&[7; 5000][..]).expect("an answer");
        assert_eq!(refused.status(), 405);
        let tag = agent.get(url("/alphabet.txt")).call().expect("an answer").headers()["etag"].clone();
        let unmodified =
            agent.get(url("/alphabet.txt")).header("if-none-match", &tag).call().expect("an answer");
        assert_eq!(unmodified.status(), 304);
    }
}
