//! From [`RawConfig`] to [`Config`]: every setting read and checked, then what several of them say together.

use std::collections::HashMap;
use std::path::Path;

use baton_engine::arch::{self, ArchitectureName};
use baton_engine::listen::ListenAddress;
use baton_response::send_way::SendWay;

use super::config::Config;
use super::error::{Complaint, ConfigError};
use super::include::INCLUDE;
use super::kind::Reading;
use super::limits::Limits;
use super::media_types::{self, MediaTypes};
use super::raw::{RawConfig, Step};
use super::send::Sendfile;
use super::setting::{Section, Table};
use super::site::Site;

impl Config {
    /// Checks the settings and fills in the defaults.
    ///
    /// # Errors
    /// All mistakes: bad settings, and settings that contradict each other.
    pub fn check(raw: &RawConfig) -> Result<Self, ConfigError> {
        let mut reading = Reading::new(raw);
        let config = Self::read(raw, &mut reading);
        let conflicts = Conflicts { config: &config, raw, reading: &reading, found: Vec::new() }.find();
        let complaints = [reading.complaints, conflicts].concat();
        if complaints.is_empty() { Ok(config) } else { Err(ConfigError::new(raw.source.clone(), complaints)) }
    }

    /// Reads a configuration that [`Config::to_toml`] wrote.
    ///
    /// # Errors
    /// As [`Config::check`]: the system may have changed since it was written.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        let raw = RawConfig::parse("effective configuration".into(), text.into(), Path::new("/"))?;
        Self::check(&raw)
    }

    fn read(raw: &RawConfig, reading: &mut Reading<'_>) -> Self {
        let mut root = Table::new("", &raw.tree);
        // It has been read already, if there was one.
        root.node(INCLUDE);
        let config = Self {
            server: section(&mut root, reading),
            limits: section(&mut root, reading),
            timeouts: section(&mut root, reading),
            send: section(&mut root, reading),
            cache: section(&mut root, reading),
            shared_cache: section(&mut root, reading),
            tls: section(&mut root, reading),
            acme: section(&mut root, reading),
            cluster: section(&mut root, reading),
            log: section(&mut root, reading),
            admin: section(&mut root, reading),
            media_types: match root.table("media_types", reading) {
                Some(table) => media_types::read(&table, reading),
                None => MediaTypes::new(),
            },
            sites: root
                .tables("site", reading)
                .into_iter()
                .map(|(table, span)| Site::read(table, span, reading))
                .collect(),
        };
        if config.sites.is_empty() && !root.has("site") {
            let complaint =
                Complaint::new("there is no site").help("add a [[site]] with `root = \"FOLDER\"`");
            reading.complain(complaint);
        }
        root.finish(reading);
        config
    }
}

fn section<S: Section + Default>(root: &mut Table<'_>, reading: &mut Reading<'_>) -> S {
    let Some(mut table) = root.table(S::NAME, reading) else { return S::default() };
    let section = S::read(&mut table, S::default(), reading);
    table.finish(reading);
    section
}

/// Finds conflicts between settings that are valid alone. Refused settings are left out: their value was never
/// written.
pub(super) struct Conflicts<'a> {
    pub(super) config: &'a Config,
    pub(super) raw: &'a RawConfig,
    reading: &'a Reading<'a>,
    pub(super) found: Vec<Complaint>,
}

