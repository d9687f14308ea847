//! Variants of a configuration: what is tried, as TOML of a copy and as lines to change.

use std::fmt::Write as _;

use baton_config::{Config, Sendfile, Site};
use baton_engine::arch::{self, ArchitectureName};
use baton_tune::{Candidate, Dial, ServerKind, Space};
use toml::{Table, Value};

use super::super::output::Failure;

/// A configuration's site, and the variants of it.
pub(super) struct Variants<'a> {
    site: &'a Site,
    /// The copy with the present settings.
    base: Table,
    kinds: Vec<VariantKind>,
    present: Candidate,
}

/// An architecture, whether it blocks, and the setting that says how many tasks it has.
#[derive(Clone, Copy)]
struct VariantKind {
    architecture: ArchitectureName,
    sendfile: Sendfile,
    /// Section and key; `None`: it has no such setting.
    tasks: Option<(&'static str, &'static str)>,
}

/// The architectures that are tried, and what multiplies them. One connection a thread or process (`mt`, `mp`) and
/// user-level threads are for studies; `auto` includes `amped` and `n-copy`.
const TRIED: [(ArchitectureName, Option<(&str, &str)>); 4] = [
    (ArchitectureName::Auto, Some(("server", "processes"))),
    (ArchitectureName::Symped, Some(("server", "processes"))),
    (ArchitectureName::SharedSymped, Some(("server", "threads"))),
    (ArchitectureName::Pipeline, Some(("send", "writers"))),
];

/// The architecture's own number of tasks, and the server's own size of caches.
const AUTO: u32 = 0;

impl<'a> Variants<'a> {
    /// The variants of a site of the configuration: of the one with that name or host, or of the first.
    pub(super) fn new(config: &'a Config, site: Option<&str>, applications: bool) -> Result<Self, Failure> {
        let is_it = |one: &Site| {
            let (name, hosts) = (&one.settings.name, &one.settings.hosts);
            site.is_none_or(|wanted| {
                name.as_deref() == Some(wanted) || hosts.iter().any(|host| host == wanted)
            })
        };
        let Some(number) = config.sites.iter().position(is_it) else {
            let wanted = site.unwrap_or_default();
            return Err(Failure(format!(
                "no site has the name or host {wanted}: `baton config --effective` lists them"
            )));
        };
        let base = copy_of(config, number, applications)?;
        let present_kind = VariantKind {
            architecture: config.server.architecture,
            sendfile: config.send.sendfile,
            tasks: TRIED
                .iter()
                .find(|(name, _)| *name == config.server.architecture)
                .and_then(|(_, key)| *key),
        };
        let mut kinds = vec![present_kind];
        for (architecture, tasks) in TRIED {
            for sendfile in [Sendfile::NonBlocking, Sendfile::Blocking] {
                let may_block = arch::held_up_by_a_slow_client(architecture).is_none();
                let is_present =
                    (architecture, sendfile) == (present_kind.architecture, present_kind.sendfile);
                if !is_present && (sendfile == Sendfile::NonBlocking || may_block) {
                    kinds.push(VariantKind { architecture, sendfile, tasks });
                }
            }
        }
        let tasks = present_kind.tasks.and_then(|(section, key)| number_at(&base, section, key));
        let present = Candidate {
            kind: 0,
            tasks: tasks.unwrap_or(AUTO),
            connections: u32::try_from(config.limits.connections_max).unwrap_or(u32::MAX),
            cache_mib: AUTO,
        };
        Ok(Self { site: &config.sites[number], base, kinds, present })
    }

    /// The site.
    pub(super) const fn site(&self) -> &Site {
        self.site
    }

    /// The present settings.
    pub(super) const fn present(&self) -> Candidate {
        self.present
    }

    /// Everything that may be tried.
    pub(super) fn space(&self) -> Space {
        let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
        let present = self.present.connections;
        let connections = Dial::new(
            &[(present / 8).max(CONNECTIONS_MIN), present],
            &[
                (present / 32).max(CONNECTIONS_MIN),
                (present / 3).max(CONNECTIONS_MIN),
                present.saturating_mul(3),
            ],
        );
        let tasks = |kind: &VariantKind| match (kind.tasks, kind.architecture) {
            (None, _) => Dial::fixed(AUTO),
            (_, ArchitectureName::Auto) => Dial::new(&[AUTO], &[1, cpus, 2 * cpus]),
            (_, ArchitectureName::Pipeline) => Dial::new(&[4, 16], &[8, 32, 64]),
            _ => Dial::new(&[cpus, 4 * cpus], &[1, 2 * cpus, 8 * cpus, 16 * cpus]),
        };
        let kind = |(number, kind): (usize, &VariantKind)| ServerKind {
            name: kind.name(),
            tasks: match number {
                0 if kind.tasks.is_some() => Dial::new(&[self.present.tasks], &[1, cpus, 2 * cpus]),
                _ => tasks(kind),
            },
            connections: connections.clone(),
            cache_mib: Dial::new(&[AUTO], &[16, 64, 256]),
        };
        Space { kinds: self.kinds.iter().enumerate().map(kind).collect() }
    }

