//! The certificate of the tests' servers, and clients that trust it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use super::protocol::Protocol;

/// Certificate and key of `localhost`, in PEM; the same for all servers of a process of tests.
static PEM: LazyLock<(String, String)> = LazyLock::new(|| {
    let made = rcgen::generate_simple_self_signed([HOST.to_owned()]).expect("a certificate");
    (made.cert.pem(), made.signing_key.serialize_pem())
});

/// Writes `localhost.pem` and `localhost.key` into the folder.
pub(crate) fn install(folder: &Path) {
    let (certificate, key) = &*PEM;
    fs::write(folder.join("localhost.pem"), certificate).expect("a certificate");
    let path = folder.join("localhost.key");
    fs::write(&path, key).expect("a key");
    fs::set_permissions(path, Permissions::from_mode(0o600)).expect("permissions");
}

/// The settings of a client that trusts the certificate and offers one protocol.
pub(crate) fn trusting(protocol: Protocol) -> Arc<ClientConfig> {
    static SETTINGS: LazyLock<[Arc<ClientConfig>; 2]> =
        LazyLock::new(|| [offering(b"http/1.1"), offering(b"h2")]);
    Arc::clone(&SETTINGS[usize::from(protocol.is_http2())])
}

fn offering(protocol: &[u8]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(PEM.0.as_bytes()).expect("PEM")).expect("a root");
    let mut settings = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    settings.alpn_protocols = vec![protocol.to_vec()];
    Arc::new(settings)
}

/// The name that clients ask for.
pub(crate) fn name() -> ServerName<'static> {
    ServerName::try_from(HOST).expect("a name")
}

const HOST: &str = "localhost";
