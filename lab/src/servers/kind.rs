//! A kind of server: its file, its program, and whether it can do what an experiment wants.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::ability::Ability;
use super::settings::{ServerSettings, SettingTable};
use crate::rig::{find_program, names_in, search_path};

/// A kind of server, as `lab/servers/NAME.toml` describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerKind {
    /// For tables: `nginx`, `Apache (event)`.
    pub title: String,
    /// The name of its executable, or what stands for a family of names: `php-fpm*`.
    program: String,
    /// The command that installs it.
    install: String,
    /// Arguments that print its version.
    #[serde(default)]
    version: Vec<String>,
    /// What it can do.
    can: BTreeSet<Ability>,
    /// Where it listens.
    #[serde(default)]
    pub(super) listens: ListensOn,
    /// Template of a command that makes the executable `{{ program }}`, a word a line.
    #[serde(default)]
    pub(super) build: String,
    /// Template of its arguments, one a line.
    pub(super) arguments: String,
    /// Environment variables, by templates; empty ones are left out.
    #[serde(default)]
    pub(super) environment: BTreeMap<String, String>,
    /// The template of its configuration, a file beside this one.
    #[serde(default)]
    configuration: Option<String>,
    /// Settings that experiments may change, with their defaults.
    #[serde(default)]
    settings: SettingTable,
    /// By ability, the setting with which it needs nothing beside it for that.
    #[serde(default)]
    embeds: BTreeMap<Ability, String>,
    /// Whether it checks settings with a dot in their name itself.
    #[serde(default)]
    checks_settings: bool,
    /// As it was asked for: `nginx`, `baton@/opt/baton`.
    #[serde(skip)]
    pub name: String,
    #[serde(skip)]
    file: PathBuf,
    /// Instead of the program of this name in the search path.
    #[serde(skip)]
    executable: Option<PathBuf>,
}

/// What a server listens on.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ListensOn {
    /// An address.
    #[default]
    Address,
    /// A Unix socket, which it makes.
    Socket,
    /// A Unix socket that its processes get as standard input: FastCGI's convention.
    StandardInput,
}

/// Names of all kinds that have a file.
///
/// # Errors
/// If the checkout that the lab was built from is gone.
pub fn names() -> Result<Vec<String>> {
    names_in(FOLDER)
}

impl ServerKind {
    /// The kind of this name. `NAME@PATH` has another executable; a name that ends in `.toml` is a file of the user.
    ///
    /// # Errors
    /// If there is no such kind, or its file is wrong, with line and column.
    pub fn load(name: &str) -> Result<Self> {
        let (kind, executable) = match name.split_once('@') {
            Some((kind, path)) => (kind, Some(PathBuf::from(path))),
            None => (name, None),
        };
        let file = match kind.ends_with(".toml") {
            true => PathBuf::from(kind),
            false => Path::new(FOLDER).join(format!("{kind}.toml")),
        };
        if !file.is_file() {
            bail!("there is no server {kind:?}; there are {}", names()?.join(", "));
        }
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let kind: Self = toml::from_str(&text).with_context(|| file.display().to_string())?;
        Ok(Self { name: name.to_owned(), file, executable, ..kind })
    }

    /// Whether it can do this.
    pub fn can(&self, ability: Ability) -> bool {
        self.can.contains(&ability)
    }

    /// The first thing that is wanted and that it cannot do.
    pub fn cannot(&self, settings: &ServerSettings) -> Option<Ability> {
        settings.needs.difference(&self.can).next().copied()
    }

    /// Its executable; for one that is built at each start, the program that builds it.
    ///
    /// # Errors
    /// If it is not installed, with the command that installs it.
    pub fn installed(&self) -> Result<PathBuf> {
        let program = self.build.split_whitespace().next().unwrap_or(&self.program);
        match &self.executable {
            Some(path) => {
                let path = path.canonicalize().with_context(|| path.display().to_string())?;
                ensure!(path.is_file(), "{} is no executable", path.display());
                Ok(path)
            }
            None => {
                find_program(program).with_context(|| format!("{program} is not installed: {}", self.install))
            }
        }
    }

    /// The first line that its executable says about its version; empty if it says none.
    ///
    /// # Errors
    /// If it is not installed or cannot be run.
    pub fn version(&self) -> Result<String> {
        if self.version.is_empty() {
            return Ok(String::new());
        }
        let program = self.installed()?;
        let output = Command::new(&program).args(&self.version).env("PATH", search_path()).output();
        let output = output.with_context(|| program.display().to_string())?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        Ok(said.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned())
    }

    /// The settings with their defaults.
    ///
    /// # Errors
    /// If one has a name that the kind does not know.
    pub(super) fn complete(&self, settings: &ServerSettings) -> Result<SettingTable> {
        let mut complete = self.settings.clone();
        for (name, value) in &settings.set {
            let known = complete.contains_key(name) || (self.checks_settings && name.contains('.'));
            if !known {
                let known: Vec<_> = self.settings.keys().map(String::as_str).collect();
                bail!("{} has no setting {name:?}; it has {}", self.name, known.join(", "));
            }
            complete.insert(name.clone(), value.clone());
        }
        Ok(complete)
    }

    /// Whether the ability needs nothing beside the server with these settings.
    pub(super) fn embeds(&self, ability: Ability, settings: &ServerSettings) -> bool {
        self.embeds.get(&ability).is_some_and(|name| settings.set.contains_key(name))
    }

    /// Name and text of the template of its configuration, if it reads one.
    pub(super) fn configuration(&self) -> Result<Option<(&str, String)>> {
        let Some(name) = &self.configuration else { return Ok(None) };
        let file = self.file.with_file_name(name);
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        Ok(Some((name, text)))
    }
}

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/servers");
