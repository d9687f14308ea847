//! Connections of HTTP/2 from another process: any bytes in their place.

use baton_http::HeadLimits;
use baton_http::h2::{Connection, HeadText};
use baton_passport::parcel::{Packer, Unpacker};

/// Input: a packed connection, and what its client sends. What is taken is packed again as it was, and goes on.
pub fn moved(input: &[u8]) {
    let mut packed = Unpacker::new(input);
    let Some(mut connection) = Connection::unpack(&mut packed, 0) else { return };
    let pack = |connection: &Connection| {
        let mut packer = Packer::default();
        connection.pack(&mut packer, 0);
        packer.finish()
    };
    let once = pack(&connection);
    let mut again = Unpacker::new(&once);
    let read = Connection::unpack(&mut again, 0).expect("what was packed is read");
    assert!(again.is_empty());
    assert_eq!(once, pack(&read));

    let mut text = HeadText::default();
    let mut rest = packed.rest();
    while let Ok((count, event)) = connection.receive(rest, &mut text, &HeadLimits::default(), 0) {
        if count == 0 && event.is_none() {
            break;
        }
        rest = &rest[count..];
    }
}
