//! The offer that comes with a request: answer the client yourself, or through shared memory
//! (`docs/handover-protocol.md`, section 2).

pub use baton_http::response::Client;

use baton_http::response::Edits;
use baton_http::{parse_decimal, push_decimal};

use crate::Broken;
use crate::params::long_length;

/// The name of the pair that is the offer: the first of a request's parameters, which no application sees.
pub const NAME: &str = "BATON_OFFER";

/// Bytes that a library has room for at least when it waits for a request: as much of one is read with one call, or
/// nothing of it.
pub const WHOLE_BYTES: usize = 16 << 10;

/// An offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer<'a> {
    /// How the answer may travel.
    pub transport: Transport,
    /// Descriptors that came with the first byte of this request, those of its body among them.
    pub fds: usize,
    /// How the request's body may come.
    pub bodies: Bodies,
    /// How long a write may wait for the client before the rest is handed back, in milliseconds.
    pub patience_ms: u32,
    /// Whether the last bytes of a response may wait in the kernel for the end of the connection, which follows at once.
    pub holds: bool,
    /// Ready-made response fields: complete lines `Name: value CRLF`, preceded by [`Edits`] of the
    /// application's own.
    pub fields: &'a [u8],
}

/// How the bodies of requests may come to the application, besides records of `FCGI_STDIN`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bodies {
    /// The server asks whether this library takes bodies by reference.
    pub asks: bool,
    /// One of the descriptors is the pool of this connection from now on: its size in bytes, or 0.
    pub pool: u32,
    /// One of the descriptors is a file with the body of this request.
    pub file: bool,
}

impl Bodies {
    /// How many descriptors they are, behind the one of the transport: the pool, then the file.
    pub fn fds(self) -> usize {
        usize::from(self.pool > 0) + usize::from(self.file)
    }
}

/// How an answer travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// On the client's own socket.
    PassFd(Client),
    /// Through the region that the connection shares.
    Shm(Ring),
    /// Unknown to this library: decline it.
    Unknown,
}

/// Where an answer may be written in the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Size of the region in bytes, not zero.
    pub size: u32,
    /// The starting offset, below `size`.
    pub at: u32,
    /// How many bytes from there, around the end, may be written: at most `size`.
    pub free: u32,
}

impl<'a> Offer<'a> {
    /// Reads the value of the pair. Unknown words are ignored, and absent ones are 0.
    ///
    /// # Errors
    /// [`Broken::Offer`] if a known word is invalid. The number of descriptors is unknown then, so later offers
    /// cannot be paired with theirs.
    pub fn parse(value: &'a [u8]) -> Result<Self, Broken> {
        Self::read(value).ok_or(Broken::Offer)
    }

    fn read(value: &'a [u8]) -> Option<Self> {
        let end = memchr::memchr(b'\n', value).unwrap_or(value.len());
        let fields = value.get(end + 1..).unwrap_or_default();
        let mut words = value[..end].split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let name = words.next()?;
        let (mut fds, mut patience_ms, mut holds) = (0, 0, 0);
        let (mut minor, mut keep, mut head) = (0, 0, 0);
        let (mut size, mut at, mut free) = (0, 0, 0);
        let (mut asks, mut pool, mut file) = (0, 0, 0);
        for word in words {
            // Words are so short that a call that searches for a byte would take longer.
            let Some(equals) = word.iter().position(|byte| *byte == b'=') else {
                continue;
            };
            let (slot, max) = match &word[..equals] {
                b"fds" => (&mut fds, FDS_MAX),
                b"patience" => (&mut patience_ms, u32::MAX),
                b"hold" => (&mut holds, 1),
                b"minor" => (&mut minor, 1),
                b"keep" => (&mut keep, 1),
                b"head" => (&mut head, 1),
                b"size" => (&mut size, u32::MAX),
                b"at" => (&mut at, u32::MAX),
                b"free" => (&mut free, u32::MAX),
                b"bodies" => (&mut asks, 1),
                b"pool" => (&mut pool, u32::MAX),
                b"file" => (&mut file, 1),
                _ => continue,
            };
            let number = u32::try_from(parse_decimal(&word[equals + 1..])?).ok()?;
            *slot = Some(number).filter(|number| *number <= max)?;
        }
        let transport = match name {
            PASSFD | PASSFD_EDITS | PASSFD_JOINS | PASSFD_CODES => {
                Transport::PassFd(Client { minor: u8::from(minor == 1), keep: keep == 1, head: head == 1 })
            }
            SHM if at < size && free <= size => Transport::Shm(Ring { size, at, free }),
            SHM => return None,
            _ => Transport::Unknown,
        };
        let bodies = Bodies { asks: asks == 1, pool, file: file == 1 };
        let fds = Some(fds as usize).filter(|fds| *fds >= bodies.fds())?;
        Some(Self { transport, fds, bodies, patience_ms, holds: holds == 1, fields })
    }

