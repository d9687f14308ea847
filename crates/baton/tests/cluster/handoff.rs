//! Real hand-offs between hosts: a front-end, two nodes and clients in network namespaces. curl knows nothing of it.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use baton_lab::network::{ClusterHosts, Host, Network};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::architectures::under_every_architecture;
use crate::common::folder::{Folder, pattern};
use crate::common::processes;
use crate::common::server::{Server, wait_until};
use crate::front::{FILES, logged};

/// Bytes of a longer file.
pub(crate) const LONG_BYTES: usize = 20_000;

/// What a node has not in memory.
const PROGRAM: &str = "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\nfile {file}'\n";

const BATON: &str = env!("CARGO_BIN_EXE_baton");

/// The servers and their hosts, which end after them.
pub(crate) struct Cluster {
    pub(crate) front: Server,
    pub(crate) nodes: Vec<Server>,
    pub(crate) hosts: ClusterHosts,
    key: Folder,
}

/// A front-end's configuration: where it listens, and the key of its cluster.
fn front_configuration(hosts: &ClusterHosts, listen: Ipv4Addr, key: &Path, way: &str) -> String {
    format!(
        "[cluster]\nkey = '{}'\nway = '{way}'\nrelay = {{ eject = {{ failures = 1 }}, connect_ms = 1000 }}\nnodes = [{}]\n\
         [[site]]\nname = 'front'\nlisten = '{listen}:80'\n[[site.route]]\npath = '/'\ncluster = true\n\
         [[site.route]]\nexact = '/here'\nrespond = {{ status = 200, body = 'here' }}\n",
        key.display(),
        listed(hosts)
    )
}

/// The nodes, as all members know them.
fn listed(hosts: &ClusterHosts) -> String {
    let listed = hosts.nodes.iter().enumerate().map(|(number, host)| {
        format!("{{ to = 'http://{0}', name = 'n{number}', mover = '{0}:7946' }}", host.v4())
    });
    listed.collect::<Vec<_>>().join(", ")
}

/// A key for a cluster.
pub(crate) fn make_key(folder: &Folder) -> PathBuf {
    let path = folder.base().join("cluster.pem");
    let made = Command::new(BATON).args(["cluster", "key"]).arg(&path).status().expect("baton cluster");
    assert!(made.success());
    path
}

/// Nodes to which a front-end can hand connections over.
pub(crate) fn reached(front: &Server) -> usize {
    let status: Value = front.status();
    let nodes = status["mover"]["nodes"].as_array().cloned().unwrap_or_default();
    nodes.iter().filter(|node| node["reachable"] == true).count()
}

fn run(host: &Host, folder: Folder, settings: &str, configuration: &str) -> Server {
    let base = folder.base().display().to_string();
    let file = folder.base().join("baton.toml");
    let log = "[log]\naccess = '{base}/access.log'\nformat = 'json'\nflush_ms = 10\n";
    let text = format!("[server]\ncontrol_socket = '{{base}}/control'\n{settings}{log}{configuration}")
        .replace("{base}", &base);
    fs::write(&file, text).expect("a configuration");
    let mut command = host.command(BATON);
    command.arg("run").arg("--config").arg(file);
    Server::start(folder, command)
}

impl Cluster {
    /// `kept`: what nodes do with connections; `way`: how requests get there.
    pub(crate) fn new(kept: &str, way: &str) -> Self {
        Self::under("auto", kept, way)
    }

