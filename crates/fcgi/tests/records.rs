//! Goal: both ends understand each other in any pieces, and anything but FastCGI is refused. Method: tables of
//! handmade records, and every conversation that one end can write, cut anywhere and read by the other.

#[path = "../../../fuzz/src/fcgi.rs"]
pub mod invariants;

use baton_fcgi::frames::{Frame, FrameReader};
use baton_fcgi::record::{CONTENT_BYTES_MAX, MANAGEMENT_ID, RecordHeader, RecordType};
use baton_fcgi::response::{ProtocolStatus, ResponseReader};
use baton_fcgi::{
    AnswerOutcome, Answered, Broken, Declined, RegionSlice, Rest, SLICES_MAX, application, params, request,
    response,
};
use invariants::{REQUEST_ID, Reading, Seen, add_bytes, read_requests, read_response};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

fn record(kind: u8, request_id: u16, content: &[u8], padding_len: u8) -> Vec<u8> {
    let content_len = content.len().try_into().unwrap();
    let header = RecordHeader { kind, request_id, content_len, padding_len }.to_bytes();
    [&header, content, &vec![0xaa; usize::from(padding_len)]].concat()
}

fn own(kind: RecordType, content: &[u8]) -> Vec<u8> {
    record(kind as u8, REQUEST_ID, content, 0)
}

const END: [u8; 8] = [0, 0, 0, 7, 0, 0, 0, 0];

fn ended() -> Seen<response::Part> {
    let protocol_status = ProtocolStatus::RequestComplete;
    Seen::Part(response::Part::End { app_status: 7, protocol_status })
}

fn stdout(bytes: &[u8]) -> Seen<response::Part> {
    Seen::Bytes(RecordType::Stdout, bytes.to_vec())
}

#[test]
fn a_record_looks_as_the_specification_draws_it() {
    let mut out = Vec::new();
    request::push_begin(&mut out, 0x0102, true);
    assert_eq!(out, [1, 1, 1, 2, 0, 8, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]);
    for (flags, expected) in [(0, false), (1, true), (0xfe, false)] {
        out[10] = flags;
        let begun = application::Part::Begin { id: 0x0102, role: 1, keep_connection: expected };
        assert_eq!(read_requests(&out, []), (vec![Seen::Part(begun)], None), "one flag has a meaning");
    }
    out.clear();
    application::push_end(&mut out, 1, 0x0a0b_0c0d, ProtocolStatus::Overloaded);
    assert_eq!(out, [1, 3, 0, 1, 0, 8, 0, 0, 0x0a, 0x0b, 0x0c, 0x0d, 2, 0, 0, 0]);
    assert_eq!(request::stdin_header(1, CONTENT_BYTES_MAX), [1, 5, 0, 1, 0xff, 0xff, 0, 0]);
    assert_eq!(application::stdout_header(1, 5), [1, 6, 0, 1, 0, 5, 0, 0]);
    assert_eq!(RecordHeader::parse(&[2, 6, 0, 1, 0, 5, 0, 0]), Err(Broken::Version(2)));
}

#[test]
fn hand_over_records_look_as_the_protocol_draws_them() {
    let mut out = Vec::new();
    let slices = [RegionSlice { offset: 1, len: 2 }, RegionSlice { offset: 0x0304_0506, len: 7 }];
    application::push_slices(&mut out, 9, &slices);
    assert_eq!(out, [1, 66, 0, 9, 0, 17, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 3, 4, 5, 6, 0, 0, 0, 7]);
    out.clear();
    let outcome = AnswerOutcome::ApplicationFailed;
    let answered = Answered {
        complete: false,
        may_go_on: true,
        outcome,
        status: 404,
        head_bytes: 5,
        body_bytes: 1 << 32,
    };
    application::push_answered(&mut out, 9, &answered);
    assert_eq!(out[8..], [2, 2, 2, 1, 148, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0]);
    out.clear();
    let rest = Rest { may_go_on: true, status: 200, head_sent: 1, body_sent: 2 };
    application::push_rest(&mut out, 9, &rest);
    assert_eq!(out[8..], [3, 2, 0, 0, 200, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2]);
    out.clear();
    application::push_declined(&mut out, 9, Declined::Instruction);
    assert_eq!(out, [1, 66, 0, 9, 0, 2, 0, 0, 6, 2]);
    out.clear();
    request::push_freed(&mut out, 9, 4096);
    request::push_give_back(&mut out, 9);
    assert_eq!(out, [1, 66, 0, 9, 0, 5, 0, 0, 4, 0, 0, 16, 0, 1, 66, 0, 9, 0, 1, 0, 0, 5]);
}