    /// Appends the offer as a name-value pair: the first of a block. An unknown transport is never offered.
    pub fn push(&self, out: &mut Vec<u8>) {
        out.push(NAME.len() as u8);
        let length_at = out.len();
        out.extend_from_slice(&long_length(0));
        out.extend_from_slice(NAME.as_bytes());
        let start = out.len();
        out.extend_from_slice(match self.transport {
            // A library that does not know of edits declines, as it does with any transport that it does not know.
            Transport::PassFd(_) => match Edits::split(self.fields).0 {
                edits if edits.is_empty() => PASSFD,
                edits if edits.coding_terms().is_some() => PASSFD_CODES,
                edits if edits.joins_any() => PASSFD_JOINS,
                _ => PASSFD_EDITS,
            },
            Transport::Shm(_) => SHM,
            Transport::Unknown => b"unknown",
        });
        push_word(out, "fds", self.fds as u64);
        match self.transport {
            Transport::PassFd(client) => {
                push_word(out, "minor", u64::from(client.minor));
                push_word(out, "keep", u64::from(client.keep));
                push_word(out, "head", u64::from(client.head));
                if self.holds {
                    push_word(out, "hold", 1);
                }
            }
            Transport::Shm(ring) => {
                push_word(out, "size", u64::from(ring.size));
                push_word(out, "at", u64::from(ring.at));
                push_word(out, "free", u64::from(ring.free));
            }
            Transport::Unknown => {}
        }
        for (name, number) in [
            ("bodies", u32::from(self.bodies.asks)),
            ("pool", self.bodies.pool),
            ("file", self.bodies.file.into()),
        ] {
            if number > 0 {
                push_word(out, name, number.into());
            }
        }
        push_word(out, "patience", u64::from(self.patience_ms));
        out.push(b'\n');
        out.extend_from_slice(self.fields);
        let length = long_length(out.len() - start);
        out[length_at..length_at + length.len()].copy_from_slice(&length);
    }
}

fn push_word(out: &mut Vec<u8>, name: &str, number: u64) {
    out.push(b' ');
    out.extend_from_slice(name.as_bytes());
    out.push(b'=');
    push_decimal(out, number);
}

const PASSFD: &[u8] = b"passfd";
const PASSFD_EDITS: &[u8] = b"passfd-edits";
/// The transport of [`PASSFD_EDITS`], with lists that are joined.
const PASSFD_JOINS: &[u8] = b"passfd-joins";
/// The transport of [`PASSFD_JOINS`], with responses that are coded.
const PASSFD_CODES: &[u8] = b"passfd-codes";
const SHM: &[u8] = b"shm";

