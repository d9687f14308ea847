//! What says which processes of an application Baton starts: `command` and what belongs to it.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::application::{Application, StopSignal, Target};
use super::kind::{Integer, Kind, Reading};
use super::raw::{Node, Value};
use super::{Config, RouteSettings};

/// The processes of an application. Applications for which it is the same have the same processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How many there are.
    pub processes: Processes,
    /// How many requests each answers at a time.
    pub concurrency: u64,
    /// Variables beside the few that are always there.
    pub environment: Vec<(String, String)>,
    /// Where they begin.
    pub directory: Option<PathBuf>,
    /// As whom they run; nobody: as the workers do.
    pub user: Option<String>,
    /// After how many seconds each is replaced.
    pub lifetime_s: Option<u64>,
    /// After how many requests.
    pub requests_max: Option<u64>,
    /// What asks them to end.
    pub stop_signal: StopSignal,
    /// How many seconds that may take.
    pub grace_s: u64,
    /// Whether they get the preload library.
    pub preload: bool,
    /// Whether they get our `libfcgi`.
    pub dropin: bool,
}

impl Launch {
    /// The name of the program.
    pub fn name(&self) -> &str {
        // Baton's own are known by what they do, not by the name of the executable.
        let shown = match self.command.as_slice() {
            [program, _, what, ..] if program == OWN_EXECUTABLE => what,
            [program, ..] => program,
            [] => "",
        };
        shown.rsplit('/').next().unwrap_or_default()
    }
}

/// The executable that runs, even if another one has taken its place by now.
pub const OWN_EXECUTABLE: &str = "/proc/self/exe";

/// What runs CGI programs.
pub(crate) const CGI_COMMAND: [&str; 3] = [OWN_EXECUTABLE, "app", "cgi"];

impl Application {
    /// What is to be started for it, if anything is.
    pub fn launch(&self) -> Option<Launch> {
        (!self.command.is_empty()).then(|| Launch {
            command: self.command.clone(),
            processes: self.processes,
            concurrency: self.concurrency,
            environment: self.environment.clone(),
            directory: self.directory.clone(),
            user: self.user.clone(),
            lifetime_s: self.lifetime_s,
            requests_max: self.requests_max,
            stop_signal: self.stop_signal,
            grace_s: self.grace_s,
            preload: self.preload,
            dropin: self.dropin,
        })
    }

    /// Puts an address in the place of the command. `workers` share the application.
    fn settle(&mut self, to: Target, workers: u64) {
        // Clients that send slowly never have more than half of the processes, and never the only one.
        let share = self.processes.max.saturating_mul(self.concurrency) / workers.max(1);
        self.streamed_bodies_max.get_or_insert(self.connections_max.min(share) / 2);
        // Its processes are the bound.
        self.connections_max = baton_gateway::CONNECTIONS_LIMIT as u64;
        self.to = Some(to);
        self.command.clear();
    }
}

impl Config {
    /// All applications.
    pub fn applications(&self) -> impl Iterator<Item = &Application> {
        self.sites.iter().flat_map(|site| &site.routes).flat_map(|route| {
            let RouteSettings { fastcgi, scgi, cgi, .. } = &route.settings;
            [fastcgi, scgi, cgi].into_iter().flatten()
        })
    }

    /// The same configuration with addresses instead of commands, for each of so many workers, which it names. An application keeps its
    /// command for which `find` has no address.
    pub fn settled(&self, workers: u64, find: impl Fn(&Launch) -> Option<Target>) -> Self {
        let mut config = self.clone();
        config.server.processes = Some(workers);
        for application in config.applications_mut() {
            if let Some(to) = application.launch().as_ref().and_then(&find) {
                application.settle(to, workers);
            }
        }
        config
    }

    /// The same configuration with applications that nobody can reach.
    pub fn without_applications(&self) -> Self {
        let mut config = self.clone();
        config
            .applications_mut()
            .for_each(|application| application.settle(Target::Unix(PathBuf::from("/nonexistent")), 1));
        config
    }

    fn applications_mut(&mut self) -> impl Iterator<Item = &mut Application> {
        self.sites.iter_mut().flat_map(|site| &mut site.routes).flat_map(|route| {
            let RouteSettings { fastcgi, scgi, cgi, .. } = &mut route.settings;
            [fastcgi, scgi, cgi].into_iter().flatten()
        })
    }
}

/// How many processes there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processes {
    /// At the least.
    pub min: u64,
    /// At the most.
    pub max: u64,
    /// For how many seconds one that is more than the least has had nothing to do when it ends.
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
    const SECONDS: Integer = Integer(1, 86_400);
}

impl Kind for ProcessesKind {
    type Value = Processes;

    fn accepted(&self) -> String {
        format!("{} or {{ min = 2, max = 16, idle_s = 10 }}", Self::COUNT.accepted())
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Processes> {
        let entries = match node.get_ref() {
            Value::Table(entries) => entries,
            Value::Integer(_) => return Self::COUNT.read(node, reading).map(Processes::fixed),
            _ => {
                reading.mismatch(node, &self.accepted());
                return None;
            }
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

    fn accepted(&self) -> String {
        "an array: a program and its arguments".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Vec<String>> {
        let Value::Array(elements) = node.get_ref() else {
            reading.mismatch(node, &self.accepted());
            return None;
        };
        let words = elements.iter().enumerate().map(|(index, element)| {
            let Some(word) = element.get_ref().as_str().filter(|word| !word.contains('\0')) else {
                reading.mismatch(element, "a string");
                return None;
            };
            let word = if index == 0 { find_program(word, reading.base) } else { Ok(word.to_owned()) };
            word.map_err(|why| reading.refuse(element.span(), "names a program that cannot be run", why)).ok()
        });
        // Every word is read before the first bad one counts, so that all of them are reported.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients that send slowly never have all processes, nor the only one of a worker.
    #[test]
    fn half_of_a_workers_share_may_be_held_by_uploads() {
        for (processes, concurrency, workers, expected) in
            [(1, 1, 1, 0), (2, 1, 1, 1), (4, 1, 2, 1), (4, 1, 8, 0), (2, 8, 2, 4)]
        {
            let processes = Processes::fixed(processes);
            let mut application = Application { processes, concurrency, ..Application::default() };
            application.settle(Target::Unix("/run/app.sock".into()), workers);
            assert_eq!(application.streamed_bodies_max, Some(expected));
        }
        let mut application = Application { streamed_bodies_max: Some(7), ..Application::default() };
        application.settle(Target::Unix("/run/app.sock".into()), 1);
        assert_eq!(application.streamed_bodies_max, Some(7), "as it was said");
    }
}
