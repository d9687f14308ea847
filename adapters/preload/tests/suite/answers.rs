//! php-fpm answers on the client's socket: heads and bodies.

use std::os::fd::AsFd;

use baton_fcgi::offer::{Bodies, Client as ClientOffer, Offer, Transport};
use baton_fcgi::{AnswerOutcome, params};

use super::support::pattern::{self, assert_pattern};
use super::support::server::{FIELDS, MODERN};
use super::support::{Client, Fpm, Offered, Request, Server};

#[test]
fn a_small_answer_goes_to_the_client_and_not_to_the_server() {
    let fpm = Fpm::with_one_worker("");
    let script = fpm.script("hello.php", "<?php header('X-Test: yes'); echo 'Hello, ', $_GET['name'];");
    let mut server = Server::connect(&fpm.socket());
    let (outcome, response) = server.answer(&Request::get(script).query("name=world"), MODERN);
    let answered = outcome.complete();
    assert_eq!((answered.status, answered.body_bytes), (200, 12));
    assert_eq!(answered.head_bytes, response.head.len() as u64);
    assert!(answered.may_go_on);
    assert!(response.head.starts_with(&format!("HTTP/1.1 200 OK\r\n{FIELDS}")), "{}", response.head);
    assert_eq!(response.field("X-Test"), Some("yes"));
    assert_eq!(response.field("Content-Length"), Some("12"));
    assert_eq!(response.text(), "Hello, world");
}

/// Around the sizes of php's buffer, of records, of the answer's buffer, and far beyond; with php's own buffers in
/// between and without; in one piece, and in pieces of any size.
#[test]
fn bodies_of_any_size_arrive_byte_by_byte() {
    for buffering in ["0", "4096"] {
        let fpm = Fpm::with_one_worker(&format!("php_value[output_buffering] = {buffering}\n"));
        let script = fpm.script("bytes.php", pattern::SCRIPT);
        let mut server = Server::connect(&fpm.socket());
        let sizes =
            [1, 7, 8, 8175, 8184, 8185, 8192, 16_384, 65_528, 65_535, 65_536, 65_537, 200_000, 1 << 20];
        for bytes in sizes {
            for step in [bytes, 8192, 5000, 65_000, 70_000] {
                let request = Request::get(&script).query(format!("bytes={bytes}&step={step}"));
                let (outcome, response) = server.answer(&request, MODERN);
                assert_eq!(outcome.complete().body_bytes, bytes as u64);
                assert_pattern(&response.body, bytes);
            }
        }
        let (outcome, response) =
            server.answer(&Request::get(&script).query("bytes=20000000&step=20000000"), MODERN);
        assert_eq!(outcome.complete().body_bytes, 20_000_000);
        assert_pattern(&response.body, 20_000_000);
    }
}

#[test]
fn the_length_is_told_when_it_is_known_in_time() {
    let fpm = Fpm::with_one_worker("");
    let script = fpm.script("bytes.php", pattern::SCRIPT);
    let mut server = Server::connect(&fpm.socket());
    let mut framing = |query: &str, offered| {
        let (outcome, response) = server.answer(&Request::get(&script).query(query), offered);
        outcome.complete();
        let field = |name| response.field(name).map(str::to_owned);
        (field("Content-Length"), field("Transfer-Encoding"), field("Connection"))
    };
    let some = |text: &str| Some(text.to_owned());
    // php writes this in seven pieces as its buffer runs over: a full buffer is not a flush.
    assert_eq!(framing("bytes=50000&step=100", MODERN), (some("50000"), None, None));
    assert_eq!(framing("bytes=200000&step=200000", MODERN), (None, some("chunked"), None));
    assert_eq!(framing("bytes=200000&step=999&length=200000", MODERN), (some("200000"), None, None));
    let old = Offered { minor: 0, ..MODERN };
    assert_eq!(framing("bytes=200000&step=200000", old), (None, None, some("close")));
    assert_eq!(framing("bytes=10&step=10", old), (some("10"), None, some("keep-alive")));
    assert_eq!(
        framing("bytes=10&step=10", Offered { keep: false, ..MODERN }),
        (some("10"), None, some("close"))
    );
}

#[test]
fn two_answers_go_over_one_connection_of_the_client() {
    let fpm = Fpm::with_one_worker("");
    let script = fpm.script("bytes.php", pattern::SCRIPT);
    let mut server = Server::connect(&fpm.socket());
    let (mut client, server_end) = Client::connect();
    for bytes in [10, 100_000, 20] {
        let request = Request::get(&script).query(format!("bytes={bytes}&step={bytes}"));
        std::thread::scope(|scope| {
            let reads = scope.spawn(|| client.read_response("GET"));
            assert!(server.offer(&request, MODERN, &server_end).complete().may_go_on);
            assert_pattern(&reads.join().expect("a response").body, bytes);
        });
    }
    // No other copy of the socket is open: the client sees its end when the server closes it.
    drop(server_end);
    assert_eq!(client.read_to_end(), b"");
}

