//! The servers that take part, and one of them running.

use std::ffi::OsString;
use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, getuid, kill_process};

use super::certificate::Certificate;
use super::machine::Machine;
use super::network::Host;
use super::{loopback, processes};

/// A contending server: program, arguments, and whether it logs.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// As in the tables: `nginx`, `baton auto`, `nginx +log`.
    pub(crate) name: String,
    kind: Kind,
    log: bool,
    groups: Vec<PathBuf>,
    /// Whether it runs on the client's CPUs instead of the server's.
    beside_client: bool,
}

#[derive(Clone, Debug)]
enum Kind {
    Baton { program: PathBuf, architecture: String, workers: Option<usize>, more: Vec<String> },
    Other { server: &'static Other, words: Vec<(&'static str, String)> },
}

/// A server of the distribution. In arguments and configuration `@PORT@`, `@ROOT@`, `@RUN@`, `@USER@`, `@ACCESS_LOG@`,
/// `@WORKERS@` and `@DESCRIPTORS@` are replaced, and the words of its entry. The rest of the words becomes the default:
/// `@AIO@` and `@UPGRADE@` off, `@LISTEN@`, `@TLS@` and `@GZIP@` nothing.
#[derive(Debug)]
struct Other {
    name: &'static str,
    arguments: &'static [&'static str],
    configuration: &'static str,
    logs: bool,
    /// Words that make it speak TLS, in which `@CERTIFICATE@` and `@KEY@` are replaced; none if the lab cannot.
    tls: &'static [(&'static str, &'static str)],
    /// Words that make it speak HTTP/2 in clear, if it does not anyway.
    http2_in_clear: &'static [(&'static str, &'static str)],
}

/// The others that are known, the reference first.
static OTHERS: [Other; 4] = [
    Other {
        name: "nginx",
        arguments: &["-c", "@RUN@/conf", "-p", "@RUN@"],
        configuration: include_str!("../../conf/nginx.conf"),
        logs: true,
        tls: &[("@LISTEN@", " ssl http2"), ("@TLS@", include_str!("../../conf/nginx-tls.conf"))],
        http2_in_clear: &[("@LISTEN@", " http2")],
    },
    Other {
        name: "lighttpd",
        arguments: &["-D", "-f", "@RUN@/conf"],
        configuration: include_str!("../../conf/lighttpd.conf"),
        logs: false,
        tls: &[("@TLS@", include_str!("../../conf/lighttpd-tls.conf"))],
        http2_in_clear: &[],
    },
    Other {
        name: "h2o",
        arguments: &["-m", "worker", "-c", "@RUN@/conf"],
        configuration: include_str!("../../conf/h2o.conf"),
        logs: false,
        tls: &[("@TLS@", include_str!("../../conf/h2o-tls.conf"))],
        http2_in_clear: &[("@UPGRADE@", "ON")],
    },
    Other {
        name: "apache2",
        arguments: &["-DFOREGROUND", "-f", "@RUN@/conf"],
        configuration: include_str!("../../conf/apache.conf"),
        logs: false,
        tls: &[],
        http2_in_clear: &[],
    },
];

/// nginx in front of an application. `@SOCKET@` is the application's; `@KEEP@` says whether connections to it are kept.
static NGINX_WITH_APPLICATION: Other = Other {
    name: "nginx",
    arguments: &["-c", "@RUN@/conf", "-p", "@RUN@"],
    configuration: include_str!("../../conf/nginx-applications.conf"),
    logs: true,
    tls: &[],
    http2_in_clear: &[],
};

