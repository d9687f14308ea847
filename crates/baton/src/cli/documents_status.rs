//! The answer to `baton ctl documents`, for humans: what is where, and how busy the servers are.

use baton_report::{counted, counted_as};
use serde_json::Value;

use super::status::elements;

/// The part of a status about documents, as lines.
pub(super) fn for_humans(documents: &Value) -> String {
    if documents.is_null() {
        return "no site shares its load: see `documents` of a site\n".into();
    }
    let sites = documents["sites"].as_array().map(Vec::as_slice).unwrap_or_default();
    if sites.is_empty() {
        return "the process that decides has not said anything yet\n".into();
    }
    sites.iter().map(site).collect::<Vec<_>>().join("\n")
}

/// Where the document at a path is, and why.
pub(super) fn of_document(path: &str, told: &Value) -> String {
    let sites = elements(told);
    if sites.is_empty() {
        return format!("{path}: no site that shares its load has such a document\n");
    }
    sites.iter().map(document).collect()
}

fn document(one: &Value) -> String {
    let text = |key: &str| one[key].as_str().unwrap_or_default();
    let place = match &one["address"] {
        Value::Null => format!("at home, {}", text("site")),
        _ if one["announced"] == true => format!("away: clients get 307 to {}", text("address")),
        _ => format!("away soon, at {}: its server has to be told first", text("address")),
    };
    let pages: Vec<_> = elements(&one["pinned_by"]).iter().filter_map(Value::as_str).collect();
    let pages = if pages.is_empty() { String::new() } else { format!(": {}", pages.join(", ")) };
    let number = |key: &str| one[key].as_u64().unwrap_or(0);
    format!(
        "{}: {place}\n  {}{pages}\n  {} in this interval, of {} that a move needs; linked from {}\n",
        text("document"),
        text("why"),
        of_load(one, number("load")),
        number("threshold").max(1),
        counted(number("linked_from"), "page"),
    )
}

/// A number that may be unknown.
fn number(value: &Value) -> String {
    value.as_u64().map_or("?".into(), |number| number.to_string())
}

/// A load in the unit of its metric.
fn of_load(of: &Value, load: u64) -> String {
    match of["metric"].as_str() {
        Some("requests") => counted(load, "request"),
        Some("bytes") => counted(load, "byte"),
        _ => format!("{} with 64 KiB a request", counted(load, "byte")),
    }
}

fn site(site: &Value) -> String {
    let several = |value: &Value, one: &str| counted_as(number(value), value.as_u64().unwrap_or(0), one);
    let mut out = format!(
        "{}: {} a second, {}, of which {} may move; {}, {}\n",
        site["at"].as_str().unwrap_or_default(),
        of_load(site, site["load"].as_u64().unwrap_or(0)),
        several(&site["documents"], "document"),
        number(&site["movable"]),
        several(&site["moved"], "move"),
        recalls(&site["recalled"]),
    );
    for peer in site["peers"].as_array().into_iter().flatten() {
        let at = peer["at"].as_str().unwrap_or_default();
        let silences = peer["silences"].as_u64().unwrap_or(0);
        let load = match (peer["load"].as_u64(), silences) {
            (Some(load), 0) => {
                format!("{} a second, heard {} ms before", of_load(site, load), number(&peer["heard_ms"]))
            }
            (_, 0) => "not heard of yet".into(),
            (_, silences) => format!("silent, {} unanswered", counted(silences, "question")),
        };
        out.push_str(&format!(
            "  {at}: {load}; has {}, lends {}\n",
            number(&peer["holds"]),
            number(&peer["lends"])
        ));
    }
    for lent in site["lent"].as_array().into_iter().flatten() {
        let document = lent["document"].as_str().unwrap_or_default();
        let state = match lent["announced"].as_bool() {
            Some(true) => "",
            _ => " (not announced yet: its server has to be told first)",
        };
        let pages = several(&lent["linked_from"], "page");
        let address = lent["address"].as_str().unwrap_or_default();
        out.push_str(&format!("  {document} -> {address}, linked from {pages}{state}\n"));
    }
    for (why, count) in site["refused"].as_object().into_iter().flatten() {
        out.push_str(&format!("  refused: {} ({why})\n", several(count, "message")));
    }
    out
}

/// How often documents were called home, and why: their peers were busier, or silent.
fn recalls(by_reason: &Value) -> String {
    let counts = by_reason.as_object().into_iter().flatten();
    let counts = counts.filter_map(|(why, count)| Some((why, count.as_u64().filter(|count| *count > 0)?)));
    let each: Vec<_> = counts.clone().map(|(why, count)| format!("{count} {why}")).collect();
    let all = counted(counts.map(|(_, count)| count).sum(), "recall");
    if each.is_empty() { all } else { format!("{all} ({})", each.join(", ")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_where_and_why() {
        let documents = json!({ "pid": 1, "sites": [{
            "at": "http://a", "metric": "requests", "load": 9, "documents": 20, "movable": 7, "moved": 2, "recalled": { "busier": 2, "silent": 1 },
            "peers": [
                { "at": "http://b", "load": 3, "heard_ms": 40, "silences": 0, "holds": 1, "lends": 0 },
                { "at": "http://c", "load": null, "heard_ms": null, "silences": 2, "holds": 0, "lends": null },
            ],
            "lent": [{ "document": "/x.png", "at": "http://b", "address": "http://b/~migrate/a/80/x.png", "announced": true, "linked_from": 2 }],
            "refused": { "signature": 4 },
        }] });
        assert_eq!(
            for_humans(&documents),
            "http://a: 9 requests a second, 20 documents, of which 7 may move; 2 moves, 3 recalls (2 busier, 1 silent)
  http://b: 3 requests a second, heard 40 ms before; has 1, lends 0
  http://c: silent, 2 questions unanswered; has 0, lends ?
  /x.png -> http://b/~migrate/a/80/x.png, linked from 2 pages
  refused: 4 messages (signature)
"
        );
        assert!(for_humans(&Value::Null).contains("no site"));
    }
}
