//! TLS: `[tls]`, and what a site says about its certificates and those of its clients.

use std::path::PathBuf;

use baton_tls::{ClientCertificates, Protocol, TICKETS_OPEN_S};

use super::duration::{Milliseconds, Seconds};
use super::kind::{Flag, Integer, Kind, ListOf, Or, Reading};
use super::raw::{Node, Value};
use super::schema::Schema;
use super::setting::{Inline, settings};
use super::shown::Shown;
use super::text::{FilePath, TextOf, Wrong};
use super::words::{Word, words};

words! {
    for Protocol {
        /// HTTP/2
        Http2 = "h2",
        /// HTTP/1.1
        Http11 = "http/1.1",
    }
}

words! {
    for ClientCertificates {
        /// a client may have none; a certificate that is not accepted ends the handshake
        Request = "request",
        /// without a certificate the handshake fails
        Require = "require",
    }
}

words! {
    /// Whether the kernel seals records.
    KernelTls {
        /// where the kernel can: those of long files, which then leave by `sendfile`, and those of applications that answer
        /// by `passfd`; HTTP/1 and TLS 1.3 only. The status says whether it can, and why not
        Auto = "auto",
        /// the server seals all records
        Off = "off",
    }
}

settings! {
    /// TLS on all addresses that end in ` tls`: versions 1.2 and 1.3, with Mozilla's *intermediate* ciphers and the
    /// post-quantum key exchange. Sessions are resumed by any worker, also after a reload or an upgrade.
    Tls in "tls" {
        /// Protocols that clients are offered, best first (ALPN).
        protocols: Vec<Protocol> = vec![Protocol::Http2, Protocol::Http11], ListOf(Word::<Protocol>::new());
        /// Seconds for which a client can resume its session at most. The keys of session tickets are replaced twice in
        /// that time, so half of it is certain.
        session_s: u64 = TICKETS_OPEN_S, Seconds(2, 604_800);
        /// Milliseconds between two looks at the PEM files. If one has changed, all are read again. 0: only a reload
        /// reads them.
        watch_ms: u64 = 0, Milliseconds(0, 86_400_000);
        /// Whether the kernel seals records (kTLS). Needs a restart.
        kernel: KernelTls = KernelTls::Auto, Word::<KernelTls>::new();
    }
}

settings! {
    /// A certificate of a site, and its key.
    CertificateFiles in "site.tls" needs ["certificate"] {
        /// PEM file with the certificate, followed by those of its issuers. The master reads it with the rights of the
        /// user who starts the server.
        certificate: PathBuf = PathBuf::new(), FilePath;
        /// PEM file with the private key, without a password. `auto`: it is in the same file.
        key: Option<PathBuf> = None, Or("auto", FilePath);
    }
}

impl CertificateFiles {
    /// The file with the key.
    pub fn key_file(&self) -> &PathBuf {
        self.key.as_ref().unwrap_or(&self.certificate)
    }
}

settings! {
    /// What a site demands of clients' certificates.
    ClientAuthentication in "site.client_certificates" needs ["authorities"] {
        /// Whether a client must have a certificate.
        mode: ClientCertificates = ClientCertificates::Require, Word::<ClientCertificates>::new();
        /// PEM file with the certificates of the authorities that issue those of clients.
        authorities: PathBuf = PathBuf::new(), FilePath;
        /// PEM file with what they have revoked: a list (CRL) of each authority that issued a certificate of the chain.
        /// Lists count on after their time.
        revoked: Option<PathBuf> = None, Or("off", FilePath);
    }
}

/// Where the certificates of a site come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SiteCertificates {
    /// From files: one certificate, or several of different algorithms. None: the site has no TLS.
    Files(Vec<CertificateFiles>),
    /// From an authority: see [`Acme`](super::acme::Acme).
    Acme,
    /// From the authority of this user, for development.
    Local,
}

/// Reads [`SiteCertificates`].
pub(crate) struct Certificates;

impl Kind for Certificates {
    type Value = SiteCertificates;

    const SHOWN: Shown = Inline::<CertificateFiles>::SHOWN;

    fn accepted(&self) -> String {
        let one = Inline::<CertificateFiles>::new().accepted();
        format!("\"off\", \"acme\", \"local\", {one} or an array of such tables")
    }

