//! What the simulator says of the same cluster: the same requests in the same order, with the memory, the disks and the
//! service times that were measured.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use baton_dispatch::{PolicyName, STANDARD_WEIGHT};
use baton_sim::model::{Arrivals, FrontEnds, NodeProfile, Replacement, Scenario, simulate};
use baton_sim::trace::Trace;

use super::content::Content;
use super::front::Front;
use super::nodes::Nodes;
use super::rack::{Rack, load};
use super::settings::ClusterBounds;
use crate::contender::Contender;
use crate::files::FIXED;
use crate::load::LoadRequest;
use crate::rig::Image;

/// How long a node works for a request whose file is in memory, and how fast it reads files that are not.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServiceTimes {
    pub(super) request_us: f64,
    pub(super) us_per_512: f64,
    /// Below the bound of the disk: each file also takes blocks of the file system.
    pub(super) disk_bytes_per_s: f64,
}

impl fmt::Display for ServiceTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.0} µs for a request in memory and {:.2} µs for each 512 bytes; it reads {:.1} MB/s of files",
            self.request_us,
            self.us_per_512,
            self.disk_bytes_per_s / 1e6
        )
    }
}

impl ServiceTimes {
    /// Measures them behind a front-end at a single node, whose part of a CPU is all that limits it: for files of two lengths,
    /// and for the part of the content that a node has in a cluster.
    pub(super) fn measure(rack: &Rack<'_>, image: &Image, content: &Content) -> Result<Self> {
        let nodes = Nodes::start(rack, image, 1, &format!("{}-alone", content.kind()), Contender::Relay)?;
        let front = Front::Ours("wrr".to_owned(), Contender::Relay);
        let entry = front.entry(rack.baton, rack.folder, &nodes.addresses())?.named("alone");
        let server = rack.start_front(&entry)?;
        let connections = (rack.bounds.connections / rack.bounds.nodes).max(1);
        let us = |requests: Vec<LoadRequest>, warm_up: Duration| -> Result<(f64, f64)> {
            load(&rack.hosts.client, server.address, connections, requests.clone(), warm_up)?;
            let report = load(&rack.hosts.client, server.address, connections, requests, MEASURED)?;
            let requests = report.requests as f64;
            Ok((1e6 / report.figures().requests_per_second, report.bytes as f64 / requests))
        };
        let fixed = |(path, bytes): (&str, u64)| us(vec![LoadRequest::file(path, bytes)], WARM_UP);
        let (small, large) = (fixed(FIXED[0])?, fixed(FIXED[2])?);
        let (part, bytes) = content.part(rack.bounds.nodes);
        let before = nodes.file_bytes_max();
        let cold = load(&rack.hosts.client, server.address, connections, part.clone(), COLD)?;
        let read_bytes = nodes.file_bytes_max().saturating_sub(before);
        let disk_bytes_per_s = read_bytes as f64 / cold.elapsed.as_secs_f64();
        let read_s = bytes as f64 / 1e6 / rack.bounds.disk_mb_per_s;
        let usual = us(part, Duration::from_secs_f64(PART_WARM_UP * read_s))?;
        drop(server);
        nodes.stop(rack.groups)?;
        Self::from(small, large, usual, disk_bytes_per_s)
    }

    /// A line whose slope is that between two lengths, through what a usual request takes. Each is a time and a length.
    fn from(small: (f64, f64), large: (f64, f64), usual: (f64, f64), disk_bytes_per_s: f64) -> Result<Self> {
        let us_per_512 = (large.0 - small.0) / (large.1 - small.1) * 512.0;
        let request_us = usual.0 - usual.1 / 512.0 * us_per_512;
        ensure!(
            us_per_512 > 0.0 && request_us > 0.0,
            "{small:?}, {large:?} and {usual:?} are no service times"
        );
        ensure!(disk_bytes_per_s > 0.0, "nothing was read from the disk");
        Ok(Self { request_us, us_per_512, disk_bytes_per_s })
    }

