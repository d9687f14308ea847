//! Sessions against a server with a script: each fault shows in the right column.

use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use crate::scripted::{Answer, bytes_of, ok, serve};

use baton_load::sessions::{self, SessionLoad, SessionSettings};
use baton_load::{
    Failure, LoadReport, LoadRequest, Script, ScriptStep, SizeCounts, TimeoutLimit, Unfair, files,
};

/// A script of one session, over and over.
fn script(requests: &[(LoadRequest, u32)]) -> Script {
    let mut script = Script::new(requests.iter().map(|(request, _)| request.clone()).collect());
    let steps = requests.iter().enumerate();
    script.push(
        steps.map(|(number, (_, pause_ms))| ScriptStep { request: number as u32, pause_ms: *pause_ms }),
    );
    script
}

fn settings(address: SocketAddr) -> SessionSettings {
    SessionSettings {
        address,
        load: SessionLoad {
            requests_per_second: 200.0,
            timeout_s: 10.0,
            thinking_counts: false,
            connections: 5_000,
            clients: 3,
            threads: 1,
        },
        first: 0,
        warm_up: Duration::ZERO,
        duration: Duration::from_millis(500),
        sleep: true,
    }
}

fn run(settings: &SessionSettings, requests: &[(LoadRequest, u32)]) -> LoadReport {
    sessions::run(settings, &script(requests)).unwrap()
}

fn small() -> LoadRequest {
    LoadRequest::page("/small", Some(5))
}

fn large() -> LoadRequest {
    LoadRequest::page("/large", Some(5_000))
}

/// Answers rightly.
fn right(path: &str) -> Answer {
    if path == "/large" { ok(&"x".repeat(5_000)) } else { ok("hello") }
}

#[test]
fn whole_sessions_are_counted_by_client_and_size() {
    let server = serve(|path, _, _| right(path));
    for threads in [1, 2] {
        let mut settings = settings(server.address);
        settings.load.threads = threads;
        let report = run(&settings, &[(small(), 0), (large(), 10)]);
        assert_eq!(report.failed(), 0, "{:?}", report.first_failure);
        assert!(report.sessions.complete > 0);
        assert_eq!((report.sessions.timed_out, report.sessions.requests_lost, report.timeouts), (0, 0, 0));
        let sizes = SizeCounts::sum(&report.clients).0;
        let (small, large) = (sizes[&5].answered, sizes[&5_000].answered);
        assert_eq!((small + large, large), (report.requests, report.sessions.complete));
        assert_eq!(report.goodput_bytes, 5 * small + 5_000 * large);
        assert_eq!(report.clients.len(), 3);
        assert_eq!(report.unfair(), []);
    }
}

#[test]
fn sessions_begin_at_a_place_of_the_script() {
    let server = serve(|path, _, _| right(path));
    let mut script = Script::new(vec![small(), large()]);
    for request in [0, 1] {
        script.push([ScriptStep { request, pause_ms: 0 }]);
    }
    for (first, bytes) in [(0, 5), (1, 5_000), (2, 5)] {
        let mut settings = SessionSettings { first, ..settings(server.address) };
        // Two clients and two sessions: each client has one of them.
        settings.load.clients = 2;
        settings.load.requests_per_second = 20.0;
        settings.duration = Duration::from_millis(300);
        let report = sessions::run(&settings, &script).unwrap();
        let of_first_client: Vec<_> = report.clients[0].0.iter().filter(|size| size.1.answered > 0).collect();
        assert!(of_first_client.iter().all(|size| *size.0 == bytes), "{first}: {of_first_client:?}");
        assert!(!of_first_client.is_empty());
    }
}

