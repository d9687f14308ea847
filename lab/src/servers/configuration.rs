//! From the templates of a kind to a command line, an environment and a configuration file.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use rustix::process::{Resource, getrlimit, getuid};
use serde_json::json;

use super::kind::{ListensOn, ServerKind};
use super::settings::{ServerPlace, ServerSettings};
use crate::rig::{allowed_cpus, output_of};

/// What a server is started with.
#[derive(Debug)]
pub(super) struct CommandLine {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
    /// How many processes share the socket on their standard input.
    pub(super) processes: usize,
}

/// The socket of a back-end in this folder.
pub(super) fn socket(folder: &Path) -> PathBuf {
    folder.join("socket")
}

impl CommandLine {
    /// Renders the templates, and writes the configuration into the place's folder.
    ///
    /// # Errors
    /// If the kind cannot do what is wanted, the place lacks something for it, or a template is wrong.
    pub(super) fn render(
        kind: &ServerKind,
        settings: &ServerSettings,
        place: &ServerPlace<'_>,
        address: SocketAddr,
    ) -> Result<Self> {
        if let Some(ability) = kind.cannot(settings) {
            bail!("{} cannot do {ability}", kind.name);
        }
        for ability in &settings.needs {
            if let Some(what) = place.lacks(*ability).filter(|_| !kind.embeds(*ability, settings)) {
                bail!("{}: {ability} needs {what}", kind.name);
            }
        }
        let set = kind.complete(settings)?;
        let folder = &place.folder;
        let configuration = folder.join("configuration");
        let program = match kind.build.is_empty() {
            true => kind.installed()?,
            false => folder.join("program"),
        };
        let processes = set.get("processes").and_then(toml::Value::as_integer).unwrap_or(1);
        let is_root = getuid().is_root();
        // What templates can name.
        let variables = Value::from(Serde(json!({
            "needs": settings.needs,
            "set": set,
            "folder": folder,
            "configuration": configuration,
            "program": program,
            "repository": REPOSITORY,
            "root": place.root,
            "address": address,
            "ip": address.ip(),
            "port": address.port(),
            "socket": socket(folder),
            "log": folder.join("access.log"),
            "user": if is_root { "root" } else { "nobody" },
            "is_root": is_root,
            "cpus": if place.cpus.is_empty() { allowed_cpus()?.len() } else { place.cpus.len() },
            "descriptors": getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX).min(DESCRIPTORS_MAX),
            "certificate": place.certificate.map(|files| &files.chain),
            "key": place.certificate.map(|files| &files.key),
            "origins": place.origins,
            "registry": place.registry,
            "fastcgi": place.fastcgi,
            "php": place.php,
        })));
        let engine = engine();
        let words = |name: &str, text: &str| -> Result<Vec<String>> {
            let text = engine.render_named_str(&format!("{}, {name}", kind.name), text, &variables)?;
            Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
        };
        if let Some((name, text)) = kind.configuration()? {
            fs::write(&configuration, engine.render_named_str(name, &text, &variables)?)
                .with_context(|| configuration.display().to_string())?;
        }
        build(&words("build", &kind.build)?)?;
        let mut environment = Vec::new();
        for (name, text) in &kind.environment {
            let value = engine.render_named_str(&format!("{}, {name}", kind.name), text, &variables)?;
            environment.extend((!value.is_empty()).then(|| (name.clone(), value)));
        }
        let arguments = words("arguments", &kind.arguments)?;
        let processes = match kind.listens {
            ListensOn::StandardInput => usize::try_from(processes).context("processes")?,
            ListensOn::Address | ListensOn::Socket => 1,
        };
        Ok(Self { program, arguments, environment, processes })
    }
}

/// Runs the command that makes the executable, if the kind has one.
fn build(words: &[String]) -> Result<()> {
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    output_of(Command::new(program).args(arguments)).map(drop)
}

/// The template engine, to which a name that is not there is an error.
fn engine() -> Environment<'static> {
    let mut engine = Environment::new();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    engine.set_auto_escape_callback(|_| AutoEscape::None);
    engine.add_filter("toml", |value: Serde<toml::Value>| value.to_string());
    engine
}

/// Where the sources are.
pub(crate) const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// Some servers allocate a table for every descriptor that they might get.
const DESCRIPTORS_MAX: u64 = 19_900;
