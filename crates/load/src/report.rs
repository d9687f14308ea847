//! The result of a load.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use hdrhistogram::Histogram;

use super::busy::BUSY_LIMIT;
use super::fairness::{self, Unfair};
use super::sizes::SizeCounts;

/// A server's failure to answer a request correctly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// Another status than 200.
    Status,
    /// Another length than before, or than the file has.
    Length,
    /// A head that cannot be read or has no Content-Length.
    Head,
    /// More bytes than the head promised.
    Surplus,
    /// The connection ended before the reply was complete.
    EarlyEnd,
    /// Other bytes than before under the same path, or than the file has.
    Changed,
    /// The socket broke: refused, reset.
    Socket,
    /// A new connection was reset before it carried any of the reply.
    TurnedAway,
    /// No request finished for three seconds.
    Stalled,
    /// Some connections waited for their first reply until the end.
    NeverAnswered,
}

/// What became of sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCounts {
    /// All requests answered in time.
    pub complete: u64,
    /// Ended by the timeout.
    pub timed_out: u64,
    /// Ended by a server that had too many connections.
    pub turned_away: u64,
    /// Ended by a wrong answer or a broken connection.
    pub failed: u64,
    /// Requests that were never made, because their session had ended.
    pub requests_lost: u64,
    /// Sessions that were due and found no free connection in the generator.
    pub not_begun: u64,
}

/// The result of a load: counts, rates and latencies.
#[derive(Clone, Debug, Default)]
pub struct LoadReport {
    /// Requests that finished before the end.
    pub requests: u64,
    /// Requests that were in flight at the end, and finished within a second.
    pub late: u64,
    /// Failed ones, by reason.
    pub failures: BTreeMap<Failure, u64>,
    /// The first failure in words.
    pub first_failure: Option<String>,
    /// Kept connections that the server closed between two requests, as it may.
    pub reconnects: u64,
    /// Requests without an answer when the load ended.
    pub unanswered: u64,
    /// Connections opened.
    pub connections: u64,
    /// Bytes of bodies received.
    pub bytes: u64,
    /// Bytes of bodies that were complete in time.
    pub goodput_bytes: u64,
    /// What became of sessions, if the load had any.
    pub sessions: SessionCounts,
    /// Requests that the timeout ended, after the server had read them: [`SizeCounts`] has them by size.
    pub timeouts: u64,
    /// Requests whose connection the server turned away, or that the timeout ended before it accepted the connection or read
    /// them.
    pub unread: u64,
    /// For each client, requests by the size of their files. Empty without sessions.
    pub clients: Vec<SizeCounts>,
    /// How long it took: what rates are of.
    pub elapsed: Duration,
    /// How long it took with the wait for requests in flight: what CPU clocks read around the load are of.
    pub span: Duration,
    /// CPU time of the client.
    pub client_cpu: Duration,
    /// The share of the time in which the client had something to do; of the busiest thread.
    pub client_busy: f64,
    /// From the request to the last byte of the reply.
    pub latencies: Latencies,
    /// The same of the first request of each session alone: how long a player waits before it plays.
    pub starts: Latencies,
}

impl SessionCounts {
    fn add(&mut self, other: Self) {
        self.complete += other.complete;
        self.timed_out += other.timed_out;
        self.turned_away += other.turned_away;
        self.failed += other.failed;
        self.requests_lost += other.requests_lost;
        self.not_begun += other.not_begun;
    }
}

impl LoadReport {
    pub(super) fn finished(&mut self, latency: Duration, body_bytes: u64) {
        self.requests += 1;
        self.goodput_bytes += body_bytes;
        self.latencies.record(latency);
    }

    pub(super) fn started(&mut self, latency: Duration) {
        self.starts.record(latency);
    }

    pub(super) fn fail(&mut self, failure: Failure, detail: String) {
        *self.failures.entry(failure).or_default() += 1;
        self.first_failure.get_or_insert(detail);
    }

