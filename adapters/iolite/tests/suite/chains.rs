//! Chains of programs, by the shell's pipes and by Unix sockets.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use crate::program::{program, shell};

/// Bytes that a checking program has seen, and those of them that it had to read.
fn seen(line: &str) -> (u64, u64) {
    let (all, read) = line.trim().split_once(' ').unwrap();
    (all.parse().unwrap(), read.parse().unwrap())
}

/// Goal: between two programs with the library references travel, whatever the sizes, and many times as much as a pool
/// holds. Method: the reader counts what its system calls read. One piece may go as bytes, before it listens.
#[test]
fn pipes_carry_references() {
    let (all, read) = seen(&shell("stage produce 0 100000000 65536 | stage check"));
    assert_eq!(all, 100_000_000);
    assert!(read < all / 16, "{read} bytes were read");
    let (all, read) = seen(&shell("stage produce 0 30000000 | stage check"));
    assert_eq!(all, 30_000_000);
    assert!(read < all / 4, "{read} bytes were read");
}

/// Goal: a program between two passes on what it gets, and the third returns it by its way.
#[test]
fn references_pass_through_programs() {
    let (all, read) = seen(&shell("stage produce 0 100000000 65536 | stage copy | stage copy | stage check"));
    assert_eq!(all, 100_000_000);
    assert!(read < all / 8, "{read} bytes were read");
}

/// Goal: a file passes through two pipes as ranges; nothing of it is read until a program looks at it, and then each byte once.
#[test]
fn files_pass_as_ranges() {
    let script = "file=$(mktemp); trap 'rm $file' EXIT
        stage produce 0 20000000 >$file; stage copy <$file | stage copy | stage check blind
        stage copy <$file | stage copy | stage check; stage check <$file";
    let output = shell(script);
    let mut lines = output.lines().map(seen);
    let (all, read) = lines.next().unwrap();
    assert_eq!(all, 20_000_000);
    assert!(read < all / 8, "{read} bytes were read");
    for _ in 0..2 {
        let (all, read) = lines.next().unwrap();
        assert_eq!(all, 20_000_000);
        // What the second program got as bytes, before it listened, it passes on in memory.
        assert!(read.abs_diff(all) < all / 8, "{read} bytes were read");
    }
}

/// Goal: other programs get and give bytes, and several writers of a pipe, of both kinds, keep their order.
#[test]
fn other_programs_have_bytes() {
    assert_eq!(shell("stage produce 0 3000000 | wc -c").trim(), "3000000");
    let (all, _) = seen(&shell("stage produce 0 3000000 | cat | stage check"));
    assert_eq!(all, 3_000_000);
    let several = "part() { stage produce $1 1000000 \"${@:2}\"; }
        { part 0 65536; part 1000000 | cat; part 2000000; part 3000000 300 | cat; part 4000000; } | stage check";
    let (all, _) = seen(&shell(several));
    assert_eq!(all, 5_000_000);
    let many = "for part in {0..199}; do stage produce $((part * 20000)) 20000 20000; done | stage check";
    let (all, read) = seen(&shell(many));
    assert_eq!(all, 4_000_000);
    assert!(read < all / 4, "{read} bytes were read");
}

/// Goal: a reader that keeps everything exhausts the pool; the rest comes as bytes, and nothing that it keeps changes, even if its child
/// destroys copies of it.
#[test]
fn a_reader_may_keep_what_it_has() {
    let (all, read) = seen(&shell("stage produce 0 40000000 65536 | stage check hoard"));
    assert_eq!(all, 40_000_000);
    assert!((20_000_000..39_000_000).contains(&read), "{read} bytes were read");
}

/// Goal: a child writes as a program of its own, not over what its parent has lent. Method: both write at the same time.
#[test]
fn a_child_begins_anew() {
    let script = "exec 4>&1; { stage fork 20000000 3>&5 | stage check >&4; } 5>&1 | stage check";
    let output = shell(script);
    let mut all: Vec<u64> = output.lines().map(|line| seen(line).0).collect();
    all.sort_unstable();
    assert_eq!(all, [20_000_000, 20_100_000]);
}

/// Goal: streams of stdio are complete, with the library at both ends, at one, and with a file.
#[test]
fn streams_are_complete() {
    for chain in [
        "stage produce 0 5000000 | stage stdio | stage check",
        "stage produce 0 5000000 | cat | stage stdio | cat | stage check",
    ] {
        let (all, _) = seen(&shell(chain));
        assert_eq!(all, 5_000_000, "{chain}");
    }
}

/// Goal: a reader that ends is noticed as with bytes. Method: the writer has far more to write than anything could hold.
#[test]
fn a_writer_without_reader_ends() {
    let script =
        "set +o pipefail; stage produce 0 100000000000 65536 | { stage copy | head -c 1000000 | wc -c; }";
    assert_eq!(shell(script).trim(), "1000000");
}

/// Goal: Unix sockets carry references, too.
#[test]
fn sockets_carry_references() {
    let (to, from) = UnixStream::pair().unwrap();
    let mut writer = Command::new(program("stage"))
        .args(["produce", "0", "50000000", "65536"])
        .stdout(Stdio::from(OwnedFd::from(to)))
        .spawn()
        .unwrap();
    let reader =
        Command::new(program("stage")).arg("check").stdin(Stdio::from(OwnedFd::from(from))).output().unwrap();
    assert!(writer.wait().unwrap().success());
    let (all, read) = seen(&String::from_utf8(reader.stdout).unwrap());
    assert_eq!(all, 50_000_000);
    assert!(read < all / 8, "{read} bytes were read");
}
