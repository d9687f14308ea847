//! `baton app run` alone: a server on one side, killed processes on the other.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::folder::Folder;
use crate::common::server::{PATIENCE, Server, wait_until};
use crate::processes::{application, lives, pid_of, told};

/// A manager with its status file and the socket of its processes in a folder.
struct Manager {
    child: Child,
    base: PathBuf,
    said: Arc<Mutex<String>>,
}

impl Manager {
    /// Processes that share `{base}/app`.
    fn shared(folder: &Folder, options: &[&str], command: &[&str]) -> Self {
        let listen = format!("unix:{}/app", folder.base().display());
        Self::start(folder, &[&["--listen", &*listen], options].concat(), command)
    }

    fn start(folder: &Folder, options: &[&str], command: &[&str]) -> Self {
        Self::start_as(Command::new(env!("CARGO_BIN_EXE_baton")), folder, options, command)
    }

    fn start_as(mut run: Command, folder: &Folder, options: &[&str], command: &[&str]) -> Self {
        let base = folder.base().to_owned();
        run.args(["app", "run", "--socket-mode", "666", "--status"]).arg(base.join("status"));
        run.args(options).arg("--").args(command);
        run.process_group(folder.group()).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = run.spawn().expect("the manager starts");
        let said = Arc::new(Mutex::new(String::new()));
        let (stderr, written) = (child.stderr.take().expect("standard error"), Arc::clone(&said));
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                written.lock().expect("its words").push_str(&format!("{line}\n"));
            }
        });
        Self { child, base, said }
    }

    fn said(&self) -> String {
        self.said.lock().expect("its words").clone()
    }

    fn wait_until_said(&self, text: &str) {
        wait_until(&format!("it says `{text}`"), || self.said().contains(text));
    }

    fn status(&self) -> Value {
        let text = fs::read_to_string(self.base.join("status")).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn processes(&self) -> BTreeSet<i32> {
        let pids = self.status()["processes"].as_array().cloned().unwrap_or_default();
        pids.iter().map(|pid| i32::try_from(pid.as_i64().expect("a number")).expect("a process")).collect()
    }

    fn wait_for_processes(&self, count: usize) -> BTreeSet<i32> {
        wait_until("all processes run", || self.processes().len() == count);
        self.processes()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("a signal");
    }

    fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().expect("its status") {
                return status;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("the manager does not end:\n{}", self.said());
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the manager had said:\n{}", self.said());
        }
    }
}

/// A server that gives everything to the application at `{base}/app`.
fn server(folder: Folder) -> Server {
    let to = format!("/=unix:{}/app,keep_connections=false", folder.base().display());
    Server::serve(folder, &["--fastcgi", &to, "--workers", "1"])
}

fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).expect("not 0"), signal).expect("a signal");
}

/// Goal: dead processes are replaced, and clients find a process. Method: one of two is killed from outside, one
/// kills itself in the middle of a request.
#[test]
fn processes_that_die_are_replaced() {
    let folder = Folder::new();
    let manager = Manager::shared(&folder, &["--processes", "2"], &[&application(), "some", "words"]);
    let first = manager.wait_for_processes(2);
    let server = server(folder);
    let answer = server.get("/");
    assert!(first.contains(&pid_of(&answer)), "{answer:?}");
    assert!(answer.text().contains("args=some words"), "{answer:?}");

    kill(pid_of(&answer), Signal::KILL);
    wait_until("a killed one is replaced", || {
        let now = manager.processes();
        now.len() == 2 && !now.contains(&pid_of(&answer))
    });
    assert_eq!(server.get("/die").status, 502);
    wait_until("both were replaced", || manager.status()["restarts"] == 2 && manager.processes().len() == 2);
    assert_eq!(server.get("/").status, 200);
    manager.wait_until_said("was killed by signal 9 (SIGKILL) after");
}

