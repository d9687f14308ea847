//! Results of a run.

use std::collections::BTreeMap;

use baton_dispatch::Why;
use hdrhistogram::Histogram;
use serde::Serialize;

use super::node::{Node, Parts};

/// Results of a run. Shares are from 0 to 1.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The policy's name.
    pub policy: String,
    /// The trace's name.
    pub trace: String,
    /// Nodes at the beginning.
    pub nodes: usize,
    /// Requests that were answered, of those that count.
    pub answered: u64,
    /// Requests that never got a node.
    pub unanswered: u64,
    /// Requests that were sent to another node because theirs failed.
    pub retried: u64,
    /// Simulated time, in seconds.
    pub seconds: f64,
    /// Answers a second.
    pub throughput: f64,
    /// Megabits (10^6) of content a second.
    pub mbit_s: f64,
    /// The share of requests for files that were not in the memory of their node.
    pub miss_ratio: f64,
    /// Of these, the share that waited for a read in progress.
    pub shared_miss_ratio: f64,
    /// Of these, the share that another node's memory had (WRR/GMS).
    pub lent_ratio: f64,
    /// The share of time in which a node has less than 40 % of T_low connections, the mean over nodes.
    pub idle: f64,
    /// The share of time in which processors work, the mean over nodes.
    pub cpu_busy: f64,
    /// The share of time in which disks work, the mean over nodes.
    pub disk_busy: f64,
    /// The share of time in which front-ends work, the mean over them.
    pub front_end_busy: f64,
    /// From arrival to the end of the answer. Under saturating arrivals, requests arrive when they are let in.
    pub delay: Delay,
    /// Between the node whose requests took longest on the mean and that whose took shortest, in milliseconds.
    pub delay_spread_ms: f64,
    /// The most connections that a node had at once.
    pub load_max: u32,
    /// Answers of the node that gave most, divided by the mean over nodes.
    pub imbalance: f64,
    /// Decisions by reason; a request that had to wait counts once per decision.
    pub reasons: BTreeMap<&'static str, u64>,
    /// T_low and T_high of the first front-end at the end, in connections of a standard node.
    pub thresholds: [f32; 2],
    /// Targets that were moved to another node or given one more.
    pub reassignments: u64,
    /// Answers in each interval of [`super::Scenario::series_ms`], if that is not 0.
    pub series: Vec<u64>,
}

/// Delays in milliseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Delay {
    /// The mean.
    pub mean_ms: f64,
    /// Half of the requests took at most this.
    pub p50_ms: f64,
    /// 90 % of them.
    pub p90_ms: f64,
    /// 99 % of them.
    pub p99_ms: f64,
    /// 99.9 % of them.
    pub p999_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

/// How a request for a file found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// In memory.
    Hit,
    /// On the disk.
    Miss,
    /// Being read from the disk.
    SharedMiss,
    /// In another node's memory.
    Lent,
}

/// Counts in the course of a run.
#[derive(Debug)]
pub(crate) struct Measures {
    since_ns: u64,
    pub(crate) answered: u64,
    bytes: u64,
    hits: u64,
    misses: u64,
    shared_misses: u64,
    lent: u64,
    pub(crate) retried: u64,
    reasons: [u64; WORDS_MAX],
    words: Vec<&'static str>,
    reassignments: u64,
    delays_us: Histogram<u64>,
    /// The sum, exact; a histogram rounds.
    delay_sum_us: u128,
    nodes: Vec<NodeMeasures>,
    front_ends_worked_ns: u64,
    /// A node with fewer connections is idle.
    idle_below: f64,
    series_ns: u64,
    series: Vec<u64>,
}

#[derive(Clone, Debug)]
struct NodeMeasures {
    capacity: f64,
    answered: u64,
    delay_sum_us: u128,
    load: u32,
    load_max: u32,
    /// Since when it is idle.
    idle_since_ns: Option<u64>,
    idle_ns: u64,
    /// Since when it serves.
    up_since_ns: Option<u64>,
    up_ns: u64,
    /// The time that it serves; where only a part of it works, that part of the time.
    worth_ns: f64,
    parts: Parts,
    /// Work that was done before measuring began, in nanoseconds.
    cpu_before_ns: u64,
    disk_before_ns: u64,
}

/// Longer delays count as this: an hour.
const DELAY_US_MAX: u64 = 3_600_000_000;
/// More than there are reasons.
const WORDS_MAX: usize = 32;

