//! The ways in which a server is started.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::Command;

use crate::common::certificate;
use crate::common::folder::{Folder, install_program};
use crate::common::leave_out;
use crate::common::server::{BATON, Server};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// By root: workers and applications have one user.
    RootWithOneUser,
    /// By root: applications have a user of their own.
    Root,
    /// As the packaged unit: an ordinary user with the right to start applications as another one.
    Unit,
    /// As in the image: an ordinary user without rights.
    Image,
}

pub(crate) const STARTS: [Start; 4] = [Start::RootWithOneUser, Start::Root, Start::Unit, Start::Image];

/// A server with a script that plays the intruder. `None`: only root can start it so.
pub(crate) fn server(start: Start) -> Option<Server> {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root && start != Start::Image {
        leave_out(&format!("{start:?}"), "only root can start a server like that");
        return None;
    }
    let folder = Folder::new();
    let base = folder.base().to_owned();
    install_program(&folder.path("intruder.cgi"), INTRUDER.replace("{base}", base.to_str().expect("UTF-8")));
    certificate::install(&base);
    let logs = base.join("logs");
    fs::create_dir(&logs).expect("a folder");
    fs::set_permissions(&logs, Permissions::from_mode(0o750)).expect("permissions");
    if is_root {
        give(&logs);
    }
    let mut command = match start {
        Start::RootWithOneUser | Start::Root => Command::new(BATON),
        Start::Unit => as_user(&base, "+setuid,+setgid,+kill,+chown,+net_bind_service"),
        Start::Image if is_root => as_user(&base, ""),
        Start::Image => Command::new(BATON),
    };
    let user = match start {
        Start::Root | Start::Unit => "user = 'daemon'",
        Start::RootWithOneUser | Start::Image => "",
    };
    let of_server =
        if matches!(start, Start::RootWithOneUser | Start::Root) { "user = 'nobody'" } else { "" };
    let base = base.display();
    let text = format!(
        "[server]\ncontrol_socket = '{base}/control'\nprocesses = 1\n{of_server}\n\
         [log]\naccess = '{base}/logs/access.log'\n[acme]\ndirectory = 'https://127.0.0.1:9/'\nstore = '{base}/acme'\n\
         [[site]]\nlisten = ['127.0.0.1:0']\nroot = '{base}/root'\n\
         [[site.route]]\npath = '/'\ncgi = {{ scripts = ['.cgi'], {user} }}\n\
         [[site]]\nhosts = ['a.test']\nlisten = ['127.0.0.2:0 tls']\nroot = '{base}/root'\n\
         tls = {{ certificate = '{base}/localhost.pem', key = '{base}/localhost.key' }}\n\
         [[site]]\nhosts = ['b.test']\nlisten = ['127.0.0.2:0 tls']\nroot = '{base}/root'\ntls = 'acme'\n"
    );
    let file = folder.base().join("baton.toml");
    fs::write(&file, text).expect("a configuration");
    command.arg("run").arg("--config").arg(file);
    Some(Server::start(folder, command))
}

/// The server as an ordinary user that has these capabilities, as a service manager starts it.
fn as_user(base: &Path, capabilities: &str) -> Command {
    give(base);
    give(&base.join("localhost.key"));
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]);
    if capabilities.is_empty() {
        command.arg("--bounding-set=-all");
    } else {
        command.arg(format!("--inh-caps={capabilities}")).arg(format!("--ambient-caps={capabilities}"));
        command.arg(format!("--bounding-set=-all,{capabilities}"));
    }
    command.arg(BATON);
    command
}

fn give(path: &Path) {
    chown(path, Some(65534), Some(65534)).expect("root may");
}

/// Tries each act, and says what came of it.
const INTRUDER: &str = r#"#!/usr/bin/env python3
import ctypes, os, socket, subprocess, tempfile

def parent(pid):
    return int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])

master = parent(parent(os.getppid()))
children = open(f"/proc/{master}/task/{master}/children").read().split()
worker = next(int(one) for one in children if b"--process-table" not in open(f"/proc/{one}/cmdline", "rb").read()
              and b"\0acme\0" not in open(f"/proc/{one}/cmdline", "rb").read())

def trace():
    if ctypes.CDLL(None).ptrace(16, master, 0, 0) != 0:
        raise OSError()

def command():
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(10)
    client.connect("{base}/control")
    client.sendall(b"status\n")
    if not client.recv(1):
        raise OSError()

def orphan():
    read, write = os.pipe()
    if os.fork() == 0:
        first = os.getpid()
        if os.fork() == 0:
            while os.getppid() == first: pass
            outcome = b"x"
            try:
                command()
            except OSError:
                outcome = b"-"
            os.write(write, outcome)
            os._exit(0)
        os._exit(0)
    os.wait()
    if os.read(read, 1) != b"x":
        raise OSError()

acts = {
    "read the key": lambda: open("{base}/localhost.key").read(),
    "look into the master": lambda: open(f"/proc/{master}/mem", "rb"),
    "look into a worker": lambda: open(f"/proc/{worker}/mem", "rb"),
    "trace the master": trace,
    "signal the master": lambda: os.kill(master, 0),
    "signal a worker": lambda: os.kill(worker, 0),
    "command the server": command,
    "command it from an orphan": orphan,
    "open a raw socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1),
    "write to the folder of logs": lambda: open("{base}/logs/new", "w"),
    "run a program": lambda: subprocess.run(["true"], check=True),
    "write a temporary file": lambda: tempfile.TemporaryFile().write(b"x"),
}
print("Content-Type: text/plain\n", flush=True)
for name, act in acts.items():
    try:
        act()
        print(f"{name}: done")
    except OSError as error:
        print(f"{name}: {error}")
"#;
