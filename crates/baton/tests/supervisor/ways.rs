//! The status of the paths by which files are sent.

use serde_json::Value;

use crate::common::folder::{Folder, pattern};
use crate::common::server::wait_until;
use crate::supervised::{ANY_PORT, configure, start_in, status};

/// Goal: the cost of a head is not taken for the cost of its file. Method: a file with both paths is requested by
/// HEAD more often than it takes to try both.
#[test]
fn only_responses_with_a_body_are_timed() {
    const REQUESTS: u64 = 64;
    let folder = Folder::new();
    folder.write("file.bin", pattern(50_000, 1));
    configure(&folder, ANY_PORT, "root", "architecture = \"sped\"");
    let server = start_in(folder);
    let mut client = server.connect();
    for _ in 0..REQUESTS {
        let answer = client.ask("HEAD", "/file.bin", "");
        assert_eq!((answer.status, answer.field("content-length")), (200, Some("50000")));
    }
    let engine = || status(&server)["workers"][0]["engine"]["loop"].clone();
    let hits = |engine: &Value| engine["cache"]["heads"]["hits"].as_u64();
    wait_until("all requests are counted", || hits(&engine()) >= Some(REQUESTS - 1));
    assert_eq!(engine()["ways_of_sending"], Value::Array(Vec::new()));

    assert_eq!(client.get("/file.bin").body.len(), 50_000);
    wait_until("the file's size is known", || engine()["ways_of_sending"][0]["from_bytes"] == 32_768);
}
