//! Tables and verdicts as Markdown, and the blocks of documents that they replace.
//!
//! A document marks what is written by a program, and the check finds what has become stale:
//!
//! ```text
//! <!-- figure: NAME -->
//! | … |
//! <!-- end -->
//! ```

use std::fmt::{self, Write};

use crate::claim::{Claim, Verdict};
use crate::figure::Figure;
use crate::report::Report;
use crate::table::Table;

impl Table {
    /// As a table of Markdown, with its note below.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut text = String::new();
        row(&mut text, &self.head);
        row(&mut text, &self.head.iter().map(|_| "---").collect::<Vec<_>>());
        for cells in &self.rows {
            row(&mut text, cells);
        }
        if !self.note.is_empty() {
            let _ = write!(text, "\n{}\n", self.note);
        }
        text
    }
}

impl Report {
    /// As Markdown without a heading: words, tables of the figures and of comparisons, verdicts.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut text = self.words.join("\n\n") + "\n";
        for table in self.figures.iter().map(Figure::table).chain(self.tables.iter().cloned()) {
            let _ = write!(text, "\n{}:\n\n{}", table.title, table.upright().to_markdown());
        }
        if !self.claims.is_empty() {
            let _ = write!(text, "\n{}", claims_table(std::slice::from_ref(self)));
        }
        text
    }
}

/// Claims, results and verdicts of several reports, with the reasons where they do not hold.
#[must_use]
pub fn claims_table(reports: &[Report]) -> String {
    let claims = || reports.iter().flat_map(|report| report.claims.iter().map(move |claim| (report, claim)));
    let mut text = String::from("| experiment | published | here | holds |\n|---|---|---|---|\n");
    for (report, claim) in claims() {
        let name = format!("`{}`", report.name);
        row(&mut text, &[name.as_str(), &claim.published, &claim.ours, sign(claim)]);
    }
    for (heading, wanted) in [
        (
            "Where it does not hold",
            claims()
                .filter(|(_, claim)| matches!(claim.verdict, Verdict::DoesNotHold(_)))
                .collect::<Vec<_>>(),
        ),
        (
            "What cannot be judged",
            claims().filter(|(_, claim)| matches!(claim.verdict, Verdict::Open(_))).collect(),
        ),
    ] {
        if !wanted.is_empty() {
            let _ = write!(text, "\n{heading}:\n\n");
        }
        for (report, claim) in wanted {
            let _ = writeln!(text, "- `{}`, {}: {}.", report.name, claim.published, claim.verdict.reason());
        }
    }
    text
}

const fn sign(claim: &Claim) -> &'static str {
    match claim.verdict {
        Verdict::Holds => "yes",
        Verdict::DoesNotHold(_) => "**no**",
        Verdict::Open(_) => "?",
    }
}

/// A bar would end the cell, and a line end the row.
fn row<T: AsRef<str>>(text: &mut String, cells: &[T]) {
    for cell in cells {
        let _ = write!(text, "| {} ", cell.as_ref().replace('|', "\\|").replace('\n', " "));
    }
    text.push_str("|\n");
}

/// What is wrong with a marked block, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockError {
    /// The line of its first mark, counted from 1.
    pub line: usize,
    /// The name in the mark.
    pub name: String,
    /// What is wrong.
    pub problem: BlockProblem,
}

/// What is wrong with a marked block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockProblem {
    /// It differs from what would be written now.
    Stale,
    /// No figure has this name.
    Unknown,
    /// It has no end in front of the next block or the document's end.
    Open,
}

impl fmt::Display for BlockError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, name, problem } = self;
        match problem {
            BlockProblem::Stale => {
                write!(to, "{line}: figure {name} is stale; write it again from the recorded runs")
            }
            BlockProblem::Unknown => {
                write!(to, "{line}: no recorded run has a figure {name}; correct the name or record it")
            }
            BlockProblem::Open => write!(to, "{line}: the block of figure {name} has no `{END}` line"),
        }
    }
}

/// A document with its marked blocks replaced; `content` gives the Markdown of a name.
///
/// # Errors
/// All blocks that have no end, or a name that `content` does not know.
pub fn replaced(document: &str, content: &dyn Fn(&str) -> Option<String>) -> Result<String, Vec<BlockError>> {
    let (mut text, mut errors) = (String::new(), Vec::new());
    let mut open: Option<(usize, &str)> = None;
    for (at, line) in document.split_inclusive('\n').enumerate() {
        if let Some(name) = block_name(line) {
            errors.extend(open.map(|(line, name)| BlockError::new(line, name, BlockProblem::Open)));
            open = Some((at + 1, name));
            text.push_str(line);
        } else if line.trim() == END {
            text.extend(open.take().and_then(|(line, name)| {
                let content = content(name);
                if content.is_none() {
                    errors.push(BlockError::new(line, name, BlockProblem::Unknown));
                }
                content
            }));
            text.push_str(line);
        } else if open.is_none() {
            text.push_str(line);
        }
    }
    errors.extend(open.map(|(line, name)| BlockError::new(line, name, BlockProblem::Open)));
    if errors.is_empty() { Ok(text) } else { Err(errors) }
}

