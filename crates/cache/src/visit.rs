//! A reader of a content, as the policies of the indexes know it: which segments it reaches, and where it leaves. A request
//! that goes on where another one has ended is the same [reader](crate::pauses).
//!
//! Policies that look at readers on their way have to hear that one leaves, or they keep bytes for it for as long as the
//! content is here. So a visit ends with its value, however its request ends, and waits for an index that another loop has:
//! for microseconds, twice a segment. A content of one segment has no way through it. Uses of it that meet are not all counted,
//! and no client waits.

use std::ops::Range;
use std::sync::Arc;

use baton_segment::layout::BlockNumber;
use baton_shares::ClientKey;

use crate::blocks::Waiting;
use crate::object::Content;
use crate::pauses::Pause;

/// A reader of a content.
#[derive(Debug)]
pub(crate) struct Visit {
    content: Arc<Content>,
    client: Option<ClientKey>,
    /// The block that it has reached last, as far as the indexes were told.
    last: Option<BlockNumber>,
    /// The byte behind the last one, and when the reader got that.
    next: u64,
    at_ms: u64,
    supply: Supply,
}

/// Where a reader's bytes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Supply {
    /// The store, or a response that another request has caused.
    Cache,
    /// The response that it has caused itself.
    Origin,
}

impl Visit {
    /// A reader that has reached nothing yet.
    pub(crate) fn new(content: &Arc<Content>, client: Option<ClientKey>) -> Self {
        Self { content: Arc::clone(content), client, last: None, next: 0, at_ms: 0, supply: Supply::Cache }
    }

    /// The reader for whom a content was [begun](crate::blocks::Blocks::begin) with this block.
    pub(crate) fn begun(content: &Arc<Content>, client: Option<ClientKey>, first: BlockNumber) -> Self {
        let mut visit = Self::new(content, client);
        (visit.last, visit.supply) = (Some(first), Supply::Origin);
        visit
    }

    pub(crate) fn supply(&self) -> Supply {
        self.supply
    }

    /// The reader gets these bytes.
    pub(crate) fn note_read(&mut self, bytes: &Range<u64>, now_ms: u64) {
        (self.next, self.at_ms) = (bytes.end, now_ms);
        let blocks = self.content.layout().blocks_over(bytes);
        let from = self.last.or_else(|| self.content.went_on(bytes.start));
        let Some(last) = blocks.clone().next_back().filter(|last| self.last != Some(*last)) else { return };
        let waiting = if self.content.has_way() { Waiting::Yes } else { Waiting::No };
        self.content.blocks().note(self.content.key, waiting, |index, object| {
            let mut from = from;
            for block in blocks.clone() {
                match self.supply {
                    Supply::Cache => index.handle_use(object, from, block, now_ms),
                    Supply::Origin => index.handle_miss(object, from, block, now_ms),
                }
                from = Some(block);
            }
        });
        self.last = Some(last);
    }

    /// A reader gets these bytes of a content, all that it wants, at once. Where the content has one segment, no client waits
    /// for that to be noted.
    pub(crate) fn note_short(
        content: &Arc<Content>,
        client: Option<ClientKey>,
        bytes: &Range<u64>,
        now_ms: u64,
    ) {
        Self::new(content, client).note_read(bytes, now_ms);
    }

    /// The reader may ask for more, if it has got something, and not all. Returns those that have left.
    fn pause(&self, last: BlockNumber) -> Vec<Pause> {
        let content = &self.content;
        let pause = Pause { content: content.key, last, at_ms: self.at_ms };
        let has_seen_all = content.length().is_some_and(|length| self.next >= length);
        if has_seen_all || self.next == 0 {
            return vec![pause];
        }
        content.blocks().note(content.key, Waiting::Yes, |index, object| index.handle_pause(object, last));
        content.blocks().pauses().begin(content.handle, self.next, self.client, pause)
    }
}

impl Content {
    /// The block from which a reader goes on that asks for the bytes from here.
    fn went_on(&self, start: u64) -> Option<BlockNumber> {
        let pause = self.has_way().then(|| self.blocks().pauses().end(self.handle, start));
        pause.flatten().map(|pause| pause.last)
    }

    /// Whether it has more segments than one.
    fn has_way(&self) -> bool {
        let layout = self.layout();
        self.length().is_none_or(|length| layout.segments_in(layout.blocks_in(length)) > 1)
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let Some(last) = self.last.filter(|_| self.content.has_way()) else { return };
        for Pause { content, last, .. } in self.pause(last) {
            let blocks = self.content.blocks();
            blocks.note(content, Waiting::Yes, |index, object| index.handle_leave(object, last));
        }
    }
}

