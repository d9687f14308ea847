//! The conformance suite of HTTP caches, which runs in Node.js: its client in front of a cache, its origin behind.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::common::folder::Folder;

/// The running suite. It ends with the folder.
pub(crate) struct Suite {
    child: Child,
    commands: ChildStdin,
    said: Lines<BufReader<ChildStdout>>,
    origin: SocketAddr,
}

/// What became of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) id: String,
    /// `required`, `optimal`, or `check`: a question without a right answer.
    pub(crate) kind: String,
    /// `yes`, `no`, `setup`, or `dependency`: see `suite/run.mjs`.
    pub(crate) word: String,
    /// What the suite says about anything but `yes`.
    pub(crate) reason: String,
}

impl Suite {
    /// Starts the suite, if `scripts/setup-tests` has installed it.
    pub(crate) fn start(folder: &Folder) -> Option<Self> {
        let target = Path::new(env!("CARGO_BIN_EXE_baton")).ancestors().nth(2)?;
        let installed = target.join("tools/cache-conformance");
        if !installed.join("node_modules").is_dir() {
            return None;
        }
        let mut child = Command::new("node")
            .arg("--no-warnings")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cache/suite/run.mjs"))
            .arg(installed)
            .process_group(folder.group())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let commands = child.stdin.take().expect("its input");
        let mut said = BufReader::new(child.stdout.take().expect("its output")).lines();
        let line = said.next().expect("where its origin listens").expect("a line");
        let port = line.strip_prefix("origin ").expect("the word").parse().expect("a port");
        Some(Self { child, commands, said, origin: (Ipv4Addr::LOCALHOST, port).into() })
    }

    /// Where its origin listens.
    pub(crate) const fn origin(&self) -> SocketAddr {
        self.origin
    }

    /// Runs cases through the cache at an address: all of them, if none is named.
    pub(crate) fn run(&mut self, cache: SocketAddr, ids: &[String]) -> Vec<Case> {
        writeln!(self.commands, "{}", [&[format!("http://{cache}")], ids].concat().join(" "))
            .expect("it listens");
        let lines = self.said.by_ref().map(|line| line.expect("a line"));
        lines.take_while(|line| line != "end").map(|line| Case::of(&line)).collect()
    }
}

impl Drop for Suite {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Case {
    fn of(line: &str) -> Self {
        let mut words = line.splitn(4, ' ').map(str::to_owned);
        let mut next = || words.next().unwrap_or_default();
        Self { id: next(), kind: next(), word: next(), reason: next() }
    }
}