/// The most descriptors that one message can carry (`SCM_MAX_FD`).
const FDS_MAX: u32 = 253;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{self, Params};

    const PASSFD_OFFER: &[u8] = b"passfd fds=1 minor=1 keep=1 head=0 patience=100\nServer: baton\r\n";

    #[test]
    fn an_offer_is_written_as_the_protocol_draws_it() {
        let client = Client { minor: 1, keep: true, head: false };
        let transport = Transport::PassFd(client);
        let offer = Offer {
            transport,
            fds: 1,
            bodies: Bodies::default(),
            patience_ms: 100,
            holds: false,
            fields: b"Server: baton\r\n",
        };
        assert_eq!(Offer::parse(PASSFD_OFFER), Ok(offer));
        let mut block = Vec::new();
        offer.push(&mut block);
        params::push(&mut block, b"NEXT", b"");
        let pairs: Vec<_> = Params::new(&block).collect::<Result<_, _>>().unwrap();
        assert_eq!(pairs, [(NAME.as_bytes(), PASSFD_OFFER), (b"NEXT", b"")]);

        let client = Client { keep: false, ..client };
        let offer = Offer { transport: Transport::PassFd(client), holds: true, ..offer };
        let mut block = Vec::new();
        offer.push(&mut block);
        let (_, value) = Params::new(&block).next().unwrap().unwrap();
        assert!(value.starts_with(b"passfd fds=1 minor=1 keep=0 head=0 hold=1 patience=100\n"));
        assert_eq!(Offer::parse(value), Ok(offer));

        let ring = Ring { size: 1 << 20, at: 4096, free: 100 };
        let offer = Offer {
            transport: Transport::Shm(ring),
            fds: 2,
            bodies: Bodies { asks: false, pool: 65_536, file: true },
            patience_ms: u32::MAX,
            holds: false,
            fields: b"",
        };
        let mut block = Vec::new();
        offer.push(&mut block);
        let (_, value) = Params::new(&block).next().unwrap().unwrap();
        assert_eq!(value, b"shm fds=2 size=1048576 at=4096 free=100 pool=65536 file=1 patience=4294967295\n");
        assert_eq!(Offer::parse(value), Ok(offer));
    }

    /// A library that predates edits must answer in the ordinary way, so that the server edits.
    #[test]
    fn an_offer_with_edits_has_another_name() {
        let client = Client { minor: 1, keep: true, head: false };
        let fields = b"/X-Powered-By\r\n?X-A: b\r\nServer: baton\r\n";
        let bodies = Bodies { asks: true, ..Bodies::default() };
        let offer = Offer {
            transport: Transport::PassFd(client),
            fds: 1,
            bodies,
            patience_ms: 100,
            holds: false,
            fields,
        };
        let mut block = Vec::new();
        offer.push(&mut block);
        let (_, value) = Params::new(&block).next().unwrap().unwrap();
        assert!(
            value.starts_with(
                b"passfd-edits fds=1 minor=1 keep=1 head=0 bodies=1 patience=100\n/X-Powered-By"
            )
        );
        assert_eq!(Offer::parse(value), Ok(offer));

        let fields = b"/X-Powered-By\r\n+Vary: Origin\r\nServer: baton\r\n";
        let offer = Offer { fields, ..offer };
        let mut block = Vec::new();
        offer.push(&mut block);
        let (_, value) = Params::new(&block).next().unwrap().unwrap();
        assert!(value.starts_with(b"passfd-joins fds=1"), "nor does one that only knows of the other edits");
        assert_eq!(Offer::parse(value), Ok(offer));

        let fields = b"~1024 text/*\r\n+Vary: Origin\r\nServer: baton\r\n";
        let offer = Offer { fields, ..offer };
        let mut block = Vec::new();
        offer.push(&mut block);
        let (_, value) = Params::new(&block).next().unwrap().unwrap();
        assert!(value.starts_with(b"passfd-codes fds=1"), "nor does one that would send what is to be coded");
        assert_eq!(Offer::parse(value), Ok(offer));
    }

    #[test]
    fn absent_words_are_zero_and_unknown_ones_ignored() {
        for (value, fds) in [(&b"passfd"[..], 0), (b"passfd loud colour=red fds=2 =\n", 2)] {
            let client = Client { minor: 0, keep: false, head: false };
            let expected = Offer {
                transport: Transport::PassFd(client),
                fds,
                bodies: Bodies::default(),
                patience_ms: 0,
                holds: false,
                fields: b"",
            };
            assert_eq!(Offer::parse(value), Ok(expected));
        }
        let pigeon = Offer::parse(b"carrier-pigeon fds=2 wings=2\n").unwrap();
        assert_eq!((pigeon.transport, pigeon.fds), (Transport::Unknown, 2));
    }

    #[test]
    fn offers_that_make_no_sense_are_refused() {
        for value in [
            "",
            "\n",
            " ",
            "passfd fds=254",
            "passfd fds=x",
            "passfd fds=",
            "passfd fds=+1",
            "passfd minor=2",
            "passfd keep=yes",
            "passfd patience=4294967296",
            "passfd bodies=2",
            "passfd fds=1 pool=65536 file=1",
            "passfd fds=1 pool=4294967296",
            "shm",
            "shm at=0 free=0",
            "shm size=10 at=10 free=0",
            "shm size=10 at=0 free=11",
            "carrier-pigeon fds=-1",
        ] {
            assert_eq!(Offer::parse(value.as_bytes()), Err(Broken::Offer), "{value:?}");
        }
    }
}
