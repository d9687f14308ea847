//! Which settings a reload cannot change: those that only the start of the server uses.

use baton_config::{Config, Destination, LogSettings, Section, Server, Tls};

/// The new configuration with such settings as they were, and the names of those that differ.
pub(super) fn keep_fixed(old: &Config, new: Config) -> (Config, Vec<String>) {
    let kept = Config {
        server: Server {
            drain_timeout_ms: new.server.drain_timeout_ms,
            watchdog_ms: new.server.watchdog_ms,
            server_header: new.server.server_header,
            ..old.server.clone()
        },
        // A worker decides at its start how it works.
        send: old.send.clone(),
        cache: old.cache.clone(),
        tls: Tls { kernel: old.tls.kernel, ..new.tls.clone() },
        admin: old.admin.clone(),
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
    names.extend(differences(&kept.tls, &new.tls));
    names.extend(differences(&kept.admin, &new.admin));
    names.extend(differences(&kept.log, &new.log));
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
    fn a_log_cannot_be_switched_on_while_running() {
        let (kept, names) = keep_fixed(&config(""), config("[log]\naccess = '/tmp/b'"));
        assert_eq!(names, ["log.access"]);
        assert_eq!(kept.log.access, Destination::Off);
    }
}
