//! The tables of `docs/system-calls.md`.

use std::collections::BTreeMap;

const DOCUMENT: &str = include_str!("../../../../docs/system-calls.md");

/// The first table below a heading: names in the first column, and words between back-quotes in the second.
pub(crate) fn table(heading: &str) -> BTreeMap<String, Vec<String>> {
    let section = DOCUMENT.split("\n## ").find(|section| section.lines().next() == Some(heading));
    let section = section.unwrap_or_else(|| panic!("no heading {heading:?}"));
    let is_row = |line: &&str| line.starts_with('|');
    let rows = section.lines().skip_while(|line| !is_row(line)).take_while(is_row).skip(2);
    let mut table = BTreeMap::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let words = cells[1].split('`').skip(1).step_by(2).map(str::to_owned).collect();
        assert!(table.insert(cells[0].to_owned(), words).is_none(), "twice: {row}");
    }
    table
}

/// Compares the counts with the document, all rows at once.
pub(crate) fn compare(heading: &str, of: &str, counted: &BTreeMap<String, Vec<String>>) {
    let table = table(heading);
    let mut differences = Vec::new();
    for (name, words) in counted {
        match table.get(name) {
            None => differences.push(format!("{name}: not in the table; counted {}", words.join(" "))),
            Some(row) if row != words => differences.push(format!(
                "{name}: the table says {}; counted {}",
                row.join(" "),
                words.join(" ")
            )),
            Some(_) => {}
        }
    }
    let unknown = table.keys().filter(|name| !counted.contains_key(*name));
    differences.extend(unknown.map(|name| format!("{name}: in the table, but nothing counts it")));
    assert!(differences.is_empty(), "{of}: docs/system-calls.md, {heading}:\n{}", differences.join("\n"));
}
