//! How a server starts, and its messages when it cannot.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::common::client::Client;
use crate::common::folder::Folder;
use crate::supervised::{
    ANY_PORT, ServiceManager, baton, complaint, configure, ctl, folder, read, run, start, write,
};

/// The output of a server that cannot serve with this configuration.
fn start_in_vain(folder: &Folder) -> String {
    complaint(run(folder).output().unwrap())
}

/// Passes a socket as a service manager does. A client that connected before the server was there is served.
#[test]
fn sockets_are_taken_from_the_service_manager() {
    let folder = folder();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    configure(&folder, &format!("\"{address}\""), "root", "processes = 2");
    let mut early = Client::connect(address);
    early.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");

    let mut command = Command::new("sh");
    let script = "exec 3<&0 </dev/null 2>/dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" run -c \"$1\"";
    command.args(["-c", script, env!("CARGO_BIN_EXE_baton")]).arg(folder.base().join("baton.toml"));
    command.stdin(OwnedFd::from(listener)).process_group(folder.group());
    let mut server = command.spawn().unwrap();
    assert_eq!(early.response().text(), "first");
    assert_eq!(Client::connect(address).get("/").text(), "first");
    let status: Value = serde_json::from_slice(&ctl(&folder, &["status", "--json"]).stdout).unwrap();
    assert_eq!(status["listeners"][0]["inherited"], true);
    assert!(ctl(&folder, &["stop"]).status.success());
    assert!(server.wait().unwrap().success());
}

/// Acts as the service manager that the server notifies.
#[test]
fn the_service_manager_is_kept_informed() {
    let folder = folder();
    configure(&folder, ANY_PORT, "root", "");
    let (manager, server) = ServiceManager::start(folder);
    assert_eq!(manager.told(), "READY=1");
    server.ctl(&["reload"]);
    assert!(manager.told().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(manager.told(), "READY=1");
    server.signal(Signal::TERM);
    assert_eq!(manager.told(), "STOPPING=1");
}

/// Starts a second server on a port of the first, which would be possible with SO_REUSEPORT.
#[test]
fn a_port_in_use_is_reported_with_its_holder() {
    let first = start("processes = 2");
    let second = folder();
    configure(&second, &format!("\"{}\"", first.address()), "root", "processes = 2");
    let told = start_in_vain(&second);
    let holder = format!("likely cause: baton (process {}) listens there", first.pid().as_raw_nonzero());
    assert!(told.contains(&holder), "{told}");
    assert!(told.contains(&format!("remedy: stop it (`kill {}`)", first.pid().as_raw_nonzero())), "{told}");
    assert_eq!(first.get("/").text(), "first");
    assert!(!second.base().join("control.sock").exists());
}

/// An unassigned address: TEST-NET-1 of RFC 5737.
#[test]
fn an_address_of_another_machine_is_reported() {
    let folder = folder();
    configure(&folder, "\"192.0.2.1:8080\"", "root", "");
    let told = start_in_vain(&folder);
    assert!(told.contains("no network interface of this machine has the address 192.0.2.1"), "{told}");
}

/// A log in a folder that is not there.
#[test]
fn a_log_that_cannot_be_written_is_reported() {
    let folder = folder();
    configure(&folder, ANY_PORT, "root", "[log]\naccess = \"none/access.log\"");
    let told = start_in_vain(&folder);
    assert!(told.contains("cannot open the access log") && told.contains("remedy: `mkdir -p "), "{told}");
}

/// A root that the workers may not open, whether the master may or not: the server does not pretend to serve it.
#[test]
fn a_root_that_workers_cannot_open_is_reported() {
    let folder = folder();
    configure(&folder, ANY_PORT, "root", "processes = 2\npid_file = \"pid\"");
    fs::set_permissions(folder.root(), Permissions::from_mode(0o000)).unwrap();
    let told = start_in_vain(&folder);
    assert!(told.contains("/root: ") && told.contains("ermission denied"), "{told}");
    if rustix::process::geteuid().is_root() {
        assert!(told.contains("remedy: the workers run as "), "{told}");
    }
    assert!(!folder.base().join("control.sock").exists() && !folder.base().join("pid").exists());
}

/// The pid file exists as long as the server.
#[test]
fn the_pid_file_names_the_master() {
    let mut server = start("pid_file = \"pid\"");
    assert_eq!(read(&server, "pid"), format!("{}\n", server.pid().as_raw_nonzero()));
    server.signal(Signal::TERM);
    server.ended();
    assert!(!server.folder().base().join("pid").exists());
}

/// The packaged configuration is valid, with the folders of this test.
#[test]
fn the_packaged_configuration_is_valid() {
    let folder = folder();
    let packaged = include_str!("../../../../dist/baton.toml");
    let root = folder.root().display().to_string();
    write(&folder, "baton.toml", packaged.replace("/var/www/html", &root));
    let output = baton().args(["check", "-c"]).arg(folder.base().join("baton.toml")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
