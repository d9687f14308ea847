//! What an application can do to the server that runs it, and what the server's processes have kept, however it was started.
//!
//! Goal: the table of `docs/threat-model.md` holds for a whole server. Method: a script plays the intruder, and tries each
//! act on the server that has started it; the test looks at each process from outside. `baton-confine` has the same for each kind
//! of process alone.

#[path = "../common/mod.rs"]
mod common;

mod intruder;
mod starts;

use std::collections::BTreeMap;
use std::fs;

use rustix::process::Pid;
use serde_json::Value;

use self::starts::{STARTS, Start, server};
use crate::common::leave_out;
use crate::common::server::{Server, wait_until};

/// What the script can do, by act, in the application at this path.
fn acts(server: &Server, path: &str) -> BTreeMap<String, bool> {
    let answer = server.get(path);
    let text = answer.text();
    assert_eq!(answer.status, 200, "{text}\n{}", server.said());
    let line = |line: &str| {
        let (act, outcome) = line.split_once(": ")?;
        Some((act.to_owned(), outcome == "done"))
    };
    text.lines().filter_map(line).collect()
}

#[test]
fn an_application_cannot_harm_its_server() {
    for start in STARTS {
        let Some(server) = server(start) else { continue };
        for path in intruder::paths() {
            assert_harmless(start, path, &acts(&server, path));
        }
        if start == Start::Image {
            // It may use the file of the socket: the server has asked who connects.
            server.wait_until_said("was refused: the application ");
        }
        // It has taken nothing amiss: its operator still commands it.
        assert!(server.ctl(&["status"]).contains("worker"), "{start:?}");
    }
}

fn assert_harmless(start: Start, path: &str, done: &BTreeMap<String, bool>) {
    let forbidden = [
        "look into the master",
        "look into a worker",
        "trace the master",
        "signal the master",
        "signal a worker",
        "command the server",
        "command it from an orphan",
        "load a program into the kernel",
        "open a raw socket",
    ];
    for act in forbidden {
        assert_eq!(done.get(act), Some(&false), "{start:?}: {path}: {act}: {done:?}");
    }
    for act in ["run a program", "write a temporary file"] {
        assert_eq!(done.get(act), Some(&true), "{start:?}: {path}: {act}: {done:?}");
    }
    // Files are only as separate as users are.
    let key_is_open = start == Start::Image;
    assert_eq!(done.get("read the key"), Some(&key_is_open), "{start:?}: {path}: {done:?}");
    let logs_are_open = !start.separates_users();
    assert_eq!(done.get("write to the folder of logs"), Some(&logs_are_open), "{start:?}: {path}: {done:?}");
}

#[test]
fn processes_keep_what_they_need() {
    for start in STARTS {
        let Some(server) = server(start) else { continue };
        for path in intruder::paths() {
            assert_eq!(server.get(path).status, 200, "{start:?}: {path}");
        }
        let mut kept = vec![("run", 0), ("acme", 0), ("documents", 0), ("members", 0)];
        if start.may_move() {
            kept.push(("mover", OF_HANDOFF_AGENT));
            // It has listed the interfaces, and loaded its program.
            wait_until("the handoff agent is ready", || {
                let agent = server.status()["mover"].clone();
                assert_eq!(agent["error"], Value::Null, "{start:?}");
                agent["connected"] == true && agent["pid"].as_i64().is_some_and(|pid| pid > 0)
            });
        }
        for (command, capabilities) in kept {
            let status = Status::of(child(&server, command));
            for set in ["CapPrm", "CapEff"] {
                assert_eq!(status.number(set), capabilities, "{start:?}: {command}: {set}");
            }
            for set in ["CapInh", "CapAmb"] {
                assert_eq!(status.number(set), 0, "{start:?}: {command}: {set}");
            }
            assert_eq!(status.number("NoNewPrivs"), 1, "{start:?}: {command}");
            assert_eq!(status.number("Seccomp"), 2, "{start:?}: {command}");
            assert!(is_closed(child(&server, command)), "{start:?}: {command}");
        }
        let managers = children(&server).into_iter().filter(|(command, _)| command == "app");
        for (_, manager) in managers {
            let status = Status::of(manager);
            assert_eq!((status.number("CapAmb"), status.number("CapInh")), (0, 0), "{start:?}");
            assert_eq!(status.number("CapPrm") & !OF_MANAGER, 0, "{start:?}: {:x}", status.number("CapPrm"));
        }
        assert!(is_closed(server.pid()), "{start:?}: the master");
    }
}

