//! Goal: records carry data both ways, and nothing that a peer sends does harm. Method: the library's client at the
//! other end, or its keys, where the client would not send such records.

use std::io::Write;

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use baton_passport::parcel::{Packer, Unpacker};

use super::ends::{Client, SUITES, established, give, output_of, server, shake};
use crate::record_key::{ContentType, Gather, Keys, RecordKey};
use crate::records::{ALERT_BYTES_MAX, RECORD_BYTES_MAX};
use crate::{Alert, Cipher, Facts, Opened, RecordError, Records, Version};

/// Later than any idle time.
const LATER_MS: u64 = 1_000_000;

fn seal_all(records: &mut Records, pieces: &[&[u8]], out: &mut [u8]) -> usize {
    let sealed = records.seal(pieces, LATER_MS, out).unwrap();
    assert_eq!(sealed.taken, pieces.iter().map(|piece| piece.len()).sum::<usize>());
    sealed.written
}

/// Opens all records in `sealed`. Returns the data, and whether the client has ended.
fn open_all(records: &mut Records, sealed: &mut [u8]) -> Result<(Vec<u8>, bool), RecordError> {
    let mut all = Vec::new();
    let mut at = 0;
    loop {
        match records.open(&mut sealed[at..])? {
            Opened::Data { data, consumed } => {
                all.extend_from_slice(&sealed[at..][data]);
                at += consumed;
            }
            Opened::Control { consumed } => at += consumed,
            Opened::End => return Ok((all, true)),
            Opened::Part => {
                assert_eq!(at, sealed.len(), "a part of a record is left");
                return Ok((all, false));
            }
        }
    }
}

fn some_bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251) as u8).collect()
}

#[test]
fn data_goes_both_ways_under_every_suite() {
    for (suite, _) in SUITES {
        let (mut client, established) = established(Client::of(suite));
        let mut records = established.records;
        let data = some_bytes(300_000);
        let mut out = vec![0; data.len() * 2];
        // Pieces of all sizes: a record that is one piece, a part of one, and made of many.
        let mut pieces: Vec<&[u8]> = vec![&data[..1], &[], &data[1..17], &data[17..70_000]];
        pieces.extend(data[70_000..].chunks(999));
        let written = seal_all(&mut records, &pieces, &mut out);
        assert!(give(&mut client, &out[..written]).unwrap() == data, "{suite:?}");

        client.set_buffer_limit(None);
        client.writer().write_all(&data).unwrap();
        let mut sent = output_of(&mut client);
        assert_eq!(open_all(&mut records, &mut sent), Ok((data, false)));
    }
}

/// However little room there is, nothing is lost, and what does not fit is not taken.
#[test]
fn sealing_stops_where_the_room_ends() {
    for (suite, _) in SUITES {
        let (mut client, established) = established(Client::of(suite));
        let mut records = established.records;
        let data = some_bytes(5000);
        let mut received = Vec::new();
        assert_eq!(records.seal(&[&data], 0, &mut [0; 20]).unwrap().taken, 0);
        let mut out = vec![0; 3000];
        while received.len() < data.len() {
            let sealed = records.seal(&[&data[received.len()..]], 0, &mut out).unwrap();
            let opened = give(&mut client, &out[..sealed.written]).unwrap();
            assert_eq!(opened.len(), sealed.taken);
            received.extend(opened);
        }
        assert!(received == data);
    }
}

#[test]
fn a_record_may_arrive_in_any_pieces() {
    for (suite, _) in SUITES {
        let (mut client, established) = established(Client::of(suite));
        let mut records = established.records;
        client.writer().write_all(b"hello").unwrap();
        let mut sent = output_of(&mut client);
        for len in 0..sent.len() {
            assert_eq!(records.open(&mut sent[..len].to_vec()), Ok(Opened::Part));
        }
        assert_eq!(open_all(&mut records, &mut sent), Ok((b"hello".to_vec(), false)));
    }
}

