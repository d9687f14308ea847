//! The rules of the calls, and what they leave in memory.

use std::process::Command;

use crate::program::{program, shell};

/// Goal: each rule of the source's appendix holds. Method: a program in C tries it.
#[test]
fn each_rule_holds() {
    let output = Command::new(program("rules")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 12, "a rule each line");
}

/// Goal: nothing is read that was not written, freed twice or never. Method: valgrind watches the rules, and a chain in which
/// references are passed on, copied and kept.
#[test]
fn valgrind_finds_nothing() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("LEFT OUT of valgrind_finds_nothing: valgrind is not installed");
        return;
    }
    let watched = "watched() {
        valgrind -q --error-exitcode=9 --leak-check=full --{show,errors-for}-leak-kinds=definite $(command -v $1) \"${@:2}\"
    }";
    shell(&format!("{watched}; watched rules"));
    let kept = "watched stage produce 0 4500000 65536 | watched stage copy | watched stage check hoard";
    let file = "file=$(mktemp); trap 'rm $file' EXIT
        stage produce 0 300000 >$file; watched stage copy <$file | watched stage stdio | watched stage check";
    for script in [kept, file] {
        shell(&format!("{watched}; {script}"));
    }
}
