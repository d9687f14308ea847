//! What the preload library passes to the program: the same in any pieces, and everything if nothing is for the
//! library.

use std::os::fd::AsFd;
use std::sync::LazyLock;

use baton_fcgi::offer::{self, Offer};
use baton_fcgi::record::{RecordHeader, RecordType};
use baton_pool::ChunkPool;
use rustix::net::RecvFlags;

use crate::inbox::{Inbox, Stage};
use crate::pieces::{INPUT_BYTES_MAX, with_pieces};

/// What a program and the library around it see.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    received: Vec<u8>,
    offers: Vec<(u16, Vec<u8>)>,
    asked: bool,
    /// Whether bodies may be in the pool.
    lends: bool,
}

/// A server's bytes. With them come descriptors of a pool.
pub fn inbox(input: &[u8]) {
    // Less than this tells nothing of a connection.
    if !(2..=INPUT_BYTES_MAX).contains(&input.len()) {
        return;
    }
    let (whole, stage) = read(input, input.len());
    for piece_bytes in [7, 2] {
        let (seen, its_stage) = read(input, piece_bytes);
        assert_eq!((stage, &whole.offers, whole.asked), (its_stage, &seen.offers, seen.asked), "in pieces");
        // If a record for the library turns out not to be one, the program gets the part that was not removed yet.
        assert!(stage == Stage::Unfamiliar || whole == seen, "in pieces");
    }
    let named = |name: &[u8]| input.windows(name.len()).any(|part| part == name);
    if !named(offer::NAME.as_bytes()) {
        assert!(whole.offers.is_empty());
        if stage == Stage::Unfamiliar && !input.contains(&(RecordType::Baton as u8)) {
            assert!(whole.received == input, "nothing of it was ours");
        }
    }
    assert!(whole.lends || whole.received.len() <= input.len());
    if stage == Stage::FastCgi {
        let own = records(&whole.received).filter(|header| header.kind == RecordType::Baton as u8);
        assert_eq!(own.filter(|header| header.request_id != 0).count(), 0, "records of the library's own");
    }
}

fn read(input: &[u8], piece_bytes: usize) -> (Seen, Stage) {
    static POOL: LazyLock<ChunkPool> = LazyLock::new(|| ChunkPool::create(1).expect("a pool"));
    with_pieces(input, piece_bytes, &[POOL.as_fd(); 4], |socket| {
        let mut inbox = Inbox::default();
        let mut seen = Seen::default();
        loop {
            seen.look(&mut inbox);
            let ready = inbox.ready();
            if ready > 0 {
                seen.received.extend_from_slice(inbox.give());
                inbox.given(ready);
            } else if inbox.fill(socket.as_fd(), input.len(), RecvFlags::empty()) == Ok(0) {
                seen.received.extend_from_slice(inbox.give());
                return (seen, inbox.stage());
            }
        }
    })
}

impl Seen {
    fn look(&mut self, inbox: &mut Inbox) {
        loop {
            let begins = inbox.take_begins();
            let offered = inbox.take_offer().map(|(id, offer, _)| (id, offer.to_vec()));
            if let Some((id, offer)) = &offered
                && let Ok(offer) = Offer::parse(offer)
            {
                self.lends |= inbox.begin_body(*id, offer.bodies).is_ok();
            }
            let is_news = begins.is_some() || offered.is_some();
            self.offers.extend(offered);
            self.asked |= inbox.take_asked();
            while inbox.take_control().is_some() {}
            if !is_news {
                break;
            }
            inbox.sift();
        }
    }
}

/// The headers of a stream of records.
fn records(stream: &[u8]) -> impl Iterator<Item = RecordHeader> {
    let mut rest = stream;
    std::iter::from_fn(move || {
        let (header, behind) = rest.split_first_chunk()?;
        let header = RecordHeader::parse(header).ok()?;
        rest = behind
            .get(usize::from(header.content_len) + usize::from(header.padding_len)..)
            .unwrap_or_default();
        Some(header)
    })
}
