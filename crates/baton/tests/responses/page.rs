//! `docs/responses.md`: the matrix for readers, made of the rows.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::kinds::Kind;
use crate::rows::{Duty, duty};
use crate::rules::Rule;

const HEAD: &str = "\
# Responses

*For operators and contributors.* What holds for every kind of answer, and where it does not.

<!-- Made of the rows in crates/baton/tests/responses/rows.rs, by the test that compares it. -->

";

fn made() -> String {
    let mut page = String::from(HEAD);
    let mut reasons: Vec<&str> = Vec::new();
    let heads: Vec<_> = Rule::ALL.iter().map(|rule| rule.words()).collect();
    let _ = writeln!(page, "| | {} |", heads.join(" | "));
    let _ = writeln!(page, "|---|{}", ":-:|".repeat(heads.len()));
    for kind in Kind::ALL {
        let cells = Rule::ALL.map(|rule| match duty(kind, rule) {
            Duty::Obeys => "yes".to_owned(),
            Duty::Exempt(reason) => {
                let known = reasons.iter().position(|known| *known == reason).unwrap_or(reasons.len());
                if known == reasons.len() {
                    reasons.push(reason);
                }
                format!("({})", known + 1)
            }
        });
        let _ = writeln!(page, "| {} | {} |", kind.words(), cells.join(" | "));
    }
    page.push_str("\nThe rules:\n\n| | |\n|---|---|\n");
    for rule in Rule::ALL {
        let _ = writeln!(page, "| {} | {} |", rule.words(), rule.meaning());
    }
    page.push_str("\nThe reasons why not:\n\n");
    for (index, reason) in reasons.iter().enumerate() {
        let _ = writeln!(page, "{}. {reason}", index + 1);
    }
    page
}

#[test]
fn the_committed_page_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/responses.md");
    let made = made();
    if fs::read_to_string(path).unwrap_or_default() != made {
        let fresh = Path::new(env!("CARGO_TARGET_TMPDIR")).join("responses.md");
        fs::write(&fresh, made).expect("a page");
        panic!("docs/responses.md is stale: cp {} docs/responses.md", fresh.display());
    }
}
