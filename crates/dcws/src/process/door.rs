//! The Unix socket on which workers pass on what peers ask: HTTP/1.1, one request per connection.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use baton_http::{BodyFraming, HeadLimits, Method, RequestHead};

use super::event::{Event, PeerQuestion};
use crate::Origin;
use crate::trust::SIGNATURE_FIELD;
use crate::words::{Distrust, Envelope, SignedMessage};

/// The open socket.
pub(super) struct Door {
    path: PathBuf,
}

impl Door {
    /// Listens, in a thread that lives as long as the process.
    pub(super) fn open(path: &Path, events: Sender<Event>) -> io::Result<Self> {
        // Of a process before this one, which has ended.
        if let Err(error) = fs::remove_file(path)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        let listener = UnixListener::bind(path)?;
        std::thread::Builder::new().name("door".into()).spawn(move || {
            let open = Arc::new(AtomicUsize::new(0));
            for client in listener.incoming().flatten() {
                if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
                    open.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let (events, counted) = (events.clone(), Arc::clone(&open));
                let serve = move || {
                    // The worker may have gone.
                    let _ = serve(client, &events);
                    counted.fetch_sub(1, Ordering::Relaxed);
                };
                if std::thread::Builder::new().name("question".into()).spawn(serve).is_err() {
                    open.fetch_sub(1, Ordering::Relaxed);
                }
            }
        })?;
        Ok(Self { path: path.to_owned() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

fn serve(mut client: UnixStream, events: &Sender<Event>) -> io::Result<()> {
    let mut input = Input { deadline: Instant::now() + PATIENCE, bytes: Vec::new() };
    client.set_write_timeout(Some(PATIENCE))?;
    let Some(Head { field, to, body_len }) = input.head(&mut client)? else {
        return respond(&mut client, "404 Not Found", "", b"Servers that cooperate ask here.\n");
    };
    let (reply, admitted) = mpsc::channel();
    events.send(Event::Announced(field, reply)).map_err(io::Error::other)?;
    // A stranger's body is not read.
    let admitted = match admitted.recv_timeout(PATIENCE) {
        Ok(Ok(admitted)) if admitted.body_len() == body_len => admitted,
        Ok(Ok(_)) => return refuse(&mut client, Distrust::Unreadable),
        Ok(Err(distrust)) => return refuse(&mut client, distrust),
        Err(_) => return respond(&mut client, BUSY, "", b"Too busy.\n"),
    };
    let body = input.body(&mut client, body_len)?;
    let (reply, answered) = mpsc::channel();
    events.send(Event::Asked(PeerQuestion { site: to, admitted, body, reply })).map_err(io::Error::other)?;
    match answered.recv_timeout(PATIENCE) {
        Ok(Ok(SignedMessage { body, signature })) => {
            let fields = format!("{SIGNATURE_FIELD}: {signature}\r\nContent-Type: application/json\r\n");
            respond(&mut client, "200 OK", &fields, &body)
        }
        Ok(Err(distrust)) => refuse(&mut client, distrust),
        Err(_) => respond(&mut client, BUSY, "", b"Too busy.\n"),
    }
}

/// The head of a request that claims to be a question.
struct Head {
    /// Its signature field.
    field: String,
    to: Origin,
    body_len: usize,
}

/// What has come of a request.
struct Input {
    deadline: Instant,
    bytes: Vec<u8>,
}

impl Input {
    /// The head, of which the input is rid; none if the request is no question.
    fn head(&mut self, client: &mut UnixStream) -> io::Result<Option<Head>> {
        let end = loop {
            if let Some(end) = memchr::memmem::find(&self.bytes, b"\r\n\r\n") {
                break end + 4;
            }
            if self.bytes.len() > HEAD_BYTES_MAX {
                return Ok(None);
            }
            self.more(client)?;
        };
        let body = self.bytes.split_off(end);
        let text = std::mem::replace(&mut self.bytes, body);
        let Ok(head) = RequestHead::parse(&text, &HeadLimits::default()) else { return Ok(None) };
        let field = head.only_field(SIGNATURE_FIELD);
        let (Some(field), BodyFraming::Length(length), Method::Post) = (field, head.framing, head.method)
        else {
            return Ok(None);
        };
        let body_len = usize::try_from(length).unwrap_or(usize::MAX);
        let to = Envelope::read(field).map(|envelope| envelope.to().clone());
        Ok(to.ok().map(|to| Head { field: field.to_owned(), to, body_len }))
    }

    fn body(mut self, client: &mut UnixStream, len: usize) -> io::Result<Vec<u8>> {
        while self.bytes.len() < len {
            self.more(client)?;
        }
        self.bytes.truncate(len);
        Ok(self.bytes)
    }

    fn more(&mut self, client: &mut UnixStream) -> io::Result<()> {
        let left = self.deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        client.set_read_timeout(Some(left))?;
        let mut buffer = [0; 16 * 1024];
        let count = client.read(&mut buffer)?;
        self.bytes.extend_from_slice(&buffer[..count]);
        if count == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}

fn refuse(client: &mut UnixStream, distrust: Distrust) -> io::Result<()> {
    respond(client, "403 Forbidden", "", format!("refused: {}\n", distrust.word()).as_bytes())
}

fn respond(client: &mut UnixStream, status: &str, fields: &str, body: &[u8]) -> io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{fields}Content-Length: {length}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    );
    client.write_all(&[head.as_bytes(), body].concat())
}

/// Connections at a time: a peer has one, and strangers may have more.
const CONNECTIONS_MAX: usize = 64;

/// How long a request may take to arrive, and its answer to be found.
const PATIENCE: Duration = Duration::from_secs(5);

const BUSY: &str = "503 Service Unavailable";

const HEAD_BYTES_MAX: usize = 64 * 1024;
