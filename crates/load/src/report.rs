//! The result of a load.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

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
    /// How long it took: what rates are of.
    pub elapsed: Duration,
    /// How long it took with the wait for requests in flight: what CPU clocks read around the load are of.
    pub span: Duration,
    /// CPU time of the client.
    pub client_cpu: Duration,
    /// From the request to the last byte of the reply, in nanoseconds.
    pub latency_ns: Histogram<u64>,
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
    /// Share of one CPU that the client used.
    pub client_utilisation: f64,
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
            elapsed: Duration::ZERO,
            span: Duration::ZERO,
            client_cpu: Duration::ZERO,
            latency_ns: Histogram::new_with_bounds(LATENCY_NS_MIN, LATENCY_NS_MAX, LATENCY_DIGITS)
                .expect("the bounds are constants"),
        }
    }

    pub(super) fn finished(&mut self, latency: Duration) {
        self.requests += 1;
        self.latency_ns.saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(super) fn fail(&mut self, failure: Failure, detail: String) {
        *self.failures.entry(failure).or_default() += 1;
        self.first_failure.get_or_insert(detail);
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
        writeln!(f, "client       {:.0} % of a CPU", self.client_utilisation * 100.0)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_two_digits() {
        let mut report = LoadReport::new();
        for us in 1..=10_000 {
            report.finished(Duration::from_micros(us));
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
        report.finished(Duration::from_secs(3_600));
        report.finished(Duration::ZERO);
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
