//! Goal: no log that ever mattered to the fuzz target breaks what it asserts again. Method: every file of the committed
//! corpus, through the same function as the target.

#[path = "../../../fuzz/src/sim.rs"]
pub mod invariants;

use std::path::Path;

#[test]
fn access_logs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/sim_access_log");
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).expect("the corpus is committed") {
        let path = entry.expect("a corpus can be listed").path();
        // Shown if the check fails.
        println!("{}", path.display());
        invariants::access_log(&std::fs::read(&path).expect("a corpus can be read"));
        count += 1;
    }
    assert!(count > 0, "{} is empty", folder.display());
}
