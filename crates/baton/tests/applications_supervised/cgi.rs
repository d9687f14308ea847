//! `cgi = {…}`: a program for each request.

use std::fs;
use std::time::Instant;

use crate::common::folder::{Folder, install_program};
use crate::common::server::{PATIENCE, Server, wait_until};
use crate::processes::lives;

fn server(programs: &[(&str, &str)], keys: &str) -> Server {
    let folder = Folder::new();
    for (name, text) in programs {
        let path = folder.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        install_program(&path, format!("#!/bin/sh\n{text}"));
    }
    folder.write("plain.cgi", "no program").write("page.txt", "a file");
    let site =
        "processes = 1\n[[site]]\nlisten = ['127.0.0.1:0']\nroot = '{root}'\n[[site.route]]\npath = '/'\n";
    Server::run(folder, &format!("{site}cgi = {{ scripts = ['.cgi'], {keys} }}\n"))
}

#[test]
fn a_program_sees_the_request_as_rfc_3875_says() {
    let program = "echo 'Status: 202 Fine'; echo 'Content-Type: text/x'; echo; env; pwd; cat; echo told >&2";
    let server = server(&[("sub/a.cgi", program)], "environment = { COLOUR = 'blue' }");
    let mut client = server.connect();
    client.send(
        "POST /sub/a.cgi/more?x=1&y HTTP/1.1\r\nHost: a\r\nX-Own: 3\r\nProxy: evil\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nthe body!",
    );
    let answer = client.answer_to("POST");
    assert_eq!((answer.status, answer.field("content-type")), (202, Some("text/x")));
    let text = answer.text();
    let lines = [
        "REQUEST_METHOD=POST",
        "QUERY_STRING=x=1&y",
        "SCRIPT_NAME=/sub/a.cgi",
        "PATH_INFO=/more",
        "CONTENT_LENGTH=9",
        "CONTENT_TYPE=text/plain",
        "GATEWAY_INTERFACE=CGI/1.1",
        "HTTP_X_OWN=3",
        "COLOUR=blue",
        &format!("{}/sub", fs::canonicalize(server.folder().root()).expect("a folder").display()),
    ];
    for line in lines {
        assert!(text.lines().any(|one| one == line), "no {line} in {text}");
    }
    assert!(
        !text.contains("evil") && !text.contains("BATON_OFFER") && text.ends_with("\nthe body!"),
        "{text}"
    );
    wait_until("the error log has it", || server.said().contains("told"));
}

#[test]
fn only_programs_are_run_and_other_files_are_sent() {
    let server = server(&[], "");
    assert_eq!(server.get("/plain.cgi").status, 403);
    assert_eq!(server.get("/none.cgi").status, 404);
    assert_eq!(server.get("/page.txt").body, b"a file");
}

/// Goal: neither direction waits for the other. Method: a program that answers more than any pipe holds before it reads
/// a body that no pipe holds either.
#[test]
fn a_program_may_answer_before_it_reads() {
    let program = "echo 'Content-Type: a/b'; echo; head -c 500000 /dev/zero; wc -c";
    let server = server(&[("a.cgi", program)], "");
    let mut client = server.connect();
    client.send("POST /a.cgi HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n");
    client.send(vec![b'x'; 300_000]);
    let answer = client.answer_to("POST");
    assert_eq!(answer.status, 200);
    assert!(answer.body.ends_with(b"\x00300000\n") && answer.body.len() == 500_007, "{}", answer.body.len());
}

#[test]
fn a_program_that_hangs_is_killed_when_the_server_gives_up() {
    let program = "echo $$ > pid; exec sleep 1000";
    let server = server(&[("a.cgi", program)], "timeout_ms = 3000, processes = 1, user = 'root'");
    assert_eq!(server.get("/a.cgi").status, 504);
    let path = server.folder().path("pid");
    let pid = fs::read_to_string(path).expect("a file").trim().parse().expect("a process");
    let deadline = Instant::now() + PATIENCE;
    while lives(pid) {
        assert!(Instant::now() < deadline, "it goes on");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}