/// A library that is newer than the server may have other reasons.
#[test]
fn a_reason_that_is_not_known_breaks_nothing() {
    let input = [own(RecordType::Baton, &[6, 200]), record(3, REQUEST_ID, &END, 0)].concat();
    let declined = Seen::Part(response::Part::Declined(Declined::Other));
    assert_eq!(read_response(&input, []), (vec![declined, ended()], None));
}

#[test]
fn streams_are_joined_whatever_is_between_their_records() {
    let input = [
        own(RecordType::Stdout, b"a"),
        record(6, REQUEST_ID, b"b", 255),
        record(6, 2, b"of another request", 3),
        record(3, 2, &END, 0),
        record(6, MANAGEMENT_ID, b"of no request", 0),
        record(99, 7, b"unknown", 1),
        own(RecordType::Stdout, b""),
        own(RecordType::Stderr, b"log"),
        record(6, REQUEST_ID, &[b'c'; CONTENT_BYTES_MAX], 255),
        record(3, REQUEST_ID, &END, 8),
    ]
    .concat();
    let log = Seen::Bytes(RecordType::Stderr, b"log".to_vec());
    let expected = vec![stdout(b"ab"), log, stdout(&[b'c'; CONTENT_BYTES_MAX]), ended()];
    assert_eq!(read_response(&input, []), (expected.clone(), None));
    assert_eq!(read_response(&input, 1..input.len()), (expected, None));
}

#[test]
fn what_is_no_answer_is_refused_where_it_stops_being_one() {
    let hand_over = |content: &[u8]| own(RecordType::Baton, content);
    for (record, broken) in [
        (b"HTTP/1.1 200 OK\r\n".to_vec(), Broken::Version(b'H')),
        (own(RecordType::Params, b""), Broken::UnexpectedType(4)),
        (own(RecordType::BeginRequest, &[0; 8]), Broken::UnexpectedType(1)),
        (record(77, REQUEST_ID, b"", 0), Broken::UnexpectedType(77)),
        (own(RecordType::EndRequest, &END[..7]), Broken::ContentLength(3)),
        (own(RecordType::EndRequest, &[0; 9]), Broken::ContentLength(3)),
        (own(RecordType::EndRequest, &[0, 0, 0, 0, 4, 0, 0, 0]), Broken::ProtocolStatus(4)),
        (record(11, MANAGEMENT_ID, &[9], 0), Broken::ContentLength(11)),
        (hand_over(b""), Broken::HandOver),
        (hand_over(&[0]), Broken::HandOver),
        (hand_over(&[6]), Broken::HandOver),
        (hand_over(&[6, 1, 1]), Broken::HandOver),
        (hand_over(&[7, 0]), Broken::HandOver),
        (hand_over(&[4, 0, 0, 0]), Broken::HandOver),
        (hand_over(&[8; 17]), Broken::HandOver),
        (hand_over(&[1]), Broken::HandOver),
        (hand_over(&[1; 8]), Broken::HandOver),
        (hand_over(&vec![1; 1 + 8 * (SLICES_MAX + 1)]), Broken::HandOver),
        (hand_over(&[&[2, 0, 3], &[0; 18][..]].concat()), Broken::HandOver),
        (hand_over(&[2; 20]), Broken::HandOver),
        (hand_over(&[3; 22]), Broken::HandOver),
        (hand_over(&[5]), Broken::HandOver),
    ] {
        let input = [own(RecordType::Stdout, b"before"), record].concat();
        let expected: Reading<_> = (vec![stdout(b"before")], Some(broken));
        assert_eq!(read_response(&input, []), expected, "{broken}");
        assert_eq!(read_response(&input, 1..input.len()), expected, "{broken}");
    }
}

#[test]
fn after_its_end_a_request_says_nothing_and_the_connection_little() {
    let after = |record: Vec<u8>| read_response(&[own(RecordType::EndRequest, &END), record].concat(), []);
    assert_eq!(after(own(RecordType::Stdout, b"late")), (vec![ended()], Some(Broken::AfterEnd)));
    assert_eq!(after(own(RecordType::EndRequest, &END)), (vec![ended()], Some(Broken::AfterEnd)));
    assert_eq!(after(record(6, 2, b"another", 0)), (vec![ended()], None));
    assert_eq!(after(record(11, MANAGEMENT_ID, &[9, 0, 0, 0, 0, 0, 0, 0], 0)).0.len(), 2);
}

