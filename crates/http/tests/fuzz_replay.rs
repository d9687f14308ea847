//! Goal: no input that ever mattered to a fuzz target breaks what it asserts again. Method: every file of
//! the committed corpora, through the same functions as the targets.

#[path = "../../../fuzz/src/http.rs"]
pub mod invariants;

use std::path::Path;

fn replay(target: &str, check: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).expect("the corpus is committed") {
        let path = entry.expect("a corpus can be listed").path();
        // Shown if the check fails.
        println!("{}", path.display());
        check(&std::fs::read(&path).expect("a corpus can be read"));
        count += 1;
    }
    assert!(count > 0, "{} is empty", folder.display());
}

#[test]
fn request_heads() {
    replay("http_request_head", invariants::request_head);
}

#[test]
fn chunked_bodies() {
    replay("http_chunked_body", invariants::chunked_body);
}

#[test]
fn ranges() {
    replay("http_ranges", invariants::ranges);
}

#[test]
fn conditions() {
    replay("http_conditions", invariants::conditions);
}

#[test]
fn paths() {
    replay("http_path", invariants::path);
}

#[test]
fn accept_encodings() {
    replay("http_accept_encoding", invariants::accept_encoding);
}
