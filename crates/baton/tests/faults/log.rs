//! A log that cannot be written costs lines, never a request.

use std::path::Path;

use crate::common::folder::Folder;
use crate::common::server::wait_until;
use crate::watched::Watched;

under_each_architecture! { a_full_disk_loses_lines_and_counts_them }

/// Goal: requests go on when the log's disk is full, and the lost lines are counted to the last. Method: the log is
/// the device on which there is never any room.
fn a_full_disk_loses_lines_and_counts_them(architecture: &str) {
    let folder = Folder::new();
    folder.write("small.txt", "small");
    let server = Watched::start_logging_to(Path::new("/dev/full"), folder, architecture, &[]);
    let mut client = server.connect();
    for _ in 0..REQUESTS {
        assert_eq!(client.get("/small.txt").text(), "small");
    }
    wait_until("all lines are lost and counted", || server.metric("baton_log_lines_lost_total") == REQUESTS);
    assert_eq!(client.get("/small.txt").text(), "small");
}

const REQUESTS: u64 = 100;
