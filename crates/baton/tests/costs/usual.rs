//! Separates the usual calls from occasional ones.

use std::collections::BTreeMap;

use crate::trace::Call;

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

/// The calls from one request to the next, rotated to begin with the wait.
pub(crate) fn by_request(calls: &[Call]) -> Vec<Vec<String>> {
    let calls: Vec<&Call> = calls.iter().filter(|call| !call.waits_in_vain()).collect();
    let starts: Vec<usize> = (0..calls.len()).filter(|&at| calls[at].receives_a_request()).collect();
    let sequences = starts.windows(2).map(|pair| {
        let mut names: Vec<String> = calls[pair[0]..pair[1]].iter().map(|call| call.name.clone()).collect();
        let wait = names.iter().rposition(|name| name == "epoll_wait").unwrap_or(0);
        names.rotate_left(wait);
        names
    });
    sequences.collect()
}
