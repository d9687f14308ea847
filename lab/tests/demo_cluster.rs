//! The demonstration of a cluster: it answers rightly, and nothing of it stays, however it ends.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use baton_lab::network::Network;

/// The server, which a build of the workspace puts beside the laboratory.
fn baton() -> Option<PathBuf> {
    let baton = Path::new(env!("CARGO_BIN_EXE_baton-lab")).with_file_name("baton");
    if !baton.is_file() {
        let _ = writeln!(
            std::io::stderr(),
            "LEFT OUT of the demonstration: needs the server: cargo build -p baton"
        );
        return None;
    }
    Some(baton)
}

fn demonstrate(baton: &Path, folder: &Path, more: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_baton-lab"))
        .arg("demo-cluster")
        .arg("--baton")
        .arg(baton)
        .arg("--folder")
        .arg(folder)
        .args(more)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for the line that tells which commands to try: all is running then.
fn wait_until_it_runs(demonstration: &mut Child) {
    let output = BufReader::new(demonstration.stdout.take().unwrap());
    assert!(output.lines().map_while(Result::ok).any(|line| line.starts_with("Things to try")));
}

/// Namespaces and control groups of the process with this number.
fn left(pid: u32) -> Vec<String> {
    let prefix = format!("baton-lab-{pid}-");
    let hierarchies =
        fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten().map(|entry| entry.path());
    let folders = hierarchies.chain(["/sys/fs/cgroup".into(), "/run/netns".into()]);
    let names = folders.filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(&prefix))
        .collect()
}

/// Goal: both clusters answer, and all of it is gone afterwards: after the end, after SIGTERM, and after SIGKILL once
/// another demonstration has run. Method: namespaces and control groups have the number of their process in their names.
#[test]
fn a_demonstration_leaves_nothing_behind() {
    if Network::is_left_out() {
        return;
    }
    let Some(baton) = baton() else { return };
    let folder = tempfile::tempdir().unwrap();

    let mut terminated = demonstrate(&baton, folder.path(), &[]);
    wait_until_it_runs(&mut terminated);
    assert!(left(terminated.id()).len() > 8, "hosts and groups are there while it runs");
    let kill = Command::new("kill").args(["-TERM", &terminated.id().to_string()]).status().unwrap();
    assert!(kill.success());
    terminated.wait().unwrap();
    assert_eq!(left(terminated.id()), [""; 0]);

    let mut killed = demonstrate(&baton, folder.path(), &[]);
    wait_until_it_runs(&mut killed);
    killed.kill().unwrap();
    killed.wait().unwrap();

    let whole = demonstrate(&baton, folder.path(), &["--seconds", "2"]);
    let number = whole.id();
    let output = whole.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    for policy in ["wrr", "lard-h"] {
        assert!(said.contains(&format!("\n{policy}: ")), "{said}");
    }
    assert_eq!(left(number), [""; 0]);
    assert_eq!(left(killed.id()), [""; 0], "the next demonstration removes what a killed one left");
}
