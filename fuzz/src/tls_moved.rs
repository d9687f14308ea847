//! Connections of TLS from another process: any bytes in their place.

use baton_passport::parcel::{Packer, Unpacker};
use baton_tls::{Facts, Opened, Records};

/// Input: packed records and facts, and records that arrive. What is taken is packed again as it was, and goes on.
pub fn moved(input: &[u8]) {
    let mut packed = Unpacker::new(input);
    let Some(mut records) = Records::unpack(&mut packed) else { return };
    let Some(facts) = Facts::unpack(&mut packed) else { return };
    let pack = |records: &Records, facts: &Facts| {
        let mut packer = Packer::default();
        records.pack(&mut packer);
        facts.pack(&mut packer);
        packer.finish()
    };
    let once = pack(&records, &facts);
    let mut again = Unpacker::new(&once);
    let read = Records::unpack(&mut again).zip(Facts::unpack(&mut again)).expect("what was packed is read");
    assert!(again.is_empty());
    assert_eq!(once, pack(&read.0, &read.1));

    let mut rest = packed.rest().to_vec();
    let mut at = 0;
    while let Ok(Opened::Data { consumed, .. } | Opened::Control { consumed }) = records.open(&mut rest[at..])
    {
        at += consumed;
    }
    let mut out = [0; 4096];
    let _ = records.seal(&[b"data"], 0, &mut out);
}
