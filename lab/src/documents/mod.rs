//! Servers that lend each other documents, without a front-end: throughput over the number of servers, and how soon the load is
//! spread when a hot spot begins. The published experiments with Distributed Cooperative Web Servers have this shape.
//!
//! Each server is a host in a network namespace, whose link carries so much and no more, however many there are: this machine has
//! CPU time for all of them, so a server is as fast as its link. One has the site, the others only help. Visitors come to
//! the one that has it, all at once, read pages with their images, and follow the links that they find.

mod seconds;
mod site;
mod visitor;

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::entry::Entry;
use crate::ground::{Finding, Ground, Keep};
use crate::rig::network::{ClusterHosts, Host, Network, Traffic};
use crate::rig::{Groups, Isolation, Machine, own_folder};
use crate::servers::RunningServer;
use seconds::{Figures, Second};
use visitor::Got;

/// What to measure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DocumentsSettings {
    /// Numbers of servers: one has the site, the others help.
    servers: Vec<usize>,
    /// Visitors at a time.
    visitors: usize,
    /// What the link of each server carries away from it, in megabits a second.
    link_mbit: u32,
    /// How much shorter intervals of the policy are than the usual ones.
    hurry: u64,
}

/// Measures each number of servers, from the first visitor on.
///
/// # Errors
/// If we are not root, the machine lacks a tool, or a visitor does not get what a page shows.
pub(crate) fn run(settings: &DocumentsSettings, ground: Ground<'_>, keep: Keep<'_>) -> Result<()> {
    if let Some(why) = Network::hindrance() {
        bail!("servers on hosts of their own {why}");
    }
    let folder = own_folder(ground.folder).with_context(|| ground.folder.display().to_string())?;
    fs::create_dir_all(folder.join("empty"))?;
    let key = folder.join("key");
    fs::write(&key, "5eed".repeat(16))?;
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600))?;
    let root = folder.join("root");
    site::write(&root)?;
    let machine = Machine::prepare(Isolation::Hosts, 1)?;
    // Namespaces are removed on signals.
    let _groups = Groups::new()?;
    for round in 0..ground.rounds {
        for &count in ground.some(&settings.servers, 2) {
            let hosts = ClusterHosts::new(count)?;
            hosts.nodes.iter().try_for_each(|host| host.bound_link(settings.link_mbit))?;
            let place = Place {
                settings,
                ground,
                machine: &machine,
                hosts: &hosts,
                folder: &folder,
                root: &root,
                key: &key,
            };
            let _servers = (0..count).map(|number| place.start(number, count)).collect::<Result<Vec<_>>>()?;
            let figures = place.measure(count).with_context(|| format!("{count} servers"))?;
            keep(Finding {
                load: count.to_string(),
                contender: "baton".to_owned(),
                round,
                values: Ok(figures.values()),
            })?;
        }
    }
    Ok(())
}

struct Place<'a> {
    settings: &'a DocumentsSettings,
    ground: Ground<'a>,
    machine: &'a Machine,
    hosts: &'a ClusterHosts,
    folder: &'a Path,
    root: &'a Path,
    key: &'a Path,
}

impl Place<'_> {
    /// Server 0 has the site.
    fn start(&self, number: usize, count: usize) -> Result<RunningServer> {
        let name = format!("server{number}");
        let url = |number: usize| format!("\"http://{}\"", self.hosts.nodes[number].v4());
        let peers: Vec<_> = (0..count).filter(|other| *other != number).map(url).collect();
        let mut entry = Entry::baton(self.ground.baton, "auto").beside_client().named(&name);
        if !peers.is_empty() {
            // The usual intervals, shortened.
            let ms = |usual: u64| (usual / self.settings.hurry).max(100);
            entry = entry.settings(&[format!(
                "site.documents={{at={}, peers=[{}], key=\"{}\", lends={}, entry_points=[\"/\", \"{}\"], statistics_ms={}, \
                 ping_ms={}, peer_ms={}, recall_ms={}}}",
                url(number),
                peers.join(", "),
                self.key.display(),
                number == 0,
                site::ENTRY,
                ms(10_000),
                ms(20_000),
                ms(60_000),
                ms(300_000),
            )])?;
        }
        let host = &self.hosts.nodes[number];
        let address = SocketAddr::from((host.v4(), PORT));
        let empty = self.folder.join("empty");
        let root = if number == 0 { self.root } else { &empty };
        entry.start_on(host, address, self.machine, self.folder, root)
    }

    /// Visitors come, all at once.
    fn measure(&self, count: usize) -> Result<Figures> {
        let (got, over) = (Got::default(), AtomicBool::new(false));
        let home = self.hosts.nodes[0].v4().to_string();
        let seconds = self.hosts.client.run(|| {
            std::thread::scope(|scope| {
                for seed in 0..self.settings.visitors as u64 {
                    let (home, got, over) = (&home, &got, &over);
                    scope.spawn(move || visitor::visit(home, seed, got, over));
                }
                let seconds = self.watch(count, &got);
                over.store(true, Ordering::Relaxed);
                seconds
            })
        })?;
        let failures = got.failures.load(Ordering::Relaxed);
        ensure!(failures == 0, "visitors did not get {failures} documents");
        Ok(Figures { servers: count, seconds, away: self.away()? })
    }

    /// What visitors get in each second.
    fn watch(&self, count: usize, got: &Got) -> Result<Vec<Second>> {
        let traffic =
            || self.hosts.nodes[..count].iter().map(Host::traffic).collect::<Result<Vec<Traffic>>>();
        let read = || -> Result<_> {
            let counts = [&got.documents, &got.redirects].map(|count| count.load(Ordering::Relaxed));
            Ok((Instant::now(), counts, traffic()?))
        };
        let start = Instant::now();
        let mut before = read()?;
        let mut seconds = Vec::new();
        while start.elapsed() < self.ground.duration {
            std::thread::sleep(SECOND);
            let now = read()?;
            let sent = now.2.iter().zip(&before.2).map(|(now, before)| now.since(*before).sent_bytes);
            seconds.push(Second {
                seconds: (now.0 - before.0).as_secs_f64(),
                documents: now.1[0] - before.1[0],
                redirects: now.1[1] - before.1[1],
                sent_bytes: sent.collect(),
            });
            before = now;
        }
        Ok(seconds)
    }

    /// Documents that the home has lent, as it says itself.
    fn away(&self) -> Result<u64> {
        let control = self.folder.join("server0/control");
        let mut ctl = std::process::Command::new(self.ground.baton);
        let output = ctl.args(["ctl", "--control"]).arg(control).args(["documents", "--json"]).output()?;
        ensure!(output.status.success(), "baton ctl: {}", String::from_utf8_lossy(&output.stderr));
        let told: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        Ok(told["sites"][0]["lent"].as_array().map_or(0, |lent| lent.len() as u64))
    }
}

const SECOND: Duration = Duration::from_secs(1);
const PORT: u16 = 80;