impl Measures {
    /// Begins to count. `idle_below` is in connections of a standard node.
    pub(crate) fn new(idle_below: f64, series_ms: u64) -> Self {
        let delays_us =
            Histogram::new_with_max(DELAY_US_MAX, 3).expect("the bounds are those of a histogram");
        Self {
            since_ns: 0,
            answered: 0,
            bytes: 0,
            hits: 0,
            misses: 0,
            shared_misses: 0,
            lent: 0,
            retried: 0,
            reasons: [0; WORDS_MAX],
            words: Vec::new(),
            reassignments: 0,
            delays_us,
            delay_sum_us: 0,
            nodes: Vec::new(),
            front_ends_worked_ns: 0,
            idle_below,
            series_ns: series_ms * 1_000_000,
            series: Vec::new(),
        }
    }

    /// Resets the counters: measuring begins now.
    pub(crate) fn begin(&mut self, nodes: &[Node], front_ends_worked_ns: u64, now_ns: u64) {
        let mut fresh = Self::new(self.idle_below, self.series_ns / 1_000_000);
        fresh.since_ns = now_ns;
        fresh.front_ends_worked_ns = front_ends_worked_ns;
        fresh.nodes = self.nodes.clone();
        for (measures, node) in fresh.nodes.iter_mut().zip(nodes) {
            *measures = NodeMeasures {
                capacity: measures.capacity,
                load: measures.load,
                load_max: measures.load,
                idle_since_ns: measures.idle_since_ns.map(|_| now_ns),
                up_since_ns: measures.up_since_ns.map(|_| now_ns),
                parts: measures.parts,
                cpu_before_ns: node.cpu.worked_ns(),
                disk_before_ns: disks_worked_ns(node),
                ..NodeMeasures::new(measures.capacity)
            };
        }
        *self = fresh;
    }

    pub(crate) fn handle_join(&mut self, weight: u32, now_ns: u64) {
        let capacity = f64::from(weight) / f64::from(baton_dispatch::STANDARD_WEIGHT);
        self.nodes.push(NodeMeasures::new(capacity));
        self.handle_up(self.nodes.len() - 1, now_ns);
    }

    pub(crate) fn handle_up(&mut self, node: usize, now_ns: u64) {
        self.nodes[node].up_since_ns.get_or_insert(now_ns);
        self.handle_load(node, self.nodes[node].load, now_ns);
    }

    /// A node takes no more requests.
    pub(crate) fn handle_down(&mut self, node: usize, now_ns: u64) {
        let measures = &mut self.nodes[node];
        measures.settle(now_ns);
        measures.idle_since_ns = None;
        measures.up_since_ns = None;
    }

    /// A node continues with so many of its parts.
    pub(crate) fn handle_parts(&mut self, node: usize, parts: Parts, now_ns: u64) {
        self.nodes[node].settle(now_ns);
        self.nodes[node].parts = parts;
    }

    /// A node has this many connections now.
    pub(crate) fn handle_load(&mut self, node: usize, load: u32, now_ns: u64) {
        let idle_below = self.idle_below;
        let measures = &mut self.nodes[node];
        measures.load = load;
        measures.load_max = measures.load_max.max(load);
        let is_idle = measures.up_since_ns.is_some() && f64::from(load) < idle_below * measures.capacity;
        match (is_idle, measures.idle_since_ns) {
            (true, None) => measures.idle_since_ns = Some(now_ns),
            (false, Some(since_ns)) => {
                measures.idle_ns += now_ns - since_ns;
                measures.idle_since_ns = None;
            }
            _ => {}
        }
    }

    pub(crate) fn handle_found(&mut self, found: Found) {
        match found {
            Found::Hit => self.hits += 1,
            Found::Miss => self.misses += 1,
            Found::SharedMiss => self.shared_misses += 1,
            Found::Lent => self.lent += 1,
        }
    }

    pub(crate) fn handle_decision(&mut self, why: Why) {
        let word = why.word();
        let at = self.words.iter().position(|known| *known == word).unwrap_or_else(|| {
            self.words.push(word);
            self.words.len() - 1
        });
        self.reasons[at] += 1;
        self.reassignments += u64::from(why.is_reassignment());
    }

    pub(crate) fn handle_answer(&mut self, node: usize, bytes: u64, delay_us: u64, now_ns: u64) {
        self.answered += 1;
        self.bytes += bytes;
        self.delays_us.saturating_record(delay_us);
        self.delay_sum_us += u128::from(delay_us);
        let measures = &mut self.nodes[node];
        measures.answered += 1;
        measures.delay_sum_us += u128::from(delay_us);
        if let Some(interval) = (now_ns - self.since_ns).checked_div(self.series_ns) {
            let interval = interval as usize;
            if self.series.len() <= interval {
                self.series.resize(interval + 1, 0);
            }
            self.series[interval] += 1;
        }
    }

