//! A cache with a folder: what was stored is there after a restart, and nothing wrong is ever served.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Signal, kill_process};
use tempfile::TempDir;

use crate::common::client::Client;
use crate::common::folder::{Folder, pattern};
use crate::common::server::{Server, wait_until};
use crate::common::{leave_out, processes};
use crate::site::{ORIGIN, Site, Visitor, status};

mod restarted {
    use super::hits_after_a_restart;

    crate::architectures::under_every_architecture!(by name: hits_after_a_restart);
}

/// A folder for caches that outlives the servers that use it.
pub(crate) struct Kept(TempDir);

impl Kept {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // The workers' user passes through.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("permissions");
        Self(folder)
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.0.path().join("cache")
    }

    /// A server with its cache there, once it knows what it has.
    pub(crate) fn site(&self, architecture: &str, settings: &str) -> Site {
        let site = self.starting(architecture, settings);
        site.wait_until_disk(RECOVERED);
        site
    }

    /// Waits until the journal of the only process has what came for a path. It is written in order.
    fn wait_until_written(&self, path: &str) {
        wait_until(path, || {
            let journal = fs::read(self.folder().join("0/journal")).unwrap_or_default();
            memchr::memmem::find(&journal, path.as_bytes()).is_some()
        });
    }

    fn starting(&self, architecture: &str, settings: &str) -> Site {
        let configuration = SITE
            .replace("{architecture}", architecture)
            .replace("{processes}", &processes(architecture, 1).to_string())
            .replace("{folder}", &self.folder().display().to_string())
            .replace("{settings}", settings)
            .replace("{origin}", &ORIGIN.address().to_string());
        Site { server: Server::run(Folder::new(), &configuration) }
    }
}

impl Site {
    /// Waits until the status of all workers has this about the disk.
    #[track_caller]
    pub(crate) fn wait_until_disk(&self, text: &str) {
        let workers = || self.server.workers().len();
        wait_until(text, || {
            let status = self.server.status_text().replace([' ', '\n'], "");
            workers() > 0 && status.matches(text).count() >= workers()
        });
    }

    /// Ends the server as an operator does.
    pub(crate) fn stop(mut self) {
        self.server.signal(Signal::TERM);
        assert!(self.server.ended().success());
    }

    /// A client for a path that others have, too.
    pub(crate) fn again(&self, path: &str) -> Visitor {
        Visitor { agent: self.server.agent(), path: path.to_owned() }
    }
}

/// What the status says once all that was there has been found.
pub(crate) const RECOVERED: &str = r#""recovered":true"#;

/// What it says once nothing waits for the disk.
pub(crate) const WRITTEN: &str = r#""queue_bytes":0,"recovered":true"#;

const SITE: &str = r#"
architecture = "{architecture}"
processes = {processes}
[log]
access = "{base}/access.log"
format = "json"
flush_ms = 10
[shared_cache]
memory_bytes_max = "16 MiB"
folder = "{folder}"
disk_bytes_max = "256 MiB"
disk_reserve_bytes = 0
{settings}
[admin]
listen = ["127.0.0.1:0"]
[[site]]
name = "front"
{listen}
[[site.route]]
path = "/c"
proxy = "http://{origin}/"
cache = { unkeyed_fields = ["X-Answer", "X-Kind"] }
"#;

/// Goal: a restart costs no request to the origin. Method: bodies of all kinds are stored, the server is stopped, and the
/// next one gets the same requests, to which the origin would answer otherwise.
fn hits_after_a_restart(architecture: &str) {
    // There each client has a process, so a cache, of its own, and after a restart another one.
    if architecture == "mp" {
        return;
    }
    const ANSWERS: [&str; 7] = [
        "200|Cache-Control: max-age=600||short",
        "200|Cache-Control: max-age=600|ETag: \"a\"|Last-Modified: Mon, 02 Nov 2026 10:00:00 GMT||#40000",
        "200|Cache-Control: max-age=600||#3000000",
        "200|Cache-Control: max-age=600||~700000",
        "200|Cache-Control: max-age=600||#0",
        "404|Cache-Control: max-age=600||not there",
        "200|Cache-Control: max-age=600|Vary: X-Kind||#5000",
    ];
    let kept = Kept::new();
    let site = kept.site(architecture, "");
    let mut stored = Vec::new();
    for answer in ANSWERS {
        let mut visitor = site.visitor("restarted");
        let response = visitor.ask("GET", answer, "X-Kind: a\r\n");
        assert_eq!(status(&response), "baton; fwd=uri-miss; stored", "{answer}");
        stored.push((visitor.path, response));
    }
    site.wait_until_disk(WRITTEN);
    site.stop();
    let site = kept.site(architecture, "");
    for (path, before) in &stored {
        let mut visitor = site.again(path);
        let response = visitor.ask("GET", "500", "X-Kind: a\r\n");
        assert_eq!(status(&response), "baton; hit", "{path}");
        assert_eq!(response.status, before.status);
        assert!(response.body == before.body, "{path}: {} bytes", response.body.len());
        assert_eq!(response.field("etag"), before.field("etag"));
        assert_eq!(visitor.seen().len(), 1);
    }
    let mut visitor = site.again(&stored[2].0);
    let part = visitor.ask("GET", "500", "Range: bytes=1999990-2000009\r\n");
    assert!(part.status == 206 && part.body == pattern(3_000_000, 7)[1_999_990..2_000_010]);
    let mut visitor = site.again(&stored[6].0);
    let other = visitor.ask("GET", "200|Cache-Control: max-age=600|Vary: X-Kind||other", "X-Kind: b\r\n");
    assert_eq!((status(&other).as_str(), other.text()), ("baton; fwd=vary-miss; stored", "other"));
}

