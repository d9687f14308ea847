//! The reader of the libraries for applications (`baton-responder`, on which the drop-in for libfcgi stands): a request
//! reads the same in whatever pieces it comes, and its variables are what a naive reader makes of its records.

use baton_fcgi::Broken;
use baton_fcgi::offer;
use baton_fcgi::params::Params;
use baton_responder::{Begun, Connection, Memory, ReadError};

use crate::pieces::with_pieces;

/// What there is to be known of a request.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    begun: Begun,
    variables: Vec<(Vec<u8>, Vec<u8>)>,
    offer: Option<Vec<u8>>,
    body: Result<Vec<u8>, ReadError>,
}

/// Requests of a connection, and why there are no more.
type Reading = (Vec<Request>, Option<ReadError>);

/// The requests of a connection.
pub fn connection(input: &[u8]) {
    if input.len() > PIECE_BYTES_MAX {
        return;
    }
    let whole = read(input, input.len().max(1));
    agree(&whole, &read(input, 7));
    if input.len() < 200 {
        agree(&whole, &read(input, 1));
    }
}

/// What has been read early can be out of order only because it came early: before the request in front of it was
/// answered. So a reading may end sooner than another one, for this reason; as far as both go they are the same.
fn agree((requests, why): &Reading, (others, other_why): &Reading) {
    for (request, other) in requests.iter().zip(others) {
        assert_eq!(
            (request.begun, &request.variables, &request.offer),
            (other.begun, &other.variables, &other.offer)
        );
        if let (Ok(body), Ok(its_body)) = (&request.body, &other.body) {
            assert!(body == its_body, "the body of {:?}", request.begun);
        }
    }
    let is_early = |why: &Option<ReadError>| *why == Some(ReadError::Broken(Broken::Order));
    if !is_early(why) && !is_early(other_why) {
        assert_eq!((requests, why), (others, other_why));
    }
}

/// There is always room for a message of this size in the buffer of a connection.
const PIECE_BYTES_MAX: usize = 32 << 10;

fn read(input: &[u8], piece_bytes: usize) -> Reading {
    with_pieces(input, piece_bytes, |socket| {
        let mut connection = Connection::new(socket, Memory::default());
        let mut requests = Vec::new();
        let why = loop {
            let begun = match connection.next_request() {
                Ok(Some(begun)) => begun,
                Ok(None) => break None,
                Err(error) => break Some(error),
            };
            let offer = connection.offer().0.map(<[u8]>::to_vec);
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

fn variables(connection: &mut Connection) -> Vec<(Vec<u8>, Vec<u8>)> {
    let owned = |(name, value): (&[u8], &[u8])| (name.to_vec(), value.to_vec());
    let variables: Vec<_> = connection.environment().iter().map(owned).collect();
    // As C sees them: one after the other, each in memory of its own.
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
        body.extend_from_slice(&connection.buffer()[piece]);
    }
}

/// The variables of a request are the pairs of its parameters, but for an offer in front.
pub fn variables_of_params(block: &[u8]) {
    let mut records = Vec::new();
    baton_fcgi::request::push_begin(&mut records, 1, false);
    baton_fcgi::request::push_params(&mut records, 1, block);
    let (requests, why) = read(&records, 4096);
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