#[test]
fn a_connection_carries_one_answer_after_another() {
    let mut reader = ResponseReader::new(1);
    for id in [1, 2, 1] {
        reader.begin(id);
        let mut input = Vec::new();
        application::push_stdout(&mut input, id, b"x");
        application::push_end(&mut input, id, 0, ProtocolStatus::RequestComplete);
        let (consumed, part) = reader.read(&input).unwrap();
        assert_eq!(part, response::Part::Stdout(8..9));
        assert!(reader.is_between_records());
        let (more, part) = reader.read(&input[consumed..input.len() - 1]).unwrap();
        assert_eq!(part, response::Part::NeedMore);
        assert!(!reader.is_between_records());
        let (last, part) = reader.read(&input[consumed + more..]).unwrap();
        assert!(matches!(part, response::Part::End { .. }));
        assert_eq!(consumed + more + last, input.len());
        assert!(reader.is_between_records());
    }
}

#[test]
fn values_are_asked_for_and_told() {
    let mut question = Vec::new();
    request::push_get_values(&mut question, &["FCGI_MAX_CONNS", "BATON_TRANSPORTS"]);
    let (seen, broken) = read_requests(&question, []);
    assert_eq!(broken, None);
    let [Seen::Pairs(block)] = &seen[..] else {
        panic!("{seen:?}");
    };
    let names: Vec<_> = params::Params::new(block).collect::<Result<_, _>>().unwrap();
    assert_eq!(names, [(&b"FCGI_MAX_CONNS"[..], &b""[..]), (b"BATON_TRANSPORTS", b"")]);

    // Application records with the management id are ignored.
    let mut answer = record(6, MANAGEMENT_ID, b"x", 0);
    assert_eq!(ResponseReader::new(MANAGEMENT_ID).read(&answer), Ok((9, response::Part::NeedMore)));
    application::push_values_result(&mut answer, &[("BATON_TRANSPORTS", "passfd,shm")]);
    application::push_unknown_type(&mut answer, 50);
    let mut pairs = Vec::new();
    params::push(&mut pairs, b"BATON_TRANSPORTS", b"passfd,shm");
    let expected = vec![Seen::Pairs(pairs), Seen::Part(response::Part::UnknownType(50))];
    assert_eq!(read_response(&answer, []), (expected, None));
}

#[test]
fn slices_are_inside_a_region_or_they_are_not() {
    let slice = |offset, len| RegionSlice { offset, len };
    assert!(slice(0, 0).is_within(0));
    assert!(slice(10, 90).is_within(100));
    assert!(!slice(10, 91).is_within(100));
    assert!(!slice(101, 0).is_within(100));
    assert!(!slice(u32::MAX, u32::MAX).is_within(100));
}

#[test]
fn requests_that_no_server_sends_are_refused_or_skipped() {
    use application::Part;
    let begin = own(RecordType::BeginRequest, &[0, 1, 1, 0, 0, 0, 0, 0]);
    let begun = Seen::Part(Part::Begin { id: REQUEST_ID, role: 1, keep_connection: true });
    let params_end = own(RecordType::Params, b"");
    for (input, seen, broken) in [
        (own(RecordType::Stdin, b"early"), vec![begun.clone()], Some(Broken::Order)),
        (begin.clone(), vec![begun.clone()], Some(Broken::Order)),
        (
            [&params_end[..], &own(RecordType::Params, b"late")].concat(),
            vec![begun.clone(), Seen::Part(Part::ParamsEnd)],
            Some(Broken::Order),
        ),
        (own(RecordType::Baton, &[1; 9]), vec![begun.clone()], Some(Broken::Order)),
        (own(RecordType::Baton, &[8; 17]), vec![begun.clone()], Some(Broken::Order)),
        (own(RecordType::Baton, &[1; 8]), vec![begun.clone()], Some(Broken::HandOver)),
        (own(RecordType::Baton, &[8; 16]), vec![begun.clone()], Some(Broken::HandOver)),
        (own(RecordType::Baton, &[4, 0, 0, 0]), vec![begun.clone()], Some(Broken::HandOver)),
        (own(RecordType::Data, b"of a filter"), vec![begun.clone()], None),
        (own(RecordType::AbortRequest, b""), vec![begun.clone(), Seen::Part(Part::Abort)], None),
        (
            [record(1, 2, &[0, 1, 1, 0, 0, 0, 0, 0], 0), record(4, 2, b"of the other", 0)].concat(),
            vec![begun.clone(), Seen::Part(Part::BeginAnother { id: 2 })],
            None,
        ),
        (record(66, 0, b"?", 3), vec![begun.clone(), Seen::Part(Part::UnknownType(66))], None),
    ] {
        let input = [&begin[..], &input].concat();
        assert_eq!(read_requests(&input, []), (seen.clone(), broken), "{input:?}");
        assert_eq!(read_requests(&input, 1..input.len()), (seen, broken), "{input:?}");
    }
    let idle = [own(RecordType::AbortRequest, b""), own(RecordType::Baton, &[4, 0, 0, 0, 1]), begin].concat();
    assert_eq!(read_requests(&idle, []), (vec![begun], None), "what belongs to no request is skipped");
}