    fn schema(&self) -> Schema {
        let one = Inline::<CertificateFiles>::new().schema();
        let words = ["off", "acme", "local"].map(Schema::Word);
        Schema::either(words.into_iter().chain([Schema::list_of(one.clone()), one]))
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<SiteCertificates> {
        let one = Inline::<CertificateFiles>::new();
        match node.get_ref() {
            Value::String(word) if word == "off" => Some(SiteCertificates::Files(Vec::new())),
            Value::String(word) if word == "acme" => Some(SiteCertificates::Acme),
            Value::String(word) if word == "local" => Some(SiteCertificates::Local),
            Value::Table(_) => one.read(node, reading).map(|files| SiteCertificates::Files(vec![files])),
            Value::Array(_) => ListOf(one).read(node, reading).map(SiteCertificates::Files),
            _ => reading.mismatch(node, &self.accepted()),
        }
    }

    fn write(&self, value: &SiteCertificates) -> toml::Value {
        let one = Inline::<CertificateFiles>::new();
        let files = match value {
            SiteCertificates::Files(files) => files,
            SiteCertificates::Acme => return "acme".into(),
            SiteCertificates::Local => return "local".into(),
        };
        match &files[..] {
            [] => "off".into(),
            [only] => one.write(only),
            several => toml::Value::Array(several.iter().map(|files| one.write(files)).collect()),
        }
    }
}

/// What becomes of requests on addresses without TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectHttps {
    /// They are answered as others.
    Off,
    /// They are sent to the site's first TLS address.
    On,
    /// They are sent to this port: the one that clients see, where something forwards connections.
    Port(u16),
}

/// Reads [`RedirectHttps`].
pub(crate) struct RedirectHttpsKind;

impl Kind for RedirectHttpsKind {
    type Value = RedirectHttps;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        "true, false or a port".into()
    }

    fn schema(&self) -> Schema {
        Schema::either([Flag.schema(), Schema::Integer(1, 65_535)])
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<RedirectHttps> {
        match node.get_ref() {
            Value::Boolean(false) => Some(RedirectHttps::Off),
            Value::Boolean(true) => Some(RedirectHttps::On),
            Value::Integer(_) => {
                let port = Integer(1, 65_535).read(node, reading)?;
                u16::try_from(port).ok().map(RedirectHttps::Port)
            }
            _ => reading.mismatch(node, &self.accepted()),
        }
    }

    fn write(&self, value: &RedirectHttps) -> toml::Value {
        match value {
            RedirectHttps::Off => false.into(),
            RedirectHttps::On => true.into(),
            RedirectHttps::Port(port) => i64::from(*port).into(),
        }
    }
}

/// Reads the value of `Strict-Transport-Security`.
pub(crate) struct Hsts;

/// Two years: what Mozilla recommends, and the lists of browsers ask for at least one.
const HSTS_USUAL: &str = "max-age=63072000";

const HSTS_VALUE: TextOf = TextOf {
    accepted: "true, false or a value such as \"max-age=63072000; includeSubDomains\"",
    check: |value| {
        let max_age = value.split(';').find_map(|part| part.trim().strip_prefix("max-age="));
        match max_age.is_some_and(|seconds| seconds.parse::<u64>().is_ok()) {
            true if baton_http::field_value_is_safe(value.as_bytes()) => Ok(value),
            _ => Err(Wrong::new(
                "has no age",
                "expected `max-age=SECONDS`, perhaps with `; includeSubDomains`",
            )),
        }
    },
};

impl Kind for Hsts {
    type Value = Option<String>;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        HSTS_VALUE.accepted.into()
    }

    fn schema(&self) -> Schema {
        Schema::either([Flag.schema(), Schema::TEXT])
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Option<String>> {
        match node.get_ref() {
            Value::Boolean(false) => Some(None),
            Value::Boolean(true) => Some(Some(HSTS_USUAL.to_owned())),
            _ => HSTS_VALUE.read(node, reading).map(Some),
        }
    }

    fn write(&self, value: &Option<String>) -> toml::Value {
        value.as_deref().map_or(false.into(), Into::into)
    }
}