/// Small records at first and after a pause, large ones in between.
#[test]
fn the_size_of_records_follows_the_flow() {
    let (_, established) = established(Client::default());
    let mut records = established.records;
    let data = some_bytes(200_000);
    let mut out = vec![0; 400_000];
    let mut sizes = |now_ms| {
        let written = records.seal(&[&data], now_ms, &mut out).unwrap().written;
        let mut at = 0;
        let mut sizes = Vec::new();
        while at < written {
            let size = 5 + usize::from(u16::from_be_bytes([out[at + 3], out[at + 4]]));
            sizes.push(size);
            at += size;
        }
        sizes
    };
    let at_first = sizes(10_000);
    assert!(at_first[..47].iter().all(|size| *size < 1400), "{at_first:?}");
    assert_eq!(at_first[48], (1 << 14) + 22);
    assert_eq!(sizes(10_999)[0], (1 << 14) + 22);
    assert!(sizes(11_999)[0] < 1400);
}

/// The library's client changes its key and asks for ours.
#[test]
fn keys_change_in_both_directions() {
    for (suite, _) in &SUITES[..3] {
        let (mut client, established) = established(Client::of(*suite));
        let mut records = established.records;
        for round in 0..20_u8 {
            client.refresh_traffic_keys().unwrap();
            client.writer().write_all(&[round; 100]).unwrap();
            let mut sent = output_of(&mut client);
            assert_eq!(open_all(&mut records, &mut sent), Ok((vec![round; 100], false)));
            let mut out = [0; 1000];
            let written = seal_all(&mut records, &[&[round; 50]], &mut out);
            assert_eq!(give(&mut client, &out[..written]).unwrap(), [round; 50]);
        }
    }
}

/// Packs what is known of a connection, as for another process, and reads it again.
fn moved(records: &Records) -> Records {
    let mut packer = Packer::default();
    records.pack(&mut packer);
    let packed = packer.finish();
    let mut reader = Unpacker::new(&packed);
    let moved = Records::unpack(&mut reader).unwrap();
    assert!(reader.is_empty());
    moved
}

/// Goal: a process that knows what another one has packed goes on where that stopped. Method: with every suite, after each
/// exchange another copy goes on, through changes of keys in both directions where there are any.
#[test]
fn a_connection_goes_on_in_another_process() {
    for (suite, _) in SUITES {
        let (mut client, established) = established(Client::of(suite));
        let mut records = established.records;
        let has_later_keys = established.facts.version == Version::Tls13;
        for round in 0..20_u8 {
            if has_later_keys && round % 3 == 0 {
                client.refresh_traffic_keys().unwrap();
            }
            client.writer().write_all(&[round; 100]).unwrap();
            let mut sent = output_of(&mut client);
            assert_eq!(open_all(&mut records, &mut sent), Ok((vec![round; 100], false)), "{suite:?}");
            // Between a demand for a new key and that key, too.
            records = moved(&records);
            let mut out = [0; 1000];
            let written = seal_all(&mut records, &[&[round; 50]], &mut out);
            assert_eq!(give(&mut client, &out[..written]).unwrap(), [round; 50], "{suite:?}");
            records = moved(&records);
        }
    }
}

#[test]
fn what_was_packed_is_read_or_refused() {
    for (suite, _) in SUITES {
        let (_, established) = established(Client::of(suite));
        let mut packer = Packer::default();
        established.records.pack(&mut packer);
        established.facts.pack(&mut packer);
        let packed = packer.finish();
        for len in 0..packed.len() {
            let mut reader = Unpacker::new(&packed[..len]);
            assert!(Records::unpack(&mut reader).is_none() || Facts::unpack(&mut reader).is_none(), "{len}");
        }
        let mut reader = Unpacker::new(&packed);
        assert!(Records::unpack(&mut reader).is_some());
        let facts = Facts::unpack(&mut reader).unwrap();
        assert_eq!(format!("{facts:?}"), format!("{:?}", established.facts));
    }
}

