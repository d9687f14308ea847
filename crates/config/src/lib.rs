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

mod acme;
mod acme_plan;
mod address;
mod admin;
mod application;
mod balancers;
mod basic_auth;
mod cache;
mod check;
mod client_addresses;
mod cluster;
mod cluster_check;
mod cluster_etcd;
mod cluster_members;
mod cluster_routes;
mod command;
mod compress;
mod config;
mod configured_origins;
mod cors;
mod cors_plan;
mod documents;
mod documents_of_worker;
mod documents_plan;
mod duration;
mod error;
mod fields;
mod files;
mod guards;
mod include;
mod kind;
mod launch;
pub mod libraries;
mod limits;
mod log;
mod log_fields;
mod log_plan;
mod manual;
mod marking;
mod media_types;
mod method_name;
mod mover_plan;
mod node_kinds;
mod origin_url;
mod origins;
mod plan;
mod proxy;
mod proxy_plan;
mod rate_limit;
mod raw;
mod real_ip;
mod redaction;
mod reference;
mod render;
mod resources;
mod route;
mod route_check;
mod route_path;
mod route_pattern;
mod send;
mod server;
mod setting;
mod shared_cache;
mod shown;
mod site;
mod site_log;
mod source;
mod system;
mod template;
mod text;
mod timeouts;
mod tls;
mod tls_check;
mod tls_files;
mod tls_plan;
mod try_files;
mod unsent_scripts;
mod variables;
mod words;

pub use address::Listen;
pub use admin::Admin;
pub use application::{Application, StopSignal, Target, Transport, passfd_condition, target};
pub use basic_auth::BasicAuth;
pub use cache::Cache;
pub use client_addresses::ClientAddress;
pub use cluster::{Cluster, ClusterNode, Kept, RouteCluster};
pub use cluster_members::source_word;
pub use command::{OWN_EXECUTABLE, Processes, find_program};
pub use compress::Compress;
pub use config::Config;
pub use configured_origins::ConfiguredOrigin;
pub use cors::Cors;
pub use documents::Documents;
pub use documents_of_worker::DocumentsOfWorker;
pub use error::{ConfigError, Source};
pub use files::{CacheRule, Files};
pub use guards::Guards;
pub use launch::Launch;
pub use limits::Limits;
pub use log::{Destination, LogSettings};
pub use log_fields::Format;
pub use manual::{reference_markdown, reference_roff};
pub use marking::{RequestId, Trust};
pub use media_types::MediaTypes;
pub use origin_url::OriginUrl;
pub use origins::{Eject, Health, Origin};
pub use proxy::{OriginTls, Proxy, SendProxyProtocol};
pub use rate_limit::RateLimit;
pub use raw::{Entries, Node, RawConfig, Value, parse_value};
pub use real_ip::{ProxyProtocol, RealIp};
pub use redaction::{HIDDEN, Redaction, without_credentials};
pub use render::default_toml;
pub use resources::{PeersByRoute, ProcessTables, Proofs, Resources};
pub use route::{Route, RouteSettings};
pub use send::{Send, Sendfile};
pub use server::{ControlSocket, Server};
pub use setting::Section;
pub use shared_cache::{RouteCache, SharedCache};
pub use site::Site;
pub use site_log::{AccessLog, OwnLog};
pub use source::ConfigSource;
pub use timeouts::Timeouts;
pub use tls::{CertificateFiles, ClientAuthentication, KernelTls, RedirectHttps, SiteCertificates, Tls};
pub use tls_files::{PLACEHOLDER, PemFiles};
pub use tls_plan::SiteCertificate;
pub use words::{Words, word_of, words_of};
