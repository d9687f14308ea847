//! Reports as a page that needs nothing but itself, in the colours of the reader's scheme.

use std::fmt::Write;

use crate::claim::{Claim, Verdict};
use crate::figure::Figure;
use crate::report::Report;
use crate::svg::escaped;
use crate::table::Table;

/// Reports on one page: contents, and for each its figures, claims and tables.
pub fn page(title: &str, reports: &[Report]) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{0}</title><style>{STYLE}</style>\n\
         <h1>{0}</h1>\n",
        escaped(title)
    );
    if reports.len() > 1 {
        page.push_str("<ul>");
        for report in reports {
            let (name, title) = (escaped(&report.name), escaped(&report.title));
            let _ = write!(page, "<li><a href=\"#{name}\">{name}</a>: {title}{}", summary(report));
        }
        page.push_str("</ul>\n");
    }
    for report in reports {
        section(&mut page, report);
    }
    page
}

/// How many of its claims hold.
fn summary(report: &Report) -> String {
    let holding = report.claims.iter().filter(|claim| claim.holds()).count();
    match report.claims.len() {
        0 => String::new(),
        all => format!(" — {holding} of {all} hold"),
    }
}

fn section(page: &mut String, report: &Report) {
    let (name, title) = (escaped(&report.name), escaped(&report.title));
    let _ = writeln!(page, "<h2 id=\"{name}\">{name}: {title}</h2>");
    for paragraph in &report.words {
        let _ = writeln!(page, "<p>{}", escaped(paragraph));
    }
    for figure in &report.figures {
        self::figure(page, figure);
    }
    if !report.claims.is_empty() {
        let row = |claim: &Claim| {
            let class = match claim.verdict {
                Verdict::Holds => "yes",
                Verdict::DoesNotHold(_) => "no",
                Verdict::Open(_) => "open",
            };
            let [published, ours, verdict] =
                [&claim.published, &claim.ours, &claim.verdict.to_string()].map(|text| escaped(text));
            format!("<td>{published}<td>{ours}<td class={class}>{verdict}")
        };
        grid(page, ["published", "here", "verdict"], report.claims.iter().map(row));
    }
    for table in &report.tables {
        if table.is_long {
            let _ = write!(page, "<details><summary>{}</summary>", escaped(&table.title));
            rows(page, table);
            page.push_str("</details>\n");
        } else {
            let _ = writeln!(page, "<h3>{}</h3>", escaped(&table.title));
            rows(page, table);
        }
    }
}

fn figure(page: &mut String, figure: &Figure) {
    let _ = write!(page, "<figure>{}", figure.to_svg());
    let reasons = figure.reasons();
    if !reasons.is_empty() {
        page.push_str("<figcaption><ul>");
        for reason in reasons {
            let _ = write!(page, "<li>{}", escaped(&reason));
        }
        page.push_str("</ul></figcaption>");
    }
    page.push_str("<details><summary>Numbers</summary>");
    rows(page, &Table { note: String::new(), ..figure.table() });
    page.push_str("</details></figure>\n");
}

fn rows(page: &mut String, table: &Table) {
    let row = |row: &Vec<String>| row.iter().map(|cell| format!("<td>{}", escaped(cell))).collect();
    grid(page, table.head.iter().map(String::as_str), table.rows.iter().map(row));
    if !table.note.is_empty() {
        let _ = writeln!(page, "<p>{}", escaped(&table.note));
    }
}

/// A table whose rows are HTML already.
fn grid<'a>(page: &mut String, head: impl IntoIterator<Item = &'a str>, rows: impl Iterator<Item = String>) {
    let head: String = head.into_iter().map(|cell| format!("<th>{}", escaped(cell))).collect();
    let _ = writeln!(page, "<div class=wide><table><tr>{head}</tr>");
    for row in rows {
        let _ = writeln!(page, "<tr>{row}</tr>");
    }
    page.push_str("</table></div>\n");
}

/// Wide tables scroll within themselves, so that the page never does.
const STYLE: &str = include_str!("page.css");
