//! `baton ctl status` and `baton top`.

use std::process::Command;

use crate::common::folder::Folder;
use crate::common::server::{BATON, Server, wait_until};

fn start() -> Server {
    let folder = Folder::new();
    folder.write("small.txt", "small");
    let sites: String = (0..40)
        .map(|n| {
            format!("[[site]]\nhosts = [\"site-{n}.example.org\"]\nlisten = \"127.0.0.1:0\"\nroot = \"{{root}}\"\n")
        })
        .collect();
    Server::run(
        folder,
        &format!("processes = 2\n[[site]]\nlisten = \"127.0.0.1:0\"\nroot = \"{{root}}\"\n{sites}"),
    )
}

/// The status is a screen; topics and `--all` have the rest.
#[test]
fn the_status_fits_a_screen() {
    let server = start();
    for _ in 0..10 {
        assert_eq!(server.get("/small.txt").status, 200);
    }
    wait_until("requests are counted", || {
        server.ctl(&["status"]).contains("\nrequests      10, 0 in flight; 2xx 10,")
    });
    let screen = server.ctl(&["status"]);
    assert!(screen.lines().count() <= 24, "{screen}");
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    assert!(screen.contains("\nworkers       2 of 2 serve, 0 restarts\n"), "{screen}");
    assert!(screen.contains("\nsites         41: "), "{screen}");

    let all = server.ctl(&["status", "--all"]);
    assert!(all.contains("site-39.example.org") && all.contains("\nworker 1\n"), "{all}");
    let sites = server.ctl(&["status", "sites"]);
    assert!(all.contains(&sites) && sites.contains("site-39.example.org"), "{sites}");
    assert!(server.ctl(&["status", "workers"]).starts_with("worker "), "{all}");
    assert!(server.ctl_fails(&["status", "wrokers"]).contains("workers"));
}

/// One frame where the output is no terminal, with what happened in its second.
#[test]
fn top_prints_a_frame() {
    let server = start();
    let control = server.folder().base().join("control");
    let frame = || {
        let output =
            Command::new(BATON).arg("top").arg("--control").arg(&control).output().expect("baton top");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let quiet = frame();
    assert!(quiet.starts_with("baton ") && quiet.contains("\n0 req/s  p50 -  p99 -"), "{quiet}");
    assert!(quiet.contains("and 33 more") && !quiet.contains('\u{1b}'), "{quiet}");
    assert!(quiet.lines().all(|line| line.chars().count() <= 80), "{quiet}");
    let ends = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ends = &ends;
        let server = &server;
        scope.spawn(move || {
            let mut agent = server.agent();
            while !ends.load(std::sync::atomic::Ordering::Relaxed) {
                agent.get("/small.txt");
            }
        });
        wait_until("a frame shows requests", || !frame().contains("\n0 req/s"));
        ends.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
