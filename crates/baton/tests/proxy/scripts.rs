//! Random responses, true and false, beside the verdict of a strict client: what this server passes on as whole, h11 takes
//! for whole, and for the same.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use crate::common::agent::Body;
use crate::common::folder::Folder;
use crate::common::protocol::Protocol;
use crate::common::server::Server;
use crate::origin::{Origin, Peer};
use crate::site::logged;

/// What an origin sends to the request with a seed, and how it ends.
#[derive(Debug)]
struct Script {
    bytes: Vec<u8>,
    piece_bytes: usize,
    /// Whether all of it is as RFC 9112 has it, so that a proxy has no reason to refuse it.
    is_sound: bool,
}

/// What h11 makes of the bytes, when the connection ends behind them.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Whole { status: u16, body: Vec<u8> },
    Cut,
    Refused,
}

/// Goal: framing is read as strictly as h11 reads it, or more so, whatever an origin sends. Method: each script is sent to
/// the server, over HTTP/1 and HTTP/2 in turn, and to h11; a sound one has to pass.
#[test]
fn no_script_is_whole_that_h11_calls_cut() {
    let verdicts = verdicts_of_h11();
    let server = server();
    let ask = |seed: u64| {
        let protocol = if seed.is_multiple_of(2) { Protocol::Http } else { Protocol::H2c };
        let server = server.over(protocol);
        let mut agent = server.agent();
        agent.begin("GET", "localhost", &path_of(seed), "", Body::None);
        let status = agent.head().status;
        (seed, status, agent.body())
    };
    let answers: Vec<_> = (0..SCRIPTS).map(ask).collect();
    let (mut whole, mut sound) = (0, 0);
    for (seed, status, body) in answers {
        let (script, verdict) = (Script::of(seed), &verdicts[seed as usize]);
        let line = logged(&server, &path_of(seed));
        let outcome = line["outcome"].as_str().expect("an outcome");
        let what = || format!("seed {seed}: {:?}, {verdict:?}, {status}, {body:?}, {line}", script);
        if outcome == "complete" {
            let is_same = matches!(verdict, Verdict::Whole { status: own, body: content }
                if *own == status && body.as_ref() == Ok(content));
            assert!(is_same, "{}", what());
            whole += 1;
        } else {
            assert!(!script.is_sound, "nothing is wrong: {}", what());
            assert_eq!(outcome, "origin-failed", "{}", what());
            assert!(status == 502 || body.is_err(), "{}", what());
        }
        sound += usize::from(script.is_sound);
    }
    assert!(
        sound > 50 && whole >= sound && whole < SCRIPTS as usize / 2 + sound,
        "{sound} sound, {whole} whole"
    );
}

fn path_of(seed: u64) -> String {
    format!("/?{seed}")
}

impl Script {
    fn of(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut flaws = 0;
        // The first is sound; one in `rarely` of the others is chosen.
        let mut one = |rarely: usize, of: &[&str]| {
            let index = if random.usize(0..rarely) == 0 { random.usize(0..of.len()) } else { 0 };
            flaws += usize::from(index > 0);
            of[index].to_owned()
        };
        let interim = one(9, &["", "HTTP/1.1 100 Continue\r\n", "HTTP/1.1 103 Hints\r\nLink\r\n\r\n"]);
        let line = one(9, &LINES);
        let end = one(25, &["\r\n", "\n", "\r\r\n"]);
        let fields = one(6, &FIELDS);
        let framing = one(3, &FRAMINGS);
        let more = one(9, &["", "Content-Length: 6\r\n", "Transfer-Encoding: chunked\r\n"]);
        let mut content = format!("{seed:06}");
        content = content.repeat(random.usize(1..4));
        let is_chunked = framing.contains("chunked") || random.usize(0..20) == 0;
        let (body, is_body_sound) = body(&content, is_chunked, &mut random);
        let framing = framing.replace("{len}", &content.len().to_string());
        let text = format!("{interim}{line}{end}{fields}{framing}{more}\r\n{body}");
        let mut bytes = text.into_bytes();
        // What nothing announces is no part of a sound script.
        let mut is_sound = flaws == 0 && is_body_sound && is_chunked == framing.contains("chunked");
        if random.usize(0..12) == 0 {
            let len = random.usize(0..bytes.len());
            bytes.truncate(len);
            is_sound = false;
        } else if random.usize(0..12) == 0 {
            let at = random.usize(0..bytes.len());
            bytes[at] = random.u8(..);
            is_sound = false;
        }
        Self { bytes, piece_bytes: [1, 5, 100_000][random.usize(0..3)], is_sound }
    }
}

