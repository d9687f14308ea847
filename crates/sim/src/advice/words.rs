//! Advice in plain words.

use baton_dispatch::PolicyName::LardH;
use baton_figures::brief;

use super::replay::Replay;
use super::search::{NEEDED_MAX, NodeRange};
use super::wish::{MEMORY, MEMORY_AS_IT_IS, POLICIES, REQUESTS_MIN, Wish};
use crate::trace::Statistics;

/// What was found about a site.
pub(super) struct Findings<'a> {
    pub(super) statistics: &'a Statistics,
    pub(super) replay: &'a Replay<'a>,
    pub(super) wish: Wish,
    /// The memory of a node as it is.
    pub(super) cache_bytes: u64,
    /// By load alone, with memory as it is.
    pub(super) plain: NodeRange,
    /// By our own policy.
    pub(super) ours: NodeRange,
}

impl Findings<'_> {
    /// The log is too short to tell.
    pub(super) fn too_short(&self) -> Vec<String> {
        let Self { replay, wish, ours, .. } = self;
        vec![
            site(self.statistics),
            format!(
                "This log is too short for an answer. {:.1} % of its requests are the first for a file that the other half of \
                 the log does not request. If running nodes had these files in memory, {} with {LardH} would do {} requests a \
                 second; if they had none of them, {}{}. Take more of the log.",
                100.0 * replay.first_share(),
                counted(ours.least),
                brief(wish.per_s),
                counted(ours.most),
                if wish.spare > 0 { ", without any to spare" } else { "" }
            ),
        ]
    }

    /// The answer.
    pub(super) fn answer(&self, needed: &[[Option<usize>; POLICIES.len()]; MEMORY.len()]) -> Vec<String> {
        let Self { statistics, wish, cache_bytes, plain, ours, .. } = *self;
        let memory = |row: usize| size((cache_bytes as f64 * MEMORY[row]) as u64);
        let spare = match wish.spare {
            0 => String::new(),
            1 => ", one of which may fail".into(),
            many => format!(", {many} of which may fail"),
        };
        let mut words = vec![site(statistics)];
        words.push(match (ours.most, plain.least) {
            (Some(_), Some(_)) => format!(
                "For {} requests a second on nodes with {} for files, you need {} with lard-h{spare}, {} with \
                 least-connections.",
                brief(wish.per_s),
                memory(MEMORY_AS_IT_IS),
                ours.and(wish.spare),
                plain.and(wish.spare)
            ),
            _ => format!(
                "Not even {NEEDED_MAX} nodes do {} requests a second with every policy: see the figure for those that do.",
                brief(wish.per_s)
            ),
        });
        words.push(policy_advice(statistics, cache_bytes, plain, ours));
        words.extend(memory_advice(needed, wish, &memory));
        words.push(self.bandwidth());
        words.push(format!(
            "How this was measured: each half of the log is replayed as fast as the cluster takes it, in rounds. Memory is \
             warm: nodes begin with what the log leaves in one node's memory, and the first half of the rounds is left out. \
             {:.1} % of the requests are the first for a file that the other half does not request. They were taken as known, and as \
             new in each round; the answer holds for both, and for both halves. The figure takes them as new, in the second \
             half. Costs are those of the node profile: measure your own, and give them with --set.",
            100.0 * self.replay.first_share()
        ));
        words
    }

    /// Networks are no part of the model: what they would have to carry.
    fn bandwidth(&self) -> String {
        let Self { statistics, wish, ours, .. } = self;
        let bytes = statistics.bytes_sent as f64 / statistics.requests.max(1) as f64;
        let bits_per_s = 8.0 * bytes * wish.per_s;
        let each = match ours.most {
            Some(1) | None => String::new(),
            Some(nodes) => format!(", {} for each of {nodes} nodes", rate(bits_per_s / nodes as f64)),
        };
        format!(
            "Networks cost nothing in this model. {} requests a second are {} of content{each}; a front-end that relays \
             responses carries all of it.",
            brief(wish.per_s),
            rate(bits_per_s)
        )
    }
}

/// A log of a few requests says nothing.
pub(super) fn hardly_any_log(statistics: &Statistics) -> Vec<String> {
    vec![
        site(statistics),
        format!(
            "This log is too short for an answer: it has {} requests, and tells something from {} on.",
            brief(statistics.requests as f64),
            brief(REQUESTS_MIN as f64)
        ),
    ]
}

fn counted(nodes: Option<usize>) -> String {
    match nodes {
        Some(1) => "one node".into(),
        Some(nodes) => format!("{nodes} nodes"),
        None => format!("not even {NEEDED_MAX} nodes"),
    }
}

