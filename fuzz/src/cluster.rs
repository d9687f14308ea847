//! Messages of a cluster: between a server and its handoff agent, and between handoff agents.

use baton_cluster::local::{self, FromWorker, REPORT_FLOWS_MAX};
use baton_cluster::peer::{BODY_BYTES_MAX, Frames, FromFrontEnd, FromNode, TCP_BYTES_MAX};

/// Any bytes as a message of a worker: what is taken is within bounds, and written and read again is the same.
pub fn local(input: &[u8]) {
    let Ok(message) = FromWorker::from_message(input) else { return };
    if let FromWorker::Report(report) = &message {
        assert!(report.len() <= REPORT_FLOWS_MAX);
    }
    if let Some(bytes) = message.to_message() {
        assert!(bytes.len() <= local::MESSAGE_BYTES_MAX);
        assert_eq!(FromWorker::from_message(&bytes), Ok(message));
    }
}

/// Any bytes as a stream of another handoff agent, in any pieces: the first byte says how large these are. Messages are within
/// bounds, do not depend on the pieces, and are the same when they are written and read again.
pub fn peer(input: &[u8]) {
    let Some((piece, stream)) = input.split_first() else { return };
    let whole = bodies(stream, stream.len().max(1));
    assert_eq!(whole, bodies(stream, usize::from(*piece).max(1)));
    for body in whole {
        assert!(body.len() <= BODY_BYTES_MAX);
        if let Ok(message) = FromFrontEnd::from_body(&body) {
            if let FromFrontEnd::Ship(shipment) = &message {
                assert!(shipment.tcp.len() <= TCP_BYTES_MAX);
            }
            if let Some(bytes) = message.to_bytes() {
                assert_eq!(FromFrontEnd::from_body(&bytes[4..]), Ok(message));
            }
        }
        if let Ok(message) = FromNode::from_body(&body)
            && let Some(bytes) = message.to_bytes()
        {
            assert_eq!(FromNode::from_body(&bytes[4..]), Ok(message));
        }
    }
}

/// The bodies of a stream up to its first error.
fn bodies(stream: &[u8], piece: usize) -> Vec<Vec<u8>> {
    let mut frames = Frames::default();
    let mut bodies = Vec::new();
    for piece in stream.chunks(piece) {
        frames.feed(piece);
        while let Ok(Some(body)) = frames.next_body() {
            bodies.push(body.to_vec());
        }
    }
    bodies
}
