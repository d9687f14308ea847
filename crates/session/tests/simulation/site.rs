//! What is served in the simulation, and what a client knows of it.

use std::fs::File;
use std::os::linux::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use baton_content::{Listing, Tree, TreeConfig};
use baton_http::origin::{Forwarding, HostRule, PathRule, ResponseRules};
use baton_http::{FieldRules, FileState, MediaTypes};
use baton_site::address_range::AddressSet;
use baton_site::limits::Limits;
use baton_site::matcher::Matcher;
use baton_site::plan::{
    Action, CgiTerms, Delegate, Digest, Plan, ProxyTerms, Route, Site, Terms, UploadSettings,
};
use baton_site::template::Template;
use baton_telemetry::log::SiteLog;
use baton_upstream::{
    Address, Application, Endpoint, Protocol, REGION_BYTES_MIN, Settings, StreamedBodies, TemporaryFiles,
    TransportChoice,
};
use tempfile::TempDir;

use super::cached::{CACHED, Shelf};
use super::choices::Choices;

/// A folder with a few files.
#[derive(Debug)]
pub(crate) struct Folder {
    folder: TempDir,
    /// The application's socket, and a file that no application may name.
    outside: TempDir,
    media_types: Arc<MediaTypes>,
    pub(crate) files: Vec<SiteFile>,
}

/// A file, as a client gets it.
#[derive(Debug)]
pub(crate) struct SiteFile {
    /// Path of the request.
    pub(crate) path: &'static str,
    /// Its name in the folder.
    pub(crate) name: &'static str,
    pub(crate) media_type: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) etag: String,
}

impl Folder {
    pub(crate) fn create() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["index", "listed"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let files = FILES.map(|(path, name, media_type, len)| {
            let file = folder.path().join(name);
            let mut random = fastrand::Rng::with_seed(len as u64);
            let mut bytes = vec![0; len];
            random.fill(&mut bytes);
            std::fs::write(&file, &bytes).unwrap();
            let modified = UNIX_EPOCH + Duration::from_secs(MODIFIED_UNIX_SECONDS);
            File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
            let metadata = std::fs::metadata(&file).unwrap();
            let state = FileState {
                size: metadata.st_size(),
                modified: (metadata.st_mtime(), metadata.st_mtime_nsec() as u32),
                changed: (metadata.st_ctime(), metadata.st_ctime_nsec() as u32),
                inode: metadata.st_ino(),
            };
            let etag = state.etag();
            let etag = String::from_utf8(etag.as_ref().to_vec()).unwrap();
            SiteFile { path, name, media_type, bytes, etag }
        });
        let (outside, media_types) = (tempfile::tempdir().unwrap(), Arc::new(MediaTypes::builtin()));
        let site = Self { folder, outside, media_types, files: files.into() };
        std::fs::write(site.secret(), "not for clients").unwrap();
        std::os::unix::fs::symlink(site.secret(), site.path().join(LINK)).unwrap();
        site
    }

    /// The document root, in which the application may name files, too.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A file elsewhere.
    pub(crate) fn secret(&self) -> PathBuf {
        self.outside.path().join("secret.txt")
    }

    /// Where the application listens.
    pub(crate) fn socket(&self) -> PathBuf {
        self.outside.path().join("app")
    }

    /// An application with settings by the seed.
    pub(crate) fn application(
        &self,
        temporary: &TemporaryFiles,
        protocol: Protocol,
        choices: &mut Choices,
    ) -> Arc<Application> {
        let settings = Settings {
            protocol,
            transport: match protocol {
                Protocol::FastCgi => choices.one(&TRANSPORTS),
                Protocol::Scgi | Protocol::Http1 => TransportChoice::Plain,
            },
            region_bytes: choices.one(&[REGION_BYTES_MIN, 300_000]),
            connections_max: choices.one(&[1, 2, 16]),
            streamed_bodies: StreamedBodies::default().with_max(choices.one(&[0, 1, 100])),
            keep_connections: choices.chance(80),
            requests_max_per_connection: choices.one(&[0, 0, 2]) as u64,
            head_timeout_ms: (protocol == Protocol::Http1).then_some(2_900),
            idle_timeout_ms: 700,
            queue_max: choices.one(&[1, 1_000]),
            queue_timeout_ms: 3_700,
            timeout_ms: 3_300,
            spool_memory_bytes: choices.one(&[10_000, 256 << 10]) as u64,
            spool_file_bytes_max: choices.one(&[0, 50_000, 1 << 30]) as u64,
            temporary: temporary.clone(),
            ..Settings::new("app", Endpoint::Shared(Address::Unix(self.socket())))
        };
        Application::new(settings).unwrap()
    }