/// Goal: whenever a worker dies, all that is served afterwards is what the origin has sent for that URL. Method: workers are
/// killed while they store bodies whose lengths tell them apart.
#[test]
fn a_killed_worker_leaves_nothing_wrong() {
    let kept = Kept::new();
    let site = kept.site("sped", "");
    let (mut lengths, mut hits) = (Vec::new(), 0);
    for round in 0..4 {
        for number in 0..30 {
            let length = 1 + (round * 30 + number) * 9_001;
            let mut visitor = site.visitor("killed");
            visitor.get(&format!("200|Cache-Control: max-age=600||#{length}"));
            lengths.push((visitor.path, length));
        }
        // The next one is on its way when the worker dies.
        let mut last = site.visitor("killed");
        last.begin("200|Cache-Control: max-age=600||^2000000", "");
        wait_until("the request at the origin", || !last.seen().is_empty());
        kill_workers(&site);
        for (path, length) in &lengths {
            let response = site.again(path).get(&format!("200|Cache-Control: max-age=600||#{length}"));
            assert!(response.body == pattern(*length, 7), "{path}: {} bytes", response.body.len());
            hits += usize::from(status(&response) == "baton; hit");
        }
    }
    // What is served says nothing about recovery if nothing was found.
    assert!(hits > 4 * 30 / 2, "{hits} hits");
}

/// Kills the workers as if the machine had failed, and waits for the next ones.
fn kill_workers(site: &Site) {
    let killed = site.server.workers();
    for worker in &killed {
        kill_process(*worker, Signal::KILL).expect("a signal");
    }
    wait_until("other workers", || {
        let workers = site.server.workers();
        workers.len() == killed.len() && workers.iter().all(|worker| !killed.contains(worker))
    });
    site.wait_until_disk(RECOVERED);
}

/// What has changed on the disk while no server ran is not served.
#[test]
fn a_damaged_block_is_fetched_anew() {
    let kept = Kept::new();
    let site = kept.site("sped", "");
    let mut visitor = site.visitor("damaged");
    let path = visitor.path.clone();
    visitor.get("200|Cache-Control: max-age=600||#5000");
    site.wait_until_disk(WRITTEN);
    site.stop();
    flip_in(&kept.folder().join("0/slots-8k"));
    let site = kept.site("sped", "");
    let mut visitor = site.again(&path);
    let response = visitor.get("200|Cache-Control: max-age=600||#5000");
    assert!(response.body == pattern(5000, 7), "what the origin has sent");
    assert_eq!(visitor.seen().len(), 2);
    assert_eq!(status(&visitor.get("500")), "baton; hit", "stored anew");
    assert!(metric(&site, "baton_shared_cache_disk_lost_blocks_total") >= 1);
}

/// Goal: what was purged stays so, whatever happens. Method: the worker is killed once the journal has what came after the
/// purge, which a request that changes something has caused.
#[test]
fn what_was_purged_stays_purged() {
    let kept = Kept::new();
    let site = kept.site("sped", "");
    let store = |name: &str| {
        let mut visitor = site.visitor(name);
        visitor.get("200|Cache-Control: max-age=600||before");
        kept.wait_until_written(&visitor.path);
        visitor
    };
    let (mut purged, mut other) = (store("purged"), store("other"));
    assert_eq!(status(&other.get("500")), "baton; hit");
    assert_eq!(purged.ask("POST", "200", "Content-Length: 0\r\n").status, 200);
    store("later");
    for _ in 0..2 {
        kill_workers(&site);
        assert_eq!(status(&site.again(&other.path).get("500")), "baton; hit");
    }
    let response = site.again(&purged.path).get("200|Cache-Control: max-age=600||after");
    assert_eq!((status(&response).as_str(), response.text()), ("baton; fwd=uri-miss; stored", "after"));
}

/// A server whose folder another one has works in memory, and finds what is there when the other one has ended.
#[test]
fn a_folder_that_is_in_use_is_taken_over() {
    let kept = Kept::new();
    let first = kept.site("sped", "");
    let mut visitor = first.visitor("taken-over");
    visitor.get("200|Cache-Control: max-age=600||kept");
    let second = kept.starting("sped", "");
    second.server.wait_until_said("is in use by another process");
    let response = second.again(&visitor.path).get("200|Cache-Control: max-age=600|Vary: X-Kind||own");
    assert_eq!((status(&response).as_str(), response.text()), ("baton; fwd=uri-miss; stored", "own"));
    assert_eq!(second.again(&visitor.path).get("500").text(), "own", "from memory");
    let mut other = first.visitor("taken-over");
    other.get("200|Cache-Control: max-age=600||left");
    first.stop();
    second.wait_until_disk(RECOVERED);
    let response = second.again(&other.path).get("500");
    assert_eq!((status(&response).as_str(), response.text()), ("baton; hit", "left"));
}

