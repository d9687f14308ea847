//! Programs of the distribution, as it has built them.

use std::path::PathBuf;
use std::process::Command;

use crate::program::{Library, Program, compiled};
use crate::rig::{Client, HTTP_1_1, Region, split, text, unchunk};

/// The result of a request: head, body (as standard output or at the client), and error log.
type Seen = (String, Vec<u8>, String);

/// Sends a request by each transport: plain with the original, then plain, on the client's socket and through a
/// region with ours.
fn by_every_way(command: impl Fn() -> Command, variables: &[(&str, &str)], body: &[u8]) -> [Seen; 4] {
    let head_end = |output: &[u8]| {
        let find = |blank: &[u8]| {
            output.windows(blank.len()).position(|bytes| bytes == blank).map(|at| at + blank.len())
        };
        [find(b"\r\n\r\n"), find(b"\n\n")].into_iter().flatten().min().expect("a head")
    };
    let seen = |output: Vec<u8>, errors: Vec<u8>| {
        let end = head_end(&output);
        let head = String::from_utf8_lossy(&output[..end]).into_owned();
        (head, output[end..].to_vec(), String::from_utf8_lossy(&errors).into_owned())
    };
    let plain = |library| {
        let mut connected = Program::start(command(), library).connect_for_good();
        connected.server.ask(variables, body);
        let reply = connected.server.reply();
        seen(reply.stdout, reply.stderr)
    };
    let passed = || {
        let mut connected = Program::start(command(), Library::Ours).connect_for_good();
        let client = Client::new();
        let mut near = client.near.try_clone().unwrap();
        let reading = std::thread::spawn(move || {
            let mut received = Vec::new();
            std::io::Read::read_to_end(&mut near, &mut received).unwrap();
            received
        });
        connected.server.pass(&client, HTTP_1_1, 60_000, variables, body);
        let reply = connected.server.reply();
        assert!(reply.answered.is_some_and(|answered| answered.complete), "{reply:?}");
        drop(client);
        let (head, body) = split(&reading.join().unwrap());
        let body = if head.contains("chunked") { unchunk(&body) } else { body };
        (head, body, String::from_utf8_lossy(&reply.stderr).into_owned())
    };
    let shared = || {
        let mut connected = Program::start(command(), Library::Ours).connect_for_good();
        connected.server.region = Some(Region::new(1 << 20));
        connected.server.share(1 << 20, variables, body);
        let reply = connected.server.reply();
        assert_eq!(reply.stdout_record_bytes, 0);
        seen(reply.stdout, reply.stderr)
    };
    [plain(Library::Original), plain(Library::Ours), passed(), shared()]
}

fn installed(package: &str, path: &str) -> PathBuf {
    assert!(std::path::Path::new(path).exists(), "{path}: install {package}, which scripts/setup-tests does");
    path.into()
}

#[test]
fn fcgiwrap_runs_cgi_programs() {
    let fcgiwrap = installed("fcgiwrap", "/usr/sbin/fcgiwrap");
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/script.cgi");
    let body = text(50_000);
    let length = body.len().to_string();
    let path = script.to_str().unwrap();
    let variables = [
        ("REQUEST_METHOD", "POST"),
        ("SCRIPT_FILENAME", path),
        ("QUERY_STRING", "a=b"),
        ("CONTENT_LENGTH", &length),
        ("BATON_TEST", "1"),
    ];
    let [original, ours, passed, shared] = by_every_way(|| Command::new(&fcgiwrap), &variables, &body);
    assert!(original.1.starts_with(b"query a=b\nline 0 of many") && original.1.ends_with(&body[40_000..]));
    assert_eq!(original.0, ours.0);
    for other in [&ours, &passed, &shared] {
        assert!(original.1 == other.1, "{}", other.0);
        assert_eq!(original.2, other.2);
    }
    assert!(passed.0.starts_with("HTTP/1.1 202 Accepted\r\n"), "{}", passed.0);
}

/// Perl's module is compiled against the library; it ties Perl's own files to the streams.
#[test]
fn perl_programs_do_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("script.pl");
    std::fs::write(
        &script,
        r#"use strict; use FCGI;
my $request = FCGI::Request();
my $count = 0;
while ($request->Accept() >= 0) {
    $count++;
    print "Content-Type: text/plain\r\n\r\n";
    print "request $count, ", ($request->IsFastCGI() ? "fast" : "slow"), "\n";
    print map { "$_=$ENV{$_}\n" } grep { /^(QUERY|CONTENT|HTTP|FCGI)_/ } sort keys %ENV;
    my $length = 0;
    while (my $line = <STDIN>) { $length += length $line; print $line if $. % 100 == 1; }
    printf "%d bytes, %.3f\n", $length, 1 / 3;
    print STDERR "a message of perl\n";
    print "0123456789" x 20000, "\n";
    $request->Flush();
    print "end\n";
    $request->Finish();
}
"#,
    )
    .unwrap();
    let perl = || {
        let mut command = Command::new("perl");
        command.arg(&script);
        command
    };
    let variables = [("QUERY_STRING", "x"), ("HTTP_COOKIE", "a=b"), ("CONTENT_LENGTH", "30000")];
    let [original, ours, passed, shared] = by_every_way(perl, &variables, &text(30_000));
    let start = b"request 1, fast\nCONTENT_LENGTH=30000\nFCGI_ROLE=RESPONDER\nHTTP_COOKIE=a=b\n";
    assert!(original.1.starts_with(start), "libfcgi-perl? {}", String::from_utf8_lossy(&original.1));
    assert_eq!(original.0, ours.0);
    for other in [&ours, &passed, &shared] {
        assert!(original.1 == other.1, "{}", other.0);
        assert_eq!(original.2, other.2);
    }
}

/// `cgi-fcgi` lives of the parts that other programs do not use: connecting, callbacks, writers without a request. It
/// starts an application, too.
#[test]
fn cgi_fcgi_asks_applications() {
    let cgi_fcgi = installed("libfcgi-bin", "/usr/bin/cgi-fcgi");
    for (starts, body) in [(false, 0), (false, 100_000), (true, 10)] {
        let ask = |library: Library| {
            let application = (!starts).then(|| Program::of("streams", &[], Library::Original));
            let dir = tempfile::tempdir().unwrap();
            let input = dir.path().join("body");
            std::fs::write(&input, text(body)).unwrap();
            let mut command = Command::new(&cgi_fcgi);
            let (socket, program) = (dir.path().join("socket"), compiled("streams"));
            match &application {
                Some(application) => command.args(["-bind", "-connect"]).arg(application.socket()),
                None => command.arg("-connect").arg(&socket).arg(program),
            };
            command.env_clear().env("QUERY_STRING", "b").env("CONTENT_LENGTH", body.to_string());
            command.stdin(std::fs::File::open(input).unwrap());
            library.choose(&mut command);
            let output = command.output().unwrap();
            if starts {
                // The application outlives its starter: ask it to end.
                let mut server = crate::rig::Server::connect(&socket);
                server.ask(&[("QUERY_STRING", "q")], b"");
                assert_eq!(server.reply().end, Some(0));
            }
            assert!(output.status.success(), "{library:?} {output:?}");
            output.stdout
        };
        let original = ask(Library::Original);
        assert!(original.len() > body && original.starts_with(b"Content-Type: text/plain\r\n"));
        assert!(original == ask(Library::Ours), "{starts} {body}");
    }
}
