//! Separates the usual calls from occasional ones.

use std::collections::BTreeMap;

/// The most common of these sequences. Revalidation once a second and timers are no costs of a request, and affect
/// few sequences.
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
