//! `[acme]`: the authority that issues certificates of sites with `tls = "acme"`, and what it is asked for.

use std::path::PathBuf;

use baton_acme::{ChallengeKind, LETS_ENCRYPT, LETS_ENCRYPT_STAGING, Store};

use super::kind::{ListOf, Or};
use super::setting::{Inline, settings};
use super::text::{FilePath, Private, Text, TextOf, Wrong};
use super::words::{Word, words};

words! {
    for ChallengeKind {
        /// a certificate in a handshake on port 443
        TlsAlpn01 = "tls-alpn-01",
        /// a file below `/.well-known/acme-challenge/` on port 80, on all sites
        Http01 = "http-01",
    }
}

settings! {
    /// Certificates of sites with `tls = "acme"`: the server obtains them from this authority and renews them when the
    /// authority wants it, or after two thirds of their life. By this, its terms of service are accepted. Until the first
    /// certificate is there, a site has one that no browser trusts; a renewal that fails changes nothing.
    Acme in "acme" {
        /// `letsencrypt`, `staging` (Let's Encrypt for tests, which no browser trusts) or the URL of an authority's ACME
        /// directory.
        directory: String = "letsencrypt".to_owned(), DIRECTORY;
        /// Address to which the authority may write.
        email: Option<String> = None, Or("none", Private);
        /// Folder of the certificates, their keys and the account. The master creates it for the workers' user.
        store: PathBuf = PathBuf::from("/var/lib/baton/acme"), FilePath;
        /// How the authority checks that a name leads to this server. After a failure the next one has its turn.
        challenges: Vec<ChallengeKind> = vec![ChallengeKind::TlsAlpn01, ChallengeKind::Http01], ListOf(Word::<ChallengeKind>::new());
        /// Profile of the certificates, of those that the authority offers: `shortlived` lives six days.
        profile: Option<String> = None, Or("usual", Text);
        /// The key by which the authority knows its customer, where it wants one:
        /// `{ key_id = "…", key_file = "hmac.key" }`.
        external_account: Option<ExternalKey> = None, Or("none", Inline::<ExternalKey>::new());
        /// PEM file with the root certificates by which the authority itself is known, if the system does not trust them.
        roots: Option<PathBuf> = None, Or("system", FilePath);
    }
}

settings! {
    /// The key by which an authority knows its customer.
    ExternalKey in "acme.external_account" needs ["key_id", "key_file"] {
        /// The key's identifier.
        key_id: String = String::new(), Private;
        /// File with the key, base64url, as the authority gives it. The master reads it.
        key_file: PathBuf = PathBuf::new(), FilePath;
    }
}

const DIRECTORY: TextOf = TextOf {
    accepted: "\"letsencrypt\", \"staging\" or a URL that begins with `https://`",
    check: |directory| match directory.as_str() {
        "letsencrypt" | "staging" => Ok(directory),
        url if url.starts_with("https://") => Ok(directory),
        _ => Err(Wrong::new(
            "has no directory",
            "expected \"letsencrypt\", \"staging\" or a URL that begins with `https://`",
        )),
    },
};

impl Acme {
    /// The URL of the directory.
    pub(super) fn url(&self) -> &str {
        match self.directory.as_str() {
            "letsencrypt" => LETS_ENCRYPT,
            "staging" => LETS_ENCRYPT_STAGING,
            url => url,
        }
    }

    /// Where the certificates are.
    pub fn certificates(&self) -> Store {
        Store::of(&self.store, self.url())
    }
}
