//! From the sites whose certificates come from an authority to what the process that obtains them is told.

use std::collections::BTreeMap;
use std::fs;

use baton_acme::{AcmeSettings, ExternalAccount, Names};
use baton_report::OperatorError;

use super::config::Config;
use super::site::Site;
use super::tls::SiteCertificates;

impl Config {
    /// What is to be obtained; `None`: nothing.
    ///
    /// # Errors
    /// If the key of the external account cannot be read.
    pub fn acme_settings(&self) -> Result<Option<AcmeSettings>, OperatorError> {
        let certificates = self.acme_names();
        if certificates.is_empty() {
            return Ok(None);
        }
        let external_account = self.acme.external_account.as_ref().map(|external| {
            let file = external.key_file.display();
            let key = fs::read_to_string(&external.key_file).map_err(|error| {
                OperatorError::of(format_args!("read the authority's key from {file}"), &error)
            })?;
            Ok(ExternalAccount { key_id: external.key_id.clone(), hmac_key: key.trim().to_owned() })
        });
        Ok(Some(AcmeSettings {
            directory: self.acme.url().to_owned(),
            store: self.acme.store.clone(),
            email: self.acme.email.clone(),
            external_account: external_account.transpose()?,
            profile: self.acme.profile.clone(),
            challenges: self.acme.challenges.clone(),
            roots: self.acme.roots.clone(),
            certificates,
        }))
    }

    /// The names of the certificates to obtain. Sites with the same first host share a certificate for the hosts of all.
    fn acme_names(&self) -> Vec<Names> {
        let mut by_first: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for hosts in self.sites.iter().filter(|site| site.has_acme()).map(|site| &site.settings.hosts) {
            let Some(first) = hosts.first() else { continue };
            let names = by_first.entry(first).or_default();
            let new: Vec<_> = hosts.iter().filter(|host| !names.contains(host)).cloned().collect();
            names.extend(new);
        }
        by_first.into_values().filter_map(|names| Names::new(names).ok()).collect()
    }
}

impl Site {
    /// Whether its certificate comes from the authority.
    pub fn has_acme(&self) -> bool {
        self.settings.tls == SiteCertificates::Acme
    }

    /// The names of its certificate.
    ///
    /// # Errors
    /// Why there can be none.
    pub(super) fn acme_names(&self) -> Result<Names, String> {
        Names::new(self.settings.hosts.clone())
    }
}
