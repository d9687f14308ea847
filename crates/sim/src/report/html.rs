//! Reports as a page: figures, then published claims and whether they hold, then all numbers.

use std::fmt::Write;

use super::contents::Report;
use super::number::brief;
use super::svg::{escaped, render as svg};

pub(super) fn render(reports: &[Report]) -> String {
    let mut page = String::from(HEAD);
    if reports.len() > 1 {
        page.push_str("<ul>");
        for report in reports {
            let failing = report.claims.iter().filter(|claim| !claim.holds).count();
            let verdict = match (report.claims.len(), failing) {
                (0, _) => String::new(),
                (all, 0) => format!(" — {all} of {all} hold"),
                (all, failing) => format!(" — {} of {all} hold", all - failing),
            };
            let _ = write!(
                page,
                "<li><a href=\"#{0}\">{0}</a>: {1}{verdict}",
                report.name,
                escaped(&report.title)
            );
        }
        page.push_str("</ul>\n");
    }
    for report in reports {
        section(&mut page, report);
    }
    page
}

fn section(page: &mut String, report: &Report) {
    let _ = writeln!(page, "<h2 id=\"{0}\">{0}: {1}</h2>", escaped(&report.name), escaped(&report.title));
    for paragraph in &report.words {
        let _ = writeln!(page, "<p>{}</p>", escaped(paragraph));
    }
    for figure in &report.figures {
        let _ = writeln!(page, "<figure>{}</figure>", svg(figure));
    }
    if !report.claims.is_empty() {
        page.push_str("<table><tr><th>published<th>here<th>holds<th>why not</tr>\n");
        for claim in &report.claims {
            let (class, word) = if claim.holds { ("yes", "yes") } else { ("no", "no") };
            let _ = writeln!(
                page,
                "<tr><td>{}<td>{}<td class={class}>{word}<td>{}</tr>",
                escaped(&claim.published),
                escaped(&claim.ours),
                escaped(&claim.note)
            );
        }
        page.push_str("</table>\n");
    }
    for fit in &report.fits {
        let _ = writeln!(page, "<table><tr><th>trace {}<th>published<th>ours</tr>", escaped(&fit.trace));
        for point in &fit.points {
            let (published, ours) = (brief(point.published), brief(point.ours));
            let _ = writeln!(page, "<tr><td>{}<td>{published}<td>{ours}</tr>", escaped(&point.what));
        }
        let _ = writeln!(page, "</table><p>Assumed: {}.</p>", escaped(&fit.assumed));
    }
    numbers(page, report);
}

fn numbers(page: &mut String, report: &Report) {
    if report.runs.is_empty() {
        return;
    }
    page.push_str(
        "<details><summary>All numbers</summary><table><tr><th>trace<th>variant<th>policy<th>nodes<th>requests/s\
         <th>misses, %<th>idle, %<th>processors, %<th>disks, %<th>delay, ms<th>99 % within, ms<th>reassigned</tr>\n",
    );
    for run in &report.runs {
        let outcome = &run.outcome;
        let _ = write!(page, "<tr><td>{}<td>{}", escaped(&outcome.trace), escaped(&run.variant));
        let _ = write!(page, "<td>{}<td>{}", escaped(&outcome.policy), outcome.nodes);
        let values = [
            outcome.throughput,
            100.0 * outcome.miss_ratio,
            100.0 * outcome.idle,
            100.0 * outcome.cpu_busy,
            100.0 * outcome.disk_busy,
            outcome.delay.mean_ms,
            outcome.delay.p99_ms,
            outcome.reassignments as f64,
        ];
        for value in values {
            let _ = write!(page, "<td>{}", brief(value));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></details>\n");
}

const HEAD: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>baton sim</title><style>\
body{font:15px/1.45 sans-serif;max-width:62em;margin:2em auto;padding:0 1em;color:#111;background:#fff}\
table{border-collapse:collapse;margin:1em 0}th,td{border:1px solid #ccc;padding:.25em .6em;text-align:left;\
vertical-align:top}figure{margin:1em 0}svg{max-width:100%;height:auto}.yes{color:#060}.no{color:#c00}\
summary{cursor:pointer}</style>\n<h1>Where requests go</h1>\n";
