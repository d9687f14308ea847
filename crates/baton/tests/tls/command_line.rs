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

/// Goal: a client that trusts the user's own authority accepts the server by name and by address, also after a restart, and
/// would accept nothing else of that authority. Method: curl with its certificate; OpenSSL and a certificate that its key has
/// signed for another domain.
#[test]
fn a_local_authority_is_made_once_and_signs_for_local_names() {
    let data = tempfile::tempdir().expect("a folder");
    let kept = data.path().join("baton/local-authority");
    let local_ca = |flags: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
        command.arg("local-ca").args(flags).env("XDG_DATA_HOME", data.path());
        let output = command.output().expect("baton");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let pem = local_ca(&["--print"]);
    let path = kept.join("ca.pem").display().to_string();
    assert_eq!(std::fs::read_to_string(&path).expect("its certificate"), pem);
    let told = local_ca(&[]);
    assert!(
        told.contains(&format!("sudo trust anchor {path}\n")) && told.contains("certutil -d sql:"),
        "{told}"
    );
    for round in 0..2 {
        let folder = Folder::new();
        folder.write("index.html", "hello");
        let mut command = baton(&folder);
        command.env("XDG_DATA_HOME", data.path());
        command.args(["serve", "root", "--tls", "local", "--listen", "127.0.0.1:0", "--control", "off"]);
        let server = Server::start(folder, command);
        server.wait_until_said(&path);
        for host in ["localhost", "127.0.0.1"] {
            let url = format!("https://{host}:{}/", server.address().port());
            let page = curl(server.address(), &url, &["--cacert", &path]);
            assert!(page.ends_with("\r\n\r\nhello"), "{round} {host}: {page}");
        }
    }
    assert_eq!(local_ca(&["--print"]), pem);

    let shell = "openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout k -subj /CN=x -addext \
                 subjectAltName=DNS:$0 | openssl x509 -req -CA ca.pem -CAkey key.pem -days 9 -copy_extensions copy -out c && \
                 openssl verify -CAfile ca.pem c";
    let verified = |name: &str| {
        let output =
            Command::new("sh").args(["-c", shell, name]).current_dir(&kept).output().expect("openssl");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert!(verified("a.test").0, "{}", verified("a.test").1);
    let (accepted, why) = verified("example.org");
    assert!(!accepted && why.contains("permitted subtree violation"), "{why}");
}

/// A folder that cannot be written to, and names that are not local, are mistakes with remedies.
#[test]
fn a_local_authority_says_what_is_wrong() {
    let folder = Folder::new();
    let refused = |hosts: &str, data: &str| {
        let configuration =
            format!("[[site]]\nroot = 'root'\nhosts = [{hosts}]\nlisten = '8443 tls'\ntls = 'local'\n");
        std::fs::write(folder.base().join("baton.toml"), configuration).expect("a file");
        let mut command = baton(&folder);
        let output = command.args(["check", "-c", "baton.toml"]).env("XDG_DATA_HOME", data).output();
        let output = output.expect("baton");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let unwritable = refused("'a.test'", "/proc/no");
    assert!(
        unwritable.contains("cannot keep a local authority in /proc/no/baton/local-authority"),
        "{unwritable}"
    );
    assert!(unwritable.contains("set XDG_DATA_HOME to a folder that is kept"), "{unwritable}");
    let foreign = refused("'a.test', 'example.org'", "/proc/no");
    assert!(foreign.contains("a local certificate for example.org, which is no local name"), "{foreign}");
    assert!(foreign.contains("baton.toml:3"), "{foreign}");
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
