//! `baton tune` from outside: a log and a configuration in, settings out, and nothing left behind.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
    command.env("TMPDIR", folder.join("temporary")).current_dir(folder);
    command.args(["tune", "-c", "baton.toml", "--log", "access.log"]).args(arguments);
    command
}

fn tune(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().unwrap()
}

/// A site with files and an application, and a log of both.
fn site(targets: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    write("temporary/here", "");
    write("root/index.html", "welcome");
    write("root/page.html", &"text ".repeat(2000));
    write(
        "baton.toml",
        "[server]\ncontrol_socket = \"control\"\n[[site]]\nname = \"shop\"\nlisten = \"127.0.0.1:1\"\nroot = \"root\"\n\
         rate_limit = { requests = 1, per = \"1s\" }\n[[site.route]]\npath = \"/app\"\nproxy = { to = [\"http://127.0.0.1:9\"] }\n\
         [[site.route]]\npath = \"/down\"\nrespond = { status = 503 }\n",
    );
    let line = |(at, target): (usize, &&str)| {
        let (client, second) = (at % 7, at % 60);
        format!(
            "192.0.2.{client} - - [10/Oct/2000:13:55:{second:02} +0000] \"GET {target} HTTP/1.1\" 200 100 \"-\" \"-\"\n"
        )
    };
    write("access.log", &targets.iter().enumerate().map(line).collect::<String>());
    folder
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Goal: a short search ends with an answer, a page with the heat map, and neither a process nor a file of its own. Method: the
/// configuration listens where no user may, and limits rates: copies do not.
#[test]
fn a_search_ends_with_an_answer_and_leaves_nothing_behind() {
    let folder = site(&["/", "/page.html", "/app/x", "/page.html?x=1"].repeat(50));
    let output = tune(folder.path(), &["--minutes", "0.25", "--page", "tune.html"]);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{stderr}");
    for expected in [
        "200 requests for 4 targets",
        "Left out 50 requests for routes that lead elsewhere",
        "The present settings answer up to",
        "What was tried",
    ] {
        assert!(stdout.contains(expected), "{expected} in {stdout}");
    }
    let is_change = stdout.contains("The lines to change:");
    assert!(is_change && stdout.contains(" = ") || stdout.contains("Keep the present settings"), "{stdout}");
    // On a busy machine no settings may serve all clients.
    assert!(["% of the present settings", "unfair: "].iter().any(|found| stderr.contains(found)), "{stderr}");
    let page = fs::read_to_string(folder.path().join("tune.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("connections"));
    let left: Vec<_> = fs::read_dir(folder.path().join("temporary")).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(!folder.path().join("control").exists(), "the server's own control socket was never made");
}

/// Method: the search is interrupted as soon as its first copy runs.
#[test]
fn an_interrupted_search_leaves_nothing_behind() {
    let folder = site(&["/", "/page.html"].repeat(50));
    let search = command(folder.path(), &[]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let copies = || {
        let id = search.id();
        let text = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    while copies().is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let copies = copies();
    kill_process(Pid::from_child(&search), Signal::TERM).unwrap();
    let output = search.wait_with_output().unwrap();
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("stopped before the search was over"), "{}", text(&output.stderr));
    for pid in copies {
        assert!(!Path::new("/proc").join(pid).exists());
    }
    assert_eq!(fs::read_dir(folder.path().join("temporary")).unwrap().count(), 1);
}

#[test]
fn what_cannot_be_tuned_is_refused_with_the_remedy() {
    let only_application = site(&["/app/x", "/app/y"]);
    let (shop, down) = (site(&["/"]), site(&["/down/x"]));
    let cases: [(&Path, &[&str], &str); 5] = [
        (only_application.path(), &[], "replay them with --applications"),
        (down.path(), &[], "a copy answered nothing: status 503 for /down/x"),
        (shop.path(), &["--site", "blog"], "no site has the name or host blog"),
        (shop.path(), &["--minutes", "0"], "between 0.25 and 1440 minutes"),
        (shop.path(), &["--goal", "speed"], "no goal is called speed: rate, p99 or memory"),
    ];
    for (folder, arguments, expected) in cases {
        let output = tune(folder, arguments);
        assert!(!output.status.success());
        assert!(text(&output.stderr).contains(expected), "{arguments:?}: {}", text(&output.stderr));
    }
    let output = tune(shop.path(), &["--log", "absent.log"]);
    assert!(text(&output.stderr).contains("absent.log"), "{}", text(&output.stderr));
}
