//! What visitors got, second by second: at first, and when the load is spread.

use std::collections::BTreeMap;

use crate::quantity::Quantity;

/// One second, about.
#[derive(Clone, Debug)]
pub(super) struct Second {
    pub(super) seconds: f64,
    /// Documents that visitors got.
    pub(super) documents: u64,
    /// Redirects that visitors followed.
    pub(super) redirects: u64,
    /// By server.
    pub(super) sent_bytes: Vec<u64>,
}

/// So many servers, measured once.
#[derive(Clone, Debug)]
pub(super) struct Figures {
    pub(super) servers: usize,
    pub(super) seconds: Vec<Second>,
    /// Documents that were lent in the end.
    pub(super) away: u64,
}

impl Figures {
    pub(super) fn values(&self) -> BTreeMap<Quantity, f64> {
        let mut values = BTreeMap::from([
            (Quantity::BeginRate, Self::rate(self.begin())),
            (Quantity::Rate, Self::rate(self.settled())),
            (Quantity::Lent, self.away as f64),
            (Quantity::RedirectShare, self.redirects()),
        ]);
        values.extend(self.settles_after().map(|second| (Quantity::SpreadS, second as f64)));
        values.extend(self.busiest().map(|most| (Quantity::Imbalance, most)));
        values
    }

    /// Documents per second in some seconds.
    fn rate(seconds: &[Second]) -> f64 {
        let documents: u64 = seconds.iter().map(|second| second.documents).sum();
        documents as f64 / seconds.iter().map(|second| second.seconds).sum::<f64>().max(f64::MIN_POSITIVE)
    }

    fn begin(&self) -> &[Second] {
        &self.seconds[..self.seconds.len().min(BEGIN)]
    }

    /// The last third.
    fn settled(&self) -> &[Second] {
        &self.seconds[self.seconds.len() * 2 / 3..]
    }

    /// The second from which on what visitors get is within a tenth of what they get in the last third.
    fn settles_after(&self) -> Option<usize> {
        let enough = SETTLED * Self::rate(self.settled());
        (0..self.seconds.len().saturating_sub(BEGIN))
            .find(|begin| Self::rate(&self.seconds[*begin..begin + BEGIN]) >= enough)
    }

    /// What the busiest server sent in the last third, as a multiple of the mean.
    fn busiest(&self) -> Option<f64> {
        let sums: Vec<u64> = (0..self.servers)
            .map(|server| self.settled().iter().map(|second| second.sent_bytes[server]).sum())
            .collect();
        let mean = sums.iter().sum::<u64>() as f64 / self.servers as f64;
        Some(*sums.iter().max()? as f64 / mean).filter(|most| most.is_finite())
    }

    fn redirects(&self) -> f64 {
        let redirects: u64 = self.settled().iter().map(|second| second.redirects).sum();
        let documents: u64 = self.settled().iter().map(|second| second.documents).sum();
        redirects as f64 / documents.max(1) as f64
    }
}

/// Seconds that are the beginning.
const BEGIN: usize = 3;
const SETTLED: f64 = 0.9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hot_spot_settles_when_the_load_is_spread() {
        let figures = |servers, rates: &[u64]| Figures {
            servers,
            away: 3,
            seconds: rates
                .iter()
                .map(|rate| Second {
                    seconds: 1.0,
                    documents: *rate,
                    redirects: 0,
                    sent_bytes: vec![*rate; servers],
                })
                .collect(),
        };
        let one = figures(1, &[100; 12]);
        let two = figures(2, &[100, 100, 100, 120, 150, 190, 200, 200, 200, 200, 200, 200]);
        assert_eq!((one.settles_after(), two.settles_after()), (Some(0), Some(4)));
        let values = two.values();
        let value = |quantity| values.get(&quantity).copied();
        assert_eq!((value(Quantity::Rate), value(Quantity::Imbalance)), (Some(200.0), Some(1.0)));
    }
}
