//! What came out of a run.

use serde::Serialize;

/// The numbers of one site with one number of servers. They are those of the last third of the run, unless they say
/// otherwise.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DocumentOutcome {
    /// The site.
    pub site: String,
    /// Servers.
    pub servers: usize,
    /// The share of walks that begin at a page that became hot in the middle of the run; 0 if none did.
    pub hot_share: f64,
    /// Documents sent to clients per second. Redirects do not count.
    pub connections_per_s: f64,
    /// Bytes of these documents per second, in millions.
    pub mbytes_per_s: f64,
    /// Redirects of all answers to clients, 0 to 1.
    pub redirected: f64,
    /// Connections turned away because a queue was full, of all attempts, 0 to 1.
    pub refused: f64,
    /// The home server's share of the documents sent to clients.
    pub home_share: f64,
    /// The share of the document that was sent most often. One server has it at a time: if documents cost about the same, no number
    /// of servers does more than one divided by this share times what one does.
    pub hottest: f64,
    /// Documents that the busiest server sent, as a multiple of the mean.
    pub busiest: f64,
    /// Documents sent to peers, in the whole run.
    pub migrations: u64,
    /// Documents called back, in the whole run.
    pub recalls: u64,
    /// Documents that are with peers at the end.
    pub lent: u64,
    /// How long it took from the start, or from when the page became hot, until a minute's throughput was 95 % of that at the
    /// end, in seconds.
    pub settled_s: f64,
    /// Documents sent to clients per second, for every ten seconds of the run.
    pub timeline: Vec<f64>,
}

/// The length of a step of the timeline.
pub(super) const WINDOW_S: u64 = 10;
/// Steps that are averaged to see whether throughput has settled: a minute.
const MINUTE: usize = 6;
const SETTLED: f64 = 0.95;

/// How many seconds after the step `from` of a timeline throughput was what it is at the end: the mean of the last sixth of the
/// timeline.
pub(super) fn settling_s(timeline: &[f64], from: usize) -> f64 {
    let end = &timeline[timeline.len() - timeline.len().div_ceil(6)..];
    let rest = &timeline[from.min(timeline.len())..];
    let minutes = rest.windows(MINUTE.min(rest.len()).max(1));
    let settled = minutes.enumerate().find(|(_, minute)| mean(minute) >= SETTLED * mean(end));
    (settled.map_or(rest.len(), |(at, _)| at) as u64 * WINDOW_S) as f64
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::settling_s;

    #[test]
    fn throughput_settles_when_a_minute_is_what_the_end_is() {
        let rising: Vec<f64> = (0..60).map(|step| f64::min(f64::from(step), 20.0)).collect();
        // Steps 16 to 21 are 16, 17, 18, 19, 20, 20: the mean is 18.3; from 17 on it is 19.
        assert_eq!(settling_s(&rising, 0), 170.0);
        assert_eq!(settling_s(&rising, 30), 0.0);
        let dip: Vec<f64> = (0..60).map(|step| if (30..40).contains(&step) { 5.0 } else { 20.0 }).collect();
        assert_eq!(settling_s(&dip, 30), 100.0);
    }
}
