//! A fill between a store that takes its blocks and readers at different places.

use baton_http::Status;
use baton_segment::index::Facts;
use baton_segment::rules::{RouteRules, Stored, Times, VariantKey};
use baton_upstream::FailureReason;

use super::*;
use crate::exchange::failed;
use crate::test_bench::Bench;

const BLOCK: u64 = 4;
const WINDOW: u64 = 8;

/// A fill whose response is stored as it comes, and its readers.
struct Filling {
    fill: Fill,
    home: Arc<Home>,
}

impl Filling {
    fn new(name: &str) -> Self {
        let bench = Bench::new(name);
        let home = Arc::new(Home { number: 1, mailbox: Mailbox::new().unwrap() });
        let ask = bench.ask("/");
        let head = ResponseHead::of_lines(Vec::new(), Status::OK, "OK", None, |_| true);
        let variant = VariantKey::of(&ask.head.get(), &head).expect("it varies by nothing");
        let times = Times { requested_s: 0, received_s: 0 };
        let stored = Stored::restore(&RouteRules::default(), head, times, variant);
        let content = Arc::new(Content::new(&bench.shared.blocks, 1, Facts::default()));
        let object = Arc::new(Object::new(stored, content, Box::default(), 0));
        let fill = Fill {
            home: Arc::clone(&home),
            id: RequestId::new(100),
            ask,
            forward: Forward::UriMiss,
            validates: None,
            generation: 0,
            requested_s: 0,
            purpose: Purpose::Client(RequestId::new(1)),
            range: None,
            template: Arc::new(Template::of(bench.request("/"))),
            progress: Progress::default(),
        };
        fill.set_stage(Stage::Live(object));
        Self { fill, home }
    }

    fn reader(&self, number: u64) -> ReaderName {
        let name = ReaderName { home: Arc::clone(&self.home), request: RequestId::new(number) };
        assert!(self.fill.join(&name, 0), "it has all from the beginning on");
        name
    }

    fn push(&self, text: &str) {
        self.fill.push(Slice::from(text.as_bytes().to_vec()));
    }

    /// What a reader gets at an offset.
    fn read(&self, name: &ReaderName, at: u64) -> Result<Vec<u8>, String> {
        match self.fill.read(name, at, u64::MAX).0 {
            Read::Bytes(bytes) => {
                let memory = |piece: &baton_buf::Piece| match piece {
                    baton_buf::Piece::Memory(slice) => slice.to_vec(),
                    other => panic!("{other:?}"),
                };
                Ok(bytes.pieces().flat_map(memory).collect())
            }
            other => Err(format!("{other:?}")),
        }
    }

    /// Gives the store its next block, which stays there or not.
    fn store(&self, stays: bool) {
        let (_, block) = self.fill.next_block(BLOCK, false).expect("a block");
        self.fill.note_block(block, stays, WINDOW);
    }
}

#[test]
fn readers_get_what_comes_each_from_where_it_is() {
    let filling = Filling::new("readers");
    let (slow, fast) = (filling.reader(1), filling.reader(2));
    filling.push("abcd");
    assert_eq!(filling.read(&fast, 0), Ok(b"abcd".to_vec()));
    assert_eq!(filling.read(&fast, 4), Err("Wait".into()));
    filling.push("efgh");
    let woken: Vec<_> = filling.fill.woken_if_live().iter().map(|name| name.request).collect();
    assert_eq!(woken, [fast.request], "the other one does not wait");
    assert_eq!(filling.read(&slow, 2), Ok(b"cdefgh".to_vec()));
}

#[test]
fn the_fetch_stays_a_window_ahead_of_the_fastest_reader() {
    let filling = Filling::new("window");
    let name = filling.reader(1);
    filling.push("abcd");
    assert!(filling.fill.wants_more(WINDOW));
    filling.push("efgh");
    assert!(!filling.fill.wants_more(WINDOW), "a window of bytes is ahead of it");
    let (read, was_stalled) = filling.fill.read(&name, 0, 1);
    assert!(matches!(read, Read::Bytes(_)) && was_stalled, "the loop that fetches is to be told");
    assert!(filling.fill.wants_more(WINDOW));
}

#[test]
fn what_the_store_has_is_read_there() {
    let filling = Filling::new("stored");
    let (slow, fast) = (filling.reader(1), filling.reader(2));
    for _ in 0..8 {
        filling.push("abcd");
        filling.store(true);
    }
    let windows = 8 * BLOCK - RETAINED_WINDOWS * WINDOW;
    assert_eq!(filling.read(&slow, 0), Err(format!("Stored({windows})")));
    assert_eq!(filling.read(&fast, 7 * BLOCK), Ok(b"abcd".to_vec()));
}

#[test]
fn what_the_store_does_not_keep_waits_for_the_slowest_reader() {
    let filling = Filling::new("kept");
    let (slow, fast) = (filling.reader(1), filling.reader(2));
    for _ in 0..5 {
        filling.push("abcd");
        filling.store(false);
    }
    assert_eq!(filling.read(&fast, 5 * BLOCK), Err("Wait".into()));
    assert!(!filling.fill.wants_more(WINDOW), "the slow one still needs all of it");
    assert_eq!(filling.read(&slow, 0).map(|bytes| bytes.len()), Ok(20));
    assert_eq!(filling.read(&slow, 20), Err("Wait".into()));
    assert!(filling.fill.wants_more(WINDOW));
}

#[test]
fn a_fetch_without_readers_is_deserted() {
    let filling = Filling::new("no-readers");
    let name = filling.reader(1);
    assert!(!filling.fill.is_deserted());
    assert!(filling.fill.leave(&name), "the loop that fetches is to be told");
    assert!(filling.fill.is_deserted());
}

#[test]
fn a_reader_gets_all_that_has_come_before_it_hears_of_a_failure() {
    let filling = Filling::new("cut");
    let name = filling.reader(1);
    filling.push("abcd");
    assert_eq!(filling.read(&name, 4), Err("Wait".into()));
    let woken = filling.fill.finish(Err(failed(FailureReason::Ended)));
    assert_eq!(woken.len(), 1);
    assert_eq!(filling.read(&name, 0), Ok(b"abcd".to_vec()));
    assert!(matches!(filling.fill.read(&name, 4, u64::MAX).0, Read::Failed(_)));
}