/// The processes that the master has started, with their sub-commands. That of a worker, which is a copy of the master, is `run`.
fn children(server: &Server) -> Vec<(String, Pid)> {
    let command = |pid: Pid| {
        let line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
        let word = line.split(|byte| *byte == 0).nth(1).unwrap_or_default();
        (String::from_utf8_lossy(word).into_owned(), pid)
    };
    server.workers().into_iter().map(command).collect()
}

/// The one with this sub-command, once it runs and has given up what it does not need.
fn child(server: &Server, command: &str) -> Pid {
    let find = || children(server).into_iter().find(|(name, _)| name == command).map(|(_, pid)| pid);
    wait_until(&format!("{command} has a filter"), || {
        find().is_some_and(|pid| Status::of(pid).number("Seccomp") == 2)
    });
    find().expect("it runs")
}

/// NET_BIND_SERVICE, NET_ADMIN, BPF.
const OF_HANDOFF_AGENT: u64 = 1 << 10 | 1 << 12 | 1 << 39;

/// CHOWN, DAC_OVERRIDE, KILL, SETGID, SETUID.
const OF_MANAGER: u64 = 1 | 1 << 1 | 1 << 5 | 1 << 6 | 1 << 7;

struct Status(String);

impl Status {
    fn of(pid: Pid) -> Self {
        Self(fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).expect("its status"))
    }

    fn number(&self, name: &str) -> u64 {
        let line = self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
        let number = line.unwrap_or_else(|| panic!("no {name} in {}", self.0));
        u64::from_str_radix(number, 16).expect("a number")
    }
}

/// Whether the files of a process are root's: so the kernel has them for one that no other may look into. Those of root are root's
/// anyway.
fn is_closed(pid: Pid) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let files = format!("/proc/{}/environ", pid.as_raw_nonzero());
    fs::metadata(files).expect("it runs").uid() == 0
}

/// Goal: a reload may move the folder of certificates, although its process may write nowhere else. Method: the folder gets the file
/// that the process locks.
#[test]
fn certificates_may_move_to_another_folder() {
    let server = server(Start::Image).expect("a server");
    let base = server.folder().base();
    let has_lock = |folder: &str| {
        let below = fs::read_dir(base.join(folder)).into_iter().flatten().flatten();
        below.into_iter().any(|entry| entry.path().join("lock").exists())
    };
    wait_until("its first folder is in use", || has_lock("acme"));
    let file = base.join("baton.toml");
    let text = fs::read_to_string(&file).expect("a configuration");
    fs::write(&file, text.replace("/acme'", "/moved'")).expect("a file");
    server.ctl(&["reload"]);
    wait_until("the other folder is in use", || has_lock("moved"));
}

/// Goal: root is not led to other files by the owner of the logs' folder. Method: that user replaces a log by a link.
#[test]
fn root_follows_no_link_in_a_folder_of_others() {
    let Some(server) = server(Start::Root) else { return };
    let (log, secret) =
        (server.folder().base().join("logs/access.log"), server.folder().base().join("secret"));
    fs::write(&secret, "").expect("a file");
    fs::rename(&log, log.with_extension("1")).expect("rotated");
    std::os::unix::fs::symlink(&secret, &log).expect("a link");
    assert!(server.ctl_fails(&["reopen-logs"]).contains("root does not follow"));
    fs::remove_file(&log).expect("removed");
    server.ctl(&["reopen-logs"]);
    assert_eq!(server.get("/none").status, 404);
    wait_until("the new log has the request", || {
        fs::read_to_string(&log).is_ok_and(|text| text.contains("/none"))
    });
    assert_eq!(fs::read_to_string(&secret).expect("a file"), "");
}

#[test]
fn another_user_cannot_command_the_server() {
    if !rustix::process::geteuid().is_root() {
        return leave_out("commands of another user", "only root has other users");
    }
    let server = server(Start::RootWithOneUser).expect("a server");
    let control = server.folder().base().join("control");
    // The mode of the file would keep it out, too.
    std::os::unix::fs::chown(&control, Some(2), None).expect("root");
    let mut command = std::process::Command::new("setpriv");
    command.args(["--reuid=2", "--regid=2", "--clear-groups", common::server::BATON, "ctl", "--control"]);
    let output = command.arg(&control).arg("status").output().expect("setpriv");
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    server.wait_until_said("has connected to the control socket, and was refused: its user is 2");
}
