//! The ways in which a server is started.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::Command;

use crate::common::certificate;
use crate::common::folder::Folder;
use crate::common::leave_out;
use crate::common::port::free_address;
use crate::common::server::{BATON, Server};
use crate::intruder;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// By root: workers and applications have one user.
    RootWithOneUser,
    /// By root: applications have a user of their own.
    Root,
    /// As the packaged unit: an ordinary user with the right to start applications as another one.
    Unit,
    /// The same with what the handoff agent needs, as the drop-in for clusters has it.
    ClusterUnit,
    /// As in the image: an ordinary user without rights.
    Image,
}

pub(crate) const STARTS: [Start; 5] =
    [Start::RootWithOneUser, Start::Root, Start::Unit, Start::ClusterUnit, Start::Image];

impl Start {
    /// Whether applications have a user of their own.
    pub(crate) fn separates_users(self) -> bool {
        matches!(self, Self::Root | Self::Unit | Self::ClusterUnit)
    }

    /// Whether the handoff agent has what it needs.
    pub(crate) fn may_move(self) -> bool {
        matches!(self, Self::Root | Self::ClusterUnit)
    }
}

/// A server with a script that plays the intruder. `None`: only root can start it so.
pub(crate) fn server(start: Start) -> Option<Server> {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root && start != Start::Image {
        leave_out(&format!("{start:?}"), "only root can start a server like that");
        return None;
    }
    let folder = Folder::new();
    let base = folder.base().to_owned();
    certificate::install(&base);
    let logs = base.join("logs");
    fs::create_dir(&logs).expect("a folder");
    fs::set_permissions(&logs, Permissions::from_mode(0o750)).expect("permissions");
    if is_root {
        give(&logs);
    }
    let mut command = match start {
        Start::RootWithOneUser | Start::Root => Command::new(BATON),
        Start::Unit => as_user(&base, UNIT),
        Start::ClusterUnit => as_user(&base, &format!("{UNIT},+net_admin,+bpf")),
        Start::Image if is_root => as_user(&base, ""),
        Start::Image => Command::new(BATON),
    };
    let routes = intruder::install(&folder, if start.separates_users() { "user = 'daemon'" } else { "" });
    let agent = if start.may_move() { agent(&base, start) } else { String::new() };
    let of_server =
        if matches!(start, Start::RootWithOneUser | Start::Root) { "user = 'nobody'" } else { "" };
    fs::write(base.join("documents.key"), "a secret of thirty-two characters").expect("a secret");
    let base = base.display();
    let text = format!(
        "[server]\ncontrol_socket = '{base}/control'\nprocesses = 1\ndns_servers = ['127.0.0.1:9']\n{of_server}\n\
         [log]\naccess = '{base}/logs/access.log'\n[acme]\ndirectory = 'https://127.0.0.1:9/'\nstore = '{base}/acme'\n\
         [cluster]\nstate_folder = '{base}/state'\n{agent}\
         nodes = [{{ to = 'http://127.0.0.1:9' }}, {{ to = 'http://nodes.test:9', each_address = true }}]\n\
         [[site]]\nlisten = ['127.0.0.1:0']\nroot = '{base}/root'\n{routes}\
         [[site.route]]\npath = '/cluster'\ncluster = true\n\
         [[site]]\nhosts = ['a.test']\nlisten = ['127.0.0.2:0 tls']\nroot = '{base}/root'\n\
         tls = {{ certificate = '{base}/localhost.pem', key = '{base}/localhost.key' }}\n\
         [[site]]\nhosts = ['b.test']\nlisten = ['127.0.0.2:0 tls']\nroot = '{base}/root'\ntls = 'acme'\n\
         [[site]]\nhosts = ['c.test']\nlisten = ['127.0.0.3:0']\nroot = '{base}/root'\n\
         documents = {{ at = 'http://c.test', peers = ['http://d.test'], key = '{base}/documents.key' }}\n"
    );
    let file = folder.base().join("baton.toml");
    fs::write(&file, text).expect("a configuration");
    command.arg("run").arg("--config").arg(file);
    Some(Server::start(folder, command))
}

/// What the packaged unit has.
const UNIT: &str = "+setuid,+setgid,+kill,+chown,+net_bind_service";

/// The settings of a node that takes connections over.
fn agent(base: &Path, start: Start) -> String {
    let key = base.join("cluster.pem");
    let made = Command::new(BATON).args(["cluster", "key"]).output().expect("a key");
    fs::write(&key, made.stdout).expect("a key");
    fs::set_permissions(&key, Permissions::from_mode(0o600)).expect("permissions");
    // A handoff agent of root reads root's files only.
    if start == Start::ClusterUnit {
        give(&key);
    }
    format!("key = '{}'\nlisten = '{}'\n", key.display(), free_address())
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