#[test]
fn an_end_leaves_neither_processes_nor_their_children_nor_the_socket() {
    let folder = Folder::new();
    let base = folder.base().to_owned();
    let mut manager = Manager::shared(&folder, &["--processes", "3"], &[&application()]);
    let mut all = manager.wait_for_processes(3);
    let server = server(folder);
    all.insert(told(&server.get("/"), "child").parse().expect("a process"));
    assert!(all.iter().all(|&pid| lives(pid)));
    manager.signal(Signal::TERM);
    assert!(manager.ended().success());
    wait_until("nobody is left", || !all.iter().any(|&pid| lives(pid)));
    assert!(!manager.said().contains("killed"), "they end when they are asked: {}", manager.said());
    assert!(!base.join("app").exists());
}

#[test]
fn processes_do_not_outlive_a_manager_that_is_killed() {
    let folder = Folder::new();
    let mut manager = Manager::shared(&folder, &["--processes", "2"], &[&application()]);
    let all = manager.wait_for_processes(2);
    manager.signal(Signal::KILL);
    manager.ended();
    wait_until("they end", || !all.iter().any(|&pid| lives(pid)));
}

#[test]
fn who_does_not_listen_is_killed_after_the_grace() {
    let folder = Folder::new();
    let mut manager = Manager::shared(&folder, &["--grace", "0"], &[&application(), "stubborn"]);
    let all = manager.wait_for_processes(1);
    wait_until("it ignores the signal", || manager.said().contains("begins with stubborn"));
    let server = server(folder);
    assert_eq!(server.get("/").status, 200);
    manager.signal(Signal::TERM);
    assert!(manager.ended().success());
    assert!(!all.iter().any(|&pid| lives(pid)));
    manager.wait_until_said("did not end in time and is killed");
}

#[test]
fn who_cannot_work_is_started_less_and_less_often() {
    let folder = Folder::new();
    let manager = Manager::shared(&folder, &[], &["sh", "-c", "echo broken; exit 3"]);
    wait_until("it waits longer", || manager.said().contains("the next one starts in 400ms"));
    let said = manager.said();
    let at = |text: &str| said.find(text).unwrap_or_else(|| panic!("no {text} in {said}"));
    assert!(
        at(" starts in 100ms") < at(" starts in 200ms") && at(" starts in 200ms") < at(" starts in 400ms")
    );
    assert!(said.contains("]: broken\n") && said.contains("exited with status 3"), "{said}");
}

#[test]
fn a_command_that_does_not_exist_is_named() {
    let folder = Folder::new();
    for program in ["/no/such/program", "no-such-program"] {
        let mut manager = Manager::shared(&folder, &[], &[program]);
        assert_eq!(manager.ended().code(), Some(1), "it is nothing to wait for");
        wait_until("it says why", || manager.said().contains(&format!("cannot run `{program}`: ")));
    }
}

/// Goal: all are replaced, and each request finds a process. Method: requests without a pause meanwhile.
#[test]
fn hangup_replaces_all_without_a_gap() {
    let folder = Folder::new();
    let manager = Manager::shared(&folder, &["--processes", "3", "--stop-signal", "usr1"], &[&application()]);
    let first = manager.wait_for_processes(3);
    let server = server(folder);
    assert_eq!(server.get("/").status, 200);
    manager.signal(Signal::HUP);
    let deadline = Instant::now() + PATIENCE;
    while manager.processes().intersection(&first).next().is_some() {
        // libfcgi may get the signal between accepting a connection and reading from it, and the one retry may meet
        // another ending process: then the client retries.
        assert!((0..3).any(|_| server.get("/").status == 200));
        assert!(Instant::now() < deadline, "not replaced: {}", manager.status());
    }
    assert_eq!(manager.wait_for_processes(3).intersection(&first).count(), 0);
    wait_until("the old ones are gone", || !first.iter().any(|&pid| lives(pid)));
}

