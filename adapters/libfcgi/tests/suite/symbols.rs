//! The interface: names, and the object that is copied into programs.

use std::collections::BTreeSet;
use std::process::Command;

use crate::program::directory_of_ours;

/// The names of a library's functions and data, by `nm`.
fn symbols(library: &std::path::Path) -> BTreeSet<String> {
    let output = Command::new("nm").args(["-DS", "--defined-only"]).arg(library).output().unwrap();
    let listing = String::from_utf8(output.stdout).unwrap();
    // Of data, the size belongs to the interface.
    let symbol = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [_, size, kind, name] = words[..] else { return None };
        Some(if kind == "T" { name.to_owned() } else { format!("{name} {size}") })
    };
    listing.lines().filter_map(symbol).collect()
}

#[test]
fn every_symbol_of_the_original_is_there_and_no_other() {
    let original = std::path::Path::new("/usr/lib")
        .join(format!("{}-linux-gnu", std::env::consts::ARCH))
        .join("libfcgi.so.0");
    let original = symbols(&original);
    assert_eq!(original.len(), 39 + 31 + 18 + 1);
    assert_eq!(original, symbols(&directory_of_ours().join("libfcgi.so.0")));
}