impl Conflicts<'_> {
    fn find(mut self) -> Vec<Complaint> {
        self.lengths();
        self.waiting_for_clients();
        self.sendfile_without_sendfile();
        // An array that has something else than tables in it cannot be pointed into.
        if self.raw.find(&[Step::Key("site"), Step::Index(self.config.sites.len())]).is_none() {
            self.doubled_hosts();
            self.covered_addresses();
            self.shadowed_routes();
            self.contrary_balancers();
            self.tls();
            self.cluster();
            self.logs();
        }
        self.found
    }

    /// Whether the value at `path` is what was written, or else the default.
    pub(super) fn is_sound(&self, path: &[Step<'_>]) -> bool {
        self.raw.find(path).is_none_or(|span| !self.reading.has_refused(&span))
    }

    fn lengths(&mut self) {
        let Limits { target_bytes_max, head_bytes_max, .. } = self.config.limits;
        let [head, target] =
            ["head_bytes_max", "target_bytes_max"].map(|key| [Step::Key("limits"), Step::Key(key)]);
        if target_bytes_max > head_bytes_max && self.is_sound(&head) && self.is_sound(&target) {
            let complaint =
                Complaint::new("`limits.target_bytes_max` is larger than `limits.head_bytes_max`")
                    .at(self.raw.span(&head), format!("heads have up to {head_bytes_max} bytes"))
                    .at(self.raw.span(&target), format!("targets, a part of them, {target_bytes_max}"));
            self.found.push(complaint);
        }
    }

    /// Calls that wait for a client, where others would wait with them.
    fn waiting_for_clients(&mut self) {
        let (mode, architecture) = (self.config.send.sendfile, self.config.server.architecture);
        if mode == Sendfile::NonBlocking {
            return;
        }
        let Some(held_up) = arch::held_up_by_a_slow_client(architecture) else { return };
        let fitting = ArchitectureName::ALL.into_iter();
        let fitting = fitting
            .filter(|name| arch::held_up_by_a_slow_client(*name).is_none() && arch::uses_sendfile(*name));
        let fitting: Vec<_> = fitting.map(|name| format!("`{name}`")).collect();
        self.with_architecture(
            "sendfile",
            &format!("`send.sendfile` must be non-blocking under `{architecture}`"),
            &format!("a client that reads nothing would block {held_up}"),
            &format!("leave `send.sendfile` as it is, or choose one of {}", fitting.join(", ")),
        );
    }

    /// `sendfile` wished for where there is none.
    fn sendfile_without_sendfile(&mut self) {
        let (send, architecture) = (&self.config.send, self.config.server.architecture);
        if arch::uses_sendfile(architecture) {
            return;
        }
        let wishes =
            [("sendfile", send.sendfile != Sendfile::NonBlocking), ("way", send.way == SendWay::File)];
        for (key, _) in wishes.into_iter().filter(|(_, wished)| *wished) {
            self.with_architecture(
                key,
                &format!("`send.{key}` does not apply to `{architecture}`"),
                "is about `sendfile`, which this architecture does without",
                "take it out, or choose `threads`",
            );
        }
    }

    /// Complains of a setting of `[send]` that does not fit the architecture.
    fn with_architecture(&mut self, key: &str, title: &str, why: &str, help: &str) {
        let setting = [Step::Key("send"), Step::Key(key)];
        let architecture = [Step::Key("server"), Step::Key("architecture")];
        if !self.is_sound(&setting) || !self.is_sound(&architecture) {
            return;
        }
        let mut complaint = Complaint::new(title.to_owned()).at(self.raw.span(&setting), why.to_owned());
        if let Some(span) = self.raw.find(&architecture) {
            complaint = complaint.at(span, "under this architecture");
        }
        self.found.push(complaint.help(help.to_owned()));
    }

    /// Two sites with the same host and address: requests would never reach one of them.
    fn doubled_hosts(&mut self) {
        let mut first: HashMap<(&ListenAddress, Option<&str>), usize> = HashMap::new();
        for (index, site) in self.config.sites.iter().enumerate() {
            if !["hosts", "listen"].iter().all(|key| self.is_sound(&of_site(index, key))) {
                continue;
            }
            let hosts: Vec<_> = match &site.settings.hosts[..] {
                [] => vec![None],
                hosts => hosts.iter().map(|host| Some(host.as_str())).collect(),
            };
            let places = site.addresses().flat_map(|address| hosts.iter().map(move |host| (address, *host)));
            // One complaint per pair of sites is enough to find the mistake.
            if let Some((other, (address, host))) = places.clone().find_map(|place| {
                first.get(&place).filter(|other| **other != index).map(|other| (*other, place))
            }) {
                let what = host.map_or("the default".into(), |host| format!("`{host}`"));
                let key = if host.is_some() { "hosts" } else { "listen" };
                let complaint = Complaint::new(format!("two sites are {what} of {address}"))
                    .at(self.raw.span(&of_site(index, key)), "would never be asked")
                    .at(self.raw.span(&of_site(other, key)), "is asked first");
                self.found
                    .push(complaint.help("give them different `hosts`, or different addresses in `listen`"));
            }
            for place in places {
                first.entry(place).or_insert(index);
            }
        }
    }

    /// A port on all interfaces in one site and on a single one in another: the kernel refuses the second bind.
    fn covered_addresses(&mut self) {
        let sites = self.config.sites.iter().enumerate();
        let all: Vec<_> = sites
            .filter(|(index, _)| self.is_sound(&of_site(*index, "listen")))
            .flat_map(|(index, site)| site.addresses().map(move |address| (index, address)))
            .filter_map(|(index, address)| match address {
                ListenAddress::Tcp(address) if address.port() != 0 => Some((index, *address)),
                _ => None,
            })
            .collect();
        for (one, address) in &all {
            let covering = all.iter().find(|(_, other)| {
                let same_port = other.is_ipv4() == address.is_ipv4() && other.port() == address.port();
                other.ip().is_unspecified() && !address.ip().is_unspecified() && same_port
            });
            if let Some((other, covering)) = covering {
                let complaint =
                    Complaint::new(format!("{covering} includes {address}: both cannot be listened on"))
                        .at(self.raw.span(&of_site(*one, "listen")), "this address")
                        .at(self.raw.span(&of_site(*other, "listen")), "is part of this one");
                self.found.push(
                    complaint
                        .help("let both sites listen on the same address and distinguish them by `hosts`"),
                );
            }
        }
    }
}

/// The way to a key of a site.
pub(super) fn of_site<'k>(site: usize, key: &'k str) -> [Step<'k>; 3] {
    [Step::Key("site"), Step::Index(site), Step::Key(key)]
}
