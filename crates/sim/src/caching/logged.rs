//! Sessions from the requests of a log.
//!
//! A player asks for a film in parts, one behind the other, and for another part when its viewer seeks. So the requests of a
//! client for one file are a session, until it pauses for long or begins the file again.

use hashbrown::HashMap;

use super::session::Session;
use crate::trace::LogRead;

/// A client that pauses for longer begins another session.
const PAUSE_MS: u64 = 10 * 60_000;
/// Players look at the beginning of a film, and begin it again: with so many bytes they have not begun to play.
const PROBE_BYTES: u64 = 64 << 10;

/// A log without ranges may tell of any number of parts, but no file is so long.
const OBJECT_BYTES_MAX: u64 = 1 << 41;

/// The sessions of these requests, in order of time.
pub(super) fn sessions(mut reads: Vec<LogRead>) -> Vec<Session> {
    reads.sort_by_key(|read| read.begin_ms);
    let zero_ms = reads.first().map_or(0, |read| read.begin_ms);
    for read in &mut reads {
        read.begin_ms -= zero_ms;
        read.end_ms -= zero_ms;
    }
    let mut sessions: Vec<Session> = Vec::new();
    // The session that goes on, and when its last response had ended.
    let mut open: HashMap<(u64, u32), (usize, u64), foldhash::fast::FixedState> = HashMap::default();
    for read in &reads {
        let key = (read.client, read.target);
        let went_on = open.get(&key).filter(|(session, end_ms)| goes_on(&sessions[*session], *end_ms, read));
        match went_on.copied() {
            Some((session, end_ms)) => {
                extend(&mut sessions[session], read);
                open.insert(key, (session, end_ms.max(read.end_ms)));
            }
            None => {
                open.insert(key, (sessions.len(), read.end_ms));
                sessions.push(begun(read));
            }
        }
        let (session, end_ms) = open[&key];
        pace(&mut sessions[session], end_ms);
    }
    sessions
}

fn begun(read: &LogRead) -> Session {
    let start = read.start.unwrap_or(0);
    let part = start..start + read.bytes;
    Session { at_ms: read.begin_ms, object: read.target, reads: vec![part], bytes_per_minute: u64::MAX }
}

fn goes_on(session: &Session, end_ms: u64, read: &LogRead) -> bool {
    let begins_again = read.start == Some(0) && bytes_of(session) > PROBE_BYTES;
    read.begin_ms <= end_ms + PAUSE_MS && !begins_again
}

/// Bytes right behind the last ones, or an overlap with them, are no seek; nor are those of a log without ranges.
fn extend(session: &mut Session, read: &LogRead) {
    let Some(last) = session.reads.last_mut() else { return };
    let start = read.start.unwrap_or(last.end);
    if (last.start..=last.end).contains(&start) {
        last.end = last.end.max(start + read.bytes).min(OBJECT_BYTES_MAX.max(last.end));
    } else {
        session.reads.push(start..start + read.bytes);
    }
}

/// The reader took its bytes evenly, as far as the log tells its time.
fn pace(session: &mut Session, end_ms: u64) {
    let pace = bytes_of(session).saturating_mul(60_000).checked_div(end_ms - session.at_ms);
    session.bytes_per_minute = pace.map_or(u64::MAX, |pace| pace.max(1));
}

fn bytes_of(session: &Session) -> u64 {
    session.reads.iter().map(|range| range.end - range.start).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MB: u64 = 1 << 20;

    fn read(second: u64, client: u64, start: Option<u64>, bytes: u64) -> LogRead {
        LogRead {
            begin_ms: second * 1000,
            end_ms: second * 1000 + 500,
            client,
            target: 3,
            start,
            bytes,
            is_media: false,
        }
    }

    #[test]
    fn a_player_that_probes_seeks_and_leaves_is_one_session() {
        let reads = vec![
            read(0, 1, Some(0), 2),
            read(1, 1, Some(90 * MB), 4096),
            read(2, 1, Some(0), 5 * MB),
            read(60, 1, Some(5 * MB), 5 * MB),
            read(70, 1, Some(40 * MB), MB),
        ];
        let expected = vec![0..2, 90 * MB..90 * MB + 4096, 0..10 * MB, 40 * MB..41 * MB];
        let [session] = &sessions(reads)[..] else { panic!("one session") };
        assert_eq!(session.reads, expected);
        let bytes: u64 = expected.iter().map(|range| range.end - range.start).sum();
        assert_eq!(session.bytes_per_minute, bytes * 60_000 / 70_500);
    }

    #[test]
    fn other_clients_long_pauses_and_beginnings_are_other_sessions() {
        let reads = vec![
            read(0, 1, Some(0), MB),
            read(1, 2, Some(0), MB),
            read(2, 2, Some(0), MB),
            read(700, 1, Some(MB), MB),
        ];
        let found = sessions(reads);
        let begins: Vec<_> = found.iter().map(|one| (one.at_ms / 1000, one.reads[0].start)).collect();
        assert_eq!(begins, [(0, 0), (1, 0), (2, 0), (700, MB)]);
    }

    #[test]
    fn parts_without_ranges_follow_each_other() {
        let found = sessions(vec![read(9, 1, None, MB), read(5, 1, None, MB)]);
        let [session] = &found[..] else { panic!("one session") };
        let both = 0..2 * MB;
        assert_eq!(session.reads, [both]);
        assert_eq!(session.at_ms, 0, "time begins with the first request");
    }

    proptest! {
        /// Whatever a log says: sessions are in order, read something in each range, and no more than clients got.
        #[test]
        fn no_byte_is_made_up(
            parts in prop::collection::vec((0..2000u64, 0..3u64, prop::option::of(0..1u64 << 40), 1..1u64 << 40), 0..40),
        ) {
            let reads: Vec<LogRead> =
                parts.iter().map(|&(second, client, start, bytes)| read(second, client, start, bytes)).collect();
            let found = sessions(reads);
            prop_assert!(found.windows(2).all(|pair| pair[0].at_ms <= pair[1].at_ms));
            prop_assert!(found.iter().flat_map(|one| &one.reads).all(|range| range.start < range.end));
            let got: u64 = parts.iter().map(|(.., bytes)| bytes).sum();
            prop_assert!(found.iter().map(bytes_of).sum::<u64>() <= got);
        }
    }
}
