//! `baton serve --tls`, and what `baton check` and `baton explain` tell of certificates.

use std::process::Command;

use super::authority::Authority;
use super::client::{Client, curl};
use crate::common::folder::Folder;
use crate::common::server::Server;

fn baton(folder: &Folder) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
    command.current_dir(folder.base());
    command
}

/// For development: a certificate that a client can be told to trust, and the same one at the next start.
#[test]
fn a_self_signed_certificate_is_made_once() {
    let cache = tempfile::tempdir().expect("a folder");
    let pem = cache.path().join("baton/self-signed.pem");
    let fingerprint = || {
        let folder = Folder::new();
        folder.write("index.html", "hello");
        let mut command = baton(&folder);
        command.env("XDG_CACHE_HOME", cache.path());
        command.args([
            "serve",
            "root",
            "--tls",
            "self-signed",
            "--listen",
            "127.0.0.1:0",
            "--control",
            "off",
        ]);
        let server = Server::start(folder, command);
        let url = format!("https://localhost:{}/", server.address().port());
        let page = curl(server.address(), &url, &["--cacert", pem.to_str().expect("a path")]);
        assert!(page.ends_with("\r\n\r\nhello"), "{page}");
        let said = server.said();
        said.split("SHA-256 fingerprint: ").nth(1).and_then(|rest| rest.lines().next()).map(str::to_owned)
    };
    let first = fingerprint().expect("a fingerprint");
    assert_eq!(fingerprint(), Some(first.clone()));
    let shown =
        Command::new("openssl").args(["x509", "-noout", "-fingerprint", "-sha256", "-in"]).arg(&pem).output();
    assert!(String::from_utf8_lossy(&shown.expect("openssl").stdout).contains(&first));
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&pem).expect("a file").permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn files_are_named_on_the_command_line() {
    let authority = Authority::new("authority");
    let folder = Folder::new();
    folder.write("index.html", "hello");
    authority.issue(&["a.test"]).install(&folder, "a");
    let mut command = baton(&folder);
    command.args(["serve", "root", "--tls", "a.pem,a.key", "--listen", "127.0.0.1:0", "--control", "off"]);
    let server = Server::start(folder, command);
    assert!(Client::new(&authority).get(server.address(), "a.test").is_ok());
}

#[test]
fn a_check_tells_how_long_certificates_last() {
    let authority = Authority::new("authority");
    let folder = Folder::new();
    folder.write("index.html", "hello");
    let issued = authority.issue(&["a.test"]);
    issued.install(&folder, "a");
    let configuration = "[[site]]\nroot = \"root\"\nhosts = [\"a.test\", \"b.test\"]\nlisten = [\"80\", \"443 tls\"]\n\
                         tls = { certificate = \"a.pem\", key = \"a.key\" }\nredirect_https = true\n";
    std::fs::write(folder.base().join("baton.toml"), configuration).expect("a file");
    let told = |arguments: &[&str]| {
        let output = baton(&folder).args(arguments).output().expect("baton");
        String::from_utf8([output.stdout, output.stderr].concat()).expect("text")
    };
    let checked = told(&["check", "-c", "baton.toml"]);
    assert!(checked.contains("a.pem (ecdsa, ") && checked.contains(" days left): a.test\n"), "{checked}");
    assert!(checked.contains("warning: ") && checked.contains("is not for b.test"), "{checked}");
    let explained = told(&["explain", "-c", "baton.toml", "https://a.test/"]);
    assert!(explained.contains("a.pem (ecdsa, ") && explained.contains("HTTP/1.1 200 OK"), "{explained}");
    let explained = told(&["explain", "-c", "baton.toml", "http://a.test/x"]);
    assert!(explained.contains("redirect to https") && explained.contains("308"), "{explained}");

    authority.issue(&["other"]).install(&folder, "other");
    std::fs::copy(folder.base().join("other.key"), folder.base().join("a.key")).expect("a file");
    let refused = told(&["check", "-c", "baton.toml"]);
    assert!(refused.contains("a.key:1: the key does not belong to the certificate at "), "{refused}");
    assert!(refused.contains("remedy: "), "{refused}");
}