/// The site in a sentence or two.
fn site(statistics: &Statistics) -> String {
    let covering = |share: f64| statistics.bytes_covering(share).map_or_else(|| "nothing".into(), size);
    let dynamic = 100.0 * statistics.dynamic_requests as f64 / statistics.requests.max(1) as f64;
    let programs = if dynamic >= 1.0 {
        format!(
            " {dynamic:.0} % of the requests seem to be answered by applications, which memory for files does not help."
        )
    } else {
        String::new()
    };
    format!(
        "{} requests for {} targets, {} of files. {} hold the targets of 90 % of the requests, {} those of 99 %; the \
         most frequent target gets {:.1} % of them.{programs}",
        brief(statistics.requests as f64),
        brief(statistics.targets as f64),
        size(statistics.bytes),
        covering(0.9),
        covering(0.99),
        100.0 * statistics.hottest_share
    )
}

fn policy_advice(statistics: &Statistics, cache_bytes: u64, plain: NodeRange, ours: NodeRange) -> String {
    let working_set = statistics.bytes_covering(0.99).unwrap_or(0);
    let most = |needed: NodeRange| needed.most.unwrap_or(usize::MAX);
    let least = |needed: NodeRange| needed.least.unwrap_or(usize::MAX);
    if most(plain) == 1 && most(ours) == 1 {
        "One node is enough: there is nothing to distribute, except to a spare one.".into()
    } else if ours.most.is_some() && plain.least.is_none() {
        "Only a policy that looks at targets does it with a sensible number of nodes: lard-h.".into()
    } else if most(ours) < least(plain) {
        format!(
            "Let the front-end look at targets (lard-h): {} of files do not fit into the {} of one node, and together \
             the nodes have room.",
            size(working_set),
            size(cache_bytes)
        )
    } else if ours.most.is_none() {
        "Take faster nodes, or fewer requests on each: applications or disks are the limit, not distribution."
            .into()
    } else if least(plain) < most(plain) && most(ours) < most(plain) {
        "Whether the front-end should look at targets, this log is too short to tell: lard-h does no harm."
            .into()
    } else if working_set <= cache_bytes {
        format!(
            "Any policy will do: the targets of 99 % of the requests ({}) fit into each node's memory ({}).",
            size(working_set),
            size(cache_bytes)
        )
    } else {
        "Any policy will do: reading from the disk costs these nodes little.".into()
    }
}

/// Whether more or less memory changes the number of nodes.
fn memory_advice(
    needed: &[[Option<usize>; POLICIES.len()]; MEMORY.len()],
    wish: Wish,
    memory: &dyn Fn(usize) -> String,
) -> Option<String> {
    let ours = |row: usize| needed[row][POLICIES.len() - 1];
    let now = ours(MEMORY_AS_IT_IS)?;
    let least = (0..MEMORY_AS_IT_IS).find(|&row| ours(row) == Some(now));
    let more = (MEMORY_AS_IT_IS + 1..MEMORY.len()).find(|&row| ours(row).is_some_and(|nodes| nodes < now));
    Some(match (least, more) {
        (_, Some(row)) => {
            format!("With {} a node, {} nodes are enough.", memory(row), ours(row)? + wish.spare)
        }
        (Some(row), None) => {
            format!("{} a node are enough for the same number of nodes; more change nothing.", memory(row))
        }
        (None, None) => "Less memory takes more nodes; more memory saves none.".into(),
    })
}

/// Bits a second as networks are sold.
fn rate(bits_per_s: f64) -> String {
    match bits_per_s / 1e6 {
        mbit if mbit >= 1000.0 => format!("{:.1} Gbit/s", mbit / 1000.0),
        mbit if mbit >= 10.0 => format!("{mbit:.0} Mbit/s"),
        mbit => format!("{mbit:.1} Mbit/s"),
    }
}

/// Bytes as people say them.
pub(super) fn size(bytes: u64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(value < 10.0 && unit > 0);
    format!("{value:.digits$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_rates_are_said_as_people_do() {
        let cases = [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1536, "1.5 KiB"),
            (32 << 20, "32 MiB"),
            (1 << 42, "4.0 TiB"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(size(bytes), expected);
        }
        for (bits_per_s, expected) in [(2.34e6, "2.3 Mbit/s"), (2.34e8, "234 Mbit/s"), (2.5e9, "2.5 Gbit/s")]
        {
            assert_eq!(rate(bits_per_s), expected);
        }
    }
}
