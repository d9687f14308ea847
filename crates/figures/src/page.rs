//! Reports as a page that needs nothing but itself, in the colours of the reader's scheme.

use std::fmt::Write;

use crate::claim::Verdict;
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
        page.push_str("<div class=wide><table><tr><th>published<th>here<th>verdict</tr>\n");
        for claim in &report.claims {
            let class = match claim.verdict {
                Verdict::Holds => "yes",
                Verdict::DoesNotHold(_) => "no",
                Verdict::Open(_) => "open",
            };
            let [published, ours, verdict] =
                [&claim.published, &claim.ours, &claim.verdict.to_string()].map(|text| escaped(text));
            let _ = writeln!(page, "<tr><td>{published}<td>{ours}<td class={class}>{verdict}</tr>");
        }
        page.push_str("</table></div>\n");
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
    page.push_str("<div class=wide><table><tr>");
    for cell in &table.head {
        let _ = write!(page, "<th>{}", escaped(cell));
    }
    page.push_str("</tr>\n");
    for row in &table.rows {
        page.push_str("<tr>");
        for cell in row {
            let _ = write!(page, "<td>{}", escaped(cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></div>\n");
    if !table.note.is_empty() {
        let _ = writeln!(page, "<p>{}", escaped(&table.note));
    }
}

/// Wide tables scroll within themselves, so that the page never does.
const STYLE: &str = include_str!("page.css");
