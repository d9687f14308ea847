//! What the origin does, by the path that it is asked for.

use std::collections::HashMap;
use std::sync::{Condvar, LazyLock, Mutex};

use crate::common::folder::pattern;
use crate::common::server::PATIENCE;
use crate::origin::{Peer, Seen};

/// Bytes of a body that is longer than what any buffer on the way holds.
pub(crate) const LONG_BYTES: usize = 6 << 20;

/// What tests have allowed to go on, by the query of the request.
static ALLOWED: LazyLock<(Mutex<HashMap<String, usize>>, Condvar)> = LazyLock::new(Default::default);

/// Lets an origin that waits in the request with this path go on, once.
pub(crate) fn allow(path: &str) {
    let query = path.split_once('?').map_or("", |(_, query)| query);
    *ALLOWED.0.lock().expect("no panic").entry(query.to_owned()).or_default() += 1;
    ALLOWED.1.notify_all();
}

fn wait_until_allowed(seen: &Seen) {
    let query = seen.path().split_once('?').map_or("", |(_, query)| query).to_owned();
    let allowed = ALLOWED.0.lock().expect("no panic");
    let is_waiting =
        |allowed: &mut HashMap<String, usize>| allowed.get(&query).is_none_or(|times| *times == 0);
    let (mut allowed, _) = ALLOWED.1.wait_timeout_while(allowed, PATIENCE, is_waiting).expect("no panic");
    if let Some(times) = allowed.get_mut(&query) {
        *times = times.saturating_sub(1);
    }
}

/// Serves a connection.
pub(crate) fn serve(peer: &mut Peer) {
    while let Some(mut seen) = peer.head() {
        let path = seen.path().to_owned();
        let manner = path.split('?').next().unwrap_or_default().trim_start_matches('/').to_owned();
        let reads_first = !matches!(&*manner, "early" | "echo" | "continue" | "refuse" | "upgrade");
        if reads_first && !peer.body(&mut seen) {
            return;
        }
        peer.note(&seen);
        if !act(peer, &manner, &mut seen) {
            return;
        }
    }
}

