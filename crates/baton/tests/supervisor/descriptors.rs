//! Descriptors: what a server opens that has few of them.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Pid;

use crate::common::folder::Folder;
use crate::common::server::Server;
use crate::supervised::{folder, serving, write};

/// More sites than a process may have descriptors, all of one folder. They are served, and a reload needs no more than
/// a moment's descriptor, though the old trees are in use until the new ones are complete.
#[test]
fn sites_of_one_folder_need_one_descriptor_before_and_after_a_reload() {
    let folder = folder();
    let sites: String = (0..SITES)
        .map(|n| format!("[[site]]\nlisten = \"127.0.0.1:0\"\nhosts = [\"s{n}\"]\nroot = \"root\"\n"))
        .collect();
    write(&folder, "baton.toml", format!("[server]\nprocesses = 1\ncontrol_socket = \"control\"\n{sites}"));
    let server = start_with_descriptors(SITES / 2, folder);
    let root = server.folder().root();
    let ask = |host: &str| server.connect().ask_host(host, "GET", "/", "").text().to_owned();
    assert_eq!(ask("s0"), "first");
    let worker = serving(&server)[0];
    assert_eq!(open_on(worker, &root), 1);

    server.ctl(&["reload"]);
    assert_eq!(open_on(worker, &root), 1, "the same folder is not opened again");
    assert_eq!(ask(&format!("s{}", SITES - 1)), "first");

    // Another folder in its place is another folder.
    fs::rename(&root, server.folder().base().join("moved")).expect("renamed");
    server.folder().write("index.html", "second");
    server.ctl(&["reload"]);
    assert_eq!(ask("s1"), "second");
    assert_eq!(open_on(worker, &root), 1);
}

fn start_with_descriptors(descriptors: usize, folder: Folder) -> Server {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n \"$2\"; exec \"$0\" run -c \"$1\"", env!("CARGO_BIN_EXE_baton")]);
    command.arg(folder.base().join("baton.toml")).arg(descriptors.to_string());
    Server::start(folder, command)
}

/// Descriptors of a process that are this folder.
fn open_on(process: Pid, folder: &Path) -> usize {
    let open = fs::read_dir(format!("/proc/{}/fd", process.as_raw_nonzero())).expect("its descriptors");
    open.flatten().filter(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == folder)).count()
}

const SITES: usize = 200;
