//! Meters against programs whose use is known: one that sleeps, one that spins, one that reads a file.

use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};

use baton_lab::Quantity;
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

fn value(readings: &[Reading], name: Quantity) -> f64 {
    let reading = readings.iter().find(|reading| reading.quantity == name).unwrap();
    reading.value.clone().unwrap_or_else(|why| panic!("{name}: {why}"))
}

/// The value, or a line that says why this machine has none.
fn value_if_here(readings: &[Reading], name: Quantity) -> Option<f64> {
    let reading = readings.iter().find(|reading| reading.quantity == name).unwrap();
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
    let times =
        |readings: &[Reading]| [Quantity::UserUs, Quantity::SystemUs].map(|mode| value(readings, mode));
    let [user, system] = times(&spun);
    assert!(user > 2.0 * system, "{spun:?}");
    assert!(times(&slept).iter().sum::<f64>() < (user + system) / 4.0, "{slept:?}, {spun:?}");
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
    let switches = value(&meters.end(&watched), Quantity::VoluntarySwitches);
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
        value_if_here(&meters.end(&watched), Quantity::SystemCalls)
    };
    let (Some(short), Some(long)) = (count(""), count(&"x".repeat(100))) else { return };
    assert_eq!(long - short, 100.0);
    let with_child = Program::new("/bin/true").measure(&[MeterName::SystemCalls]);
    assert!(value(&with_child, Quantity::SystemCalls) > short + 10.0, "{with_child:?}");
}

/// Goal: memory that a program takes is read. Method: a string of two million bytes.
#[test]
fn memory_that_is_taken_is_read() {
    let mut program = Program::new("text=$(head -c 2000000 /dev/zero | tr '\\0' x)");
    let watched = Watched { processes: vec![program.child.id() as i32], ..Watched::default() };
    let memory =
        || value(&Meters::begin(&[MeterName::Memory], &watched).end(&watched), Quantity::MemoryBytes);
    let before = memory();
    program.work();
    let growth = memory() - before;
    assert!(before > 0.0 && (2e6..20e6).contains(&growth), "{before}, {growth}");
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
    assert!(value(&readings, Quantity::SegmentsSent) >= 3.0, "{readings:?}");
}

/// Goal: copies are told from other work. Method: dd copies zeros through a pipe of the kernel; a shell that spins copies
/// nothing.
#[test]
fn copies_are_told_from_other_work() {
    let copying = "dd if=/dev/zero bs=1M count=400 status=none | cat >/dev/null";
    let copied = Program::new(copying).measure(&[MeterName::Copies]);
    let Some(share) = value_if_here(&copied, Quantity::KernelCopyShare) else { return };
    let spun = Program::new(SPIN).measure(&[MeterName::Copies]);
    assert!(share > 4.0 * value(&spun, Quantity::KernelCopyShare).max(1.0), "{copied:?}, {spun:?}");
}

/// Goal: counters of the processor say what they count or why they are not here, and file caches, too.
#[test]
fn what_is_not_here_says_why() {
    let readings = Program::new(SPIN).measure(&[MeterName::Hardware, MeterName::FileCache]);
    if let Some(instructions) = value_if_here(&readings, Quantity::HardwareInstructions) {
        assert!(instructions > 1e6, "{readings:?}");
    }
    let cache = readings.iter().find(|reading| reading.quantity == Quantity::FileCacheBytes).unwrap();
    assert!(cache.value.as_ref().unwrap_err().contains("no control group"), "{cache:?}");
    assert_eq!(readings.len(), 5);
}
