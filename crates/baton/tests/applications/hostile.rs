//! A hostile application and six victims: clients of other routes of the same worker, which must get correct answers
//! throughout. The application tries all its attacks by each transport.

use std::fs::{File, set_permissions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use baton_fcgi::application::{push_answered, push_end, push_slices, push_stdout};
use baton_fcgi::response::ProtocolStatus;
use baton_fcgi::{AnswerOutcome, Answered, RegionSlice};
use rustix::fs::OFlags;
use rustix::net::Shutdown;

use crate::common::agent::{Agent, Body};
use crate::common::folder::{Folder, pattern};
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::program;

/// How the application treats its requests and descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Has the client's socket wait, before and after it has answered.
    SetsBlocking,
    /// Has the client's socket linger when it is closed.
    Lingers,
    WritesRubbishBefore,
    WritesRubbishAfter,
    ShutsDown,
    NeverAnswers,
    AnswersTwice,
    /// Leaves copies with itself and with a child.
    KeepsCopies,
    Floods,
    /// Dissolves the client's connection, and says that it has answered.
    Reconnects,
    /// Begins and closes.
    BreaksOff,
    /// Announces slices outside the region.
    Lies,
}

const MODES: [Mode; 12] = [
    Mode::SetsBlocking,
    Mode::Lingers,
    Mode::WritesRubbishBefore,
    Mode::WritesRubbishAfter,
    Mode::ShutsDown,
    Mode::NeverAnswers,
    Mode::AnswersTwice,
    Mode::KeepsCopies,
    Mode::Floods,
    Mode::Reconnects,
    Mode::BreaksOff,
    Mode::Lies,
];

/// Clients that request the application in each mode, then a large file, and read nothing.
const ACCOMPLICES: usize = 3;

/// Rounds of the victims in each mode.
const ROUNDS: usize = 2;

const LARGE_BYTES: u64 = 32 << 20;
const FILE_BYTES: usize = 300_000;
const RUBBISH: &[u8] = b"\x01\x02rubbish\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nrubbish";

const SITE: &str = r#"
architecture = "{architecture}"
processes = 1
[timeouts]
send_ms = 2000
[[site]]
{listen}
root = "{root}"
[[site.route]]
path = "/hostile"
[site.route.fastcgi]
to = "unix:{base}/hostile.sock"
transport = "{transport}"
keep_connections = false
connections_max = 100
timeout_ms = 2000
response_file_bytes_max = "1 MiB"
"#;

const HONEST: &str = r#"
[[site.route]]
path = "/{transport}"
fastcgi = { to = "unix:{base}/{transport}.sock", transport = "{transport}" }
"#;

/// The application.
#[derive(Default)]
struct Hostile {
    /// Requests that it has got.
    begun: AtomicUsize,
    copies: Mutex<Vec<OwnedFd>>,
    children: Mutex<Vec<Child>>,
}