#[test]
fn heads_are_what_the_script_says() {
    let fpm = Fpm::with_one_worker("");
    let mut server = Server::connect(&fpm.socket());
    let mut respond = |text: &str, method| {
        let script = fpm.script("head.php", &format!("<?php {text}"));
        let request = Request { method, ..Request::get(script) };
        let (outcome, response) = server.answer(&request, MODERN);
        let answered = outcome.complete();
        assert_eq!((answered.status, answered.body_bytes), (response.status, response.body.len() as u64));
        response
    };
    let response = respond("http_response_code(404); echo 'nothing';", "GET");
    assert!(response.head.starts_with("HTTP/1.1 404 Not Found\r\n"), "{}", response.head);
    assert_eq!(response.field("Status"), None);
    let response = respond("header('Location: https://example.org/');", "GET");
    assert_eq!((response.status, response.field("Location")), (302, Some("https://example.org/")));
    let response = respond("header('Location: /there', true, 303);", "GET");
    assert_eq!((response.status, response.field("Location")), (303, Some("/there")));
    let response = respond("setcookie('a', '1'); setcookie('b', '2'); echo 'x';", "GET");
    assert_eq!(response.head.matches("Set-Cookie: ").count(), 2, "{}", response.head);
    let response = respond("header('X-Gone: 1'); header_remove(); header('X-Here: 1');", "GET");
    assert_eq!((response.field("X-Gone"), response.field("X-Powered-By")), (None, None));
    assert_eq!((response.field("X-Here"), response.text().as_str()), (Some("1"), ""));
    for status in [204, 304] {
        let response = respond(&format!("http_response_code({status});"), "GET");
        assert_eq!(response.status, status);
        assert_eq!((response.field("Content-Length"), response.field("Transfer-Encoding")), (None, None));
    }
    let response = respond("echo 'twelve bytes';", "HEAD");
    assert_eq!((response.status, response.text().as_str()), (200, ""));
    let response = respond("header('Date: never'); header('Server: php'); echo 1;", "GET");
    assert_eq!(response.field("Server"), Some("baton"));
    assert_eq!(response.head.matches("Date: ").count(), 1);
}

#[test]
fn scripts_may_end_anywhere() {
    let fpm = Fpm::with_one_worker("php_value[display_errors] = 0\nphp_value[html_errors] = 0\n");
    let mut server = Server::connect(&fpm.socket());
    let mut respond = |text: &str| {
        let script = fpm.script("end.php", &format!("<?php {text}"));
        let (outcome, response) = server.answer(&Request::get(script), MODERN);
        (outcome.complete().status, response.text())
    };
    assert_eq!(respond("echo 'seen'; exit; echo 'not seen';"), (200, "seen".to_owned()));
    assert_eq!(respond("die('last words');"), (200, "last words".to_owned()));
    assert_eq!(respond("throw new Exception('x');"), (500, String::new()));
    assert_eq!(respond("no_such_function();"), (500, String::new()));
    assert_eq!(respond("echo 'before '; flush(); no_such_function();"), (200, "before ".to_owned()));
    assert_eq!(
        respond("register_shutdown_function(fn () => print 'after'); exit;"),
        (200, "after".to_owned())
    );
    assert_eq!(respond("ini_set('memory_limit', '2M'); $a = str_repeat('x', 1 << 24);").0, 500);
}

/// The declared length exceeds the body: the client must not take it for a complete response.
#[test]
fn a_body_shorter_than_declared_is_reported() {
    let fpm = Fpm::with_one_worker("");
    let script = fpm.script("bytes.php", pattern::SCRIPT);
    let mut server = Server::connect(&fpm.socket());
    let (outcome, response) =
        server.answer(&Request::get(script).query("bytes=10&step=10&length=11"), MODERN);
    let answered = outcome.answered.expect("answered");
    assert_eq!((answered.complete, answered.outcome), (false, AnswerOutcome::ApplicationFailed));
    assert!(!response.is_complete);
}

#[test]
fn bodies_of_requests_arrive_whole() {
    let fpm = Fpm::with_one_worker("php_value[post_max_size] = 16M\nphp_value[upload_max_filesize] = 16M\n");
    let digest = fpm.script(
        "digest.php",
        "<?php $b = file_get_contents('php://input'); echo strlen($b), ' ', crc32($b);",
    );
    let upload = fpm.script(
        "upload.php",
        "<?php $f = $_FILES['file']; echo $_POST['name'], ' ', $f['size'], ' ', crc32(file_get_contents($f['tmp_name']));",
    );
    let ignore = fpm.script("ignore.php", "<?php echo 'ignored';");
    let mut server = Server::connect(&fpm.socket());
    for bytes in [0, 1, 4095, 16_384, 65_535, 65_536, 1_000_000, 8 << 20] {
        let body = pattern::pattern(bytes);
        let expected = format!("{bytes} {}", crc32(&body));
        let request = Request::get(&digest).post("application/octet-stream", body.clone());
        let (outcome, response) = server.answer(&request, MODERN);
        outcome.complete();
        assert_eq!(response.text(), expected);
        // A script that does not read the body leaves nothing behind for the next request.
        let (outcome, response) = server.answer(&Request { script: ignore.clone(), ..request }, MODERN);
        outcome.complete();
        assert_eq!(response.text(), "ignored");

        let parts = "--cut\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nvalue\r\n--cut\r\n\
                     Content-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n";
        let form = [parts.as_bytes(), &body, b"\r\n--cut--\r\n"].concat();
        let request = Request::get(&upload).post("multipart/form-data; boundary=cut", form);
        let (outcome, response) = server.answer(&request, MODERN);
        outcome.complete();
        assert_eq!(response.text(), format!("value {expected}"));
    }
}

