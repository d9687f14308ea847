//! A host with an agent, and the test as its server.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use baton_cluster::local::{AgentSettings, FromMaster, FromWorker, Node, ToMaster, VERSION};
use baton_lab::network::Host;
use baton_passport::{MESSAGE_BYTES_MAX, Passport};
use baton_supervise::messages;
use baton_sys::passing;
use baton_tls::{MemberAuthority, PemFile};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, Signal, kill_process};

/// Names the socket of an agent to its process.
pub(crate) const SOCKET_VARIABLE: &str = "BATON_TEST_MOVER_SOCKET";

/// Enough for anything that happens, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(30);

/// An agent and its server.
pub(crate) struct AgentHost {
    process: Child,
    master: OwnedFd,
    requests: Option<OwnedFd>,
    arrivals: Option<OwnedFd>,
    path: PathBuf,
    settings: AgentSettings,
}

/// Makes the keys of members with these names.
pub(crate) fn key_files<const N: usize>(folder: &Path, names: [&str; N]) -> [PathBuf; N] {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let now = SystemTime::now();
    let pem = MemberAuthority::make(now).unwrap();
    let authority = MemberAuthority::load(&PemFile::new("authority.pem", pem.as_bytes().to_vec())).unwrap();
    names.map(|name| {
        let path = folder.join(format!("{name}.pem"));
        let mut file = std::fs::File::options().write(true).create_new(true).mode(0o600).open(&path).unwrap();
        file.write_all(authority.sign(name, now).unwrap().as_bytes()).unwrap();
        path
    })
}

impl AgentHost {
    pub(crate) fn node(host: &Host, socket: &Path, key: &Path) -> Self {
        let listen = Some((host.v4(), 7946).into());
        Self::start(host, socket, AgentSettings { listen, key: key.into(), ..AgentSettings::default() })
    }

    pub(crate) fn front_end(host: &Host, socket: &Path, key: &Path, nodes: &[(&str, Ipv4Addr)]) -> Self {
        let node = |(name, address): &(&str, Ipv4Addr)| Node {
            name: (*name).to_owned(),
            agent: (*address, 7946).into(),
            next_hop: (*address).into(),
        };
        let nodes = nodes.iter().map(node).collect();
        Self::start(host, socket, AgentSettings { nodes, key: key.into(), ..AgentSettings::default() })
    }

    fn start(host: &Host, path: &Path, settings: AgentSettings) -> Self {
        let own = std::env::current_exe().unwrap();
        let process = host
            .command(own.to_str().unwrap())
            .args(["--exact", "the_agent_process", "--nocapture", "--test-threads=1"])
            .env(SOCKET_VARIABLE, path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let (master, requests, arrivals) = hello(path, &settings);
        let (requests, arrivals) = (Some(requests), Some(arrivals));
        let started = Self { process, master, requests, arrivals, path: path.into(), settings };
        started.wait_for(|message| match message {
            ToMaster::Status(_) => Some(()),
            ToMaster::Refused { trouble } => panic!("{trouble}"),
            _ => None,
        });
        started
    }

    /// The server's settings change: members are none any more.
    pub(crate) fn revoke(&mut self, names: &[&str]) {
        self.settings.revoked = names.iter().map(|name| (*name).to_owned()).collect();
        let (master, requests, arrivals) = hello(&self.path, &self.settings);
        self.master = master;
        (self.requests, self.arrivals) = (Some(requests), Some(arrivals));
    }

    /// Waits for something that the agent tells the master.
    pub(crate) fn wait_for<T>(&self, mut is_it: impl FnMut(ToMaster) -> Option<T>) -> T {
        let mut buffer = vec![0; messages::MESSAGE_BYTES_MAX];
        let mut heard = Vec::new();
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            wait(&self.master);
            let (message, _) =
                messages::receive::<ToMaster>(&self.master, &mut buffer).unwrap().expect("the agent lives");
            heard.push(format!("{message:?}"));
            if let Some(it) = is_it(message) {
                return it;
            }
        }
        panic!("the agent has only said: {heard:#?}");
    }

    /// Says something as a worker.
    pub(crate) fn send(&self, message: &FromWorker, socket: Option<OwnedFd>) {
        let sockets: Vec<_> = socket.iter().map(AsFd::as_fd).collect();
        passing::send(self.requests.as_ref().unwrap(), &message.to_message().unwrap(), &sockets).unwrap();
    }

    /// The next client that the agent gives to the workers.
    pub(crate) fn arrival(&self) -> (TcpStream, Passport) {
        let arrivals = self.arrivals.as_ref().unwrap();
        wait(arrivals);
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        let (len, sockets) = passing::receive(arrivals, &mut buffer).unwrap();
        let stream = TcpStream::from(sockets.into_iter().next().expect("a client's socket"));
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        (stream, Passport::from_message(&buffer[..len]).unwrap())
    }

    /// Counts the agent's calls from now on.
    pub(crate) fn trace(&self) -> Trace {
        let file = self.path.with_extension("trace");
        let mut strace = Command::new("strace")
            .args(["-f", "-o"])
            .arg(&file)
            .args(["-p", &self.process.id().to_string()])
            .stderr(Stdio::piped())
            .spawn()
            .expect("strace (scripts/setup-tests installs it)");
        let mut said = String::new();
        BufReader::new(strace.stderr.take().unwrap()).read_line(&mut said).unwrap();
        assert!(said.contains("attached"), "{said}");
        Trace { strace, file }
    }

    /// The workers end; the master does not.
    pub(crate) fn end_workers(&mut self) {
        (self.requests, self.arrivals) = (None, None);
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// An agent whose calls are counted.
pub(crate) struct Trace {
    strace: Child,
    file: PathBuf,
}

impl Trace {
    /// How often each call was made.
    pub(crate) fn counts(mut self) -> BTreeMap<String, usize> {
        // It writes what it has seen, and lets the process go.
        let pid = Pid::from_raw(self.strace.id() as i32).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        self.strace.wait().unwrap();
        let mut counts = BTreeMap::new();
        for line in std::fs::read_to_string(&self.file).unwrap().lines() {
            let call = line.split_whitespace().nth(1).and_then(|rest| rest.split_once('('));
            if let Some((name, _)) = call {
                *counts.entry(name.to_owned()).or_default() += 1;
            }
        }
        counts
    }
}

impl Drop for AgentHost {
    fn drop(&mut self) {
        // It may have been killed before.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Connects to an agent as its master. Returns that connection, and the workers' two.
fn hello(path: &Path, settings: &AgentSettings) -> (OwnedFd, OwnedFd, OwnedFd) {
    let master = connect(path);
    let (requests, its_requests) = passing::message_pair().unwrap();
    let (arrivals, its_arrivals) = passing::message_pair().unwrap();
    let hello = FromMaster::Hello { version: VERSION, settings: settings.clone() };
    messages::send(&master, &hello, &[its_requests.as_fd(), its_arrivals.as_fd()]).unwrap();
    (master, requests, arrivals)
}

/// Connects to an agent that is about to listen.
fn connect(path: &Path) -> OwnedFd {
    let address = SocketAddrUnix::new(path).unwrap();
    let until = Instant::now() + PATIENCE;
    loop {
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .unwrap();
        match rustix::net::connect(&socket, &address) {
            Ok(()) => return socket,
            Err(error) => assert!(Instant::now() < until, "{}: {error}", path.display()),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn wait(socket: &OwnedFd) {
    let limit = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
    let mut fds = [PollFd::new(socket, PollFlags::IN)];
    assert_eq!(rustix::event::poll(&mut fds, Some(&limit)).unwrap(), 1, "nothing has come");
}
