//! `cgi = {…}`: a program for each request.

use std::fs;
use std::io::Write as _;
use std::time::{Duration, Instant};

use crate::common::client::{Client, Response};
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
fn a_program_that_ends_inside_its_head_is_a_bad_gateway() {
    let program = "echo 'Status: 200 OK'; echo 'Content-Type: text/plain'; exit 1";
    let server = server(&[("a.cgi", program)], "");
    assert_eq!(server.get("/a.cgi").status, 502);
    server.wait_until_said("GET /a.cgi: its response cannot be sent on: the response ended inside its head");
}

/// Goal: a part of a response is not taken for the whole, by any transport.
#[test]
fn the_response_of_a_program_that_is_killed_is_cut_off() {
    let program =
        "echo 'Content-Type: a/b'; echo; echo a part; while ! [ -e go ]; do sleep 0.01; done; kill -KILL $$";
    for transport in ["unix", "shm", "passfd"] {
        let server = server(&[("a.cgi", program)], &format!("transport = '{transport}'"));
        let mut client = server.connect();
        client.send("GET /a.cgi HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!((client.head().status, &client.chunk()[..]), (200, &b"a part\n"[..]), "{transport}");
        server.folder().write("go", "");
        assert!(client.until_the_end().is_empty(), "{transport}: the response looks complete");
        server.wait_until_said("a.cgi was killed by signal 9");
    }
}

#[test]
fn a_program_that_is_killed_before_its_response_is_a_bad_gateway() {
    let server = server(&[("a.cgi", "kill -KILL $$")], "");
    assert_eq!(server.get("/a.cgi").status, 502);
    server.wait_until_said("its response cannot be sent on");
    assert_eq!(server.said().matches("was killed by signal 9").count(), 1, "it is run once");
}

/// RFC 3875, section 6.2.2, unless the route says otherwise.
#[test]
fn a_path_as_location_restarts_the_request() {
    let program = "echo 'Location: /page.txt'; echo";
    let answer = server(&[("a.cgi", program)], "").get("/a.cgi");
    assert_eq!((answer.status, &*answer.body, answer.field("location")), (200, &b"a file"[..], None));
    let answer = get(&server(&[("a.cgi", program)], "local_redirects = false"), "/a.cgi");
    assert_eq!((answer.status, answer.field("location")), (302, Some("/page.txt")));
}

#[test]
fn only_programs_are_run_and_other_files_are_sent() {
    let server = server(&[], "");
    assert_eq!(server.get("/plain.cgi").status, 403);
    assert_eq!(server.get("/none.cgi").status, 404);
    assert_eq!(server.get("/page.txt").body, b"a file");
}

/// Goal: no spelling of a path bypasses its route, also not by the part after a program's name. Method: programs in a
/// folder whose route refuses everything, and paths that leave it after the program's name.
#[test]
fn the_path_after_a_program_leads_to_no_other_route() {
    let folder = Folder::new();
    folder.write("page.txt", "a file");
    fs::create_dir(folder.path("guarded")).expect("a folder");
    for name in ["open.cgi", "guarded/a.cgi"] {
        install_program(
            &folder.path(name),
            "#!/bin/sh\necho 'Content-Type: a/b'; echo; echo $SCRIPT_NAME $PATH_INFO",
        );
    }
    let site = "processes = 1\n[[site]]\nlisten = ['127.0.0.1:0']\nroot = '{root}'\n\
                [[site.route]]\npath = '/'\ncgi = { scripts = ['.cgi'] }\n\
                [[site.route]]\npath = '/guarded'\nrespond = { status = 403 }\n";
    let server = Server::run(folder, site);
    for (path, status, text) in [
        ("/open.cgi", 200, "/open.cgi\n"),
        ("/open.cgi/more//of/./it", 200, "/open.cgi /more/of/it\n"),
        ("/open.c%67i/more", 200, "/open.cgi /more\n"),
        ("/open.cgi/../page.txt", 200, "a file"),
        ("/guarded/../open.cgi/a%20b", 200, "/open.cgi /a b\n"),
        ("/guarded/a.cgi/../../page.txt", 200, "a file"),
        ("/guarded/a.cgi/%2e%2E/../page.txt", 200, "a file"),
        ("/guarded/a.cgi/../../open.cgi", 200, "/open.cgi\n"),
    ] {
        let answer = get(&server, path);
        assert_eq!((answer.status, answer.text()), (status, text), "{path}");
    }
    for (path, status) in [
        ("/guarded/a.cgi", 403),
        ("/guarded/a.cgi/more", 403),
        ("/open.cgi/../guarded/a.cgi", 403),
        ("/open.cgi/../..", 400),
        ("/open.cgi/%00", 400),
        ("/page.txt/open.cgi/more", 404),
    ] {
        assert_eq!(get(&server, path).status, status, "{path}");
    }
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

/// Bytes beyond the memory bound, so that the program gets the request before the rest of it has arrived.
const BEGINNING: usize = 100_000;

/// A server whose program is given uploads as they arrive, and a client that has sent the beginning of one.
fn uploading(program: &str, body_bytes: usize) -> (Server, Client) {
    let server = server(&[("a.cgi", program)], "streamed_bodies_max = 1, processes = 1, user = 'root'");
    let mut client = server.connect();
    client.send(format!("POST /a.cgi HTTP/1.1\r\nHost: a\r\nContent-Length: {body_bytes}\r\n\r\n"));
    client.send(vec![b'x'; BEGINNING]);
    (server, client)
}

/// The answer of a program, without a length.
fn get(server: &Server, path: &str) -> Response {
    let mut client = server.connect();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    client.answer_to("GET")
}

/// Goal: a program reads its input as it arrives, and its output leaves meanwhile. Method: it answers each line, and
/// the client reads the answer before it sends the next line.
#[test]
fn a_program_sees_an_upload_as_it_arrives() {
    let lines = ["one\n", "two\n", "three\n"];
    let program = format!("echo 'Content-Type: a/b'; echo; head -c {BEGINNING} | wc -c; exec cat");
    let (_server, mut client) = uploading(&program, BEGINNING + lines.concat().len());
    assert_eq!(client.head().status, 200);
    assert_eq!(client.chunk(), format!("{BEGINNING}\n").into_bytes());
    for line in lines {
        client.send(line);
        assert_eq!(client.chunk(), line.as_bytes());
    }
    assert!(client.chunk().is_empty(), "nothing but the end");
}

/// Whether it closes its standard input, leaves it open and unread, or reads a little: its answer is complete before the
/// body is, and its process has the next request.
#[test]
fn a_program_need_not_read() {
    for reads in ["exec <&-", ":", "head -c 1000 > /dev/null"] {
        let program = format!("{reads}; echo 'Content-Type: a/b'; echo; head -c 300000 /dev/zero");
        let (server, mut client) = uploading(&program, 10_000_000);
        let answer = client.answer_to("POST");
        assert_eq!((answer.status, answer.body.len()), (200, 300_000), "{reads}");
        assert_eq!(get(&server, "/a.cgi").body.len(), 300_000, "{reads}");
    }
}

/// Goal: a client that is gone is not taken for the end of the body. Method: the program would write a file at the end.
#[test]
fn a_program_whose_client_goes_away_does_not_see_an_end() {
    let program = "echo $$ > pid.new; mv pid.new pid; cat > /dev/null; echo > end";
    let (server, client) = uploading(program, 1_000_000);
    let pid = server.folder().path("pid");
    wait_until("the program runs", || pid.exists());
    let pid = fs::read_to_string(pid).expect("a file").trim().parse().expect("a process");
    drop(client);
    wait_until("the program is killed", || !lives(pid));
    // The next one runs when the process is done with this one.
    install_program(&server.folder().path("b.cgi"), "#!/bin/sh\necho 'Content-Type: a/b'; echo; echo next");
    assert_eq!(get(&server, "/b.cgi").text(), "next\n");
    assert!(!server.folder().path("end").exists(), "it took a part for the whole");
}

/// Goal: the server does not buffer unread input of a program. Method: a body larger than pipes and sockets hold is
/// sent until they are full, and arrives completely when the program reads it.
#[test]
fn a_program_that_reads_later_holds_the_client_up() {
    let total = 64 << 20;
    let program = "while ! [ -e go ]; do sleep 0.01; done; echo 'Content-Type: a/b'; echo; exec wc -c";
    let (server, mut client) = uploading(program, total);
    client.stream().set_write_timeout(Some(Duration::from_millis(500))).expect("a timeout");
    let piece = vec![b'x'; 1 << 20];
    let mut left = total - BEGINNING;
    while let Ok(taken) = (&mut client.stream()).write(&piece[..piece.len().min(left)]) {
        left -= taken;
        assert!(left > total / 4, "most of it was taken");
    }
    client.stream().set_write_timeout(Some(PATIENCE)).expect("a timeout");
    server.folder().write("go", "");
    client.send(vec![b'x'; left]);
    assert_eq!(client.answer_to("POST").text().trim(), total.to_string());
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
        assert!(Instant::now() < deadline, "it continues");
        std::thread::sleep(Duration::from_millis(10));
    }
}
