//! What clients and operators see: delay, the thresholds' effect, a front-end that costs time
//! (sections 3.1.4, 3.3.4, 3.5.3 of the source).

use baton_dispatch::PolicyName::{Lard, LardR, Wrr};
use baton_figures::{Claim, Figure, Line, Published};

use super::{Lab, Sweep, Workload};
use crate::report::SimulationReport;

pub(super) fn delay(lab: &mut Lab<'_>, mut report: SimulationReport) -> SimulationReport {
    const NODES: [usize; 4] = [4, 8, 12, 16];
    for (workload, name, published, tolerated) in
        [(Workload::Rice, "rice", 25.0, 33.0), (Workload::Ibm, "ibm", 50.0, 62.0)]
    {
        let sweep = Sweep::run(lab, workload, &[LardR, Wrr], &NODES, "", |_| ());
        let title = format!("Mean delay, {name} trace");
        let mut figure = sweep.figure(&format!("delay-{name}"), &title, "ms", |run| run.delay.mean_ms);
        let ratio = |nodes| 100.0 * sweep.of(LardR, nodes).delay.mean_ms / sweep.of(Wrr, nodes).delay.mean_ms;
        figure.published.push(Published::point(
            8.0,
            published / 100.0 * sweep.of(Wrr, 8).delay.mean_ms,
            format!("published: {published:.0} % of WRR"),
        ));
        report.findings.figures.push(figure);
        report.findings.claims.push(Claim::new(
            &format!("{name}: the mean delay of LARD/R is {published:.0} % of that of WRR"),
            format!("{:.0} % with 8 nodes, {:.0} % with 16", ratio(8), ratio(16)),
            ratio(8) < tolerated && ratio(16) < tolerated,
            "",
        ));
        report.runs.extend(sweep.into_runs());
    }
    report.findings.words.push(
        "As many connections as the admission limit lets in are in the cluster all the time, so the mean delay is \
         the limit divided by the throughput (Little's law)."
            .into(),
    );
    report
}

pub(super) fn thresholds(lab: &mut Lab<'_>, mut report: SimulationReport) -> SimulationReport {
    const T_HIGH: [u32; 8] = [30, 35, 45, 55, 65, 85, 105, 145];
    const NODES: usize = 8;
    let sweeps = T_HIGH.map(|t_high| {
        Sweep::run(lab, Workload::Rice, &[Lard], &[NODES], &format!("T_high {t_high}"), |scenario| {
            scenario.settings.t_high = t_high;
        })
    });
    let points = |value: &dyn Fn(&Sweep) -> f64| -> Vec<(f64, f64)> {
        T_HIGH.iter().zip(&sweeps).map(|(t_high, sweep)| (f64::from(t_high - 25), value(sweep))).collect()
    };
    let spread = points(&|sweep| sweep.of(Lard, NODES).delay_spread_ms);
    let throughput = points(&|sweep| sweep.throughput(Lard, NODES));
    let figure = |name: &str, title: &str, y: &str, points: &[(f64, f64)]| Figure {
        name: name.into(),
        title: format!("{title}, eight nodes, Rice trace"),
        x: "T_high - T_low, connections".into(),
        y: y.into(),
        lines: vec![Line::exact("lard", points.to_vec())],
        ..Figure::default()
    };
    report.findings.figures.push(figure("thresholds-throughput", "Throughput", "requests/s", &throughput));
    report.findings.figures.push(figure(
        "thresholds-spread",
        "Difference in mean delay between nodes",
        "ms",
        &spread,
    ));

    let correlation = correlation(&spread);
    report.findings.claims.push(Claim::new(
        "the largest difference in delay grows about linearly with T_high - T_low",
        format!("correlation {correlation:.2}"),
        correlation > 0.9,
        "here the difference is that of mean delays over the whole run, which moving targets evens out; the source \
         does not define its own",
    ));
    let (first, middle, last) = (throughput[0].1, throughput[4].1, throughput[7].1);
    report.findings.claims.push(Claim::new(
        "throughput grows mildly and flattens",
        format!("{first:.0}, {middle:.0}, {last:.0} requests/s with T_high 30, 65, 145"),
        middle > first && last / middle - 1.0 < middle / first - 1.0,
        "",
    ));
    report.runs = sweeps.into_iter().flat_map(Sweep::into_runs).collect();
    report
}

pub(super) fn prototype(lab: &mut Lab<'_>, mut report: SimulationReport) -> SimulationReport {
    const NODES: [usize; 6] = [1, 2, 3, 4, 5, 6];
    /// The rest of 128 MB: the middle of the observed 70 to 97 MB.
    const CACHE_BYTES: u64 = 84 << 20;
    /// A hand-off (194 µs), and ten acknowledgements to forward (9 µs each) for the packets of 17 KB.
    const FRONT_END_US: f64 = 284.0;
    let sweep = Sweep::run(lab, Workload::Rice, &[LardR, Wrr], &NODES, "84 MB", |scenario| {
        scenario.profile.cache_bytes = CACHE_BYTES;
        scenario.front_ends.cost_us = FRONT_END_US;
    });
    let mut figure =
        sweep.figure("prototype", "Throughput, nodes with 84 MB", "requests/s", |run| run.throughput);
    let ratio = sweep.throughput(LardR, 6) / sweep.throughput(Wrr, 6);
    figure.published.push(Published::point(6.0, 2.5 * sweep.throughput(Wrr, 6), "published: 2.5 × WRR"));
    report.findings.figures.push(figure);
    report.findings.claims.push(Claim::new(
        "with six nodes, LARD/R does 2.5 times what WRR does (measured on the prototype)",
        format!("{ratio:.2} times"),
        (2.0..3.2).contains(&ratio),
        "the prototype ran a segment of the log, on Apache, with caches that the kernel replaced by another rule",
    ));
    let outcome = sweep.of(LardR, 6);
    // Simulated nodes are faster than Apache was; the front-end's work grows with their throughput.
    let at_published = outcome.front_end_busy * 280.0 / outcome.mbit_s;
    report.findings.claims.push(Claim::new(
        "its front-end is 60 % busy then, with 280 Mb/s",
        format!(
            "{:.0} % busy with {:.0} Mb/s, which makes {:.0} % for 280 Mb/s",
            100.0 * outcome.front_end_busy,
            outcome.mbit_s,
            100.0 * at_published
        ),
        (0.5..0.7).contains(&at_published),
        "",
    ));
    report.runs = sweep.into_runs();
    report
}

/// Pearson's coefficient.
fn correlation(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |value: fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let sum = |term: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(term).sum::<f64>();
    let product = sum(&|point| (point.0 - x) * (point.1 - y));
    let squares = sum(&|point| (point.0 - x).powi(2)) * sum(&|point| (point.1 - y).powi(2));
    if squares > 0.0 { product / squares.sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::correlation;

    #[test]
    fn correlation_of_lines_and_of_nothing() {
        assert!((correlation(&[(1.0, 3.0), (2.0, 5.0), (4.0, 9.0)]) - 1.0).abs() < 1e-12);
        assert_eq!(correlation(&[(1.0, 3.0), (2.0, 3.0)]), 0.0);
    }
}
