//! The names of a certificate.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The host names of a certificate, at least one: the first one is also the certificate's name here, in the store and in
/// messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Names(Vec<String>);

/// Let's Encrypt's bound on names per certificate; other authorities allow as many or more.
pub const NAMES_MAX: usize = 100;

impl Names {
    /// Checks the names: host names in lower case, no wildcards and no addresses, since neither HTTP-01 nor TLS-ALPN-01
    /// can prove those.
    ///
    /// # Errors
    /// What is wrong, as the end of a sentence about the name.
    pub fn new(names: Vec<String>) -> Result<Self, String> {
        if names.is_empty() {
            return Err("a certificate needs a name".into());
        }
        if names.len() > NAMES_MAX {
            return Err(format!(
                "{} names are too many for one certificate: at most {NAMES_MAX}",
                names.len()
            ));
        }
        for name in &names {
            check(name).map_err(|reason| format!("{name:?} {reason}"))?;
        }
        Ok(Self(names))
    }

    /// The name of the certificate.
    pub fn first(&self) -> &str {
        &self.0[0]
    }

    /// All of them.
    pub fn all(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

impl TryFrom<Vec<String>> for Names {
    type Error = String;

    fn try_from(names: Vec<String>) -> Result<Self, String> {
        Self::new(names)
    }
}

impl From<Names> for Vec<String> {
    fn from(names: Names) -> Self {
        names.0
    }
}

/// Names are file names, too: what passes here has no slash and does not begin with a dot.
fn check(name: &str) -> Result<(), &'static str> {
    if name.starts_with("*.") {
        return Err("is a wildcard: an authority issues those by DNS-01 only, which Baton does not speak");
    }
    if name.parse::<std::net::IpAddr>().is_ok() {
        return Err("is an address: a certificate by ACME needs a name");
    }
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if name.len() > 253 || !name.split('.').all(is_label) {
        return Err("is no host name: labels of a-z, 0-9 and hyphens, with dots between them");
    }
    if !name.contains('.') {
        return Err("has no dot: no authority issues certificates for such names");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_can_be_proven_are_taken() {
        for good in ["example.org", "a-b.example.org", "xn--bcher-kva.example", "1.example"] {
            assert!(Names::new(vec![good.into()]).is_ok(), "{good}");
        }
        let bad = [
            "",
            "localhost",
            "*.example.org",
            "192.0.2.1",
            "2001:db8::1",
            "a..example",
            "-a.example",
            "../x.example",
            "A.example",
        ];
        for bad in bad {
            assert!(Names::new(vec!["example.org".into(), bad.into()]).is_err(), "{bad}");
        }
        assert!(Names::new(Vec::new()).is_err());
        assert!(Names::new(vec!["a.example".into(); NAMES_MAX + 1]).is_err());
    }
}