/// Before its key has sealed too many records, the server changes it; where TLS has no way to that, it ends.
#[test]
fn a_key_seals_no_more_than_it_may() {
    let (mut client, established13) = established(Client::default());
    let mut records = established13.records;
    assert_eq!(records.records_per_key_max, 1 << 24);
    records.records_per_key_max = 10;
    let mut out = [0; 1000];
    for round in 0..50 {
        let written = seal_all(&mut records, &[&[round; 100]], &mut out);
        assert_eq!(give(&mut client, &out[..written]).unwrap(), [round; 100]);
    }

    let (_, established12) = established(Client::of(SUITES[3].0));
    let mut records = established12.records;
    records.records_per_key_max = 10;
    let results: Vec<_> = (0..20).map(|_| records.seal(&[b"data"], 0, &mut out)).collect();
    assert!(results[0].is_ok());
    assert_eq!(results[19], Err(RecordError::Exhausted));
}

#[test]
fn both_ends_say_that_they_end() {
    for (suite, _) in SUITES {
        let (mut client, established) = established(Client::of(suite));
        let mut records = established.records;
        client.writer().write_all(b"last").unwrap();
        client.send_close_notify();
        let mut sent = output_of(&mut client);
        // What is behind it is ignored, even if it is no record.
        sent.extend_from_slice(b"rubbish");
        assert_eq!(open_all(&mut records, &mut sent), Ok((b"last".to_vec(), true)));
        assert_eq!(records.open(&mut [1, 2, 3, 4, 5, 6]), Ok(Opened::End));

        let mut out = [0; ALERT_BYTES_MAX];
        let written = records.seal_alert(Alert::CLOSE_NOTIFY, &mut out).unwrap();
        client.read_tls(&mut &out[..written]).unwrap();
        assert!(client.process_new_packets().unwrap().peer_has_closed());
    }
}

/// One changed byte, wherever it is, is noticed.
#[test]
fn a_changed_record_is_refused() {
    for (suite, _) in SUITES {
        for at in 0..60 {
            let (mut client, established) = established(Client::of(suite));
            let mut records = established.records;
            client.writer().write_all(&[7; 40]).unwrap();
            let mut sent = output_of(&mut client);
            let at = at % sent.len();
            sent[at] ^= 1;
            let opened = records.open(&mut sent);
            // A longer record than there is: more is awaited.
            assert!(opened.is_err() || (at < 5 && opened == Ok(Opened::Part)), "{suite:?} {at}: {opened:?}");
        }
    }
}

/// The client's end by its keys, to send what the library would not.
fn by_keys(suite: rustls::SupportedCipherSuite) -> (RecordKey, Records) {
    let mut client = Client::of(suite).connect();
    let (result, _) = shake(&mut client, &server(|_| {}), usize::MAX, b"");
    let version = result.as_ref().unwrap().facts.version;
    let secrets = client.dangerous_extract_secrets().unwrap();
    let transmit = RecordKey::new(version, Keys::of(&secrets.tx.1).unwrap(), secrets.tx.0).unwrap();
    (transmit, result.unwrap().records)
}

fn sealed(key: &mut RecordKey, content_type: ContentType, content: &[u8]) -> Vec<u8> {
    let mut out = vec![0; RECORD_BYTES_MAX];
    let len = key.seal(content_type, &mut Gather::new(&[content]), content.len(), &mut out).unwrap();
    out.truncate(len);
    out
}

