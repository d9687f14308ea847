//! What a cold file costs the others: nothing, under architectures that do not wait for the disk (AMPED, in the Flash paper).
//!
//! The disk stands still while a cold file is under way. Files in memory are asked for meanwhile, each on a connection of its
//! own. No time is measured: either they are answered before the disk goes on, or they are not.

use crate::common::client::Client;
use crate::common::folder::{Folder, pattern};
use crate::common::server::{Server, wait_until};
use crate::slow_disk::{SlowDisk, waits_for_disk};

/// A file that is kept in memory once it is read, and one that never is.
const COLD: [(&str, usize); 2] = [("small.bin", 100 << 10), ("large.bin", 8 << 20)];
const RESIDENT: &str = "resident.html";

/// How often a file in memory is asked for while the disk stands still.
const ASKED: usize = 10;

macro_rules! others_are_answered {
    ($($module:ident $architecture:literal)+) => {
        $(#[test]
        fn $module() {
            others_are_answered($architecture);
        })+
    };
}

others_are_answered! {
    amped "amped"
    auto "auto"
    mt "mt"
    pipeline "pipeline"
    symped "symped"
    threads "threads"
}

fn others_are_answered(architecture: &str) {
    let Some(site) = Site::start(architecture) else { return };
    for (name, bytes) in COLD {
        let mut cold = site.begin_cold(name);
        for _ in 0..ASKED {
            assert_eq!(site.server.get(&format!("/{RESIDENT}")).text(), RESIDENT, "while {name} comes");
        }
        assert!(waits_for_disk(&site.server), "{name} came in between");
        site.disk.release();
        assert!(cold.response().body == pattern(bytes, 1), "{name} comes in the end");
    }
}

/// One loop that reads files itself serves nothing else meanwhile: that the disk of these tests stands still is true.
#[test]
fn sped_keeps_the_others_waiting() {
    let Some(site) = Site::start("sped") else { return };
    let (name, bytes) = COLD[0];
    let mut cold = site.begin_cold(name);
    let mut other = site.server.connect();
    other.send(format!("GET /{RESIDENT} HTTP/1.1\r\nHost: stage\r\n\r\n"));
    for _ in 0..ASKED {
        wait_until("the loop waits for the disk", || waits_for_disk(&site.server));
        assert!(!other.has_input(), "answered while the only loop waits");
    }
    site.disk.release();
    assert!(cold.response().body == pattern(bytes, 1));
    assert_eq!(other.response().text(), RESIDENT);
}

struct Site {
    // In this order they end.
    server: Server,
    disk: SlowDisk,
}

impl Site {
    fn start(architecture: &str) -> Option<Self> {
        let folder = Folder::new();
        let files: Vec<_> = COLD.iter().map(|(name, bytes)| (*name, pattern(*bytes, 1))).collect();
        let disk = SlowDisk::mount(&folder, &[&files[..], &[(RESIDENT, RESIDENT.as_bytes())]].concat())?;
        // Where each process has a loop that waits, it is another one that answers.
        let workers = if architecture == "symped" { "4" } else { "1" };
        let server = Server::serve(folder, &["--architecture", architecture, "--workers", workers]);
        Some(Self { server, disk })
    }

    /// Asks for a cold file. Returns when the server waits for it.
    fn begin_cold(&self, name: &str) -> Client {
        // All processes have the file in memory.
        for _ in 0..ASKED {
            assert_eq!(self.server.get(&format!("/{RESIDENT}")).text(), RESIDENT);
        }
        self.disk.stall(&self.server);
        let mut client = self.server.connect();
        client.send(format!("GET /{name} HTTP/1.1\r\nHost: stage\r\n\r\n"));
        wait_until("it waits for the disk", || waits_for_disk(&self.server));
        client
    }
}
