//! Which applications get clients' sockets by `auto`, and where the reason is shown.

use std::process::Command;

use crate::common::folder::Folder;
use crate::common::server::{Server, wait_until};
use crate::program;

/// An application that could do everything, of whose user the configuration says this.
fn server(users: &str) -> Server {
    let folder = Folder::new();
    program::start(&folder.base().join("app.sock"), folder.base(), 2);
    let site = "processes = 1\n[[site]]\nlisten = ['127.0.0.1:0']\nroot = '{root}'\n[[site.route]]\npath = '/app'\n\
                fastcgi = { to = 'unix:{base}/app.sock', {users} }\n";
    Server::run(folder, &site.replace("{users}", users))
}

/// The lines of `baton ctl status`, once the server knows all about the application.
fn status(server: &Server) -> String {
    for _ in 0..10 {
        assert_eq!(server.get("/app/bytes?10").status, 200);
    }
    let told = || server.ctl(&["status", "--all"]);
    wait_until("the status shows it", || {
        told().lines().any(|line| line.contains("app.sock") && !line.ends_with("plain"))
    });
    told()
}

/// The output of a sub-command for the configuration of a server.
fn said(server: &Server, arguments: &[&str]) -> String {
    let file = server.folder().base().join("baton.toml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
    let output = command.args(arguments).arg("--config").arg(file).output().expect("baton");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn sockets_are_passed_where_a_trusted_user_listens() {
    let server = server("passfd_users = ['{user}']");
    let status = status(&server);
    assert!(status.contains("passfd") && !status.contains("no passfd"), "{status}");
    for arguments in [&["check"][..], &["explain", "/app/x"]] {
        let said = said(&server, arguments);
        assert!(said.contains("`passfd` only if ") && said.contains(" listens at its socket"), "{said}");
    }
}

#[test]
fn who_gets_no_sockets_is_told_why() {
    // A user that exists on every system and does not run the tests.
    for (users, why) in [
        ("", "no passfd: Baton has not started it, and `passfd_users` is empty"),
        ("passfd_users = ['daemon']", "no passfd: `passfd_users` does not name user "),
    ] {
        let server = server(users);
        let status = status(&server);
        assert!(status.contains(why), "{status}");
    }
    let server = server("");
    for arguments in [&["check"][..], &["explain", "/app/x"]] {
        let said = said(&server, arguments);
        assert!(said.contains("no `passfd`: Baton has not started it"), "{said}");
    }
}
