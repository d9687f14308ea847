//! The authorities that the system trusts.

use baton_report::OperatorError;
use rustls::pki_types::CertificateDer;

/// The certificates of the authorities that the system trusts.
///
/// # Errors
/// There are none.
pub fn system_authorities() -> Result<Vec<CertificateDer<'static>>, OperatorError> {
    let found = rustls_native_certs::load_native_certs();
    if !found.certs.is_empty() {
        return Ok(found.certs);
    }
    let reason = found.errors.first().map_or_else(String::new, |error| format!(": {error}"));
    Err(OperatorError::new(format!("cannot find the root certificates of this system{reason}"))
        .remedy("install the package ca-certificates"))
}
