//! Goal: other implementations understand our FastCGI, and we understand theirs. Method: php-fpm and fcgiwrap as
//! applications, nginx as the server, over Unix sockets.

use baton_fcgi::application::{self, RequestReader};
use baton_fcgi::cgi::{CgiHead, HEAD_BYTES_MAX, HeadReader, HeadStep};
use baton_fcgi::environment::{Script, Variables, push_fields};
use baton_fcgi::params::Params;
use baton_fcgi::request;
use baton_fcgi::response::{Part, ProtocolStatus, ResponseReader};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A program of the distribution, ended with its folder.
struct Program {
    child: Child,
    folder: tempfile::TempDir,
}

impl Program {
    /// Starts a program in a folder of its own, which `prepare` fills, and waits for its socket.
    fn start(mut command: Command, folder: tempfile::TempDir) -> Self {
        command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| {
            panic!("{command:?}: {error}; scripts/setup-tests installs it");
        });
        let program = Self { child, folder };
        drop(program.connect());
        program
    }

    fn connect(&self) -> UnixStream {
        let path = self.folder.path().join(SOCKET);
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            match UnixStream::connect(&path) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                    return stream;
                }
                Err(error) => assert!(Instant::now() < deadline, "{}: {error}", path.display()),
            }
            sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Both end their children when they are asked to, not when they are killed.
        let asked = Command::new("kill").arg(self.child.id().to_string()).status();
        if asked.is_err() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

const SOCKET: &str = "socket";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    // Workers run as another user.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// What an application answered.
struct Answer {
    head: CgiHead,
    body: String,
    log: String,
}

/// Sends a request for the script at `path` and reads its answer.
fn ask(stream: &mut UnixStream, root: &Path, path: &str, extension: &str, body: &[u8]) -> Answer {
    let mut block = Vec::new();
    let script = Script::with_extension(path.as_bytes(), extension.as_bytes()).unwrap();
    Variables {
        method: b"POST",
        request_uri: format!("{path}?a=1").as_bytes(),
        query_string: b"a=1",
        script,
        document_root: root.to_str().unwrap().as_bytes(),
        script_filename: None,
        content_length: Some(body.len() as u64),
        protocol: "HTTP/1.1",
        https: false,
        server_software: b"baton",
        server_name: b"example.org",
        host: Some((b"example.org", Some(81))),
        remote: Some(([192, 0, 2, 1], 5678).into()),
        local: Some(([192, 0, 2, 2], 81).into()),
    }
    .push(&mut block);
    let fields = [("Cookie", "a=b"), ("Content-Type", "text/plain"), ("Cookie", "c=d")];
    push_fields(&mut block, fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())));
    let mut out = Vec::new();
    request::push_begin(&mut out, 1, true);
    request::push_params(&mut out, 1, &block);
    request::push_stdin(&mut out, 1, body);
    request::push_stdin_end(&mut out, 1);
    stream.write_all(&out).unwrap();
    read_answer(stream)
}

fn read_answer(stream: &mut UnixStream) -> Answer {
    let mut reader = ResponseReader::new(1);
    let (mut output, mut log) = (Vec::new(), Vec::new());
    let mut buffer = [0; 1000];
    'ended: loop {
        let length = stream.read(&mut buffer).unwrap();
        assert!(length > 0, "closed after {}", output.escape_ascii());
        let mut rest = &buffer[..length];
        loop {
            let (consumed, part) = reader.read(rest).unwrap();
            match part {
                Part::NeedMore => break,
                Part::Stdout(range) => output.extend_from_slice(&rest[range]),
                Part::Stderr(range) => log.extend_from_slice(&rest[range]),
                Part::End { app_status, protocol_status } => {
                    assert_eq!((app_status, protocol_status), (0, ProtocolStatus::RequestComplete));
                    assert_eq!(consumed, rest.len());
                    break 'ended;
                }
                part => panic!("{part:?}"),
            }
            rest = &rest[consumed..];
        }
    }
    let mut reader = HeadReader::new(HEAD_BYTES_MAX);
    let HeadStep::End { body_at } = reader.read(&output).unwrap() else {
        panic!("no head: {}", output.escape_ascii());
    };
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    Answer { head: reader.finish().unwrap(), body: text(&output[body_at..]), log: text(&log) }
}

#[test]
fn php_fpm_understands_requests_and_is_understood() {
    let folder = folder();
    let root = folder.path().to_owned();
    let script = r#"<?php
        http_response_code(404);
        error_log("for the log");
        foreach (["PHP_SELF", "PATH_INFO", "PATH_TRANSLATED", "SCRIPT_NAME", "HTTP_COOKIE", "CONTENT_TYPE", "REMOTE_ADDR",
            "HTTP_HOST", "SERVER_PORT", "QUERY_STRING"] as $name) echo $_SERVER[$name], "\n";
        echo md5(file_get_contents("php://input")), " ", $_SERVER["CONTENT_LENGTH"];"#;
    fs::write(root.join("a.php"), script).unwrap();
    let pool = "[global]\nerror_log=log\ndaemonize=no\n[www]\nlisten=$folder/socket\nuser=root\npm=static\n\
        pm.max_children=1\nphp_admin_value[log_errors]=on\nphp_admin_value[error_log]=\n";
    fs::write(root.join("pool"), pool.replace("$folder", root.to_str().unwrap())).unwrap();
    let mut command = Command::new("sh");
    // Distributions put the version into the name.
    command.args(["-c", "exec $(ls /usr/sbin/php-fpm* | head -n 1) --nodaemonize -R -p . -y pool"]);
    let fpm = Program::start(command, folder);

    let mut stream = fpm.connect();
    let long_body = vec![b'x'; 200_000];
    for (body, md5) in [
        (&b"hello"[..], "5d41402abc4b2a76b9719d911017c592"),
        (&long_body, "4b98146705d4b0b98b758a78ff6fb73f"),
    ] {
        let answer = ask(&mut stream, &root, "/a.php/info", ".php", body);
        assert_eq!((answer.head.status(), answer.head.reason()), (404, &b"Not Found"[..]));
        assert_eq!(answer.log, "PHP message: for the log");
        let root = root.display();
        let expected = format!(
            "/a.php/info\n/info\n{root}/info\n/a.php\na=b; c=d\ntext/plain\n192.0.2.1\nexample.org:81\n81\na=1\n\
            {md5} {}",
            body.len()
        );
        assert_eq!(answer.body, expected);
    }
}