    /// The outcome; the caller adds its own numbers.
    pub(crate) fn finish(mut self, nodes: &[Node], front_ends_worked_ns: &[u64], now_ns: u64) -> Outcome {
        self.nodes.iter_mut().for_each(|measures| measures.settle(now_ns));
        let elapsed_ns = (now_ns - self.since_ns).max(1) as f64;
        let seconds = elapsed_ns / 1e9;
        let up = || self.nodes.iter().zip(nodes).filter(|(measures, _)| measures.up_ns > 0);
        let mean = |share: &dyn Fn(&NodeMeasures, &Node) -> f64| {
            up().map(|(measures, node)| share(measures, node)).sum::<f64>() / up().count().max(1) as f64
        };
        let busy = |measures: &NodeMeasures, worked_ns: u64, servers: u32| {
            worked_ns as f64 / (measures.worth_ns * f64::from(servers))
        };
        let files = (self.hits + self.misses + self.shared_misses + self.lent).max(1) as f64;
        let missed = (self.misses + self.shared_misses + self.lent).max(1) as f64;
        let delays: Vec<f64> = (self.nodes.iter())
            .filter(|measures| measures.answered > 0)
            .map(|measures| measures.delay_sum_us as f64 / measures.answered as f64 / 1000.0)
            .collect();
        let spread =
            delays.iter().copied().fold(0.0, f64::max) - delays.iter().copied().fold(f64::MAX, f64::min);
        let busiest = self.nodes.iter().map(|measures| measures.answered).max().unwrap_or(0);
        let front_ends_ns: u64 = front_ends_worked_ns.iter().sum::<u64>() - self.front_ends_worked_ns;

        Outcome {
            thresholds: [0.0; 2],
            policy: String::new(),
            trace: String::new(),
            nodes: nodes.len(),
            answered: self.answered,
            unanswered: 0,
            retried: self.retried,
            seconds,
            throughput: self.answered as f64 / seconds,
            mbit_s: self.bytes as f64 * 8.0 / 1e6 / seconds,
            miss_ratio: (self.misses + self.shared_misses + self.lent) as f64 / files,
            shared_miss_ratio: self.shared_misses as f64 / missed,
            lent_ratio: self.lent as f64 / missed,
            idle: mean(&|measures, _| measures.idle_ns as f64 / measures.up_ns as f64),
            cpu_busy: mean(&|measures, node| {
                busy(measures, node.cpu.worked_ns() - measures.cpu_before_ns, node.profile.cpus)
            }),
            disk_busy: mean(&|measures, node| {
                let servers = node.profile.disks * node.profile.reads_per_disk;
                busy(measures, disks_worked_ns(node) - measures.disk_before_ns, servers)
            }),
            front_end_busy: front_ends_ns as f64 / elapsed_ns / front_ends_worked_ns.len().max(1) as f64,
            delay: self.delay(),
            delay_spread_ms: spread.max(0.0),
            load_max: self.nodes.iter().map(|measures| measures.load_max).max().unwrap_or(0),
            imbalance: busiest as f64 * nodes.len() as f64 / self.answered.max(1) as f64,
            reasons: self.words.iter().copied().zip(self.reasons).collect(),
            reassignments: self.reassignments,
            series: self.series,
        }
    }

    fn delay(&self) -> Delay {
        let quantile = |share| self.delays_us.value_at_quantile(share) as f64 / 1000.0;
        Delay {
            mean_ms: self.delay_sum_us as f64 / self.answered.max(1) as f64 / 1000.0,
            p50_ms: quantile(0.5),
            p90_ms: quantile(0.9),
            p99_ms: quantile(0.99),
            p999_ms: quantile(0.999),
            max_ms: self.delays_us.max() as f64 / 1000.0,
        }
    }
}

impl NodeMeasures {
    fn new(capacity: f64) -> Self {
        Self {
            capacity,
            answered: 0,
            delay_sum_us: 0,
            load: 0,
            load_max: 0,
            idle_since_ns: None,
            idle_ns: 0,
            up_since_ns: None,
            up_ns: 0,
            worth_ns: 0.0,
            parts: Parts::WHOLE,
            cpu_before_ns: 0,
            disk_before_ns: 0,
        }
    }

    /// Adds the time since the last change.
    fn settle(&mut self, now_ns: u64) {
        if let Some(since_ns) = &mut self.idle_since_ns {
            self.idle_ns += now_ns - std::mem::replace(since_ns, now_ns);
        }
        if let Some(since_ns) = &mut self.up_since_ns {
            let ns = now_ns - std::mem::replace(since_ns, now_ns);
            self.up_ns += ns;
            self.worth_ns += ns as f64 * self.parts.share();
        }
    }
}

fn disks_worked_ns(node: &Node) -> u64 {
    node.disks.iter().map(crate::queueing::Station::worked_ns).sum()
}
