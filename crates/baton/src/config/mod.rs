//! Configuration, in three types.
//!
//! ```text
//! file ───────┐
//!             ├─► RawConfig ──check──► Config ──plan──► engine::Plan + Tuning
//! command line┘   as written,          every setting    trees opened, pages read:
//!                 with places          explicit         made inside each worker
//! ```
//!
//! A setting is declared once, in its section's file, with [`settings!`](setting::settings): the struct, the checks,
//! the reference, the manual page and the default file all come from that list.

mod address;
mod admin;
mod application;
mod cache;
mod check;
mod fields;
mod files;
mod kind;
mod launch;
mod limits;
mod log;
mod manual;
mod media_types;
mod plan;
mod raw;
mod reference;
mod render;
mod report;
mod route;
mod route_path;
mod send;
mod server;
mod setting;
mod site;
mod system;
mod text;
mod timeouts;
mod unsent;
mod words;

use std::path::PathBuf;

use baton_engine::listen::ListenAddress;

pub(crate) use admin::Admin;
pub(crate) use application::{Application, StopSignal, Target, Transport, passfd_condition, target};
pub(crate) use cache::Cache;
pub(crate) use files::{CacheRule, Files};
pub(crate) use launch::{Launch, OWN_EXECUTABLE, Processes, find_program};
pub(crate) use limits::Limits;
pub(crate) use log::{Destination, Format, LogSettings};
pub(crate) use manual::{reference_markdown, reference_roff};
pub(crate) use media_types::MediaTypes;
pub(crate) use plan::{Resources, Rosters};
pub(crate) use raw::{Entries, Node, RawConfig, Value, parse_value};
pub(crate) use render::default_toml;
pub(crate) use report::{ConfigError, Source};
pub(crate) use route::{Route, RouteSettings};
pub(crate) use send::{Send, Sendfile};
pub(crate) use server::{ControlSocket, Server};
pub(crate) use setting::Section;
pub(crate) use site::Site;
pub(crate) use timeouts::Timeouts;
pub(crate) use words::{Words, word_of, words_of};

/// A checked configuration: every setting has a value, all of them make sense together. Paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    /// `[server]`
    pub(crate) server: Server,
    /// `[limits]`
    pub(crate) limits: Limits,
    /// `[timeouts]`
    pub(crate) timeouts: Timeouts,
    /// `[send]`
    pub(crate) send: Send,
    /// `[cache]`
    pub(crate) cache: Cache,
    /// `[log]`
    pub(crate) log: LogSettings,
    /// `[admin]`
    pub(crate) admin: Admin,
    /// `[media_types]`
    pub(crate) media_types: MediaTypes,
    /// `[[site]]`, at least one.
    pub(crate) sites: Vec<Site>,
}

impl Config {
    /// The addresses of all sites, each once, in the order of the file. The place of an address in this list is the
    /// id of its listener, by which a plan names it.
    pub(crate) fn addresses(&self) -> Vec<&ListenAddress> {
        let mut addresses = Vec::new();
        for address in self.sites.iter().flat_map(|site| &site.settings.listen) {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        addresses
    }
}

/// Where a configuration came from, to be read again on reload.
#[derive(Clone, Debug)]
pub(crate) enum ConfigSource {
    /// A file.
    File(PathBuf),
    /// The flags of `baton serve`.
    CommandLine(Box<RawConfig>),
}

impl ConfigSource {
    /// Reads and checks the configuration as it is now.
    ///
    /// # Errors
    /// The file cannot be read, or something in it is wrong.
    pub(crate) fn load(&self) -> Result<Config, ConfigError> {
        match self {
            Self::File(path) => Config::check(&RawConfig::read(path)?),
            Self::CommandLine(raw) => Config::check(raw),
        }
    }
}
