//! Runs a check over a committed corpus, on the stable toolchain: included by `tests/fuzz_replay.rs` of the
//! crates.

use std::path::Path;

/// Runs `check` on every file of the corpus of `target`.
pub fn replay(target: &str, check: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).expect("the corpus is committed") {
        let path = entry.expect("a corpus can be listed").path();
        // Shown if the check fails.
        println!("{}", path.display());
        check(&std::fs::read(&path).expect("a corpus can be read"));
        count += 1;
    }
    assert!(count > 0, "{} is empty", folder.display());
}