/// Answers one request. `false`: the connection ends.
fn act(peer: &mut Peer, manner: &str, seen: &mut Seen) -> bool {
    match manner {
        "chunked" => {
            peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n");
            peer.send("4\r\nabcd\r\n3;x=y\r\nefg\r\n0\r\nX-Sum: 7\r\nContent-Length: 9\r\n\r\n");
        }
        "until-close" => {
            peer.send("HTTP/1.1 200 OK\r\nX-Until: close\r\n\r\nall of it");
            return false;
        }
        "http10" => {
            peer.send("HTTP/1.0 200 Fine\r\nContent-Type: text/plain\r\n\r\nold but good");
            return false;
        }
        "no-content" => peer.send("HTTP/1.1 204 No Content\r\nX-Empty: yes\r\n\r\n"),
        "not-modified" => {
            peer.send("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 100\r\n\r\n");
        }
        "head" => peer.send("HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n"),
        "long" => peer.answer("", pattern(LONG_BYTES, 3)),
        "fields" => peer.answer(
            "Connection: X-Gone\r\nX-Gone: 1\r\nKeep-Alive: timeout=9\r\nX-Hidden: 1\r\nX-Kept: 2\r\nServer: own\r\n",
            "",
        ),
        "moved" => {
            let host = seen.field("host").unwrap_or_default().to_owned();
            peer.send(format!(
                "HTTP/1.1 302 Found\r\nLocation: /next?a\r\nX-Host: {host}\r\nSet-Cookie: a=b; Path=/\r\n\
                 Content-Length: 0\r\n\r\n"
            ));
        }
        "knows" => {
            let prefix = "/o";
            peer.send(format!(
                "HTTP/1.1 302 Found\r\nLocation: {prefix}/next?a\r\nContent-Location: {prefix}\r\n\
                 Refresh: 1; url={prefix}/next\r\nSet-Cookie: a=b; Path={prefix}/\r\nContent-Length: 0\r\n\r\n"
            ));
        }
        "hints" => {
            peer.send("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n");
            wait_until_allowed(seen);
            peer.answer("", "behind hints");
        }
        "many-hints" => {
            for _ in 0..101 {
                peer.send("HTTP/1.1 103 Early Hints\r\n\r\n");
            }
            peer.answer("", "");
        }
        "events" => {
            peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
            for number in 0..3 {
                peer.send(format!("8\r\ndata: {number}\n\r\n"));
                wait_until_allowed(seen);
            }
            peer.send("0\r\n\r\n");
        }
        "echo" => return echo(peer, seen),
        "early" => {
            peer.answer("Connection: close\r\n", "enough");
            // The proxy stops sending.
            peer.wait_for_end();
            return false;
        }
        "continue" => {
            peer.send("HTTP/1.1 100 Continue\r\n\r\n");
            if !peer.body(seen) {
                return false;
            }
            let body = seen.body.clone();
            peer.answer("", body);
        }
        "refuse" => {
            peer.send("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n");
            peer.wait_for_end();
            return false;
        }
        "upgrade" => {
            upgrade(peer, seen);
            return false;
        }
        "gone" => return false,
        "reset" => {
            peer.reset();
            return false;
        }
        "silent" => {
            peer.wait_for_end();
            return false;
        }
        "stalls" => {
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome");
            peer.wait_for_end();
            return false;
        }
        "short" => {
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome");
            wait_until_allowed(seen);
            return false;
        }
        "short-chunks" => {
            peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n");
            wait_until_allowed(seen);
            return false;
        }
        "reset-in-body" => {
            peer.send("HTTP/1.1 200 OK\r\n\r\nsome");
            wait_until_allowed(seen);
            peer.reset();
            return false;
        }
        "stray" => {
            let stray = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen";
            peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmine{stray}"));
        }
        "kept-once" => {
            peer.answer("", "kept");
            // The next request on this connection meets its end.
            if let Some(seen) = peer.request() {
                drop(seen);
            }
            return false;
        }
        "keep-alive" => peer.answer("Keep-Alive: timeout=1\r\n", ""),
        "closes-late" => {
            peer.answer("", "then closed");
            return false;
        }
        _ => {
            let body = format!("{} {} {}", seen.line(), peer.number(), seen.body.len());
            peer.answer("X-Own: yes\r\n", body);
        }
    }
    true
}

/// Sends each piece of the body back when it comes. Notes a body that is cut.
fn echo(peer: &mut Peer, seen: &Seen) -> bool {
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    let left = seen.field("content-length").map(|length| length.parse::<usize>().expect("a length"));
    let mut echoed = 0;
    loop {
        let piece = match left {
            Some(left) if left == echoed => Some(Vec::new()),
            Some(_) => Some(peer.piece()).filter(|piece| !piece.is_empty()),
            None => peer.chunk(),
        };
        let Some(piece) = piece else {
            peer.note(&Seen { head: format!("CUT {}", seen.head), ..seen.clone() });
            return false;
        };
        if piece.is_empty() {
            break;
        }
        echoed += piece.len();
        peer.send([format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"].concat());
    }
    peer.send("0\r\n\r\n");
    true
}

/// Switches to a protocol that sends everything back in capitals, and says goodbye when the other side has.
fn upgrade(peer: &mut Peer, seen: &Seen) {
    let protocol = seen.field("upgrade").unwrap_or_default();
    peer.send(format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\nX-Accepted: yes\r\n\r\nhello,"
    ));
    loop {
        let piece = peer.piece();
        match &piece[..] {
            b"" => break,
            // The origin's half ends first.
            b"leave" => peer.end_output(),
            _ => peer.send(piece.to_ascii_uppercase()),
        }
    }
    peer.send("bye");
}
