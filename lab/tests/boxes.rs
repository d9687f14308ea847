//! Boxes: each of their limits is reached on purpose, and the kernel says so.
//!
//! A box takes signals of its process, so each test has a program of its own in it and none a second box.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use baton_lab::network::Network;
use baton_lab::servers::{RunningServer, ServerKind, ServerPlace, ServerSettings};
use baton_lab::{BoxSettings, Boxes, MemoryBound, ServerBox};

/// A shell script that runs in the box.
fn run(script: &str, server_box: &ServerBox, folder: &Path) -> RunningServer {
    let file = folder.join("program.toml");
    let text = format!(
        "title = \"a script\"\nprogram = \"sh\"\ninstall = \"\"\ncan = []\nlistens = \"standard-input\"\n\
         arguments = \"\"\"\n-c\n{script}; sleep 600\n\"\"\"\n"
    );
    fs::write(&file, text).unwrap();
    let kind = ServerKind::load(file.to_str().unwrap()).unwrap();
    let root = server_box.root().unwrap_or(folder).to_owned();
    let place =
        ServerPlace { groups: server_box.groups().to_vec(), ..ServerPlace::new(&folder.join("run"), &root) };
    kind.start(&ServerSettings::default(), &place).unwrap()
}

fn boxes(settings: &str, set_bytes: u64, folder: &Path, fill: impl FnOnce(&Path)) -> Option<Boxes> {
    // Both need root, and a kernel that shows what it keeps apart.
    if Network::is_left_out() {
        return None;
    }
    let settings: BoxSettings = toml::from_str(settings).unwrap();
    let filled = |root: &Path| {
        fill(root);
        Ok(())
    };
    match Boxes::new(settings, set_bytes, folder, filled) {
        Ok(boxes) => Some(boxes),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "LEFT OUT of boxes: {error:#}");
            None
        }
    }
}

fn wait_until(what: &str, reached: impl Fn() -> bool) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !reached() {
        assert!(Instant::now() < limit, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Goal: a program that spins in a tenth of a CPU waits for the rest, but not while the bound is lifted. Method: the kernel
/// counts the periods in which it did.
#[test]
fn a_share_of_a_cpu_is_used_up() {
    let folder = tempfile::tempdir().unwrap();
    let Some(boxes) = boxes("cpu = 0.1", 0, folder.path(), |_| {}) else { return };
    let server_box = boxes.make("spins", folder.path(), None).unwrap();
    assert_eq!(server_box.throttled(), 0);
    let program = run("while :; do :; done", &server_box, folder.path());
    wait_until("it is throttled", || server_box.throttled() > 3);
    server_box.lift().unwrap();
    // The period that has begun ends.
    std::thread::sleep(Duration::from_millis(200));
    let before = server_box.throttled();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(server_box.throttled(), before);
    server_box.bind().unwrap();
    wait_until("it is throttled again", || server_box.throttled() > before + 3);
    drop(program);
    let groups = server_box.groups().to_vec();
    boxes.remove(server_box).unwrap();
    assert!(groups.iter().all(|group| !group.exists()), "{groups:?}");
}

/// Goal: memory is a share of the requested set, where one box may have its own, and a program that takes more is killed.
/// Method: a string of 64 MB in 20 % of 100 MB, while other boxes would have all of it.
#[test]
fn memory_runs_out() {
    let folder = tempfile::tempdir().unwrap();
    let settings = "memory = \"200 % of the requested set\"";
    let Some(boxes) = boxes(settings, 100 << 20, folder.path(), |_| {}) else { return };
    let server_box = boxes.make("takes", folder.path(), Some(MemoryBound::PercentOfSet(20.0))).unwrap();
    assert_eq!(server_box.memory_kills(), 0);
    let program = run("text=$(head -c 64000000 /dev/zero | tr '\\\\0' x) || :", &server_box, folder.path());
    wait_until("it is killed", || server_box.memory_kills() > 0);
    drop(program);
    boxes.remove(server_box).unwrap();
}

/// Goal: a disk reads so many megabytes a second and its box keeps no more of it than it has memory. Method: a program reads
/// 24 MB at 8 MB/s into 12 MiB; a rate bounds the time from below, whatever else the machine does.
#[test]
fn a_disk_is_slow_and_its_cache_bounded() {
    const BYTES: u64 = 24 << 20;
    let folder = tempfile::tempdir().unwrap();
    let settings = "memory = \"12 MiB\"\ndisk_mb_s = 8\nread_ahead_kb = 64";
    let fill = |root: &Path| fs::write(root.join("file"), vec![7; BYTES as usize]).unwrap();
    let Some(boxes) = boxes(settings, BYTES, folder.path(), fill) else { return };
    let server_box = boxes.make("reads", folder.path(), None).unwrap();
    let begin = Instant::now();
    let before = server_box.disk_bytes().unwrap().unwrap();
    let program =
        run("cat {{ root }}/file >/dev/null; echo read; echo >{{ folder }}/end", &server_box, folder.path());
    wait_until("it has read", || folder.path().join("run/end").exists());
    assert!(begin.elapsed() > Duration::from_secs(2), "{:?}", begin.elapsed());
    assert!(server_box.disk_bytes().unwrap().unwrap() - before >= BYTES);
    assert!(server_box.file_bytes() <= 12 << 20, "{}", server_box.file_bytes());
    assert!(server_box.file_bytes() > 1 << 20, "{}", server_box.file_bytes());
    drop(program);
    boxes.remove(server_box).unwrap();
}

/// Goal: bounds that make no sense are refused with what is meant. Method: each is given.
#[test]
fn senseless_bounds_are_refused() {
    let read = |text: &str| toml::from_str::<BoxSettings>(text).map_err(|error| error.to_string());
    let why = read("memory = \"55 %\"").unwrap_err();
    assert!(why.contains("write \"200 MiB\" or \"55 % of the requested set\""), "{why}");
    assert!(read("memry = 1").unwrap_err().contains("memry"));
    assert_eq!(read("memory = \"200 MiB\"").unwrap().memory, Some(MemoryBound::Mib(200)));
    if Network::is_left_out() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let settings = BoxSettings { cpu: Some(2.0), ..BoxSettings::default() };
    let why = Boxes::new(settings, 0, folder.path(), |_| Ok(())).unwrap_err().to_string();
    assert!(why.contains("a whole one"), "{why}");
}
