//! The result of a load.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use anyhow::Result;
use hdrhistogram::Histogram;
use serde::Serialize;

use super::busy::BUSY_LIMIT;
use super::fairness::{self, Unfair};
use super::sizes::SizeCounts;

/// A server's failure to answer a request correctly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
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
    /// No request finished for three seconds.
    Stalled,
    /// Some connections waited for their first reply until the end.
    NeverAnswered,
}

/// What became of sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SessionCounts {
    /// All requests answered in time.
    pub complete: u64,
    /// Ended by the timeout.
    pub timed_out: u64,
    /// Ended by a wrong answer or a broken connection.
    pub failed: u64,
    /// Requests that were never made, because their session had ended.
    pub requests_lost: u64,
    /// Sessions that were due and found no free connection in the generator.
    pub not_begun: u64,
}

/// The result of a load: counts, rates and latencies.
#[derive(Clone, Debug)]
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
    /// Requests that the timeout ended before the server accepted the connection or read them.
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
    /// From the request to the last byte of the reply, in nanoseconds.
    pub latency_ns: Histogram<u64>,
    /// The same of the first request of each session alone: how long a player waits before it plays.
    pub start_ns: Histogram<u64>,
}

/// The figures of a [`LoadReport`] as they are printed.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// Finished requests.
    pub requests: u64,
    /// Failed ones, by reason.
    pub failures: BTreeMap<Failure, u64>,
    /// The first failure in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_failure: Option<String>,
    /// Kept connections that the server closed between two requests.
    pub reconnects: u64,
    /// Connections opened.
    pub connections: u64,
    /// Duration.
    pub seconds: f64,
    /// Requests per second.
    pub requests_per_second: f64,
    /// Megabytes (10^6) of bodies per second.
    pub megabytes_per_second: f64,
    /// Megabits (10^6) per second of bodies that were complete in time.
    pub goodput_mbit: f64,
    /// What became of sessions.
    #[serde(skip_serializing_if = "SessionCounts::are_none")]
    pub sessions: SessionCounts,
    /// Requests that the timeout ended, after the server had read them.
    pub timeouts: u64,
    /// Requests that the timeout ended before that.
    pub unread: u64,
    /// Timeouts and requests by the size of the file, over all clients.
    #[serde(skip_serializing_if = "SizeCounts::are_none")]
    pub sizes: SizeCounts,
    /// The criteria of fairness that are broken: with any of them, the figures are no result but an X.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unfair: Vec<String>,
    /// Share of one CPU that the client used.
    pub client_utilisation: f64,
    /// The client, and not the server, may have been the limit.
    pub client_limited: bool,
    /// Quantiles of the latency.
    pub latency_us: Quantiles,
}

/// Quantiles of the latency in microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Quantiles {
    /// The median.
    pub p50: f64,
    /// Nine in ten were faster.
    pub p90: f64,
    /// 99 in a hundred were faster.
    pub p99: f64,
    /// 999 in a thousand were faster.
    pub p999: f64,
    /// The slowest.
    pub max: f64,
}

impl SessionCounts {
    /// Whether the load had no sessions.
    #[must_use]
    pub fn are_none(&self) -> bool {
        *self == Self::default()
    }

    fn add(&mut self, other: Self) {
        self.complete += other.complete;
        self.timed_out += other.timed_out;
        self.failed += other.failed;
        self.requests_lost += other.requests_lost;
        self.not_begun += other.not_begun;
    }
}

impl LoadReport {
    pub(super) fn new() -> Self {
        Self {
            requests: 0,
            late: 0,
            failures: BTreeMap::new(),
            first_failure: None,
            reconnects: 0,
            unanswered: 0,
            connections: 0,
            bytes: 0,
            goodput_bytes: 0,
            sessions: SessionCounts::default(),
            timeouts: 0,
            unread: 0,
            clients: Vec::new(),
            elapsed: Duration::ZERO,
            span: Duration::ZERO,
            client_cpu: Duration::ZERO,
            client_busy: 0.0,
            latency_ns: latencies(),
            start_ns: latencies(),
        }
    }

    pub(super) fn finished(&mut self, latency: Duration, body_bytes: u64) {
        self.requests += 1;
        self.goodput_bytes += body_bytes;
        self.latency_ns.saturating_record(nanoseconds(latency));
    }

    pub(super) fn started(&mut self, latency: Duration) {
        self.start_ns.saturating_record(nanoseconds(latency));
    }

    pub(super) fn fail(&mut self, failure: Failure, detail: String) {
        *self.failures.entry(failure).or_default() += 1;
        self.first_failure.get_or_insert(detail);
    }

