//! What has happened in many seeds: a simulation in which nothing goes wrong proves nothing.

/// How often.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) answered: u64,
    pub(crate) by_nodes: u64,
    pub(crate) kept: u64,
    pub(crate) stayed: u64,
    pub(crate) returned: u64,
    pub(crate) resets: u64,
    pub(crate) late: u64,
    pub(crate) lost_nodes: u64,
    pub(crate) taken_again: u64,
    /// SYNs on connections that were not over.
    pub(crate) asked_back: u64,
    /// Connections that their node gave back because it was drained.
    pub(crate) given_back: u64,
}

impl Sum {
    pub(crate) fn add(&mut self, other: &Self) {
        self.answered += other.answered;
        self.by_nodes += other.by_nodes;
        self.kept += other.kept;
        self.stayed += other.stayed;
        self.returned += other.returned;
        self.resets += other.resets;
        self.late += other.late;
        self.lost_nodes += other.lost_nodes;
        self.taken_again += other.taken_again;
        self.asked_back += other.asked_back;
        self.given_back += other.given_back;
    }

    /// Each of these has happened often.
    pub(crate) fn check(&self) {
        assert!(self.by_nodes > self.answered / 10, "{self:?}");
        for count in [
            self.kept,
            self.stayed,
            self.returned,
            self.resets,
            self.late,
            self.lost_nodes,
            self.taken_again,
            self.asked_back,
            self.given_back,
        ] {
            assert!(count > 5, "{self:?}");
        }
    }
}