#[test]
fn records_that_have_no_place_here_are_refused() {
    let refused = |suite, content_type, content: &[u8]| {
        let (mut key, mut records) = by_keys(suite);
        records.open(&mut sealed(&mut key, content_type, content))
    };
    let (tls13, tls12) = (SUITES[0].0, SUITES[3].0);
    let control = |opened| matches!(opened, Ok(Opened::Control { .. }));

    // Messages: another client hello, a key update that asks for something else, or is cut, or is followed.
    assert_eq!(refused(tls12, ContentType::Handshake, &[1, 0, 0, 0]), Err(RecordError::Renegotiation));
    assert_eq!(refused(tls13, ContentType::Handshake, &[1, 0, 0, 0]), Err(RecordError::Unexpected));
    assert_eq!(refused(tls13, ContentType::Handshake, &[24, 0, 0, 1, 2]), Err(RecordError::Unexpected));
    assert_eq!(refused(tls13, ContentType::Handshake, &[24, 0, 0]), Err(RecordError::Unexpected));
    assert_eq!(refused(tls13, ContentType::Handshake, &[24, 0, 0, 1, 0, 24]), Err(RecordError::Unexpected));
    assert!(control(refused(tls13, ContentType::Handshake, &[24, 0, 0, 1, 0])));

    // Alerts: a warning is none to TLS 1.3, but for the user's cancelling.
    assert_eq!(
        refused(tls13, ContentType::Alert, &[2, 80]),
        Err(RecordError::PeerAlert(Alert::INTERNAL_ERROR))
    );
    assert_eq!(
        refused(tls13, ContentType::Alert, &[1, 80]),
        Err(RecordError::PeerAlert(Alert::INTERNAL_ERROR))
    );
    assert!(control(refused(tls12, ContentType::Alert, &[1, 80])));
    assert!(control(refused(tls13, ContentType::Alert, &[1, 90])));
    assert_eq!(refused(tls13, ContentType::Alert, &[1]), Err(RecordError::Unexpected));
    assert_eq!(refused(tls13, ContentType::Alert, &[1, 0]), Ok(Opened::End));

    // Before anything is opened: what is no record, and one that is too long.
    let (_, mut records) = by_keys(tls13);
    assert_eq!(records.open(&mut [20, 3, 3, 0, 1, 1]), Err(RecordError::Unexpected));
    assert_eq!(records.open(&mut b"GET / HTTP/1.1".to_vec()), Err(RecordError::Unexpected));
    assert_eq!(records.open(&mut [23, 3, 3, 0x41, 1]), Err(RecordError::TooLarge));
    // Too short to have been sealed.
    assert_eq!(records.open(&mut [23, 3, 3, 0, 1, 1]), Err(RecordError::Corrupt));
}

/// Empty records are allowed, but not endlessly.
#[test]
fn records_without_data_are_bounded() {
    for (suite, _) in SUITES {
        let (mut key, mut records) = by_keys(suite);
        for _ in 0..3 {
            for _ in 0..16 {
                let mut empty = sealed(&mut key, ContentType::Data, b"");
                assert!(matches!(records.open(&mut empty), Ok(Opened::Control { .. })));
            }
            let mut full = sealed(&mut key, ContentType::Data, b"x");
            assert!(matches!(records.open(&mut full), Ok(Opened::Data { .. })));
        }
        let opened: Vec<_> =
            (0..17).map(|_| records.open(&mut sealed(&mut key, ContentType::Data, b""))).collect();
        assert!(opened[..16].iter().all(Result::is_ok));
        assert_eq!(opened[16], Err(RecordError::Flood));
    }
}

/// TLS 1.3 hides a record's length behind zeros.
#[test]
fn padding_is_taken_off() {
    let (key, mut records) = by_keys(SUITES[0].0);
    let secret = key.for_kernel();
    let mut padded = seal_as_kernel(&secret, key.sequence(), b"hello\x17\0\0\0\0");
    let Opened::Data { data, consumed } = records.open(&mut padded).unwrap() else { panic!("no data") };
    assert_eq!((&padded[data], consumed), (&b"hello"[..], padded.len()));
    // Zeros alone have no type (RFC 8446, section 5.4).
    let mut zeros = seal_as_kernel(&secret, key.sequence() + 1, b"\0\0\0\0");
    assert_eq!(records.open(&mut zeros), Err(RecordError::Unexpected));
}

/// Seals the inner plaintext of a record of TLS 1.3 with AES-128-GCM as the kernel does.
fn seal_as_kernel(keys: &crate::KernelTransmit, sequence: u64, inner: &[u8]) -> Vec<u8> {
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, keys.key()).unwrap());
    let iv = (u64::from_be_bytes(keys.iv()) ^ sequence).to_be_bytes();
    let mut nonce = [0; 12];
    nonce[..4].copy_from_slice(&keys.salt());
    nonce[4..].copy_from_slice(&iv);
    let len = (inner.len() + 16) as u16;
    let mut record = vec![23, 3, 3, (len >> 8) as u8, len as u8];
    let aad = Aad::from(<[u8; 5]>::try_from(&record[..]).unwrap());
    let mut body = inner.to_vec();
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut body).unwrap();
    record.extend(body);
    record
}

