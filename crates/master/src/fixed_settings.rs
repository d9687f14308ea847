//! Which settings a reload cannot change: those that only the start of the server uses.

use std::path::PathBuf;

use baton_config::{Admin, Config, Destination, LogSettings, Section, Server, Tls};
use baton_engine::{Tuning, topology};

/// The new configuration with such settings as they were, and the names of those that differ.
pub(super) fn keep_fixed(old: &Config, new: Config) -> (Config, Vec<String>) {
    let kept = Config {
        server: Server {
            drain_timeout_ms: new.server.drain_timeout_ms,
            drain_tunnels_ms: new.server.drain_tunnels_ms,
            watchdog_ms: new.server.watchdog_ms,
            dns_servers: new.server.dns_servers.clone(),
            server_header: new.server.server_header,
            ..old.server.clone()
        },
        // A worker decides at its start how it works.
        send: old.send.clone(),
        cache: old.cache.clone(),
        shared_cache: old.shared_cache.clone(),
        tls: Tls { kernel: old.tls.kernel, ..new.tls.clone() },
        admin: Admin { hosts: new.admin.hosts.clone(), ..old.admin.clone() },
        // One file can replace another while workers write to it; other destinations cannot change.
        log: LogSettings {
            access: exchange(&old.log.access, &new.log.access),
            error: exchange(&old.log.error, &new.log.error),
            ..old.log.clone()
        },
        ..new.clone()
    };
    let mut names = differences(&kept.server, &new.server);
    names.extend(differences(&kept.send, &new.send));
    names.extend(differences(&kept.cache, &new.cache));
    names.extend(differences(&kept.shared_cache, &new.shared_cache));
    names.extend(differences(&kept.tls, &new.tls));
    names.extend(differences(&kept.admin, &new.admin));
    names.extend(differences(&kept.log, &new.log));
    // A worker decides at its start where it may write.
    let is_known = |folder: &PathBuf| old.temporary_folders().iter().any(|known| folder.starts_with(known));
    if !new.temporary_folders().iter().all(is_known) {
        names.push("site.route.temporary_folder".to_owned());
    }
    let is_cached = |config: &Config| config.cached_routes().next().is_some();
    let wants_one = |config: &Config| config.tuning().wants_one_process;
    let shares_a_process = |wants_one_process| {
        let tuning = Tuning { wants_one_process, ..old.tuning() };
        topology(&tuning, &[0, 1]).processes == 1
    };
    if wants_one(&new) && !wants_one(old) && !shares_a_process(false) && shares_a_process(true) {
        // Until then each worker has a cache of its own, and its own view of the nodes.
        let key = if is_cached(&new) { "cache" } else { "cluster" };
        names.push(format!("site.route.{key}"));
    }
    (kept, names)
}

fn exchange(old: &Destination, new: &Destination) -> Destination {
    match (old, new) {
        (Destination::File(_), Destination::File(_)) => new.clone(),
        _ => old.clone(),
    }
}

fn differences<S: Section>(one: &S, other: &S) -> Vec<String> {
    let values = one.write().into_iter().zip(other.write());
    let differing = S::settings().into_iter().zip(values).filter(|(_, (one, other))| one != other);
    differing.map(|(setting, _)| format!("{}.{}", S::NAME, setting.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        Config::from_toml(&format!("{text}\n[[site]]\nroot = '/'\n"))
            .unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn fixed_settings_stay_and_are_named() {
        let old = config("[log]\naccess = '/tmp/a'");
        let new = config(
            "[server]\narchitecture = 'sped'\ndrain_timeout_ms = 5\n[limits]\nranges_max = 3\n[cache]\nfiles_max = 7\n\
             [log]\naccess = '/tmp/b'\nformat = 'json'",
        );
        let (kept, names) = keep_fixed(&old, new.clone());
        assert_eq!(names, ["server.architecture", "cache.files_max", "log.format"]);
        assert_eq!(kept.server.architecture, old.server.architecture);
        assert_eq!(kept.server.drain_timeout_ms, 5);
        assert_eq!(kept.limits, new.limits);
        assert_eq!(kept.log.access, new.log.access);
    }

    #[test]
    fn a_first_cache_needs_a_restart_where_its_process_would_have_the_clients_of_all() {
        let cached = |server: &str| {
            config(&format!(
                "{server}\n[[site]]\nlisten = ':81'\n[[site.route]]\npath = '/'\nproxy = 'http://127.0.0.1:9'\ncache = true"
            ))
        };
        let names = |old: &Config, server: &str| keep_fixed(old, cached(server)).1;
        assert_eq!(names(&config(""), ""), ["site.route.cache"]);
        assert_eq!(names(&cached(""), ""), [""; 0]);
        for server in [
            "[server]\nprocesses = 2",
            "[server]\narchitecture = 'symped'",
            "[server]\narchitecture = 'amped'",
        ] {
            assert_eq!(names(&config(server), server), [""; 0], "{server}");
        }
    }

    #[test]
    fn a_log_cannot_be_switched_on_while_running() {
        let (kept, names) = keep_fixed(&config(""), config("[log]\naccess = '/tmp/b'"));
        assert_eq!(names, ["log.access"]);
        assert_eq!(kept.log.access, Destination::Off);
    }
}
