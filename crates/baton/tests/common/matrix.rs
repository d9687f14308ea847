//! Which variants of a test run: those that find most, or all.
//!
//! Architectures, protocols and sizes multiply. `make test` runs each test where variants differ most, and under one more,
//! which the test's name chooses: the suite as a whole meets every architecture. `BATON_MATRIX=all`, as in `make test-all`,
//! runs every variant at full size. `BATON_MATRIX=amped`, or another architecture, has that one chosen.

use std::fmt::Display;

use baton_engine::ArchitectureName;

use super::ARCHITECTURES;
use super::protocol::Protocol;

/// Passes to a macro the architectures under which every test runs: a module and the word.
macro_rules! usual_architectures {
    ($($macro:ident)::+ ! $($before:tt)*) => {
        $($macro)::+! { $($before)* auto "auto"; pipeline "pipeline"; threads "threads"; }
    };
}

macro_rules! words {
    ($($module:ident $word:literal;)+) => { [$($word),+] };
}

/// Those architectures. They differ most: in `auto`, a loop runs its sessions alone; in `pipeline`, stages hand them to each
/// other; in `threads`, each has a stack.
pub(crate) const USUAL: [&str; 3] = usual_architectures!(words!);

/// The one under which a test runs that takes long.
pub(crate) const DEFAULT: [&str; 1] = [ArchitectureName::ALL[0].name()];

/// Whether every variant runs at full size.
pub(crate) fn all() -> bool {
    matches!(Choice::read(), Choice::All)
}

/// A size of `make test`, or that of `make test-all`.
pub(crate) fn size<T>(usual: T, full: T) -> T {
    if all() { full } else { usual }
}

/// Runs a test of this name under one of the architectures that are not `known`, or under all of them.
pub(crate) fn another(test: &str, known: &[&str], run: impl Fn(&'static str)) {
    for architecture in chosen(test, &others(known)) {
        let _told = FailureNote(&format!("under {architecture}: BATON_MATRIX={architecture} repeats it"));
        run(architecture);
    }
}

/// The known architectures, and those under which [`another`] runs a test.
pub(crate) fn architectures(test: &str, known: &[&'static str]) -> Vec<&'static str> {
    [known, &chosen(test, &others(known))].concat()
}

/// Runs a test of this name with one of several variants, or with all.
pub(crate) fn one_of<T: Copy + Display>(test: &str, variants: &[T], run: impl Fn(T)) {
    for variant in chosen(test, variants) {
        let _told = FailureNote(&format!("variant {variant}, which the name of the test chooses"));
        run(variant);
    }
}

/// The protocols under which [`one_of`] runs a test where HTTP/1 in clear is no question.
pub(crate) const OTHER_PROTOCOLS: [Protocol; 3] = [Protocol::Https, Protocol::H2c, Protocol::H2];

/// The architectures that are not known.
pub(crate) fn others(known: &[&str]) -> Vec<&'static str> {
    ARCHITECTURES.into_iter().filter(|architecture| !known.contains(architecture)).collect()
}

/// What `BATON_MATRIX` says.
enum Choice {
    One,
    All,
    Architecture(&'static str),
}

impl Choice {
    fn read() -> Self {
        let word = std::env::var("BATON_MATRIX").unwrap_or_default();
        let known = || ARCHITECTURES.into_iter().find(|architecture| *architecture == word);
        match &*word {
            "" => Self::One,
            "all" => Self::All,
            _ => Self::Architecture(known().unwrap_or_else(|| {
                panic!("BATON_MATRIX={word}: neither `all` nor one of {}", ARCHITECTURES.join(", "))
            })),
        }
    }
}

/// The variant that the name of a test chooses.
pub(crate) fn by_name<T: Copy>(test: &str, variants: &[T]) -> T {
    variants[(fnv(test) % variants.len() as u64) as usize]
}

fn chosen<T: Copy + Display>(test: &str, variants: &[T]) -> Vec<T> {
    let by_name = by_name(test, variants);
    match Choice::read() {
        Choice::One => vec![by_name],
        Choice::All => variants.to_vec(),
        Choice::Architecture(word) => {
            vec![variants.iter().copied().find(|variant| variant.to_string() == word).unwrap_or(by_name)]
        }
    }
}

/// FNV-1a, whose halves are mixed: a hash that stays the same, so that a failure comes again.
fn fnv(text: &str) -> u64 {
    let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, add);
    (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

/// Says which variant has failed.
struct FailureNote<'a>(&'a str);

impl Drop for FailureNote<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0);
        }
    }
}

#[allow(unused_imports, reason = "each suite uses a part of it")]
pub(crate) use usual_architectures;