#[test]
fn a_size_that_always_times_out_is_an_x() {
    let server = serve(|path, _, _| if path == "/large" { Answer::Silence } else { right(path) });
    let mut settings = settings(server.address);
    settings.load.timeout_s = 1.0;
    settings.duration = Duration::from_secs(3);
    let report = run(&settings, &[(small(), 0), (large(), 0), (small(), 0), (small(), 0)]);
    let sizes = SizeCounts::sum(&report.clients).0;
    assert_eq!((sizes[&5_000].answered, sizes[&5_000].timeouts), (0, report.timeouts - sizes[&5].timeouts));
    assert!(sizes[&5_000].timeouts > 0 && sizes[&5].answered > 0, "{sizes:?}");
    // The rest of each session was never asked for.
    assert!(report.sessions.requests_lost >= 2 * sizes[&5_000].timeouts);
    assert_eq!(report.sessions.complete, 0);
    let limit = TimeoutLimit::Fixed(2.0);
    let starved = Unfair { bytes: Some(5_000), client: None, percent: 100.0, limit };
    assert!(report.unfair().contains(&starved), "{:?}", report.unfair());
    assert_eq!(report.failed(), 0, "{:?}", report.first_failure);
}

#[test]
fn what_the_server_has_not_read_is_not_held_against_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut settings = settings(address);
    settings.load.timeout_s = 0.3;
    settings.duration = Duration::from_secs(1);
    let report = run(&settings, &[(small(), 0)]);
    assert!(report.unread > 0);
    assert_eq!((report.timeouts, report.requests), (0, 0));
    assert_eq!(report.unfair(), []);
}

#[test]
fn one_connection_that_is_never_answered_is_one_timeout() {
    let server = serve(|path, connection, _| if connection == 0 { Answer::Silence } else { right(path) });
    let mut settings = settings(server.address);
    settings.load.requests_per_second = 20.0;
    settings.load.timeout_s = 2.0;
    settings.duration = Duration::from_secs(4);
    let report = run(&settings, &[(small(), 0)]);
    assert!(report.timeouts >= 1 && report.requests > 0);
    assert_eq!(report.timeouts + report.unread, report.sessions.timed_out);
}

#[test]
fn an_answer_behind_the_end_is_not_counted() {
    let server = serve(|path, _, _| {
        thread::sleep(Duration::from_secs(3));
        right(path)
    });
    let report = run(&settings(server.address), &[(small(), 0)]);
    assert_eq!((report.requests, report.goodput_bytes, report.timeouts, report.failed()), (0, 0, 0, 0));
    assert!(report.unanswered > 0);
}

#[test]
fn an_answer_behind_the_timeout_is_no_goodput() {
    let server = serve(|path, _, _| {
        thread::sleep(Duration::from_secs(2));
        right(path)
    });
    let mut settings = settings(server.address);
    settings.load.timeout_s = 0.5;
    settings.duration = Duration::from_secs(4);
    let report = run(&settings, &[(small(), 0)]);
    assert_eq!((report.requests, report.goodput_bytes), (0, 0));
    assert!(report.timeouts > 0);
}

#[test]
fn losses_and_wrong_bytes_have_their_names() {
    let text = files::text("/large", 5_000);
    let wrong = text.replace("patient", "hurried");
    let cases = [
        (bytes_of(&text), None),
        (bytes_of(&wrong), Some(Failure::Changed)),
        (bytes_of(&text)[..2_000].to_vec(), Some(Failure::EarlyEnd)),
    ];
    for (bytes, failure) in cases {
        let server = serve(move |_, _, _| Answer::Last(bytes.clone()));
        let report = run(&settings(server.address), &[(LoadRequest::file("/large", 5_000), 0)]);
        assert_eq!(report.failures.keys().next().copied(), failure, "{:?}", report.first_failure);
        assert_eq!(report.failed(), report.sessions.failed);
        assert_eq!(report.unfair(), []);
    }
}

#[test]
fn a_connection_that_the_server_closes_ends_no_session() {
    let server = serve(|_, _, _| Answer::Last(bytes_of("hello")));
    let report = run(&settings(server.address), &[(small(), 0), (small(), 20), (small(), 0)]);
    assert_eq!(report.failed(), 0, "{:?}", report.first_failure);
    assert!(report.sessions.complete > 0 && report.reconnects > 0);
}

#[test]
fn whether_thinking_counts_is_a_setting() {
    let server = serve(|path, _, _| right(path));
    for thinking_counts in [true, false] {
        let mut settings = settings(server.address);
        settings.load.timeout_s = 0.5;
        settings.duration = Duration::from_secs(2);
        settings.load.thinking_counts = thinking_counts;
        // The client thinks longer than it is patient.
        let report = run(&settings, &[(small(), 0), (small(), 60_000)]);
        let while_thinking = report.sessions.timed_out - report.timeouts - report.unread;
        assert_eq!(while_thinking > 0, thinking_counts, "{:?}", report.sessions);
    }
}