    /// The configuration of a copy.
    pub(super) fn toml(&self, candidate: Candidate, control_socket: &str) -> String {
        let mut table = self.base.clone();
        for (section, key, value) in self.changes(candidate) {
            set(&mut table, section, key, value);
        }
        set(&mut table, "server", "control_socket", control_socket.into());
        table.to_string()
    }

    /// The lines to change for these settings.
    pub(super) fn lines(&self, candidate: Candidate) -> String {
        let mut text = String::new();
        let mut current = "";
        let is_other = |(section, key, value): &(&str, &str, Value)| {
            self.base.get(*section).and_then(|table| table.get(*key)) != Some(value)
        };
        for (section, key, value) in self.changes(candidate).into_iter().filter(is_other) {
            if section != current {
                let _ = write!(text, "\n[{section}]\n");
                current = section;
            }
            let _ = writeln!(text, "{key} = {value}");
        }
        text
    }

    /// The settings in a few words.
    pub(super) fn describe(&self, candidate: Candidate) -> String {
        let kind = self.kinds[candidate.kind];
        let mut words = kind.name();
        if let Some((_, key)) = kind.tasks.filter(|_| candidate.tasks != AUTO) {
            let _ = write!(words, ", {} {key}", candidate.tasks);
        }
        let _ = write!(words, ", {} connections", candidate.connections);
        if candidate.cache_mib != AUTO {
            let _ = write!(words, ", {} MiB of cache", candidate.cache_mib);
        }
        words
    }

    /// What these settings set: section, key, value; those of a section together.
    fn changes(&self, candidate: Candidate) -> Vec<(&'static str, &'static str, Value)> {
        let kind = self.kinds[candidate.kind];
        if candidate == self.present {
            return Vec::new();
        }
        let number = |number: u32| Value::Integer(number.into());
        let mut changes = vec![("server", "architecture", kind.architecture.name().into())];
        for key in ["processes", "threads"] {
            let value = match kind.tasks == Some(("server", key)) && candidate.tasks != AUTO {
                true => number(candidate.tasks),
                false => "auto".into(),
            };
            changes.push(("server", key, value));
        }
        changes.push(("limits", "connections_max", number(candidate.connections)));
        let word = if kind.sendfile == Sendfile::Blocking { "blocking" } else { "non-blocking" };
        changes.push(("send", "sendfile", word.into()));
        if kind.tasks == Some(("send", "writers")) {
            changes.push(("send", "writers", number(candidate.tasks.max(1))));
        }
        if candidate.cache_mib != AUTO {
            changes.push(("cache", "memory_bytes_max", format!("{} MiB", candidate.cache_mib).into()));
        }
        changes
    }
}

/// Fewer turn away the browsers of a single household.
const CONNECTIONS_MIN: u32 = 64;

impl VariantKind {
    fn name(self) -> String {
        match self.sendfile {
            Sendfile::NonBlocking => self.architecture.to_string(),
            Sendfile::Blocking => format!("{}, blocking", self.architecture),
            Sendfile::BySize => format!("{}, blocking by size", self.architecture),
        }
    }
}

/// A copy of one site: on loopback, in clear, without logs, and without anything that others share with it. Its guards stay: any
/// user of the machine can connect to it.
fn copy_of(config: &Config, number: usize, applications: bool) -> Result<Table, Failure> {
    let mut table: Table = toml::from_str(&config.to_toml())?;
    for shared in ["acme", "cluster", "shared_cache", "tls", "admin", "log"] {
        table.remove(shared);
    }
    set(&mut table, "server", "pid_file", "off".into());
    // All clients of a replay have one address.
    set(&mut table, "limits", "connections_per_address_max", "off".into());
    let Some(Value::Array(sites)) = table.get_mut("site") else {
        return Err(Failure("the configuration has no site".into()));
    };
    let Value::Table(mut site) = sites.swap_remove(number) else {
        return Err(Failure("a site of the configuration is no table".into()));
    };
    if site.get("client_certificates").is_some_and(|value| value.as_str() != Some("off")) {
        return Err(Failure(
            "the site asks its clients for certificates: a copy in clear would serve clients without one"
                .into(),
        ));
    }
    for key in UNSHARED {
        site.remove(key);
    }
    site.insert("listen".into(), Value::Array(vec!["127.0.0.1:0".into()]));
    site.insert("access_log".into(), false.into());
    if let Some(Value::Array(routes)) = site.get_mut("route") {
        for route in routes.iter_mut().filter_map(Value::as_table_mut) {
            for key in UNSHARED.into_iter().chain(["cache"]) {
                route.remove(key);
            }
            if leads_elsewhere(route, applications) {
                // What is replayed has none of its targets.
                route.retain(|key, _| PLACE.contains(&key));
                route.insert(
                    "respond".into(),
                    Value::Table(Table::from_iter([("status".into(), 404.into())])),
                );
            }
        }
    }
    table.insert("site".into(), Value::Array(vec![Value::Table(site)]));
    Ok(table)
}

