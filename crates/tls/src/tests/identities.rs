//! What is refused when certificates and keys are read.

use super::authority::Authority;
use crate::{Identity, KeyAlgorithm, PemFile};

fn refused(chain: &str, key: &str) -> String {
    let file = |name: &str, text: &str| PemFile::new(name, text.as_bytes().to_vec());
    let loaded = Identity::load(&file("c.pem", chain), &file("k.pem", key));
    loaded.err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn a_chain_and_its_key_are_read_from_two_files_or_one() {
    let authority = Authority::new("authority");
    for (issued, algorithm) in [
        (authority.issue(&["A.example"]), KeyAlgorithm::Ecdsa),
        (authority.issue_rsa(&["b"]), KeyAlgorithm::Rsa),
    ] {
        let both = format!("{}{}{}", issued.key, issued.certificate, authority.pem);
        let one = PemFile::new("both.pem", both.into_bytes());
        for identity in [issued.identity(), Identity::load(&one, &one).unwrap()] {
            assert_eq!(identity.certificate().key, algorithm);
            assert_eq!(identity.certificate().issuer, "CN=authority");
        }
        assert_eq!(Identity::load(&one, &one).unwrap().certified.cert.len(), 2);
    }
    assert_eq!(authority.issue(&["A.example"]).identity().certificate().names, ["a.example"]);
}

#[test]
fn a_key_of_another_certificate_is_refused() {
    let authority = Authority::new("authority");
    let (one, other) = (authority.issue(&["one"]), authority.issue(&["other"]));
    let why = refused(&one.certificate, &format!("\n{}", other.key));
    assert!(
        why.starts_with("k.pem:2: the key does not belong to the certificate at c.pem:1 (CN=one)"),
        "{why}"
    );
    let why = refused(&one.certificate, &authority.issue_rsa(&["one"]).key);
    assert!(why.contains("does not belong"), "{why}");
}

#[test]
fn a_chain_in_a_wrong_order_is_refused() {
    let (authority, other) = (Authority::new("authority"), Authority::new("other"));
    let issued = authority.issue(&["one"]);
    let line = 1 + issued.certificate.lines().count();
    let why = refused(&format!("{}{}", issued.certificate, other.pem), &issued.key);
    let expected = format!(
        "c.pem:{line}: this certificate (CN=other) did not issue the one before it, at line 1, which names CN=authority"
    );
    assert!(why.starts_with(&expected), "{why}");
    let why = refused(&format!("{}{}", authority.pem, issued.certificate), &issued.key);
    assert!(why.contains("(CN=one) did not issue"), "{why}");
}

/// `openssl x509 -req` makes these, if it is given no extensions.
#[test]
fn a_certificate_of_version_1_is_refused_in_words() {
    let issued = Authority::new("authority").issue(&["one"]);
    let why = refused(VERSION_1, &issued.key);
    assert!(why.starts_with("c.pem:1: a certificate of X.509 version 1: TLS needs version 3"), "{why}");
    assert!(why.contains("subjectAltName"), "{why}");
}

const VERSION_1: &str = "-----BEGIN CERTIFICATE-----\n\
MIIBJzCBzQIUdCVHg9ATndWOUG5kHEKPXWL+8mMwCgYIKoZIzj0EAwIwFTETMBEG\n\
A1UEAwwKdjEuZXhhbXBsZTAgFw0yNjExMjcwMjE3MzZaGA8yMTI2MTEwMzAyMTcz\n\
NlowFTETMBEGA1UEAwwKdjEuZXhhbXBsZTBZMBMGByqGSM49AgEGCCqGSM49AwEH\n\
A0IABEiN6xNsbFEB/bILw8j4syxofcvH8ZdsQbQbjNbrKwUwNWNKXzxuiG4o3UJz\n\
/dsqFJHoyOTHeYVSNTYEb/b3dTowCgYIKoZIzj0EAwIDSQAwRgIhAJCo4hHfvSte\n\
YVjZZeEmo5mCBA3ZpltQBM3ymmsVAF4XAiEAyN1Mxbxtk3NTqdGXdg6YstrlwsSG\n\
EKqt95evTQ+hcJY=\n\
-----END CERTIFICATE-----\n";

#[test]
fn files_without_what_they_should_have() {
    let issued = Authority::new("authority").issue(&["one"]);
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAQID\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let traditional =
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAQID\n-----END RSA PRIVATE KEY-----\n";
    let not_a_key = "-----BEGIN PRIVATE KEY-----\nAQID\n-----END PRIVATE KEY-----\n";
    let not_a_certificate = "-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n";
    for (chain, key, expected) in [
        (&*issued.key, &*issued.key, "c.pem: no certificate in it"),
        (&issued.certificate, &issued.certificate, "k.pem: no private key in it"),
        (&issued.certificate, encrypted, "k.pem:1: the private key is protected by a password"),
        (&issued.certificate, traditional, "k.pem:1: "),
        (&issued.certificate, not_a_key, "k.pem:1: a private key that is damaged"),
        (not_a_certificate, &issued.key, "c.pem:1: not a certificate"),
    ] {
        let why = refused(chain, key);
        assert!(why.starts_with(expected), "{expected}: {why}");
    }
}
