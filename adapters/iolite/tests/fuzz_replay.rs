//! Goal: the committed fuzz corpora still pass, and so does what is near them. Method: every file through the same function as the
//! target, and files with some bytes changed.

use proptest::prelude::*;
use proptest::sample::Index;

#[path = "../../../fuzz/src/iolite_reader.rs"]
pub mod of_readers;
#[path = "../../../fuzz/src/iolite.rs"]
pub mod of_writers;
#[path = "../../../fuzz/src/replay.rs"]
pub mod replay;

#[test]
fn what_writers_send() {
    replay::replay("iolite_writer", of_writers::writer);
}

#[test]
fn what_readers_return() {
    replay::replay("iolite_reader", of_readers::reader);
}

/// Some bytes of an input that are others, and where it ends.
fn changes() -> impl Strategy<Value = (Vec<(Index, u8)>, Index)> {
    (proptest::collection::vec((any::<Index>(), any::<u8>()), 0..6), any::<Index>())
}

fn replay_changed(target: &str, (changes, len): &(Vec<(Index, u8)>, Index), check: impl Fn(&[u8])) {
    replay::replay(target, |seed| {
        let mut input = seed.to_vec();
        for (at, byte) in changes {
            let at = at.index(input.len());
            input[at] = *byte;
        }
        check(&input);
        check(&input[..=len.index(input.len())]);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_lying_writers_send(changes in changes()) {
        replay_changed("iolite_writer", &changes, of_writers::writer);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_lying_readers_return(changes in changes()) {
        replay_changed("iolite_reader", &changes, of_readers::reader);
    }
}
