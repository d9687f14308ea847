//! What processes of each kind can do: the table of `docs/threat-model.md`, tried.
//!
//! Goal: what the table forbids fails, and what it allows works. Method: this test starts itself again for each kind. That
//! process confines itself and tries each act on files, programs and a victim, which has the same user.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use baton_confine::{Calls, Kind, Limits, confine};
use baton_sys::flow_table::FlowTable;
use baton_sys::process::Identity;
use rustix::net::{AddressFamily, SocketType, ipproto, socket};
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open, test_kill_process};

/// An act, and which kinds can do it.
struct Act {
    name: &'static str,
    allowed: &'static [&'static str],
}

const KINDS: [(&str, Kind); 8] = [
    ("worker", Kind::Worker),
    ("acme", Kind::Acme),
    ("documents", Kind::Documents),
    ("members", Kind::Members),
    ("mover", Kind::HandoffAgent),
    ("manager", Kind::Manager),
    ("application", Kind::Application),
    ("application of the server", Kind::ApplicationOfServer),
];

const ALL: &[&str] = &[
    "worker",
    "acme",
    "documents",
    "members",
    "mover",
    "manager",
    "application",
    "application of the server",
];

/// Those that start programs of the operator, and these programs.
const STARTERS: &[&str] = &["manager", "application", "application of the server"];

/// Whom no filter keeps from it. Only the handoff agent keeps the right that the kernel then asks for.
const MAY_CALL_BPF: &[&str] = &["mover", "manager", "application", "application of the server"];

const ACTS: [Act; 11] = [
    Act { name: "read a file", allowed: ALL },
    Act { name: "write to its own folder", allowed: ALL },
    Act { name: "write to another folder", allowed: STARTERS },
    Act { name: "start a thread", allowed: ALL },
    Act { name: "open a socket", allowed: ALL },
    Act { name: "start a program", allowed: STARTERS },
    Act { name: "signal a process", allowed: &["manager", "application"] },
    Act { name: "look into a process", allowed: &["manager", "application"] },
    Act { name: "make a call without use", allowed: STARTERS },
    Act { name: "ask for `bpf`", allowed: MAY_CALL_BPF },
    Act { name: "open a raw socket", allowed: &[] },
];

