//! How a server starts, and what it says when it cannot.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::client::{Client, get};
use crate::server::{ANY_PORT, Folder, Server, baton};

/// What a server says that does not come to serve with this configuration.
fn refusal(folder: &Folder) -> String {
    let output = folder.run_in_vain();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    told
}

/// Passes a socket as a service manager does. A client that connected before the server was there is served.
#[test]
fn sockets_are_taken_from_the_service_manager() {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    folder.configure(&format!("\"{address}\""), "site", "processes = 2");
    let mut early = Client::connect(address);
    early.ask("/").unwrap();

    let mut command = Command::new("sh");
    let script = "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" run -c \"$1\"";
    command.args(["-c", script, env!("CARGO_BIN_EXE_baton")]).arg(folder.path("baton.toml"));
    command.stdin(Stdio::from(OwnedFd::from(listener)));
    let server = Server::start_with(folder, command);
    assert_eq!(early.head().unwrap().0, 200);
    assert_eq!(get(address, "/").text(), "first");
    assert_eq!(server.status()["listeners"][0]["inherited"], true);
}

/// Listens as a service manager for what the server tells it.
#[test]
fn the_service_manager_is_kept_informed() {
    let folder = Folder::new();
    folder.configure(ANY_PORT, "site", "");
    let manager = UnixDatagram::bind(folder.path("notify")).unwrap();
    manager.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    let told = || {
        let mut text = [0; 256];
        let len = manager.recv(&mut text).expect("a message");
        String::from_utf8_lossy(&text[..len]).into_owned()
    };
    let mut command = folder.command();
    command.env("NOTIFY_SOCKET", folder.path("notify"));
    let server = Server::start_with(folder, command);
    assert_eq!(told(), "READY=1");
    server.ctl_ok(&["reload"]);
    assert!(told().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(told(), "READY=1");
    server.signal(Signal::TERM);
    assert_eq!(told(), "STOPPING=1");
}

/// Starts a second server on a port of the first, which would be possible with SO_REUSEPORT.
#[test]
fn a_port_in_use_is_reported_with_its_holder() {
    let first = Server::start("processes = 2");
    let second = Folder::new();
    second.configure(&format!("\"{}\"", first.address()), "site", "processes = 2");
    let told = refusal(&second);
    let holder = format!("likely cause: baton (process {}) listens there", first.pid());
    assert!(told.contains(&holder), "{told}");
    assert!(told.contains(&format!("remedy: stop it (`kill {}`)", first.pid())), "{told}");
    assert_eq!(get(first.address(), "/").text(), "first");
    assert!(!second.path("control.sock").exists());
}

/// An address of nobody's: TEST-NET-1 of RFC 5737.
#[test]
fn an_address_of_another_machine_is_reported() {
    let folder = Folder::new();
    folder.configure("\"192.0.2.1:8080\"", "site", "");
    let told = refusal(&folder);
    assert!(told.contains("no network interface of this machine has the address 192.0.2.1"), "{told}");
}

/// A log in a folder that is not there.
#[test]
fn a_log_that_cannot_be_written_is_reported() {
    let folder = Folder::new();
    folder.configure(ANY_PORT, "site", "[log]\naccess = \"none/access.log\"");
    let told = refusal(&folder);
    assert!(told.contains("cannot open the access log") && told.contains("remedy: `mkdir -p "), "{told}");
}

/// A root that the workers may not open, whether the master may or not: the server does not pretend to serve it.
#[test]
fn a_root_that_workers_cannot_open_is_reported() {
    let folder = Folder::new();
    folder.configure(ANY_PORT, "site", "processes = 2\npid_file = \"pid\"");
    fs::set_permissions(folder.path("site"), Permissions::from_mode(0o000)).unwrap();
    let told = refusal(&folder);
    assert!(told.contains("site") && told.contains("ermission denied"), "{told}");
    if rustix::process::geteuid().is_root() {
        assert!(told.contains("remedy: the workers run as "), "{told}");
    }
    assert!(!folder.path("control.sock").exists() && !folder.path("pid").exists());
}

/// Fewer descriptors than connections may need: the server starts, and says what to do.
#[test]
fn too_few_descriptors_are_reported() {
    let folder = Folder::new();
    folder.configure(ANY_PORT, "site", "processes = 1");
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 300; exec \"$0\" run -c \"$1\"", env!("CARGO_BIN_EXE_baton")]);
    command.arg(folder.path("baton.toml"));
    let server = Server::start_with(folder, command);
    assert!(server.said().contains("too few descriptors: a worker may open 300"), "{}", server.said());
    assert_eq!(get(server.address(), "/").text(), "first");
}

/// The pid file is there as long as the server is.
#[test]
fn the_pid_file_names_the_master() {
    let mut server = Server::start("pid_file = \"pid\"");
    assert_eq!(server.folder.read("pid"), format!("{}\n", server.pid()));
    server.signal(Signal::TERM);
    server.ended();
    assert!(!server.folder.path("pid").exists());
}

/// The configuration that packages install says what it should, with the folders of this test.
#[test]
fn the_packaged_configuration_is_valid() {
    let folder = Folder::new();
    let packaged = include_str!("../../../../dist/baton.toml");
    let root = folder.path("site").display().to_string();
    folder.write("baton.toml", packaged.replace("/var/www/html", &root).as_bytes());
    let output = baton().args(["check", "-c"]).arg(folder.path("baton.toml")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
