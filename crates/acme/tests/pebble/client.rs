//! An HTTPS client that trusts the test's own root.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// A client that trusts the certificate in that file.
pub(crate) fn agent(root: &Path) -> Agent {
    let root = Certificate::from_pem(&fs::read(root).expect("the root")).expect("a certificate");
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&[root]))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .build();
    Agent::config_builder().tls_config(tls).proxy(None).build().new_agent()
}
