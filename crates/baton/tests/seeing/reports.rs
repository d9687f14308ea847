//! `baton bug-report`: what it tells, and what it must not.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::folder::Folder;
use crate::common::server::Server;

fn report(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
    command.args(["bug-report", "-c", "baton.toml", "--control", "none.sock"]).args(arguments);
    command.env("OF_ENVIRONMENT", "secret-of-environment").current_dir(dir).output().unwrap()
}

#[track_caller]
fn told(dir: &Path, arguments: &[&str]) -> String {
    let output = report(dir, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn assert_parts(report: &str) {
    let titles: Vec<_> = report.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(
        titles,
        ["Build and host", "Kernel", "Server", "Check", "Configuration", "Error log"],
        "{report}"
    );
}

/// Each secret has `secret` in it.
const SECRETS: &str = r#"
    # A comment with secret-0.
    [log]
    error = "error.log"
    [acme]
    email = "secret-1@example.org"
    external_account = { key_id = "secret-2", key_file = "hmac.key" }
    [cluster]
    nodes = ["http://10.0.0.11"]
    etcd = { endpoints = ["http://10.0.0.1:2379"], user = "secret-3", password_file = "etcd.password" }
    [[site]]
    name = "{env.OF_ENVIRONMENT:secret-4}"
    root = "."
    basic_auth = { users = { secret-5 = "$2y$04$M8GN1LhxmWzK34qTmzdeB.JoTi2x7t9.WZghfLTSiQkvuJujEDW9." } }
    headers = { X-Plain = "secret-6", set = { X-Set = "secret-7" }, add = { X-Add = ["secret-8"] }, default = { X-Default = "secret-9" } }
    [[site.route]]
    path = "/body"
    respond = { status = 200, body = "secret-10" }
    [[site.route]]
    path = "/elsewhere"
    redirect = { to = "https://ada:secret-11@example.org/?token=secret-12&to=$uri" }
    [[site.route]]
    path = "/origin"
    proxy = { to = ["http://127.0.0.1:1", "http://127.0.0.1:2"], request_headers = { X-Key = "secret-13" }, health = { path = "/?key=secret-14" } }
    [[site.route]]
    path = "/application"
    fastcgi = { command = ["/bin/sh", "-c", "secret-15"], environment = { KEY = "secret-16" }, params = { KEY = "secret-17" } }
"#;

/// Goal: no secret of a configuration is told, whether the server takes the configuration, refuses a setting of it, or cannot
/// read it. Method: a secret in every setting that may have one, and in the log.
#[test]
fn secrets_are_not_told() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("error.log"), "from 192.0.2.7: /?a=secret-18\nsecret-6 in a header\n").unwrap();
    let refused = "[[site]]\nbasic_auth = { users = { ada = 'secret-19' } }\nroute = [{ path = '/', pasword = 'secret-20' }]\n";
    for (ending, said) in
        [("", "KEY = \"(redacted)\""), (refused, "unknown key `pasword`"), ("= 'secret-21", "is not TOML")]
    {
        fs::write(dir.path().join("baton.toml"), format!("{SECRETS}\n{ending}")).unwrap();
        let report = told(dir.path(), &[]);
        assert_parts(&report);
        assert!(report.contains(said), "{said} in {report}");
        for secret in ["secret", "$2y$", "192.0.2.7"] {
            assert!(!report.contains(secret), "{secret} after {ending:?} in {report}");
        }
    }
}

/// What a reader needs stays: names of settings, paths, numbers, and which settings have secrets.
#[test]
fn what_is_no_secret_is_told() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("baton.toml"), SECRETS).unwrap();
    let report = told(dir.path(), &[]);
    for line in [
        concat!("- version: baton ", env!("CARGO_PKG_VERSION")),
        "- openat2: yes",
        "email = \"(redacted)\"",
        "password_file = \"etcd.password\"",
        "name = \"{env.OF_ENVIRONMENT:(redacted)}\"",
        "X-Set = \"(redacted)\"",
        "path = \"/elsewhere\"",
        "to = \"https://(redacted)@example.org/?token=(redacted)&to=$uri\"",
        "command = [\"/bin/sh\", \"(redacted)\", \"(redacted)\"]",
    ] {
        assert!(report.lines().any(|one| one == line), "{line} in {report}");
    }
}

/// A file that is missing is a line of the report, not its end.
#[test]
fn what_cannot_be_read_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let without_configuration = told(dir.path(), &[]);
    assert_parts(&without_configuration);
    assert!(without_configuration.contains("cannot read baton.toml"), "{without_configuration}");
    for (root, part) in [("none", "`site.root` cannot be served"), (".", "none.log: No such file")] {
        let text = format!("[log]\nerror = 'none.log'\n[[site]]\nroot = '{root}'\n");
        fs::write(dir.path().join("baton.toml"), text).unwrap();
        let report = told(dir.path(), &[]);
        assert_parts(&report);
        for part in [part, "no server listens on none.sock"] {
            assert!(report.contains(part), "{part} in {report}");
        }
    }
}

#[test]
fn so_many_lines_of_the_log_are_told() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("baton.toml"), "[log]\nerror = 'error.log'\n[[site]]\nroot = '.'\n").unwrap();
    let log: String = (0..100).map(|line| format!("line {line} ```\n")).collect();
    fs::write(dir.path().join("error.log"), log).unwrap();
    for (arguments, first) in [(&[][..], 50), (&["--log-lines", "3"], 97)] {
        let report = told(dir.path(), arguments);
        let expected: String = (first..100).map(|line| format!("line {line} ```\n")).collect();
        assert!(report.ends_with(&format!("## Error log\n\n````\n{expected}````\n")), "{report}");
    }
}

#[test]
fn a_report_can_be_written_to_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let said = told(dir.path(), &["--output", "report.md"]);
    assert!(said.starts_with("report.md: "), "{said}");
    assert_parts(&fs::read_to_string(dir.path().join("report.md")).unwrap());
    let failed = report(dir.path(), &["--output", "none/report.md"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("mkdir -p none"), "{failed:?}");
}

/// A running server is found at the socket that its configuration names.
#[test]
fn a_running_server_tells_its_status() {
    let server = Server::run(Folder::new(), "[[site]]\nlisten = \"127.0.0.1:0\"\nroot = \"{root}\"\n");
    let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
    command.args(["bug-report", "-c", "baton.toml"]).env_remove("BATON_CONTROL");
    let output = command.current_dir(server.folder().base()).output().unwrap();
    let report = String::from_utf8(output.stdout).unwrap();
    assert!(report.contains(", serving, process "), "{report}");
}
