//! `baton check`: whether a configuration file could be run.

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use baton_config::{Config, ConfigSource, PemFiles, Resources, SiteCertificate, libraries};
use baton_dns::Names;
use baton_engine::{Topology, topology};
use baton_master::kernel_sealing;
use baton_report::{counted, days};
use clap::Args;

use super::browser_advice;
use super::cluster_advice;
use super::config_file::{ConfigFile, load};
use super::handoff_advice;
use super::origin_advice;
use super::output::{Failure, print};

/// Check a configuration file: exit code 1 and every mistake in it, or what it serves
#[derive(Debug, Args)]
pub(super) struct Check {
    #[command(flatten)]
    file: ConfigFile,

    /// Print nothing if all is well
    #[arg(short, long)]
    quiet: bool,
}

impl Check {
    /// Checks the file, and that what it names can be opened.
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let config = load(&ConfigSource::File(self.file.config.clone()))?;
        if self.quiet {
            examine(&config)?;
            return Ok(ExitCode::SUCCESS);
        }
        print(&told(&self.file.config, &config)?)
    }
}

/// What a configuration serves, and what is to be said of it; the file is called by this name.
pub(super) fn told(file: &Path, config: &Config) -> Result<String, Failure> {
    let (certificates, topology) = examine(config)?;
    let names = Names::default();
    let _held = origin_advice::look_up(config, &names)?;
    let advice = baton_master::descriptor_budget(config, &config.tuning(), &topology).advice;
    let advice = advice.map_or(String::new(), |advice| format!("warning: {advice}\n"));
    Ok(summary(file, config, &certificates, &names)
        + &handoff_advice::lines(config)
        + &cluster_advice::lines(config, &names)
        + &shared_cache(config, &topology)
        + &advice)
}

/// Opens what a configuration names, as a server would.
fn examine(config: &Config) -> Result<(Vec<SiteCertificate>, Topology), Failure> {
    // No listener has an id yet: what counts is that folders and pages can be opened.
    let pem_files = PemFiles::read(config)?;
    let certificates = config.certificates(&pem_files)?;
    config.plan(&HashMap::new(), &Resources { pem_files, ..Resources::default() })?;
    libraries::check(config)?;
    let topology = topology(&config.tuning(), &baton_sys::process::allowed_cpus()?);
    baton_master::check_cache_folder(config, &topology)?;
    Ok((certificates, topology))
}

fn summary(file: &Path, config: &Config, certificates: &[SiteCertificate], names: &Names) -> String {
    let mut out = format!("{} is fine\n", file.display());
    let unsent = config.unsent_scripts();
    let sealing = config.has_tls().then(|| kernel_sealing(config));
    for (index, site) in config.sites.iter().enumerate() {
        let addresses: Vec<_> = site.settings.listen.iter().map(ToString::to_string).collect();
        let root = site.files.root.as_ref().map_or("no folder".into(), |root| root.display().to_string());
        let routes = match site.routes.len() {
            0 => String::new(),
            routes => format!(", {}", counted(routes as u64, "route")),
        };
        out.push_str(&format!("  {}: {root}{routes}, on {}\n", site.name(), addresses.join(", ")));
        for one in certificates.iter().filter(|one| one.site == site.name()) {
            out.push_str(&format!("    {}\n", described(one)));
        }
        for (_, script) in unsent.iter().filter(|(of, _)| *of == index) {
            out.push_str(&format!(
                "    scripts below {} are not sent, such as {}: no application runs them; `script_sources = true` sends them \
                 as they are\n",
                script.route,
                script.file.display()
            ));
        }
        for (pattern, file) in site.shallow_cache_rules() {
            out.push_str(&format!(
                "    warning: `{pattern}` in `cache_control` is about the files of one folder, not about {file}: `{pattern}*` is about \
                 folders below, too\n"
            ));
        }
        let has_https = site.settings.listen.iter().any(|listen| listen.tls);
        for route in &site.routes {
            let sealing = sealing.as_ref().filter(|_| has_https);
            if let Some(transport) = browser_advice::transport(config, route, sealing) {
                out.push_str(&format!("    {}: {transport}\n", route.settings.name()));
            }
            for line in origin_advice::lines(config, route, names) {
                out.push_str(&format!("    {line}\n"));
            }
        }
    }
    if let Some(sealing) = sealing {
        out.push_str(&format!("  records sealed by the kernel: {}\n", sealing.told()));
    }
    out
}

/// Who shares the cache of what is answered elsewhere, if there is one.
fn shared_cache(config: &Config, topology: &Topology) -> String {
    if config.cached_routes().next().is_none() {
        return String::new();
    }
    let mib = config.shared_cache.memory_bytes_max >> 20;
    match topology.processes {
        1 => format!("  shared cache: {mib} MiB, one for all clients\n"),
        processes => format!(
            "  shared cache: {mib} MiB in each of {processes} processes, {} MiB together: each fetches and keeps for itself; \
             `architecture = \"auto\"` without `processes` keeps everything once\n",
            mib * processes as u64
        ),
    }
}

/// A certificate in a line, and below what clients will refuse.
pub(super) fn described(one: &SiteCertificate) -> String {
    let (certificate, now) = (&one.certificate, SystemTime::now());
    let mut text = format!(
        "certificate {} ({}, {} left): {}",
        certificate.source,
        certificate.key.word(),
        days(certificate.days_left(now)),
        certificate.names.join(", ")
    );
    for advice in certificate.advice(&one.hosts, now) {
        text.push_str(&format!("\n    warning: {advice}"));
    }
    text
}
