//! php-fpm answers on the client's socket: heads and bodies.

use super::support::server::{FIELDS, MODERN};
use super::support::{Fpm, Request, Server};

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
