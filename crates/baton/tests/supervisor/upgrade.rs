//! From one server process to the next, unnoticed by clients.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::common::agent::Agent;
use crate::common::client::Client;
use crate::common::folder::{install_program, pattern};
use crate::common::matrix;
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::supervised::{
    ANY_PORT, ANY_PORTS, ServiceManager, admin_address, baton, begin_download, complaint, configure, ctl,
    folder, is_alive, pid, read, refusal, send_signal, serving, start, start_in, start_own_executable,
    status,
};

/// More than the buffers of two sockets hold, so that a transfer cannot have ended unnoticed.
const BIG_BYTES: usize = 24 << 20;

/// Upgrades the server as nginx's users do, signal by signal, under constant load: clients on kept connections with
/// pauses, clients on new ones, and a download. Every response is complete.
#[test]
fn no_client_is_refused_or_cut_off() {
    let big = pattern(BIG_BYTES, 1);
    // Kept connections move under others in `moving`.
    for architecture in matrix::size(&["auto", "symped"][..], &["auto", "symped", "pipeline", "threads"]) {
        let folder = folder();
        folder.write("big", big);
        configure(
            &folder,
            ANY_PORTS,
            "root",
            &format!("architecture = \"{architecture}\"\npid_file = \"pid\""),
        );
        let mut server = start_in(folder);
        let mut download = server.connect();
        begin_download(&mut download, BIG_BYTES);

        let crowd = Crowd::default();
        scope(|threads| {
            let _end = crowd.gather(threads, &server);
            crowd.wait_for_more();
            server.signal(Signal::USR2);
            let new = successor(&server);
            crowd.wait_for_more();

            server.signal(Signal::WINCH);
            // They serve only their open connections.
            server.wait_until_said("workers leave");
            crowd.wait_for_more();
            assert!(download.take(BIG_BYTES) == big, "{architecture}: the download differs");
            wait_until("the old workers are gone", || server.workers() == [new]);
            assert!(is_alive(server.pid()), "{architecture}: the old master stays");
            crowd.wait_for_more();

            server.signal(Signal::QUIT);
            assert_eq!(server.ended().code(), Some(0));
            crowd.wait_for_more();
            assert_eq!(pid(&status(&server)["pid"]), new);
            wait_until("the new master is the only one", || status(&server)["predecessor"].is_null());
            assert!(!server.folder().base().join("pid.oldbin").exists());
        });
    }
}

/// Asks in words for all of it at once, with clients there.
#[test]
fn a_single_command_does_all_of_it() {
    let folder = folder();
    configure(&folder, ANY_PORTS, "root", "processes = 2");
    let mut server = start_in(folder);
    let crowd = Crowd::default();
    scope(|threads| {
        let _end = crowd.gather(threads, &server);
        crowd.wait_for_more();
        let told = server.ctl(&["upgrade"]);
        assert_eq!(server.ended().code(), Some(0));
        crowd.wait_for_more();
        assert_eq!(told, format!("process {} has taken over\n", status(&server)["pid"]));
    });
}

/// Replaces the executable by another one, which leaves a mark before it continues as this one.
#[test]
fn the_new_executable_runs() {
    let folder = folder();
    configure(&folder, ANY_PORT, "root", "");
    let (executable, mut server) = start_own_executable(folder);

    let script = format!(
        "#!/bin/sh\necho \"$@\" > \"${{0%baton}}mark\"\nexec {} \"$@\"\n",
        env!("CARGO_BIN_EXE_baton")
    );
    install_program(&executable, &script);
    server.ctl(&["upgrade"]);
    server.ended();
    assert!(read(&server, "mark").starts_with("run -c "), "{}", read(&server, "mark"));
    assert_eq!(server.get("/").text(), "first");
}

