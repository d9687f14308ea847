//! Settings about TLS that are valid alone and do not fit together.

use std::collections::HashMap;

use baton_engine::listen::ListenAddress;
use baton_tls::{LOCAL_DOMAINS, is_local_name};

use super::check::{Conflicts, of_site};
use super::error::Complaint;
use super::raw::Step;
use super::tls::RedirectHttps;

impl Conflicts<'_> {
    /// Finds them.
    pub(super) fn tls(&mut self) {
        self.differing_addresses();
        self.no_challenge();
        for index in 0..self.config.sites.len() {
            let keys = ["listen", "tls", "client_certificates", "redirect_https", "hsts"];
            if keys.iter().all(|key| self.is_sound(&of_site(index, key))) {
                self.certificates(index);
                self.names_for_authority(index);
                self.names_for_local_authority(index);
                self.redirection(index);
                self.clear_text(index);
            }
        }
    }

    /// An address with TLS in one site and without in another.
    fn differing_addresses(&mut self) {
        let mut first: HashMap<&ListenAddress, (usize, bool)> = HashMap::new();
        for (index, site) in self.config.sites.iter().enumerate() {
            for listen in &site.settings.listen {
                let (other, tls) = *first.entry(&listen.address).or_insert((index, listen.tls));
                let sound = [index, other].iter().all(|site| self.is_sound(&of_site(*site, "listen")));
                if tls != listen.tls && sound {
                    let word = |tls| if tls { "with TLS" } else { "without TLS" };
                    let complaint =
                        Complaint::new(format!("{} is used with TLS and without", listen.address))
                            .at(self.raw.span(&of_site(index, "listen")), word(listen.tls))
                            .at(self.raw.span(&of_site(other, "listen")), word(tls));
                    self.found.push(complaint.help("write ` tls` behind the address everywhere, or nowhere"));
                    break;
                }
            }
        }
    }

    /// No way to prove anything to the authority.
    fn no_challenge(&mut self) {
        let path = [Step::Key("acme"), Step::Key("challenges")];
        if self.config.acme.challenges.is_empty() && self.is_sound(&path) {
            let complaint = Complaint::new("`acme.challenges` is empty");
            let complaint = complaint.at(self.raw.span(&path), "the authority could check no name");
            self.found.push(complaint.help("leave it out, or name one"));
        }
    }

    /// A certificate without an address for it, or the other way round.
    fn certificates(&mut self, index: usize) {
        let site = &self.config.sites[index];
        let settings = &site.settings;
        let listen = self.raw.span(&of_site(index, "listen"));
        let with_tls = settings.listen.iter().find(|listen| listen.tls);
        match (with_tls, site.has_certificate()) {
            (Some(address), false) => {
                let complaint = Complaint::new("a site with TLS and without a certificate");
                let complaint = complaint.at(listen, format!("listens on {address}"));
                self.found.push(
                    complaint
                        .help("add `tls = { certificate = \"CHAIN.pem\", key = \"KEY.pem\" }` to the site, `tls = \"acme\"`, or `tls = \"local\"` for development"),
                );
            }
            (None, true) => {
                let complaint = Complaint::new("a certificate that no client gets")
                    .at(self.raw.span(&of_site(index, "tls")), "is for TLS")
                    .at(listen, "no address ends in ` tls`");
                self.found.push(
                    complaint.help("write ` tls` behind an address: `listen = [\":80\", \":443 tls\"]`"),
                );
            }
            _ => {}
        }
    }

    /// Hosts for which no authority could issue a certificate.
    fn names_for_authority(&mut self, index: usize) {
        let site = &self.config.sites[index];
        if !site.has_acme() || !self.is_sound(&of_site(index, "hosts")) {
            return;
        }
        if !baton_acme::OBTAINS {
            let complaint = Complaint::new("this build has no ACME")
                .at(self.raw.span(&of_site(index, "tls")), "is to come from an authority");
            self.found.push(complaint.help(
                "install a package of Baton, build with `--features acme`, or name files: `tls = { certificate = \"CHAIN.pem\", key = \"KEY.pem\" }`",
            ));
            return;
        }
        let Err(why) = site.acme_names() else { return };
        let mut complaint = Complaint::new("a site whose certificate cannot be obtained")
            .at(self.raw.span(&of_site(index, "tls")), "is to come from an authority");
        if !site.settings.hosts.is_empty() {
            complaint = complaint.at(self.raw.span(&of_site(index, "hosts")), why);
        }
        self.found
            .push(complaint.help("name the site's hosts: `hosts = [\"example.org\", \"www.example.org\"]`"));
    }

    /// Hosts for which clients would not believe the authority of this user.
    fn names_for_local_authority(&mut self, index: usize) {
        let site = &self.config.sites[index];
        if !site.has_local_certificate() || !self.is_sound(&of_site(index, "hosts")) {
            return;
        }
        let Some(name) = site.local_names().into_iter().find(|name| !is_local_name(name)) else { return };
        let complaint = Complaint::new(format!("a local certificate for {name}, which is no local name"))
            .at(self.raw.span(&of_site(index, "hosts")), "is not in this network alone")
            .at(self.raw.span(&of_site(index, "tls")), "is to come from your own authority");
        let domains = LOCAL_DOMAINS.map(|domain| format!(".{domain}")).join(", ");
        let help = format!(
            "name it `NAME.test` (local are {domains} and private addresses), or use `tls = \"acme\"`"
        );
        self.found.push(complaint.help(help));
    }

    /// A redirection that has no beginning or no end.
    fn redirection(&mut self, index: usize) {
        let settings = &self.config.sites[index].settings;
        if settings.redirect_https == RedirectHttps::Off {
            return;
        }
        let missing =
            match (settings.listen.iter().any(|one| one.tls), settings.listen.iter().all(|one| one.tls)) {
                (false, _) => "no address has TLS",
                (_, true) => "no address is without TLS",
                _ => return,
            };
        let complaint = Complaint::new("`site.redirect_https` has no effect")
            .at(self.raw.span(&of_site(index, "redirect_https")), missing)
            .at(self.raw.span(&of_site(index, "listen")), "the addresses");
        self.found.push(complaint.help("such as `listen = [\":80\", \":443 tls\"]`"));
    }

    /// What holds for TLS only, in a site that can be had without.
    fn clear_text(&mut self, index: usize) {
        let site = &self.config.sites[index];
        let keys = [
            ("hsts", site.settings.hsts.is_some(), "browsers ignore it there (RFC 6797, 8.1)"),
            ("client_certificates", site.settings.client_certificates.is_some(), "clients show none there"),
        ];
        for (key, is_set, why) in keys {
            if is_set && site.serves_in_clear() {
                let complaint = Complaint::new(format!("`site.{key}` in a site that answers without TLS"))
                    .at(self.raw.span(&of_site(index, key)), why)
                    .at(self.raw.span(&of_site(index, "listen")), "has an address without TLS");
                self.found.push(
                    complaint.help("add `redirect_https = true`, or write ` tls` behind every address"),
                );
            }
        }
    }
}
