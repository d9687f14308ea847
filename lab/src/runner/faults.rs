//! What clients of a cluster see of faults: a node that dies, is cut off, hangs or is slow, and returns; a front-end that
//! restarts; nodes that leave, come back, and join.
//!
//! A second after the load has begun, something happens. Each request that was not answered as it should be is counted by
//! what went wrong; all are `GET`, so safe to repeat.

use std::sync::Arc;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use super::cluster::{Cluster, Node};
use super::loads::of_report;
use super::stage::{Contestant, Stage};
use super::turn::{Turn, Values};
use crate::experiment::{FaultName, FaultText};
use crate::load::{Load, LoadRequest, LoadSettings};
use crate::quantity::Quantity;
use crate::rig::network::INTERFACE;
use crate::servers::RunningServer;

/// Lets the fault happen under load. Requests that were answered wrongly, with an error, in part or not at all are lost.
pub(super) fn measure(
    stage: &Stage,
    contestant: &mut Contestant,
    load: &FaultText,
    turn: Turn,
) -> Result<Values> {
    let Contestant { server, cluster, .. } = contestant;
    let cluster =
        cluster.as_mut().context("a fault happens to a cluster, and this contender has no nodes")?;
    let lasts = turn.effort.fault();
    let before = lasts * 2 / 5;
    let settings = LoadSettings {
        connections: turn.effort.connections(load.connections),
        sleep: true,
        verify: true,
        ..LoadSettings::new(server.address, before * 3 + lasts)
    };
    let asked = stage.site.requests(&load.ask, turn.number)?;
    let requests = asked.clone();
    let hosts = Arc::clone(&cluster.hosts);
    let mut scene = Scene { front: server, cluster, asked, lasts };
    let report = thread::scope(|scope| {
        let client = scope.spawn(move || hosts.client.run(|| Load::connect(&settings, requests)?.run()));
        sleep(before);
        let happened = scene.happen(load.fault);
        let report = client.join().map_err(|_| anyhow!("the load generator failed"))?;
        happened.and(report)
    })?;
    let mut values = of_report(&report);
    values.insert(Quantity::LostRequests, (report.failed() + report.unanswered) as f64);
    values.insert(Quantity::EndedConnections, report.reconnects as f64);
    Ok(values)
}

/// What suffers, and for how long.
struct Scene<'a> {
    front: &'a mut RunningServer,
    cluster: &'a mut Cluster,
    /// What clients ask for.
    asked: Vec<LoadRequest>,
    lasts: Duration,
}

impl Scene<'_> {
    fn happen(&mut self, fault: FaultName) -> Result<()> {
        let hosts = Arc::clone(&self.cluster.hosts);
        let host = hosts.nodes.first().context("the cluster has no node")?;
        match fault {
            FaultName::Nothing => sleep(self.lasts),
            FaultName::NodeKilled => {
                self.node().server.kill();
                sleep(self.lasts);
                let server_box = self.cluster.nodes[0].server_box.as_ref();
                let server = self.cluster.start_node(0, server_box, false)?;
                self.node().server = server;
            }
            FaultName::NodeCutOff => {
                host.ip(&format!("link set {INTERFACE} down\n"))?;
                sleep(self.lasts);
                host.ip(&format!("link set {INTERFACE} up\n"))?;
            }
            FaultName::NodeHangs => {
                self.node().server.pause();
                sleep(self.lasts);
                self.node().server.resume();
            }
            FaultName::NodeSlow => {
                host.bound_link(SLOW_MBIT)?;
                sleep(self.lasts);
                host.free_link()?;
            }
            FaultName::NodeDrained => {
                let url = format!("http://{}", self.node().server.address);
                self.control_all(&["drain-origin", &url])?;
                sleep(self.lasts);
                self.control_all(&["undrain-origin", &url])?;
            }
            FaultName::NodeJoins => self.node_joins()?,
            FaultName::WorkerKilled => self.front.kill_worker(),
            FaultName::WorkersReplaced => self.control(&["recycle"])?,
            FaultName::FrontUpgraded => self.control(&["upgrade"])?,
            FaultName::FrontRestarted => self.front.restart(|| self.cluster.start_front(0))?,
        }
        Ok(())
    }

    /// Another node registers itself, and gets its part of requests on new connections: those that were handed over stay
    /// where they are.
    fn node_joins(&mut self) -> Result<()> {
        let Self { cluster, .. } = self;
        ensure!(cluster.registry.is_some(), "a node joins by etcd: the contender needs `registry`");
        let number = cluster.nodes.len();
        let server = cluster.start_node(number, None, true)?;
        cluster.nodes.push(Node { server, server_box: None });
        sleep(self.lasts);
        let host = &self.cluster.hosts.nodes[number];
        let before = host.sent_bytes()?;
        let load = LoadSettings {
            connection_per_request: true,
            requests_max: Some(JOINED_REQUESTS),
            sleep: true,
            ..LoadSettings::new(self.front.address, JOINED_MAX)
        };
        let limit = Instant::now() + JOINED_MAX;
        loop {
            self.cluster.hosts.client.run(|| Load::connect(&load, self.asked.iter().cloned())?.run())?;
            let sent = host.sent_bytes()? - before;
            if sent > JOINED_BYTES_MIN {
                return Ok(());
            }
            ensure!(Instant::now() < limit, "the node that has joined sends {sent} bytes");
        }
    }

    fn node(&mut self) -> &mut Node {
        &mut self.cluster.nodes[0]
    }

    fn control(&self, words: &[&str]) -> Result<()> {
        self.front.control(words).map(drop)
    }

    /// Front-ends that share no key do not tell each other.
    fn control_all(&self, words: &[&str]) -> Result<()> {
        self.control(words)?;
        self.cluster.more_fronts.iter().try_for_each(|front| front.control(words).map(drop))
    }
}

/// Of a slow link.
const SLOW_MBIT: u32 = 4;
/// The node that has joined would send a quarter of them.
const JOINED_REQUESTS: u64 = 300;
const JOINED_BYTES_MIN: u64 = 300 << 10;
const JOINED_MAX: Duration = Duration::from_secs(10);
