//! The shared cache follows the pressure on the server's control group.

use std::fs;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::common::leave_out;
use crate::common::server::{Server, wait_until};
use crate::group::{Group, WatchedGroup};
use crate::origin::{Origin, Peer};
use crate::supervised::{ANY_PORT, configure, folder, start, status};

/// Bodies that fill the cache, and bytes of each.
const BODIES: usize = 60;
const BODY_BYTES: usize = 256 << 10;

/// Goal: where memory is short, the cache gives some up, and takes it again afterwards; nothing that clients get changes. Method: a
/// server with a full cache, and a program beside it that reads more than the group may have in its page cache, again and again.
#[test]
fn a_cache_gives_memory_up_under_pressure() {
    let folder = folder();
    let (Some(bounded), Some(watched)) =
        (Group::make(96 << 20), WatchedGroup::make(folder.base().join("groups")))
    else {
        return leave_out("no cache is under pressure", "this user may not make the control groups");
    };
    let origin = Origin::start(|peer: &mut Peer| {
        while let Some(seen) = peer.request() {
            let number = seen.path().trim_start_matches('/').parse().expect("a number");
            peer.answer("Cache-Control: max-age=3600\r\n", vec![number; BODY_BYTES]);
        }
    });
    let cached = format!(
        "processes = 1\n[shared_cache]\nmemory_bytes_max = '16 MiB'\nmemory_bytes_min = '1 MiB'\n\
         [[site.route]]\npath = '/'\nproxy = 'http://{}'\ncache = true\n",
        origin.address()
    );
    configure(&folder, ANY_PORT, "root", &cached);
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
        let response = server.get(&format!("/{number}"));
        assert!(response.status == 200 && response.body == vec![number as u8; BODY_BYTES], "{number}");
    };
    (0..BODIES).for_each(get);
    assert_eq!(held(&server), (BODIES * BODY_BYTES) as u64);
    assert_eq!(share(&server), 100.0, "{}", told(&server));

    let mut reader = within("sh");
    let big = server.folder().base().join("big");
    let read = "dd if=/dev/zero of=\"$1\" bs=1M count=128; while :; do dd if=\"$1\" of=/dev/null bs=1M; done";
    let reader = reader.args(["-c", read, "sh"]).arg(&big).stderr(Stdio::null());
    let reader = Reader(reader.spawn().expect("a shell"));
    wait_until("the cache gives memory up", || share(&server) < 60.0);
    assert!(
        held(&server) < (BODIES * BODY_BYTES) as u64 * 3 / 4,
        "{} bytes, {}",
        held(&server),
        told(&server)
    );
    (0..BODIES).for_each(get);
    drop(reader);
    let _ = fs::remove_file(big);

    let least = share(&server);
    wait_until("the cache takes memory again", || share(&server) > least + 4.0);
    assert_eq!(bounded.kills(), 0, "{}", server.said());
}

/// A status says why the pressure is not followed, where it is not.
#[test]
fn a_server_without_a_cache_follows_no_pressure() {
    assert_eq!(told(&start("")), "not followed: no route is cached");
}

/// What the status says of the pressure.
fn told(server: &Server) -> String {
    status(server)["memory_pressure"].as_str().unwrap_or_default().to_owned()
}

/// The part that the cache has of what it can give up, in per cent.
fn share(server: &Server) -> f64 {
    let told = told(server);
    let number = told.split_once("has ").and_then(|(_, rest)| rest.split_once(" %"));
    number.unwrap_or_else(|| panic!("{told}")).0.parse().expect("a number")
}

/// Bytes of bodies in the cache.
fn held(server: &Server) -> u64 {
    let status = status(server);
    let engine = &status["workers"][0]["engine"];
    found(engine).unwrap_or_else(|| panic!("{engine}"))
}

/// The bytes of the shared cache, somewhere in the report of an engine.
fn found(value: &Value) -> Option<u64> {
    match value {
        Value::Object(fields) => match fields.get("shared_cache").and_then(|cache| cache["bytes"].as_u64()) {
            Some(bytes) => Some(bytes),
            None => fields.values().find_map(found),
        },
        Value::Array(values) => values.iter().find_map(found),
        _ => None,
    }
}

/// A shell, and what it has started.
struct Reader(Child);

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
