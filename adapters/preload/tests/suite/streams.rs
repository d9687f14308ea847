//! Answers over time: flushed, finished early, interrupted, handed back.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use baton_fcgi::AnswerOutcome;
use baton_fcgi::request::push_give_back;
use baton_fcgi::response::ProtocolStatus;

use super::support::pattern::{self, assert_pattern};
use super::support::server::MODERN;
use super::support::{Client, Fpm, Offered, Outcome, Request, Server, wait_for};

/// Releases a script that waits with `wait('name')`.
struct Gate(PathBuf);

impl Gate {
    fn open(&self) {
        fs::write(&self.0, "").expect("a file");
    }
}

/// A script that may call `wait('name')`: it continues when the gate of this name is open.
fn script(fpm: &Fpm, text: &str) -> String {
    fpm.script(
        "script.php",
        &format!(
            "<?php function wait($name) {{ while (!file_exists(__DIR__ . '/' . $name)) {{ clearstatcache(); usleep(1000); }} }} {text}"
        ),
    )
}

fn gate(fpm: &Fpm, name: &str) -> Gate {
    Gate(fpm.folder().join(name))
}

#[test]
fn what_is_flushed_is_seen_at_once() {
    let fpm = Fpm::with_one_worker("");
    let script = script(
        &fpm,
        "echo 'one '; flush(); wait('two'); echo 'two '; flush(); wait('three'); echo str_repeat('.', 20000), 'three'; flush(); wait('end');",
    );
    let (mut client, server_end) = Client::connect();
    let mut server = Server::connect(&fpm.socket());
    let request = Request::get(script);
    server.send_offer(&request, MODERN, &server_end);
    let mut seen = Vec::new();
    let mut see = |text: &str| {
        while !String::from_utf8_lossy(&seen).contains(text) {
            seen.extend(client.read_exactly(1));
        }
    };
    see("one ");
    gate(&fpm, "two").open();
    see("two ");
    gate(&fpm, "three").open();
    see("three");
    gate(&fpm, "end").open();
    see("0\r\n\r\n");
    server.read_outcome(&request).complete();
}

#[test]
fn output_control_works_as_ever() {
    let fpm = Fpm::with_one_worker("");
    let script = script(
        &fpm,
        "ob_start(); echo 'dropped'; ob_end_clean(); ob_start(); echo 'kept '; ob_flush(); flush(); echo 'upper'; \
         $upper = strtoupper(ob_get_clean()); ob_start(fn ($text) => strrev($text)); echo $upper; ob_end_flush(); \
         ob_implicit_flush(); echo ' a'; echo ' b';",
    );
    let (outcome, response) = Server::connect(&fpm.socket()).answer(&Request::get(script), MODERN);
    outcome.complete();
    assert_eq!(response.text(), "kept REPPU a b");
}

#[test]
fn a_finished_request_is_answered_while_the_script_goes_on() {
    let fpm = Fpm::with_one_worker("");
    let script = script(
        &fpm,
        "echo 'answer'; var_dump(fastcgi_finish_request()); echo 'nobody sees this'; wait('go'); \
         file_put_contents(__DIR__ . '/done', connection_status());",
    );
    for keep_connection in [true, false] {
        _ = fs::remove_file(fpm.folder().join("go"));
        let mut server = Server::connect(&fpm.socket());
        let request = Request { keep_connection, ..Request::get(&script) };
        let (outcome, response) = server.answer(&request, MODERN);
        outcome.complete();
        assert_eq!(response.text(), "answer");
        drop(server);
        gate(&fpm, "go").open();
        wait_for("the script's end", || {
            fs::read(fpm.folder().join("done")).ok().filter(|bytes| !bytes.is_empty())
        });
        fs::remove_file(fpm.folder().join("done")).expect("it was there");
    }
    let hello = fpm.script("hello.php", "<?php echo 'hello';");
    let (outcome, response) = Server::connect(&fpm.socket()).answer(&Request::get(hello), MODERN);
    outcome.complete();
    assert_eq!(response.text(), "hello");
}

#[test]
fn scripts_notice_that_the_client_is_gone() {
    let fpm = Fpm::with_one_worker("");
    for ignore in [false, true] {
        let script = script(
            &fpm,
            &format!(
                "ignore_user_abort({ignore}); \
                 register_shutdown_function(fn () => file_put_contents(__DIR__ . '/status', connection_status())); \
                 for ($i = 0; !connection_aborted() && $i < 100000; ++$i) {{ echo $i, ' '; flush(); usleep(1000); }} \
                 echo str_repeat('unwanted ', 20000); flush(); file_put_contents(__DIR__ . '/went_on', 'yes');"
            ),
        );
        let (mut client, server_end) = Client::connect();
        let mut server = Server::connect(&fpm.socket());
        let request = Request::get(script);
        server.send_offer(&request, MODERN, &server_end);
        client.read_exactly(10);
        drop(client);
        let outcome = server.read_outcome(&request);
        let answered = outcome.answered.expect("answered");
        assert_eq!((answered.complete, answered.outcome), (false, AnswerOutcome::ClientGone));
        assert_eq!(outcome.end, Some((0, ProtocolStatus::RequestComplete)));
        let status = wait_for("the script's end", || fs::read_to_string(fpm.folder().join("status")).ok());
        assert_eq!(status, "1", "CONNECTION_ABORTED");
        let went_on = fs::remove_file(fpm.folder().join("went_on")).is_ok();
        assert_eq!(went_on, ignore, "ignore_user_abort({ignore})");
        fs::remove_file(fpm.folder().join("status")).expect("it was there");
    }
    let hello = fpm.script("hello.php", "<?php echo 'hello';");
    let (outcome, response) = Server::connect(&fpm.socket()).answer(&Request::get(hello), MODERN);
    outcome.complete();
    assert_eq!(response.text(), "hello");
}

