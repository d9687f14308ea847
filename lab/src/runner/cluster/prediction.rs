//! What the simulator says of the same cluster: the same requests in the same order, with the memory, the disks and the
//! service times that were measured in the cell.

use std::collections::HashMap;

use anyhow::{Context, Result};
use baton_dispatch::{PolicyName, STANDARD_WEIGHT, target_hash};
use baton_sim::model::{Arrivals, FrontEnds, NodeProfile, Replacement, Scenario, simulate};
use baton_sim::trace::{TargetFacts, Trace, TraceRequest};

use crate::load::LoadRequest;
use crate::quantity::Quantity;
use crate::rig::BoxSettings;
use crate::runner::turn::Values;

/// Requests per second. The cell has these values; requests that warmed the nodes up come first.
///
/// # Errors
/// If the cell tells no service times.
pub(in crate::runner) fn predict(
    policy: PolicyName,
    (nodes, connections): (usize, usize),
    bounds: &BoxSettings,
    values: &Values,
    (warm_up, measured): (&[LoadRequest], &[LoadRequest]),
) -> Result<f64> {
    let value =
        |quantity| values.get(&quantity).copied().with_context(|| format!("the cell tells no {quantity}"));
    let profile = NodeProfile {
        establish_us: value(Quantity::NodesUs)? / bounds.cpu.unwrap_or(1.0),
        teardown_us: 0.0,
        transmit_us_per_512: 0.0,
        dynamic_us: 0.0,
        cpu_speed: 1.0,
        cpus: 1,
        disk_latency_us: 0.0,
        disk_us_per_4k: bounds.disk_mb_s.map_or(0.0, |rate| PAGE_BYTES as f64 / rate),
        block_bytes: bounds.read_ahead_kb << 10,
        further_block_us: 0.0,
        disks: 1,
        reads_per_disk: 1,
        cache_bytes: value(Quantity::FileCacheBytes)? as u64,
        replacement: Replacement::Lru,
        lru_file_bytes_max: u64::MAX,
    };
    let scenario = Scenario {
        profile,
        weights: vec![STANDARD_WEIGHT; nodes],
        front_ends: FrontEnds { cost_us: value(Quantity::FrontUs)?, ..FrontEnds::default() },
        arrivals: Arrivals::Closed { clients: u32::try_from(connections).context("too many connections")? },
        measured_from: warm_up.len() as f64 / (warm_up.len() + measured.len()).max(1) as f64,
        ..Scenario::published(policy, nodes)
    };
    Ok(simulate(&scenario, &trace(warm_up.iter().chain(measured)), &mut |_| ()).throughput)
}

/// Memory and disks hold pages; so does a simulated file.
fn trace<'a>(requests: impl Iterator<Item = &'a LoadRequest>) -> Trace {
    let mut facts: Vec<TargetFacts> = Vec::new();
    let mut known: HashMap<&str, u32> = HashMap::new();
    let requests = requests.map(|request| {
        let target = *known.entry(&request.path).or_insert_with(|| {
            facts.push(TargetFacts {
                hash: target_hash(request.path.as_bytes()),
                bytes: request.bytes.unwrap_or_default().next_multiple_of(PAGE_BYTES),
                dynamic: false,
            });
            facts.len() as u32 - 1
        });
        TraceRequest::whole(target)
    });
    let requests = requests.collect();
    Trace::new("cell".to_owned(), facts, requests)
}

const PAGE_BYTES: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::site::SiteKind;

    #[test]
    fn a_cluster_that_distributes_by_content_is_predicted_to_do_more() {
        let site = SiteKind::Specweb99 { directories: 4, requests: 40_000 }.make().unwrap();
        let script = &site.script;
        let requests: Vec<LoadRequest> =
            script.steps().iter().map(|step| script.requests()[step.request as usize].clone()).collect();
        let bounds = BoxSettings {
            cpu: Some(0.05),
            disk_mb_s: Some(4.0),
            read_ahead_kb: 128,
            ..BoxSettings::default()
        };
        let values = Values::from([
            (Quantity::NodesUs, 20.0),
            (Quantity::FrontUs, 30.0),
            (Quantity::FileCacheBytes, site.bytes() as f64 / 4.0),
        ]);
        let parts = requests.split_at(20_000);
        let rate = |policy| predict(policy, (6, 64), &bounds, &values, parts).unwrap();
        let (wrr, lard_h) = (rate(PolicyName::Wrr), rate(PolicyName::LardH));
        assert!(lard_h > 1.5 * wrr, "{wrr} {lard_h}");
        assert!(predict(PolicyName::Wrr, (6, 64), &bounds, &Values::new(), parts).is_err());
    }
}
