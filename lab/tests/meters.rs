//! Meters against programs whose use is known: one that sleeps, one that spins, one that reads a file.

use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};

use baton_lab::meters::{MeterName, Meters, Reading, Watched};

/// A shell that does its work when it reads a line, says so, and waits for the next line.
struct Program {
    child: Child,
    folder: tempfile::TempDir,
}

impl Program {
    fn new(work: &str) -> Self {
        let script = format!("while read line; do {work}; echo done; done");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        Self { child: shell.spawn().unwrap(), folder: tempfile::tempdir().unwrap() }
    }

    /// Lets it work once, until it waits for more: the call in which it waits belongs to this work, not to the next.
    fn work(&mut self) {
        writeln!(self.child.stdin.as_mut().unwrap(), "go").unwrap();
        let mut said = [0; 5];
        std::io::Read::read_exact(self.child.stdout.as_mut().unwrap(), &mut said).unwrap();
        assert_eq!(&said, b"done\n");
        let stat = format!("/proc/{}/stat", self.child.id());
        while !fs::read_to_string(&stat).unwrap().contains(") S ") {
            std::thread::yield_now();
        }
    }

    /// The readings of one piece of work; the work before them has loaded all that it needs.
    fn measure(&mut self, names: &[MeterName]) -> Vec<Reading> {
        self.work();
        let watched = Watched {
            processes: vec![self.child.id() as i32],
            cpus: vec![0],
            folder: self.folder.path().to_owned(),
            ..Watched::default()
        };
        let meters = Meters::begin(names, &watched);
        self.work();
        meters.end(&watched)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn value(readings: &[Reading], name: &str) -> f64 {
    let reading = readings.iter().find(|reading| reading.name == name).unwrap();
    reading.value.clone().unwrap_or_else(|why| panic!("{name}: {why}"))
}

/// The value, or a line that says why this machine has none.
fn value_if_here(readings: &[Reading], name: &str) -> Option<f64> {
    let reading = readings.iter().find(|reading| reading.name == name).unwrap();
    match &reading.value {
        Ok(value) => Some(*value),
        Err(why) => {
            assert!(why.len() > 10, "a reason, not {why:?}");
            let _ = writeln!(std::io::stderr(), "LEFT OUT: {name}: {why}");
            None
        }
    }
}

const SPIN: &str = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";

/// Goal: a program that spins in user mode uses user time, one that sleeps none. Method: both, with the same meter.
#[test]
fn spinning_is_user_time_and_sleeping_is_none() {
    let spun = Program::new(SPIN).measure(&[MeterName::Cpu]);
    let slept = Program::new("sleep 0.2").measure(&[MeterName::Cpu]);
    let (cpu, user, system) = (value(&spun, "cpu_s"), value(&spun, "user_s"), value(&spun, "system_s"));
    assert!(user > 2.0 * system, "{spun:?}");
    assert!((cpu - user - system).abs() < 1e-9, "{spun:?}");
    assert!(value(&slept, "cpu_s") < cpu / 4.0, "{slept:?}, {spun:?}");
}

/// Goal: a switch for each time that the program waits. Method: eight pieces of work more are eight waits more, each for a child:
/// a line to read may be there already.
#[test]
fn each_wait_is_a_voluntary_switch() {
    let mut program = Program::new("sleep 0.02");
    program.work();
    let watched = Watched { processes: vec![program.child.id() as i32], ..Watched::default() };
    let meters = Meters::begin(&[MeterName::Switches], &watched);
    (0..8).for_each(|_| program.work());
    let switches = value(&meters.end(&watched), "voluntary_switches");
    assert!((8.0..80.0).contains(&switches), "{switches}");
}

/// Goal: system calls are counted exactly, and those of children with them. Method: `read` of dash takes a byte a call, so
/// that each piece of work is the same number of calls, and a hundred bytes more are a hundred calls more.
#[test]
fn system_calls_are_exact() {
    let count = |line: &str| {
        let mut program = Program::new(":");
        program.work();
        let watched = Watched { processes: vec![program.child.id() as i32], ..Watched::default() };
        let meters = Meters::begin(&[MeterName::SystemCalls], &watched);
        program.child.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
        program.work();
        value_if_here(&meters.end(&watched), "system_calls")
    };
    let (Some(short), Some(long)) = (count(""), count(&"x".repeat(100))) else { return };
    assert_eq!(long - short, 100.0);
    let with_child = Program::new("/bin/true").measure(&[MeterName::SystemCalls]);
    assert!(value(&with_child, "system_calls") > short + 10.0, "{with_child:?}");
}

/// Goal: bytes from a disk are those of the file. Method: a file whose pages are not in memory; a second reading is from
/// memory.
#[test]
fn reading_a_file_is_seen_once() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = place.path().join("file");
    fs::write(&file, vec![7; 1 << 20]).unwrap();
    // dash reads by itself: the first megabyte of the file, one line.
    let work = format!("exec 3<{}; read text <&3 || :; exec 3<&-", file.display());
    let read = |evict: bool| {
        let mut program = Program::new(&work);
        program.work();
        if evict {
            let status = Command::new("dd")
                .arg(format!("of={}", file.display()))
                .args(["oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none", "if=/dev/null"])
                .status()
                .unwrap();
            assert!(status.success());
        }
        let watched = Watched { processes: vec![program.child.id() as i32], ..Watched::default() };
        let meters = Meters::begin(&[MeterName::Waiting], &watched);
        program.work();
        value(&meters.end(&watched), "disk_read_bytes")
    };
    assert_eq!(read(false), 0.0);
    let bytes = read(true);
    if bytes == 0.0 {
        let _ = writeln!(std::io::stderr(), "LEFT OUT: this file system keeps pages that are written");
        return;
    }
    assert_eq!(bytes, f64::from(1 << 20));
}

/// Goal: memory that a program takes is growth. Method: a string of two million bytes.
#[test]
fn memory_that_is_taken_is_growth() {
    let mut program = Program::new("text=$(head -c 2000000 /dev/zero | tr '\\0' x)");
    let watched = Watched { processes: vec![program.child.id() as i32], ..Watched::default() };
    let meters = Meters::begin(&[MeterName::Memory], &watched);
    program.work();
    let readings = meters.end(&watched);
    let growth = value(&readings, "memory_growth_bytes");
    assert!((2e6..20e6).contains(&growth), "{readings:?}");
    assert!(value(&readings, "memory_bytes") > growth);
}

/// Goal: segments of TCP are counted in the network of the process. Method: this test sends over the loopback device.
#[test]
fn segments_are_counted() {
    let mut program = Program::new(":");
    program.work();
    let watched = Watched { processes: vec![program.child.id() as i32], ..Watched::default() };
    let meters = Meters::begin(&[MeterName::Packets], &watched);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    drop((stream, listener));
    let readings = meters.end(&watched);
    assert!(value(&readings, "segments_sent") >= 3.0, "{readings:?}");
}

/// Goal: copies are told from other work. Method: dd copies zeros through a pipe of the kernel; a shell that spins copies
/// nothing.
#[test]
fn copies_are_told_from_other_work() {
    let copying = "dd if=/dev/zero bs=1M count=400 status=none | cat >/dev/null";
    let copied = Program::new(copying).measure(&[MeterName::Copies]);
    let Some(share) = value_if_here(&copied, "kernel_copy_share") else { return };
    let spun = Program::new(SPIN).measure(&[MeterName::Copies]);
    assert!(value(&spun, "user_share") > 50.0, "{spun:?}");
    assert!(share > 4.0 * value(&spun, "kernel_copy_share").max(1.0), "{copied:?}, {spun:?}");
}

/// Goal: counters of the processor say what they count or why they are not here, and file caches, too.
#[test]
fn what_is_not_here_says_why() {
    let readings = Program::new(SPIN).measure(&[MeterName::Hardware, MeterName::FileCache]);
    if let Some(instructions) = value_if_here(&readings, "instructions") {
        assert!(instructions > 1e6, "{readings:?}");
    }
    let cache = readings.iter().find(|reading| reading.name == "file_cache_bytes").unwrap();
    assert!(cache.value.as_ref().unwrap_err().contains("no control group"), "{cache:?}");
    assert_eq!(readings.len(), 5);
}