/// Ends the application's children with the test.
struct Children(Arc<Hostile>);

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut *self.0.children.lock().expect("children") {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Hostile {
    /// Serves a connection: reads its beginning and the descriptor.
    fn serve(&self, mut connection: UnixStream) {
        let mut request = vec![0; 65_536];
        let Ok((count, mut descriptors)) = baton_sys::passing::receive(&connection, &mut request) else {
            return;
        };
        let text = String::from_utf8_lossy(&request[..count]).into_owned();
        let Some(mode) = MODES.into_iter().find(|mode| text.contains(&format!("/hostile/{mode:?}"))) else {
            return;
        };
        let descriptor = descriptors.pop();
        self.begun.fetch_add(1, SeqCst);
        // Shared memory is no socket.
        let client = descriptor.as_ref().filter(|one| rustix::net::getsockname(one).is_ok());
        // Nothing that fails here keeps it from going on.
        let _ = self.act(mode, &mut connection, client);
        if mode == Mode::NeverAnswers {
            let _ = connection.read_to_end(&mut Vec::new());
        }
        if mode == Mode::KeepsCopies {
            self.copies.lock().expect("copies").extend(descriptor);
        }
    }

    fn act(&self, mode: Mode, connection: &mut UnixStream, client: Option<&OwnedFd>) -> std::io::Result<()> {
        match mode {
            Mode::SetsBlocking => {
                if let Some(client) = client {
                    rustix::fs::fcntl_setfl(client, OFlags::empty())?;
                }
                answer(connection, client)?;
                if let Some(client) = client {
                    rustix::fs::fcntl_setfl(client, OFlags::empty())?;
                }
            }
            Mode::Lingers => {
                if let Some(client) = client {
                    rustix::net::sockopt::set_socket_linger(client, Some(Duration::from_secs(60)))?;
                }
                answer(connection, client)?;
            }
            Mode::WritesRubbishBefore => {
                rubbish(connection, client)?;
                answer(connection, client)?;
            }
            Mode::WritesRubbishAfter => {
                answer(connection, client)?;
                rubbish(connection, client)?;
            }
            Mode::ShutsDown => {
                if let Some(client) = client {
                    rustix::net::shutdown(client, Shutdown::Both)?;
                }
                connection.shutdown(std::net::Shutdown::Read)?;
                answer(connection, client)?;
            }
            Mode::NeverAnswers => {}
            Mode::AnswersTwice => {
                answer(connection, client)?;
                answer(connection, client)?;
            }
            Mode::KeepsCopies => {
                if let Some(client) = client {
                    let inherited = Stdio::from(client.try_clone()?);
                    let child = Command::new("sleep").arg("60").stdin(inherited).spawn()?;
                    self.children.lock().expect("children").push(child);
                }
                answer(connection, client)?;
            }
            Mode::Floods => {
                let mut records = Vec::new();
                for _ in 0..16 {
                    push_stdout(&mut records, FIRST_REQUEST, &[b'x'; 60_000]);
                }
                push_head(connection)?;
                // Until the server has enough of it.
                loop {
                    if let Some(client) = client {
                        let _ = rustix::net::send(client, &records, rustix::net::SendFlags::DONTWAIT);
                    }
                    connection.write_all(&records)?;
                }
            }
            Mode::Reconnects => {
                if let Some(client) = client {
                    rustix::net::connect_unspec(client)?;
                }
                tell_answered(connection)?;
            }
            Mode::BreaksOff => push_head(connection)?,
            Mode::Lies => {
                let mut records = Vec::new();
                let slices = [RegionSlice { offset: u32::MAX - 7, len: u32::MAX }];
                push_slices(&mut records, FIRST_REQUEST, &slices);
                connection.write_all(&records)?;
                tell_answered(connection)?;
            }
        }
        Ok(())
    }
}

/// On the client's socket if it has it, otherwise in the ordinary way.
fn answer(connection: &mut UnixStream, client: Option<&OwnedFd>) -> std::io::Result<()> {
    if let Some(client) = client {
        rustix::io::write(client, b"HTTP/1.1 204 No Content\r\n\r\n")?;
        return tell_answered(connection);
    }
    push_head(connection)?;
    let mut records = Vec::new();
    push_end(&mut records, FIRST_REQUEST, 0, ProtocolStatus::RequestComplete);
    connection.write_all(&records)
}

fn push_head(connection: &mut UnixStream) -> std::io::Result<()> {
    let mut records = Vec::new();
    push_stdout(&mut records, FIRST_REQUEST, b"Content-Type: text/plain\r\n\r\nbegun");
    connection.write_all(&records)
}

fn tell_answered(connection: &mut UnixStream) -> std::io::Result<()> {
    let (complete, may_go_on, outcome) = (true, true, AnswerOutcome::Complete);
    let answered = Answered { complete, may_go_on, outcome, status: 204, head_bytes: 27, body_bytes: 0 };
    let mut records = Vec::new();
    push_answered(&mut records, FIRST_REQUEST, &answered);
    push_end(&mut records, FIRST_REQUEST, 0, ProtocolStatus::RequestComplete);
    connection.write_all(&records)
}

fn rubbish(connection: &mut UnixStream, client: Option<&OwnedFd>) -> std::io::Result<()> {
    match client {
        Some(client) => rustix::io::write(client, RUBBISH).map(drop).map_err(Into::into),
        None => connection.write_all(RUBBISH),
    }
}

/// The id of the first request on a connection.
const FIRST_REQUEST: u16 = 1;

/// The victims: each has its own connection, and knows the expected answers.
struct Victims<'a> {
    clients: Vec<Agent>,
    server: &'a Server,
    file: &'static [u8],
    upload: &'static [u8],
}

impl<'a> Victims<'a> {
    fn new(server: &'a Server, file: &'static [u8]) -> Self {
        let clients = (0..6).map(|_| server.agent()).collect();
        Self { clients, server, file, upload: pattern(200_000, 3) }
    }