#[test]
fn the_generator_says_when_it_was_the_limit() {
    let server = serve(|_, _, _| Answer::Silence);
    let mut few = settings(server.address);
    few.load.connections = 3;
    let report = run(&few, &[(small(), 0)]);
    assert!(report.sessions.not_begun > 0 && report.client_limited());
    let mut slow = settings(server.address);
    slow.load.requests_per_second = 5.0;
    let report = run(&slow, &[(small(), 0)]);
    assert_eq!(report.sessions.not_begun, 0);
}

/// Goal: a load is what it says from its first second on. Method: a session whose requests are ten seconds apart, for half a
/// second: those that begin in it make a tenth of the requests, those that are under way the rest.
#[test]
fn sessions_are_under_way_when_a_load_begins() {
    let server = serve(|path, _, _| right(path));
    let steps: Vec<_> = (0..10).map(|step| (small(), if step == 0 { 0 } else { 10_000 })).collect();
    let report = run(&settings(server.address), &steps);
    assert_eq!(report.failed(), 0, "{:?}", report.first_failure);
    let begun = (report.sessions.complete + report.unanswered) as usize;
    assert!((60..=110).contains(&report.requests) && begun >= 60, "{} requests", report.requests);
}

#[test]
fn what_happens_in_the_warm_up_is_not_counted() {
    let server =
        serve(|path, connection, _| if connection < 3 { Answer::Last(Vec::new()) } else { right(path) });
    let settings = SessionSettings { warm_up: Duration::from_secs(2), ..settings(server.address) };
    let report = run(&settings, &[(small(), 0)]);
    assert_eq!(report.failed(), 0, "{:?}", report.first_failure);
    assert!(report.requests > 0);
}

/// A server that has too many connections resets new ones: whom it turns away is no wrong answer, and no answer either.
#[test]
fn who_is_turned_away_is_counted() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            rustix::net::sockopt::set_socket_linger(stream.unwrap(), Some(Duration::ZERO)).unwrap();
        }
    });
    let report = run(&settings(address), &[(small(), 0), (small(), 0)]);
    assert_eq!(report.failed(), 0, "{:?}", report.first_failure);
    let sessions = report.sessions;
    assert!(sessions.turned_away > 0);
    assert_eq!((report.unread, sessions.requests_lost), (sessions.turned_away, sessions.turned_away));
    assert_eq!((report.requests, sessions.complete), (0, 0));
    // The closed loop wants an answer to each request.
    let report = crate::closed::run(&crate::closed::settings(address), &[("/", None)]);
    assert!(report.failures.contains_key(&Failure::TurnedAway), "{:?}", report.failures);
}

#[test]
fn settings_that_make_no_load_are_refused() {
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    let empty = sessions::run(&settings(address), &script(&[]));
    assert!(empty.unwrap_err().to_string().contains("no session"));
    let mut timeout = settings(address);
    timeout.load.timeout_s = -1.0;
    assert!(sessions::run(&timeout, &script(&[(small(), 0)])).unwrap_err().to_string().contains("-1 s"));
    for rate in [0.0, -1.0, f64::NAN, 1e12] {
        let mut wrong = settings(address);
        wrong.load.requests_per_second = rate;
        let error = sessions::run(&wrong, &script(&[(small(), 0)])).unwrap_err().to_string();
        assert!(error.contains("is no rate of requests"), "{error}");
    }
}

#[test]
fn a_file_needs_to_say_little_of_sessions() {
    let load: SessionLoad = serde_json::from_str(r#"{ "requests_per_second": 1000 }"#).unwrap();
    assert_eq!((load.timeout_s, load.connections, load.clients, load.threads), (10.0, 20_000, 8, 1));
    let mistake = serde_json::from_str::<SessionLoad>(r#"{ "requests_per_second": 1, "timout_s": 3 }"#);
    assert!(mistake.unwrap_err().to_string().contains("timout_s"));
}