/// Makes the new server fail in every way: each time the old one reports the reason, and goes on under its own names.
#[test]
fn an_upgrade_that_fails_changes_nothing() {
    let folder = folder();
    configure(&folder, ANY_PORT, "root", "pid_file = \"pid\"");
    let (executable, server) = start_own_executable(folder);
    let original = fs::read(&executable).unwrap();
    let workers = serving(&server);
    let still_there = || {
        assert_eq!(server.get("/").text(), "first");
        assert_eq!(serving(&server), workers);
        assert_eq!(read(&server, "pid"), format!("{}\n", server.pid().as_raw_nonzero()));
    };

    fs::remove_file(&executable).unwrap();
    let told = refusal(&server, "upgrade");
    assert!(told.contains("cannot start ") && told.contains("put the new executable in place"), "{told}");
    still_there();

    install_program(&executable, "#!/bin/sh\nexit 3\n");
    let told = refusal(&server, "upgrade");
    assert!(told.contains("this server goes on") && told.contains("exited with status 3"), "{told}");
    still_there();

    install_program(&executable, &original);
    configure(server.folder(), ANY_PORT, "root", "pid_file = \"pid\"\ndrain_timeout = 5");
    let told = refusal(&server, "upgrade");
    assert!(told.contains("baton.toml:8:1") && told.contains("did you mean `drain_timeout_ms`?"), "{told}");
    still_there();

    configure(server.folder(), ANY_PORT, "root", "pid_file = \"pid\"\n[log]\naccess = \"none/access.log\"");
    let told = refusal(&server, "upgrade");
    assert!(told.contains("cannot open the access log"), "{told}");
    still_there();

    // This is found out by a worker.
    configure(server.folder(), ANY_PORT, "nowhere", "pid_file = \"pid\"");
    let told = refusal(&server, "upgrade");
    assert!(told.contains("nowhere"), "{told}");
    still_there();

    // After a signal, the log has the report.
    server.signal(Signal::USR2);
    wait_until("it is logged", || server.said().matches("not upgraded, this server goes on").count() == 6);
    still_there();

    configure(server.folder(), ANY_PORT, "root", "pid_file = \"pid\"");
    assert!(server.ctl(&["upgrade"]).contains("has taken over"));
}

/// Starts a new server that does nothing at all, and is not waited for for ever.
#[test]
fn patience_with_the_new_server_ends() {
    let folder = folder();
    configure(&folder, ANY_PORT, "root", "");
    let (executable, server) = start_own_executable(folder);
    install_program(&executable, "#!/bin/sh\nexec sleep 600\n");
    let told = refusal(&server, "upgrade");
    assert!(told.contains("did not come to serve within 10 s"), "{told}");
    assert_eq!(server.get("/").text(), "first");
}

/// Starts a new server whose messages have other names: it is ended at once, not after its time.
#[test]
fn a_new_server_of_another_version_is_refused() {
    let folder = folder();
    configure(&folder, ANY_PORT, "root", "");
    let (executable, server) = start_own_executable(folder);
    let speaks = r#"printf '{"word":"serving"}' >&"${BATON_PREDECESSOR#*:}"; exec sleep 600"#;
    install_program(&executable, format!("#!/bin/bash\n{speaks}\n"));
    let told = refusal(&server, "upgrade");
    assert!(told.contains("versions that cannot take over from one another"), "{told}");
    assert_eq!(server.get("/").text(), "first");
}

/// Thinks better of it: the old server's workers come back, and the new one ends.
#[test]
fn there_is_a_way_back() {
    let server = start("processes = 2\npid_file = \"pid\"");
    let first_workers = serving(&server);
    server.signal(Signal::USR2);
    let new = successor(&server);
    assert_eq!(read(&server, "pid.oldbin"), format!("{}\n", server.pid().as_raw_nonzero()));
    server.signal(Signal::WINCH);
    wait_until("the old workers are gone", || server.workers() == [new]);
    assert_eq!(old_status(&server)["state"], "withdrawn");

    // A configuration that would not do is not even read.
    configure(server.folder(), ANY_PORT, "nowhere", "processes = 2\npid_file = \"pid\"");
    server.signal(Signal::HUP);
    wait_until("workers are back", || {
        let status = old_status(&server);
        let workers = status["workers"].as_array().unwrap();
        workers.iter().filter(|worker| worker["serves"] == true).count() == 2
    });
    assert_eq!(old_status(&server)["state"], "serving");

    send_signal(new, Signal::QUIT);
    wait_until("the new server is gone", || !is_alive(new));
    wait_until("the old one has its names back", || {
        read(&server, "pid") == format!("{}\n", server.pid().as_raw_nonzero())
    });
    assert!(!server.folder().base().join("pid.oldbin").exists());
    assert_eq!(pid(&status(&server)["pid"]), server.pid());
    assert!(serving(&server).iter().all(|worker| !first_workers.contains(worker)));
    for _ in 0..20 {
        assert_eq!(server.get("/").text(), "first");
    }
}