    /// The same with front-end and nodes under this architecture.
    pub(crate) fn under(architecture: &str, kept: &str, way: &str) -> Self {
        let workers = processes(architecture, 2);
        let server = |workers| format!("architecture = '{architecture}'\nprocesses = {workers}\n");
        let (of_node, of_front) = match architecture {
            "auto" => (String::new(), String::new()),
            // One worker sees all requests.
            _ => (server(workers), server(processes(architecture, 1))),
        };
        let hosts = ClusterHosts::new(2).expect("hosts");
        let key = Folder::new();
        let key_file = make_key(&key);
        let path = key_file.display();
        let listed = match kept {
            "stay" | "return" => String::new(),
            // What fetches has to know the other nodes.
            _ => format!("nodes = [{}]\n", listed(&hosts)),
        };
        let nodes: Vec<_> = hosts.nodes.iter().enumerate().map(|(number, host)| {
            let folder = Folder::new();
            for file in 0..FILES {
                folder.write(&format!("{file}.txt"), format!("file {file}"));
                folder.write(&format!("{file}.bin"), pattern(LONG_BYTES, file as u64));
                let program = format!("cgi/{file}.cgi");
                folder.write(&program, PROGRAM.replace("{file}", &file.to_string()));
                let executable = fs::Permissions::from_mode(0o755);
                fs::set_permissions(folder.path(&program), executable).expect("permissions");
            }
            let root = folder.root().display().to_string();
            let configuration = format!(
                "[cluster]\nkey = '{path}'\nlisten = '{}:7946'\nkept = '{kept}'\n{listed}[[site]]\nlisten = '0.0.0.0:80'\nroot = '{root}'\n\
                 headers = {{ set = {{ X-Node = 'n{number}' }}, add = {{ Cache-Control = 'no-transform' }} }}\n\
                 [[site.route]]\npath = '/cgi'\nroot = '{root}/cgi'\ncgi = {{ scripts = ['.cgi'], transport = 'unix' }}\n",
                host.v4()
            );
            run(host, folder, &of_node, &configuration)
        }).collect();
        let configuration = front_configuration(&hosts, ClusterHosts::VIP_V4, &key_file, way);
        let front = run(&hosts.front, Folder::new(), &of_front, &configuration);
        wait_until("both nodes take connections", || reached(&front) == 2);
        Self { front, nodes, hosts, key }
    }

    /// The file with the key that all members share.
    pub(crate) fn key(&self) -> PathBuf {
        self.key.base().join("cluster.pem")
    }

    /// A host for another front-end.
    pub(crate) fn another_host(&mut self) -> Host {
        self.hosts.network.join("front2").expect("a host")
    }

    /// A front-end at that host's own address. Nodes do not have that, so requests are relayed.
    pub(crate) fn front_at(&self, host: &Host, key: &Path) -> Server {
        run(host, Folder::new(), "", &front_configuration(&self.hosts, host.v4(), key, "auto"))
    }

    /// What curl gets for these files on one connection, with the nodes that answered; each with the connections that it made.
    pub(crate) fn curl(&self, files: &[usize]) -> Vec<(String, String, u32)> {
        self.curl_paths(files.iter().map(|file| format!("{file}.txt")))
    }

    fn curl_paths(&self, paths: impl Iterator<Item = String>) -> Vec<(String, String, u32)> {
        let mut curl = self.hosts.client.command("curl");
        curl.args(["-sS", "--max-time", "30", "-w", " %header{x-node} %{num_connects}\n"]);
        curl.args(paths.map(|path| format!("http://{}/{path}", ClusterHosts::VIP_V4)));
        let output = curl.output().expect("curl");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("text");
        let answer = |line: &str| {
            let mut words = line.rsplitn(3, ' ');
            let connects = words.next()?.parse().ok()?;
            let node = words.next()?.to_owned();
            Some((words.next()?.to_owned(), node, connects))
        };
        text.lines().map(|line| answer(line).unwrap_or_else(|| panic!("{text}"))).collect()
    }
}

pub(crate) fn ways(front: &Server, path: &str) -> Vec<(String, String)> {
    let text = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
    let lines = logged(front, path, 1);
    lines.iter().map(|line| (text(line, "outcome"), text(&line["origin"], "way"))).collect()
}

