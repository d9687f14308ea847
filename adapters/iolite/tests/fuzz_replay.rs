//! Goal: the committed fuzz corpus still passes, and so does what is near it. Method: every file through the same function as the
//! target, and files with some bytes changed.

use proptest::prelude::*;

#[path = "../../../fuzz/src/iolite.rs"]
pub mod invariants;
#[path = "../../../fuzz/src/replay.rs"]
pub mod replay;

#[test]
fn what_writers_send() {
    replay::replay("iolite_writer", invariants::writer);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_lying_writers_send(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        len in any::<prop::sample::Index>(),
    ) {
        replay::replay("iolite_writer", |seed| {
            let mut input = seed.to_vec();
            for (at, byte) in &changes {
                let at = at.index(input.len());
                input[at] = *byte;
            }
            invariants::writer(&input);
            invariants::writer(&input[..=len.index(input.len())]);
        });
    }
}
