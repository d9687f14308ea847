//! `command = […]`: the server starts the application, and everything that may happen to either.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::folder::{Folder, install_program};
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::processes::{application, everybody, lives, pid_of, pools, told};

/// A folder with the application, readable for every user.
pub(crate) fn folder() -> Folder {
    let folder = Folder::new();
    let copy = folder.base().join("application");
    install_program(&copy, fs::read(application()).expect("the application"));
    folder
}

/// A site with the application below `/app`, with these keys beside its command.
fn site(arguments: &str, keys: &str) -> String {
    format!(
        "processes = 1\n[[site]]\nlisten = ['127.0.0.1:0']\nroot = '{{root}}'\n[[site.route]]\npath = '/app'\n\
         fastcgi = {{ command = ['./application'{arguments}], stop_signal = 'usr1', {keys} }}\n"
    )
}

pub(crate) fn rewrite(server: &Server, configuration: &str) {
    let base = server.folder().base();
    let text = format!("[server]\ncontrol_socket = '{{base}}/control'\n{configuration}")
        .replace("{base}", base.to_str().expect("UTF-8"))
        .replace("{root}", server.folder().root().to_str().expect("UTF-8"));
    fs::write(base.join("baton.toml"), text).expect("a configuration");
}

fn wait_for_processes(server: &Server, count: usize) -> Vec<i32> {
    wait_until("manager and processes run", || everybody(server).len() == count + 1);
    everybody(server)
}

fn socket_folder(server: &Server) -> PathBuf {
    let address = pools(server)[0]["address"].as_str().expect("an address").to_owned();
    Path::new(address.strip_prefix("unix:").expect("a path")).parent().expect("a folder").to_owned()
}

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).expect("not 0"), Signal::KILL).expect("a signal");
}

#[test]
fn it_is_started_with_the_rights_of_the_workers_and_kept_running() {
    let server = Server::run(folder(), &site(", 'a b'", "processes = 2, environment = { COLOUR = 'blue' }"));
    let answer = server.get("/app");
    assert!(answer.text().contains("args=a b cwd="), "{answer:?}");
    // The one that listens and the connection: none of those of the server.
    assert_eq!(told(&answer, "sockets"), "2");
    assert_eq!(told(&server.get("/app/environment"), "COLOUR"), "blue");
    let uid = |pid: i32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
        status.lines().find_map(|line| line.strip_prefix("Uid:").map(str::to_owned)).expect("a user")
    };
    let manager = wait_for_processes(&server, 2)[0];
    let children = server.workers().into_iter().map(|pid| pid.as_raw_nonzero().get());
    let worker = children.into_iter().find(|&pid| pid != manager).expect("a worker");
    assert_eq!(uid(pid_of(&answer)), uid(worker));

    assert_eq!(server.get("/app/die").status, 502);
    // On a kept connection the request is tried again, and kills another one.
    wait_until("it is replaced", || pools(&server)[0]["restarts"].as_u64() > Some(0));
    wait_for_processes(&server, 2);
    assert_eq!(server.get("/app").status, 200);
    server.wait_until_said("]: begins with a b\n");
}

/// Goal: clients of any protocol hardly notice that a manager dies. Method: its processes end with it, and the next
/// request waits for those of the next one.
#[test]
fn a_manager_that_is_killed_is_replaced() {
    let site = site("", "processes = 1").replace("listen = ['127.0.0.1:0']", "{listen}");
    let server = Server::run(folder(), &site);
    let mut now = wait_for_processes(&server, 1);
    for (killed, protocol) in Protocol::ALL.into_iter().enumerate() {
        let server = server.over(protocol);
        assert_eq!(pid_of(&server.get("/app")), now[1]);
        kill(now[0]);
        wait_until("its process ends", || !lives(now[1]));
        assert_ne!(pid_of(&server.get("/app")), now[1]);
        let next = wait_for_processes(&server, 1);
        assert!(!next.contains(&now[0]) && pools(&server)[0]["restarts"] == killed + 1);
        now = next;
    }
    server.wait_until_said("the manager of application was killed by signal 9");
}

#[test]
fn an_end_leaves_nothing_behind() {
    for signal in [Signal::TERM, Signal::QUIT] {
        let mut server = Server::run(folder(), &site("", "processes = 3"));
        let mut all = wait_for_processes(&server, 3);
        all.push(told(&server.get("/app"), "child").parse().expect("a process"));
        let sockets = socket_folder(&server);
        assert!(sockets.exists() && all.iter().all(|&pid| lives(pid)));
        server.signal(signal);
        assert!(server.ended().success());
        wait_until("nobody is left", || !all.iter().any(|&pid| lives(pid)));
        assert!(!sockets.exists());
        assert!(!server.said().contains("killed"), "{}", server.said());
    }
}

