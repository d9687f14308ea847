//! Use of descriptors where there are few.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Pid;

use crate::common::folder::Folder;
use crate::common::server::Server;
use crate::supervised::{ANY_PORT, configure, folder, serving, write};

/// More sites than descriptors, all of one folder. They are served, and a reload needs one descriptor for a moment,
/// although the old trees are in use until the new ones are complete.
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

    // A new folder of the same name is a different folder.
    fs::rename(&root, server.folder().base().join("moved")).expect("renamed");
    server.folder().write("index.html", "second");
    server.ctl(&["reload"]);
    assert_eq!(ask("s1"), "second");
    assert_eq!(open_on(worker, &root), 1);
}

/// Fewer descriptors than connections and files may need: the server starts with lower bounds, and says what to do.
#[test]
fn too_few_descriptors_are_reported() {
    let folder = folder();
    configure(&folder, ANY_PORT, "root", "processes = 1");
    let checked = with_descriptors(300, &folder, "check").output().expect("baton check");
    let server = start_with_descriptors(300, folder);
    assert_eq!(server.get("/").text(), "first");
    let warning = "warning: too few descriptors: a worker may open 300, but connections_max = 10000";
    server.wait_until_said(warning);
    let told = server.ctl(&["status", "--all"]);
    assert!(told.contains("descriptors     300 per worker: connections_max = 1"), "{told}");
    let told = String::from_utf8(checked.stdout).expect("text");
    assert!(checked.status.success() && told.contains(warning), "{told}");
}

fn start_with_descriptors(descriptors: usize, folder: Folder) -> Server {
    let command = with_descriptors(descriptors, &folder, "run");
    Server::start(folder, command)
}

fn with_descriptors(descriptors: usize, folder: &Folder, command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        "ulimit -n \"$3\"; exec \"$0\" \"$1\" -c \"$2\"",
        env!("CARGO_BIN_EXE_baton"),
        command,
    ]);
    shell.arg(folder.base().join("baton.toml")).arg(descriptors.to_string());
    shell
}

/// Descriptors of a process that are this folder.
fn open_on(process: Pid, folder: &Path) -> usize {
    let open = fs::read_dir(format!("/proc/{}/fd", process.as_raw_nonzero())).expect("its descriptors");
    open.flatten().filter(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == folder)).count()
}

const SITES: usize = 200;