    /// The profile of a node with so much memory for files.
    pub(super) fn profile(self, bounds: &ClusterBounds, cache_bytes: u64) -> NodeProfile {
        NodeProfile {
            establish_us: self.request_us,
            teardown_us: 0.0,
            transmit_us_per_512: self.us_per_512,
            dynamic_us: 0.0,
            cpu_speed: 1.0,
            cpus: 1,
            disk_latency_us: 0.0,
            disk_us_per_4k: 4096.0 / self.disk_bytes_per_s * 1e6,
            block_bytes: bounds.read_ahead_kb << 10,
            further_block_us: 0.0,
            disks: 1,
            reads_per_disk: 1,
            cache_bytes,
            replacement: Replacement::Lru,
            lru_file_bytes_max: u64::MAX,
        }
    }
}

/// A run to simulate.
pub(super) struct Run {
    pub(super) policy: PolicyName,
    pub(super) trace: Trace,
    /// Requests before measuring begins.
    pub(super) warm_up: u64,
    pub(super) front_us: f64,
}

/// Requests per second, and the share of requests that missed.
pub(super) fn predict(run: &Run, profile: NodeProfile, bounds: &ClusterBounds) -> Result<(f64, f64)> {
    let scenario = Scenario {
        profile,
        weights: vec![STANDARD_WEIGHT; bounds.nodes],
        front_ends: FrontEnds { cost_us: run.front_us, ..FrontEnds::default() },
        arrivals: Arrivals::Closed {
            clients: u32::try_from(bounds.connections).context("too many connections")?,
        },
        measured_from: run.warm_up as f64 / run.trace.requests().len().max(1) as f64,
        ..Scenario::published(run.policy, bounds.nodes)
    };
    let outcome = simulate(&scenario, &run.trace, &mut |_| ());
    Ok((outcome.throughput, outcome.miss_ratio))
}

const WARM_UP: Duration = Duration::from_millis(500);
/// Too short to fill the memory.
const COLD: Duration = Duration::from_secs(3);
const MEASURED: Duration = Duration::from_secs(2);
/// Rare files are asked for late: the warm-up is so many times what reading all takes.
const PART_WARM_UP: f64 = 1.3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::content::TraceKind;

    #[test]
    fn service_times_are_a_line() {
        let times = ServiceTimes::from((120.0, 1024.0), (318.0, 102_400.0), (150.0, 5_120.0), 4e6).unwrap();
        assert!((times.us_per_512 - 1.0).abs() < 1e-9 && (times.request_us - 140.0).abs() < 1e-9);
        assert!(ServiceTimes::from((120.0, 1024.0), (110.0, 102_400.0), (150.0, 5_120.0), 4e6).is_err());
    }

    #[test]
    fn a_cluster_that_distributes_by_content_is_predicted_to_miss_less() {
        let bounds = ClusterBounds {
            nodes: 6,
            node_cpus: 0.05,
            memory_mib: 8,
            disk_mb_per_s: 4.0,
            read_ahead_kb: 128,
            content_mb: 20,
            connections: 64,
        };
        let times = ServiceTimes { request_us: 400.0, us_per_512: 1.0, disk_bytes_per_s: 4e6 };
        let content = Content::make(TraceKind::Zipf(0.9), bounds.content_mb);
        let predicted = |policy| {
            let trace = content.trace((0, 20_000), (50_000, 20_000));
            let run = Run { policy, trace, warm_up: 20_000, front_us: 30.0 };
            predict(&run, times.profile(&bounds, 5 << 20), &bounds).unwrap()
        };
        let (wrr, lard_h) = (predicted(PolicyName::Wrr), predicted(PolicyName::LardH));
        assert!(lard_h.0 > 1.5 * wrr.0 && lard_h.1 < wrr.1 / 2.0, "{wrr:?} {lard_h:?}");
    }
}
