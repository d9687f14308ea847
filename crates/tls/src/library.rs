//! What both ends do with the library's unbuffered interface.

use rustls::unbuffered::{ConnectionState, EncodeError, InsufficientSizeError};

use crate::record_key::HEADER_BYTES;

/// Whether the library goes on by itself.
pub(crate) enum Progress {
    Goes,
    Waits,
    /// The peer has ended the connection.
    Ended,
    /// The library failed, or wants something that no handshake of ours has.
    Failed(String),
}

/// Does what the library asks for.
pub(crate) fn handle_state<Data>(state: ConnectionState<'_, '_, Data>, output: &mut Vec<u8>) -> Progress {
    match state {
        ConnectionState::EncodeTlsData(mut data) => match push(output, |room| data.encode(room)) {
            Ok(()) => Progress::Goes,
            Err(error) => Progress::Failed(error.to_string()),
        },
        // The caller sends the output before anything else.
        ConnectionState::TransmitTlsData(data) => {
            data.done();
            Progress::Goes
        }
        ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_) => Progress::Waits,
        ConnectionState::PeerClosed | ConnectionState::Closed => Progress::Ended,
        other => Progress::Failed(format!("data came early: {other:?}")),
    }
}

/// Lets the library encode a message behind what there is.
pub(crate) fn push(
    output: &mut Vec<u8>,
    mut encode: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>,
) -> Result<(), EncodeError> {
    let start = output.len();
    let mut room = 0;
    loop {
        output.resize(start + room, 0);
        match encode(&mut output[start..]) {
            Ok(written) => {
                output.truncate(start + written);
                return Ok(());
            }
            Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) => {
                room = required_size;
            }
            Err(error) => return Err(error),
        }
    }
}

/// The end of the first record behind `seen`, if all of it is there.
pub(crate) fn next_record_end(input: &[u8], seen: usize) -> Option<usize> {
    let header: &[u8; HEADER_BYTES] = input[seen..].first_chunk()?;
    let len = usize::from(u16::from_be_bytes([header[3], header[4]]));
    // The library refuses a header like this without having seen the rest.
    let is_hopeless = header[1] != 3 || len > (1 << 14) + 2048;
    let end = if is_hopeless { input.len() } else { seen + HEADER_BYTES + len };
    (end <= input.len()).then_some(end)
}
