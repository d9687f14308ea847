//! Certificates that a server makes for itself: for development, and until an authority has issued one.

use std::time::{Duration, SystemTime};

use baton_report::OperatorError;
use rcgen::{
    CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use zeroize::Zeroizing;

/// Life of a self-signed certificate: what browsers accept at most (398 days), in round numbers.
pub const SELF_SIGNED_LIFE: Duration = Duration::from_secs(365 * 86_400);

/// A certificate that signs itself and its ECDSA key, as one PEM file. It begins a day before `now`, for clients whose
/// clocks are late.
///
/// # Errors
/// A name is neither a host name nor an IP address.
pub fn self_signed(names: &[String], now: SystemTime) -> Result<Zeroizing<String>, OperatorError> {
    let make = || {
        let mut params = CertificateParams::new(names.to_vec())?;
        params.not_before = (now - Duration::from_secs(86_400)).into();
        params.not_after = (now + SELF_SIGNED_LIFE).into();
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.distinguished_name.push(DnType::CommonName, "Baton, self-signed");
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let certificate = params.self_signed(&key)?;
        let key = Zeroizing::new(key.serialize_pem());
        Ok::<_, rcgen::Error>(Zeroizing::new(format!("{}{}", certificate.pem(), *key)))
    };
    make().map_err(|error| {
        OperatorError::new(format!("cannot make a certificate for {}: {error}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Identity, PemFile};

    #[test]
    fn it_is_valid_for_its_names_and_for_a_year() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let names = ["localhost", "127.0.0.1", "::1", "box.example.org"].map(str::to_owned);
        let file = PemFile::new("s.pem", self_signed(&names, now).unwrap().as_bytes().to_vec());
        let identity = Identity::load(&file, &file).unwrap();
        let certificate = identity.certificate();
        assert_eq!((certificate.advice(&names, now), certificate.days_left(now)), (Vec::new(), 365));
        assert!(self_signed(&["schöner Name".into()], now).is_err());
    }
}
