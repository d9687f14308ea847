//! What a server prints once it has started: what it serves, and at which addresses.

use std::fmt::Write as _;
use std::os::fd::OwnedFd;

use baton_config::{Config, RedirectHttps, Site};
use baton_engine::Tuning;
use baton_engine::arch::Topology;
use baton_engine::listen::ListenAddress;
use baton_report::counted;

use super::control::ControlSocket;
use super::listeners::Listeners;
use super::privileges::WorkerUser;

/// The lines.
pub(super) fn announcement(
    config: &Config,
    tuning: &Tuning,
    topology: &Topology,
    listeners: &Listeners,
    user: &WorkerUser,
    control: &Result<ControlSocket, String>,
    admin: &[(ListenAddress, OwnedFd)],
) -> String {
    let workers = counted(topology.processes as u64, "worker");
    let user = match user {
        WorkerUser::Other { name, .. } => format!(" as {name}"),
        WorkerUser::Same(_) => String::new(),
    };
    let mut text = format!(
        "baton {} serves ({} architecture, {workers}{user}, process {})\n",
        env!("CARGO_PKG_VERSION"),
        tuning.architecture,
        std::process::id()
    );
    for site in &config.sites {
        for listen in &site.settings.listen {
            let Some(address) = listeners.actual(&listen.address) else { continue };
            let contents = match site.settings.redirect_https {
                RedirectHttps::Off => contents(site),
                _ if listen.tls => contents(site),
                _ => "redirects to https".to_owned(),
            };
            let scheme = if listen.tls { "https" } else { "http" };
            let _ = writeln!(text, "  {}  {contents}", url(scheme, address, "/"));
        }
    }
    for (address, _) in admin {
        let _ = writeln!(text, "  {}  for monitoring", url("http", address, "/metrics"));
    }
    let _ = match control {
        Ok(door) => writeln!(text, "  control socket: {}", door.name.current().display()),
        Err(why) => writeln!(text, "  control socket: {why}"),
    };
    text
}

fn url(scheme: &str, address: &ListenAddress, path: &str) -> String {
    match address {
        ListenAddress::Tcp(tcp) => format!("{scheme}://{tcp}{path}"),
        ListenAddress::Unix(_) => address.to_string(),
    }
}

fn contents(site: &Site) -> String {
    let mut contents = match &site.files.root {
        Some(root) => root.display().to_string(),
        None => counted(site.routes.len() as u64, "route"),
    };
    if !site.settings.hosts.is_empty() {
        let _ = write!(contents, " for {}", site.settings.hosts.join(", "));
    }
    contents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_without_a_folder_is_its_routes() {
        let told = |routes: usize| {
            let routes: String = (0..routes)
                .map(|n| format!("[[site.route]]\npath = '/{n}'\nrespond = {{ status = 200 }}\n"))
                .collect();
            contents(&Config::from_toml(&format!("[[site]]\n{routes}")).expect("a configuration").sites[0])
        };
        assert_eq!((&*told(1), &*told(2)), ("1 route", "2 routes"));
    }
}
