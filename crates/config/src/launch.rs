//! The processes of an application that Baton starts: `command` and its settings.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::application::{Application, StopSignal, Target, Transport, temporary_folder};
use super::command::{OWN_EXECUTABLE, Processes};
use super::config::Config;
use super::route::RouteSettings;

/// The processes of an application. Applications with equal launches share them.
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
    /// The user as which they run; `None`: that of the workers.
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
        // Slow uploads hold at most half of the processes, and never the only one.
        let share = self.processes.max.saturating_mul(self.concurrency) / workers.max(1);
        self.streamed_bodies_max.get_or_insert(self.connections_max.min(share) / 2);
        // Its processes are the bound.
        self.connections_max = baton_upstream::CONNECTIONS_LIMIT as u64;
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

    /// Where temporary files are: those of the applications and origins, and the usual one.
    pub fn temporary_folders(&self) -> BTreeSet<PathBuf> {
        let applications = self.applications().map(Application::temporary_folder);
        let routes = self.sites.iter().flat_map(|site| &site.routes);
        let proxies = routes.filter_map(|route| route.settings.proxy.as_ref()?.temporary_folder.clone());
        applications.chain(proxies).chain([temporary_folder(None)]).collect()
    }

    /// This configuration with addresses instead of commands, for each of so many workers, which it names. An
    /// application keeps its command for which `find` has no address.
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

    /// This configuration with all applications behind one Unix socket, without hand-over. Origins are replaced by
    /// [`Resources::stand_in`](crate::Resources::stand_in).
    pub fn with_applications_at(&self, socket: &Path) -> Self {
        let mut config = self.clone();
        for application in config.applications_mut() {
            application.settle(Target::Unix(socket.to_owned()), 1);
            application.transport = Transport::Unix;
        }
        config
    }

    fn applications_mut(&mut self) -> impl Iterator<Item = &mut Application> {
        self.sites.iter_mut().flat_map(|site| &mut site.routes).flat_map(|route| {
            let RouteSettings { fastcgi, scgi, cgi, .. } = &mut route.settings;
            [fastcgi, scgi, cgi].into_iter().flatten()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slow uploads never hold all processes, nor the only one of a worker.
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
