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
    an_error_log_that_nobody_reads_stops_nobody,
}

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

/// Goal: requests go on when nobody reads the error log, and later it says how many of its entries are lost. Method: the
/// log is a pipe that has room for a page, each request is for an application that is not there, which is worth an entry.
fn an_error_log_that_nobody_reads_stops_nobody(architecture: &str) {
    let folder = Folder::new();
    folder.write("small.txt", "small");
    let path = folder.base().join("errors");
    mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).expect("a pipe");
    // Whoever can write to it, too, waits neither for a writer to open it nor for one to write.
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
    wait_until("the log tells of its gap", || {
        assert_eq!(client.get("/app/").status, 502);
        let mut page = [0; PAGE_BYTES];
        let read = pipe.read(&mut page).unwrap_or(0);
        said.push_str(std::str::from_utf8(&page[..read]).expect("text"));
        said.contains("nobody read the error log")
    });
    let entries = said.lines().filter(|line| line.contains("/nobody")).count() as u64;
    assert!(entries < REQUESTS, "the pipe had room for all: the test tests nothing");
}

const REQUESTS: u64 = 100;
const PAGE_BYTES: usize = 4096;
