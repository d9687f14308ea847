//! The turns summed up, as Markdown.

use std::fmt::Write;

use serde_json::Value;

use super::turn::{
    COLD_CONNECTIONS, Latency, MIX_CONNECTIONS, RESIDENT_CONNECTIONS, RESIDENT_REQUESTS_PER_SECOND,
    Throughput, Turn,
};
use crate::markdown::{begin_table, failed_row, number, row, spread};
use crate::stats::{median, paired_ratio};

/// Under which conditions was measured.
#[derive(Debug)]
pub(super) struct Conditions {
    pub(super) machine: String,
    pub(super) memory_mib: u64,
    pub(super) disk_mb_per_s: f64,
    pub(super) read_ahead_kb: u32,
    pub(super) content_bytes: u64,
    pub(super) seconds: f64,
}

/// Both tables.
pub(super) fn markdown(
    conditions: &Conditions,
    throughput: &[Turn<Throughput>],
    latency: &[Turn<Latency>],
) -> String {
    let Conditions { machine, memory_mib, disk_mb_per_s, read_ahead_kb, content_bytes, seconds } = conditions;
    let rounds = throughput.iter().map(|turn| turn.round + 1).max().unwrap_or(0);
    let mut text = format!(
        "{machine}\n\nContent {} MB; memory of each server {memory_mib} MiB, page cache included; disk {disk_mb_per_s} MB/s, \
         read-ahead {read_ahead_kb} KiB; {rounds} rounds of {seconds} s, medians.\n",
        content_bytes / 1_000_000
    );

    let _ = writeln!(text, "\n## SPECweb99-like mix, {MIX_CONNECTIONS} connections\n");
    let reference = throughput.first().map(|turn| turn.server.clone()).unwrap_or_default();
    let ratio = format!("ratio to {reference}");
    begin_table(
        &mut text,
        "server",
        &["requests/s", &ratio, "MB/s", "of it from disk", "p50 ms", "p99 ms", "CPU us/request", "spread"],
    );
    let rates = |server: &str| by_round(throughput, server, |figures| figures.requests_per_second);
    let reference_rates = rates(&reference);
    for server in servers(throughput) {
        if let Some(why) = failure(throughput, server) {
            failed_row(&mut text, server, why);
            continue;
        }
        let of = |field: fn(&Throughput) -> f64| values(throughput, server, field);
        let fields = [
            number(median(&of(|f| f.requests_per_second)), 0),
            number(paired_ratio(&rates(server), &reference_rates), 2),
            number(median(&of(|f| f.megabytes_per_second)), 1),
            number(median(&of(|f| f.disk_megabytes_per_second)), 1),
            number(median(&of(|f| f.p50_ms)), 1),
            number(median(&of(|f| f.p99_ms)), 0),
            number(median(&of(|f| f.cpu_us_per_request)), 0),
            spread(&of(|f| f.requests_per_second)),
        ];
        row(&mut text, server, &fields);
    }

    let _ = writeln!(
        text,
        "\n## Latency of resident files, {RESIDENT_REQUESTS_PER_SECOND} requests/s over {RESIDENT_CONNECTIONS} connections, \
         beside {COLD_CONNECTIONS} connections that request cold files\n"
    );
    begin_table(
        &mut text,
        "server",
        &["p50 ms", "p99 ms", "max ms", "p99 ms alone", "max ms alone", "cold MB/s"],
    );
    for server in servers(latency) {
        if let Some(why) = failure(latency, server) {
            failed_row(&mut text, server, why);
            continue;
        }
        let of = |field: fn(&Latency) -> f64| median(&values(latency, server, field));
        let fields = [
            number(of(|f| f.beside.p50_ms), 2),
            number(of(|f| f.beside.p99_ms), 2),
            number(of(|f| f.beside.max_ms), 1),
            number(of(|f| f.alone.p99_ms), 2),
            number(of(|f| f.alone.max_ms), 1),
            number(of(|f| f.cold_megabytes_per_second), 1),
        ];
        row(&mut text, server, &fields);
    }
    text
}

/// Notes on a server: that memory ran out, and what it chose.
pub(super) fn after(server: &str, out_of_memory: u64, chosen: &[Value]) -> String {
    let mut text = String::new();
    if out_of_memory > 0 {
        let _ = writeln!(text, "\n{server}: {out_of_memory} processes killed for want of memory.");
    }
    for choice in chosen {
        let _ = writeln!(text, "\n{server}, in the end: `{choice}`");
    }
    text
}

fn servers<F>(turns: &[Turn<F>]) -> impl Iterator<Item = &str> {
    turns.iter().filter(|turn| turn.round == 0).map(|turn| turn.server.as_str())
}

/// One wrong answer is enough.
fn failure<'a, F>(turns: &'a [Turn<F>], server: &str) -> Option<&'a str> {
    turns
        .iter()
        .filter(|turn| turn.server == server)
        .find_map(|turn| turn.outcome.as_ref().err().map(String::as_str))
}

fn by_round<F>(turns: &[Turn<F>], server: &str, field: impl Fn(&F) -> f64) -> Vec<(usize, f64)> {
    let own = turns.iter().filter(|turn| turn.server == server);
    own.filter_map(|turn| Some((turn.round, field(turn.outcome.as_ref().ok()?)))).collect()
}

fn values<F>(turns: &[Turn<F>], server: &str, field: impl Fn(&F) -> f64) -> Vec<f64> {
    by_round(turns, server, field).into_iter().map(|(_, value)| value).collect()
}
