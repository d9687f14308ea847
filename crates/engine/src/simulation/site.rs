//! What is served in the simulation, and what a client knows of it.

use std::fs::File;
use std::os::linux::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use baton_content::{Listing, Tree, TreeConfig};
use baton_gateway::{Address, Application, Endpoint, Settings, StreamedBodies, TemporaryFiles};
use baton_http::{ETag, FieldRules, MediaTypes};
use tempfile::TempDir;

use super::choices::Choices;
use crate::plan::{Action, Delegate, Plan, Route, Site};
use crate::settings::Limits;
use crate::upload::UploadSettings;

/// A folder with a few files.
#[derive(Debug)]
pub(crate) struct Folder {
    folder: TempDir,
    sockets: TempDir,
    media_types: Arc<MediaTypes>,
    pub(crate) files: Vec<SiteFile>,
}

/// A file, as a client gets it.
#[derive(Debug)]
pub(crate) struct SiteFile {
    /// Path of the request.
    pub(crate) path: &'static str,
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
            let name = folder.path().join(name);
            let mut random = fastrand::Rng::with_seed(len as u64);
            let mut bytes = vec![0; len];
            random.fill(&mut bytes);
            std::fs::write(&name, &bytes).unwrap();
            let modified = UNIX_EPOCH + Duration::from_secs(MODIFIED_UNIX_SECONDS);
            File::options().write(true).open(&name).unwrap().set_modified(modified).unwrap();
            let metadata = std::fs::metadata(&name).unwrap();
            let modified = (metadata.st_mtime(), metadata.st_mtime_nsec() as u32);
            let etag = ETag::of_file(metadata.st_dev(), metadata.st_ino(), metadata.st_size(), modified);
            let etag = String::from_utf8(etag.as_ref().to_vec()).unwrap();
            SiteFile { path, media_type, bytes, etag }
        });
        let (sockets, media_types) = (tempfile::tempdir().unwrap(), Arc::new(MediaTypes::builtin()));
        Self { folder, sockets, media_types, files: files.into() }
    }

    /// Where the application listens.
    pub(crate) fn socket(&self) -> PathBuf {
        self.sockets.path().join("app")
    }

    /// An application with settings by the seed.
    pub(crate) fn application(&self, temporary: &TemporaryFiles, choices: &mut Choices) -> Arc<Application> {
        let settings = Settings {
            connections_max: choices.one(&[1, 2, 16]),
            streamed_bodies: StreamedBodies::default().with_max(choices.one(&[0, 1, 100])),
            keep_connections: choices.chance(80),
            requests_max_per_connection: choices.one(&[0, 0, 2]) as u64,
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
        choices: &mut Choices,
    ) -> Plan {
        let delegate = Delegate {
            application: Arc::clone(application),
            path: APPLICATION.into(),
            hand_over: true,
            encoded_slashes: true,
            keep_passed: true,
            document_root: None,
            local_redirects: true,
            params: Vec::new(),
            headers: FieldRules::default(),
            named: Vec::new(),
            internal: Vec::new(),
            upload: UploadSettings {
                bytes_max: limits.body_bytes_max,
                memory_bytes_max: choices.one(&[100, 1_000_000]),
                temporary: application.settings().temporary.clone(),
            },
        };
        let root = self.folder.path().to_owned();
        let media_types = Arc::clone(&self.media_types);
        let config = TreeConfig { root, listing: Listing::On, media_types, ..TreeConfig::default() };
        let tree = Tree::open(config).unwrap();
        let moved = Action::Redirect { status: 302, location: "/elsewhere$rest".into() };
        let fixed = Action::Respond {
            status: 200,
            media_type: "text/plain".into(),
            body: fixed_body(version).into_bytes(),
        };
        let routes = [
            ("/", Action::Files(Arc::new(tree))),
            (MOVED, moved),
            (FIXED, fixed),
            (APPLICATION, Action::Application(Arc::new(delegate))),
        ];
        let site = Site {
            name: "simulated".into(),
            listeners: Vec::new(),
            hosts: Vec::new(),
            routes: routes
                .map(|(path, action)| Route { path: path.into(), headers: FieldRules::default(), action })
                .into(),
            headers: FieldRules::default(),
            error_pages: Vec::new(),
            log: true,
        };
        Plan::new(vec![site], limits, choices.chance(50))
    }
}

/// What [`FIXED`] answers by the plan of this version.
pub(crate) fn fixed_body(version: u32) -> String {
    format!("by plan {version}\n")
}

/// Path below which the application answers.
pub(crate) const APPLICATION: &str = "/app";

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
