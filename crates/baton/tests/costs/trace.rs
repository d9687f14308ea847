//! System calls of a running process, as strace sees them.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::server::wait_until;

/// An attached strace; detaches when dropped.
pub(crate) struct Trace {
    strace: Child,
    file: PathBuf,
}

/// One system call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Its name; of several for one purpose, the one that documents use.
    pub(crate) name: String,
    /// Its arguments and its result.
    pub(crate) detail: String,
}

impl Trace {
    /// Attaches to all threads of a process, and waits until that is done.
    pub(crate) fn attach(process: Pid, file: &Path) -> Self {
        let process = process.as_raw_nonzero();
        let mut command = Command::new("strace");
        command.args(["-f", "-s", "16", "-o"]).arg(file).arg("-p").arg(process.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut strace = command.spawn().expect("strace (scripts/setup-tests installs it)");
        wait_until("strace is attached", || {
            assert!(strace.try_wait().expect("its status").is_none(), "strace may not attach here");
            let threads = fs::read_dir(format!("/proc/{process}/task")).expect("its threads");
            threads.flatten().all(|thread| {
                let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
                !status.contains("TracerPid:\t0\n")
            })
        });
        Self { strace, file: file.to_owned() }
    }

    /// The calls so far, in their order.
    pub(crate) fn calls(&self) -> Vec<Call> {
        let text = fs::read_to_string(&self.file).expect("the trace");
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut calls: Vec<Call> = Vec::new();
        // Of each thread, the call that others interrupt on paper.
        let mut begun: HashMap<&str, usize> = HashMap::new();
        for line in whole.lines() {
            let Some((thread, call)) = line.split_once(' ') else { continue };
            let rest = call.trim_start().strip_prefix("<... ").and_then(|call| call.split_once(" resumed>"));
            if let Some((_, rest)) = rest {
                if let Some(at) = begun.remove(thread) {
                    calls[at].detail.push_str(rest);
                }
            } else if let Some(mut call) = Call::parse(call) {
                if let Some(len) = call.detail.strip_suffix(" <unfinished ...>").map(str::len) {
                    call.detail.truncate(len);
                    begun.insert(thread, calls.len());
                }
                calls.push(call);
            }
        }
        calls
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.strace), Signal::INT);
        let _ = self.strace.wait();
    }
}

impl Call {
    /// A call such as `recvfrom(6, "GET /", 65536, MSG_DONTWAIT, NULL, NULL) = 36`.
    fn parse(call: &str) -> Option<Self> {
        let (name, detail) = call.trim_start().split_once('(')?;
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return None; // Signals, and ends of threads.
        }
        // In debug builds Rust checks that a descriptor is open before it closes it.
        if name == "fcntl" && detail.contains("F_GETFD") {
            return None;
        }
        let name = if name == "epoll_pwait" { "epoll_wait" } else { name };
        Some(Self { name: name.to_owned(), detail: detail.to_owned() })
    }

    /// Whether a timer ended this wait, unlike a poll without waiting. Their number depends on the client's time:
    /// they are no cost of a request.
    pub(crate) fn waits_in_vain(&self) -> bool {
        // `6, [], 256, 400, NULL, 0) = 0`: no events, of 256 at the most, in 400 ms.
        let rest = self.detail.split("[], ").nth(1);
        let time_ms = rest.and_then(|rest| rest.split([',', ')']).nth(1)).map(str::trim);
        self.name == "epoll_wait" && self.detail.ends_with(" = 0") && time_ms != Some("0")
    }

    /// Whether this call receives a request.
    pub(crate) fn receives_a_request(&self) -> bool {
        self.name == "recvfrom" && ["\"GET ", "\"HEAD "].iter().any(|begin| self.detail.contains(begin))
    }

    /// Whether this is an accept without a waiting client.
    pub(crate) fn accepts_nobody(&self) -> bool {
        self.name == "accept4" && self.detail.contains("EAGAIN")
    }
}
