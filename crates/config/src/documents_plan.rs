//! From the `documents` of a site to the routes that serve copies, and to what the process of documents is told.

use std::io;
use std::path::Path;
use std::sync::Arc;

use baton_dcws::{
    COPIES, DocumentsSettings, FilesSettings, Key, Origin, Rules, SIGNATURE_FIELD, SiteSettings,
    WORDS_BYTES_MAX,
};
use baton_http::origin::HostRule;
use baton_http::{FieldRules, is_same_field};
use baton_site::documents::{Copies, Lending};
use baton_site::plan;
use baton_site::plan::{Action, Terms};

use super::config::Config;
use super::documents::Documents as Configured;
use super::origin_url::OriginUrl;
use super::origins::Origin as ConfiguredOrigin;
use super::proxy::{OriginTls, Proxy};
use super::proxy_plan;
use super::resources::{Resources, ResponseBounds};
use super::route::{Route, RouteSettings};
use super::shared_cache::RouteCache;
use super::site::Site;
use super::tls_files::PemFiles;

/// Lets the documents of a site move.
///
/// # Errors
/// A key that has not been read, or is none.
pub(super) fn lend(site: &Site, planned: &mut [plan::Route], resources: &Resources) -> io::Result<()> {
    let Some(configured) = site.settings.documents.as_ref().filter(|configured| configured.lends) else {
        return Ok(());
    };
    let token = key(configured, resources)?.copy_token(&configured.at);
    let documents = resources.documents.of(&configured.at);
    for route in planned.iter_mut().filter(|route| route.matcher.is_whole()) {
        if let Action::Files(tree) = &route.action {
            let lending = Lending::new(Arc::clone(&documents), token.clone(), configured.copy_s);
            route.action = Action::Lent(Arc::clone(tree), Arc::new(lending));
        }
    }
    Ok(())
}

/// The routes of others' copies, and that on which servers speak with each other.
///
/// # Errors
/// A key that has not been read, or is none.
pub(super) fn doors(
    site: &Site,
    resources: &Resources,
    bounds: &ResponseBounds,
) -> io::Result<Vec<(Route, Action)>> {
    let Some(configured) = &site.settings.documents else { return Ok(Vec::new()) };
    let (key, name) = (key(configured, resources)?, site.name());
    let documents = resources.documents.of(&configured.at);
    let mut doors = Vec::new();
    for (index, peer) in configured.peers.iter().enumerate() {
        let (proxy, cache) = copies_of(configured, peer, key.copy_token(peer));
        let mut route = unnamed(site, &peer.copies_path(), Some(cache));
        confine(&mut route.files.headers);
        let mut delegate = proxy_plan::delegate(&name, &route, &proxy, resources, bounds)?;
        let rules =
            Rules { types: configured.types.clone(), pages: configured.pages, entry_points: Vec::new() };
        let copies = Arc::new(Copies::new(Arc::clone(&documents), index, peer.clone(), rules));
        if let Terms::Proxy(terms) = &mut delegate.terms {
            terms.copies = Some(Arc::clone(&copies));
        }
        doors.push((route, Action::Copies(copies, Arc::new(delegate))));
    }
    let route = unnamed(site, COPIES, None);
    let proxy = questions(&resources.documents.socket, route.guards().body_bytes_max);
    let mut delegate = proxy_plan::delegate(&name, &route, &proxy, resources, bounds)?;
    // The head is judged before anything of the body is read.
    delegate.upload.first_bytes = 0;
    doors.push((route, Action::Delegated(Arc::new(delegate))));
    Ok(doors)
}

fn key(configured: &Configured, resources: &Resources) -> io::Result<Key> {
    Key::from_file(resources.pem_files.get(&configured.key)?.bytes()).map_err(io::Error::other)
}

/// Fields of copies, which are shown under this server's name and written by another one: it sets no cookies and no rules for
/// this host, and scripts run in no origin.
fn confine(headers: &mut FieldRules) {
    headers.remove.extend(OF_THE_HOST.map(str::to_owned));
    headers.set.retain(|(name, _)| !is_same_field(name, TYPE_OPTIONS));
    headers.set.push((TYPE_OPTIONS.into(), "nosniff".into()));
    // Policies of the site and of the home hold besides.
    headers.add.push(("Content-Security-Policy".into(), SANDBOX.into()));
}

/// A peer's documents, through the shared cache.
fn copies_of(configured: &Configured, peer: &Origin, token: String) -> (Proxy, RouteCache) {
    let proxy = Proxy {
        to: vec![origin(&format!("{peer}/"))],
        host: HostRule::Origin,
        rewrite_locations: false,
        // A request for a document has none, and the home is not to get any.
        body_bytes_max: Some(0),
        request_headers: FieldRules {
            set: vec![(SIGNATURE_FIELD.into(), token.as_str().into())],
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
    (proxy, cache)
}

/// What servers say to each other, for the process. `body_bytes_max`: that of the site.
fn questions(socket: &Path, body_bytes_max: Option<u64>) -> Proxy {
    // A plan that is only inspected has no process.
    let socket = if socket.as_os_str().is_empty() { Path::new("/nonexistent") } else { socket };
    let words_bytes_max = WORDS_BYTES_MAX as u64;
    Proxy {
        to: vec![origin(&format!("unix:{}", socket.display()))],
        keep_connections: false,
        body_bytes_max: Some(body_bytes_max.unwrap_or(words_bytes_max).min(words_bytes_max)),
        head_ms: 10_000,
        ..Proxy::default()
    }
}

/// A route of the site that the configuration does not name.
fn unnamed(site: &Site, path: &str, cache: Option<RouteCache>) -> Route {
    let settings = RouteSettings { path: path.into(), cache, ..RouteSettings::default() };
    Route::unnamed(settings, (&site.guards, &site.files))
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
    pub fn documents_settings(
        &self,
        socket: &Path,
        files: &PemFiles,
    ) -> io::Result<Option<DocumentsSettings>> {
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
                metric: configured.metric,
                threshold_permille: u32::try_from(configured.threshold_permille).unwrap_or(u32::MAX),
                documents_max: usize::try_from(configured.documents_max).unwrap_or(usize::MAX),
            });
        }
        Ok((!sites.is_empty()).then(|| DocumentsSettings { socket: socket.to_owned(), sites }))
    }

    /// The folder whose files may move: that of the site, where no route answers for all of it.
    fn lent_files(&self, site: &Site, configured: &Configured) -> Option<FilesSettings> {
        if !configured.lends || site.routes.iter().any(|route| route.settings.matcher().is_whole()) {
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
                .filter(|route| route.settings.matcher().as_pattern().is_none())
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

/// Fields by which a response speaks for its whole host.
const OF_THE_HOST: [&str; 8] = [
    "Set-Cookie",
    "Clear-Site-Data",
    "Strict-Transport-Security",
    "Service-Worker-Allowed",
    "Alt-Svc",
    "NEL",
    "Report-To",
    "Refresh",
];

const TYPE_OPTIONS: &str = "X-Content-Type-Options";

/// Scripts of pages run, if pages may move, but never as this host's: `allow-same-origin` is missing.
const SANDBOX: &str = "sandbox allow-scripts allow-forms allow-popups allow-popups-to-escape-sandbox allow-downloads \
                       allow-top-navigation-by-user-activation";

/// Seconds for which copies are served whose home does not answer.
const STALE_S: u64 = 300;
