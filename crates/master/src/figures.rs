//! Figures of sites, applications and origins, and of the server's processes, as the master tells them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use baton_config::{Config, Site, Target};
use baton_telemetry::figures::{BOUNDS_US, CODES, FigureTable, Figures, Subject};
use serde_json::{Map, Value, json};

/// What is counted of a site, an application or an origin.
#[derive(Clone, Debug)]
pub(crate) struct NamedFigures {
    /// What it is called; `other`: all for which the table had no room.
    pub(crate) name: String,
    pub(crate) figures: Figures,
}

/// What is counted of all of them.
#[derive(Clone, Debug)]
pub(crate) struct AllFigures {
    pub(crate) sites: Vec<NamedFigures>,
    pub(crate) upstreams: Vec<NamedFigures>,
}

impl AllFigures {
    /// The figures of what is configured, so that nothing else is a label. `pools`: what applications are called whose
    /// addresses the server has chosen.
    pub(crate) fn of(table: FigureTable, config: &Config, pools: &BTreeMap<String, String>) -> Self {
        let names: BTreeSet<String> = config.sites.iter().map(Site::name).collect();
        let mut sites: Vec<_> =
            names.into_iter().map(|name| (table.row(Subject::Site(&name)), name)).collect();
        sites.push((FigureTable::rest(), OTHER.to_owned()));
        let mut upstreams = BTreeMap::new();
        for origin in config.origins() {
            upstreams.insert(origin.name.origin.clone(), origin.name.origin);
        }
        for target in config.applications().filter_map(|one| one.to.as_ref()).map(Target::to_string) {
            upstreams.insert(target.clone(), target);
        }
        for (address, name) in pools {
            // Those that leave have no requests of this configuration.
            upstreams.entry(address.clone()).and_modify(|shown| shown.clone_from(name));
        }
        let figures = |row, name| NamedFigures { name, figures: table.sum(row) };
        Self {
            sites: sites
                .into_iter()
                .map(|(row, name)| figures(row, name))
                .filter(|one| one.name != OTHER || one.figures.count() > 0)
                .collect(),
            upstreams: upstreams
                .into_iter()
                .map(|(key, name)| (table.row(Subject::Upstream(&key)), name))
                .filter(|(row, _)| !FigureTable::is_rest(*row))
                .map(|(row, name)| figures(row, name))
                .collect(),
        }
    }

    /// Requests that have begun and not ended.
    pub(crate) fn requests_in_flight(&self) -> u64 {
        self.sites.iter().map(|one| one.figures.in_flight).sum()
    }

    /// For the status.
    pub(crate) fn report(&self) -> Value {
        let told = |all: &[NamedFigures]| all.iter().map(one).collect::<Vec<_>>();
        json!({ "bounds_us": BOUNDS_US, "sites": told(&self.sites), "upstreams": told(&self.upstreams) })
    }
}

fn one(NamedFigures { name, figures }: &NamedFigures) -> Value {
    let codes = CODES.iter().map(ToString::to_string).chain([OTHER.to_owned()]).zip(figures.codes);
    let codes: Map<_, _> =
        codes.filter(|(_, count)| *count > 0).map(|(code, count)| (code, count.into())).collect();
    json!({
        "name": name,
        "requests": figures.count(),
        "in_flight": figures.in_flight,
        "body_bytes": figures.body_bytes,
        "sum_us": figures.sum_us,
        "buckets": figures.buckets,
        "codes": codes,
    })
}

/// What processes take, by `/proc`: the master's and its workers', together.
#[derive(Debug, Default)]
pub(crate) struct ProcessFigures {
    /// Ticks of the CPU that processes had taken when they were seen last.
    seen: BTreeMap<u32, u64>,
    /// Ticks of the CPU that processes had taken that have ended since.
    gone: u64,
}

/// What processes take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ProcessUsage {
    pub(crate) cpu_seconds: f64,
    pub(crate) resident_bytes: u64,
    pub(crate) virtual_bytes: u64,
    pub(crate) open_fds: u64,
    pub(crate) threads: u64,
}

impl ProcessFigures {
    /// Looks at these processes. What one has taken since it was seen last and before its end is not known.
    pub(crate) fn look(&mut self, pids: impl IntoIterator<Item = u32>) -> ProcessUsage {
        let mut taken = ProcessUsage::default();
        let mut now = BTreeMap::new();
        for pid in pids {
            let Some(stat) = Stat::of(pid) else { continue };
            now.insert(pid, stat.ticks);
            taken.resident_bytes += stat.resident_pages * rustix::param::page_size() as u64;
            taken.virtual_bytes += stat.virtual_bytes;
            taken.threads += stat.threads;
            // Not for every user: a worker with keys keeps them to itself.
            taken.open_fds += fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, |all| all.count() as u64);
        }
        let ended = self.seen.iter().filter(|(pid, ticks)| now.get(pid).is_none_or(|now| now < ticks));
        self.gone += ended.map(|(_, ticks)| ticks).sum::<u64>();
        self.seen = now;
        let ticks = self.gone + self.seen.values().sum::<u64>();
        taken.cpu_seconds = ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
        taken
    }
}

/// A line of `/proc/PID/stat`.
struct Stat {
    ticks: u64,
    threads: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in brackets, may have blanks and brackets itself.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
        Some(Self {
            ticks: number(11)? + number(12)?,
            threads: number(17)?,
            virtual_bytes: number(20)?,
            resident_pages: number(21)?,
        })
    }
}

/// What has no room of its own.
pub(crate) const OTHER: &str = "other";

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: no total of the CPU decreases. Method: this process is seen, and then gone.
    #[test]
    fn what_ended_processes_took_is_kept() {
        let mut figures = ProcessFigures::default();
        let here = figures.look([std::process::id()]);
        assert!(here.resident_bytes > 0 && here.open_fds > 0 && here.threads > 0);
        let without = figures.look([]);
        assert!(without.cpu_seconds >= here.cpu_seconds && without.resident_bytes == 0);
    }
}
