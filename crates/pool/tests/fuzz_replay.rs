//! Goal: the committed fuzz corpus still passes, and so does any other input. Method: the same function as the target.

use proptest::prelude::*;

#[path = "../../../fuzz/src/pool.rs"]
pub mod invariants;
#[path = "../../../fuzz/src/replay.rs"]
pub mod replay;

#[test]
fn what_peers_return() {
    replay::replay("pool_lent", invariants::lent);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

    #[test]
    fn what_lying_peers_return(input in proptest::collection::vec(any::<u8>(), 0..120)) {
        invariants::lent(&input);
    }
}
