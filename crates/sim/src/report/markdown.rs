//! Published claims, our results, and whether they hold, as a table for a document.

use std::fmt::Write;

use super::contents::Report;

pub(super) fn render(reports: &[Report]) -> String {
    let claims = || reports.iter().flat_map(|report| report.claims.iter().map(move |claim| (report, claim)));
    let mut text = String::from("| experiment | published | here | holds |\n|---|---|---|---|\n");
    for (report, claim) in claims() {
        let holds = if claim.holds { "yes" } else { "**no**" };
        let (published, ours) = (cell(&claim.published), cell(&claim.ours));
        let _ = writeln!(text, "| `{}` | {published} | {ours} | {holds} |", report.name);
    }
    let mut failing = claims().filter(|(_, claim)| !claim.holds).peekable();
    if failing.peek().is_some() {
        text.push_str("\nWhere it does not hold:\n\n");
    }
    for (report, claim) in failing {
        let _ = writeln!(text, "- `{}`, {}: {}.", report.name, claim.published, claim.note);
    }
    text
}

/// A bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    #[test]
    fn each_claim_is_a_row_and_those_that_fail_are_explained() {
        let text = render(&[example()]);
        assert!(text.contains("| `example` | four times | 4.5 times | yes |\n"), "{text}");
        assert!(text.contains("| `example` | idle 1 % | 9 % | **no** |\n"), "{text}");
        assert!(text.ends_with("\n- `example`, idle 1 %: because.\n"), "{text}");
    }
}