/// Servers in front of an origin, whose port is `@ORIGIN@`: paths below `/pass` and `/hit` are those of the origin without
/// it. Connections to the origin are kept, and nothing is logged. `@GZIP@` of nginx compresses.
static OTHERS_BEFORE_ORIGIN: [Other; 3] = [
    Other {
        name: "nginx",
        arguments: &["-c", "@RUN@/conf", "-p", "@RUN@"],
        configuration: include_str!("../../conf/nginx-proxy.conf"),
        logs: true,
        tls: &[],
        http2_in_clear: &[],
    },
    Other {
        name: "haproxy",
        arguments: &["-db", "-f", "@RUN@/conf"],
        configuration: include_str!("../../conf/haproxy.conf"),
        logs: false,
        tls: &[],
        http2_in_clear: &[],
    },
    Other {
        name: "varnishd",
        arguments: &[
            "-F",
            "-a",
            "127.0.0.1:@PORT@",
            "-f",
            "@RUN@/conf",
            "-n",
            "@RUN@/work",
            "-s",
            "malloc,256m",
            "-j",
            "none",
            "-p",
            "thread_pools=1",
            "-p",
            "thread_pool_min=100",
            "-p",
            "thread_pool_max=500",
        ],
        configuration: include_str!("../../conf/varnish.vcl"),
        logs: false,
        tls: &[],
        http2_in_clear: &[],
    },
];

/// Servers in front of several nodes, which `@NODES@` lists. Connections to the nodes are kept, and nothing is logged.
static OTHERS_BEFORE_NODES: [Other; 2] = [
    Other {
        name: "haproxy",
        arguments: &["-db", "-f", "@RUN@/conf"],
        configuration: include_str!("../../conf/haproxy-cluster.conf"),
        logs: false,
        tls: &[],
        http2_in_clear: &[],
    },
    Other {
        name: "nginx",
        arguments: &["-c", "@RUN@/conf", "-p", "@RUN@"],
        configuration: include_str!("../../conf/nginx-cluster.conf"),
        logs: true,
        tls: &[],
        http2_in_clear: &[],
    },
];

/// The names of the others that are known, the reference first.
pub(crate) const OTHER_NAMES: [&str; 4] = ["nginx", "lighttpd", "h2o", "apache2"];

impl Entry {
    /// Baton under an architecture.
    pub(crate) fn baton(program: &Path, architecture: &str) -> Self {
        let kind = Kind::Baton {
            program: program.to_owned(),
            architecture: architecture.to_owned(),
            workers: None,
            more: Vec::new(),
        };
        Self {
            name: format!("baton {architecture}"),
            kind,
            log: false,
            groups: Vec::new(),
            beside_client: false,
        }
    }

    /// Another server, if it is known.
    pub(crate) fn other(name: &str) -> Option<Self> {
        let server = OTHERS.iter().find(|other| other.name == name)?;
        let kind = Kind::Other { server, words: Vec::new() };
        Some(Self { name: name.to_owned(), kind, log: false, groups: Vec::new(), beside_client: false })
    }

    /// nginx before the application at this socket: for requests below `/app/` and for `*.php`.
    pub(crate) fn nginx_with_application(socket: &Path, keep_connections: bool) -> Self {
        let keep = if keep_connections { "on" } else { "off" };
        let words = vec![("@SOCKET@", socket.display().to_string()), ("@KEEP@", keep.to_owned())];
        let kind = Kind::Other { server: &NGINX_WITH_APPLICATION, words };
        Self { name: "nginx".to_owned(), kind, log: false, groups: Vec::new(), beside_client: false }
    }

    /// Another server in front of an origin, if it is known.
    pub(crate) fn other_before_origin(name: &str, origin_port: u16) -> Option<Self> {
        let server = OTHERS_BEFORE_ORIGIN.iter().find(|other| other.name == name)?;
        let kind = Kind::Other { server, words: vec![("@ORIGIN@", origin_port.to_string())] };
        Some(Self { name: name.to_owned(), kind, log: false, groups: Vec::new(), beside_client: false })
    }

    /// Another server in front of these nodes, if it is known. It chooses by a consistent hash of the URL.
    pub(crate) fn other_before_nodes(name: &str, nodes: &[SocketAddr]) -> Option<Self> {
        let server = OTHERS_BEFORE_NODES.iter().find(|other| other.name == name)?;
        let line = |(number, node): (usize, &SocketAddr)| match name {
            "haproxy" => format!("    server node{number} {node} pool-max-conn 256\n"),
            _ => format!("        server {node};\n"),
        };
        let nodes = nodes.iter().enumerate().map(line).collect();
        let kind = Kind::Other { server, words: vec![("@NODES@", nodes)] };
        Some(Self { name: name.to_owned(), kind, log: false, groups: Vec::new(), beside_client: false })
    }

