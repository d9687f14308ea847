//! How long it takes until as many bytes were missed as the cache holds: the time in which all of it could have changed.

use crate::policy::interface::Millis;

#[derive(Debug, Default)]
pub(super) struct Turnover {
    bytes_max: u64,
    missed_bytes: u64,
    began: Option<Millis>,
    mean_ms: Option<f64>,
}

impl Turnover {
    pub(super) fn set_bytes_max(&mut self, bytes_max: u64) {
        self.bytes_max = bytes_max;
    }

    /// A reader wanted bytes that are not here.
    pub(super) fn handle_miss(&mut self, now: Millis, bytes: u64) {
        let began = *self.began.get_or_insert(now);
        self.missed_bytes = self.missed_bytes.saturating_add(bytes);
        if self.missed_bytes >= self.bytes_max {
            let took = now.saturating_sub(began) as f64;
            self.mean_ms = Some(self.mean_ms.map_or(took, |mean| (mean + took) / 2.0));
            self.missed_bytes = 0;
            self.began = Some(now);
        }
    }

    /// The mean, later turns weighing more; before the first turn the time since the first miss, at least 1.
    pub(super) fn millis(&self, now: Millis) -> f64 {
        let so_far = || now.saturating_sub(self.began.unwrap_or(now)) as f64;
        self.mean_ms.unwrap_or_else(so_far).max(1.0)
    }
}
