//! An authority of one cluster: each member has a certificate and a key of its own, so that one member can be shut out alone.

use std::time::SystemTime;

use baton_report::OperatorError;
use zeroize::Zeroizing;

use crate::{LocalAuthority, PemFile};

/// The authority with its key, which no member needs.
pub struct MemberAuthority(LocalAuthority);

impl MemberAuthority {
    /// Key and certificate of a new one, as one PEM file.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn make(now: SystemTime) -> Result<Zeroizing<String>, OperatorError> {
        LocalAuthority::make(now)
    }

    /// The one in a file that [`make`](Self::make) has written.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn load(file: &PemFile) -> Result<Self, OperatorError> {
        LocalAuthority::load(file).map(Self)
    }

    /// What a member needs, as one PEM file: its certificate and key, and the authority's certificate.
    ///
    /// # Errors
    /// The name has other characters than letters, digits and hyphens, or is longer than 63.
    pub fn sign(&self, name: &str, now: SystemTime) -> Result<Zeroizing<String>, OperatorError> {
        let is_label = !name.is_empty() && name.len() <= 63 && !name.starts_with('-') && !name.ends_with('-');
        if !is_label || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(OperatorError::new(format!("`{name}` is no name of a member"))
                .remedy("use up to 63 letters, digits and hyphens: `node-a`"));
        }
        let own = self.0.sign_member(&format!("{}{DOMAIN}", name.to_ascii_lowercase()), now)?;
        Ok(Zeroizing::new(format!("{}{}", *own, self.0.pem())))
    }
}

/// The name of a member by one of the names in its certificate.
pub(crate) fn member_of(name: &str) -> Option<&str> {
    name.strip_suffix(DOMAIN)
}

/// Behind the names of members: of the domain for private use, for which the authority may sign.
const DOMAIN: &str = ".members.baton.internal";
