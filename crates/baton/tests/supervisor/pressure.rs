//! The caches follow the pressure on the server's control group.

use std::fs;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::common::leave_out;
use crate::common::server::{Server, wait_until};
use crate::group::{Group, WatchedGroup};
use crate::origin::{Origin, Peer};
use crate::supervised::{ANY_PORT, configure, folder, start, status};

/// Bodies that fill the shared cache, and bytes of each; the same number of files fill their own.
const BODIES: usize = 60;
const BODY_BYTES: usize = 256 << 10;
const FILE_BYTES: usize = 100 << 10;

/// Goal: where memory is short, both caches give some up, and take it again afterwards; nothing that clients get changes. Method: a
/// server with full caches, and a program beside it that reads more than the group may have in its page cache, again and again. The
/// architecture has no tuner that would leave files to the page cache.
#[test]
fn caches_give_memory_up_under_pressure() {
    let folder = folder();
    let (Some(bounded), Some(watched)) =
        (Group::make(96 << 20), WatchedGroup::make(folder.base().join("groups")))
    else {
        return leave_out("no cache is under pressure", "this user may not make the control groups");
    };
    let origin = Origin::start(|peer: &mut Peer| {
        while let Some(seen) = peer.request() {
            let number = seen.path().trim_start_matches("/cached/").parse().expect("a number");
            peer.answer("Cache-Control: max-age=3600\r\n", vec![number; BODY_BYTES]);
        }
    });
    let cached = format!(
        "processes = 1\narchitecture = 'sped'\n[cache]\nmemory_bytes_max = '6400 KiB'\n\
         [shared_cache]\nmemory_bytes_max = '16 MiB'\nmemory_bytes_min = '1 MiB'\n\
         [[site.route]]\npath = '/cached/'\nproxy = 'http://{}'\ncache = true\n",
        origin.address()
    );
    configure(&folder, ANY_PORT, "root", &cached);
    fs::create_dir_all(folder.base().join("root/files")).expect("a folder");
    for number in 0..BODIES {
        fs::write(folder.base().join(format!("root/files/{number}")), vec![number as u8; FILE_BYTES])
            .expect("a file");
    }
    let script = "for group in \"$1\" \"$2\"; do echo $$ > \"$group\"/cgroup.procs || exit; done; shift 2; exec \"$@\"";
    let within = |program: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).args([bounded.folder(), watched.folder()]).arg(program);
        command
    };
    let mut command = within(env!("CARGO_BIN_EXE_baton"));
    command.args(["run", "-c"]).arg(folder.base().join("baton.toml"));
    let server = Server::start(folder, command);
    let get = |number: usize| {
        for (path, bytes) in [("cached", BODY_BYTES), ("files", FILE_BYTES)] {
            let response = server.get(&format!("/{path}/{number}"));
            assert!(response.status == 200 && response.body == vec![number as u8; bytes], "/{path}/{number}");
        }
    };
    (0..BODIES).for_each(get);
    assert_eq!(held(&server), (BODIES * BODY_BYTES) as u64);
    assert_eq!(files(&server)["in_memory"], BODIES, "{}", files(&server));
    assert_eq!(share(&server), 100.0, "{}", told(&server));

    let mut reader = within("sh");
    let big = server.folder().base().join("big");
    let read = "dd if=/dev/zero of=\"$1\" bs=1M count=128; while :; do dd if=\"$1\" of=/dev/null bs=1M; done";
    let reader = reader.args(["-c", read, "sh"]).arg(&big).stderr(Stdio::null());
    let reader = Reader(reader.spawn().expect("a shell"));
    wait_until("the caches give memory up", || share(&server) < 60.0);
    let (responses, files) = (held(&server), files(&server));
    assert!(responses < (BODIES * BODY_BYTES) as u64 * 3 / 4, "{responses} bytes, {}", told(&server));
    let file_bytes = files["memory_bytes"].as_u64().expect("a number");
    assert!(file_bytes < (BODIES * FILE_BYTES) as u64 * 3 / 4, "{files}, {}", told(&server));
    (0..BODIES).for_each(get);
    drop(reader);
    let _ = fs::remove_file(big);

    let least = share(&server);
    wait_until("the caches take memory again", || share(&server) > least + 4.0);
    assert_eq!(bounded.kills(), 0, "{}", server.said());
}

/// A status says why the pressure is not followed, where it is not.
#[test]
fn a_server_without_a_cache_follows_no_pressure() {
    let server = start("[cache]\nmemory_bytes_max = 0");
    assert_eq!(told(&server), "not followed: nothing is cached in memory");
}

/// What the status says of the pressure.
fn told(server: &Server) -> String {
    status(server)["memory_pressure"].as_str().unwrap_or_default().to_owned()
}

/// The part that the caches have of what they can give up, in per cent.
fn share(server: &Server) -> f64 {
    let told = told(server);
    let number = told.split_once("have ").and_then(|(_, rest)| rest.split_once(" %"));
    number.unwrap_or_else(|| panic!("{told}")).0.parse().expect("a number")
}

/// Bytes of bodies in the cache.
fn held(server: &Server) -> u64 {
    let bytes = reported(server, "shared_cache")["bytes"].clone();
    bytes.as_u64().unwrap_or_else(|| panic!("{bytes}"))
}

/// What the status says of files.
fn files(server: &Server) -> Value {
    reported(server, "cache")
}

/// A part of the report of the engine, wherever it is.
fn reported(server: &Server, name: &str) -> Value {
    fn found(value: &Value, name: &str) -> Option<Value> {
        match value {
            Value::Object(fields) => {
                fields.get(name).cloned().or_else(|| fields.values().find_map(|value| found(value, name)))
            }
            Value::Array(values) => values.iter().find_map(|value| found(value, name)),
            _ => None,
        }
    }
    let status = status(server);
    let engine = &status["workers"][0]["engine"];
    found(engine, name).unwrap_or_else(|| panic!("{engine}"))
}

/// A shell, and what it has started.
struct Reader(Child);

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
