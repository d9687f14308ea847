//! What is lent to a peer that returns anything.

use std::collections::VecDeque;
use std::rc::Rc;

use baton_pool::{Lent, NotLent};

/// Pairs of bytes: an even one lends a thing of so many bytes, an odd one returns so many. A thing is held exactly as long as one of
/// its bytes is not returned, and a lie changes nothing. The model has a queue of bytes.
pub fn lent(input: &[u8]) {
    let mut lent = Lent::default();
    let mut model: VecDeque<Rc<()>> = VecDeque::new();
    let mut things = Vec::new();
    for pair in input.chunks_exact(2).take(STEPS_MAX) {
        let bytes = u64::from(pair[1]);
        if pair[0] % 2 == 0 && bytes > 0 {
            let thing = Rc::new(());
            things.push(Rc::downgrade(&thing));
            model.extend((0..bytes).map(|_| Rc::clone(&thing)));
            lent.lend(thing, bytes);
        } else {
            let expected = if bytes > model.len() as u64 { Err(NotLent) } else { Ok(()) };
            assert_eq!(lent.take_back(bytes), expected);
            if expected.is_ok() {
                model.drain(..bytes as usize);
            }
        }
        assert_eq!(lent.bytes(), model.len() as u64);
        for thing in &things {
            let in_model = model.iter().filter(|its| Rc::as_ptr(its) == thing.as_ptr()).count();
            assert_eq!(thing.strong_count(), in_model + usize::from(in_model > 0));
        }
    }
    lent.clear();
    model.clear();
    assert!(things.iter().all(|thing| thing.strong_count() == 0));
}

const STEPS_MAX: usize = 60;
