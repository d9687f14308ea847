//! Tables of numbers that no recorded run gives. They must say when they were measured, at which commit, and what repeats them.
//!
//! ```text
//! *History:* 2026-11-24, commit 43a09091, `baton-lab run cluster`.
//! ```

use std::path::Path;

/// Whether numbers in this document need lines: the README and the pages of figures.
pub(super) fn is_checked(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name == "README.md" && path.parent().is_none_or(|folder| folder.as_os_str().is_empty())
        || name.starts_with("figures")
}

/// What is wrong, with the numbers of the lines at which tables begin.
pub(super) fn tables(document: &str) -> Vec<String> {
    let (mut found, mut begin) = (Vec::new(), None);
    let (mut is_block, mut is_history) = (false, false);
    for (at, line) in document.lines().enumerate() {
        is_block = (is_block || line.starts_with("<!-- figure:")) && line.trim() != "<!-- end -->";
        // A history counts until the next heading.
        is_history = (is_history || tells_history(line)) && !line.starts_with('#');
        if !line.starts_with('|') {
            begin = None;
        } else if begin.is_none() {
            begin = Some((at + 1, false));
        }
        if let Some((first, false)) = begin
            && !is_block
            && !is_history
            && line.split('|').any(is_number)
        {
            begin = Some((first, true));
            found.push(format!(
                "{first}: numbers without lines: put them into a block (`<!-- figure: NAME -->`), or write above them \
                 `*History:* DATE, commit HASH, `COMMAND`.`"
            ));
        }
    }
    found
}

/// A date, a commit and a command.
fn tells_history(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("*History:* ") else { return false };
    let is_date = |text: &str| {
        text.len() == 10
            && text.split('-').all(|part| part.parse::<u32>().is_ok())
            && text.matches('-').count() == 2
    };
    let words: Vec<&str> = rest.split([',', ' ']).filter(|word| !word.is_empty()).collect();
    matches!(words[..], [date, "commit", commit, ..] if is_date(date) && commit.len() == 8)
        && rest.contains('`')
}

fn is_number(cell: &str) -> bool {
    let cell = cell.trim().trim_matches('*').trim_start_matches('~');
    !cell.is_empty() && cell.chars().all(|letter| letter.is_ascii_digit() || ".,".contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "| server | µs |\n|---|---:|\n| nginx | 6.12 |\n";

    #[test]
    fn numbers_without_lines_are_found_with_their_place() {
        let found = tables(&format!("# Figures\n\n{TABLE}\nmore\n\n{TABLE}"));
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("3: ") && found[1].starts_with("9: "), "{found:?}");
    }

    #[test]
    fn blocks_histories_and_words_are_none() {
        let history = "*History:* 2026-11-24, commit 43a09091, `baton-lab run cluster`.";
        for text in [
            format!("<!-- figure: files -->\n{TABLE}<!-- end -->\n"),
            format!("{history}\n\n{TABLE}"),
            "| you | read |\n|---|---|\n| run a server | for 2 sites |\n".to_owned(),
        ] {
            assert!(tables(&text).is_empty(), "{text}");
        }
        assert_eq!(tables(&format!("{history}\n\n# Next\n\n{TABLE}")).len(), 1, "a heading ends it");
        assert_eq!(tables(&format!("*History:* last week.\n\n{TABLE}")).len(), 1, "it has no date");
    }
}
