//! An authority of one user, for development: it signs for names that mean nothing outside this network.
//!
//! Clients that trust it would trust every certificate that its key signs. So the authority itself says, by name
//! constraints (RFC 5280 section 4.2.1.10), for which names they may believe it: with a stolen key, no site of the Internet
//! can be imitated.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use aws_lc_rs::digest::{SHA256, digest};
use baton_report::OperatorError;
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose, NameConstraints, PKCS_ECDSA_P256_SHA256,
};
use zeroize::Zeroizing;

use crate::self_signed::SELF_SIGNED_LIFE;
use crate::{Certificate, Identity, PemFile};

/// Domains that no public authority signs for: RFC 6761, RFC 6762, RFC 8375, and ICANN's for private use.
pub const LOCAL_DOMAINS: [&str; 5] = ["localhost", "test", "local", "internal", "home.arpa"];

/// Addresses of this host and of private networks (RFC 1918, 3927, 4193, 4291), with the lengths of their prefixes.
const LOCAL_NETWORKS: [(IpAddr, u8); 8] = [
    (IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 0)), 8),
    (IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 0)), 8),
    (IpAddr::V4(std::net::Ipv4Addr::new(172, 16, 0, 0)), 12),
    (IpAddr::V4(std::net::Ipv4Addr::new(192, 168, 0, 0)), 16),
    (IpAddr::V4(std::net::Ipv4Addr::new(169, 254, 0, 0)), 16),
    (IpAddr::V6(std::net::Ipv6Addr::LOCALHOST), 128),
    (IpAddr::V6(std::net::Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0)), 7),
    (IpAddr::V6(std::net::Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)), 10),
];

/// Life of the authority: people tell browsers and phones of it by hand.
const AUTHORITY_LIFE: Duration = Duration::from_secs(10 * 365 * 86_400);

/// After which a certificate of the authority is replaced: a month before it ends.
pub const LOCAL_RENEWED_AFTER: Duration = Duration::from_secs(335 * 86_400);

/// Clients whose clocks are late accept certificates, too.
const BEGINS_BEFORE: Duration = Duration::from_secs(86_400);

/// Whether a host name, a wildcard or an IP address is one that the authority signs for.
pub fn is_local_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    if let Ok(address) = name.parse::<IpAddr>() {
        return LOCAL_NETWORKS.iter().any(|(network, prefix)| is_in(address, *network, *prefix));
    }
    let name = name.strip_prefix("*.").unwrap_or(&name);
    LOCAL_DOMAINS
        .iter()
        .any(|domain| name.strip_suffix(domain).is_some_and(|front| front.is_empty() || front.ends_with('.')))
}

fn is_in(address: IpAddr, network: IpAddr, prefix: u8) -> bool {
    let begins_alike = |one: u128, other: u128, bits: u32| (one ^ other) >> (bits - u32::from(prefix)) == 0;
    match (address, network) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            begins_alike(one.to_bits().into(), other.to_bits().into(), 32)
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => begins_alike(one.to_bits(), other.to_bits(), 128),
        _ => false,
    }
}

/// The authority with its key.
pub struct LocalAuthority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    certificate: Certificate,
}