    /// What several threads have made together.
    pub(super) fn sum(parts: impl IntoIterator<Item = Result<Self>>) -> Result<Self> {
        let mut sum = Self::new();
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
            sum.latency_ns.add(part.latency_ns).expect("all histograms have the same bounds");
            sum.start_ns.add(part.start_ns).expect("all histograms have the same bounds");
        }
        Ok(sum)
    }

    /// The criteria of fairness that this load broke.
    #[must_use]
    pub fn unfair(&self) -> Vec<Unfair> {
        fairness::judge(&self.clients)
    }

    /// Whether the generator may have been the limit, and not the server.
    #[must_use]
    pub fn client_limited(&self) -> bool {
        self.client_busy >= BUSY_LIMIT || self.sessions.not_begun > 0
    }

    /// How many requests failed.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Requests that the server has answered: what CPU time around the load was spent on.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.requests + self.late
    }

    /// The figures to print.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let seconds = self.elapsed.as_secs_f64();
        let us = |quantile| self.latency_ns.value_at_quantile(quantile) as f64 / 1e3;
        Figures {
            requests: self.requests,
            failures: self.failures.clone(),
            first_failure: self.first_failure.clone(),
            reconnects: self.reconnects,
            connections: self.connections,
            seconds,
            requests_per_second: self.requests as f64 / seconds,
            megabytes_per_second: self.bytes as f64 / 1e6 / seconds,
            goodput_mbit: self.goodput_bytes as f64 * 8.0 / 1e6 / seconds,
            sessions: self.sessions,
            timeouts: self.timeouts,
            unread: self.unread,
            sizes: SizeCounts::sum(&self.clients),
            unfair: self.unfair().iter().map(Unfair::to_string).collect(),
            client_limited: self.client_limited(),
            client_utilisation: self.client_cpu.as_secs_f64() / seconds,
            latency_us: Quantiles {
                p50: us(0.5),
                p90: us(0.9),
                p99: us(0.99),
                p999: us(0.999),
                max: us(1.0),
            },
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quantiles { p50, p90, p99, p999, max } = self.latency_us;
        writeln!(
            f,
            "requests     {} in {:.2} s over {} connections",
            self.requests, self.seconds, self.connections
        )?;
        writeln!(f, "rate         {:.0}/s, {:.1} MB/s", self.requests_per_second, self.megabytes_per_second)?;
        writeln!(
            f,
            "latency      {p50:.0} us median, 90 % {p90:.0}, 99 % {p99:.0}, 99.9 % {p999:.0}, worst {max:.0}"
        )?;
        let limit = if self.client_limited { ": it was the limit" } else { "" };
        writeln!(f, "client       {:.0} % of a CPU{limit}", self.client_utilisation * 100.0)?;
        let SessionCounts { complete, timed_out, failed, requests_lost, not_begun } = self.sessions;
        if !self.sessions.are_none() {
            writeln!(f, "goodput      {:.1} Mbit/s", self.goodput_mbit)?;
            writeln!(f, "sessions     {complete} complete, {timed_out} timed out, {failed} failed")?;
            writeln!(
                f,
                "timeouts     {}, and {} before the server read the request",
                self.timeouts, self.unread
            )?;
            writeln!(f, "never made   {requests_lost} requests of ended sessions, {not_begun} sessions")?;
        }
        for unfair in &self.unfair {
            writeln!(f, "unfair       {unfair}")?;
        }
        if self.reconnects > 0 {
            writeln!(f, "reconnects   {} (kept connections that the server closed)", self.reconnects)?;
        }
        for (failure, count) in &self.failures {
            writeln!(f, "failed       {count} x {failure:?}")?;
        }
        if let Some(first) = &self.first_failure {
            writeln!(f, "first        {first}")?;
        }
        Ok(())
    }
}

/// Latencies are kept between a microsecond and a minute, to two digits: 64 KB for loads of any length.
const LATENCY_NS_MIN: u64 = 1_000;
const LATENCY_NS_MAX: u64 = 60_000_000_000;
const LATENCY_DIGITS: u8 = 2;

fn latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(LATENCY_NS_MIN, LATENCY_NS_MAX, LATENCY_DIGITS)
        .expect("the bounds are constants")
}

fn nanoseconds(latency: Duration) -> u64 {
    u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_two_digits() {
        let mut report = LoadReport::new();
        for us in 1..=10_000 {
            report.finished(Duration::from_micros(us), 0);
        }
        report.elapsed = Duration::from_secs(2);
        let figures = report.figures();
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.01;
        assert!(near(figures.latency_us.p50, 5_000.0), "{:?}", figures.latency_us);
        assert!(near(figures.latency_us.p90, 9_000.0), "{:?}", figures.latency_us);
        assert!(near(figures.latency_us.p99, 9_900.0), "{:?}", figures.latency_us);
        assert!(near(figures.latency_us.p999, 9_990.0), "{:?}", figures.latency_us);
        assert!(near(figures.latency_us.max, 10_000.0), "{:?}", figures.latency_us);
        assert!(near(figures.requests_per_second, 5_000.0));
    }

    #[test]
    fn a_latency_beyond_the_bounds_counts_as_the_bound() {
        let mut report = LoadReport::new();
        report.finished(Duration::from_secs(3_600), 0);
        report.finished(Duration::ZERO, 0);
        assert_eq!(report.latency_ns.len(), 2);
    }

    #[test]
    fn failures_are_counted_by_reason_and_the_first_is_told() {
        let mut report = LoadReport::new();
        report.fail(Failure::Status, "status 404 for /a".into());
        report.fail(Failure::Status, "status 404 for /b".into());
        report.fail(Failure::EarlyEnd, "gone".into());
        report.elapsed = Duration::from_secs(1);
        assert_eq!(report.failed(), 3);
        let json = serde_json::to_value(report.figures()).unwrap();
        assert_eq!(json["failures"], serde_json::json!({ "status": 2, "early-end": 1 }));
        assert_eq!(json["first_failure"], "status 404 for /a");
    }
}
