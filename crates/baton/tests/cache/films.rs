//! An origin of long bodies, made as they are sent, that does with ranges what a test tells it to.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex};

use crate::common::server::{PATIENCE, wait_until};
use crate::origin::{Origin, Peer, Seen};
use crate::site::HINT;

/// The origin of all films.
pub(crate) static FILMS: LazyLock<Origin> = LazyLock::new(|| Origin::start(serve));

/// What there is, by path.
static SHOWN: LazyLock<Mutex<HashMap<String, Arc<Film>>>> = LazyLock::new(Default::default);

/// A film at the origin, and what it has sent of it.
pub(crate) struct Film {
    pub(crate) path: String,
    state: Mutex<FilmState>,
    changed: Condvar,
    /// Bytes of bodies.
    pub(crate) sent: AtomicU64,
    /// A connection has ended while it was sent.
    pub(crate) was_left: AtomicBool,
}

/// What the origin has now.
#[derive(Clone, Debug)]
pub(crate) struct FilmState {
    pub(crate) length: u64,
    /// Tells which bytes it has.
    pub(crate) version: u8,
    /// Its bytes, if they are those of a real film.
    pub(crate) file: Option<Arc<Vec<u8>>>,
    /// More lines of the head, such as that of its ETag.
    pub(crate) fields: String,
    pub(crate) manner: Manner,
}

/// How the origin answers a request with Range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Honest,
    /// It sends an interim response first.
    Hinting,
    /// It sends all, with 200.
    Whole,
    /// It sends so many bytes less than it was asked for, and says so.
    Shorter(u64),
    /// It begins a byte later, and says so.
    Shifted,
    /// It names another total length in each part.
    OtherTotals,
    /// A part that was asked for with If-Range has none of the fields that its client knows.
    Brief,
    /// 206 without Content-Range.
    Unplaced,
    /// 206 with several parts.
    Multipart,
    /// A part of something coded, under the same tag.
    Gzip,
    /// 416.
    Refused,
    /// The connection ends after so many bytes of a body, once; then it is honest.
    CutAfter(u64),
    /// It stops after so many bytes of a body, until the test changes the film; then the connection ends.
    StallsAfter(u64),
}

impl Film {
    /// Puts a film of this length at a path that no other has.
    pub(crate) fn show(test: &str, length: u64, manner: Manner) -> Arc<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let path = format!("/{test}-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let fields = "Cache-Control: max-age=600\r\nETag: \"1\"\r\n".to_owned();
        let state = FilmState { length, version: 1, file: None, fields, manner };
        let film = Arc::new(Self {
            path: path.clone(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            sent: AtomicU64::new(0),
            was_left: AtomicBool::new(false),
        });
        SHOWN.lock().expect("no panic").insert(path, Arc::clone(&film));
        film
    }

    /// Puts a real film at such a path.
    pub(crate) fn show_file(test: &str, bytes: Vec<u8>) -> Arc<Self> {
        let film = Self::show(test, bytes.len() as u64, Manner::Honest);
        film.change(|state| {
            state.fields.push_str("Content-Type: video/mp4\r\n");
            state.file = Some(Arc::new(bytes));
        });
        film
    }

    /// Where clients find it.
    pub(crate) fn address(&self) -> String {
        format!("/film{}", self.path)
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut FilmState)) {
        change(&mut self.state.lock().expect("no panic"));
        self.changed.notify_all();
    }

    /// Shows another version from now on, with a tag of its own.
    pub(crate) fn replace(&self, version: u8, manner: Manner) {
        self.change(|state| {
            let fields = format!("Cache-Control: max-age=600\r\nETag: \"{version}\"\r\n");
            (state.version, state.fields, state.manner) = (version, fields, manner);
        });
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// The ranges that the origin was asked for; `-` for the whole.
    pub(crate) fn asked(&self) -> Vec<String> {
        let of = |seen: &Seen| seen.field("range").unwrap_or("-").to_owned();
        self.seen().iter().map(of).collect()
    }

    /// The requests for it.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        FILMS.seen(&format!(" {} ", self.path))
    }

    /// Until nothing was sent while half a second of looks went by.
    pub(crate) fn wait_until_it_stands_still(&self) {
        let (mut last, mut looks) = (0, 0);
        wait_until("the origin to stand still", || {
            looks = if self.sent() == last && last > 0 { looks + 1 } else { 0 };
            last = self.sent();
            looks == 50
        });
    }

    fn now(&self) -> FilmState {
        self.state.lock().expect("no panic").clone()
    }

    fn wait_for_change(&self) {
        let state = self.state.lock().expect("no panic");
        let stalls = |state: &mut FilmState| matches!(state.manner, Manner::StallsAfter(_));
        let _ = self.changed.wait_timeout_while(state, PATIENCE, stalls).expect("no panic");
    }
}