/// What an application may write for a request, between which a server may find anything.
#[derive(Clone, Debug)]
enum Said {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    Slices(Vec<RegionSlice>),
    Answered(Answered),
    Rest(Rest),
    Declined(Declined),
    OfAnother(Vec<u8>),
}

fn said() -> impl Strategy<Value = Said> {
    let long = (0usize..200_000, any::<u8>()).prop_map(|(length, byte)| vec![byte; length]);
    let slice = any::<(u32, u32)>().prop_map(|(offset, len)| RegionSlice { offset, len });
    let outcome = prop_oneof![
        Just(AnswerOutcome::Complete),
        Just(AnswerOutcome::ClientGone),
        Just(AnswerOutcome::ApplicationFailed)
    ];
    let answered = (any::<(bool, bool, u16, u64, u64)>(), outcome).prop_map(
        |((complete, may_go_on, status, head_bytes, body_bytes), outcome)| Answered {
            complete,
            may_go_on,
            outcome,
            status,
            head_bytes,
            body_bytes,
        },
    );
    let rest = any::<(bool, u16, u64, u64)>().prop_map(|(may_go_on, status, head_sent, body_sent)| Rest {
        may_go_on,
        status,
        head_sent,
        body_sent,
    });
    prop_oneof![
        4 => vec(any::<u8>(), 0..40).prop_map(Said::Stdout),
        1 => long.prop_map(Said::Stdout),
        2 => vec(any::<u8>(), 0..40).prop_map(Said::Stderr),
        1 => vec(slice, 0..1500).prop_map(Said::Slices),
        1 => answered.prop_map(Said::Answered),
        1 => rest.prop_map(Said::Rest),
        1 => prop_oneof![Just(Declined::Coded), Just(Declined::Instruction), Just(Declined::Head), Just(Declined::Other)].prop_map(Said::Declined),
        1 => vec(any::<u8>(), 1..40).prop_map(Said::OfAnother),
    ]
}

