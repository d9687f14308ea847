//! Documents that migrate between servers, by the links that lead to them: when, which one, and to whom.
//!
//! Distributed Cooperative Web Servers (S. Baker, B. Moon, *Distributed cooperative Web servers*, Computer Networks 31,
//! 1999) need no front-end. A *home server* owns a site. While it is busier than a *peer* (a co-op server of the paper), it
//! lends documents to the peer, one at a time, and rewrites the links in the pages that lead to them. Clients follow
//! the links, and the load follows the clients. *Well-known entry points* stay at home: links to them are in the world, where
//! no server can rewrite them.
//!
//! ```text
//!   requests served ─┐               ┌─► Migrate { document, to }
//!   loads of peers ──┼─► HomeServer ─┤
//!   silence, time ───┘               └─► Recall { document, from, why }
//! ```
//!
//! The machine decides and keeps the books. Its caller sends what it decides, rewrites links
//! ([`HomeServer::links_from`]) and redirects who comes by an old one ([`HomeServer::location`]).
//!
//! ```
//! use baton_dispatch::migration::{HomeServer, MigrationSettings, Move};
//!
//! let mut home = HomeServer::new(MigrationSettings::default(), 0);
//! let index = home.insert(true).expect("a place is free");
//! let photo = home.insert(false).expect("a place is free");
//! assert!(home.set_links(index, &[photo]));
//! let peer = home.join().expect("a place is free");
//!
//! home.handle_load(peer, 0, 0);
//! for _ in 0..500 {
//!     home.handle_served(Some(photo), 1, 20_000);
//! }
//! home.handle_timeout(home.poll_timeout());
//! assert_eq!(home.poll_move(), Some(Move::Migrate { document: photo, to: peer }));
//! ```

mod graph;
mod home_server;
mod peers;
mod selection;
mod settings;

pub use graph::{DocumentId, Location};
pub use home_server::{HomeServer, Move, WhyRecalled};
pub use peers::PeerId;
pub use settings::{LoadMetric, MigrationSettings};
