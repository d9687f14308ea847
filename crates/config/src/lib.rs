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
pub mod libraries;
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

pub use admin::Admin;
pub use application::{Application, StopSignal, Target, Transport, passfd_condition, target};
pub use cache::Cache;
pub use files::{CacheRule, Files};
pub use launch::{Launch, OWN_EXECUTABLE, Processes, find_program};
pub use limits::Limits;
pub use log::{Destination, Format, LogSettings};
pub use manual::{reference_markdown, reference_roff};
pub use media_types::MediaTypes;
pub use plan::{Resources, Rosters};
pub use raw::{Entries, Node, RawConfig, Value, parse_value};
pub use render::default_toml;
pub use report::{ConfigError, Source};
pub use route::{Route, RouteSettings};
pub use send::{Send, Sendfile};
pub use server::{ControlSocket, Server};
pub use setting::Section;
pub use site::Site;
pub use timeouts::Timeouts;
pub use words::{Words, word_of, words_of};

/// A checked configuration: every setting has a value, all of them make sense together. Paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// `[server]`
    pub server: Server,
    /// `[limits]`
    pub limits: Limits,
    /// `[timeouts]`
    pub timeouts: Timeouts,
    /// `[send]`
    pub send: Send,
    /// `[cache]`
    pub cache: Cache,
    /// `[log]`
    pub log: LogSettings,
    /// `[admin]`
    pub admin: Admin,
    /// `[media_types]`
    pub media_types: MediaTypes,
    /// `[[site]]`, at least one.
    pub sites: Vec<Site>,
}

impl Config {
    /// The addresses of all sites, each once, in the order of the file. The place of an address in this list is the
    /// id of its listener, by which a plan names it.
    pub fn addresses(&self) -> Vec<&ListenAddress> {
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
pub enum ConfigSource {
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
    pub fn load(&self) -> Result<Config, ConfigError> {
        match self {
            Self::File(path) => Config::check(&RawConfig::read(path)?),
            Self::CommandLine(raw) => Config::check(raw),
        }
    }
}