/// Goal: a connection goes to the node that a value in the body names, and what was read of the body goes with it.
#[test]
fn a_key_in_the_body_travels_with_the_connection() {
    if Network::is_left_out() {
        return;
    }
    let cluster = Cluster::new("stay", "handoff");
    let file = cluster.front.folder().base().join("baton.toml");
    let text = fs::read_to_string(&file).expect("a configuration");
    fs::write(&file, text.replace("cluster = true", "cluster = { key = 'json:/model' }")).expect("a file");
    cluster.front.ctl(&["reload"]);
    let mut used = BTreeSet::new();
    for model in 0..8 {
        let of_model: BTreeSet<_> = (0..2)
            .map(|file| {
                let body = format!("{{\"x\":{file},\"model\":{model}}}");
                let mut curl = cluster.hosts.client.command("curl");
                curl.args([
                    "-sS",
                    "--max-time",
                    "30",
                    "-o",
                    "/dev/null",
                    "-w",
                    "%{http_code} %header{x-node}",
                ]);
                curl.args(["-d", &body, &format!("http://{}/keyed.txt", ClusterHosts::VIP_V4)]);
                let output = curl.output().expect("curl");
                String::from_utf8(output.stdout).expect("text")
            })
            .collect();
        assert_eq!(of_model.len(), 1, "model {model}: {of_model:?}");
        used.extend(of_model);
    }
    assert_eq!(used, BTreeSet::from(["405 n0".to_owned(), "405 n1".to_owned()]), "files take no POST");
    let lines = logged(&cluster.front, "/keyed.txt", 16);
    assert!(lines.iter().all(|line| line["outcome"] == "handed-over"), "{lines:?}");
}

/// Goal: the node answers the client itself, byte for byte, also further requests on the connection; each server logs each of
/// its requests once.
#[test]
fn a_connection_goes_to_the_node_and_stays_there() {
    if Network::is_left_out() {
        return;
    }
    let cluster = Cluster::new("stay", "handoff");
    let answers = cluster.curl(&[1, 2, 3, 4]);
    let node = &answers[0].1;
    for (number, (text, by, connects)) in answers.iter().enumerate() {
        assert_eq!(text, &format!("file {}", number + 1));
        assert_eq!((by, *connects), (node, u32::from(number == 0)), "{answers:?}");
    }
    assert_eq!(ways(&cluster.front, "/1.txt"), [("handed-over".to_owned(), "handoff".to_owned())]);
    let server = &cluster.nodes[usize::from(node == "n1")];
    for file in 1..=4 {
        let lines = logged(server, &format!("/{file}.txt"), 1);
        assert_eq!((lines.len(), &lines[0]["outcome"]), (1, &"complete".into()));
        let client = cluster.hosts.client.v4().to_string();
        assert_eq!(lines[0]["peer"], *client, "the node sees the client itself");
    }
    let said = fs::read_to_string(cluster.front.folder().base().join("access.log")).expect("a log");
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// Goal: with `kept = "return"`, a request that the node has not in memory goes back, and the front-end chooses anew: all on one
/// connection of the client.
#[test]
fn a_connection_goes_from_node_to_node() {
    if Network::is_left_out() {
        return;
    }
    let cluster = Cluster::new("return", "handoff");
    let programs = || (0..12).map(|file| format!("cgi/{file}.cgi"));
    let answers = cluster.curl_paths(programs());
    for (number, (text, _, connects)) in answers.iter().enumerate() {
        assert_eq!((&**text, *connects), (&*format!("file {number}"), u32::from(number == 0)), "{answers:?}");
    }
    let by: BTreeSet<_> = answers.iter().map(|(_, by, _)| by.clone()).collect();
    assert_eq!(by.len(), 2, "both nodes have answered: {answers:?}");
    let nodes =
        |answers: &[(String, String, u32)]| answers.iter().map(|one| one.1.clone()).collect::<Vec<_>>();
    assert_eq!(nodes(&cluster.curl_paths(programs())), nodes(&answers), "each from its own node");
    assert_eq!(ways(&cluster.front, "/cgi/7.cgi"), vec![("handed-over".to_owned(), "handoff".to_owned()); 2]);
    // Files are in the page cache: the node that has the connection answers.
    assert!(cluster.curl(&[1, 2, 3]).iter().enumerate().all(|(number, one)| (one.2 == 1) == (number == 0)));
}

/// Goal: what cannot be handed over is relayed; the death of a node costs no request, and its successor takes connections again.
#[test]
fn what_cannot_move_is_relayed() {
    if Network::is_left_out() {
        return;
    }
    let mut cluster = Cluster::new("stay", "auto");
    let mut curl = cluster.hosts.client.command("curl");
    let url = format!("http://{}/5.txt", ClusterHosts::VIP_V4);
    let output =
        curl.args(["-sS", "--http2-prior-knowledge", "--max-time", "30", &url]).output().expect("curl");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "file 5");
    assert_eq!(ways(&cluster.front, "/5.txt"), [("complete".to_owned(), "relay".to_owned())]);
    for node in &mut cluster.nodes[..1] {
        node.signal(Signal::KILL);
        node.ended();
    }
    let files: Vec<_> = (10..30).collect();
    wait_until("all files come", || {
        files.iter().all(|file| cluster.curl(&[*file])[0].0 == format!("file {file}"))
    });
    assert!(files.iter().all(|file| cluster.curl(&[*file])[0].1 == "n1"));
}

