//! Certificates by ACME, from outside: a server, Pebble as the authority, and curl as the browser.

#[path = "../../../acme/tests/pebble/authority.rs"]
mod authority;
#[path = "../common/mod.rs"]
mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use self::authority::{Habits, Pebble, ProofPorts, wait_until};
use self::common::folder::Folder;
use self::common::port::{self, free_port};
use self::common::server::Server;

/// A folder with a page, the authority and the ports of the site, on which the authority looks for proofs.
struct Stage {
    pebble: Pebble,
    ports: ProofPorts,
    configuration: String,
    issuer: PathBuf,
}

impl Stage {
    /// `None` where the authority is not installed.
    fn set(folder: &Folder, challenge: &str) -> Option<Self> {
        folder.write("page", "the page");
        let ports = ProofPorts { http: free_port(), tls: free_port() };
        let pebble = Pebble::start(folder.base(), ports, Habits::default())?;
        let issuer = folder.base().join("issuer.pem");
        fs::write(&issuer, pebble.issuer()).expect("the issuer");
        let configuration = format!(
            r#"
                processes = 2
                user = "nobody"
                [acme]
                directory = "{directory}"
                roots = "{roots}"
                store = "{{base}}/store"
                profile = "default"
                challenges = ["{challenge}"]
                [[site]]
                listen = ["127.0.0.1:{http}", "127.0.0.1:{tls} tls"]
                hosts = ["example.org", "www.example.org"]
                tls = "acme"
                redirect_https = true
                root = "{{root}}"
            "#,
            directory = pebble.directory(),
            roots = pebble.roots().display(),
            http = ports.http,
            tls = ports.tls,
        );
        Some(Self { pebble, ports, configuration, issuer })
    }

    /// The certificates that the site shows for a name; `None`: a browser that trusts the authority does not accept them,
    /// or does not get the page.
    fn browse(&self, name: &str) -> Option<String> {
        let port = self.ports.tls;
        let output = Command::new("curl")
            .args(["--silent", "--noproxy", "*", "--cacert"])
            .arg(&self.issuer)
            .args(["--resolve", &format!("{name}:{port}:127.0.0.1"), "--write-out", "%{certs}"])
            .arg(format!("https://{name}:{port}/page"))
            .output()
            .expect("curl");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then(|| text.strip_prefix("the page").expect("the page").to_owned())
    }
}

fn status(server: &Server) -> Value {
    server.status()
}

/// Goal: a site begins with a certificate of its own making, and says so; by either challenge it gets one from the
/// authority for all its names, without a restart, though requests in clear text are redirected.
#[test]
fn sites_get_certificates_by_either_challenge() {
    for challenge in ["http-01", "tls-alpn-01"] {
        let folder = Folder::new();
        let Some(stage) = Stage::set(&folder, challenge) else { return };
        let server = Server::run(folder, &stage.configuration);
        server.wait_until_said("example.org: no certificate from the authority yet");
        wait_until("the site has its certificate", || stage.browse("example.org").is_some());
        assert!(stage.browse("www.example.org").is_some());
        let status = status(&server);
        assert_eq!(status["certificates"][0]["days_left"], 89, "{status}");
        assert_eq!(status["acme"]["plans"][0]["failures"], 0, "{status}");
        assert_eq!(status["acme"]["plans"][0]["error"], Value::Null, "{status}");
    }
}

/// Goal: the server renews when the authority wants it. It starts, and serves, while the authority is away, and says so.
#[test]
fn renewals_and_absences_do_not_disturb_clients() {
    let folder = Folder::new();
    let Some(mut stage) = Stage::set(&folder, "http-01") else { return };
    let server = Server::run(folder, &stage.configuration);
    wait_until("the site has its certificate", || stage.browse("example.org").is_some());
    let first = stage.browse("example.org").expect("a certificate");

    stage.pebble.want_renewal(&first[first.find("-----BEGIN").expect("PEM")..]);
    let pid = status(&server)["acme"]["pid"].as_i64().expect("a process");
    kill(pid);
    wait_until("the certificate is renewed", || stage.browse("example.org").is_some_and(|now| now != first));

    stage.pebble.go_away();
    let pid = status(&server)["acme"]["pid"].as_i64().expect("a process");
    kill(pid);
    let error = || status(&server)["acme"]["plans"][0]["error"].as_str().map(str::to_owned);
    wait_until("the status says why", || error().is_some_and(|why| why.contains("the authority is down")));
    assert!(stage.browse("example.org").is_some());
}

/// Goal: a server whose authority never answers starts, serves by a certificate of its own making, and shows no day left.
#[test]
fn a_placeholder_stands_in_for_the_first_certificate() {
    let folder = Folder::new();
    folder.write("page", "the page");
    let (away, port) = (free_port(), free_port());
    let server = Server::run(
        folder,
        &format!(
            r#"
                user = "nobody"
                [acme]
                directory = "https://localhost:{away}/dir"
                store = "{{base}}/store"
                [[site]]
                listen = ["127.0.0.1:{port} tls"]
                hosts = ["example.org"]
                tls = "acme"
                root = "{{root}}"
            "#
        ),
    );
    let plan = || status(&server)["acme"]["plans"][0].clone();
    wait_until("the status says why", || plan()["error"].is_string());
    let status = status(&server);
    assert_eq!(status["certificates"][0]["source"], "placeholder", "{status}");
    assert_eq!(status["certificates"][0]["days_left"], 0, "{status}");
    assert_eq!(plan()["failures"], 0, "the authority has refused nothing");
    let output = Command::new("curl")
        .args(["--silent", "--noproxy", "*", "--insecure"])
        .args(["--resolve", &format!("example.org:{port}:127.0.0.1")])
        .arg(format!("https://example.org:{port}/page"))
        .output()
        .expect("curl");
    assert_eq!(output.stdout, b"the page");
}

fn kill(pid: i64) {
    assert!(Command::new("kill").arg(pid.to_string()).status().expect("kill").success());
    wait_until("the process has ended", || !Path::new(&format!("/proc/{pid}")).exists());
}