    /// nginx in front of an origin, with files of its own, which compresses both at this level.
    pub(crate) fn nginx_with_gzip(origin_port: u16, level: u8) -> Option<Self> {
        let mut nginx =
            Self::other_before_origin("nginx", origin_port)?.named(&format!("nginx, gzip {level}"));
        if let Kind::Other { words, .. } = &mut nginx.kind {
            let gzip = format!("    gzip on;\n    gzip_proxied any;\n    gzip_comp_level {level};");
            words.push(("@GZIP@", gzip));
        }
        Some(nginx)
    }

    /// Whether it keeps what comes from its origin below `/hit`. HAProxy has a cache, but for objects of up to 16 KB.
    pub(crate) fn caches(&self) -> bool {
        self.name != "haproxy"
    }

    /// On the client's CPUs: it takes none of the server's.
    pub(crate) fn beside_client(self) -> Self {
        Self { beside_client: true, ..self }
    }

    /// Under another name in the tables.
    pub(crate) fn named(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// With so many worker processes; otherwise Baton chooses. The others have one for each CPU.
    pub(crate) fn workers(mut self, count: usize) -> Self {
        if let Kind::Baton { workers, .. } = &mut self.kind {
            *workers = Some(count);
        }
        self
    }

    /// With more settings of Baton's, as `section.key=value`.
    pub(crate) fn settings(mut self, more: &[String]) -> Self {
        if let Kind::Baton { more: arguments, .. } = &mut self.kind {
            arguments.extend(more.iter().map(|setting| format!("--set={setting}")));
        }
        self
    }

    /// With an application of Baton's, as `PATH=ADDRESS,KEY=VALUE…`.
    pub(crate) fn application(mut self, mounted: &str) -> Self {
        if let Kind::Baton { more, .. } = &mut self.kind {
            more.push(format!("--fastcgi={mounted}"));
        }
        self
    }

    /// Reads files on separate threads if the server can be configured to: nginx's `aio threads`.
    pub(crate) fn with_file_threads(mut self) -> Self {
        if let Kind::Other { words, .. } = &mut self.kind {
            words.push(("@AIO@", "threads".to_owned()));
            self.name += " aio threads";
        }
        self
    }

    /// Speaking TLS, and HTTP/2 with clients that want it; `None` without a configuration for it.
    pub(crate) fn with_tls(mut self, certificate: &Certificate) -> Option<Self> {
        let (chain, key) = (certificate.chain.display(), certificate.key.display());
        match &mut self.kind {
            Kind::Baton { more, .. } => more.push(format!("--tls={chain},{key}")),
            Kind::Other { server, .. } if server.tls.is_empty() => return None,
            Kind::Other { server, words } => {
                words.extend(server.tls.iter().map(|(word, text)| (*word, (*text).to_owned())));
                words.extend([("@CERTIFICATE@", chain.to_string()), ("@KEY@", key.to_string())]);
            }
        }
        Some(self)
    }

    /// Speaking HTTP/2 in clear with clients that know that it does.
    pub(crate) fn with_http2_in_clear(mut self) -> Self {
        if let Kind::Other { server, words } = &mut self.kind {
            words.extend(server.http2_in_clear.iter().map(|(word, text)| (*word, (*text).to_owned())));
        }
        self
    }

    /// The server with an access log; `None` without a configuration for it.
    pub(crate) fn logging(&self) -> Option<Self> {
        let logs =
            matches!(&self.kind, Kind::Baton { .. } | Kind::Other { server: Other { logs: true, .. }, .. });
        logs.then(|| Self { name: format!("{} +log", self.name), log: true, ..self.clone() })
    }

    /// In these control groups, named by their folders.
    pub(crate) fn in_groups(self, groups: Vec<PathBuf>) -> Self {
        Self { groups, ..self }
    }
}

/// A server that runs. It is stopped when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    child: Child,
    /// Processes of the server before it, which live on.
    outlived: Vec<i32>,
}