#[cfg(test)]
mod tests {
    use baton_buf::Slice;
    use baton_segment::index::Facts;
    use baton_segment::policy::PolicyName;

    use super::*;
    use crate::Settings;
    use crate::blocks::Blocks;
    use crate::test_bench::counters;

    const BLOCK: u64 = 4096;

    struct Films {
        blocks: Arc<Blocks>,
        now_ms: u64,
    }

    impl Films {
        fn begin(&self, key: u128, blocks: u64) -> Arc<Content> {
            let facts = Facts { length: Some(blocks * BLOCK), handle: key as u64, ..Facts::default() };
            let begun = self.blocks.begin(key, facts, (0, 0), Vec::new(), self.now_ms);
            assert_eq!(begun.0, Ok(()));
            Arc::new(Content::new(&self.blocks, key, facts))
        }

        /// Reads blocks one by one, a second each.
        fn read(&mut self, visit: &mut Visit, blocks: Range<u64>) {
            for block in blocks {
                self.now_ms += 1000;
                visit.note_read(&(block * BLOCK..(block + 1) * BLOCK), self.now_ms);
                // Whether it is kept is what the test asks afterwards.
                let bytes = Slice::from(vec![0; BLOCK as usize]);
                let _ = self.blocks.put(visit.content.key, block as u32, &bytes, self.now_ms);
            }
        }

        fn blocks_of(&self, content: &Content, blocks: Range<u32>) -> usize {
            blocks.filter(|block| self.blocks.contains(content.key, *block)).count()
        }
    }

    /// Goal: a film in parts is read by one reader, also where another request stores what was not kept of it. Method: two films
    /// are read as often, one as a whole, one in parts; then something else comes. As much is left of both.
    #[test]
    fn a_film_in_parts_is_worth_as_much_as_a_whole_one() {
        for policy in [PolicyName::Reach, PolicyName::S3Fifo, PolicyName::Wu] {
            let left_of_film = |part: u64| {
                let settings = Settings {
                    memory_bytes_max: 64 * BLOCK,
                    block_bytes: BLOCK as u32,
                    policy: Some(policy),
                    ..Settings::default()
                };
                let blocks = Arc::new(Blocks::open(&settings, counters(), 1).expect("a cache"));
                let mut films = Films { blocks, now_ms: 0 };
                let film = films.begin(1, 49);
                for _ in 0..2 {
                    for first in (0..48).step_by(part as usize) {
                        films.read(&mut Visit::new(&film, None), first..first + part);
                    }
                }
                for key in 2..40 {
                    let other = films.begin(key, 5);
                    films.read(&mut Visit::new(&other, None), 0..5);
                }
                films.blocks_of(&film, 0..49)
            };
            assert_eq!(left_of_film(48), left_of_film(3), "{policy}");
        }
    }

    /// Goal: the policy keeps what a reader is about to want, and no longer than it reads. Method: two films that were begun as
    /// often; a reader is halfway through one, or was, and another film becomes popular.
    #[test]
    fn blocks_ahead_of_a_reader_stay_until_it_leaves() {
        let end_is_kept = |leaves: bool| {
            let settings = Settings {
                memory_bytes_max: 192 * BLOCK,
                block_bytes: BLOCK as u32,
                policy: Some(PolicyName::Reach),
                ..Settings::default()
            };
            let blocks = Arc::new(Blocks::open(&settings, counters(), 1).expect("a cache"));
            let mut films = Films { blocks, now_ms: 0 };
            let contents = [1, 2].map(|key| films.begin(key, 97));
            for content in &contents {
                let mut first = Visit::begun(content, None, 0);
                films.read(&mut first, 0..96);
            }
            let mut reader = Some(Visit::new(&contents[0], None));
            films.read(reader.as_mut().expect("a reader"), 0..60);
            reader = reader.filter(|_| !leaves);
            films.read(&mut Visit::new(&contents[1], None), 0..60);
            // So long that who has asked for no other part has left.
            films.now_ms += 120_000;
            let popular = films.begin(3, 49);
            for _ in 0..12 {
                films.read(&mut Visit::new(&popular, None), 0..48);
            }
            drop(reader);
            contents.each_ref().map(|content| films.blocks_of(content, 64..96))
        };
        let [ahead, elsewhere] = end_is_kept(false);
        assert!(ahead > elsewhere, "{ahead} blocks ahead of the reader, {elsewhere} of the other film");
        let [behind, _] = end_is_kept(true);
        assert!(ahead > behind, "{ahead} blocks while it reads, {behind} after it has left");
    }
}
