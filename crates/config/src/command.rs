//! The command of an application, and how many processes run it.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::duration::Seconds;
use super::kind::{Integer, Kind, Reading};
use super::raw::{Node, Value};
use super::schema::Schema;
use super::shown::Shown;

/// The executable that runs, even if another one has taken its place by now.
pub const OWN_EXECUTABLE: &str = "/proc/self/exe";

/// What runs CGI programs.
pub(crate) const CGI_COMMAND: [&str; 3] = [OWN_EXECUTABLE, "app", "cgi"];

/// How many processes there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processes {
    /// At the least.
    pub min: u64,
    /// At the most.
    pub max: u64,
    /// Seconds without a request after which a process beyond the minimum ends.
    pub idle_s: u64,
}

impl Processes {
    /// Always as many.
    pub const fn fixed(count: u64) -> Self {
        Self { min: count, max: count, idle_s: IDLE_S }
    }
}

/// Longer than the pauses of visitors who go on, shorter than memory would like.
const IDLE_S: u64 = 10;

/// A number, or a range.
pub(crate) struct ProcessesKind;

impl ProcessesKind {
    const COUNT: Integer = Integer(1, 4096);
    const SECONDS: Seconds = Seconds(1, 86_400);
}

impl Kind for ProcessesKind {
    type Value = Processes;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        format!("{} or {{ min = 2, max = 16, idle_s = 10 }}", Self::COUNT.accepted())
    }

    fn schema(&self) -> Schema {
        Schema::either([Self::COUNT.schema(), Schema::table_of(Self::COUNT.schema())])
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Processes> {
        let entries = match node.get_ref() {
            Value::Table(entries) => entries,
            Value::Integer(_) => return Self::COUNT.read(node, reading).map(Processes::fixed),
            _ => return reading.mismatch(node, &self.accepted()),
        };
        let (mut min, mut max, mut idle_s) = (None, None, Some(IDLE_S));
        let mut known = true;
        for (key, value) in entries {
            match key.get_ref().as_str() {
                "min" => min = Self::COUNT.read(value, reading),
                "max" => max = Self::COUNT.read(value, reading),
                "idle_s" => idle_s = Self::SECONDS.read(value, reading),
                _ => {
                    reading.refuse(
                        key.span(),
                        "has a key that it cannot have",
                        "expected min, max or idle_s",
                    );
                    known = false;
                }
            }
        }
        // An unknown key may be one of these, misspelt.
        if known && !["min", "max"].iter().all(|key| entries.contains_key(*key)) {
            reading.refuse(
                node.span(),
                "needs both a min and a max",
                format!("expected {}", self.accepted()),
            );
        }
        let (min, max) = min.zip(max).filter(|_| known)?;
        if min > max {
            reading.refuse(node.span(), "has a min above its max", format!("{min} is more than {max}"));
            return None;
        }
        Some(Processes { min, max, idle_s: idle_s? })
    }

    fn write(&self, value: &Processes) -> toml::Value {
        let number = |number: u64| toml::Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
        if *value == Processes::fixed(value.min) {
            return number(value.min);
        }
        let entries = [("min", value.min), ("max", value.max), ("idle_s", value.idle_s)];
        toml::Value::Table(entries.into_iter().map(|(key, value)| (key.to_owned(), number(value))).collect())
    }
}

/// A program that exists, and its arguments.
pub(crate) struct Command;

impl Kind for Command {
    type Value = Vec<String>;

    const SHOWN: Shown = Shown::Program;

    fn accepted(&self) -> String {
        "an array: a program and its arguments".into()
    }

    fn schema(&self) -> Schema {
        Schema::list_of(Schema::TEXT)
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Vec<String>> {
        let Value::Array(elements) = node.get_ref() else {
            return reading.mismatch(node, &self.accepted());
        };
        let words = elements.iter().enumerate().map(|(index, element)| {
            let Some(word) = element.get_ref().as_str().filter(|word| !word.contains('\0')) else {
                return reading.mismatch(element, "a string");
            };
            let word = if index == 0 {
                find_program(word, reading.base_at(&element.span()))
            } else {
                Ok(word.to_owned())
            };
            word.map_err(|why| reading.refuse(element.span(), "names a program that cannot be run", why)).ok()
        });
        // Reads every word before it gives up, to report all bad ones.
        words.collect::<Vec<_>>().into_iter().collect()
    }

    fn write(&self, value: &Vec<String>) -> toml::Value {
        value.iter().map(String::as_str).collect::<Vec<_>>().into()
    }
}

/// A program as it is to be run: one that is named by a path is relative to `base`.
///
/// # Errors
/// Why it cannot be run.
pub fn find_program(program: &str, base: &Path) -> Result<String, String> {
    if program.contains('/') {
        let path: PathBuf = base.join(program).components().collect();
        return match access(&path, Access::EXEC_OK) {
            Ok(()) if path.is_dir() => Err(format!("{} is a folder", path.display())),
            Ok(()) => Ok(path.display().to_string()),
            Err(error) => Err(format!("{}: {error}", path.display())),
        };
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders)
        .any(|folder| !program.is_empty() && access(folder.join(program), Access::EXEC_OK).is_ok());
    if found { Ok(program.to_owned()) } else { Err("it is in none of the folders of PATH".into()) }
}
