//! Many clients read nothing of long responses: temporary files are bounded, for all workers together.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::agent::Body;
use crate::common::client::Client;
use crate::common::folder::{Folder, pattern};
use crate::common::leave_out;
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::program;

const TRANSPORTS: [&str; 3] = ["unix", "shm", "passfd"];
const BYTES_MAX: u64 = 3 << 20;
const RESPONSE_BYTES: usize = 4_000_000;

/// Two workers, and an application by every transport.
fn server(limits: &str) -> Server {
    let folder = Folder::new();
    let mut routes = String::new();
    for transport in TRANSPORTS {
        let socket = folder.base().join(format!("{transport}.sock"));
        program::start(&socket, folder.base(), 8);
        routes.push_str(&format!(
            "[[site.route]]\npath = '/{transport}'\n[site.route.fastcgi]\nto = 'unix:{}'\n\
             transport = '{transport}'\nconnections_max = 4\nqueue_ms = 60000\nresponse_memory_bytes = '64 KiB'\n\
             body_memory_bytes = '64 KiB'\nstreamed_bodies_max = 0\n",
            socket.display()
        ));
    }
    let rest = "[send]\nsocket_buffer_bytes = '64 KiB'\n[admin]\nlisten = ['127.0.0.1:0']\n";
    let site = "[[site]]\n{listen}\n";
    Server::run(folder, &format!("processes = 2\narchitecture = 'symped'\n{limits}{rest}{site}{routes}"))
}

fn metric(server: &Server, name: &str) -> u64 {
    let admin = server.addresses().last().expect("an address for monitoring");
    let page = Client::connect(*admin).get("/metrics");
    let line = page.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.expect("the metric").parse().expect("a number")
}

/// Goal: a client's share holds, nothing is lost, and refused requests get an error. Method: the clients of each transport
/// request ten times as much as all files may take, and read when everything has stalled.
#[test]
fn all_files_together_are_bounded() {
    let server = server(&format!("[limits]\ntemporary_bytes_max = {BYTES_MAX}\n"));
    let protocols = Protocol::ALL.into_iter();
    for (protocol, below) in protocols.flat_map(|protocol| TRANSPORTS.map(|below| (protocol, below))) {
        let refused = metric(&server, "baton_temporary_refused_total");
        let slow: Vec<_> = (0..8)
            .map(|_| {
                let mut client = server.over(protocol).agent();
                client.begin("GET", "stage", &format!("/{below}/stream?{RESPONSE_BYTES}"), "", Body::None);
                client
            })
            .collect();
        wait_until("there is no room", || {
            // A worker counts bytes before it writes them, and subtracts them again beyond the bound.
            assert!(metric(&server, "baton_temporary_bytes") <= BYTES_MAX + (1 << 20), "{below}");
            metric(&server, "baton_temporary_refused_total") > refused
        });
        let expected = pattern(RESPONSE_BYTES, 1);
        std::thread::scope(|scope| {
            for mut client in slow {
                let expected = &expected;
                scope.spawn(move || {
                    let answer = client.response();
                    assert_eq!(answer.status, 200, "{protocol:?}, {below}");
                    assert!(answer.body == *expected, "{protocol:?}, {below}: {} bytes", answer.body.len());
                });
            }
        });
        wait_until("all is given back", || metric(&server, "baton_temporary_bytes") == 0);
    }
    let said = server.said();
    let lines = said.matches("no room: the client has its share of `limits.temporary_bytes_max`");
    assert!((1..=2).contains(&lines.count()), "each worker says so once a minute: {said}");
}

/// A body that must be complete before the application gets it.
#[test]
fn a_body_without_room_is_refused() {
    let server = server("[limits]\ntemporary_bytes_max = 160_000\n");
    let protocols = Protocol::ALL.into_iter();
    for (protocol, (bytes, status)) in
        protocols.flat_map(|protocol| [(90_000, 200), (150_000, 503)].map(|one| (protocol, one)))
    {
        let mut client = server.over(protocol).agent();
        client.begin("POST", "stage", "/unix/echo", "", Body::Open);
        client.send_body(&vec![b'x'; bytes]);
        if status == 200 {
            client.finish_body();
        }
        assert_eq!(client.response().status, status, "{protocol:?}, {bytes} bytes");
    }
    server.wait_until_said("cannot keep the body of a request: the client has its share");
    wait_until("all is given back", || metric(&server, "baton_temporary_bytes") == 0);
    let refused = Protocol::ALL.len() as u64;
    wait_until("each is counted", || metric(&server, "baton_temporary_refused_total") == refused);
}

/// Goal: a full disk, or a folder that cannot be written to, fails no response. Method: a disk that is smaller than a
/// response, and a file system without files that have no names.
#[test]
fn a_folder_without_room_fails_no_response() {
    for is_full in [false, true] {
        let folder = Folder::new();
        let socket = folder.base().join("app.sock");
        program::start(&socket, folder.base(), 1);
        let small = folder.base().join("small");
        let disk = if is_full { SmallDisk::mount(&small) } else { None };
        if is_full && disk.is_none() {
            leave_out("a full disk", "only root can mount one");
            continue;
        }
        let temporary_folder = if is_full { small.as_path() } else { Path::new("/proc") };
        let site = format!(
            "processes = 1\n[send]\nsocket_buffer_bytes = '64 KiB'\n[[site]]\nlisten = ['127.0.0.1:0']\n\
             [[site.route]]\npath = '/unix'\nfastcgi = {{ to = 'unix:{}', transport = 'unix', \
             response_memory_bytes = '64 KiB', temporary_folder = '{}' }}\n",
            socket.display(),
            temporary_folder.display()
        );
        let server = Server::run(folder, &site);
        let mut client = server.connect();
        client.send(format!("GET /unix/stream?{RESPONSE_BYTES} HTTP/1.1\r\nHost: stage\r\n\r\n"));
        server.wait_until_said("applications wait for slow clients, whose responses find no room: a file in");
        assert_eq!(server.said().contains("other files fill the disk"), is_full, "{}", server.said());
        let answer = client.answer_to("GET");
        assert!(answer.status == 200 && answer.body == pattern(RESPONSE_BYTES, 1));
        // Before its folder is removed.
        drop(disk);
    }
}

/// A file system of a megabyte, as long as this lives.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    pub(crate) fn mount(at: &Path) -> Option<Self> {
        fs::create_dir(at).expect("a folder");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1m,mode=1777", "none"]).arg(at).stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then(|| Self(at.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Files that are open keep it until they are closed.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}
