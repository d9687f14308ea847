//! Where memory is bounded, the server takes only its share.

use std::process::Command;
use std::thread::scope;

use crate::common::server::Server;
use crate::common::{leave_out, matrix};
use crate::group::Group;
use crate::supervised::{ANY_PORT, configure, folder, status};

/// Files that are kept in memory, more than a worker may keep.
const FILES: usize = 600;
const FILE_BYTES: usize = 120 << 10;

/// Four workers, and one with a large cache, in a control group of 64 MiB, serve 70 MB of files: the kernel kills
/// none. With 64 MiB of cache each it would.
#[test]
fn a_control_group_is_respected() {
    for (configured, per_worker) in [
        (
            "architecture = \"symped\"\nprocesses = 4",
            "4 MiB per worker: a quarter of its part of the 64 MiB of ",
        ),
        ("architecture = \"threads-cache\"", "16 MiB per worker: a quarter of the 64 MiB of "),
    ] {
        let Some(group) = Group::make(64 << 20) else {
            return leave_out("memory is not bounded by a control group", "this user may not make one");
        };
        let folder = folder();
        let content = vec![7; FILE_BYTES];
        for index in 0..FILES {
            folder.write(&index.to_string(), &content);
        }
        configure(&folder, ANY_PORT, "root", configured);
        let mut command = Command::new("sh");
        let script = "echo $$ > \"$2\"/cgroup.procs && exec \"$0\" run -c \"$1\"";
        command.args(["-c", script, env!("CARGO_BIN_EXE_baton")]);
        command.arg(folder.base().join("baton.toml")).arg(group.folder());
        let server = Server::start(folder, command);

        let told = status(&server)["cache_memory"].to_string();
        assert!(told.contains(per_worker) && told.contains(group.folder().to_str().unwrap()), "{told}");
        scope(|threads| {
            let clients = matrix::size(4, 8);
            for client in 0..clients {
                let server = &server;
                threads.spawn(move || {
                    for index in 0..FILES {
                        let path = format!("/{}", (index + client * FILES / clients) % FILES);
                        assert_eq!(server.get(&path).body.len(), FILE_BYTES);
                    }
                });
            }
        });
        assert_eq!(group.kills(), 0, "{configured}: {}", server.said());
    }
}

/// Limits a process's address space. A larger configured cache is kept, with a warning.
#[test]
fn the_limit_of_addresses_is_respected() {
    let limited = |configured: &str| {
        let server = start_with_little_address_space(configured);
        assert_eq!(server.get("/").text(), "first");
        server
    };
    let server = limited("architecture = \"sped\"");
    let expected = "50 MiB per worker: a quarter of a worker's 200 MiB of address space";
    assert_eq!(status(&server)["cache_memory"], expected);
    assert!(server.ctl(&["status", "--all"]).contains(&format!("cache memory    {expected}\n")));

    let server = limited("architecture = \"sped\"\n[cache]\nmemory_bytes_max = \"150 MiB\"");
    assert_eq!(status(&server)["cache_memory"], "150 MiB per worker, as configured");
    let advice =
        "warning: cache.memory_bytes_max = 150 MiB is more than half of a worker's 200 MiB of address space";
    server.wait_until_said(advice);
}

/// A limit that leaves no room for the stacks of all configured threads: the worker says so, and ends without serving
/// with the threads that it could start.
#[test]
fn a_worker_that_cannot_start_its_threads_says_so_and_ends() {
    let server = start_with_little_address_space("architecture = \"mt\"\nthreads = 1024");
    server.wait_until_said(" of 1024: ");
    server.wait_until_said("lower server.threads");
    server.wait_until_said("exited with status 1");
}

/// 200 MiB.
fn start_with_little_address_space(configured: &str) -> Server {
    let folder = folder();
    configure(&folder, ANY_PORT, "root", configured);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 204800; exec \"$0\" run -c \"$1\"", env!("CARGO_BIN_EXE_baton")]);
    command.arg(folder.base().join("baton.toml"));
    Server::start(folder, command)
}
