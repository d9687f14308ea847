//! What happens again and again, apart from what happens now and then.

use std::collections::BTreeMap;

/// The commonest of these sequences. Once a second a server looks at what it believes, and timers run out while it is
/// being watched: these are no costs of a request, and fall on few.
pub(crate) fn usual(sequences: Vec<Vec<String>>) -> Vec<String> {
    let count = sequences.len();
    let mut times: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for sequence in sequences {
        *times.entry(sequence).or_default() += 1;
    }
    let (usual, most) = times.iter().max_by_key(|(_, times)| **times).expect("something happened");
    assert!(*most * 2 > count, "no sequence is that of more than half of {count}: {times:#?}");
    usual.clone()
}