#[test]
fn old_processes_are_replaced() {
    let folder = Folder::new();
    let manager = Manager::shared(&folder, &["--lifetime", "1"], &[&application()]);
    let first = manager.wait_for_processes(1);
    wait_until("it is too old", || manager.processes().intersection(&first).next().is_none());
}

#[test]
fn each_may_listen_alone() {
    let folder = Folder::new();
    let prefix = format!("unix:{}/app", folder.base().display());
    let options = ["--listen-each", &*prefix, "--processes", "2"];
    let manager = Manager::start(&folder, &options, &[&application()]);
    let all = manager.wait_for_processes(2);
    let mount = |number: u32| format!("/{number}={prefix}.{number}");
    let server = Server::serve(folder, &["--fastcgi", &mount(0), "--fastcgi", &mount(1)]);
    let answered = ["/0", "/0", "/1", "/1"].map(|path| pid_of(&server.get(path)));
    assert!(answered[0] == answered[1] && answered[2] == answered[3], "{answered:?}");
    assert_eq!(BTreeSet::from(answered), all);
}

/// Goal: the application does not inherit the manager's environment, unless configured.
#[test]
fn the_environment_and_the_folder_are_as_asked_for() {
    let folder = Folder::new();
    let directory = fs::canonicalize(folder.root()).expect("a folder");
    let directory = directory.to_str().expect("UTF-8");
    let listen = format!("unix:{}/app", folder.base().display());
    let options = ["--listen", &*listen, "--env", "COLOUR=blue", "--env", "SHAPE", "--directory", directory];
    let mut baton = Command::new(env!("CARGO_BIN_EXE_baton"));
    baton.env("SHAPE", "round").env("SECRET", "known");
    let manager = Manager::start_as(baton, &folder, &options, &[&application()]);
    manager.wait_for_processes(1);
    let server = server(folder);
    assert_eq!(told(&server.get("/"), "cwd"), directory);
    let answer = server.get("/environment");
    assert_eq!((told(&answer, "COLOUR"), told(&answer, "SHAPE")), ("blue", "round"));
    assert!(answer.text().contains("PATH=") && !answer.text().contains("SECRET"), "{answer:?}");
}

/// Goal: the dynamic linker gets the paths of the libraries. Method: files that are no libraries, since only the
/// paths matter; the linker reports that it cannot use the one, and continues.
#[test]
fn libraries_are_put_in_front_of_others() {
    let folder = Folder::new();
    let base = folder.base().to_owned();
    let (preload, dropin) = (base.join("preload.so"), base.join("dropin/libfcgi.so.0"));
    fs::create_dir(base.join("dropin")).expect("a folder");
    fs::write(&preload, "").expect("a file");
    fs::write(&dropin, "").expect("a file");
    let listen = format!("unix:{}/app", base.display());
    let options = ["--listen", &*listen, "--preload", "--dropin", "--env", "LD_LIBRARY_PATH=/other"];
    let mut baton = Command::new(env!("CARGO_BIN_EXE_baton"));
    baton.env("BATON_PRELOAD", &preload).env("BATON_DROPIN", &dropin);
    let command = ["sh", "-c", "echo libraries $LD_PRELOAD $LD_LIBRARY_PATH; exec sleep 1000"];
    let manager = Manager::start_as(baton, &folder, &options, &command);
    let expected = format!("libraries {} {}/dropin:/other\n", preload.display(), base.display());
    wait_until("it tells", || manager.said().contains(&expected));
}

#[test]
fn a_library_that_is_not_there_is_missed() {
    let folder = Folder::new();
    let mut baton = Command::new(env!("CARGO_BIN_EXE_baton"));
    baton.env("BATON_PRELOAD", "/no/such/library.so");
    let mut manager = Manager::start_as(baton, &folder, &["--preload"], &["true"]);
    assert_eq!(manager.ended().code(), Some(1));
    wait_until("it says why", || manager.said().contains("cannot find libbaton_preload.so"));
}
