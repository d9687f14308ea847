//! What the metrics page says of documents that migrate. Its labels are bounded by the configuration.

use std::fmt::Write as _;

use serde_json::Value;

use super::exposition::{begin, escaped};

/// The lines, from what the process of documents tells. Nothing: no site shares its load, or nothing is known yet.
pub(crate) fn page(sites: &Value) -> String {
    let mut page = String::new();
    let Some(sites) = sites.as_array().filter(|sites| !sites.is_empty()) else { return page };
    for (name, kind, help, value) in FAMILIES {
        begin(&mut page, name, kind, help);
        for site in sites {
            let at = escaped(site["at"].as_str().unwrap_or_default());
            let _ = writeln!(page, "{name}{{site=\"{at}\"}} {}", value(site));
        }
    }
    begin(&mut page, RECALLS, "counter", RECALLS_HELP);
    for site in sites {
        let at = escaped(site["at"].as_str().unwrap_or_default());
        for (reason, count) in site["recalled"].as_object().into_iter().flatten() {
            let _ = writeln!(page, "{RECALLS}{{site=\"{at}\",reason=\"{reason}\"}} {}", number(count));
        }
    }
    begin(&mut page, FAILURES, "counter", FAILURES_HELP);
    for site in sites {
        let at = escaped(site["at"].as_str().unwrap_or_default());
        let unanswered = number(&site["unanswered"]);
        let refused: u64 =
            site["refused"].as_object().into_iter().flatten().map(|(_, count)| number(count)).sum();
        for (reason, count) in [("unanswered", unanswered), ("refused", refused)] {
            let _ = writeln!(page, "{FAILURES}{{site=\"{at}\",reason=\"{reason}\"}} {count}");
        }
    }
    page
}

type Family = (&'static str, &'static str, &'static str, fn(&Value) -> u64);

const FAMILIES: [Family; 6] = [
    ("baton_documents_load", "gauge", "Requests per second for a site in the last interval.", |site| {
        number(&site["load"])
    }),
    ("baton_documents_lent", "gauge", "Documents that other servers serve.", |site| {
        site["lent"].as_array().map_or(0, Vec::len) as u64
    }),
    ("baton_documents_held", "gauge", "Documents of other servers that this one is lent.", |site| {
        site["peers"].as_array().into_iter().flatten().map(|peer| number(&peer["lends"])).sum()
    }),
    ("baton_documents_moves_total", "counter", "Times that a document was lent.", |site| {
        number(&site["moved"])
    }),
    (
        "baton_documents_redirects_total",
        "counter",
        "Requests that got the address where a document is.",
        |site| number(&site["redirects"]),
    ),
    ("baton_documents_copies_total", "counter", "Requests for copies of other servers' documents.", |site| {
        number(&site["copies"])
    }),
];

const RECALLS: &str = "baton_documents_recalls_total";
const RECALLS_HELP: &str =
    "Times that the policy called a document home: from a server that was busier, or silent.";

const FAILURES: &str = "baton_documents_failures_total";
const FAILURES_HELP: &str =
    "Questions that other servers left unanswered, and questions and replies that were refused.";

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_site_has_its_lines() {
        let sites = json!([{
            "at": "http://a", "load": 9, "moved": 2, "recalled": { "busier": 1, "silent": 0 }, "redirects": 5, "copies": 6, "unanswered": 3,
            "peers": [{ "lends": 4 }, { "lends": null }], "lent": [{}], "refused": { "signature": 4, "clock": 1 },
        }]);
        let page = page(&sites);
        for line in [
            "baton_documents_lent{site=\"http://a\"} 1",
            "baton_documents_held{site=\"http://a\"} 4",
            "baton_documents_redirects_total{site=\"http://a\"} 5",
            "baton_documents_copies_total{site=\"http://a\"} 6",
            "baton_documents_recalls_total{site=\"http://a\",reason=\"busier\"} 1",
            "baton_documents_recalls_total{site=\"http://a\",reason=\"silent\"} 0",
            "baton_documents_failures_total{site=\"http://a\",reason=\"unanswered\"} 3",
            "baton_documents_failures_total{site=\"http://a\",reason=\"refused\"} 5",
        ] {
            assert!(page.lines().any(|one| one == line), "{line} in\n{page}");
        }
        assert_eq!(super::page(&Value::Null), "");
    }
}
