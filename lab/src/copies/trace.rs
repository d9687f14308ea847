//! The system calls of running processes that move bytes, as strace sees them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

/// An attached strace. Detaches when dropped.
#[derive(Debug)]
pub(super) struct Trace {
    strace: Child,
    folder: PathBuf,
}

/// One call that moved bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) kind: CallKind,
    pub(super) descriptor: Descriptor,
    pub(super) bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    /// Copies from the kernel to the process.
    Receive,
    /// Copies from the process to the kernel.
    Send,
    /// Moves bytes within the kernel; the descriptor is where they go.
    ByReference,
}

/// The kind of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Descriptor {
    Tcp,
    /// A Unix socket, by its own number and that of its peer.
    Unix {
        own: u64,
        peer: u64,
    },
    Other,
}

impl Trace {
    /// Attaches to all threads of these processes and waits until attached. Traces go to files in `folder`, which
    /// must be empty.
    pub(super) fn attach(processes: &[i32], folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        // A file for each thread (-ff): in a common one, calls of several would be cut in two.
        let mut command = Command::new("strace");
        command.args(["-ff", "-yy", "-s", "0", "-e", CALLS, "-o"]).arg(folder.join("calls"));
        for process in processes {
            command.args(["-p", &process.to_string()]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut strace = command.spawn().context("strace (scripts/setup-bench installs it)")?;
        let limit = Instant::now() + ATTACH_MAX;
        while !processes.iter().all(|process| is_traced(*process)) {
            ensure!(strace.try_wait()?.is_none(), "strace may not attach here");
            ensure!(Instant::now() < limit, "strace does not attach");
            sleep(Duration::from_millis(10));
        }
        Ok(Self { strace, folder: folder.to_owned() })
    }

    /// The calls so far.
    pub(super) fn calls(&self) -> Result<Vec<Call>> {
        let mut calls = Vec::new();
        for file in fs::read_dir(&self.folder)? {
            let path = file?.path();
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let whole = text.rfind('\n').map_or("", |end| &text[..end]);
            calls.extend(whole.lines().filter_map(Call::parse));
        }
        Ok(calls)
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.strace), Signal::INT);
        let _ = self.strace.wait();
    }
}

fn is_traced(process: i32) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    threads.into_iter().flatten().flatten().all(|thread| {
        let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        !status.contains("TracerPid:\t0\n")
    })
}

impl Call {
    /// A line such as `read(13<UNIX-STREAM:[7->8]>, ""..., 65536) = 5120`; `None` if it moved nothing.
    fn parse(line: &str) -> Option<Self> {
        let (name, rest) = line.split_once('(')?;
        let kind = match name {
            "read" | "readv" | "recvfrom" | "recvmsg" => CallKind::Receive,
            "write" | "writev" | "sendto" | "sendmsg" => CallKind::Send,
            "sendfile" | "splice" => CallKind::ByReference,
            _ => return None,
        };
        let bytes = rest.rsplit_once(" = ")?.1.split(' ').next()?.parse().ok().filter(|bytes| *bytes > 0)?;
        // Of `splice` the third argument is where the bytes go, of all others the first.
        let arguments = if name == "splice" { rest.splitn(3, ", ").nth(2)? } else { rest };
        Some(Self { kind, descriptor: Descriptor::parse(arguments), bytes })
    }
}

impl Descriptor {
    /// The beginning of an argument such as `13<UNIX-STREAM:[7->8,"/run/app.sock"]>`.
    fn parse(argument: &str) -> Self {
        let Some((_, what)) = argument.split_once('<') else { return Self::Other };
        if what.starts_with("TCP:") || what.starts_with("TCPv6:") {
            return Self::Tcp;
        }
        let unix = || {
            let (_, ends) = what.strip_prefix("UNIX")?.split_once('[')?;
            let (own, rest) = ends.split_once("->")?;
            let peer = rest.split(|byte: char| !byte.is_ascii_digit()).next()?;
            Some(Self::Unix { own: own.parse().ok()?, peer: peer.parse().ok()? })
        };
        unix().unwrap_or(Self::Other)
    }
}

/// All that moves bytes between a process and a socket, or from a file to one.
const CALLS: &str = "trace=read,readv,recvfrom,recvmsg,recvmmsg,write,writev,sendto,sendmsg,sendmmsg,sendfile,splice,vmsplice";
const ATTACH_MAX: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_as_strace_writes_them() {
        let call = |line| Call::parse(line).map(|call| (call.kind, call.descriptor, call.bytes));
        assert_eq!(
            call(r#"read(13<UNIX-STREAM:[7->8]>, ""..., 65536) = 5120"#),
            Some((CallKind::Receive, Descriptor::Unix { own: 7, peer: 8 }, 5120))
        );
        assert_eq!(
            call(
                r#"sendmsg(3<UNIX-STREAM:[8->7,"/run/a.sock"]>, {msg_name=NULL, msg_iovlen=1}, MSG_NOSIGNAL) = 24"#
            ),
            Some((CallKind::Send, Descriptor::Unix { own: 8, peer: 7 }, 24))
        );
        assert_eq!(
            call(r#"sendto(12<TCP:[127.0.0.1:80->127.0.0.1:4]>, ""..., 205, MSG_NOSIGNAL, NULL, 0) = 205"#),
            Some((CallKind::Send, Descriptor::Tcp, 205))
        );
        assert_eq!(
            call("sendfile(12<TCP:[127.0.0.1:80->127.0.0.1:4]>, 9</srv/a>, [0] => [77], 77) = 77"),
            Some((CallKind::ByReference, Descriptor::Tcp, 77))
        );
        assert_eq!(
            call("splice(5<pipe:[9]>, NULL, 12<TCP:[127.0.0.1:80->127.0.0.1:4]>, NULL, 77, 0) = 77"),
            Some((CallKind::ByReference, Descriptor::Tcp, 77))
        );
        assert_eq!(
            call("read(13<UNIX-STREAM:[7->8]>, 0x1, 9) = -1 EAGAIN (Resource temporarily unavailable)"),
            None
        );
        assert_eq!(call("+++ exited with 0 +++"), None);
    }
}