/// Bytes of a version of any film.
pub(crate) fn bytes_of(version: u8, bytes: Range<u64>) -> Vec<u8> {
    let mut made = Vec::with_capacity((bytes.end - bytes.start) as usize);
    let mut at = bytes.start;
    while at < bytes.end {
        let start = at % PERIOD;
        let end = PERIOD.min(start + (bytes.end - at));
        made.extend_from_slice(&period_of(version, end)[start as usize..]);
        at += end - start;
    }
    made
}

/// After so many bytes a film repeats itself.
const PERIOD: u64 = 1 << 24;

/// The first bytes of any film, made once.
fn period_of(version: u8, count: u64) -> &'static [u8] {
    static MADE: LazyLock<Mutex<HashMap<u8, &'static [u8]>>> = LazyLock::new(Mutex::default);
    let mut made = MADE.lock().expect("no panic");
    let longest = made.entry(version).or_default();
    if (longest.len() as u64) < count {
        let byte = |at: u64| ((at ^ at >> 8 ^ at >> 16) as u8).wrapping_mul(31).wrapping_add(version);
        *longest = (0..count.next_power_of_two()).map(byte).collect::<Vec<_>>().leak();
    }
    &longest[..count as usize]
}

fn serve(peer: &mut Peer) {
    while let Some(seen) = peer.request() {
        let film = SHOWN.lock().expect("no panic").get(seen.path()).cloned();
        let Some(film) = film else { return peer.send("HTTP/1.1 404 None\r\nContent-Length: 0\r\n\r\n") };
        if !show(peer, &seen, &film) {
            return;
        }
    }
}

/// Answers. Returns whether the connection goes on.
fn show(peer: &mut Peer, seen: &Seen, film: &Film) -> bool {
    let FilmState { length, version, file, fields, manner } = film.now();
    if manner == Manner::Hinting {
        peer.send(HINT);
    }
    let is_current = seen.field("if-range").is_none_or(|tag| fields.contains(&format!(": {tag}\r\n")));
    let range = seen.field("range").filter(|_| is_current && manner != Manner::Whole);
    let Some((first, last)) = range.map(|range| placed(range, length)) else {
        peer.send(format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {length}\r\n\r\n"));
        return send(peer, film, (version, file), 0..length, manner);
    };
    if first >= length || manner == Manner::Refused {
        let head = format!("HTTP/1.1 416 No\r\nContent-Range: bytes */{length}\r\nContent-Length: 0\r\n\r\n");
        peer.send(head);
        return true;
    }
    let (first, last, total) = match manner {
        Manner::Shorter(less) => (first, last.saturating_sub(less).max(first), length),
        Manner::Shifted => (first + 1, last, length),
        Manner::OtherTotals => (first, last, length + seen.connection as u64 + first),
        _ => (first, last, length),
    };
    let place = match manner {
        Manner::Unplaced => String::new(),
        Manner::Multipart => "Content-Type: multipart/byteranges; boundary=a\r\n".into(),
        Manner::Gzip => format!("Content-Encoding: gzip\r\nContent-Range: bytes {first}-{last}/{total}\r\n"),
        _ => format!("Content-Range: bytes {first}-{last}/{total}\r\n"),
    };
    let count = last + 1 - first;
    let is_brief = manner == Manner::Brief && seen.field("if-range").is_some();
    let fields = if is_brief { "Cache-Control: max-age=600\r\n".into() } else { fields };
    peer.send(format!("HTTP/1.1 206 Part\r\n{fields}{place}Content-Length: {count}\r\n\r\n"));
    // What comes coded, or without its place, is of no version.
    let version = if place.starts_with("Content-Range") { version } else { 0 };
    send(peer, film, (version, file), first..last + 1, manner)
}

fn send(
    peer: &mut Peer,
    film: &Film,
    (version, file): (u8, Option<Arc<Vec<u8>>>),
    bytes: Range<u64>,
    manner: Manner,
) -> bool {
    let mut at = bytes.start;
    let stop = match manner {
        Manner::CutAfter(count) | Manner::StallsAfter(count) => bytes.start + count,
        _ => u64::MAX,
    };
    while at < bytes.end {
        if at >= stop {
            match manner {
                Manner::CutAfter(_) => film.change(|state| state.manner = Manner::Honest),
                _ => film.wait_for_change(),
            }
            return false;
        }
        let end = bytes.end.min(at + 65_536).min(stop);
        let bytes = match &file {
            Some(file) => file[at as usize..end as usize].to_vec(),
            None => bytes_of(version, at..end),
        };
        if !peer.try_send(&bytes) {
            film.was_left.store(true, Ordering::Relaxed);
            return false;
        }
        film.sent.fetch_add(end - at, Ordering::Relaxed);
        at = end;
    }
    true
}

/// The first and the last byte of a field with one range.
fn placed(range: &str, length: u64) -> (u64, u64) {
    let (first, last) =
        range.strip_prefix("bytes=").and_then(|range| range.split_once('-')).expect("a range");
    let number = |text: &str| text.parse::<u64>().expect("a number");
    match (first, last) {
        ("", suffix) => (length - number(suffix).min(length), length - 1),
        (first, "") => (number(first), length - 1),
        (first, last) => (number(first), number(last).min(length - 1)),
    }
}
