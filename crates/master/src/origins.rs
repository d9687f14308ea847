//! The origins of the configuration, as the master knows them: their rows in the table that all workers share, and which of
//! them are drained.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;

use baton_config::{Config, ConfiguredOrigin};
use baton_report::{counted, log};
use baton_upstream::{FAILURE_LABELS, OriginCounts, OriginName, OriginRecord, OriginState, OriginTable};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};

/// The origins of the configuration.
#[derive(Debug)]
pub(crate) struct Origins {
    table: OriginTable,
    rows: BTreeMap<OriginName, usize>,
    /// The row that was given up first is used first: requests of an old configuration may still count in it.
    free: VecDeque<usize>,
    /// URLs without their paths.
    drained: BTreeSet<String>,
    /// Names of nodes of the cluster that get no requests by the word of others.
    ordered: BTreeSet<String>,
}

/// What is known of an origin.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) name: OriginName,
    /// Its name as a node of the cluster, if it is one.
    pub(crate) node: Option<String>,
    pub(crate) state: OriginState,
    pub(crate) counts: OriginCounts,
}

impl Origins {
    /// No origins yet. Those at the URLs `drained` will get no requests.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub(crate) fn allocate(workers: usize, drained: Vec<String>) -> io::Result<Self> {
        Ok(Self {
            table: OriginTable::allocate(workers)?,
            rows: BTreeMap::new(),
            free: (0..OriginTable::ROWS_MAX).collect(),
            drained: drained.into_iter().collect(),
            ordered: BTreeSet::new(),
        })
    }

    /// The table, for workers.
    pub(crate) fn table(&self) -> OriginTable {
        self.table
    }

    /// URLs of servers that are drained.
    pub(crate) fn drained(&self) -> Vec<String> {
        self.drained.iter().cloned().collect()
    }

    /// Gives each origin of a configuration a row, if it has none: before workers look for it.
    pub(crate) fn begin(&mut self, config: &Config) {
        let mut left_out = 0;
        for origin in config.origins() {
            if self.rows.contains_key(&origin.name) {
                continue;
            }
            let Some(row) = self.free.pop_front() else {
                left_out += 1;
                continue;
            };
            self.table.begin(row, &origin.name);
            self.table.verdicts(row).set_drained(self.is_drained(&origin));
            self.rows.insert(origin.name, row);
        }
        if left_out > 0 {
            let most = OriginTable::ROWS_MAX;
            log::warning(format_args!(
                "without metrics, and not to be drained: {} beyond the first {most}",
                counted(left_out, "origin")
            ));
        }
    }

    /// Forgets origins that this configuration does not have.
    pub(crate) fn keep(&mut self, config: &Config) {
        let names: BTreeSet<_> = config.origins().map(|origin| origin.name).collect();
        let servers: BTreeSet<_> = config.origins().map(|origin| origin.url.server()).collect();
        self.drained.retain(|server| servers.contains(server));
        let (table, free) = (self.table, &mut self.free);
        self.rows.retain(|name, row| {
            let stays = names.contains(name);
            if !stays {
                table.end(*row);
                free.push_back(*row);
            }
            stays
        });
    }

    /// Lets a server get no more requests, or lets it get requests again, on all routes to it. Returns what to tell.
    ///
    /// # Errors
    /// The configuration has no such origin.
    pub(crate) fn set_drained(
        &mut self,
        config: &Config,
        url: &str,
        is_drained: bool,
    ) -> Result<Value, String> {
        let meant: Vec<_> = config.origins().filter(|origin| origin.url.is_server(url)).collect();
        let Some(server) = meant.first().map(|origin| origin.url.server()) else {
            let known: BTreeSet<_> = config.origins().map(|origin| origin.url.server()).collect();
            let known: Vec<_> = known.into_iter().collect();
            return Err(match known.is_empty() {
                true => format!("{url} is not an origin: the configuration has none"),
                false => format!("{url} is not an origin\n  origins: {}", known.join(", ")),
            });
        };
        match is_drained {
            true => _ = self.drained.insert(server.clone()),
            false => _ = self.drained.remove(&server),
        }
        for origin in &meant {
            if let Some(row) = self.rows.get(&origin.name) {
                self.table.verdicts(*row).set_drained(self.is_drained(origin));
            }
        }
        log::notice(format_args!(
            "origin {server}: {}",
            if is_drained { "drained" } else { "no longer drained" }
        ));
        let bare: Vec<_> = meant.iter().filter(|origin| self.is_bare(config, origin)).collect();
        let bare = bare.iter().map(|origin| json!({ "site": origin.name.site, "route": origin.name.route }));
        Ok(json!({ "origin": server, "drained": is_drained, "without_origin": bare.collect::<Vec<_>>() }))
    }

    /// Lets these nodes of the cluster get no requests, by the word of others than this server's operator, and no other nodes.
    pub(crate) fn set_ordered(&mut self, config: &Config, nodes: BTreeSet<String>) {
        if self.ordered == nodes {
            return;
        }
        self.ordered = nodes;
        for origin in config.origins().filter(|origin| origin.node.is_some()) {
            if let Some(row) = self.rows.get(&origin.name) {
                self.table.verdicts(*row).set_drained(self.is_drained(&origin));
            }
        }
    }

    fn is_drained(&self, origin: &ConfiguredOrigin<'_>) -> bool {
        let is_ordered = origin.node.as_deref().is_some_and(|node| self.ordered.contains(node));
        is_ordered || self.drained.contains(&origin.url.server())
    }

    /// Whether all origins of a route are drained.
    fn is_bare(&self, config: &Config, of: &ConfiguredOrigin<'_>) -> bool {
        let is_beside = |origin: &ConfiguredOrigin<'_>| {
            (&origin.name.site, &origin.name.route) == (&of.name.site, &of.name.route)
        };
        config.origins().filter(is_beside).all(|origin| self.is_drained(&origin))
    }

    /// The nodes of the cluster, with their records.
    pub(crate) fn nodes(&self, config: &Config) -> impl Iterator<Item = (String, OriginRecord)> {
        config.origins().filter_map(|origin| {
            let node = origin.node?.into_owned();
            Some((node, self.table.verdicts(*self.rows.get(&origin.name)?)))
        })
    }

    /// The record of a node.
    pub(crate) fn node(&self, config: &Config, node: &str) -> Option<OriginRecord> {
        self.nodes(config).find(|(name, _)| name == node).map(|(_, record)| record)
    }

    /// What is known of each origin, in the order of the configuration.
    pub(crate) fn figures(&self, config: &Config) -> Vec<Figures> {
        self.known(config).map(|(_, figures)| figures).collect()
    }

    /// What is known of each origin, in the order of the configuration, for the status.
    pub(crate) fn report(&self, config: &Config) -> Vec<Value> {
        let told = self.known(config).map(|(origin, Figures { name, node, state, counts })| {
            let failures = FAILURE_LABELS.into_iter().zip(counts.failures).filter(|(_, count)| *count > 0);
            let reasons: Map<_, _> =
                failures.map(|(label, count)| (label.to_owned(), count.into())).collect();
            json!({
                "site": name.site,
                "route": name.route,
                "origin": name.origin,
                "node": node,
                "weight": origin.weight,
                "backup": origin.backup,
                "state": state.word(),
                "why": state.why(),
                "requests": counts.requests,
                "in_flight": counts.in_flight,
                "failures": counts.failures.iter().sum::<u64>(),
                "failure_reasons": reasons,
                "ejections": counts.ejections,
                "response_ms_mean": counts.response_ms.checked_div(counts.responses),
            })
        });
        told.collect()
    }

    fn known<'c>(&self, config: &'c Config) -> impl Iterator<Item = (ConfiguredOrigin<'c>, Figures)> {
        // The clock of the workers' loops.
        let now = clock_gettime(ClockId::MonotonicCoarse);
        let now_ms = now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000;
        config.origins().filter_map(move |origin| {
            let row = *self.rows.get(&origin.name)?;
            let state = OriginState::of(&self.table.verdicts(row), origin.judged_by, now_ms);
            let counts = self.table.counts(row);
            let node = origin.node.as_deref().map(str::to_owned);
            let figures = Figures { name: origin.name.clone(), node, state, counts };
            Some((origin, figures))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(routes: &[(&str, &str)]) -> Config {
        let routes: String = routes
            .iter()
            .map(|(path, to)| format!("[[site.route]]\npath = '{path}'\nproxy = {{ to = {to} }}\n"))
            .collect();
        Config::from_toml(&format!("[[site]]\n{routes}")).unwrap_or_else(|error| panic!("{error}"))
    }

    fn states(origins: &Origins, config: &Config) -> Vec<&'static str> {
        origins.figures(config).iter().map(|figures| figures.state.word()).collect()
    }

    #[test]
    fn a_server_is_drained_on_all_routes_and_in_later_configurations() {
        let first = config(&[("/a", "['http://h:80/', 'http://b/']"), ("/b", "'http://h/x'")]);
        let mut origins = Origins::allocate(1, Vec::new()).unwrap();
        origins.begin(&first);
        let told = origins.set_drained(&first, "http://h", true).unwrap();
        assert_eq!(told["without_origin"], json!([{ "site": "127.0.0.1:8080", "route": "/b" }]), "{told}");
        assert_eq!(states(&origins, &first), ["drained", "up", "drained"]);

        let second = config(&[("/c", "['http://h', 'http://c']")]);
        origins.begin(&second);
        origins.keep(&second);
        assert_eq!(states(&origins, &second), ["drained", "up"]);
        origins.set_drained(&second, "http://h/any", false).unwrap();
        assert_eq!(states(&origins, &second), ["up", "up"]);
        let refusal = origins.set_drained(&second, "http://b", true).unwrap_err();
        assert!(refusal.contains("http://c, http://h"), "{refusal}");
    }

    #[test]
    fn rows_run_out_and_come_back() {
        let mut origins = Origins::allocate(1, Vec::new()).unwrap();
        let many = |names: std::ops::Range<usize>| -> Vec<_> {
            names.map(|name| (format!("/{name}"), format!("'http://h{name}'"))).collect()
        };
        let of = |routes: &[(String, String)]| {
            config(&routes.iter().map(|(path, to)| (&**path, &**to)).collect::<Vec<_>>())
        };
        let all = of(&many(0..OriginTable::ROWS_MAX + 2));
        origins.begin(&all);
        assert_eq!(origins.figures(&all).len(), OriginTable::ROWS_MAX);
        let few = of(&many(5..7));
        origins.keep(&few);
        origins.begin(&all);
        assert_eq!(origins.figures(&all).len(), OriginTable::ROWS_MAX);
    }
}
