//! What applications and logs are told of a client's certificate.

use std::fmt::Write;

use aws_lc_rs::digest::{SHA256, digest};
use x509_parser::prelude::{AttributeTypeAndValue, FromDer, X509Certificate, X509Name};

/// A client's certificate, which the server has verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// Whose it is, as RFC 4514 writes names: `CN=Ann,O=Example`.
    pub subject: String,
    /// Who issued it, in the same way.
    pub issuer: String,
    /// Its number at the issuer: hexadecimal digits, in upper case.
    pub serial: String,
    /// SHA-256 of the whole certificate: hexadecimal digits, in lower case.
    pub fingerprint: String,
}

impl ClientCertificate {
    /// Reads a certificate. What cannot be parsed is left empty; the fingerprint always holds.
    pub(crate) fn read(der: &[u8]) -> Self {
        let fingerprint = hexadecimal(digest(&SHA256, der).as_ref());
        match X509Certificate::from_der(der) {
            Ok((_, certificate)) => Self {
                subject: name(certificate.subject()),
                issuer: name(certificate.issuer()),
                serial: hexadecimal(certificate.raw_serial()).to_ascii_uppercase(),
                fingerprint,
            },
            Err(_) => {
                Self { subject: String::new(), issuer: String::new(), serial: String::new(), fingerprint }
            }
        }
    }
}

/// A name as RFC 4514 writes it: from the last part to the first.
fn name(name: &X509Name<'_>) -> String {
    let mut text = String::new();
    let parts: Vec<_> = name.iter().collect();
    for (index, part) in parts.into_iter().rev().enumerate() {
        for (index_in_part, attribute) in part.iter().enumerate() {
            match (index, index_in_part) {
                (0, 0) => {}
                (_, 0) => text.push(','),
                _ => text.push('+'),
            }
            push_attribute(&mut text, attribute);
        }
    }
    text
}

fn push_attribute(text: &mut String, attribute: &AttributeTypeAndValue<'_>) {
    let oid = attribute.attr_type().to_id_string();
    let known = SHORT_NAMES.iter().find(|(known, _)| *known == oid);
    text.push_str(known.map_or(&oid, |(_, short)| short));
    text.push('=');
    match attribute.as_str() {
        Ok(value) => push_escaped(text, value),
        // Of another type than text: its bytes (section 2.4).
        Err(_) => {
            text.push('#');
            text.push_str(&hexadecimal(attribute.attr_value().data));
        }
    }
}

/// Escapes what would end a value or begin another attribute (RFC 4514, section 2.4), so that no certificate can claim
/// more than it has.
fn push_escaped(text: &mut String, value: &str) {
    let last = value.chars().count().saturating_sub(1);
    for (index, character) in value.chars().enumerate() {
        let is_special = matches!(character, ',' | '+' | '"' | '\\' | '<' | '>' | ';' | '=')
            || (index == 0 && matches!(character, '#' | ' '))
            || (index == last && character == ' ');
        if character.is_control() {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                let _ = write!(text, "\\{byte:02X}");
            }
        } else {
            if is_special {
                text.push('\\');
            }
            text.push(character);
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Attributes with a short name (RFC 4514, section 3, and the e-mail address of PKCS #9).
const SHORT_NAMES: [(&str, &str); 10] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "STREET"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
];

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;

    fn certificate(parts: &[(DnType, &str)]) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in parts {
            params.distinguished_name.push(kind.clone(), *value);
        }
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn names_are_written_as_the_rfc_says() {
        let der = certificate(&[
            (DnType::CountryName, "UK"),
            (DnType::OrganizationName, "Sue, Grabbit and Runn"),
            (DnType::CommonName, " #L. Eagle=1\n "),
        ]);
        let read = ClientCertificate::read(&der);
        assert_eq!(read.subject, "CN=\\ #L. Eagle\\=1\\0A\\ ,O=Sue\\, Grabbit and Runn,C=UK");
        assert_eq!(read.issuer, read.subject);
        assert_eq!(read.fingerprint.len(), 64);
        assert!(read.serial.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase()));
    }

    #[test]
    fn what_is_no_certificate_has_a_fingerprint() {
        let read = ClientCertificate::read(b"no certificate");
        assert_eq!((read.subject.as_str(), read.fingerprint.len()), ("", 64));
    }
}