    /// Each asks once, all of them at a time.
    fn ask(&mut self) {
        let (file, upload, server) = (self.file, self.upload, self.server);
        let bytes = pattern(100_000, 1);
        std::thread::scope(|scope| {
            for (number, client) in self.clients.iter_mut().enumerate() {
                scope.spawn(move || match number {
                    0 => assert_eq!(client.get("/page.txt").text(), "a file"),
                    1 => assert!(server.get("/file.bin").body == file),
                    2 => assert!(client.get("/unix/bytes?100000").body == bytes),
                    3 => assert!(client.get("/shm/bytes?100000").body == bytes),
                    4 => assert!(client.get("/passfd/bytes?100000").body == bytes),
                    _ => assert!(client.send("POST", "/passfd/echo", upload).body == upload),
                });
            }
        });
    }
}

/// Clients that have asked for the hostile application and then for a large file, and read nothing.
fn accomplices(server: &Server, mode: Mode) -> Vec<Agent> {
    let ask = |client: &mut Agent, path: &str| client.begin("GET", "a", path, "", Body::None);
    let mut accomplice = server.agent();
    ask(&mut accomplice, &format!("/hostile/{mode:?}"));
    if !server.protocol().is_http2() {
        // Behind the first request, also if the application has already ended the connection.
        accomplice.send_body(b"GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n");
        return vec![accomplice];
    }
    // This client of HTTP/2 has one request at a time.
    let mut other = server.agent();
    ask(&mut other, "/large.bin");
    vec![accomplice, other]
}

/// Goal: the hostile application harms only its own clients: none of the six victims gets wrong bytes or waits beyond
/// a client's patience, and the worker survives. Method: in each mode, accomplices request the application and then a
/// large file, and read nothing, while the victims send requests round after round.
fn six_victims_are_served(architecture: &str, protocol: Protocol, transport: &str) {
    let folder = Folder::new();
    folder.write("page.txt", "a file");
    let file = pattern(FILE_BYTES, 2);
    std::fs::write(folder.root().join("file.bin"), file).expect("a file");
    File::create(folder.root().join("large.bin"))
        .and_then(|large| large.set_len(LARGE_BYTES))
        .expect("a file");
    let mut site = SITE.replace("{architecture}", architecture).replace("{transport}", transport);
    for honest in ["unix", "shm", "passfd"] {
        program::start(&folder.base().join(format!("{honest}.sock")), folder.base(), 4);
        site.push_str(&HONEST.replace("{transport}", honest));
    }
    let socket = folder.base().join("hostile.sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    set_permissions(&socket, PermissionsExt::from_mode(0o777)).expect("permissions");
    let hostile = Arc::new(Hostile::default());
    let children = Children(Arc::clone(&hostile));
    let application = Arc::clone(&hostile);
    std::thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            let hostile = Arc::clone(&application);
            std::thread::spawn(move || hostile.serve(connection));
        }
    });

    let server = Server::run(folder, &site).over(protocol);
    let workers = server.workers();
    let mut victims = Victims::new(&server, file);
    let mut all_accomplices = Vec::new();
    let mut asked = 0;
    for mode in MODES {
        for _ in 0..ACCOMPLICES {
            all_accomplices.extend(accomplices(&server, mode));
            asked += 1;
        }
        wait_until("the application has them", || hostile.begun.load(SeqCst) >= asked);
        for _ in 0..ROUNDS {
            victims.ask();
        }
    }
    drop(all_accomplices);
    victims.ask();
    drop(children);
    assert_eq!(server.workers(), workers, "the worker has been replaced: {}", server.said());
}

fn by_unix(architecture: &str, protocol: Protocol) {
    six_victims_are_served(architecture, protocol, "unix");
}

fn by_shm(architecture: &str, protocol: Protocol) {
    six_victims_are_served(architecture, protocol, "shm");
}

fn by_passfd(architecture: &str, protocol: Protocol) {
    six_victims_are_served(architecture, protocol, "passfd");
}

by_name! { auto "auto" Http [by_unix by_shm by_passfd] }
by_name! { pipeline "pipeline" Http [by_unix by_shm by_passfd] }
by_name! { threads "threads" Http [by_unix by_shm by_passfd] }
by_name! { https_auto "auto" Https [by_unix by_shm by_passfd] }
by_name! { h2_auto "auto" H2 [by_unix by_shm by_passfd] }
