//! Tables and verdicts as Markdown, and the blocks of documents that they replace.
//!
//! A document marks what is written by a program, and the check finds what has become stale:
//!
//! ```text
//! <!-- figure: NAME -->
//! | … |
//! <!-- end -->
//! ```

use std::fmt::Write;

use crate::claim::{Claim, Verdict};
use crate::figure::Figure;
use crate::report::Report;
use crate::table::Table;

impl Table {
    /// As a table of Markdown, with its note below.
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
pub fn claims_table(reports: &[Report]) -> String {
    let claims = || reports.iter().flat_map(|report| report.claims.iter().map(move |claim| (report, claim)));
    let mut text = String::from("| experiment | published | here | holds |\n|---|---|---|---|\n");
    for (report, claim) in claims() {
        let name = format!("`{}`", report.name);
        row(&mut text, &[name.as_str(), &claim.published, &claim.ours, sign(claim)]);
    }
    for (heading, word) in [("Where it does not hold", "does not"), ("What cannot be judged", "not judged")] {
        let mut wanted = claims().filter(|(_, claim)| claim.verdict.word() == word).peekable();
        if wanted.peek().is_some() {
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

/// A document with its marked blocks replaced, and what is to be said of them, each with the line of its first mark.
#[derive(Debug, Default)]
pub struct Replaced {
    /// The document. Blocks with an error have no content.
    pub text: String,
    /// Blocks that had another content.
    pub stale: Vec<String>,
    /// Blocks that have no end in front of the next one or the document's end, or a name that no figure has.
    pub errors: Vec<String>,
}

impl Replaced {
    fn end(&mut self, (line, name, old): (usize, &str, String), new: Option<String>) {
        let Some(new) = new else {
            let what = format!("{line}: no recorded run has a figure {name}; correct the name or record it");
            return self.errors.push(what);
        };
        if new != old {
            self.stale.push(format!("{line}: figure {name} is stale; write it again from the recorded runs"));
        }
        self.text.push_str(&new);
    }

    fn no_end(&mut self, open: Option<(usize, &str, String)>) {
        let what = |(line, name, _)| format!("{line}: the block of figure {name} has no `{END}` line");
        self.errors.extend(open.map(what));
    }
}

/// Replaces the marked blocks of a document; `content` gives the Markdown of a name.
pub fn replaced(document: &str, content: &dyn Fn(&str) -> Option<String>) -> Replaced {
    let mut replaced = Replaced::default();
    let mut open: Option<(usize, &str, String)> = None;
    for (at, line) in document.split_inclusive('\n').enumerate() {
        if let Some(name) = block_name(line) {
            replaced.no_end(open.replace((at + 1, name, String::new())));
        } else if line.trim() == END {
            if let Some(block) = open.take() {
                let new = content(block.1);
                replaced.end(block, new);
            }
        } else if let Some((.., old)) = &mut open {
            old.push_str(line);
            continue;
        }
        replaced.text.push_str(line);
    }
    replaced.no_end(open);
    replaced
}

/// The name in the first mark of a block.
fn block_name(line: &str) -> Option<&str> {
    Some(line.trim().strip_prefix("<!-- figure:")?.strip_suffix("-->")?.trim())
}

const END: &str = "<!-- end -->";

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "# Figures\n\n<!-- figure: files -->\nold\n<!-- end -->\nbetween\n\
                            <!-- figure: disk -->\ndisk\n<!-- end -->\nafter";

    fn content(name: &str) -> Option<String> {
        ["files", "disk"].contains(&name).then(|| format!("{name}\n"))
    }

    #[test]
    fn blocks_are_replaced_and_everything_else_stays() {
        let new = replaced(DOCUMENT, &content);
        assert_eq!((&new.text, new.errors.len()), (&DOCUMENT.replace("old", "files"), 0));
        assert_eq!(new.stale.len(), 1, "{:?}", new.stale);
        assert!(new.stale[0].starts_with("3: figure files is stale"), "{:?}", new.stale);
        let again = replaced(&new.text, &content);
        assert!(again.text == new.text && again.stale.is_empty(), "once is enough");
    }

    #[test]
    fn blocks_that_are_open_or_unknown_are_errors() {
        let open = DOCUMENT.replacen("<!-- end -->\n", "", 1);
        assert_eq!(
            replaced(&open, &content).errors,
            ["3: the block of figure files has no `<!-- end -->` line"]
        );
        let unknown = replaced(&DOCUMENT.replace("disk -->", "disc -->"), &content).errors;
        assert_eq!(unknown, ["7: no recorded run has a figure disc; correct the name or record it"]);
        let last = DOCUMENT.replace("<!-- end -->\nafter", "");
        assert_eq!(
            replaced(&last, &content).errors,
            ["7: the block of figure disk has no `<!-- end -->` line"]
        );
    }
}
