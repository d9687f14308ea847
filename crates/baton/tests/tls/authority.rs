//! A certificate authority, and folders with certificates that it has issued.

use std::fs;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, SignatureAlgorithm,
};

use crate::common::folder::Folder;

pub(crate) struct Authority {
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM.
pub(crate) struct Issued {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    pub(crate) fn issue(&self, names: &[&str]) -> Issued {
        self.issue_for(names, &PKCS_ECDSA_P256_SHA256)
    }

    pub(crate) fn issue_rsa(&self, names: &[&str]) -> Issued {
        self.issue_for(names, &PKCS_RSA_SHA256)
    }

    fn issue_for(&self, names: &[&str], algorithm: &'static SignatureAlgorithm) -> Issued {
        let list: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(list).expect("names");
        params.distinguished_name.push(DnType::CommonName, names[0]);
        let key = KeyPair::generate_for(algorithm).expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate").pem();
        Issued { certificate, key: key.serialize_pem() }
    }
}

impl Issued {
    /// Writes `NAME.pem` and `NAME.key` beside the document root, each in one step, as tools for renewal do.
    pub(crate) fn install(&self, folder: &Folder, name: &str) {
        for (ending, content) in [("pem", &self.certificate), ("key", &self.key)] {
            let fresh = folder.base().join("fresh.pem");
            fs::write(&fresh, content).expect("a file");
            fs::rename(&fresh, folder.base().join(format!("{name}.{ending}"))).expect("renamed");
        }
    }
}