/// Each process has its part of the folder. Those of processes that there are no more are removed.
#[test]
fn each_process_has_a_folder() {
    let kept = Kept::new();
    let site = kept.starting("symped", "");
    site.wait_until_disk(RECOVERED);
    fs::create_dir(kept.folder().join("1")).expect("a folder");
    fs::write(kept.folder().join("1/journal"), "what another process has left").expect("a file");
    fs::write(kept.folder().join("own"), "not ours").expect("a file");
    site.stop();
    kept.site("symped", "").stop();
    assert!(kept.folder().join("0/journal").exists() && !kept.folder().join("1").exists());
    assert!(kept.folder().join("own").exists());
}

/// Goal: a full disk costs hits and nothing else. Method: a file system of a few megabytes, and several times as many bytes
/// of bodies.
#[test]
fn a_full_disk_costs_hits_and_nothing_else() {
    let kept = Kept::new();
    fs::create_dir(kept.folder()).expect("a folder");
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(kept.folder());
    let Ok(true) = mount.status().map(|status| status.success()) else {
        return leave_out("a full disk", "only root may mount a small file system");
    };
    let _mounted = Mounted(kept.folder());
    let reserve = kept.folder().join("of-another");
    fs::write(&reserve, [0; 128 << 10]).expect("a file");
    let site = kept.site("sped", "");
    let answer = |length: usize| format!("200|Cache-Control: max-age=600||#{length}");
    let paths: Vec<_> = (0..40)
        .map(|number| {
            let mut visitor = site.visitor("full");
            let length = 300_000 + number;
            assert!(visitor.get(&answer(length)).body == pattern(length, 7), "{number}");
            (visitor.path, length)
        })
        .collect();
    site.server.wait_until_said("No space left on device");
    let hits = |site: &Site| {
        let ask = |(path, length): &(String, usize)| {
            let response = site.again(path).get(&answer(*length));
            assert!(response.body == pattern(*length, 7), "{path}");
            status(&response) == "baton; hit"
        };
        // The last ones first: of the others each would push out the next.
        paths.iter().rev().filter(|path| ask(path)).count()
    };
    assert!(hits(&site) > 0, "memory and disk together have some");
    site.stop();
    // A server that begins tries what the disk can, which takes a little room.
    fs::remove_file(reserve).expect("a file");
    let site = kept.site("sped", "");
    assert!(metric(&site, "baton_shared_cache_recovered_total") > 0);
    assert!(hits(&site) > 0);
}

/// A file system, until it is dropped.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        // The server may still have files open there.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// What cannot work is said before the server runs.
#[test]
fn mistakes_about_the_folder_are_found() {
    let check = |settings: &str| {
        let folder = Folder::new();
        let file = folder.base().join("baton.toml");
        fs::write(&file, format!("[shared_cache]\n{settings}\n[[site]]\nroot = \"/\"\n")).expect("a file");
        let output =
            Command::new(env!("CARGO_BIN_EXE_baton")).arg("check").arg("--config").arg(file).output();
        let output = output.expect("baton check");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let kept = Kept::new();
    let folder = kept.folder().display().to_string();
    assert_eq!(check(&format!("folder = \"{folder}\"")), (true, String::new()));
    assert!(!kept.folder().exists(), "a check leaves nothing");
    let file = kept.0.path().join("file");
    fs::write(&file, "").expect("a file");
    for (settings, expected) in [
        (format!("folder = \"{folder}/missing\""), "remedy: `mkdir -p "),
        (format!("folder = \"{}\"", file.display()), "lies where the folder or one of its files belongs"),
        ("folder = \"/proc/cache\"".into(), "choose a folder on ext4, XFS, Btrfs or tmpfs"),
        (format!("folder = \"{folder}\"\ndisk_bytes_max = \"1 MiB\""), "is too little for "),
    ] {
        let (is_fine, said) = check(&settings);
        assert!(!is_fine && said.contains(expected), "{settings}: {said}");
    }
}

/// Changes a bit in the middle of each page of a file.
fn flip_in(file: &Path) {
    let mut bytes = fs::read(file).expect("a file with slots");
    assert!(!bytes.is_empty());
    bytes.iter_mut().skip(2000).step_by(4096).for_each(|byte| *byte ^= 4);
    fs::write(file, bytes).expect("the same file");
}

fn metric(site: &Site, name: &str) -> u64 {
    let admin = site.server.addresses().last().expect("an address for monitoring");
    let page = Client::connect(*admin).get("/metrics");
    let line = page.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.expect("the metric").parse().expect("a number")
}
