//! Sessions over memory whose client takes little: how long they wait, and what the log says.

use baton_content::CacheSettings;
use baton_telemetry::log::Outcome;
use baton_telemetry::metrics::Metric;
use baton_upstream::ResponseEvent;

use crate::context::Context;
use crate::session::tests::{body, context, head};
use crate::session::{Need, Session, Stage, UpstreamNeed};
use crate::transport::memory::{self, ClientEnd, connect};

/// The preface, SETTINGS, their acknowledgement.
const HELLO: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0";

/// A GET of a path with five bytes, from `a`.
fn get(path: &str, stream: u8) -> Vec<u8> {
    let head = [0, 0, 12, 1, 5, 0, 0, 0, stream];
    [&head[..], b"\x82\x86\x04\x05", path.as_bytes(), b"\x01\x01a"].concat()
}

fn session(room: usize, ctx: &mut Context) -> (Session, ClientEnd) {
    ctx.clock.set(1_000_000, 1_000);
    let (server_end, client_end) = connect(room, true);
    let transport = memory::transport(server_end, "192.0.2.1:1".parse().unwrap(), None);
    (Session::over(transport, 0, ctx), client_end)
}

fn step(session: &mut Session, ctx: &mut Context) -> Need {
    session.handle_ready(true);
    session.step(ctx, Stage::Any)
}

/// Takes steps until the session waits for the client.
fn work(session: &mut Session, ctx: &mut Context) -> Need {
    loop {
        match step(session, ctx) {
            Need::Job(job, _) => session.handle_job(job.run(), ctx),
            Need::Turn => {}
            need => return need,
        }
    }
}

/// A session without requests that had told its client to go, and waited for room to say so, was due again at once: the
/// loop spun until the client had taken too long.
#[test]
fn a_client_that_was_told_to_go_has_time_to_take_that() {
    let mut ctx = Context::without_sites(CacheSettings::default());
    let (mut session, client) = session(10, &mut ctx);
    client.send(HELLO);
    assert!(matches!(step(&mut session, &mut ctx), Need::Writable));
    let idle_due_ms = 1_000_000 + ctx.plan.limits.head_timeout_ms;
    assert!(session.deadline_ms() == idle_due_ms);
    ctx.clock.set(idle_due_ms, 1_030);
    assert!(matches!(session.handle_timeout(&mut ctx), Need::Writable));
    assert_eq!(session.deadline_ms(), 1_000_000 + ctx.plan.limits.send_timeout_ms);
    client.make_room(1_000);
    assert!(matches!(step(&mut session, &mut ctx), Need::Readable | Need::Finished));
}

/// Goal: how the gateway's events are grouped shows in no byte.
#[test]
fn events_that_come_together_are_handled_like_those_that_come_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let answers = [[3, 0, 0], [1, 2, 0], [2, 1, 0], [1, 1, 1]].map(|groups| {
        let mut ctx = context(&folder);
        let (mut session, client) = session(100_000, &mut ctx);
        client.send(&[HELLO, &get("/app/", 1)].concat());
        let Need::Upstream(UpstreamNeed::Delegate(stream, _)) = step(&mut session, &mut ctx) else {
            panic!("no request")
        };
        step(&mut session, &mut ctx);
        let mut events = vec![head(), body(10), ResponseEvent::End { app_status: 0 }];
        for count in groups.into_iter().filter(|count| *count > 0) {
            assert!(session.handle_response_ready(stream), "it needs nothing else");
            let group = events.drain(..count).collect();
            session.handle_response_events(stream, group, &mut ctx);
            session.check_invariants();
        }
        assert!(!session.handle_response_ready(stream), "it is answered");
        work(&mut session, &mut ctx);
        client.take_output()
    });
    assert!(answers[0].windows(10).any(|bytes| bytes == [b'b'; 10]), "{answers:?}");
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
}

/// An application's response had all its bytes sent, and counted as complete, before the frame that ends it had left.
#[test]
fn a_response_without_its_end_is_not_complete() {
    let folder = tempfile::tempdir().unwrap();
    for has_room in [false, true] {
        let mut ctx = context(&folder);
        let (mut session, client) = session(100_000, &mut ctx);
        client.send(&[HELLO, &get("/app/", 1)].concat());
        let Need::Upstream(UpstreamNeed::Delegate(stream, _)) = step(&mut session, &mut ctx) else {
            panic!("no request")
        };
        for events in [vec![head(), body(10)], Vec::new()] {
            session.handle_response_events(stream, events.into(), &mut ctx);
        }
        step(&mut session, &mut ctx);
        assert!(client.take_output().ends_with(&[b'b'; 10]));
        if !has_room {
            client.fill();
        }
        session.handle_response_events(stream, vec![ResponseEvent::End { app_status: 0 }].into(), &mut ctx);
        step(&mut session, &mut ctx);
        session.end(Outcome::Stopped, &mut ctx);
        ctx.tally.publish();
        let counters = ctx.tally.counters();
        let outcomes = [Metric::OutcomeComplete, Metric::OutcomeStopped].map(|metric| counters.get(metric));
        assert_eq!(outcomes, if has_room { [1, 0] } else { [0, 1] });
    }
}

/// Frames of a stream that was reset still waited for room when the connection gave back its memory, and with it the
/// account of whose frames they are. What was sent next was counted for the wrong request, or for none.
#[test]
fn frames_of_a_stream_that_was_reset_are_accounted_for() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("long"), [b'l'; 200_000]).unwrap();
    std::fs::write(folder.path().join("void"), b"").unwrap();
    let mut ctx = context(&folder);
    let (mut session, client) = session(10_000, &mut ctx);
    client.send(&[HELLO, &get("/long", 1)].concat());
    assert!(matches!(work(&mut session, &mut ctx), Need::Writable));
    client.send(b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08");
    assert!(matches!(work(&mut session, &mut ctx), Need::Writable));
    ctx.clock.set(ctx.clock.now_ms() + 1_000, 1_001);
    session.handle_timeout(&mut ctx);
    client.make_room(1_000_000);
    client.send(&get("/void", 3));
    assert!(matches!(work(&mut session, &mut ctx), Need::Readable));
    ctx.tally.publish();
    let counters = ctx.tally.counters();
    let outcomes = [Metric::OutcomeClientGone, Metric::OutcomeComplete].map(|metric| counters.get(metric));
    assert_eq!(outcomes, [1, 1]);
}
