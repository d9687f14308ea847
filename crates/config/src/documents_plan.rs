//! From the `documents` of a site to the routes that serve copies, and to what the process of documents is told.

use std::io;
use std::path::Path;
use std::sync::Arc;

use baton_documents::{
    COPIES, FilesSettings, Key, Origin, SIGNATURE_FIELD, Settings, SiteSettings, WORDS_BYTES_MAX,
};
use baton_engine::place::Place;
use baton_engine::plan::{self, Action};
use baton_engine::{Copies, Lending};
use baton_http::FieldRules;
use baton_http::origin::HostRule;

use super::config::Config;
use super::documents::Documents as Configured;
use super::files::Files;
use super::guards::Guards;
use super::origin_url::OriginUrl;
use super::origins::Origin as ConfiguredOrigin;
use super::proxy::{OriginTls, Proxy};
use super::proxy_plan;
use super::resources::{Resources, ResponseBounds};
use super::route::{Route, RouteSettings};
use super::shared_cache::RouteCache;
use super::site::Site;
use super::tls_files::PemFiles;

/// Lets the documents of a site move, and adds the routes of others' copies.
///
/// # Errors
/// A key that has not been read, or is none.
pub(super) fn cooperate(
    site: &Site,
    planned: &mut Vec<plan::Route>,
    resources: &Resources,
    bounds: &ResponseBounds,
) -> io::Result<()> {
    let Some(configured) = &site.settings.documents else { return Ok(()) };
    let key = Key::from_file(resources.pem_files.get(&configured.key)?.bytes()).map_err(io::Error::other)?;
    let documents = resources.documents.of(&configured.at);
    for route in planned.iter_mut().filter(|route| configured.lends && route.place.is_whole()) {
        if let Action::Files(tree) = &route.action {
            let token = key.copy_token(&configured.at);
            let lending = Lending::new(Arc::clone(&documents), token, configured.copy_s);
            route.action = Action::Lent(Arc::clone(tree), Arc::new(lending));
        }
    }
    let name = site.name();
    for (index, peer) in configured.peers.iter().enumerate() {
        let token = key.copy_token(peer);
        let route = copies_route(configured, peer, token);
        let Some(proxy) = &route.settings.proxy else { continue };
        let delegate = Arc::new(proxy_plan::delegate(&name, &route, proxy, resources, bounds)?);
        let copies = Arc::new(Copies::new(Arc::clone(&documents), index, peer.clone()));
        let action = Action::Copies(copies, delegate);
        planned.push(plan::Route {
            place: Place::prefix(peer.copies_path()),
            headers: FieldRules::default(),
            cors: None,
            guards: None,
            action,
            otherwise: None,
        });
    }
    let route = door_route(&resources.documents.socket);
    if let Some(proxy) = &route.settings.proxy {
        let delegate = Arc::new(proxy_plan::delegate(&name, &route, proxy, resources, bounds)?);
        let action = Action::Delegated(delegate);
        planned.push(plan::Route {
            place: Place::prefix(COPIES),
            headers: FieldRules::default(),
            cors: None,
            guards: None,
            action,
            otherwise: None,
        });
    }
    Ok(())
}

/// A peer's documents, through the shared cache.
fn copies_route(configured: &Configured, peer: &Origin, token: String) -> Route {
    let proxy = Proxy {
        to: vec![origin(&format!("{peer}/"))],
        host: HostRule::Origin,
        // The home's redirects are for the client.
        rewrite_locations: false,
        request_headers: FieldRules {
            set: vec![(SIGNATURE_FIELD.into(), token)],
            remove: ["Cookie", "Authorization"].map(str::to_owned).into(),
            ..FieldRules::default()
        },
        tls: OriginTls { ca: configured.authorities.clone(), ..OriginTls::default() },
        ..Proxy::default()
    };
    let cache = RouteCache {
        default_s: configured.copy_s,
        heuristic_max_s: configured.copy_s,
        ignore_query: true,
        obey_clients: false,
        stale_if_unreachable_s: STALE_S,
        stale_if_error_s: STALE_S,
        ..RouteCache::default()
    };
    route(&peer.copies_path(), proxy, Some(cache))
}

