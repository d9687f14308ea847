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

use super::event::{Asked, Event};
use crate::trust::SIGNATURE_FIELD;
use crate::words::{Signed, WORDS_BYTES_MAX};

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
    let deadline = Instant::now() + PATIENCE;
    client.set_write_timeout(Some(PATIENCE))?;
    let Some((signature, body)) = read(&mut client, deadline)? else {
        return respond(&mut client, "404 Not Found", "", b"Servers that cooperate ask here.\n");
    };
    let (reply, answered) = mpsc::channel();
    let asked = Event::Asked(Asked { body, signature, reply });
    events.send(asked).map_err(io::Error::other)?;
    match answered.recv_timeout(PATIENCE) {
        Ok(Ok(Signed { body, signature })) => {
            let fields = format!("{SIGNATURE_FIELD}: {signature}\r\nContent-Type: application/json\r\n");
            respond(&mut client, "200 OK", &fields, &body)
        }
        Ok(Err(distrust)) => {
            respond(&mut client, "403 Forbidden", "", format!("refused: {}\n", distrust.word()).as_bytes())
        }
        Err(_) => respond(&mut client, "503 Service Unavailable", "", b"Too busy.\n"),
    }
}

/// The signature and body of a question; none if the request is none.
fn read(client: &mut UnixStream, deadline: Instant) -> io::Result<Option<(String, Vec<u8>)>> {
    let limits = HeadLimits::default();
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 * 1024];
    let mut more = |bytes: &mut Vec<u8>, client: &mut UnixStream| {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        client.set_read_timeout(Some(left))?;
        let count = client.read(&mut buffer)?;
        bytes.extend_from_slice(&buffer[..count]);
        if count == 0 { Err(io::Error::from(io::ErrorKind::UnexpectedEof)) } else { Ok(()) }
    };
    let head_len = loop {
        if let Some(end) = memchr::memmem::find(&bytes, b"\r\n\r\n") {
            break end + 4;
        }
        if bytes.len() > HEAD_BYTES_MAX {
            return Ok(None);
        }
        more(&mut bytes, client)?;
    };
    let Ok(head) = RequestHead::parse(&bytes[..head_len], &limits) else { return Ok(None) };
    let signature = head.fields().find(|(name, _)| name.eq_ignore_ascii_case(SIGNATURE_FIELD));
    let signature = signature.map(|(_, value)| String::from_utf8_lossy(value).into_owned());
    let length = match head.framing {
        BodyFraming::Length(length) => {
            usize::try_from(length).ok().filter(|length| *length <= WORDS_BYTES_MAX)
        }
        _ => None,
    };
    let (Some(signature), Some(length), Method::Post) = (signature, length, head.method) else {
        return Ok(None);
    };
    while bytes.len() < head_len + length {
        more(&mut bytes, client)?;
    }
    bytes.truncate(head_len + length);
    Ok(Some((signature, bytes.split_off(head_len))))
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

const HEAD_BYTES_MAX: usize = 64 * 1024;
