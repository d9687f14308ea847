//! PEM files of certificates, keys and revocation lists: any bytes are usable, or refused with the name of the file.

use baton_tls::{ClientCertificates, ClientPolicy, Identity, PemFile};

/// A file in each of its uses.
pub fn pem(input: &[u8]) {
    let file = PemFile::new("file.pem", input.to_vec());
    let identity = Identity::load(&file, &file).map(|identity| {
        let certificate = identity.certificate();
        // What is told of it can be told of any.
        _ = (certificate.fingerprint_text(), certificate.advice(&["a.test".into()], certificate.not_after));
        assert!(certificate.names.iter().all(|name| certificate.covers(name)), "{:?}", certificate.names);
    });
    let clients = ClientPolicy::load(ClientCertificates::Require, &file, None).map(drop);
    let revoked = ClientPolicy::load(ClientCertificates::Request, &file, Some(&file)).map(drop);
    for refused in [identity, clients, revoked].into_iter().filter_map(Result::err) {
        assert!(refused.to_string().starts_with("file.pem"), "{refused}");
    }
}
