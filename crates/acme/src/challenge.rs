//! The certificate that proves control over a name in a handshake (TLS-ALPN-01, RFC 8737).

use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};

/// Makes a self-signed certificate for `name` with the digest of the key authorization, and its key, as PEM.
///
/// # Errors
/// If the library cannot make it.
pub(crate) fn tls_alpn_certificate(name: &str, digest: &[u8]) -> Result<String, rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new([name.to_owned()])?;
    params.distinguished_name = DistinguishedName::new();
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    Ok(params.self_signed(&key)?.pem() + &key.serialize_pem())
}

#[cfg(test)]
mod tests {
    use rustls_pki_types::CertificateDer;
    use rustls_pki_types::pem::PemObject as _;
    use x509_parser::oid_registry::Oid;
    use x509_parser::parse_x509_certificate;

    use super::*;

    /// RFC 8737, 3: one name, and a critical acmeIdentifier that holds the digest as an octet string.
    #[test]
    fn the_certificate_holds_the_digest_for_one_name() {
        let pem = tls_alpn_certificate("www.example.org", &[0xAB; 32]).unwrap();
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let (_, certificate) = parse_x509_certificate(&der).unwrap();
        let names = certificate.subject_alternative_name().unwrap().unwrap();
        assert_eq!(format!("{:?}", names.value.general_names), r#"[DNSName("www.example.org")]"#);
        let acme_identifier = Oid::from(&[1, 3, 6, 1, 5, 5, 7, 1, 31]).unwrap();
        let extension = certificate.get_extension_unique(&acme_identifier).unwrap().unwrap();
        assert!(extension.critical);
        assert_eq!(extension.value, [&[0x04, 32][..], &[0xAB; 32]].concat());
        assert!(pem.contains("PRIVATE KEY"));
    }
}