#[test]
fn processes_do_not_outlive_a_server_that_is_killed() {
    let mut server = Server::run(folder(), &site("", "processes = 2"));
    let all = wait_for_processes(&server, 2);
    let sockets = socket_folder(&server);
    server.signal(Signal::KILL);
    server.ended();
    wait_until("nobody is left", || !all.iter().any(|&pid| lives(pid)));
    // The next manager cleans up after it.
    assert!(sockets.exists());
    let next = Server::run(folder(), &site("", "processes = 1"));
    assert!(!sockets.exists() && socket_folder(&next).exists() && socket_folder(&next) != sockets);
}

#[test]
fn a_reload_keeps_what_stays_the_same() {
    let server = Server::run(folder(), &site("", "processes = 1"));
    let first = wait_for_processes(&server, 1);
    // Another setting of the same application.
    rewrite(&server, &site("", "processes = 1, queue_max = 7"));
    server.ctl(&["reload"]);
    assert_eq!(pid_of(&server.get("/app")), first[1]);
    assert_eq!(everybody(&server), first);
}

#[test]
fn a_reload_replaces_what_is_different() {
    let server = Server::run(folder(), &site(", 'old'", "processes = 1, timeout_ms = 300"));
    let first = wait_for_processes(&server, 1);
    rewrite(&server, &site(", 'new'", "processes = 1"));
    server.ctl(&["reload"]);
    assert!(server.get("/app").text().contains("args=new"));
    wait_until("the old one is gone", || pools(&server).len() == 1);
    assert!(!first.iter().any(|&pid| lives(pid)));
    assert!(server.get("/app").text().contains("args=new"));
}

/// Goal: a failed reload is undone. Method: another command, and an address in use.
#[test]
fn a_refused_reload_changes_nothing() {
    let server = Server::run(folder(), &site("", "processes = 1"));
    let first = wait_for_processes(&server, 1);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let listen = format!("listen = ['{}', ", taken.local_addr().expect("an address"));
    let refused = site(", 'new'", "processes = 1, timeout_ms = 1").replace("listen = [", &listen);
    rewrite(&server, &refused);
    let control = server.folder().base().join("control");
    let mut reload = std::process::Command::new(env!("CARGO_BIN_EXE_baton"));
    let reload = reload.args(["ctl", "--control"]).arg(control).arg("reload").output().expect("baton ctl");
    assert!(!reload.status.success());
    assert_eq!(pid_of(&server.get("/app")), first[1]);
    wait_until("no other pool is left", || everybody(&server) == first);
}

/// Goal: two servers, two sets of processes. Method: an upgrade, with requests all the while.
#[test]
fn an_upgrade_has_processes_of_its_own() {
    let mut server = Server::run(folder(), &site("", "processes = 1"));
    let first = wait_for_processes(&server, 1);
    assert_eq!(pid_of(&server.get("/app")), first[1]);
    server.ctl(&["upgrade"]);
    assert!(server.ended().success());
    assert!(!first.iter().any(|&pid| lives(pid)));
    assert_ne!(pid_of(&server.get("/app")), first[1]);
    let second = wait_for_processes(&server, 1);
    server.ctl(&["stop"]);
    wait_until("nobody is left", || !second.iter().any(|&pid| lives(pid)));
}

#[test]
fn the_status_has_a_row_for_each_application() {
    let server = Server::run(folder(), &site("", "processes = 2"));
    wait_for_processes(&server, 2);
    assert_eq!([server.get("/app").status, server.get("/app").status], [200; 2]);
    // Name, processes, idle, busy, waiting, restarted, recycled, killed, requests and failures; behind its transport, the shares
    // of those that its answers took.
    wait_until("the row tells all of it, which loops do once a second", || {
        let status = server.ctl(&["status", "--all"]);
        let rows = status.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let mut rows = rows.filter(|cells| cells.len() > 11);
        rows.any(|cells| {
            cells[..2] == ["application", "2"]
                && cells[5..10] == ["0", "0", "0", "2", "0"]
                && cells[11..] == ["unix", "100", "%"]
        })
    });
}

#[test]
fn who_only_asks_starts_nothing() {
    let folder = folder();
    let file = folder.base().join("baton.toml");
    let text = site(", 'a b'", "processes = 2").replace("{root}", folder.root().to_str().expect("UTF-8"));
    fs::write(&file, text.replacen("processes = 1", "[server]", 1)).expect("a configuration");
    let mut explain = std::process::Command::new(env!("CARGO_BIN_EXE_baton"));
    let output = explain.arg("explain").arg("-c").arg(&file).arg("/app").output().expect("baton explain");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let command = format!("the application {} a b)", folder.base().join("application").display());
    assert!(told.contains(&command), "{told}{}", String::from_utf8_lossy(&output.stderr));
}
