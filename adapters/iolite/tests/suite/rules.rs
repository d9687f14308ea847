//! The rules of the calls.

use std::process::Command;

use crate::program::program;

/// Goal: each rule of the source's appendix holds. Method: a program in C tries it; under valgrind, where that is installed, which
/// finds what is freed twice or never.
#[test]
fn each_rule_holds() {
    let plain = Command::new(program("rules")).output().unwrap();
    let said = String::from_utf8_lossy(&plain.stderr);
    assert!(plain.status.success(), "{said}");
    assert_eq!(plain.stdout.iter().filter(|byte| **byte == b'\n').count(), 10, "a rule each line");
    let valgrind = Command::new("valgrind")
        .args(["--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite", "-q"])
        .arg(program("rules"))
        .output();
    match valgrind {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(_) => println!("LEFT OUT of rules: valgrind is not installed"),
    }
}