/// Kills the new server when the old one has no workers left: they come back.
#[test]
fn the_old_server_steps_in_for_the_new_one() {
    let server = start("processes = 2");
    server.signal(Signal::USR2);
    let new = successor(&server);
    server.signal(Signal::WINCH);
    wait_until("the old workers are gone", || server.workers() == [new]);
    let new_workers = serving(&server);
    send_signal(new, Signal::KILL);
    wait_until("its workers have followed it", || !new_workers.iter().any(|&pid| is_alive(pid)));
    assert_eq!(server.get("/").text(), "first", "this client may have waited");
    wait_until("the old server is itself again", || {
        ctl(server.folder(), &["status"]).status.success() && serving(&server).len() == 2
    });
    server.wait_until_said("was killed by signal 9 (SIGKILL), which was to take the place of this one");
}

/// Lets the workers leave without successors. No client is refused: new ones wait for the workers' return.
#[test]
fn without_workers_clients_wait() {
    let server = start("processes = 2");
    server.signal(Signal::WINCH);
    wait_until("the workers are gone", || server.workers().is_empty());
    server.wait_until_said("clients wait until SIGHUP brings workers back");
    let mut early = server.connect();
    early.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(server.ctl(&["reload"]), "the workers are back, with the configuration as it was\n");
    assert_eq!(early.response().text(), "first");
}

/// One change at a time.
#[test]
fn upgrades_and_reloads_do_not_cross() {
    let server = start("");
    server.signal(Signal::USR2);
    let new = successor(&server);
    let taken = format!("process {} takes the place of this one", new.as_raw_nonzero());
    assert!(complaint(old_ctl(&server, "upgrade")).contains(&taken));
    assert!(complaint(old_ctl(&server, "reload")).contains(&taken));
    let told = refusal(&server, "upgrade");
    let old =
        format!("process {}, whose place this one takes, is still there", server.pid().as_raw_nonzero());
    assert!(told.contains(&old), "{told}");
    assert_eq!(server.ctl(&["reload"]), "reloaded\n", "the new one may");
}

/// Changes the number of workers, and with it the number of sockets on the port, which a reload cannot. Every socket
/// of the old server has a worker that accepts from it, also when that server is gone.
#[test]
fn workers_may_become_fewer_and_more() {
    for (before, after) in [(3, 1), (3, 2), (2, 3)] {
        let mut server = start(&format!("processes = {before}"));
        configure(server.folder(), ANY_PORT, "root", &format!("processes = {after}"));
        server.ctl(&["upgrade"]);
        server.ended();
        assert_eq!(serving(&server).len(), after);
        for _ in 0..60 {
            assert_eq!(server.get("/").text(), "first", "{before} to {after}");
        }
    }
}

/// Names of sockets stay when the old server ends, and go with the new one.
#[test]
fn unix_sockets_keep_their_names() {
    let folder = folder();
    configure(&folder, "\"unix:site.sock\", \"127.0.0.1:0\"", "root", "");
    let mut server = start_in(folder);
    let path = server.folder().base().join("site.sock");
    server.ctl(&["upgrade"]);
    server.ended();
    let mut answer = String::new();
    let mut stream = UnixStream::connect(&path).expect("connect");
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("first"), "{answer}");
    server.ctl(&["stop"]);
    let control = server.folder().base().join("control");
    wait_until("the new server has taken its names along", || !path.exists() && !control.exists());
}

