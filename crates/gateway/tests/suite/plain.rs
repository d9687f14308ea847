//! The plain transport: requests and answers of all shapes.

use crate::common::app::App;
use crate::common::driver::{Driver, Ending};
use crate::common::{application, get, post};

const HELLO: &[u8] = b"Content-Type: text/plain\r\n\r\nhello";

#[test]
fn a_request_is_answered() {
    let app = App::start(|peer| {
        while let Some(asked) = peer.request() {
            assert!(asked.params.contains(&(b"SCRIPT_NAME".to_vec(), b"/app".to_vec())));
            assert!(asked.stdin.is_empty());
            peer.answer(&asked, b"Status: 404 Gone fishing\nX-Test: yes\n\nnot here");
        }
    });
    let mut driver = Driver::new();
    let got = driver.ask(1, get(&application(&app, |_| {})));
    let head = got.head.as_ref().unwrap();
    assert_eq!((head.status(), head.reason()), (404, &b"Gone fishing"[..]));
    assert_eq!(head.field("X-Test"), Some(&b"yes"[..]));
    assert_eq!(got.body, b"not here");
    assert_eq!(got.ending, Some(Ending::Complete));
}

#[test]
fn connections_are_kept_and_used_again() {
    let app = App::answering(HELLO);
    let application =
        application(&app, |settings| settings.transport = baton_gateway::TransportChoice::Plain);
    let mut driver = Driver::new();
    for whose in 0..20 {
        assert_eq!(driver.ask(whose, get(&application)).body, b"hello");
    }
    assert_eq!(app.accepted(), 1);
    assert_eq!(driver.report("idle"), 1);
    driver.run_until(|driver| driver.report("connections") == 0);
}

#[test]
fn bodies_of_any_size_arrive() {
    let app = App::start(|peer| {
        while let Some(asked) = peer.request() {
            let output =
                [b"X-Length: ", asked.stdin.len().to_string().as_bytes(), b"\n\n", &asked.stdin].concat();
            peer.answer(&asked, &output);
        }
    });
    let application = application(&app, |_| {});
    let mut driver = Driver::new();
    for (whose, len) in [1, 16_384, 16_385, 65_535, 65_536, 3_000_000].into_iter().enumerate() {
        let body: Vec<u8> = (0..len).map(|at: usize| (at * 31 % 251) as u8).collect();
        let got = driver.ask(whose as u64, post(&application, &body));
        assert_eq!(got.ending, Some(Ending::Complete));
        assert!(got.body == body, "{len} bytes came back as {}", got.body.len());
    }
}
