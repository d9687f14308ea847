//! A server that does what a script says: right and wrong answers, delays, losses, silence.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What the server does with a request.
pub(crate) enum Answer {
    /// Sends these bytes and waits for the next request.
    Bytes(Vec<u8>),
    /// Sends these bytes and closes.
    Last(Vec<u8>),
    /// Has read the request, and says nothing until the client leaves.
    Silence,
}

/// Where it listens, and how many connections it has accepted.
pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    accepted: Arc<AtomicUsize>,
}

impl Scripted {
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

/// A server that answers by the path, the number of the connection and the number of the request on it.
pub(crate) fn serve(answer: impl Fn(&str, usize, usize) -> Answer + Send + Sync + 'static) -> Scripted {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let accepted = Arc::new(AtomicUsize::new(0));
    let (count, answer) = (Arc::clone(&accepted), Arc::new(answer));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = count.fetch_add(1, Ordering::SeqCst);
            let answer = Arc::clone(&answer);
            thread::spawn(move || talk(stream, &|path, number| answer(path, connection, number)));
        }
    });
    Scripted { address, accepted }
}

/// Talks to one client until it leaves, or an answer is the last.
pub(crate) fn talk(mut stream: TcpStream, answer: &dyn Fn(&str, usize) -> Answer) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    for number in 0.. {
        let Some(Ok(request)) = lines.next() else { return };
        let path = request.split(' ').nth(1).unwrap().to_owned();
        let fields = lines.by_ref().map_while(Result::ok).take_while(|line| !line.is_empty());
        let closes = fields.filter(|line| line.eq_ignore_ascii_case("connection: close")).count() > 0;
        let (bytes, is_last) = match answer(&path, number) {
            Answer::Bytes(bytes) => (bytes, closes),
            Answer::Last(bytes) => (bytes, true),
            Answer::Silence => {
                let _ = stream.read(&mut [0]);
                return;
            }
        };
        if stream.write_all(&bytes).is_err() || is_last {
            return;
        }
    }
}

/// A good answer with this body.
pub(crate) fn ok(body: &str) -> Answer {
    Answer::Bytes(bytes_of(body))
}

/// The bytes of a good answer.
pub(crate) fn bytes_of(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}
