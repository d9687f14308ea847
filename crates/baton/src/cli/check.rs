//! `baton check`: whether a configuration file could be run.

use std::collections::HashMap;
use std::process::ExitCode;
use std::time::SystemTime;

use baton_config::{Config, ConfigSource, PemFiles, Resources, SiteCertificate, libraries, passfd_condition};
use baton_engine::topology;
use clap::Args;

use super::config_file::{ConfigFile, load};
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
        // No listener has an id yet: what counts is that folders and pages can be opened.
        let pem_files = PemFiles::read(&config)?;
        let certificates = config.certificates(&pem_files)?;
        config.plan(&HashMap::new(), &Resources { pem_files, ..Resources::default() })?;
        libraries::check(&config)?;
        if self.quiet {
            return Ok(ExitCode::SUCCESS);
        }
        let tuning = config.tuning();
        let topology = topology(&tuning, &baton_sys::process::allowed_cpus()?);
        let advice = baton_master::descriptor_budget(&config, &tuning, &topology).advice;
        print(
            &(summary(&self.file, &config, &certificates)
                + &advice.map_or(String::new(), |advice| format!("warning: {advice}\n"))),
        )
    }
}

fn summary(file: &ConfigFile, config: &Config, certificates: &[SiteCertificate]) -> String {
    let mut out = format!("{} is fine\n", file.config.display());
    let unsent = config.unsent_scripts();
    for (index, site) in config.sites.iter().enumerate() {
        let addresses: Vec<_> = site.settings.listen.iter().map(ToString::to_string).collect();
        let root = site.files.root.as_ref().map_or("no folder".into(), |root| root.display().to_string());
        let routes = match site.routes.len() {
            0 => String::new(),
            1 => ", 1 route".into(),
            routes => format!(", {routes} routes"),
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
        for route in &site.routes {
            let application = route.settings.application();
            if let Some(condition) = application.and_then(passfd_condition) {
                out.push_str(&format!("    {}: {condition}\n", route.settings.path));
            }
        }
    }
    if config.has_tls() {
        out.push_str(&format!(
            "  records sealed by the kernel: {}\n",
            baton_master::kernel_sealing(config).told
        ));
    }
    out
}

/// A certificate in a line, and below what clients will refuse.
pub(super) fn described(one: &SiteCertificate) -> String {
    let (certificate, now) = (&one.certificate, SystemTime::now());
    let mut text = format!(
        "certificate {} ({}, {} days left): {}",
        certificate.source,
        certificate.key.word(),
        certificate.days_left(now),
        certificate.names.join(", ")
    );
    for advice in certificate.advice(&one.hosts, now) {
        text.push_str(&format!("\n    warning: {advice}"));
    }
    text
}