fn sorted(cuts: &[Index], length: usize) -> Vec<usize> {
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(length)).collect();
    cuts.sort_unstable();
    cuts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_an_application_writes_the_server_reads(
        conversation in vec(said(), 0..8),
        app_status in any::<u32>(),
        cuts in vec(any::<Index>(), 0..12),
    ) {
        let (mut out, mut expected) = (Vec::new(), Vec::new());
        for said in &conversation {
            match said {
                Said::Stdout(bytes) => {
                    application::push_stdout(&mut out, REQUEST_ID, bytes);
                    add_bytes(&mut expected, RecordType::Stdout, bytes);
                }
                Said::Stderr(bytes) => {
                    application::push_stderr(&mut out, REQUEST_ID, bytes);
                    add_bytes(&mut expected, RecordType::Stderr, bytes);
                }
                Said::Slices(slices) => {
                    application::push_slices(&mut out, REQUEST_ID, slices);
                    expected.extend(slices.chunks(SLICES_MAX).map(|some| Seen::Slices(some.to_vec())));
                }
                Said::Answered(answered) => {
                    application::push_answered(&mut out, REQUEST_ID, answered);
                    expected.push(Seen::Part(response::Part::Answered(*answered)));
                }
                Said::Rest(rest) => {
                    application::push_rest(&mut out, REQUEST_ID, rest);
                    expected.push(Seen::Part(response::Part::Rest(*rest)));
                }
                Said::Declined(why) => {
                    application::push_declined(&mut out, REQUEST_ID, *why);
                    expected.push(Seen::Part(response::Part::Declined(*why)));
                }
                Said::OfAnother(bytes) => application::push_stdout(&mut out, REQUEST_ID + 1, bytes),
            }
        }
        application::push_end(&mut out, REQUEST_ID, app_status, ProtocolStatus::RequestComplete);
        let protocol_status = ProtocolStatus::RequestComplete;
        expected.push(Seen::Part(response::Part::End { app_status, protocol_status }));
        let cuts = sorted(&cuts, out.len());
        prop_assert_eq!(read_response(&out, cuts), (expected, None));
    }

    #[test]
    fn what_a_server_writes_the_application_reads(
        requests in vec((1u16.., any::<bool>(), vec(any::<u8>(), 0..100), 0usize..200_000, any::<u32>()), 1..4),
        cuts in vec(any::<Index>(), 0..12),
    ) {
        use application::Part;
        let (mut out, mut expected) = (Vec::new(), Vec::new());
        for (id, keep_connection, value, body_len, freed) in &requests {
            let (id, keep_connection) = (*id, *keep_connection);
            let mut block = Vec::new();
            params::push(&mut block, b"NAME", value);
            let body = vec![7; *body_len];
            request::push_begin(&mut out, id, keep_connection);
            request::push_params(&mut out, id, &block);
            request::push_freed(&mut out, id, *freed);
            request::push_stdin(&mut out, id, &body);
            request::push_give_back(&mut out, id);
            request::push_stdin_end(&mut out, id);
            request::push_abort(&mut out, id);
            expected.push(Seen::Part(Part::Begin { id, role: request::RESPONDER, keep_connection }));
            add_bytes(&mut expected, RecordType::Params, &block);
            expected.extend([Seen::Part(Part::ParamsEnd), Seen::Part(Part::Freed(*freed))]);
            add_bytes(&mut expected, RecordType::Stdin, &body);
            // The request has been answered by then: no abort is reported.
            expected.extend([Seen::Part(Part::GiveBack), Seen::Part(Part::StdinEnd)]);
        }
        let cuts = sorted(&cuts, out.len());
        prop_assert_eq!(read_requests(&out, cuts), (expected, None));
    }

    #[test]
    fn padding_of_any_length_means_nothing(
        content in vec(any::<u8>(), 1..300),
        padding in any::<u8>(),
        cuts in vec(any::<Index>(), 0..12),
    ) {
        let input = [
            record(RecordType::Stdout as u8, REQUEST_ID, &content, padding),
            record(RecordType::EndRequest as u8, REQUEST_ID, &END, padding),
        ]
        .concat();
        let cuts = sorted(&cuts, input.len());
        prop_assert_eq!(read_response(&input, cuts), (vec![stdout(&content), ended()], None));
    }

    #[test]
    fn frames_are_the_input_and_nothing_else(
        records in vec((any::<u8>(), any::<u16>(), vec(any::<u8>(), 0..20), 0u8..9), 0..4),
        end in any::<Index>(),
        cuts in vec(any::<Index>(), 0..12),
    ) {
        let all: Vec<u8> =
            records.iter().flat_map(|(kind, id, content, padding)| record(*kind, *id, content, *padding)).collect();
        let input = &all[..end.index(all.len() + 1)];
        let (mut again, mut open, mut start) = (Vec::new(), 0, 0);
        let mut frames = FrameReader::new();
        for cut in sorted(&cuts, input.len() + 1).into_iter().chain([input.len()]) {
            let mut rest = &input[start..cut];
            // Again from the same position.
            let (mut copy, mut copied_rest) = (frames, rest);
            while let Some(frame) = frames.next(&mut rest).unwrap() {
                prop_assert_eq!(copy.next(&mut copied_rest), Ok(Some(frame)));
                match frame {
                    Frame::Opened(header) => again.extend_from_slice(&header.to_bytes()),
                    Frame::Content(bytes) | Frame::Padding(bytes) => {
                        prop_assert!(!bytes.is_empty());
                        again.extend_from_slice(bytes);
                    }
                    Frame::Closed => {}
                }
                open += i32::from(matches!(frame, Frame::Opened(_))) - i32::from(frame == Frame::Closed);
                prop_assert!((0..=1).contains(&open));
            }
            start = cut;
        }
        prop_assert_eq!([&again[..], frames.header_begun()].concat(), input);
        prop_assert_eq!(frames.is_between_records(), open == 0 && frames.header_begun().is_empty());
    }

    #[test]
    fn no_bytes_at_all_are_read_differently_in_pieces(
        kinds in vec((any::<u8>(), 0u16..3, vec(any::<u8>(), 0..20), 0u8..9), 0..6),
        damage in proptest::option::of(any::<(Index, u8)>()),
    ) {
        const LIKELY: [u8; 12] = [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 66, 99];
        let mut input: Vec<u8> = kinds
            .iter()
            .flat_map(|(kind, id, content, padding)| record(LIKELY[usize::from(*kind) % 12], *id, content, *padding))
            .collect();
        if let (Some((place, byte)), false) = (damage, input.is_empty()) {
            let place = place.index(input.len());
            input[place] = byte;
        }
        invariants::response(&input);
        invariants::application(&input);
    }
}
