//! Goal: both directions of the arithmetic agree. Method: laws over groupings, block sizes, lengths and offsets.

use std::num::NonZeroU32;

use baton_segment::layout::{Grouping, Layout};
use proptest::prelude::*;

fn layouts() -> impl Strategy<Value = Layout> {
    let grouping = prop_oneof![
        (1..40_u32).prop_map(|blocks| Grouping::Uniform(NonZeroU32::new(blocks).unwrap())),
        Just(Grouping::Exponential),
        Just(Grouping::Pyramid),
        Just(Grouping::Whole),
    ];
    (12..27_u32, grouping).prop_map(|(shift, grouping)| Layout::new(1 << shift, grouping).unwrap())
}

proptest! {
    /// Blocks cover an object without gap or overlap, and each byte is in the block that its offset names.
    #[test]
    fn blocks_divide_an_object(layout in layouts(), length in 0..1_u64 << 30, at in 0.0..1.0_f64) {
        let blocks = layout.blocks_in(length);
        let ends = [layout.bytes_of(0, Some(length)).start, layout.bytes_of(blocks - 1, Some(length)).end];
        prop_assert_eq!(ends, [0, length]);
        let block = (at * f64::from(blocks)) as u32;
        let bytes = layout.bytes_of(block, Some(length));
        prop_assert_eq!(bytes.end, layout.bytes_of(block + 1, Some(length)).start);
        for offset in [bytes.start, bytes.end.saturating_sub(1)].into_iter().filter(|at| bytes.contains(at)) {
            prop_assert_eq!(layout.block_of(offset), block);
        }
        if !bytes.is_empty() {
            prop_assert_eq!(layout.blocks_over(&bytes), block..block + 1);
        }
    }

    /// Segments divide the blocks: each block is in the segment that claims it, and in no other.
    #[test]
    fn segments_divide_the_blocks(layout in layouts(), blocks in 1..3000_u32, known in any::<bool>()) {
        let extent = known.then_some(blocks);
        let mut seen = 0;
        let segments = if known { layout.segments_in(blocks) } else { layout.segment_of(blocks, None) + 1 };
        for segment in 0..segments {
            let span = layout.blocks_of(segment, extent);
            for block in span.body.clone().take_while(|block| *block < blocks).chain(span.tail) {
                prop_assert_eq!(layout.segment_of(block, extent), segment);
                seen += 1;
            }
            prop_assert_eq!(span.tail.is_some(), known && segment == 0);
        }
        prop_assert_eq!(seen, blocks);
        prop_assert!(!known || layout.blocks_of(segments, extent).body.is_empty());
    }

    /// Exponential segments double, as the source has it: segment n has 2^(n+1) blocks.
    #[test]
    fn exponential_segments_double(segment in 0..29_u32) {
        let layout = Layout::new(1 << 18, Grouping::Exponential).unwrap();
        let body = layout.blocks_of(segment, None).body;
        prop_assert_eq!((body.start, body.len()), ((2 << segment) - 2, 2 << segment));
    }

    /// No offset, block or segment is too large to be asked about.
    #[test]
    fn arithmetic_saturates(layout in layouts(), offset in any::<u64>(), block in 0..=1_u32 << 31, segment in any::<u32>()) {
        prop_assert!(layout.block_of(offset) <= 1 << 31);
        prop_assert!(layout.blocks_in(offset) <= 1 << 31);
        prop_assert!(layout.bytes_of(block, Some(offset)).end <= offset);
        prop_assert!(layout.blocks_of(segment, None).body.end <= 1 << 31);
        prop_assert!(layout.blocks_of(layout.segment_of(block, None), None).body.end >= block.min((1 << 31) - 1));
    }
}
