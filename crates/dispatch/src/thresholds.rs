//! The loads between which a node has enough to do, and how they come about.

/// When the load of a node is out of balance with those of others, in active connections of a standard node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// T_low: below it, a node is likely to have idle resources.
    pub t_low: f32,
    /// T_high: above it, requests are likely to be delayed. More than `t_low`.
    pub t_high: f32,
}

/// How thresholds are fitted: they begin with those of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fits {
    /// T_low, if it stays as it is set.
    pub t_low: Option<u32>,
    /// The difference in delay between nodes that is tolerated (D), in microseconds.
    pub delay_us: u64,
}

/// Thresholds, and what they were derived from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The thresholds.
    pub thresholds: Thresholds,
    /// What was seen last; `None`: nothing yet, or they are set.
    pub seen: Option<Seen>,
}

/// What was seen of the nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// By how much answers grow with load: 1 is as much, 0 is not at all.
    pub elasticity: f32,
    /// Answers of a standard node in a second (1 / R).
    pub answers_per_s: f32,
}
