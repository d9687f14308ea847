//! The columns of `docs/experiments.md` that recorded runs fill: what was found here, and whether the claims hold.

use baton_figures::{Claim, Verdict};

/// The claims of a command.
#[derive(Debug)]
pub(super) struct Verdicts {
    /// As in the document, without ticks.
    pub(super) command: String,
    /// `None`: not recorded.
    pub(super) claims: Option<Vec<Claim>>,
}

/// The document with both columns of each row whose command is known.
pub(super) fn filled(document: &str, verdicts: &[Verdicts]) -> String {
    document
        .split_inclusive('\n')
        .map(|line| row(line, verdicts).unwrap_or_else(|| line.to_owned()))
        .collect()
}

/// Rows that would be filled with other words.
pub(super) fn stale(document: &str, verdicts: &[Verdicts]) -> Vec<String> {
    let new = filled(document, verdicts);
    let lines = document.lines().zip(new.lines()).enumerate().filter(|(_, (old, new))| old != new);
    lines.map(|(at, _)| format!("{}: this row is stale: baton-lab docs", at + 1)).collect()
}

/// `| E-… | name | command | published | ours | holds |`.
fn row(line: &str, verdicts: &[Verdicts]) -> Option<String> {
    let mut cells = cells(line.strip_prefix("| E-")?);
    let [_, _, command, _, ours, holds, end] = &mut cells[..] else { return None };
    let command = command.trim().trim_matches('`').to_owned();
    let Verdicts { claims, .. } = verdicts.iter().find(|known| known.command == command)?;
    let (found, verdict) = match claims.as_deref() {
        None => ("not recorded".to_owned(), "not recorded".to_owned()),
        Some([]) => ("–".to_owned(), "not judged, because it claims nothing".to_owned()),
        Some(claims) => (joined(claims.iter().map(|claim| claim.ours.clone())), holds_in_all(claims)),
    };
    *ours = format!(" {} ", found.replace('|', "\\|"));
    *holds = format!(" {} ", verdict.replace('|', "\\|"));
    "\n".clone_into(end);
    Some(format!("| E-{}", cells.join("|")))
}

/// Cells of a row; an escaped bar ends none.
fn cells(line: &str) -> Vec<String> {
    let hidden = line.replace("\\|", "\0");
    hidden.split('|').map(|cell| cell.replace('\0', "\\|")).collect()
}

/// One verdict for all: why some claims do not hold, or how many do.
fn holds_in_all(claims: &[Claim]) -> String {
    let failed = claims.iter().filter(|claim| !claim.holds()).map(|claim| claim.verdict.to_string());
    let failed: Vec<_> = failed.collect();
    match (&claims, &failed[..]) {
        (_, []) => Verdict::Holds.word().to_owned(),
        ([_], [only]) => only.clone(),
        (all, failed) => {
            let holding = all.len() - failed.len();
            format!("{holding} of {} hold; {}", all.len(), failed.join("; "))
        }
    }
}

fn joined(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "| row | experiment | command | published | ours | holds |\n\
                            | E-30 | lard | `baton sim run rice` | 4 \\| 5 times | x | y |\n\
                            | E-41 | cluster | `baton-lab run cluster` | 2.5 | x | y |\n\
                            | E-99 | other | not built | 1 | – | – |\n";

    fn verdicts() -> Vec<Verdicts> {
        let claims = vec![
            Claim::new("four times", "4.1".into(), true, ""),
            Claim::new("idle 1 %", "9 %".into(), false, "the disk is slow"),
        ];
        let of = |command: &str, claims| Verdicts { command: command.into(), claims };
        vec![of("baton sim run rice", Some(claims)), of("baton-lab run cluster", None)]
    }

    #[test]
    fn known_commands_get_their_columns_and_other_lines_stay() {
        let new = filled(DOCUMENT, &verdicts());
        let lines: Vec<_> = new.lines().collect();
        assert_eq!(lines[0], DOCUMENT.lines().next().unwrap());
        assert_eq!(
            lines[1],
            "| E-30 | lard | `baton sim run rice` | 4 \\| 5 times | 4.1; 9 % | 1 of 2 hold; does not, because the disk is slow |"
        );
        assert!(lines[2].ends_with("| 2.5 | not recorded | not recorded |"));
        assert_eq!(lines[3], DOCUMENT.lines().last().unwrap());
        assert_eq!(filled(&new, &verdicts()), new);
    }

    #[test]
    fn a_row_that_the_lines_do_not_give_is_stale() {
        let found = stale(DOCUMENT, &verdicts());
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("2: "), "{found:?}");
        assert!(stale(&filled(DOCUMENT, &verdicts()), &verdicts()).is_empty());
    }
}