/// Which blocks of a document are stale, unknown or open.
#[must_use]
pub fn stale(document: &str, content: &dyn Fn(&str) -> Option<String>) -> Vec<BlockError> {
    let new = match replaced(document, content) {
        Ok(new) => new,
        Err(errors) => return errors,
    };
    let (old, new) = (blocks(document), blocks(&new));
    old.into_iter()
        .zip(new)
        .filter(|(old, new)| old.content != new.content)
        .map(|(old, _)| BlockError::new(old.line, old.name, BlockProblem::Stale))
        .collect()
}

impl BlockError {
    fn new(line: usize, name: &str, problem: BlockProblem) -> Self {
        Self { line, name: name.to_owned(), problem }
    }
}

struct Block<'a> {
    line: usize,
    name: &'a str,
    content: Vec<&'a str>,
}

fn blocks(document: &str) -> Vec<Block<'_>> {
    let (mut blocks, mut is_open): (Vec<Block<'_>>, _) = (Vec::new(), false);
    for (at, line) in document.lines().enumerate() {
        if let Some(name) = block_name(line) {
            blocks.push(Block { line: at + 1, name, content: Vec::new() });
            is_open = true;
        } else if line.trim() == END {
            is_open = false;
        } else if let Some(block) = blocks.last_mut().filter(|_| is_open) {
            block.content.push(line);
        }
    }
    blocks
}

/// The name in the first mark of a block.
fn block_name(line: &str) -> Option<&str> {
    Some(line.trim().strip_prefix("<!-- figure:")?.strip_suffix("-->")?.trim())
}

const END: &str = "<!-- end -->";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn each_claim_is_a_row_and_those_that_fail_are_explained() {
        let mut report = example::report();
        let open = Claim {
            published: "ten times".into(),
            ours: "–".into(),
            verdict: Verdict::Open("nginx is not here".into()),
        };
        report.claims.push(open);
        let text = claims_table(&[report]);
        assert!(text.contains("| `example` | four times | 4.5 times | yes |\n"), "{text}");
        assert!(text.contains("| `example` | idle 1 % | 9 % | **no** |\n"), "{text}");
        assert!(text.contains("\nWhere it does not hold:\n\n- `example`, idle 1 %: because.\n"), "{text}");
        assert!(
            text.ends_with("\nWhat cannot be judged:\n\n- `example`, ten times: nginx is not here.\n"),
            "{text}"
        );
    }

    #[test]
    fn a_report_has_words_tables_and_verdicts_in_this_order() {
        let text = example::report().to_markdown();
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} in {text}"));
        assert!(
            text.starts_with("What this shows.\n\nThroughput & more (requests/s):\n\n| nodes |"),
            "{text}"
        );
        assert!(at("All numbers:") < at("| `example` | four times |"));
    }

    #[test]
    fn a_table_escapes_bars_and_keeps_reasons() {
        assert!(example::report().tables[0].to_markdown().contains("| 1 | a\\|b |\n"));
        let text = example::lines().table().to_markdown();
        assert!(
            text.starts_with("| nodes | wrr | lard | published: 4x |\n| --- | --- | --- | --- |\n"),
            "{text}"
        );
        assert!(text.contains("| 2 | 200 | 450 (400–500) | 400 |\n"), "{text}");
        assert!(text.ends_with("\n× wrr at 4: one client had no answer\n"), "{text}");
    }

    const DOCUMENT: &str = "# Figures\n\n<!-- figure: files -->\nold\n<!-- end -->\nbetween\n\
                            <!-- figure: disk -->\ndisk\n<!-- end -->\nafter";

    fn content(name: &str) -> Option<String> {
        ["files", "disk"].contains(&name).then(|| format!("{name}\n"))
    }

    #[test]
    fn blocks_are_replaced_and_everything_else_stays() {
        let new = replaced(DOCUMENT, &content).expect("all blocks are known");
        assert_eq!(new, DOCUMENT.replace("old", "files"));
        assert_eq!(replaced(&new, &content).as_deref(), Ok(new.as_str()), "once is enough");
    }

    #[test]
    fn a_stale_block_is_reported_with_its_line() {
        let found = stale(DOCUMENT, &content);
        assert_eq!(found, [BlockError::new(3, "files", BlockProblem::Stale)]);
        assert!(found[0].to_string().starts_with("3: figure files is stale"));
        assert_eq!(stale(&DOCUMENT.replace("old", "files"), &content), []);
    }

    #[test]
    fn blocks_that_are_open_or_unknown_are_refused() {
        let open = DOCUMENT.replacen("<!-- end -->\n", "", 1);
        assert_eq!(stale(&open, &content), [BlockError::new(3, "files", BlockProblem::Open)]);
        let unknown = DOCUMENT.replace("disk -->", "disc -->");
        assert_eq!(
            replaced(&unknown, &content),
            Err(vec![BlockError::new(7, "disc", BlockProblem::Unknown)])
        );
        let last = DOCUMENT.replace("<!-- end -->\nafter", "");
        assert_eq!(stale(&last, &content), [BlockError::new(7, "disk", BlockProblem::Open)]);
    }
}