impl Running {
    /// Starts a server at a free port of the loopback device, and waits until it listens.
    pub(crate) fn start(entry: &Entry, machine: &Machine, folder: &Path, root: &Path) -> Result<Self> {
        let address = TcpListener::bind(loopback(0))?.local_addr()?;
        Self::start_at(entry, address, None, machine, folder, root)
    }

    /// Starts a server on a host, and waits until it listens there at this address.
    pub(crate) fn start_on(
        host: &Host,
        address: SocketAddr,
        entry: &Entry,
        machine: &Machine,
        folder: &Path,
        root: &Path,
    ) -> Result<Self> {
        Self::start_at(entry, address, Some(host), machine, folder, root)
    }

    fn start_at(
        entry: &Entry,
        address: SocketAddr,
        host: Option<&Host>,
        machine: &Machine,
        folder: &Path,
        root: &Path,
    ) -> Result<Self> {
        let run = folder.join(entry.name.replace(' ', "-"));
        fs::create_dir_all(&run).with_context(|| run.display().to_string())?;
        let (program, arguments) = entry.command(machine, &run, root, address)?;
        let output = File::create(run.join("output")).context("creating its output file")?;
        // The affinity of this process is inherited. The server has a session of its own, like a daemon: schedulers
        // with autogroups share CPUs among sessions first. A server that outlived a killed lab would spoil the next
        // measurement.
        machine.run_on(if entry.beside_client { &machine.client_cpus } else { &machine.server_cpus })?;
        let child = Command::new("sh")
            .args(["-c", JOIN_AND_RUN, "sh", &entry.groups.len().to_string()])
            .args(&entry.groups)
            .args(["setsid", "setpriv", "--pdeathsig", "TERM", "--"])
            .args(host.map(entering).unwrap_or_default())
            .arg(program)
            .args(arguments)
            .env("PATH", search_path())
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn();
        machine.run_on(&machine.client_cpus)?;
        let mut running =
            Self { name: entry.name.clone(), address, child: child.context("sh")?, outlived: Vec::new() };
        running
            .wait_until_it_listens(host)
            .with_context(|| format!("see {}", run.join("output").display()))?;
        machine.favour(&running.processes());
        Ok(running)
    }