/// The client reads nothing for longer than the application's patience: the server gets the rest, as on the wire, and
/// the worker is free.
#[test]
fn a_slow_client_holds_no_worker() {
    let fpm = Fpm::with_one_worker("");
    let script = fpm.script("bytes.php", pattern::SCRIPT);
    let mut server = Server::connect(&fpm.socket());
    const BYTES: usize = 3_000_000;
    for (step, length, minor) in
        [(BYTES, "", 1), (1000, "", 1), (70_000, "", 0), (BYTES, "&length=3000000", 1)]
    {
        let (mut client, server_end) = Client::connect();
        hold_little(&server_end);
        let offered = Offered { patience_ms: 30, minor, ..MODERN };
        let request = Request::get(&script).query(format!("bytes={BYTES}&step={step}{length}"));
        let outcome = server.offer(&request, offered, &server_end);
        assert_eq!((outcome.end, outcome.answered), (Some((0, ProtocolStatus::RequestComplete)), None));
        let rest = outcome.rest.unwrap_or_else(|| panic!("not handed back: {:?}", outcome.answered));
        assert_eq!(rest.status, 200);
        let hello = fpm.script("hello.php", "<?php echo 'hello';");
        let (next, response) = server.answer(&Request::get(hello), MODERN);
        next.complete();
        assert_eq!(response.text(), "hello");
        finish_in_place_of_the_server(&mut client, server_end, &outcome);
    }
}

#[test]
fn the_server_can_have_the_connection_back_at_once() {
    let fpm = Fpm::with_one_worker("");
    let script = fpm.script("bytes.php", pattern::SCRIPT);
    let mut server = Server::connect(&fpm.socket());
    let (mut client, server_end) = Client::connect();
    hold_little(&server_end);
    // Only the server's word can end this wait in time.
    let offered = Offered { patience_ms: 3_600_000, ..MODERN };
    let request = Request::get(script).query("bytes=3000000&step=3000000");
    server.send_offer(&request, offered, &server_end);
    client.look_at(1000);
    let mut order = Vec::new();
    push_give_back(&mut order, request.request_id);
    server.write(&order);
    let outcome = server.read_outcome(&request);
    assert!(outcome.rest.is_some());
    finish_in_place_of_the_server(&mut client, server_end, &outcome);
}

/// Shrinks the server's send buffer below a response, so that a client that reads nothing blocks it. (The client's
/// buffer stays: with a small window, the kernel takes minutes for the rest.)
fn hold_little(server_end: &std::os::fd::OwnedFd) {
    rustix::net::sockopt::set_socket_send_buffer_size(server_end, 64 << 10).expect("a size");
}

/// Sends the handed-back bytes, as the server does, and checks that the client has one complete response.
fn finish_in_place_of_the_server(client: &mut Client, server_end: std::os::fd::OwnedFd, outcome: &Outcome) {
    rustix::net::sockopt::set_socket_send_buffer_size(&server_end, 4 << 20).expect("a size");
    let response = std::thread::scope(|scope| {
        let reads = scope.spawn(|| client.read_response("GET"));
        let mut stream = std::net::TcpStream::from(server_end);
        stream.set_nonblocking(false).expect("a socket");
        stream.write_all(&outcome.stdout).expect("the client takes it");
        drop(stream);
        reads.join().expect("a response")
    });
    assert!(response.is_complete);
    assert_pattern(&response.body, 3_000_000);
}

#[test]
fn slow_scripts_are_logged() {
    let fpm = Fpm::with_one_worker("request_slowlog_timeout = 1s\nslowlog = $folder/slow\n");
    let script = script(&fpm, "echo 'slow '; flush(); wait('go'); echo 'end';");
    let (mut client, server_end) = Client::connect();
    let mut server = Server::connect(&fpm.socket());
    let request = Request::get(script);
    server.send_offer(&request, MODERN, &server_end);
    wait_for("the slow log", || {
        fs::read_to_string(fpm.folder().join("slow")).ok().filter(|log| log.contains("script.php"))
    });
    gate(&fpm, "go").open();
    server.read_outcome(&request).complete();
    assert_eq!(client.read_response("GET").text(), "slow end");
}
