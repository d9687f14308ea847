//! The same programs with both libraries: the same bytes.

use std::process::{Command, Stdio};

use crate::program::{Library, Program, compiled};
use crate::rig::text;

/// A program's query, and the length of the request's body.
type Case = (&'static str, usize);

const STREAMS: &[Case] = &[
    ("e", 0),
    ("b", 0),
    ("b", 1),
    ("b", 5_000),
    ("b", 300_000),
    ("v", 0),
    ("v", 300_000),
    ("f", 0),
    ("l0", 0),
    ("l100", 0),
    ("l8192", 0),
    ("l70000", 100),
    ("l3000000", 0),
    ("u10", 0),
    ("u65528", 0),
    ("u500000", 0),
    ("i0", 0),
    ("i100", 0),
    ("i3000000", 0),
    ("c1", 0),
    ("c200000", 0),
    ("s0", 0),
    ("s2000", 0),
    ("x0", 0),
    ("x100000", 0),
    ("w10", 0),
    ("w1000", 0),
    ("p200000", 0),
    ("r", 20),
    ("d50000", 0),
    ("", 0),
    ("e", 100_000),
];

const STDIO: &[Case] =
    &[("", 0), ("abc", 0), ("x", 1), ("x", 10), ("several", 300), ("large", 200_000), ("x", 70)];

/// Everything that a server sees of a program's answers.
fn answers(name: &'static str, cases: &[Case], library: Library) -> Vec<(Vec<u8>, Vec<u8>, Option<u32>)> {
    let program = Program::of(name, &[], library);
    let ask = |&(query, body): &Case| {
        let cookie = "c".repeat(300);
        let variables = [
            ("REQUEST_METHOD", if body > 0 { "POST" } else { "GET" }),
            ("QUERY_STRING", query),
            ("HTTP_COOKIE", &cookie[..]),
            ("EMPTY", ""),
            ("EQUALS", "a=b=c"),
        ];
        // The original loses its position on a connection when a request's body arrives after its answer.
        let mut server = program.connect();
        server.ask(&variables, &text(body));
        let reply = server.reply();
        (reply.stdout, reply.stderr, reply.end)
    };
    cases.iter().map(ask).collect()
}

fn compare(name: &'static str, cases: &[Case]) {
    let original = answers(name, cases, Library::Original);
    let ours = answers(name, cases, Library::Ours);
    for ((case, original), ours) in cases.iter().zip(original).zip(ours) {
        assert!(original.2.is_some(), "the original does not answer {case:?}");
        assert_eq!(String::from_utf8_lossy(&original.1), String::from_utf8_lossy(&ours.1), "{case:?}");
        assert_eq!(original.2, ours.2, "{case:?}");
        if original.0 != ours.0 {
            let at = original.0.iter().zip(&ours.0).take_while(|(one, other)| one == other).count();
            let show = |bytes: &[u8]| {
                String::from_utf8_lossy(&bytes[at.saturating_sub(40)..bytes.len().min(at + 80)]).into_owned()
            };
            panic!("{case:?} differs from byte {at}:\n{}\n---\n{}", show(&original.0), show(&ours.0));
        }
    }
}

#[test]
fn the_fcgx_interface_does_the_same() {
    compare("streams", STREAMS);
}

#[test]
fn the_stdio_layer_does_the_same() {
    compare("stdio", STDIO);
}

/// Run as CGI there is one request, the process itself.
#[test]
fn cgi_programs_do_the_same() {
    let run = |library: Library, body: &[u8]| {
        let dir = tempfile::tempdir().unwrap();
        let input = dir.path().join("body");
        std::fs::write(&input, body).unwrap();
        let mut command = Command::new(compiled("stdio"));
        command.env("QUERY_STRING", "from=cgi").env("REQUESTS_ARE_FILES", "1");
        command.stdin(std::fs::File::open(input).unwrap()).stderr(Stdio::piped());
        library.choose(&mut command);
        let output = command.output().unwrap();
        (
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
            output.status.code(),
        )
    };
    for body in [&b""[..], b"a body\nof lines\n"] {
        let original = run(Library::Original, body);
        assert!(original.0.contains("from=cgi 42 -7 0.333 1e+30 x%"), "{}", original.0);
        assert_eq!(original, run(Library::Ours, body));
    }
}