/// Goal: connections that a crashed worker of a node had count for nothing any more. Method: a client keeps one; the front-end
/// says how many are at its nodes.
#[test]
fn connections_end_with_the_worker_that_has_them() {
    if Network::is_left_out() {
        return;
    }
    let cluster = Cluster::new("stay", "handoff");
    let at_nodes = || cluster.front.status()["mover"]["connections_at_nodes"].as_u64();
    let mut client =
        cluster.hosts.client.run(|| TcpStream::connect((ClusterHosts::VIP_V4, 80)).expect("a client"));
    client.write_all(b"GET /1.txt HTTP/1.1\r\nHost: front\r\n\r\n").expect("a server");
    let mut begun = [0; 12];
    client.read_exact(&mut begun).expect("an answer");
    assert_eq!(&begun, b"HTTP/1.1 200");
    wait_until("it is at a node", || at_nodes() == Some(1));
    for node in &cluster.nodes {
        for worker in node.status()["workers"].as_array().expect("workers") {
            let pid = worker["pid"].as_i64().and_then(|pid| Pid::from_raw(pid as i32)).expect("a process");
            kill_process(pid, Signal::KILL).expect("it runs");
        }
    }
    wait_until("it is forgotten", || at_nodes() == Some(0));
}

/// Goal: connections go to nodes and are served there under every architecture, on both sides: several clients, several requests each,
/// and every request is answered and logged once.
fn connections_move(architecture: &str) {
    if Network::is_left_out() {
        return;
    }
    let cluster = Cluster::under(architecture, "stay", "handoff");
    let files: Vec<_> = (0..8).collect();
    for _ in 0..3 {
        let answers = cluster.curl(&files);
        assert!(answers.iter().enumerate().all(|(file, one)| one.0 == format!("file {file}")), "{answers:?}");
        assert_eq!(answers.iter().map(|one| one.2).sum::<u32>(), 1, "one connection: {answers:?}");
        assert!(answers.iter().all(|one| one.1 == answers[0].1), "{answers:?}");
    }
    let handed = ways(&cluster.front, "/0.txt");
    assert!(handed.iter().all(|one| *one == ("handed-over".to_owned(), "handoff".to_owned())), "{handed:?}");
    wait_until("each request has its line at a node", || {
        let lines = |node: &Server| {
            let log = fs::read_to_string(node.folder().base().join("access.log")).unwrap_or_default();
            log.matches(".txt HTTP/1.1").count()
        };
        cluster.nodes.iter().map(lines).sum::<usize>() == 3 * files.len()
    });
}

under_every_architecture!(by name: connections_move);
