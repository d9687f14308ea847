//! How a file is sent that is both in memory and open: from the server's memory or from the page cache.
//!
//! One `send` of head and body copies the body once more and finds it in one piece; `sendfile` copies nothing and looks
//! up every page. Which costs less depends on the size, the processor, the network card, and on whether the bytes are
//! still in the CPU's caches: measured here, one was three times the other at 1 MB on one machine, and a fifth dearer
//! on the next. So no constant decides. The server times a small part of the responses, tries the other way now and
//! then, and uses the cheaper one, separately for each class of sizes.

use baton_content::BodySource;
use serde_json::{Value, json};

/// How a file is sent that is both in memory and open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SendWay {
    /// The way that costs less, measured continuously for each class of sizes.
    #[default]
    Measured,
    /// From the server's memory, with one `send`.
    Memory,
    /// From the page cache, with `sendfile`.
    File,
}

/// A choice that is being measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    class: usize,
    way: BodySource,
}

/// What the ways cost, as far as one thread has seen.
#[derive(Debug)]
pub struct SendWays {
    wish: SendWay,
    classes: [Class; CLASSES],
}

/// Files of similar size.
#[derive(Clone, Debug)]
struct Class {
    chosen: BodySource,
    responses: u32,
    /// By `BodySource`.
    costs: [Costs; 2],
}

/// The last costs of one way, in nanoseconds.
#[derive(Clone, Debug, Default)]
struct Costs {
    recent: [u32; RECENT],
    count: usize,
}

impl SendWays {
    /// Costs are unknown as yet.
    pub fn new(wish: SendWay) -> Self {
        let chosen = if wish == SendWay::File { BodySource::File } else { BodySource::Memory };
        let class = Class { chosen, responses: 0, costs: Default::default() };
        Self { wish, classes: std::array::from_fn(|_| class.clone()) }
    }

    /// The way for so many bytes of a file, and whether it is to be [measured](Self::handle_cost). Fewer than the
    /// smallest class has go from memory: what they cost is the cost of their heads.
    pub fn choose(&mut self, size: u64) -> (BodySource, Option<Trial>) {
        match self.wish {
            SendWay::Memory => return (BodySource::Memory, None),
            SendWay::File => return (BodySource::File, None),
            SendWay::Measured if size < SMALLEST_BYTES => return (BodySource::Memory, None),
            SendWay::Measured => {}
        }
        let index = class_of(size);
        let class = &mut self.classes[index];
        class.responses = class.responses.wrapping_add(1);
        let way = match class.responses % TRIAL_EVERY {
            0 => class.chosen,
            1 => other(class.chosen),
            _ => return (class.chosen, None),
        };
        (way, Some(Trial { class: index, way }))
    }

    /// Records the cost of a response that was sent at once.
    pub fn handle_cost(&mut self, trial: Trial, cost_ns: u64) {
        let class = &mut self.classes[trial.class];
        class.costs[trial.way as usize].add(cost_ns);
        let other_way = other(class.chosen);
        let [chosen, rival] = [class.chosen, other_way].map(|way| class.costs[way as usize].median());
        if let (Some(chosen), Some(rival)) = (chosen, rival)
            && u64::from(rival) * 100 < u64::from(chosen) * CHANGE_BELOW_PERCENT
        {
            class.chosen = other_way;
        }
    }

    /// What was chosen and why, for the status of the worker.
    pub fn report(&self) -> Value {
        let measured = self.classes.iter().enumerate().filter(|(_, class)| class.responses > 0);
        measured
            .map(|(index, class)| {
                let [memory, file] = [BodySource::Memory, BodySource::File].map(|way| class.costs[way as usize].median());
                json!({
                    "from_bytes": SMALLEST_BYTES << index,
                    "way": match class.chosen { BodySource::Memory => "memory", BodySource::File => "sendfile" },
                    "memory_ns": memory,
                    "sendfile_ns": file,
                })
            })
            .collect()
    }
}

impl Costs {
    fn add(&mut self, cost_ns: u64) {
        self.recent[self.count % RECENT] = u32::try_from(cost_ns).unwrap_or(u32::MAX);
        self.count += 1;
    }

    /// The median of the last costs, which single interruptions do not distort; `None`: there are too few.
    fn median(&self) -> Option<u32> {
        let mut sorted = self.recent;
        sorted.sort_unstable();
        (self.count >= RECENT).then_some(sorted[RECENT / 2])
    }
}

fn other(way: BodySource) -> BodySource {
    match way {
        BodySource::Memory => BodySource::File,
        BodySource::File => BodySource::Memory,
    }
}

/// Sizes from one power of two to the next are a class. At least [`SMALLEST_BYTES`].
fn class_of(size: u64) -> usize {
    let powers = (size / SMALLEST_BYTES).ilog2();
    (powers as usize).min(CLASSES - 1)
}

/// Where the first class begins.
const SMALLEST_BYTES: u64 = 4096;

/// Up to 4 MiB and more.
const CLASSES: usize = 11;

/// One response in so many is timed, and one goes the other way: with costs that differ by a third, what the trials
/// waste is a hundredth.
const TRIAL_EVERY: u32 = 32;

/// Costs that are remembered of each way.
const RECENT: usize = 15;

/// The other way must cost this much less, in percent of the chosen one: ways of equal cost do not take turns.
const CHANGE_BELOW_PERCENT: u64 = 95;

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets `responses` of a size go out at these costs and returns how many went from memory.
    fn send(ways: &mut SendWays, size: u64, responses: u32, memory_ns: u64, file_ns: u64) -> u32 {
        (0..responses)
            .filter(|_| {
                let (way, trial) = ways.choose(size);
                let cost = if way == BodySource::Memory { memory_ns } else { file_ns };
                if let Some(trial) = trial {
                    ways.handle_cost(trial, cost);
                }
                way == BodySource::Memory
            })
            .count() as u32
    }

    #[test]
    fn the_cheaper_way_is_found_for_each_class_and_found_again_when_it_changes() {
        let mut ways = SendWays::new(SendWay::Measured);
        send(&mut ways, 16 << 10, 2000, 5000, 4000);
        send(&mut ways, 1 << 20, 2000, 100_000, 200_000);
        assert!(send(&mut ways, 16 << 10, 3200, 5000, 4000) <= 100, "sendfile, but for the trials");
        assert!(send(&mut ways, 1 << 20, 3200, 100_000, 200_000) >= 3100, "memory, but for the trials");
        send(&mut ways, 16 << 10, 2000, 3000, 4000);
        assert!(send(&mut ways, 16 << 10, 3200, 3000, 4000) >= 3100);
    }

    #[test]
    fn ways_of_equal_cost_do_not_take_turns() {
        let mut ways = SendWays::new(SendWay::Measured);
        assert!(send(&mut ways, 16 << 10, 6400, 5000, 4900) >= 6200);
    }

    /// A few bytes out of the middle of a file say nothing of files.
    #[test]
    fn what_is_smaller_than_any_class_is_not_measured() {
        let mut ways = SendWays::new(SendWay::Measured);
        assert_eq!(send(&mut ways, SMALLEST_BYTES - 1, 2000, 5000, 1000), 2000);
        assert_eq!(ways.report().as_array().map(Vec::len), Some(0), "no class has seen a response");
        assert!(send(&mut ways, SMALLEST_BYTES, 3200, 5000, 1000) < 3200);
    }

    #[test]
    fn a_wish_is_not_questioned() {
        let mut ways = SendWays::new(SendWay::File);
        assert_eq!(send(&mut ways, 16 << 10, 1000, 1, 1000), 0);
    }
}
