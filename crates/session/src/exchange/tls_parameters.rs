//! What an application is told of TLS, by the names that Apache and nginx have made common.

use baton_fcgi::params;
use baton_tls::Facts;

/// Appends the variables of a connection; `HTTPS` is with the request's own.
pub(super) fn push(block: &mut Vec<u8>, facts: &Facts) {
    let mut push = |name: &str, value: &str| params::push(block, name.as_bytes(), value.as_bytes());
    push("SSL_PROTOCOL", facts.version.name());
    push("SSL_CIPHER", facts.cipher_suite);
    push("SSL_SESSION_RESUMED", if facts.resumed { "Resumed" } else { "Initial" });
    if let Some(name) = &facts.server_name {
        push("SSL_TLS_SNI", name);
    }
    let Some(certificate) = &facts.client_certificate else {
        push("SSL_CLIENT_VERIFY", "NONE");
        return;
    };
    // The handshake fails with a certificate that does not hold.
    push("SSL_CLIENT_VERIFY", "SUCCESS");
    push("SSL_CLIENT_S_DN", &certificate.subject);
    push("SSL_CLIENT_I_DN", &certificate.issuer);
    push("SSL_CLIENT_M_SERIAL", &certificate.serial);
    push("SSL_CLIENT_FINGERPRINT", &certificate.fingerprint);
}

#[cfg(test)]
mod tests {
    use baton_tls::{ClientCertificate, Protocol, Version};

    use super::*;

    fn pushed(facts: &Facts) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut block = Vec::new();
        push(&mut block, facts);
        let pairs = params::Params::new(&block);
        pairs.map(|pair| pair.map(|(name, value)| (name.to_vec(), value.to_vec())).unwrap()).collect()
    }

    #[test]
    fn a_client_without_a_certificate_is_said_to_have_none() {
        let mut facts = Facts {
            server_name: Some("site.test".into()),
            protocol: Protocol::Http11,
            version: Version::Tls13,
            cipher_suite: "TLS_AES_128_GCM_SHA256",
            resumed: false,
            client_certificate: None,
            policy: None,
        };
        let has = |facts: &Facts, name: &str, value: &str| {
            pushed(facts).contains(&(name.as_bytes().to_vec(), value.as_bytes().to_vec()))
        };
        assert!(has(&facts, "SSL_PROTOCOL", "TLSv1.3"));
        assert!(has(&facts, "SSL_TLS_SNI", "site.test"));
        assert!(has(&facts, "SSL_CLIENT_VERIFY", "NONE"));
        facts.client_certificate = Some(Box::new(ClientCertificate {
            subject: "CN=Ann".into(),
            issuer: "CN=Bob".into(),
            serial: "0A".into(),
            fingerprint: "00".repeat(32),
        }));
        assert!(has(&facts, "SSL_CLIENT_VERIFY", "SUCCESS"));
        assert!(has(&facts, "SSL_CLIENT_S_DN", "CN=Ann"));
    }
}