#[test]
fn each_kind_can_do_what_the_table_allows_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["own", "other"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    if geteuid().is_root() {
        for path in [folder.path(), &folder.path().join("own"), &folder.path().join("other")] {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
    let victim = Victim::start();
    let mut wrong = Vec::new();
    for (kind, _) in KINDS {
        let done = acts_of(kind, Calls::Enforce, folder.path(), &victim);
        for act in &ACTS {
            let is_done = done.iter().any(|done| done == act.name);
            if is_done != act.allowed.contains(&kind) {
                wrong.push(format!(
                    "{kind}: {}: {}",
                    act.name,
                    if is_done { "done" } else { "not possible" }
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_filter_can_be_loosened() {
    let folder = tempfile::tempdir().unwrap();
    let victim = Victim::start();
    let does = |calls| {
        let done = acts_of("worker", calls, folder.path(), &victim);
        done.iter().any(|done| done == "make a call without use")
    };
    assert_eq!((does(Calls::Enforce), does(Calls::Off)), (false, true));
    // A dangerous call fails even then.
    assert!(!does(Calls::Log));
}

/// Goal: a filter slows no code of its process. On kernels before 5.16 it does, unless it says otherwise. Method: strace shows what it
/// says.
#[test]
fn a_filter_asks_for_no_mitigations() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("strace");
    command.args(["-f", "-e", "trace=seccomp"]).arg(std::env::current_exe().unwrap());
    let victim = Victim::start();
    let Ok(output) = of_kind(command, "worker", Calls::Log, folder.path(), &victim).output() else {
        return eprintln!(
            "LEFT OUT of acts: what filters ask for: strace is missing: scripts/setup-tests installs it"
        );
    };
    let trace = String::from_utf8_lossy(&output.stderr);
    let filters: Vec<_> = trace.lines().filter(|line| line.contains("SECCOMP_SET_MODE_FILTER")).collect();
    assert_eq!(filters.len(), 2, "{trace}");
    assert!(filters.iter().all(|line| line.contains("SECCOMP_FILTER_FLAG_SPEC_ALLOW")), "{filters:?}");
}

/// What a process of this kind can do.
fn acts_of(kind: &str, calls: Calls, folder: &Path, victim: &Victim) -> Vec<String> {
    let command = Command::new(std::env::current_exe().unwrap());
    let output = of_kind(command, kind, calls, folder, victim).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{kind}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text.lines().filter_map(|line| line.strip_prefix("done: ")).map(str::to_owned).collect()
}

/// The command, which starts this test, for a process of this kind.
fn of_kind(mut command: Command, kind: &str, calls: Calls, folder: &Path, victim: &Victim) -> Command {
    command.args(["--exact", "a_process_of_a_kind", "--nocapture"]);
    command.env("ACTS_KIND", kind).env("ACTS_CALLS", format!("{calls:?}")).env("ACTS_FOLDER", folder);
    command.env("ACTS_VICTIM", victim.0.id().to_string());
    command
}

/// No test of its own: the process that the others start.
#[test]
fn a_process_of_a_kind() {
    let Ok(kind) = std::env::var("ACTS_KIND") else { return };
    let kind = KINDS.iter().find(|(name, _)| *name == kind).unwrap().1;
    let folder = std::path::PathBuf::from(std::env::var_os("ACTS_FOLDER").unwrap());
    let victim: i32 = std::env::var("ACTS_VICTIM").unwrap().parse().unwrap();
    let calls = match std::env::var("ACTS_CALLS").unwrap().as_str() {
        "Log" => Calls::Log,
        "Off" => Calls::Off,
        _ => Calls::Enforce,
    };
    let user = geteuid().is_root().then_some(Identity { uid: NOBODY, gid: NOBODY });
    let limits = Limits { user, writes: vec![folder.join("own")], calls, ..Limits::default() };
    confine(kind, &limits).unwrap();
    for act in &ACTS {
        let done = match act.name {
            "read a file" => fs::read("/proc/self/maps").is_ok(),
            "write to its own folder" => fs::write(folder.join("own/file"), "x").is_ok(),
            "write to another folder" => fs::write(folder.join("other/file"), "x").is_ok(),
            "start a thread" => {
                std::thread::Builder::new().spawn(|| {}).is_ok_and(|thread| thread.join().is_ok())
            }
            "open a socket" => socket(AddressFamily::INET, SocketType::STREAM, None).is_ok(),
            "start a program" => Command::new("true").stdin(Stdio::null()).status().is_ok(),
            "signal a process" => test_kill_process(Pid::from_raw(victim).unwrap()).is_ok(),
            "look into a process" => fs::File::open(format!("/proc/{victim}/mem")).is_ok(),
            "make a call without use" => pidfd_open(rustix::process::getpid(), PidfdFlags::empty()).is_ok(),
            // Whether there is such a call: the kernel refuses what this user asks for.
            "ask for `bpf`" => {
                FlowTable::create(1).err().and_then(|error| error.raw_os_error()) != Some(ENOSYS)
            }
            "open a raw socket" => socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::ICMP)).is_ok(),
            other => unreachable!("{other}"),
        };
        if done {
            println!("done: {}", act.name);
        }
    }
}

/// A process of the same user.
struct Victim(Child);

impl Victim {
    fn start() -> Self {
        use std::os::unix::process::CommandExt as _;
        let mut command = Command::new("sleep");
        command.arg("1000");
        if geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        Self(command.spawn().unwrap())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const NOBODY: u32 = 65534;
const ENOSYS: i32 = rustix::io::Errno::NOSYS.raw_os_error();
