//! From [`RawConfig`] to [`Config`]: every setting read and checked, then what several of them say together.

use std::collections::HashMap;
use std::path::Path;

use baton_engine::listen::ListenAddress;

use super::Config;
use super::kind::Reading;
use super::limits::Limits;
use super::media_types::{self, MediaTypes};
use super::raw::{RawConfig, Step};
use super::report::{Complaint, ConfigError};
use super::setting::{Section, Table};
use super::site::Site;

impl Config {
    /// Checks what was written and fills in the defaults.
    ///
    /// # Errors
    /// Everything that is wrong with single settings; if nothing is, everything that does not fit together.
    pub(crate) fn check(raw: &RawConfig) -> Result<Self, ConfigError> {
        let mut reading = Reading { base: &raw.base, setting: String::new(), complaints: Vec::new() };
        let config = Self::read(raw, &mut reading);
        let mut complaints = reading.complaints;
        if complaints.is_empty() {
            complaints = conflicts(&config, raw);
        }
        if complaints.is_empty() { Ok(config) } else { Err(ConfigError::new(raw.source.clone(), complaints)) }
    }

    /// Reads a configuration that [`Config::to_toml`] wrote.
    ///
    /// # Errors
    /// As [`Config::check`]: the system may have changed since it was written.
    pub(crate) fn from_toml(text: &str) -> Result<Self, ConfigError> {
        let raw = RawConfig::parse("effective configuration".into(), text.into(), Path::new("/"))?;
        Self::check(&raw)
    }

    fn read(raw: &RawConfig, reading: &mut Reading<'_>) -> Self {
        let mut root = Table::new("", &raw.tree);
        let config = Self {
            server: section(&mut root, reading),
            limits: section(&mut root, reading),
            timeouts: section(&mut root, reading),
            send: section(&mut root, reading),
            cache: section(&mut root, reading),
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

/// What settings that are right by themselves get wrong together.
fn conflicts(config: &Config, raw: &RawConfig) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    doubled_hosts(config, raw, &mut complaints);
    covered_addresses(config, raw, &mut complaints);
    doubled_routes(config, raw, &mut complaints);
    let Limits { target_bytes_max, head_bytes_max, .. } = config.limits;
    if target_bytes_max > head_bytes_max {
        let key = |key| raw.span(&[Step::Key("limits"), Step::Key(key)]);
        let complaint = Complaint::new("`limits.target_bytes_max` is larger than `limits.head_bytes_max`")
            .at(key("head_bytes_max"), format!("heads have up to {head_bytes_max} bytes"))
            .at(key("target_bytes_max"), format!("targets, a part of them, {target_bytes_max}"));
        complaints.push(complaint);
    }
    complaints
}

/// Two sites that answer to the same host at the same address: one of them would never be asked.
fn doubled_hosts(config: &Config, raw: &RawConfig, complaints: &mut Vec<Complaint>) {
    let mut first: HashMap<(&ListenAddress, Option<&str>), usize> = HashMap::new();
    for (index, site) in config.sites.iter().enumerate() {
        let hosts: Vec<_> = match &site.settings.hosts[..] {
            [] => vec![None],
            hosts => hosts.iter().map(|host| Some(host.as_str())).collect(),
        };
        let places =
            site.settings.listen.iter().flat_map(|address| hosts.iter().map(move |host| (address, *host)));
        // One complaint per pair of sites is enough to find the mistake.
        if let Some((other, (address, host))) = places
            .clone()
            .find_map(|place| first.get(&place).filter(|other| **other != index).map(|other| (*other, place)))
        {
            let what = host.map_or("the default".into(), |host| format!("`{host}`"));
            let key = if host.is_some() { "hosts" } else { "listen" };
            let span = |site| raw.span(&[Step::Key("site"), Step::Index(site), Step::Key(key)]);
            let complaint = Complaint::new(format!("two sites are {what} of {address}"));
            let complaint =
                complaint.at(span(index), "would never be asked").at(span(other), "is asked first");
            complaints
                .push(complaint.help("give them different `hosts`, or different addresses in `listen`"));
        }
        for place in places {
            first.entry(place).or_insert(index);
        }
    }
}

/// A port that one site takes on all interfaces and another on one: the kernel refuses the second.
fn covered_addresses(config: &Config, raw: &RawConfig, complaints: &mut Vec<Complaint>) {
    let listen = |site| raw.span(&[Step::Key("site"), Step::Index(site), Step::Key("listen")]);
    let all: Vec<_> = config
        .sites
        .iter()
        .enumerate()
        .flat_map(|(index, site)| site.settings.listen.iter().map(move |address| (index, address)))
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
                Complaint::new(format!("{covering} includes {address}: both cannot be listened on"));
            let complaint =
                complaint.at(listen(*one), "this address").at(listen(*other), "is part of this one");
            complaints.push(
                complaint.help("let both sites listen on the same address and tell them apart by `hosts`"),
            );
        }
    }
}

/// Two routes of a site with one path.
fn doubled_routes(config: &Config, raw: &RawConfig, complaints: &mut Vec<Complaint>) {
    for (site_index, site) in config.sites.iter().enumerate() {
        let mut first: HashMap<&str, usize> = HashMap::new();
        for (index, route) in site.routes.iter().enumerate() {
            let other = *first.entry(route.settings.path.trim_end_matches('/')).or_insert(index);
            if other != index {
                let site = [Step::Key("site"), Step::Index(site_index), Step::Key("route")];
                let span =
                    |route| raw.span(&[site[0], site[1], site[2], Step::Index(route), Step::Key("path")]);
                let complaint = Complaint::new(format!("two routes have the path {}", route.settings.path));
                complaints.push(
                    complaint.at(span(index), "would never be asked").at(span(other), "is asked first"),
                );
            }
        }
    }
}
