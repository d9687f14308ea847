//! A log that cannot be written costs lines, never a request.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, mkfifoat};
use rustix::pipe::fcntl_setpipe_size;

use crate::common::folder::Folder;
use crate::common::server::{Server, wait_until};
use crate::watched::Watched;

under_each_architecture! {
    a_full_disk_loses_lines_and_counts_them,
    an_unread_error_log_stops_no_request,
}

/// Goal: requests go on when the log's disk is full, and every lost line is counted. Method: the log is `/dev/full`.
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

/// Goal: requests go on when the error log is a full pipe, and later it says how many entries are lost. Method: a
/// pipe with room for a page; each request is for a missing application, which logs an entry.
fn an_unread_error_log_stops_no_request(architecture: &str) {
    let folder = Folder::new();
    folder.write("small.txt", "small");
    let path = folder.base().join("errors");
    mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).expect("a pipe");
    // Opened for reading and writing, it waits neither for a writer to open nor to write.
    let mut pipe = File::options()
        .read(true)
        .write(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(&path)
        .expect("its end");
    fcntl_setpipe_size(&pipe, PAGE_BYTES).expect("its size");
    let configuration = format!(
        "architecture = \"{architecture}\"\n[log]\nerror = \"{{base}}/errors\"\n\
         [[site]]\nlisten = \"127.0.0.1:0\"\nroot = \"{{root}}\"\n\
         [[site.route]]\npath = \"/app/\"\nfastcgi = {{ to = \"unix:{{base}}/nobody\" }}\n"
    );
    let server = Server::run(folder, &configuration);
    let mut client = server.connect();
    for _ in 0..REQUESTS {
        assert_eq!(client.get("/app/").status, 502);
    }
    assert_eq!(client.get("/small.txt").text(), "small");

    let mut said = String::new();
    wait_until("the log reports its gap", || {
        assert_eq!(client.get("/app/").status, 502);
        let mut page = [0; PAGE_BYTES];
        let read = pipe.read(&mut page).unwrap_or(0);
        said.push_str(std::str::from_utf8(&page[..read]).expect("text"));
        said.contains("the reader of the error log was too slow")
    });
    let entries = said.lines().filter(|line| line.contains("/nobody")).count() as u64;
    assert!(entries < REQUESTS, "the pipe had room for all: the test tests nothing");
}

const REQUESTS: u64 = 100;
const PAGE_BYTES: usize = 4096;
