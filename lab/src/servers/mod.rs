//! Servers as data: what the lab knows of nginx, of Baton or of php-fpm stands in `lab/servers/NAME.toml`.
//!
//! ```text
//! lab/servers/NAME.toml ──> ServerKind        program, arguments, what it can
//! experiment file ────────> ServerSettings    what it must do, settings that differ
//! runner ─────────────────> ServerPlace       folder, address, CPUs, groups, what stands behind it
//!                           kind.start(&settings, &place) ──> RunningServer
//! ```
//!
//! All kinds publish the same paths, so that one load fits all:
//!
//! | path | answered by | ability |
//! |---|---|---|
//! | `/…` | files of the root | `files` |
//! | `/app/…` | the FastCGI application | `fastcgi` |
//! | `/….php` | php-fpm, with scripts of the root | `php` |
//! | `/pass/…` | the origin, asked each time without `/pass` | `proxy` |
//! | `/hit/…` | the origin, asked once without `/hit` | `cache` |
//! | `/…` | an origin: a hash of the URL says which; with `cache`, through it | `nodes` |
//! | `/…` | one of several nodes: the policy of the cluster says which | `cluster` |
//!
//! Back-ends are kinds, too: they listen on a Unix socket instead of an address.

mod ability;
mod configuration;
mod kind;
mod running;
mod settings;

pub use ability::Ability;
pub(crate) use configuration::REPOSITORY;
pub use kind::{ServerKind, names};
pub use running::RunningServer;
pub(crate) use settings::set_of;
pub use settings::{ServerPlace, ServerSettings, SettingTable};