    fn wait_until_it_listens(&mut self, host: Option<&Host>) -> Result<()> {
        let limit = Instant::now() + START_MAX;
        let address = self.address;
        let listens = || TcpStream::connect(address).is_ok();
        while !host.map_or_else(listens, |host| host.run(listens)) {
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended: {status}");
            }
            if Instant::now() > limit {
                bail!("it does not listen on {}", self.address);
            }
            sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Stops its clock: no process of it runs until [`resume`](Self::resume).
    pub(crate) fn pause(&self) {
        self.signal_all(Signal::STOP);
    }

    /// Lets it go on.
    pub(crate) fn resume(&self) {
        self.signal_all(Signal::CONT);
    }

    /// Kills its processes, which get no time to end.
    pub(crate) fn kill(&self) {
        self.signal_all(Signal::KILL);
    }

    /// The worker of a server that has one: a child of the first process, with its command line.
    pub(crate) fn worker(&self) -> Option<i32> {
        let command = |pid: i32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let first = command(self.child.id() as i32);
        self.processes().into_iter().skip(1).filter(|pid| command(*pid) == first).max()
    }

    /// Kills that worker.
    pub(crate) fn kill_worker(&self) {
        if let Some(pid) = self.worker().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// Ends its first process, as a service manager does, and puts another server in its place. Processes that outlive theirs, as
    /// a mover does, end with that one.
    pub(crate) fn restart(&mut self, start: impl FnOnce() -> Result<Self>) -> Result<()> {
        let processes = self.processes();
        self.end();
        let mut next = start()?;
        next.outlived = processes;
        next.outlived.retain(|pid| Path::new(&format!("/proc/{pid}")).exists());
        *self = next;
        Ok(())
    }

    /// Asks its first process to end, and waits.
    fn end(&mut self) {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let limit = Instant::now() + STOP_MAX;
        while Instant::now() < limit && matches!(self.child.try_wait(), Ok(None)) {
            sleep(Duration::from_millis(20));
        }
    }

    fn signal_all(&self, signal: Signal) {
        for pid in self.processes().into_iter().filter_map(Pid::from_raw) {
            let _ = kill_process(pid, signal);
        }
    }

    /// The process that it began with.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its processes.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let mut processes = processes::tree(self.child.id() as i32);
        processes.extend(&self.outlived);
        processes
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.resume();
        let processes = self.processes();
        self.end();
        for pid in processes.into_iter().rev().filter_map(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

impl Entry {
    /// Program and arguments; writes the configuration where one is needed.
    fn command(
        &self,
        machine: &Machine,
        run: &Path,
        root: &Path,
        address: SocketAddr,
    ) -> Result<(PathBuf, Vec<String>)> {
        let log_file = run.join("access.log");
        match &self.kind {
            Kind::Baton { program, architecture, workers, more } => {
                let mut arguments = vec!["serve".to_owned(), root.display().to_string()];
                arguments.extend(["--listen".to_owned(), address.to_string()]);
                arguments.extend(["--architecture".to_owned(), architecture.clone()]);
                arguments.extend(["--control".to_owned(), run.join("control").display().to_string()]);
                if let Some(count) = workers {
                    arguments.push(format!("--workers={count}"));
                }
                arguments.extend_from_slice(more);
                if self.log {
                    arguments.push(format!("--access-log={}", log_file.display()));
                }
                let program = program.canonicalize().with_context(|| program.display().to_string())?;
                Ok((program, arguments))
            }
            Kind::Other { server: other, words } => {
                let program = find_program(other.name).context("it is not installed")?;
                let access_log = match self.log {
                    true => format!("{} combined buffer=64k flush=1s", log_file.display()),
                    false => "off".to_owned(),
                };
                let replace = |text: &str| {
                    let own =
                        words.iter().fold(text.to_owned(), |text, (word, value)| text.replace(word, value));
                    own.replace("@AIO@", "off")
                        .replace("@UPGRADE@", "OFF")
                        .replace("@LISTEN@", "")
                        .replace("@TLS@", "")
                        .replace("@GZIP@", "")
                        .replace("@ADDRESS@", &address.to_string())
                        .replace("@PORT@", &address.port().to_string())
                        .replace("@ROOT@", &root.display().to_string())
                        .replace("@RUN@", &run.display().to_string())
                        .replace("@USER@", if getuid().is_root() { "root" } else { "nobody" })
                        .replace("@ACCESS_LOG@", &access_log)
                        .replace("@WORKERS@", &machine.server_cpus.len().to_string())
                        .replace("@DESCRIPTORS@", &machine.descriptors.min(DESCRIPTORS_MAX).to_string())
                };
                fs::write(run.join("conf"), replace(other.configuration))?;
                Ok((program, other.arguments.iter().map(|argument| replace(argument)).collect()))
            }
        }
    }
}

/// The words before a command that make it run on a host.
fn entering(host: &Host) -> Vec<OsString> {
    let command = host.command("--");
    let mut words = vec![command.get_program().to_owned()];
    words.extend(command.get_args().map(OsString::from));
    // The place of the program.
    words.pop();
    words
}

/// Where programs are looked for: servers live in folders that are not in every user's path.
pub(crate) fn search_path() -> String {
    format!("{}:/usr/local/sbin:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

fn find_program(name: &str) -> Option<PathBuf> {
    search_path().split(':').map(|folder| Path::new(folder).join(name)).find(|path| path.is_file())
}

/// Shell: enters so many control groups, then becomes the command, which is in them from its first page on.
const JOIN_AND_RUN: &str = r#"n=$1; shift
while [ "$n" -gt 0 ]; do echo $$ >"$1/cgroup.procs" || exit 1; shift; n=$((n - 1)); done
exec "$@""#;

const START_MAX: Duration = Duration::from_secs(30);
const STOP_MAX: Duration = Duration::from_secs(3);
/// Some servers allocate a table for every descriptor that they might get.
const DESCRIPTORS_MAX: u64 = 19_900;
