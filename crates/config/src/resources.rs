//! What outlives a plan.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use baton_content::Roots;
use baton_dns::Names;
use baton_process_table::ProcessTable;
use baton_site::guards::RateTable;
use baton_site::proofs::HttpProofs;
use baton_telemetry::figures::{FigureTable, Row, Subject};
use baton_telemetry::log::SiteLogs;
use baton_tls::Tickets;
use baton_upstream::{BacklogNotices, BalanceSettings, OriginTable, Peer, Peers, TemporarySpace};

use super::documents_of_worker::DocumentsOfWorker;
use super::tls_files::PemFiles;

/// Bounds on the responses of everything that answers elsewhere.
#[derive(Debug)]
pub(super) struct ResponseBounds {
    /// What the temporary files of all routes take.
    pub(super) space: TemporarySpace,
    /// The longest head.
    pub(super) head_bytes_max: usize,
}

/// What the plans of a worker share, from one configuration to the next.
#[derive(Debug, Default)]
pub struct Resources {
    /// The processes of applications, by address. Each process listens alone.
    pub process_tables: ProcessTables,
    /// How the loops of all workers hear of connections that wait.
    pub notices: BacklogNotices,
    /// Folders that are open, and are not opened again.
    pub roots: Roots,
    /// What temporary files take.
    pub space: TemporarySpace,
    /// The PEM files that the configuration names.
    pub pem_files: PemFiles,
    /// The keys of session tickets. `None`: the plan gets its own, and no other resumes its sessions.
    pub tickets: Option<Arc<Tickets>>,
    /// What certificate authorities get to see.
    pub proofs: Proofs,
    /// Where documents are that migrate.
    pub documents: DocumentsOfWorker,
    /// What is known of origins, and the number of this worker. `None`: a plan that is only inspected.
    pub origins: Option<(OriginTable, usize)>,
    /// A Unix socket in the place of all origins, for a rehearsal.
    pub stand_in: Option<PathBuf>,
    /// The hosts of applications. A plan that is only inspected has none of them looked up.
    pub names: Names,
    /// How often clients have asked. `None`: a plan that is only inspected.
    pub rates: Option<RateTable>,
    /// The logs that sites have for themselves. `None`: a plan that is only inspected.
    pub site_logs: Option<Arc<SiteLogs>>,
    /// Where requests are counted. `None`: a plan that is only inspected.
    pub figures: Option<FigureTable>,
    /// Several origins of a route, whose loads and targets the next plan goes on with.
    pub peers: PeersByRoute,
}

impl Resources {
    /// Where the requests of a site are counted.
    pub(super) fn row(&self, site: &str) -> Option<Row> {
        self.figures.map(|figures| figures.row(Subject::Site(site)))
    }

    /// The number of the row in which the requests to an application or an origin are counted.
    pub(super) fn row_of_upstream(&self, name: &str) -> Option<u16> {
        self.figures.map(|figures| figures.row(Subject::Upstream(name)).number())
    }
}

/// The peers of each route, in the plans that there are.
#[derive(Debug, Default)]
pub struct PeersByRoute(Mutex<HashMap<SiteAndRoute, Vec<Weak<Peers>>>>);

type SiteAndRoute = (String, String);

impl PeersByRoute {
    /// The peers of a route, which follow those that it had.
    pub(super) fn make(
        &self,
        site: &str,
        route: &str,
        peers: Vec<Peer>,
        settings: &BalanceSettings,
    ) -> Option<Arc<Peers>> {
        // What a panic leaves is whole: a list is changed by one call.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, known| {
            known.retain(|one| one.strong_count() > 0);
            !known.is_empty()
        });
        let known = all.entry((site.to_owned(), route.to_owned())).or_default();
        // Of a plan that serves, or of one that was prepared: both share their loads.
        let former = known.iter().rev().find_map(Weak::upgrade);
        let made = match former {
            Some(former) => Peers::following(&former, peers, settings),
            None => Peers::new(peers, settings),
        };
        known.extend(made.iter().map(Arc::downgrade));
        made
    }
}

/// Proofs for certificate authorities that names lead to this server.
#[derive(Clone, Debug, Default)]
pub struct Proofs {
    /// In answers to requests.
    pub http: Arc<HttpProofs>,
    /// In handshakes.
    pub tls: Arc<baton_tls::Proofs>,
}

/// The processes of applications, by the addresses that workers know them by.
pub type ProcessTables = HashMap<PathBuf, Arc<ProcessTable>>;