/// Keys of sites and routes that bind addresses, slow the clients of a replay down, write, or speak to others.
const UNSHARED: [&str; 10] = [
    "hosts",
    "tls",
    "redirect_https",
    "hsts",
    "documents",
    "real_ip",
    "proxy_protocol",
    "access_log",
    "access_log_when",
    "rate_limit",
];
/// Keys that say which paths a route has.
const PLACE: [&str; 7] = ["path", "exact", "glob", "regex", "before_patterns", "internal", "when"];

fn leads_elsewhere(route: &Table, applications: bool) -> bool {
    let has = |key: &str| route.get(key).is_some_and(|value| value.as_str() != Some("off"));
    has("cluster") || !applications && ["proxy", "fastcgi", "scgi", "cgi"].into_iter().any(has)
}

fn number_at(table: &Table, section: &str, key: &str) -> Option<u32> {
    table.get(section)?.get(key)?.as_integer()?.try_into().ok()
}

fn set(table: &mut Table, section: &str, key: &str, value: Value) {
    let section = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
    if let Some(section) = section.as_table_mut() {
        section.insert(key.into(), value);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use baton_config::RawConfig;

    use super::*;

    const CONFIGURATION: &str = r#"
        [server]
        architecture = "symped"
        processes = 3
        [limits]
        connections_max = 8000
        [admin]
        listen = "127.0.0.1:9100"
        [log]
        access = "access.log"
        [[site]]
        name = "first"
        listen = ":80"
        root = "/"
        [[site]]
        listen = "127.0.0.1:8080"
        hosts = ["shop.example"]
        root = "/"
        access_log = true
        rate_limit = { requests = 1, per = "1s" }
        deny = ["192.0.2.1"]
        [[site.route]]
        path = "/app"
        proxy = { to = ["http://127.0.0.1:9"] }
        cache = true
        [[site.route]]
        glob = "/**.php"
        fastcgi = { to = "unix:/run/php.sock" }
    "#;

    fn config(text: &str) -> Config {
        let raw = RawConfig::parse("test".into(), text.into(), Path::new("/")).expect("TOML");
        Config::check(&raw).unwrap_or_else(|error| panic!("{}", error.render(false)))
    }

    #[test]
    fn a_copy_shares_nothing_with_its_server_but_its_guards() {
        let config = config(CONFIGURATION);
        let variants = Variants::new(&config, Some("shop.example"), false).expect("the site");
        let text = variants.toml(variants.present(), "/tmp/control");
        let copy = self::config(&text);
        assert_eq!(copy.sites.len(), 1);
        assert_eq!(copy.addresses().iter().map(ToString::to_string).collect::<Vec<_>>(), ["127.0.0.1:0"]);
        for absent in ["9100", "access.log", "rate_limit", "127.0.0.1:9", "php.sock", "shop.example"] {
            assert!(!text.contains(absent), "{absent} in {text}");
        }
        for present in ["/tmp/control", "status = 404", "192.0.2.1"] {
            assert!(text.contains(present), "{present} in {text}");
        }
        assert!(copy.cached_routes().next().is_none());
        let asked = Variants::new(&config, Some("shop.example"), true).expect("the site");
        let text = asked.toml(asked.present(), "/tmp/control");
        assert!(
            text.contains("127.0.0.1:9") && text.contains("php.sock"),
            "applications, if told so: {text}"
        );
    }

    #[test]
    fn every_candidate_is_a_configuration_and_its_lines_are_what_differs() {
        let config = config(CONFIGURATION);
        let variants = Variants::new(&config, None, false).expect("a site");
        let space = variants.space();
        for (kind, of) in space.kinds.iter().enumerate() {
            let candidate = Candidate { kind, tasks: 4, connections: 1000, cache_mib: 64 };
            let copy = self::config(&variants.toml(candidate, "/tmp/control"));
            assert_eq!((copy.limits.connections_max, copy.cache.memory_bytes_max), (1000, Some(64 << 20)));
            assert!(of.name.starts_with(copy.server.architecture.name()), "{}", of.name);
        }
        assert_eq!(
            space.kinds.iter().filter(|kind| kind.name == "symped").count(),
            1,
            "the present one is not doubled"
        );
        let blocking =
            space.kinds.iter().position(|kind| kind.name == "pipeline, blocking").expect("it may block");
        let chosen = Candidate { kind: blocking, tasks: 32, connections: 8000, cache_mib: AUTO };
        assert_eq!(
            variants.lines(chosen),
            "\n[server]\narchitecture = \"pipeline\"\nprocesses = \"auto\"\n\n[send]\nsendfile = \"blocking\"\nwriters = 32\n"
        );
        assert_eq!(variants.lines(variants.present()), "");
    }
}