/// What servers say to each other, for the process.
fn door_route(socket: &Path) -> Route {
    // A plan that is only inspected has no process.
    let socket = if socket.as_os_str().is_empty() { Path::new("/nonexistent") } else { socket };
    let proxy = Proxy {
        to: vec![origin(&format!("unix:{}", socket.display()))],
        keep_connections: false,
        body_bytes_max: Some(WORDS_BYTES_MAX as u64),
        head_ms: 10_000,
        ..Proxy::default()
    };
    route(COPIES, proxy, None)
}

/// A route that the configuration does not name.
fn route(path: &str, proxy: Proxy, cache: Option<RouteCache>) -> Route {
    let settings = RouteSettings { path: path.into(), proxy: Some(proxy), cache, ..RouteSettings::default() };
    Route { settings, guards: Guards::default(), files: Files::default() }
}

fn origin(url: &str) -> ConfiguredOrigin {
    let to = OriginUrl::parse(url, Path::new("/")).unwrap_or_else(|why| unreachable!("{url}: {why:?}"));
    ConfiguredOrigin { to, ..ConfiguredOrigin::default() }
}

impl Config {
    /// Whether a site shares its load with other servers.
    pub fn has_documents(&self) -> bool {
        self.sites.iter().any(|site| site.settings.documents.is_some())
    }

    /// What the process of documents is told; `None`: there is none.
    ///
    /// # Errors
    /// A key that has not been read.
    pub fn documents_settings(&self, socket: &Path, files: &PemFiles) -> io::Result<Option<Settings>> {
        let mut sites = Vec::new();
        for site in &self.sites {
            let Some(configured) = &site.settings.documents else { continue };
            sites.push(SiteSettings {
                at: configured.at.clone(),
                peers: configured.peers.clone(),
                secret: files.get(&configured.key)?.bytes().to_vec(),
                authorities: configured.authorities.clone(),
                files: self.lent_files(site, configured),
                statistics_ms: configured.statistics_ms,
                ping_ms: configured.ping_ms,
                reply_ms: configured.reply_ms,
                peer_ms: configured.peer_ms,
                recall_ms: configured.recall_ms,
                imbalance_percent: u32::try_from(configured.imbalance_percent).unwrap_or(u32::MAX),
                documents_max: usize::try_from(configured.documents_max).unwrap_or(usize::MAX),
            });
        }
        Ok((!sites.is_empty()).then(|| Settings { socket: socket.to_owned(), sites }))
    }

    /// The folder whose files may move: that of the site, where no route answers for all of it.
    fn lent_files(&self, site: &Site, configured: &Configured) -> Option<FilesSettings> {
        if !configured.lends || site.routes.iter().any(|route| route.settings.place().is_whole()) {
            return None;
        }
        let files = &site.files;
        Some(FilesSettings {
            root: files.root.clone()?,
            index: files.index.clone(),
            hidden: files.hidden,
            routed: site
                .routes
                .iter()
                // What a pattern matches is answered by its route at home, wherever links lead.
                .filter(|route| route.settings.place().as_pattern().is_none())
                .map(|route| route.settings.path.clone())
                .chain([COPIES.to_owned()])
                .collect(),
            media_types: self
                .media_types
                .iter()
                .map(|(extension, kind)| (extension.clone(), kind.clone()))
                .collect(),
            types: configured.types.clone(),
            pages: configured.pages,
            entry_points: configured.entry_points.iter().map(|glob| glob.text().to_owned()).collect(),
            scan_ms: configured.scan_ms,
        })
    }
}

/// Seconds for which copies are served whose home does not answer.
const STALE_S: u64 = 300;