impl LocalAuthority {
    /// Key and certificate of a new one, as one PEM file.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn make(now: SystemTime) -> Result<Zeroizing<String>, OperatorError> {
        let make = || {
            let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
            let certificate = params(&key, now).self_signed(&key)?;
            let key = Zeroizing::new(key.serialize_pem());
            Ok::<_, rcgen::Error>(Zeroizing::new(format!("{}{}", *key, certificate.pem())))
        };
        make().map_err(|error| OperatorError::new(format!("cannot make a local authority: {error}")))
    }

    /// The one in a file that [`make`](Self::make) has written.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn load(file: &PemFile) -> Result<Self, OperatorError> {
        let certificate = Identity::load(file, file)?.certificate().clone();
        let damaged = || OperatorError::new(format!("{} is no local authority", file.name()));
        let text = std::str::from_utf8(file.bytes()).map_err(|_| damaged())?;
        let pem = text.find(BEGIN_CERTIFICATE).map(|start| text[start..].to_owned()).ok_or_else(damaged)?;
        let key = KeyPair::from_pem(text).map_err(|_| damaged())?;
        let params = params(&key, certificate.not_before);
        Ok(Self { issuer: Issuer::new(params, key), pem, certificate })
    }

    /// Its certificate as PEM, which clients have to trust.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// What its certificate says.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// A certificate for these names and its key, as one PEM file.
    ///
    /// # Errors
    /// A name is neither a host name nor an IP address.
    pub fn sign(&self, names: &[String], now: SystemTime) -> Result<Zeroizing<String>, OperatorError> {
        let server = Purpose {
            of: "Baton, for development",
            usages: vec![ExtendedKeyUsagePurpose::ServerAuth],
            ends: (now + SELF_SIGNED_LIFE).min(self.certificate.not_after),
        };
        self.sign_for(names, server, now)
    }

    /// The same for a member of a cluster, at both ends of connections. It is good as long as the authority: what ends it is
    /// that others refuse it.
    pub(crate) fn sign_member(
        &self,
        name: &str,
        now: SystemTime,
    ) -> Result<Zeroizing<String>, OperatorError> {
        let both_ends = Purpose {
            of: "Baton, member of a cluster",
            usages: vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth],
            ends: self.certificate.not_after,
        };
        self.sign_for(&[name.to_owned()], both_ends, now)
    }

    fn sign_for(
        &self,
        names: &[String],
        purpose: Purpose,
        now: SystemTime,
    ) -> Result<Zeroizing<String>, OperatorError> {
        let sign = || {
            let mut params = CertificateParams::new(names.to_vec())?;
            params.not_before = (now - BEGINS_BEFORE).into();
            params.not_after = purpose.ends.into();
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = purpose.usages;
            params.use_authority_key_identifier_extension = true;
            params.distinguished_name = named(purpose.of);
            let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
            let certificate = params.signed_by(&key, &self.issuer)?;
            let key = Zeroizing::new(key.serialize_pem());
            Ok::<_, rcgen::Error>(Zeroizing::new(format!("{}{}", certificate.pem(), *key)))
        };
        sign().map_err(|error| {
            OperatorError::new(format!("cannot sign a certificate for {}: {error}", names.join(", ")))
        })
    }
}

/// What a certificate is for.
struct Purpose {
    of: &'static str,
    usages: Vec<ExtendedKeyUsagePurpose>,
    ends: SystemTime,
}

/// What an authority says of itself. Its name is made from its key: a phone that trusts several tells them apart.
fn params(key: &KeyPair, now: SystemTime) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.not_before = (now - BEGINS_BEFORE).into();
    params.not_after = (now + AUTHORITY_LIFE).into();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let hash = digest(&SHA256, key.public_key_raw());
    let id: String = hash.as_ref()[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    params.distinguished_name = named(&format!("Baton local authority {id}"));
    let domains = LOCAL_DOMAINS.map(|domain| GeneralSubtree::DnsName(domain.to_owned()));
    let networks = LOCAL_NETWORKS
        .map(|(network, prefix)| GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(network, prefix)));
    let permitted_subtrees = domains.into_iter().chain(networks).collect();
    params.name_constraints = Some(NameConstraints { permitted_subtrees, excluded_subtrees: Vec::new() });
    params
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

const BEGIN_CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_network_are_local() {
        for name in
            ["localhost", "*.localhost", "A.Test", "box.local", "127.0.0.1", "172.31.0.1", "::1", "fd00::1"]
        {
            assert!(is_local_name(name), "{name}");
        }
        for name in [
            "example.org",
            "nolocalhost",
            "box",
            "test.example",
            "172.32.0.1",
            "8.8.8.8",
            "2001:db8::1",
            "::2",
        ] {
            assert!(!is_local_name(name), "{name}");
        }
    }

    /// Goal: an authority goes on after its file was read again. Method: what it signs then is from the issuer that the file
    /// names.
    #[test]
    fn it_signs_after_it_was_read_again() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let file = PemFile::new("ca.pem", LocalAuthority::make(now).unwrap().as_bytes().to_vec());
        let authority = LocalAuthority::load(&file).unwrap();
        assert_eq!(authority.certificate().days_left(now), 3650);
        assert!(authority.pem().starts_with(BEGIN_CERTIFICATE) && !authority.pem().contains("PRIVATE"));
        let names = ["a.test", "127.0.0.1", "::1"].map(str::to_owned);
        let signed = PemFile::new("s.pem", authority.sign(&names, now).unwrap().as_bytes().to_vec());
        let identity = Identity::load(&signed, &signed).unwrap();
        let certificate = identity.certificate();
        assert_eq!((certificate.advice(&names, now), certificate.days_left(now)), (Vec::new(), 365));
        assert_eq!(certificate.issuer, authority.certificate().subject);
        assert!(certificate.issuer.starts_with("CN=Baton local authority "), "{}", certificate.issuer);

        // It signs for no longer than it is trusted.
        let late = now + AUTHORITY_LIFE - Duration::from_secs(86_400);
        let signed = PemFile::new("s.pem", authority.sign(&names, late).unwrap().as_bytes().to_vec());
        assert_eq!(Identity::load(&signed, &signed).unwrap().certificate().days_left(late), 1);
        assert!(LocalAuthority::load(&PemFile::new("x.pem", b"x".to_vec())).is_err());
    }
}
