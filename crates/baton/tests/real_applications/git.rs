//! git over HTTP: git-http-backend behind fcgiwrap, by its manual's recipe for other servers.

use std::fs::{self, Permissions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use crate::common::folder::{Folder, pattern};
use crate::common::server::Server;
use crate::program::{Program, installed};

/// Goal: the recipe works as it is written down: a fixed `SCRIPT_FILENAME` is the program that fcgiwrap runs. Method: a
/// repository is cloned and pushed to, with more than fits into memory.
#[test]
fn a_repository_is_cloned_and_pushed_to() {
    let fcgiwrap = installed("fcgiwrap", &["/usr/sbin/fcgiwrap", "/usr/bin/fcgiwrap"]);
    let backend =
        installed("git", &["/usr/lib/git-core/git-http-backend", "/usr/libexec/git-core/git-http-backend"]);
    let folder = Folder::new();
    let base = folder.base().to_owned();
    let repositories = base.join("repositories");
    git(&base, &["init", "--quiet", "--bare", "repositories/house.git"]);
    git(&repositories.join("house.git"), &["config", "http.receivepack", "true"]);

    let socket = base.join("fcgiwrap.sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    fs::set_permissions(&socket, Permissions::from_mode(0o666)).expect("permissions");
    let mut command = Command::new(fcgiwrap);
    command.arg("-f").env_clear().env("PATH", "/usr/bin:/bin").stdin(OwnedFd::from(listener));
    let _fcgiwrap = Program::start(&mut command, &folder, &base.join("fcgiwrap.log"));
    let server = Server::run(
        folder,
        &format!(
            "processes = 1\n[[site]]\nlisten = ['127.0.0.1:0']\n[[site.route]]\npath = '/git'\n\
             [site.route.fastcgi]\nto = 'unix:{}'\n[site.route.fastcgi.params]\nSCRIPT_FILENAME = '{}'\n\
             GIT_PROJECT_ROOT = '{}'\nGIT_HTTP_EXPORT_ALL = ''\nREMOTE_USER = 'tester'\n",
            socket.display(),
            backend.display(),
            repositories.display(),
        ),
    );
    let url = format!("http://{}/git/house.git", server.address());

    git(&base, &["clone", "--quiet", &url, "first"]);
    let first = base.join("first");
    let content = pattern(300_000, 7);
    fs::write(first.join("plan.bin"), content).expect("a file");
    git(&first, &["add", "plan.bin"]);
    git(&first, &["commit", "--quiet", "--message", "A plan"]);
    git(&first, &["push", "--quiet", "origin", "HEAD:refs/heads/main"]);
    git(&base, &["clone", "--quiet", "--branch", "main", &url, "second"]);
    assert!(fs::read(base.join("second/plan.bin")).expect("a file") == content);
}

/// Runs git in a folder, as a user without a configuration.
fn git(folder: &Path, arguments: &[&str]) {
    let identity = ["user.name=Tester", "user.email=tester@example.org"];
    let output = Command::new("git")
        .args(identity.iter().flat_map(|setting| ["-c", setting]))
        .args(arguments)
        .current_dir(folder)
        .env("HOME", folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .output()
        .expect("git");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}
