//! What a certificate says about itself: for whom it is, from when until when, who issued it.

use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::digest::{SHA256, digest};
use baton_report::utc;
use rustls::SignatureAlgorithm;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// The facts of the first certificate of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Host names and IP addresses for which it is valid, as written in it, in lower case.
    pub names: Vec<String>,
    /// Whose it is.
    pub subject: String,
    /// Who issued it.
    pub issuer: String,
    /// Valid from this second on.
    pub not_before: SystemTime,
    /// Valid up to this second.
    pub not_after: SystemTime,
    /// Algorithm of its key.
    pub key: KeyAlgorithm,
    /// SHA-256 of the whole certificate.
    pub fingerprint: [u8; 32],
    /// The file.
    pub source: String,
}

/// The algorithm of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyAlgorithm {
    /// ECDSA: a signature takes the server a third of the time of RSA-2048.
    Ecdsa,
    /// Ed25519, which no browser accepts.
    Ed25519,
    /// RSA.
    Rsa,
}

impl KeyAlgorithm {
    /// The word in status and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ecdsa => "ecdsa",
            Self::Ed25519 => "ed25519",
            Self::Rsa => "rsa",
        }
    }

    pub(crate) fn of(algorithm: SignatureAlgorithm) -> Option<Self> {
        match algorithm {
            SignatureAlgorithm::ECDSA => Some(Self::Ecdsa),
            SignatureAlgorithm::ED25519 => Some(Self::Ed25519),
            SignatureAlgorithm::RSA => Some(Self::Rsa),
            _ => None,
        }
    }
}

impl Certificate {
    /// Reads a certificate. `None` if it is not one.
    pub(crate) fn read(der: &[u8], key: KeyAlgorithm, source: &str) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let names = certificate.subject_alternative_name().ok().flatten();
        let names = names.iter().flat_map(|names| &names.value.general_names).filter_map(name).collect();
        let validity = certificate.validity();
        Some(Self {
            names,
            subject: certificate.subject().to_string(),
            issuer: certificate.issuer().to_string(),
            not_before: time(validity.not_before.timestamp()),
            not_after: time(validity.not_after.timestamp()),
            key,
            fingerprint: digest(&SHA256, der).as_ref().try_into().unwrap_or_default(),
            source: source.to_owned(),
        })
    }

    /// Whether it is valid for a host name or an IP address. A wildcard stands for one label (RFC 9525, 6.3).
    pub fn covers(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        // An IPv6 literal stands in brackets in `hosts`, and without them in a certificate.
        let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let covers = |name: &String| {
            *name == host
                || literal == Some(name)
                || name.strip_prefix("*.").is_some_and(|suffix| {
                    host.split_once('.').is_some_and(|(first, rest)| !first.is_empty() && rest == suffix)
                })
        };
        self.names.iter().any(covers)
    }

    /// Whole days until it ends; negative once it has ended.
    pub fn days_left(&self, now: SystemTime) -> i64 {
        let days = |left: Duration| i64::try_from(left.as_secs() / DAY_S).unwrap_or(i64::MAX);
        match self.not_after.duration_since(now) {
            Ok(left) => days(left),
            Err(since) => -1 - days(since.duration()),
        }
    }

    /// What an operator should know: that it has ended, ends soon, is not valid yet, or does not cover one of `hosts`. A
    /// host that begins with `*.` is covered by the same wildcard.
    pub fn advice(&self, hosts: &[String], now: SystemTime) -> Vec<String> {
        let mut advice = Vec::new();
        let source = &self.source;
        let (begins, ends) = (utc(self.not_before), utc(self.not_after));
        match self.days_left(now) {
            ..0 => {
                advice.push(format!("{source}: the certificate ended {ends}: clients refuse it; renew it"));
            }
            left @ 0..DAYS_ENOUGH => {
                advice.push(format!(
                    "{source}: the certificate ends in {}, {ends}: renew it",
                    baton_report::days(left)
                ));
            }
            _ if self.not_before > now => {
                advice.push(format!(
                    "{source}: the certificate is not valid before {begins}: is this host's clock right?"
                ));
            }
            _ => {}
        }
        let uncovered: Vec<_> = hosts.iter().filter(|host| !self.covers(host)).map(String::as_str).collect();
        if !uncovered.is_empty() {
            let known = match &self.names[..] {
                [] => "no host at all".to_owned(),
                names => names.join(", "),
            };
            advice.push(format!(
                "{source}: the certificate is not for {}, but for {known}: clients refuse it there",
                uncovered.join(", ")
            ));
        }
        advice
    }

    /// The fingerprint as tools show it: `AB:CD:…`.
    pub fn fingerprint_text(&self) -> String {
        let bytes: Vec<_> = self.fingerprint.iter().map(|byte| format!("{byte:02X}")).collect();
        bytes.join(":")
    }
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            v4.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from)).ok().map(|ip| ip.to_string())
        }
        _ => None,
    }
}

fn time(seconds: i64) -> SystemTime {
    let distance = Duration::from_secs(seconds.unsigned_abs());
    let time = if seconds < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
    time.unwrap_or(UNIX_EPOCH)
}

const DAY_S: u64 = 86_400;

/// Renewal is due at two thirds of a life; shorter than a week, even a life of 45 days has been forgotten.
const DAYS_ENOUGH: i64 = 7;

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(names: &[&str]) -> Certificate {
        Certificate {
            names: names.iter().map(|&name| name.to_owned()).collect(),
            subject: String::new(),
            issuer: String::new(),
            not_before: time(1_000 * 86_400),
            not_after: time(1_090 * 86_400),
            key: KeyAlgorithm::Ecdsa,
            fingerprint: [0xAB; 32],
            source: "c.pem".into(),
        }
    }

    #[test]
    fn a_wildcard_stands_for_one_label() {
        let certificate = certificate(&["example.org", "*.example.org", "192.0.2.1", "::1"]);
        for host in ["example.org", "EXAMPLE.org", "a.example.org", "*.example.org", "192.0.2.1", "[::1]"] {
            assert!(certificate.covers(host), "{host}");
        }
        for host in ["a.b.example.org", ".example.org", "example.com", "192.0.2.2", "*.b.example.org"] {
            assert!(!certificate.covers(host), "{host}");
        }
    }

    #[test]
    fn advice_names_what_clients_will_refuse() {
        let certificate = certificate(&["example.org"]);
        let advice = |day: i64| certificate.advice(&["example.org".into()], time(day * 86_400)).join("\n");
        assert_eq!(advice(1_050), "");
        assert!(advice(999).contains("not valid before 1972-09-27"), "{}", advice(999));
        assert!(advice(1_084).contains("ends in 6 days"), "{}", advice(1_084));
        assert!(advice(1_091).contains("ended 1972-12-26"), "{}", advice(1_091));
        let hosts = ["example.org".to_owned(), "www.example.org".to_owned()];
        let advice = certificate.advice(&hosts, time(1_050 * 86_400)).join("\n");
        assert_eq!(
            advice,
            "c.pem: the certificate is not for www.example.org, but for example.org: clients refuse it there"
        );
    }

    #[test]
    fn days_are_whole() {
        let certificate = certificate(&[]);
        assert_eq!(certificate.days_left(time(1_089 * 86_400)), 1);
        assert_eq!(certificate.days_left(time(1_090 * 86_400)), 0);
        assert_eq!(certificate.days_left(time(1_090 * 86_400 + 1)), -1);
    }
}