    /// A plan to serve it, of the given version.
    pub(crate) fn plan(
        &self,
        limits: Limits,
        version: u32,
        application: &Arc<Application>,
        shelf: Option<&Shelf>,
        digests: bool,
        choices: &mut Choices,
    ) -> Plan {
        let root = self.folder.path().to_owned();
        let media_types = Arc::clone(&self.media_types);
        let config = TreeConfig { root, listing: Listing::On, media_types, ..TreeConfig::default() };
        let tree = Arc::new(Tree::open(config).unwrap());
        let upload = UploadSettings {
            bytes_max: limits.body_bytes_max,
            timeout_ms: None,
            memory_bytes_max: choices.one(&[100, 1_000_000]),
            first_bytes: choices.one(&[0, 1]),
            temporary: application.settings().temporary.clone(),
        };
        let delegated = |path: &'static str, cache| {
            let terms = match application.settings().protocol {
                Protocol::Http1 => Terms::Proxy(Box::new(proxy())),
                Protocol::FastCgi | Protocol::Scgi => Terms::Cgi(CgiTerms {
                    named: vec![Arc::clone(&tree)],
                    internal: vec![(INTERNAL.into(), Arc::clone(&tree))],
                    path: path.into(),
                    passes_socket: true,
                    encoded_slashes: true,
                    keep_passed: true,
                    document_root: None,
                    local_redirects: true,
                    params: Vec::new(),
                    trusted: AddressSet::default(),
                }),
            };
            let application = Arc::clone(application);
            let delegate = Delegate { application, upload: upload.clone(), terms, cache };
            (path, Action::Delegated(Arc::new(delegate)))
        };
        let cached = shelf.map(|shelf| delegated(CACHED, Some(Arc::clone(&shelf.route))));
        let application = delegated(APPLICATION, None);
        let moved = Action::Redirect {
            status: 302,
            location: Template::location("/elsewhere$rest").expect("a location"),
        };
        let fixed = Action::Respond {
            status: 200,
            media_type: "text/plain".into(),
            body: fixed_body(version).as_str().into(),
        };
        let routes = [("/", Action::Files(Arc::clone(&tree))), (MOVED, moved), (FIXED, fixed), application];
        let site = Site {
            name: "simulated".into(),
            listeners: Vec::new(),
            hosts: Vec::new(),
            routes: routes
                .into_iter()
                .chain(cached)
                .map(|(path, action)| Route {
                    matcher: Matcher::prefix(path),
                    when: None,
                    pages: None,
                    cache_bypass: None,
                    headers: FieldRules::default(),
                    compress: None,
                    digest: (digests && path == APPLICATION).then_some(Digest::Passing),
                    cors: None,
                    guards: None,
                    action,
                    otherwise: None,
                })
                .collect(),
            headers: FieldRules::default(),
            compress: None,
            cors: None,
            guards: None,
            real_address: None,
            error_pages: Vec::new(),
            clients: None,
            figures: None,
            marking: None,
            log: SiteLog::Main,
            log_when: None,
        };
        Plan::new(vec![site], limits, choices.chance(50))
    }
}

/// Requests go on as they are.
fn proxy() -> ProxyTerms {
    let forwarding = Forwarding {
        host: HostRule::Client,
        authority: "origin".into(),
        path: PathRule::default(),
        pseudonym: "simulated".into(),
        rules: FieldRules::default(),
    };
    ProxyTerms {
        peers: None,
        cluster: None,
        forwarding,
        responses: ResponseRules::default(),
        trusted: AddressSet::default(),
        copies: None,
    }
}

/// More often the one that only some connections can use.
const TRANSPORTS: [TransportChoice; 5] = [
    TransportChoice::Auto,
    TransportChoice::Plain,
    TransportChoice::Shm,
    TransportChoice::PassFd,
    TransportChoice::PassFd,
];

/// What [`FIXED`] answers by the plan of this version.
pub(crate) fn fixed_body(version: u32) -> String {
    format!("by plan {version}\n")
}

/// Path below which the application answers.
pub(crate) const APPLICATION: &str = "/app";

/// Where the application finds the files of the site, and clients nothing.
pub(crate) const INTERNAL: &str = "/internal";

/// A symbolic link in the folder that leads out of it.
pub(crate) const LINK: &str = "link.txt";

/// Path below which everything has a fixed answer.
pub(crate) const FIXED: &str = "/fixed";

/// Path below which everything is elsewhere.
pub(crate) const MOVED: &str = "/moved";

/// A folder without an index, which is listed; its name in the listing.
pub(crate) const LISTED: (&str, &str) = ("/listed/", "note.txt");

/// When all files were modified: before anything in the simulation happens.
pub(crate) const MODIFIED_UNIX_SECONDS: u64 = 1_700_000_000;

/// Path of the request, name in the folder, media type, bytes.
const FILES: [(&str, &str, &str, usize); 6] = [
    ("/empty.txt", "empty.txt", "text/plain; charset=utf-8", 0),
    ("/small.txt", "small.txt", "text/plain; charset=utf-8", 700),
    ("/index/", "index/index.html", "text/html; charset=utf-8", 3_000),
    ("/listed/note.txt", "listed/note.txt", "text/plain; charset=utf-8", 10),
    ("/medium.png", "medium.png", "image/png", 40_000),
    ("/large.pdf", "large.pdf", "application/pdf", 200_000),
];
