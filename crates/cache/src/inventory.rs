//! What is here of the responses to a request: for operators.

use std::collections::BTreeMap;

use baton_http::RequestHead;
use baton_segment::layout::SegmentNumber;
use baton_segment::rules::{Arrival, Bypass};
use serde::Serialize;

use crate::blocks::Blocks;
use crate::object::Object;
use crate::{Ask, CachedRoute, SharedCache};

/// A stored response, and what is here of its body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoredParts {
    /// Its status code.
    pub status: u16,
    /// Bytes of the whole body; `None`: it is not known yet.
    pub length: Option<u64>,
    /// For how many seconds it is fresh; below 0 it is stale.
    pub ttl_s: i64,
    /// The policy that keeps its segments, with its grouping: `s3-fifo`, `reach/uniform:4`.
    pub policy: String,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Segments of the whole body; `None`: its length is not known yet.
    pub segments: Option<u32>,
    /// Segments of which something is here, at most [`SEGMENTS_SHOWN_MAX`].
    pub here: Vec<SegmentParts>,
    /// Segments of which something is here, and that are not shown.
    pub more: usize,
}

/// A segment of which something is here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SegmentParts {
    /// Its number, from 0.
    pub segment: SegmentNumber,
    /// Its first byte.
    pub begin: u64,
    /// The byte behind its last one. Segment 0 has the last block of the body besides.
    pub end: u64,
    /// Its blocks.
    pub blocks: u32,
    /// Those in memory.
    pub in_memory: u32,
    /// Those on the disk, in memory or not.
    pub on_disk: u32,
}

/// Most segments of a response that are shown.
pub const SEGMENTS_SHOWN_MAX: usize = 64;

impl SharedCache {
    /// What is here for a request. It counts as no use.
    ///
    /// # Errors
    /// The cache has nothing to do with the request.
    pub fn inventory(
        &self,
        route: &CachedRoute,
        arrival: Arrival,
        head: &RequestHead<'_>,
        now_s: u64,
    ) -> Result<Vec<StoredParts>, Bypass> {
        let key = route.key_of(arrival, head)?;
        let hash = Ask::hash_of(route, &self.secret, &key);
        let variants = self.directory.with_known((&key, hash), &route.partition, |entry| {
            entry.map_or_else(Vec::new, |entry| {
                entry.judge(&route.rules);
                self.drop_purged(entry);
                entry.variants.clone()
            })
        });
        Ok(variants.iter().map(|object| self.blocks.parts_of(object, now_s)).collect())
    }
}

impl Blocks {
    fn parts_of(&self, object: &Object, now_s: u64) -> StoredParts {
        let (layout, length) = (object.content.layout(), object.content.length());
        let blocks = length.map(|length| layout.blocks_in(length));
        let mut here: BTreeMap<SegmentNumber, SegmentParts> = BTreeMap::new();
        self.each_block(object.content.key, |is_disk, block| {
            let segment = layout.segment_of(block, blocks);
            let parts = here.entry(segment).or_insert_with(|| {
                let span = layout.blocks_of(segment, blocks);
                let start_of = |block| layout.bytes_of(block, length).start;
                let blocks = span.body.len() as u32 + u32::from(span.tail.is_some());
                let (begin, end) = (start_of(span.body.start), start_of(span.body.end));
                SegmentParts { segment, begin, end, blocks, ..SegmentParts::default() }
            });
            *(if is_disk { &mut parts.on_disk } else { &mut parts.in_memory }) += 1;
        });
        StoredParts {
            status: object.stored.head().status().code(),
            length,
            ttl_s: object.stored.freshness().ttl_s(now_s),
            policy: object.content.policy.to_string(),
            block_bytes: layout.block_bytes(),
            segments: blocks.map(|blocks| layout.segments_in(blocks)),
            more: here.len().saturating_sub(SEGMENTS_SHOWN_MAX),
            here: here.into_values().take(SEGMENTS_SHOWN_MAX).collect(),
        }
    }
}