/// A body in chunks or not, and whether it is as it should be.
fn body(content: &str, is_chunked: bool, random: &mut fastrand::Rng) -> (String, bool) {
    if !is_chunked {
        let is_long = random.usize(0..10) == 0;
        return (if is_long { format!("{content}more") } else { content.to_owned() }, !is_long);
    }
    let (mut text, mut rest, mut is_sound) = (String::new(), content, true);
    while !rest.is_empty() {
        let (now, behind) = rest.split_at(random.usize(1..=rest.len()));
        rest = behind;
        let size = format!("{:x}", now.len());
        let flaw = random.usize(0..40);
        is_sound &= flaw > 6;
        let line = match flaw {
            0 => format!("0x{size}"),
            1 => format!("{size} "),
            2 => format!("+{size}"),
            3 => format!("{size}\n"),
            4 => "fffffffffffffffff".to_owned(),
            5 => String::new(),
            6 => format!("{:x}", now.len() + 1),
            7 => format!("{size};name=value"),
            8 => format!("00{size}"),
            _ => size,
        };
        text.push_str(&format!("{line}\r\n{now}\r\n"));
    }
    let end = random.usize(0..16);
    is_sound &= end > 2;
    text.push_str(match end {
        0 => "",
        1 => "0\r\n",
        2 => "0\r\nno trailer\r\n\r\n",
        3 => "0\r\nX-Trailer: 1\r\n\r\n",
        _ => "0\r\n\r\n",
    });
    (text, is_sound)
}

/// Sends the script of the query's seed, and ends the connection.
fn play(peer: &mut Peer) {
    let Some(seen) = peer.request() else { return };
    let seed = seen.path().trim_start_matches("/?").parse().expect("a seed");
    let script = Script::of(seed);
    for piece in script.bytes.chunks(script.piece_bytes) {
        peer.send(piece);
    }
}

fn server() -> Server {
    static ORIGIN: LazyLock<Origin> = LazyLock::new(|| Origin::start(play));
    let configuration = format!(
        "processes = 1\n[log]\naccess = '{{base}}/access.log'\nformat = 'json'\nflush_ms = 1\n[[site]]\n{{listen}}\n\
         [[site.route]]\npath = '/'\nproxy = {{ to = 'http://{}', keep_connections = false }}\n",
        ORIGIN.address()
    );
    Server::run(Folder::new(), &configuration)
}

/// What h11 says of each script.
fn verdicts_of_h11() -> Vec<Verdict> {
    let mut python = Command::new("/usr/bin/python3");
    python.args(["-c", H11]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = python.spawn().expect("python3");
    let mut input = child.stdin.take().expect("its input");
    let sending = std::thread::spawn(move || {
        for seed in 0..SCRIPTS {
            let hex: String = Script::of(seed).bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(input, "{hex}").expect("h11 reads (scripts/setup-tests)");
        }
    });
    let output = child.wait_with_output().expect("its verdicts");
    sending.join().expect("no panic");
    assert!(output.status.success(), "h11 is missing: scripts/setup-tests");
    let text = String::from_utf8(output.stdout).expect("text");
    let verdict = |line: &str| match line.split(' ').collect::<Vec<_>>()[..] {
        ["whole", status, hex] => Verdict::Whole {
            status: status.parse().expect("a status"),
            body: hex.as_bytes().chunks(2).map(byte).collect(),
        },
        ["cut"] => Verdict::Cut,
        _ => Verdict::Refused,
    };
    let verdicts: Vec<_> = text.lines().map(verdict).collect();
    assert_eq!(verdicts.len(), SCRIPTS as usize);
    verdicts
}

fn byte(hex: &[u8]) -> u8 {
    u8::from_str_radix(std::str::from_utf8(hex).expect("ASCII"), 16).expect("a byte")
}

/// Reads responses, one a line in hexadecimal digits, each the only one on its connection.
const H11: &str = "
import sys, h11
for line in sys.stdin:
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method='GET', target='/', headers=[('Host', 'h11')]))
    client.send(h11.EndOfMessage())
    status, body, verdict, ended = 0, b'', 'cut', False
    try:
        client.receive_data(bytes.fromhex(line))
        while True:
            event = client.next_event()
            if event is h11.NEED_DATA:
                if ended:
                    break
                client.receive_data(b'')
                ended = True
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                verdict = f'whole {status} {body.hex()}'
                break
            elif isinstance(event, h11.InformationalResponse):
                pass
            else:
                break
    except h11.RemoteProtocolError:
        verdict = 'cut' if status else 'refused'
    print(verdict)
";

const LINES: [&str; 8] = [
    "HTTP/1.1 200 OK",
    "HTTP/1.0 200 OK",
    "HTTP/1.1 404",
    "HTTP/1.1 20 OK",
    "HTTP/1.1  200 OK",
    "HTTP/2 200 OK",
    "http/1.1 200 OK",
    "HTTP/1.1 200\tOK",
];

const FIELDS: [&str; 8] = [
    "X-Own: yes\r\n",
    "X-Own : yes\r\n",
    "X-Own: yes\r\n folded\r\n",
    " X-Own: yes\r\n",
    "X-Own\r\n",
    ": yes\r\n",
    "X-Own: y\x00s\r\n",
    "X-Own: yes\nX-Other: no\r\n",
];

/// `{len}` is the length of the content.
const FRAMINGS: [&str; 12] = [
    "Content-Length: {len}\r\n",
    "Transfer-Encoding: chunked\r\n",
    "",
    "Content-Length: {len}\r\nContent-Length: {len}\r\n",
    "Content-Length: {len}, {len}\r\n",
    "Content-Length: +{len}\r\n",
    "Content-Length: 0x6\r\n",
    "Content-Length: 5\r\nContent-Length: {len}\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Transfer-Encoding: chunked, chunked\r\n",
    "Transfer-Encoding: \x0bchunked\r\n",
    "Content-Length: {len}0\r\n",
];

/// A second or two.
const SCRIPTS: u64 = 600;