#[test]
fn fcgiwrap_understands_requests_and_is_understood() {
    let folder = folder();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cgi");
    let mut command = Command::new("fcgiwrap");
    command.args(["-s", &format!("unix:{}", folder.path().join(SOCKET).display())]);
    let wrap = Program::start(command, folder);

    let mut stream = wrap.connect();
    for _ in 0..2 {
        let answer = ask(&mut stream, &root, "/a.cgi/info", ".cgi", b"body");
        assert_eq!(answer.head.field("Location"), Some(&b"/elsewhere?x"[..]));
        assert_eq!(answer.body, "CGI/1.1 /info\nbody");
    }
}

#[test]
fn nginx_is_understood_and_understands_answers() {
    let folder = folder();
    let listener = UnixListener::bind(folder.path().join("application")).unwrap();
    let at = folder.path().to_str().unwrap();
    let config = format!(
        "daemon off; master_process off; pid pid; error_log log; events {{}}\n\
        http {{ access_log off; client_body_temp_path body; proxy_temp_path a; fastcgi_temp_path b; uwsgi_temp_path c;\n\
        scgi_temp_path d; upstream app {{ server unix:{at}/application; keepalive 1; }}\n\
        server {{ listen unix:{at}/{SOCKET}; location / {{ fastcgi_pass app; fastcgi_keep_conn on;\n\
        fastcgi_param REQUEST_METHOD $request_method; fastcgi_param LONG {}; }} }} }}",
        "x".repeat(3000)
    );
    fs::write(folder.path().join("nginx.conf"), config).unwrap();
    let mut command = Command::new("nginx");
    command.args(["-e", "log", "-p", at, "-c", "nginx.conf"]);
    let nginx = Program::start(command, folder);

    let mut client = nginx.connect();
    let body = "b".repeat(100_000);
    let accepting = std::thread::spawn(move || answer_twice(&listener));
    for _ in 0..2 {
        let head = format!("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
        client.write_all(head.as_bytes()).unwrap();
        client.write_all(body.as_bytes()).unwrap();
        let mut reply = Vec::new();
        while !reply.ends_with(b"\r\n0\r\n\r\n") {
            let mut buffer = [0; 4096];
            let length = client.read(&mut buffer).unwrap();
            assert!(length > 0, "{}", reply.escape_ascii());
            reply.extend_from_slice(&buffer[..length]);
        }
        let reply = String::from_utf8(reply).unwrap();
        assert!(reply.starts_with("HTTP/1.1 201 Made\r\n"), "{reply}");
        assert!(reply.contains("\r\nmethod POST, 3000 of LONG, 100000 of body\r\n"), "{reply}");
    }
    accepting.join().unwrap();
}

/// An application on one connection, which nginx keeps.
fn answer_twice(listener: &UnixListener) {
    let (mut stream, _) = listener.accept().unwrap();
    let mut reader = RequestReader::new();
    let (mut block, mut body_bytes, mut answered, mut request_id) = (Vec::new(), 0, 0, 0);
    let mut buffer = [0; 1000];
    while answered < 2 {
        let length = stream.read(&mut buffer).unwrap();
        assert!(length > 0, "nginx keeps the connection");
        let mut rest = &buffer[..length];
        loop {
            let (consumed, part) = reader.read(rest).unwrap();
            match part {
                application::Part::NeedMore => break,
                application::Part::Begin { id, role, keep_connection } => {
                    assert_eq!((role, keep_connection), (request::RESPONDER, true));
                    request_id = id;
                }
                application::Part::Params(range) => block.extend_from_slice(&rest[range]),
                application::Part::ParamsEnd => {}
                application::Part::Stdin(range) => body_bytes += range.len(),
                application::Part::StdinEnd => {
                    stream.write_all(&answer_of(request_id, &block, body_bytes)).unwrap();
                    reader.finish();
                    (body_bytes, answered) = (0, answered + 1);
                    block.clear();
                }
                part => panic!("{part:?}"),
            }
            rest = &rest[consumed..];
        }
    }
}

fn answer_of(id: u16, block: &[u8], body_bytes: usize) -> Vec<u8> {
    let value = |wanted: &[u8]| {
        let (_, value) = Params::new(block).map(Result::unwrap).find(|(name, _)| *name == wanted).unwrap();
        String::from_utf8(value.to_vec()).unwrap()
    };
    let text = format!(
        "Status: 201 Made\nContent-Type: text/plain\n\nmethod {}, {} of LONG, {body_bytes} of body",
        value(b"REQUEST_METHOD"),
        value(b"LONG").len()
    );
    let mut out = Vec::new();
    application::push_stderr(&mut out, id, b"for the log of nginx");
    application::push_stdout(&mut out, id, text.as_bytes());
    application::push_end(&mut out, id, 0, ProtocolStatus::RequestComplete);
    out
}
