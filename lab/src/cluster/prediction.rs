//! What the simulator says of the same cluster: the same requests in the same order, with the memory, the disks and the
//! service times that were measured.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use baton_dispatch::{PolicyName, STANDARD_WEIGHT};
use baton_sim::model::{Arrivals, FrontEnds, NodeProfile, Replacement, Scenario, simulate};
use baton_sim::trace::Trace;

use super::nodes::Nodes;
use super::rack::{Rack, load};
use super::settings::ClusterBounds;
use crate::files::FIXED;
use crate::load::Request;
use crate::rig::Image;

/// How long a node works for a request whose file is in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServiceTimes {
    pub(super) request_us: f64,
    pub(super) us_per_512: f64,
}

impl ServiceTimes {
    /// Measures them at a node alone: with files of two lengths, the node's part of a CPU being all that limits it.
    pub(super) fn measure(rack: &Rack<'_>, image: &Image, trace: &str) -> Result<Self> {
        let nodes = Nodes::start(rack, image, 1, &format!("{trace}-alone"))?;
        let address = nodes.addresses()[0];
        let us = |(path, bytes): (&str, u64)| -> Result<f64> {
            let requests = vec![Request { path: path.to_owned(), bytes: Some(bytes) }];
            load(&rack.hosts.client, address, CONNECTIONS, requests.clone(), WARM_UP)?;
            let figures = load(&rack.hosts.client, address, CONNECTIONS, requests, MEASURED)?.figures();
            Ok(1e6 / figures.requests_per_second)
        };
        let (small, large) = (FIXED[0], FIXED[2]);
        let times = Self::between((small.1, us(small)?), (large.1, us(large)?));
        nodes.stop(rack.groups)?;
        times
    }

    /// The line through two lengths with their times.
    fn between((small, small_us): (u64, f64), (large, large_us): (u64, f64)) -> Result<Self> {
        let us_per_512 = (large_us - small_us) / ((large - small) as f64 / 512.0);
        let request_us = small_us - small as f64 / 512.0 * us_per_512;
        ensure!(us_per_512 > 0.0 && request_us > 0.0, "{small_us} and {large_us} us are no service times");
        Ok(Self { request_us, us_per_512 })
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
            disk_us_per_4k: 4096.0 / bounds.disk_mb_per_s,
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

const CONNECTIONS: usize = 32;
const WARM_UP: Duration = Duration::from_millis(500);
const MEASURED: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::content::{Content, TraceKind};

    #[test]
    fn service_times_are_a_line() {
        let times = ServiceTimes::between((1024, 120.0), (102_400, 318.0)).unwrap();
        assert!((times.us_per_512 - 1.0).abs() < 1e-9 && (times.request_us - 118.0).abs() < 1e-9);
        assert!(ServiceTimes::between((1024, 120.0), (102_400, 110.0)).is_err());
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
        let times = ServiceTimes { request_us: 400.0, us_per_512: 1.0 };
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