    /// What several threads have made together.
    pub(super) fn sum(parts: impl IntoIterator<Item = Result<Self>>) -> Result<Self> {
        let mut sum = Self::default();
        for part in parts {
            let part = part?;
            sum.requests += part.requests;
            sum.late += part.late;
            for (failure, count) in part.failures {
                *sum.failures.entry(failure).or_default() += count;
            }
            sum.first_failure = sum.first_failure.or(part.first_failure);
            sum.reconnects += part.reconnects;
            sum.unanswered += part.unanswered;
            sum.connections += part.connections;
            sum.bytes += part.bytes;
            sum.goodput_bytes += part.goodput_bytes;
            sum.sessions.add(part.sessions);
            sum.timeouts += part.timeouts;
            sum.unread += part.unread;
            sum.clients.extend(part.clients);
            sum.elapsed = sum.elapsed.max(part.elapsed);
            sum.span = sum.span.max(part.span);
            sum.client_cpu += part.client_cpu;
            sum.client_busy = sum.client_busy.max(part.client_busy);
            sum.latencies.add(&part.latencies);
            sum.starts.add(&part.starts);
        }
        Ok(sum)
    }

    /// The criteria of fairness that this load broke.
    pub fn unfair(&self) -> Vec<Unfair> {
        fairness::judge(&self.clients)
    }

    /// Whether the generator may have been the limit, and not the server.
    pub fn client_limited(&self) -> bool {
        self.client_busy >= BUSY_LIMIT || self.sessions.not_begun > 0
    }

    /// How many requests failed.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Requests that the server has answered: what CPU time around the load was spent on.
    pub fn answered(&self) -> u64 {
        self.requests + self.late
    }

    /// Finished requests per second.
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.elapsed.as_secs_f64()
    }

    /// Megabytes (10^6) of bodies per second.
    pub fn megabytes_per_second(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.elapsed.as_secs_f64()
    }

    /// Megabits (10^6) per second of bodies that were complete in time.
    pub fn goodput_mbit(&self) -> f64 {
        self.goodput_bytes as f64 * 8.0 / 1e6 / self.elapsed.as_secs_f64()
    }

    /// Share of one CPU that the client used.
    pub fn client_utilisation(&self) -> f64 {
        self.client_cpu.as_secs_f64() / self.elapsed.as_secs_f64()
    }
}

/// How long answers took, between a microsecond and a minute, to two digits: 64 KB for loads of any length.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

impl Latencies {
    /// Microseconds within which this share of the answers came: 0.5 is the median, 1 the slowest.
    pub fn us(&self, share: f64) -> f64 {
        self.0.value_at_quantile(share) as f64 / 1e3
    }

    fn record(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all histograms have the same bounds");
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self(Histogram::new_with_bounds(1_000, 60_000_000_000, 2).expect("the bounds are constants"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_two_digits() {
        let mut report = LoadReport::default();
        for us in 1..=10_000 {
            report.finished(Duration::from_micros(us), 0);
        }
        report.elapsed = Duration::from_secs(2);
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.01;
        for (share, us) in
            [(0.5, 5_000.0), (0.9, 9_000.0), (0.99, 9_900.0), (0.999, 9_990.0), (1.0, 10_000.0)]
        {
            assert!(near(report.latencies.us(share), us), "{share}: {}", report.latencies.us(share));
        }
        assert!(near(report.rate(), 5_000.0));
    }

    #[test]
    fn a_latency_beyond_the_bounds_counts_as_the_bound() {
        let mut report = LoadReport::default();
        report.finished(Duration::from_secs(3_600), 0);
        report.finished(Duration::ZERO, 0);
        assert_eq!(report.latencies.0.len(), 2);
    }

    #[test]
    fn failures_are_counted_by_reason_and_the_first_is_told() {
        let mut report = LoadReport::default();
        report.fail(Failure::Status, "status 404 for /a".into());
        report.fail(Failure::Status, "status 404 for /b".into());
        report.fail(Failure::EarlyEnd, "gone".into());
        assert_eq!(report.failed(), 3);
        assert_eq!(report.failures, [(Failure::Status, 2), (Failure::EarlyEnd, 1)].into());
        assert_eq!(report.first_failure.as_deref(), Some("status 404 for /a"));
    }
}
