//! A certificate authority for tests.

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, RevokedCertParams, SerialNumber,
    SignatureAlgorithm, date_time_ymd,
};

use crate::{Identity, PemFile};

pub(super) struct Authority {
    pub(super) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key.
pub(super) struct Issued {
    pub(super) certificate: String,
    pub(super) key: String,
    pub(super) serial: u8,
}

impl Authority {
    pub(super) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    pub(super) fn issue(&self, names: &[&str]) -> Issued {
        self.issue_for(names, &PKCS_ECDSA_P256_SHA256, 7)
    }

    pub(super) fn issue_rsa(&self, names: &[&str]) -> Issued {
        self.issue_for(names, &PKCS_RSA_SHA256, 8)
    }

    pub(super) fn issue_for(
        &self,
        names: &[&str],
        algorithm: &'static SignatureAlgorithm,
        serial: u8,
    ) -> Issued {
        self.issue_with(names, algorithm, serial, |_| ())
    }

    /// One whose time is over.
    pub(super) fn issue_expired(&self, names: &[&str]) -> Issued {
        self.issue_with(names, &PKCS_ECDSA_P256_SHA256, 9, |params| {
            (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
        })
    }

    fn issue_with(
        &self,
        names: &[&str],
        algorithm: &'static SignatureAlgorithm,
        serial: u8,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Issued {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names.clone()).unwrap();
        params.serial_number = Some(SerialNumber::from_slice(&[serial]));
        params.distinguished_name.push(DnType::CommonName, names.concat());
        change(&mut params);
        let key = KeyPair::generate_for(algorithm).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Issued { certificate, key: key.serialize_pem(), serial }
    }

    /// A list of what it has revoked.
    pub(super) fn revocations(&self, revoked: &Issued) -> PemFile {
        let revoked_certs = vec![RevokedCertParams {
            serial_number: SerialNumber::from_slice(&[revoked.serial]),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        }];
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(2040, 1, 1),
            crl_number: SerialNumber::from_slice(&[1]),
            issuing_distribution_point: None,
            revoked_certs,
            key_identifier_method: rcgen::KeyIdMethod::Sha256,
        };
        PemFile::new("crl.pem", params.signed_by(&self.issuer).unwrap().pem().unwrap().into_bytes())
    }

    pub(super) fn file(&self) -> PemFile {
        PemFile::new("ca.pem", self.pem.clone().into_bytes())
    }
}

impl Issued {
    pub(super) fn identity(&self) -> Identity {
        Identity::load(&self.certificate_file(), &self.key_file()).unwrap()
    }

    pub(super) fn certificate_file(&self) -> PemFile {
        PemFile::new("c.pem", self.certificate.clone().into_bytes())
    }

    pub(super) fn key_file(&self) -> PemFile {
        PemFile::new("k.pem", self.key.clone().into_bytes())
    }
}