#[test]
fn the_application_does_not_see_the_offer() {
    let fpm = Fpm::with_one_worker("");
    let script = fpm
        .script("server.php", "<?php echo implode(' ', array_keys($_SERVER)), ' ', getenv('BATON_OFFER');");
    let mut server = Server::connect(&fpm.socket());
    let plain = server.plain(&Request::get(&script));
    let (outcome, response) = server.answer(&Request::get(&script), MODERN);
    outcome.complete();
    let plain = String::from_utf8(plain.stdout).expect("text");
    assert_eq!(Some(response.text().as_str()), plain.split("\r\n\r\n").nth(1));
    assert!(plain.contains("SCRIPT_FILENAME"), "{plain}");
    assert!(!plain.contains("BATON"), "{plain}");
}

/// The offer may be all that its record holds. Without it the record would be empty, which ends the parameters.
#[test]
fn an_offer_may_have_a_record_of_its_own() {
    let fpm = Fpm::with_one_worker("");
    let script = fpm.script("hello.php", "<?php echo $_GET['name'];");
    let mut server = Server::connect(&fpm.socket());
    let (mut client, server_end) = Client::connect();
    let mut offer = Vec::new();
    Offer {
        transport: Transport::PassFd(ClientOffer { minor: 1, keep: true, head: false }),
        fds: 1,
        bodies: Bodies::default(),
        patience_ms: 1000,
        holds: false,
        fields: FIELDS.as_bytes(),
    }
    .push(&mut offer);
    let mut rest = Vec::new();
    for (name, value) in
        [("SCRIPT_FILENAME", script.as_str()), ("REQUEST_METHOD", "GET"), ("QUERY_STRING", "name=n")]
    {
        params::push(&mut rest, name.as_bytes(), value.as_bytes());
    }
    let request = Request::get(&script);
    server.send_blocks(&request, &[&offer, &rest], &[server_end.as_fd()]);
    server.read_outcome(&request).complete();
    assert_eq!(client.read_response("GET").text(), "n");
}

/// An offer with more response fields than are read ahead.
#[test]
fn an_offer_may_be_as_long_as_its_record() {
    let fpm = Fpm::with_one_worker("");
    let script = fpm.script("hello.php", "<?php echo $_SERVER['LAST'];");
    let mut server = Server::connect(&fpm.socket());
    let (mut client, server_end) = Client::connect();
    let mut block = Vec::new();
    let fields = format!("X-Long: {}\r\n", "l".repeat(60_000));
    Offer {
        transport: Transport::PassFd(ClientOffer { minor: 1, keep: true, head: false }),
        fds: 1,
        bodies: Bodies::default(),
        patience_ms: 1000,
        holds: false,
        fields: fields.as_bytes(),
    }
    .push(&mut block);
    for (name, value) in [("SCRIPT_FILENAME", script.as_str()), ("REQUEST_METHOD", "GET"), ("LAST", "seen")] {
        params::push(&mut block, name.as_bytes(), value.as_bytes());
    }
    let request = Request::get(&script);
    server.send_blocks(&request, &[&block], &[server_end.as_fd()]);
    server.read_outcome(&request).complete();
    let response = client.read_response("GET");
    assert_eq!((response.text().as_str(), response.field("X-Long").map(str::len)), ("seen", Some(60_000)));
}

#[test]
fn messages_for_the_error_log_reach_the_server() {
    let fpm = Fpm::with_one_worker("php_value[log_errors] = 1\n");
    let script =
        fpm.script("log.php", "<?php echo 'a'; error_log('first'); flush(); error_log('second'); echo 'b';");
    let mut server = Server::connect(&fpm.socket());
    let (outcome, response) = server.answer(&Request::get(script), MODERN);
    outcome.complete();
    assert_eq!(response.text(), "ab");
    let stderr = String::from_utf8_lossy(&outcome.stderr).into_owned();
    let (first, second) = (stderr.find("first"), stderr.find("second"));
    assert!(first.is_some() && first < second, "{stderr}");
}

/// As php computes it.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 },
        )
    })
}