/// Monitoring finds the old server until the new one serves, and then only the new one.
#[test]
fn monitoring_changes_over_as_well() {
    let server = start("[admin]\nlisten = \"127.0.0.1:0\"");
    let address = admin_address(&server);
    let monitored = || {
        let mut client = Client::connect(address);
        let status: Value = serde_json::from_slice(&client.get("/status").body).unwrap();
        pid(&status["pid"])
    };
    assert_eq!(monitored(), server.pid());
    server.signal(Signal::USR2);
    let new = successor(&server);
    for _ in 0..20 {
        assert_eq!(monitored(), new);
    }
    send_signal(new, Signal::KILL);
    wait_until("the old one is asked again", || monitored() == server.pid());
}

/// Listens as a service manager: it must know which process is the main one, or it would take the end of the old one for the
/// end of the service.
#[test]
fn the_service_manager_follows() {
    let folder = folder();
    configure(&folder, ANY_PORT, "root", "");
    let (manager, mut server) = ServiceManager::start(folder);
    assert_eq!(manager.told(), "READY=1");
    server.ctl(&["upgrade"]);
    let main = format!("MAINPID={}", status(&server)["pid"]);
    assert_eq!(manager.told(), main);
    assert_eq!(manager.told(), main, "once more, instead of STOPPING=1, when the old one begins to end");
    server.ended();
    assert_eq!(manager.told(), "READY=1");
    server.ctl(&["stop"]);
    assert_eq!(manager.told(), "STOPPING=1");
}

/// Clients that ask without end, two over each protocol.
#[derive(Default)]
struct Crowd {
    ended: AtomicBool,
    answers: [AtomicUsize; 2 * Protocol::ALL.len()],
}

/// Ends the crowd with the test.
struct End<'a>(&'a Crowd);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Relaxed);
    }
}

impl Crowd {
    /// Half of them keep their connections, with pauses of several lengths between requests, and half do not.
    fn gather<'a>(&'a self, threads: &'a std::thread::Scope<'a, '_>, server: &Server) -> End<'a> {
        for (index, answers) in self.answers.iter().enumerate() {
            let (protocol, is_kept) = (Protocol::ALL[index / 2], index % 2 == 0);
            let address = server.over(protocol).address();
            threads.spawn(move || {
                let mut client = Agent::connect(address, protocol);
                while !self.ended.load(Ordering::Relaxed) {
                    let Some(response) = client.get_unless_closing("/") else {
                        client = Agent::connect(address, protocol);
                        continue;
                    };
                    assert_eq!(response.text(), "first");
                    let count = answers.fetch_add(1, Ordering::Relaxed);
                    if !is_kept || response.field("connection") == Some("close") {
                        client = Agent::connect(address, protocol);
                    }
                    sleep(Duration::from_millis((count % (4 * (index + 1))) as u64));
                }
            });
        }
        End(self)
    }

    /// Until each of them has had twenty more answers.
    fn wait_for_more(&self) {
        let counts = || self.answers.each_ref().map(|count| count.load(Ordering::Relaxed));
        let before = counts();
        wait_until("every client is answered", || {
            counts().iter().zip(before).all(|(now, before)| *now >= before + 20)
        });
    }
}

/// The process that replaces the server, as soon as it serves.
fn successor(server: &Server) -> Pid {
    server.wait_until_said("serves, too");
    let new = pid(&status(server)["pid"]);
    assert_ne!(new, server.pid());
    assert_eq!(pid(&old_status(server)["successor"]["pid"]), new);
    new
}

/// Asks the old server, whose names have made room.
fn old_ctl(server: &Server, command: &str) -> std::process::Output {
    let control = server.folder().base().join("control.oldbin");
    baton().args(["ctl", command, "--json", "--control"]).arg(control).output().unwrap()
}

fn old_status(server: &Server) -> Value {
    serde_json::from_slice(&old_ctl(server, "status").stdout).expect("JSON")
}
