//! The reader of the libraries for applications (`baton-responder`, on which the drop-in for libfcgi stands): a
//! request reads the same in any pieces, and its variables are those that a naive reader finds. Places of a body that were not
//! lent are refused: the process that looked there would end.

use std::os::fd::AsFd as _;
use std::sync::LazyLock;

use baton_fcgi::Broken;
use baton_fcgi::offer;
use baton_fcgi::params::Params;
use baton_pool::{Chunk, ChunkPool};
use baton_responder::{Answer, Begun, Connection, Memory, ReadError};
use rustix::io::Errno;

use crate::pieces::{INPUT_BYTES_MAX, with_pieces};

/// The observable parts of a request.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    begun: Begun,
    variables: Vec<(Vec<u8>, Vec<u8>)>,
    offer: Option<Vec<u8>>,
    body: Result<Vec<u8>, ReadError>,
}

/// The requests of a connection, and its end.
type Reading = (Vec<Request>, Option<ReadError>);

/// The requests of a connection.
pub fn connection(input: &[u8]) {
    if input.len() > INPUT_BYTES_MAX {
        return;
    }
    let whole = read(input, input.len().max(1));
    agree(&whole, &read(input, 7));
    agree(&whole, &read(input, 1));
}

/// Two readings of an input agree up to the end of the first request. Later bytes came before an answer, and their
/// treatment depends on whether they have been read.
fn agree((requests, why): &Reading, (others, other_why): &Reading) {
    match (requests.first(), others.first()) {
        (Some(request), Some(other)) if request.body.is_ok() || other.body.is_ok() => {
            assert_eq!(request, other);
        }
        _ => assert_eq!((requests, why), (others, other_why)),
    }
}

fn read(input: &[u8], piece_bytes: usize) -> Reading {
    // Pools and files in turn: there is one of each for two requests.
    let descriptors = [LENT.0.as_fd(); 4];
    with_pieces(input, piece_bytes, &descriptors, |socket| {
        let mut connection = Connection::new(socket, Memory::default());
        let (mut requests, mut answer) = (Vec::new(), Answer::new());
        let why = loop {
            let begun = match connection.next_request() {
                Ok(Some(begun)) => begun,
                Ok(None) => break None,
                // libFuzzer's clock ticks by signals.
                Err(ReadError::Failed(Errno::INTR)) => continue,
                Err(error) => break Some(error),
            };
            let offer = connection.environment().offer().map(<[u8]>::to_vec);
            connection.begin(&mut answer);
            let variables = variables(&mut connection);
            let body = body(&mut connection);
            let failed = body.as_ref().err().copied();
            requests.push(Request { begun, variables, offer, body });
            if failed.is_some() {
                break failed;
            }
        };
        (requests, why)
    })
}

/// A pool of a chunk, which takes the place of a file as well, with bytes that reveal any displacement.
static LENT: LazyLock<(ChunkPool, Chunk)> = LazyLock::new(|| {
    let pool = ChunkPool::create(1).expect("a pool");
    let mut chunk = pool.take().expect("its chunk");
    chunk.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at % 251) as u8);
    (pool, chunk)
});

fn variables(connection: &mut Connection) -> Vec<(Vec<u8>, Vec<u8>)> {
    let owned = |(name, value): (&[u8], &[u8])| (name.to_vec(), value.to_vec());
    let variables: Vec<_> = connection.environment().iter().map(owned).collect();
    // As C sees them: each in memory of its own.
    let strings: Vec<_> = connection.environment_mut().c_strings().collect();
    assert_eq!(strings.len(), variables.len());
    for (string, (name, value)) in strings.iter().zip(&variables) {
        assert_eq!(**string, [name, &b"="[..], value, &b"\0"[..]].concat());
    }
    variables
}

fn body(connection: &mut Connection) -> Result<Vec<u8>, ReadError> {
    let mut body = Vec::new();
    loop {
        let piece = connection.read_body()?;
        if piece.is_empty() {
            return Ok(body);
        }
        body.extend_from_slice(connection.bytes(&piece));
    }
}

/// The variables of a request are the pairs of its parameters, except for a leading offer.
pub fn variables_of_params(block: &[u8]) {
    let mut records = Vec::new();
    baton_fcgi::request::push_begin(&mut records, 1, false);
    baton_fcgi::request::push_params(&mut records, 1, block);
    if records.len() > INPUT_BYTES_MAX {
        return;
    }
    let (requests, why) = read(&records, INPUT_BYTES_MAX);
    let mut expected: Vec<_> = match Params::new(block).collect::<Result<_, _>>() {
        Ok(pairs) => pairs,
        Err(_) => {
            assert_eq!((requests, why), (Vec::new(), Some(ReadError::Broken(Broken::Params))));
            return;
        }
    };
    let offer = match expected.first() {
        Some(&(name, value)) if name == offer::NAME.as_bytes() => {
            expected.remove(0);
            Some(value)
        }
        _ => None,
    };
    let [request] = requests.as_slice() else { panic!("{} requests", requests.len()) };
    assert_eq!(request.offer.as_deref(), offer);
    let variables = request.variables.iter().map(|(name, value)| (&name[..], &value[..]));
    assert!(variables.eq(expected));
}
