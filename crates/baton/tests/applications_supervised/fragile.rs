//! Applications that die of anything but requests.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command};

use crate::common::folder::{Folder, install_program};
use crate::common::server::{Server, wait_until};
use crate::processes::pid_of;

const REQUESTS: usize = 20;

fn folder() -> Folder {
    let folder = Folder::new();
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/applications_supervised/fragile.py");
    install_program(&folder.base().join("fragile.py"), fs::read(program).expect("the application"));
    folder
}

fn site(application: &str) -> String {
    format!(
        "processes = 2\n[[site]]\nlisten = ['127.0.0.1:0']\nroot = '{{root}}'\n[[site.route]]\npath = '/app'\n\
         fastcgi = {{ {application} }}\n"
    )
}

/// The processes that have ever been started.
fn starts(folder: &Folder) -> usize {
    fs::read_to_string(folder.base().join("starts")).map_or(0, |text| text.lines().count())
}

/// Ends the process when the test does.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Goal: `transport = "auto"`, the default, kills no application. Method: a single process at an address, which is not
/// started again.
#[test]
fn an_application_of_others_survives_auto() {
    let folder = folder();
    let socket = folder.base().join("app.sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    install_socket(&socket);
    let mut command = Command::new(folder.base().join("fragile.py"));
    command.arg(folder.base().join("starts")).stdin(OwnedFd::from(listener));
    let application = Killed(command.spawn().expect("the application starts"));
    let server = Server::run(folder, &site("to = 'unix:{base}/app.sock'"));
    for _ in 0..REQUESTS {
        assert_eq!(pid_of(&server.get("/app")), application.0.id() as i32);
    }
}

/// Lets the workers' user connect.
fn install_socket(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("permissions");
}

/// Goal: probes do not kill a supervised application repeatedly. Method: count the starts of its processes; the first
/// ones die of the connection that probes whether they are ready.
#[test]
fn a_supervised_application_is_asked_once_whether_it_is_ready() {
    const PROCESSES: usize = 3;
    let server = Server::run(
        folder(),
        &site("command = ['./fragile.py', '{base}/starts'], user = 'root', processes = 3"),
    );
    wait_until("the first ones are replaced", || starts(server.folder()) == 2 * PROCESSES);
    for _ in 0..REQUESTS {
        pid_of(&server.get("/app"));
    }
    assert_eq!(starts(server.folder()), 2 * PROCESSES, "{}", server.said());
}