/// The kernel goes on where the server has stopped.
#[test]
fn the_kernel_can_go_on() {
    let (mut client, established13) = established(Client::of(SUITES[0].0));
    let mut records = established13.records;
    assert!(records.suits_kernel());
    let mut out = [0; 1000];
    let written = seal_all(&mut records, &[b"by the server"], &mut out);
    assert_eq!(give(&mut client, &out[..written]).unwrap(), b"by the server");
    let keys = records.for_kernel().unwrap();
    assert_eq!((keys.cipher, keys.version), (Cipher::Aes128Gcm, Version::Tls13));
    records.handle_kernel_seals();
    let record = seal_as_kernel(&keys, keys.sequence, b"by the kernel\x17");
    assert_eq!(give(&mut client, &record).unwrap(), b"by the kernel");
    // Two of them with one key would use numbers twice.
    assert_eq!(records.seal(&[b"data"], 0, &mut out), Err(RecordError::Internal));
    assert_eq!(records.seal_alert(Alert::CLOSE_NOTIFY, &mut out), Err(RecordError::Internal));
    assert!(records.for_kernel().is_err());

    for (suite, _) in &SUITES[2..] {
        let (_, other) = established(Client::of(*suite));
        assert!(!other.records.suits_kernel() && other.records.for_kernel().is_err(), "{suite:?}");
    }
}

/// Goal: a client that asks for a new key, which the kernel cannot have, has ended its input with that. Method: the same
/// before the kernel seals, when it only delays that.
#[test]
fn the_kernels_key_lasts() {
    let (mut key, mut records) = by_keys(SUITES[0].0);
    records.handle_kernel_seals();
    let mut request = sealed(&mut key, ContentType::Handshake, &[24, 0, 0, 1, 1]);
    assert_eq!(records.open(&mut request), Ok(Opened::End));
    assert_eq!(records.open(&mut [23, 3, 3]), Ok(Opened::End));

    let (mut key, mut records) = by_keys(SUITES[0].0);
    let mut request = sealed(&mut key, ContentType::Handshake, &[24, 0, 0, 1, 1]);
    assert!(matches!(records.open(&mut request), Ok(Opened::Control { .. })));
    assert!(!records.suits_kernel());
    seal_all(&mut records, &[b"x"], &mut [0; 1000]);
    assert!(records.suits_kernel());

    records.handle_kernel_seals();
    records.handle_sealed_by_kernel((1 << 38) - 1);
    assert_eq!(records.open(&mut []), Ok(Opened::Part));
    records.handle_sealed_by_kernel(1);
    assert_eq!(records.open(&mut []), Ok(Opened::End));
}

/// Neither sealing nor opening data takes memory.
#[test]
fn data_costs_no_allocation() {
    for (suite, _) in SUITES {
        let (mut key, mut records) = by_keys(suite);
        let data = some_bytes(40_000);
        let mut out = vec![0; 100_000];
        let mut record = sealed(&mut key, ContentType::Data, &data[..16_000]);
        let counted = allocation_counter::measure(|| {
            records.seal(&[&data[..100], &data[100..]], 0, &mut out).unwrap();
            records.open(&mut record).unwrap();
        });
        assert_eq!(counted.count_total, 0, "{suite:?}");
    }
}

/// Between two requests a connection has its keys and a few facts, and no buffer: 400 bytes with TLS 1.2, with TLS 1.3
/// what the library keeps for new keys, too. (The ciphers' own memory is not counted: it is not Rust's.)
#[test]
fn an_idle_connection_holds_no_buffer() {
    const BYTES_MAX: i64 = 2_560;
    for (suite, _) in SUITES {
        let (mut client, established) = established(Client::of(suite));
        let mut records = established.records;
        let mut out = vec![0; 100_000];
        let written = seal_all(&mut records, &[&some_bytes(40_000)], &mut out);
        give(&mut client, &out[..written]).unwrap();
        let kept = (Box::new(records), established.facts, established.unread);
        let freed = allocation_counter::measure(|| drop(kept)).bytes_current;
        assert!((1..=BYTES_MAX).contains(&-freed), "{suite:?}: {freed}");
    }
}
