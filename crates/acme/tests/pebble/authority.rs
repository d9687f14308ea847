//! A real certificate authority for a test: Pebble, and the DNS that leads all names to this machine. The black-box
//! suite of the server includes this file.

#![allow(dead_code, reason = "each suite uses a part of it")]

use std::fs;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::port::free_port;

/// Nothing that is waited for takes longer, unless it never comes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The tools as the script `setup-tests` installs them. Says so if one is missing: then the test has to be left out.
pub(crate) fn tool(name: &str) -> Option<PathBuf> {
    let tool = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("tools").join("bin").join(name);
    if tool.exists() {
        return Some(tool);
    }
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    // Directly on standard error, which the test harness does not capture.
    let _ = writeln!(io::stderr(), "LEFT OUT of {test}: {name} is missing: scripts/setup-tests installs it");
    None
}

/// What may differ between authorities.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Habits {
    /// How many of a hundred valid nonces it rejects.
    pub(crate) rejected_nonces: u8,
    /// Whether it has only customers whom it knows: `kid-1`, with [`HMAC_KEY`].
    pub(crate) known_customers_only: bool,
}

/// The key of the one customer, base64url.
pub(crate) const HMAC_KEY: &str = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";

/// The ports of this machine on which the authority looks for proofs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProofPorts {
    pub(crate) http: u16,
    pub(crate) tls: u16,
}

/// The authority. It forgets everything when it ends.
pub(crate) struct Pebble {
    folder: PathBuf,
    port: u16,
    management: u16,
    names: Child,
    child: Option<Child>,
    command: PathBuf,
    habits: Habits,
    dns: u16,
}

impl Pebble {
    /// Starts one whose files are in `folder`. `None` where it is not installed.
    pub(crate) fn start(folder: &Path, ports: ProofPorts, habits: Habits) -> Option<Self> {
        let (command, names) = (tool("pebble")?, tool("pebble-challtestsrv")?);
        let (port, management, dns, control) = (free_port(), free_port(), free_port(), free_port());
        write_identity(folder);
        let keys = if habits.known_customers_only {
            serde_json::json!({ "kid-1": HMAC_KEY })
        } else {
            serde_json::json!({})
        };
        let config = serde_json::json!({ "pebble": {
            "listenAddress": format!("127.0.0.1:{port}"),
            "managementListenAddress": format!("127.0.0.1:{management}"),
            "certificate": folder.join("pebble.pem"),
            "privateKey": folder.join("pebble.key"),
            "httpPort": ports.http,
            "tlsPort": ports.tls,
            "externalAccountBindingRequired": habits.known_customers_only,
            "externalAccountMACKeys": keys,
            "domainBlocklist": ["blocked.example"],
            "retryAfter": { "authz": 1, "order": 1 },
            "keyAlgorithm": "ecdsa",
            "profiles": {
                "default": { "description": "ninety days", "validityPeriod": 7_776_000 },
                "shortlived": { "description": "six days", "validityPeriod": 518_400 },
            },
        } });
        fs::write(folder.join("pebble.json"), config.to_string()).expect("a configuration");
        let names = Command::new(names)
            .args(["-dnsserver", &format!("127.0.0.1:{dns}"), "-defaultIPv6", ""])
            .args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", ""])
            .args(["-management", &format!("127.0.0.1:{control}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the DNS starts");
        wait_until_open(control);
        wait_until_open(dns);
        let folder = folder.to_owned();
        let mut pebble = Self { folder, port, management, names, child: None, command, habits, dns };
        pebble.come_back();
        Some(pebble)
    }

    /// URL of its directory.
    pub(crate) fn directory(&self) -> String {
        format!("https://localhost:{}/dir", self.port)
    }

    /// The file with the certificate of those who issued its own.
    pub(crate) fn roots(&self) -> PathBuf {
        self.folder.join("roots.pem")
    }

    /// Ends it.
    pub(crate) fn go_away(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().and_then(|()| child.wait()).expect("it ends");
        }
    }

    /// Starts it again, on the same port and with no memory of accounts.
    pub(crate) fn come_back(&mut self) {
        let child = Command::new(&self.command)
            .arg("-config")
            .arg(self.folder.join("pebble.json"))
            .args(["-dnsserver", &format!("127.0.0.1:{}", self.dns)])
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_AUTHZREUSE", "0")
            .env("PEBBLE_WFE_NONCEREJECT", self.habits.rejected_nonces.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.child = Some(child.expect("the authority starts"));
        wait_until_open(self.port);
        wait_until_open(self.management);
    }

    /// Lets the authority suggest that a certificate be renewed now.
    pub(crate) fn want_renewal(&self, chain_pem: &str) {
        let leaf = chain_pem.split_inclusive("-----END CERTIFICATE-----").next().expect("a certificate");
        let window = serde_json::json!({
            "suggestedWindow": { "start": "2020-01-01T00:00:00Z", "end": "2020-01-02T00:00:00Z" },
        });
        let body = serde_json::json!({ "certificate": leaf, "ariResponse": window.to_string() });
        let url = format!("https://localhost:{}/set-renewal-info/", self.management);
        let answer = agent(&self.roots()).post(&url).send(body.to_string().as_bytes());
        assert_eq!(answer.expect("an answer").status(), 200);
    }

    /// The certificate by which clients know those that it issues: another one after each start.
    pub(crate) fn issuer(&self) -> String {
        let url = format!("https://localhost:{}/roots/0", self.management);
        let answer = agent(&self.roots()).get(&url).call();
        answer.expect("an answer").body_mut().read_to_string().expect("text")
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        self.go_away();
        let _ = self.names.kill().and_then(|()| self.names.wait());
    }
}

/// A client that trusts the certificate in that file.
fn agent(root: &Path) -> Agent {
    let root = Certificate::from_pem(&fs::read(root).expect("the root")).expect("a certificate");
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&[root]))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .build();
    Agent::config_builder().tls_config(tls).proxy(None).build().new_agent()
}

/// A certificate for the authority's own server, and the root that issued it.
pub(crate) fn write_identity(folder: &Path) {
    let root_key = KeyPair::generate().expect("a key");
    let mut root = CertificateParams::new(Vec::new()).expect("parameters");
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root_pem = root.self_signed(&root_key).expect("a root").pem();
    let key = KeyPair::generate().expect("a key");
    let leaf = CertificateParams::new(["localhost".to_owned()]).expect("parameters");
    let leaf = leaf.signed_by(&key, &Issuer::new(root, root_key)).expect("a certificate");
    fs::write(folder.join("roots.pem"), root_pem).expect("a file");
    fs::write(folder.join("pebble.pem"), leaf.pem()).expect("a file");
    fs::write(folder.join("pebble.key"), key.serialize_pem()).expect("a file");
}

fn wait_until_open(port: u16) {
    wait_until(&format!("port {port} is open"), || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
}

/// Waits for something to become true.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_true() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
