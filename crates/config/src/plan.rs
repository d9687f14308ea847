//! From [`Config`] to what the machines work with. Made inside each worker, since folders are opened with its rights.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_content::{CacheSettings, Listing, Tree, TreeConfig};
use baton_engine::Tuning;
use baton_engine::listen::ListenAddress;
use baton_http::{HeadLimits, MediaTypes};
use baton_session::send_queue::SendfileMode;
use baton_site::guards::RateTable;
use baton_site::plan::{
    Action, CgiTerms, ClusterTerms, Delegate, ErrorPage, Otherwise, Plan, RoutePages, Terms, UploadSettings,
};
use baton_site::{guards, plan};
use baton_sys::process::identity;
use baton_tls::PemFile;
use baton_upstream::{Peers, StreamedBodies, TemporaryFiles};

use super::application::{Application, Target, Transport};
use super::basic_auth::BasicAuth;
use super::client_addresses::address_set;
use super::cluster::{Cluster, Kept};
use super::compress::Compress;
use super::condition::When;
use super::config::Config;
use super::cors::Cors;
use super::documents_plan;
use super::error_pages::Intercept;
use super::fetch_plan;
use super::files::Files;
use super::guards::Guards;
use super::kind::count;
use super::log::LogSettings;
use super::marking::marking;
use super::proxy_plan;
use super::real_ip::RealIp;
use super::resources::{Resources, ResponseBounds};
use super::route::{Route, RouteSettings};
use super::send::Sendfile;
use super::site::Site;
use super::tls::RedirectHttps;

impl Config {
    /// The plan of a worker with these listener ids.
    ///
    /// # Errors
    /// A folder or a page that cannot be opened, with its path.
    pub fn plan(
        &self,
        listener_ids: &HashMap<&ListenAddress, usize>,
        resources: &Resources,
    ) -> io::Result<Plan> {
        let mut types = MediaTypes::builtin();
        for (extension, media_type) in &self.media_types {
            types.set(extension, media_type);
        }
        let planner = Planner {
            listener_ids,
            resources,
            bounds: ResponseBounds {
                space: resources.space.bounded(self.limits.temporary_bytes_max),
                head_bytes_max: count(self.limits.response_head_bytes_max),
            },
            media_types: Arc::new(types),
            server_header: self.server.server_header,
            workers: self.server.processes.map_or(WORKERS_UNKNOWN, count),
            streamed_bodies: RefCell::default(),
            basic_auths: RefCell::default(),
            nodes: OnceCell::new(),
            cluster: &self.cluster,
            log: &self.log,
        };
        let mut sites = self.sites.iter().map(|site| planner.site(site)).collect::<io::Result<Vec<_>>>()?;
        let tls_sites = self.tls_sites(&resources.pem_files).map_err(io::Error::other)?;
        for (site, tls) in sites.iter_mut().zip(&tls_sites) {
            site.clients = tls.clients.as_ref().map(|clients| clients.id());
        }
        // Behind the others, whose places are those of the configuration.
        for site in self.sites.iter().filter(|site| site.settings.redirect_https != RedirectHttps::Off) {
            let guards = planner.guards(&site.guards.before_tls(), &site.name())?;
            let Some(redirecting) = site.redirecting(listener_ids, guards) else { continue };
            let log = site.settings.access_log.plan(&self.log, resources)?;
            sites.push(plan::Site { log, figures: resources.row(&site.name()), ..redirecting });
        }
        let proofs = &resources.proofs;
        let tickets = resources.tickets.as_ref();
        let tls = self.tls_servers(listener_ids, tls_sites, tickets, &proofs.tls)?;
        let plan = Plan::new(sites, self.engine_limits(), self.server.server_header).with_tls(tls);
        let plan = plan.with_balancers(self.balancers(listener_ids)).with_proxies(self.proxies_in_front());
        let plan = plan.returning_connections(self.cluster.kept == Kept::Return);
        let plan = plan.fetching_files(fetch_plan::fetching(
            &self.cluster,
            listener_ids,
            resources,
            &planner.bounds,
        )?);
        let has_acme = self.sites.iter().any(Site::has_acme);
        Ok(if has_acme { plan.with_proofs(Arc::clone(&proofs.http)) } else { plan })
    }

    /// The site to which the one with this index in a plan belongs.
    pub fn site_of_plan(&self, index: usize) -> Option<&Site> {
        let redirecting =
            || self.sites.iter().filter(|site| site.settings.redirect_https != RedirectHttps::Off);
        self.sites.get(index).or_else(|| redirecting().nth(index - self.sites.len()))
    }

    fn engine_limits(&self) -> baton_site::limits::Limits {
        let (limits, timeouts) = (&self.limits, &self.timeouts);
        baton_site::limits::Limits {
            connections_max: count(limits.connections_max),
            connections_per_address_max: limits.connections_per_address_max,
            head: HeadLimits {
                target_bytes_max: count(limits.target_bytes_max),
                head_bytes_max: count(limits.head_bytes_max),
                fields_max: count(limits.fields_max),
                keeps_underscores: limits.underscores_in_headers,
            },
            body_bytes_max: limits.body_bytes_max,
            requests_per_connection_max: limits.requests_per_connection_max,
            pipelined_max: count(limits.pipelined_max),
            ranges_max: count(limits.ranges_max),
            head_timeout_ms: timeouts.head_ms,
            body_timeout_ms: timeouts.body_ms,
            idle_timeout_ms: timeouts.idle_ms,
            send_timeout_ms: timeouts.send_ms,
            send_rate_min_bytes_per_s: timeouts.send_rate_min_bytes_per_s,
            linger_timeout_ms: timeouts.linger_ms,
        }
    }

    /// How the workers do their work.
    pub fn tuning(&self) -> Tuning {
        let (server, send) = (&self.server, &self.send);
        Tuning {
            architecture: server.architecture,
            processes: server.processes.map(count),
            threads: server.threads.map(count),
            helpers_max: count(send.helpers_max),
            writers: count(send.writers),
            clients_max: usize::MAX,
            accepts_per_wake: count(send.accepts_per_wake),
            way: send.way,
            sendfile: match send.sendfile {
                Sendfile::NonBlocking => SendfileMode::NonBlocking,
                Sendfile::Blocking => SendfileMode::Blocking,
                Sendfile::BySize => SendfileMode::BySize(send.blocking_bytes_min),
            },
            send_quantum_bytes: send.quantum_bytes,
            // The master tries it.
            kernel_tls: false,
            affinity: server.cpu_affinity,
            steering: send.listener_per_cpu,
            socket_send_buffer_bytes: send.socket_buffer_bytes.map(count),
            defer_accept_s: u32::try_from(send.defer_accept_s).unwrap_or(u32::MAX),
            cache: self.cache_settings(),
            shared_cache: self.shared_cache.settings_of_worker(),
            wants_one_process: self.cached_routes().next().is_some()
                || self.has_cluster_routes()
                || self.has_documents(),
        }
    }

    /// Bounds and switches of the file caches of one worker, where memory is plenty.
    pub fn cache_settings(&self) -> CacheSettings {
        let cache = &self.cache;
        CacheSettings {
            names_max: count(cache.names_max),
            files_max: count(cache.files_max),
            memory_bytes_max: cache.memory_bytes_max.unwrap_or(CacheSettings::default().memory_bytes_max),
            memory_file_bytes_max: cache.memory_file_bytes_max,
            memory_hot_file_bytes_max: cache.memory_hot_file_bytes_max,
            heads: cache.heads,
            names: cache.names,
            files: cache.files,
            revalidate_ms: cache.revalidate_ms,
            policy: cache.policy,
        }
    }
}

/// What is common to all sites.
struct Planner<'a> {
    listener_ids: &'a HashMap<&'a ListenAddress, usize>,
    resources: &'a Resources,
    bounds: ResponseBounds,
    media_types: Arc<MediaTypes>,
    server_header: bool,
    /// Among how many processes what is known of an application is shared out.
    workers: usize,
    /// The streamed bodies of each address, shared by all routes to it.
    streamed_bodies: RefCell<HashMap<Option<Target>, StreamedBodies>>,
    /// The users of each `basic_auth`.
    basic_auths: RefCell<Vec<(BasicAuth, Arc<guards::BasicAuth>)>>,
    cluster: &'a Cluster,
    log: &'a LogSettings,
    /// The nodes of the cluster, shared by all routes there.
    nodes: OnceCell<Arc<Peers>>,
}

impl Planner<'_> {
    fn site(&self, site: &Site) -> io::Result<plan::Site> {
        let site = &site.clone().with_hsts().with_cors().with_unkeyed_fields().with_internal_folders();
        let settings = &site.settings;
        let endings = site.script_endings();
        let name = site.name();
        let routes = site.routes.iter().map(|route| self.route(&name, route, &site.guards, &endings));
        let mut routes = routes.collect::<io::Result<Vec<_>>>()?;
        let takes_all = |route: &RouteSettings| route.matcher().is_whole() && route.when.is_none();
        let whole_is_routed = site.routes.iter().any(|route| takes_all(&route.settings));
        let inherited = (&site.guards, &site.files);
        if let (Some(tree), false) = (self.tree(&site.files, "", &[], &endings)?, whole_is_routed) {
            let whole = Route::unnamed(RouteSettings::default(), inherited);
            routes.push(self.planned(&name, &whole, &site.guards, Action::Files(tree))?);
        }
        documents_plan::lend(site, &mut routes, self.resources)?;
        for (route, action) in documents_plan::doors(site, self.resources, &self.bounds)? {
            routes.push(self.planned(&name, &route, &site.guards, action)?);
        }
        let pages = self.pages(&settings.error_pages)?;
        for (route, configured) in routes.iter_mut().zip(&site.routes) {
            route.pages = self.route_pages(&configured.settings, &pages)?.map(Arc::new);
        }
        Ok(plan::Site {
            name: site.name(),
            listeners: settings
                .listen
                .iter()
                .filter(|listen| listen.tls || settings.redirect_https == RedirectHttps::Off)
                .filter_map(|listen| self.listener_ids.get(&listen.address).copied())
                .collect(),
            hosts: settings.hosts.clone(),
            error_pages: pages,
            clients: None,
            routes,
            headers: site.files.headers.clone(),
            compress: site.files.coded_streams(),
            cors: site.guards.cors.as_ref().map(Cors::plan),
            guards: self.guards(&site.guards, &name)?,
            real_address: settings.real_ip.as_ref().map(RealIp::plan),
            figures: self.resources.row(&site.name()),
            marking: marking(settings.request_id.as_ref(), settings.traceparent),
            log: settings.access_log.plan(self.log, self.resources)?,
            log_when: settings.access_log_when.as_ref().map(When::plan),
        })
    }

    /// The bodies of errors.
    fn pages(&self, files: &BTreeMap<u16, PathBuf>) -> io::Result<Vec<ErrorPage>> {
        let page = |(status, path): (&u16, &PathBuf)| {
            let body = std::fs::read(path)
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
            let media_type = self.media_types.of(path.as_os_str().as_encoded_bytes()).to_owned();
            Ok(ErrorPage { status: *status, media_type, body })
        };
        files.iter().map(page).collect()
    }

    /// The bodies of a route's errors, in front of those of its site; `None`: it says nothing of them.
    fn route_pages(&self, settings: &RouteSettings, of_site: &[ErrorPage]) -> io::Result<Option<RoutePages>> {
        if settings.error_pages.is_empty() && settings.intercept == Intercept::Off {
            return Ok(None);
        }
        let mut pages = self.pages(&settings.error_pages)?;
        pages.extend_from_slice(of_site);
        let intercepted = settings.intercept.statuses(pages.iter().map(|page| page.status));
        Ok(Some(RoutePages { pages, intercepted }))
    }

    /// The rules of a site or a route.
    fn guards(&self, guards: &Guards, scope: &str) -> io::Result<Option<Arc<guards::Guards>>> {
        let rate_limit = match &guards.rate_limit {
            Some(limit) => {
                Some(limit.plan(scope, self.resources.rates.map_or_else(RateTable::allocate, Ok)?))
            }
            None => None,
        };
        let basic_auth = guards.basic_auth.as_ref().map(|auth| self.basic_auth(auth)).transpose()?;
        Ok(guards::Guards { rate_limit, basic_auth, ..guards.plan() }.shared())
    }

    /// The users of a site or a route: the same for all that have the same, so that a password is verified once.
    fn basic_auth(&self, auth: &BasicAuth) -> io::Result<Arc<guards::BasicAuth>> {
        let mut known = self.basic_auths.borrow_mut();
        if let Some((_, planned)) = known.iter().find(|(other, _)| other == auth) {
            return Ok(Arc::clone(planned));
        }
        let file = auth.file.as_ref().map(|path| self.resources.pem_files.get(path)).transpose()?;
        let planned = auth.plan(file.map(PemFile::bytes))?;
        known.push((auth.clone(), Arc::clone(&planned)));
        Ok(planned)
    }

    fn route(
        &self,
        site: &str,
        route: &Route,
        of_site: &Guards,
        endings: &[String],
    ) -> io::Result<plan::Route> {
        let settings = &route.settings;
        let prefix = if settings.strip_prefix { &settings.path } else { "" };
        let action = match (&settings.redirect, &settings.respond) {
            (None, None) if let Some(rewrite) = &settings.rewrite => Action::Rewrite(rewrite.to.clone()),
            (None, None) if let Some(proxy) = &settings.proxy => {
                let delegate = proxy_plan::delegate(site, route, proxy, self.resources, &self.bounds)?;
                Action::Delegated(Arc::new(delegate))
            }
            (None, None) if let Some(route_cluster) = &settings.cluster => {
                let way = route_cluster.way.unwrap_or(self.cluster.way);
                let cluster = ClusterTerms { way, key: route_cluster.key.clone() };
                let nodes = Arc::clone(self.nodes()?);
                let proxy = self.cluster.as_proxy();
                let delegate =
                    proxy_plan::cluster_delegate(site, route, &proxy, nodes, cluster, &self.bounds);
                Action::Delegated(Arc::new(delegate))
            }
            (None, None) if let Some((is_fastcgi, application)) = settings.application() => {
                self.application(site, route, is_fastcgi, application, endings)?
            }
            (Some(redirect), _) => {
                Action::Redirect { status: code(redirect.status), location: redirect.to.clone() }
            }
            (None, Some(respond)) => Action::Respond {
                status: code(respond.status),
                media_type: respond.media_type.clone(),
                body: respond.body.clone(),
            },
            (None, None) => match self.tree(&route.files, prefix, &[], endings)? {
                Some(tree) => Action::Files(tree),
                None => return Err(io::Error::other(format!("the route {} has no folder", settings.name()))),
            },
        };
        self.planned(site, route, of_site, action)
    }

    /// A route as the machines know it. All come from here, whatever they do.
    fn planned(
        &self,
        site: &str,
        route: &Route,
        of_site: &Guards,
        action: Action,
    ) -> io::Result<plan::Route> {
        let settings = &route.settings;
        let matcher = settings.matcher();
        // Requests of all routes that have the limit of their site are counted together.
        let scope = match route.guards().rate_limit == of_site.rate_limit {
            true => site.to_owned(),
            false => format!("{site} {}", settings.name()),
        };
        Ok(plan::Route {
            headers: route.files.headers.clone(),
            compress: route.files.coded_streams(),
            digest: settings.digest(),
            cors: route.guards().cors.as_ref().map(Cors::plan),
            guards: self.guards(route.guards(), &scope)?,
            otherwise: otherwise(&route.files)
                .filter(|_| matches!(action, Action::Files(_) | Action::Scripts(..))),
            when: settings.condition(),
            pages: None,
            cache_bypass: settings
                .cache
                .as_ref()
                .and_then(|cache| cache.bypass_when.as_ref())
                .map(When::plan),
            matcher,
            action,
        })
    }

    /// The nodes of the cluster.
    fn nodes(&self) -> io::Result<&Arc<Peers>> {
        if let Some(nodes) = self.nodes.get() {
            return Ok(nodes);
        }
        let nodes = proxy_plan::nodes(self.cluster, Cluster::ROUTE, self.resources, &self.bounds)?;
        Ok(self.nodes.get_or_init(|| nodes))
    }

    fn application(
        &self,
        site: &str,
        route: &Route,
        is_fastcgi: bool,
        application: &Application,
        endings: &[String],
    ) -> io::Result<Action> {
        let (settings, files) = (&route.settings, &route.files);
        let mut streamed_bodies = self.streamed_bodies.borrow_mut();
        let streamed_bodies = streamed_bodies.entry(application.to.clone()).or_default();
        let temporary = TemporaryFiles {
            folder: application.temporary_folder().into(),
            space: self.bounds.space.clone(),
        };
        let settings_of_pool = baton_upstream::Settings {
            temporary: temporary.clone(),
            head_bytes_max: self.bounds.head_bytes_max,
            streamed_bodies: match application.streamed_bodies_max {
                Some(max) => streamed_bodies.with_max(count(max)),
                None => streamed_bodies.with_learned_max(self.workers, count(application.connections_max)),
            },
            ..gateway_settings(is_fastcgi, application, self.resources)?
        };
        let pool = baton_upstream::Application::new(settings_of_pool)
            .map_err(|error| io::Error::other(format!("the application of {}: {error}", settings.name())))?;
        let terms = CgiTerms {
            path: settings.path.clone(),
            passes_socket: is_fastcgi && matches!(application.transport, Transport::Auto | Transport::PassFd),
            encoded_slashes: application.encoded_slashes,
            keep_passed: application.passfd_keep_alive,
            document_root: files.root.clone(),
            local_redirects: application.local_redirects.unwrap_or(settings.cgi.is_some()),
            params: parameters(application),
            trusted: address_set(&application.trusted),
            named: application
                .named_files
                .iter()
                .map(|folder| self.named(folder, files))
                .collect::<io::Result<_>>()?,
            internal: application
                .internal_files
                .iter()
                .map(|(path, folder)| Ok((path.clone(), self.named(folder, files)?)))
                .collect::<io::Result<_>>()?,
        };
        let delegate = Arc::new(Delegate {
            cache: settings.cache.as_ref().map(|cache| cache.plan(site, &settings.name(), pool.name())),
            application: pool,
            terms: Terms::Cgi(terms),
            upload: UploadSettings {
                bytes_max: application
                    .body_bytes_max
                    .or(route.guards().body_bytes_max)
                    .unwrap_or(BODY_BYTES_MAX),
                timeout_ms: route.guards().body_ms,
                memory_bytes_max: count(application.body_memory_bytes),
                first_bytes: 0,
                temporary,
            },
        });
        if application.scripts.is_empty() {
            return Ok(Action::Delegated(delegate));
        }
        let prefix = if settings.strip_prefix { &settings.path } else { "" };
        let tree = self.tree(files, prefix, &application.scripts, endings)?;
        let tree =
            tree.ok_or_else(|| io::Error::other(format!("the route {} has no folder", settings.name())))?;
        Ok(Action::Scripts(tree, delegate))
    }

    /// A folder whose files an application may name; `files`: how the route sends files.
    fn named(&self, folder: &Path, files: &Files) -> io::Result<Arc<Tree>> {
        let config = TreeConfig {
            root: folder.to_owned(),
            index: Vec::new(),
            hidden: true,
            media_types: self.media_types.clone(),
            server_header: self.server_header,
            compress: files.compress.as_ref().map(Compress::rules),
            ..TreeConfig::default()
        };
        Tree::open_among(&self.resources.roots, config).map(Arc::new)
    }

    /// The folder of a route, if it has one. `endings` mark scripts; those with an ending in `scripts` are run.
    fn tree(
        &self,
        files: &Files,
        strip_prefix: &str,
        scripts: &[String],
        endings: &[String],
    ) -> io::Result<Option<Arc<Tree>>> {
        let Some(root) = &files.root else { return Ok(None) };
        let rule = |rule: &super::CacheRule| baton_content::CacheRule {
            pattern: rule.r#match.clone(),
            types: rule.types.clone(),
            value: rule.value.clone(),
        };
        let config = TreeConfig {
            root: root.clone(),
            strip_prefix: strip_prefix.to_owned(),
            index: files.index.clone(),
            listing: if files.browse { Listing::On } else { Listing::Off },
            fallback: files.fallback.clone(),
            candidates: files.try_files.as_ref().map_or_else(Vec::new, |tried| tried.candidates.clone()),
            hidden: files.hidden,
            symlinks: files.symlinks,
            precompressed: files.precompressed.clone(),
            compress: files.compress.as_ref().map(Compress::rules),
            cache_control: files.cache_control.iter().map(rule).collect(),
            scripts: scripts.to_vec(),
            withheld: if files.script_sources { Vec::new() } else { endings.to_vec() },
            headers: files.headers.clone(),
            media_types: self.media_types.clone(),
            server_header: self.server_header,
        };
        Ok(Some(Arc::new(Tree::open_among(&self.resources.roots, config)?)))
    }
}

/// What is done where a folder has nothing.
fn otherwise(files: &Files) -> Option<Otherwise> {
    files.try_files.as_ref().map(|tried| tried.otherwise.clone())
}

/// Bytes of a body that an application gets if nothing is said: a photograph, a document.
const BODY_BYTES_MAX: u64 = 64 << 20;

/// For a plan that is only inspected: no worker shares limits.
const WORKERS_UNKNOWN: usize = usize::MAX;

/// Parameters that every request has.
fn parameters(application: &Application) -> Vec<(String, String)> {
    let mut parameters = application.params.clone();
    if !application.named_files.is_empty() {
        let folders: Vec<_> = application.named_files.iter().map(|path| path.display().to_string()).collect();
        parameters.push(("BATON_ZEROCOPY".into(), folders.join(":")));
    }
    parameters
}

fn gateway_settings(
    is_fastcgi: bool,
    application: &Application,
    resources: &Resources,
) -> io::Result<baton_upstream::Settings> {
    use baton_upstream::{Address, Endpoint, NamedAddress, Protocol, Settings, TransportChoice, Trust};
    let name = application.to.as_ref().map(Target::to_string);
    let endpoint = match &application.to {
        Some(Target::Unix(path)) => match resources.process_tables.get(path) {
            Some(table) => Endpoint::Members { table: Arc::clone(table), prefix: path.clone() },
            None => Endpoint::Shared(Address::Unix(path.clone())),
        },
        Some(Target::Tcp(address)) => Endpoint::Shared(Address::Inet(*address)),
        Some(Target::Host(host, port)) => {
            let name = resources.names.watch(host);
            Endpoint::Shared(Address::Named(NamedAddress { name, port: *port }))
        }
        // Not started: this plan is only inspected.
        None => Endpoint::Shared(Address::Unix(Path::new("/nonexistent").into())),
    };
    let passfd_trust = match &endpoint {
        Endpoint::Members { .. } => Trust::All,
        Endpoint::Shared(_) => {
            let user = |name: &String| Ok(identity(name, None)?.uid);
            Trust::Users(application.passfd_users.iter().map(user).collect::<io::Result<_>>()?)
        }
    };
    let backlog_notice = match &endpoint {
        Endpoint::Shared(address) => resources.notices.of(address),
        Endpoint::Members { .. } => None,
    };
    Ok(Settings {
        backlog_notice,
        passfd_trust,
        figures: name.as_deref().and_then(|name| resources.row_of_upstream(name)),
        protocol: if is_fastcgi { Protocol::FastCgi } else { Protocol::Scgi },
        transport: match application.transport {
            Transport::Auto => TransportChoice::Auto,
            Transport::Unix | Transport::Inet => TransportChoice::Plain,
            Transport::Shm => TransportChoice::Shm,
            Transport::PassFd => TransportChoice::PassFd,
        },
        connections_max: count(application.connections_max),
        keep_connections: application.keep_connections,
        queue_max: count(application.queue_max),
        queue_timeout_ms: application.queue_ms,
        timeout_ms: application.timeout_ms,
        patience_ms: u32::try_from(application.patience_ms).unwrap_or(u32::MAX),
        region_bytes: count(application.region_bytes),
        spool_memory_bytes: application.response_memory_bytes,
        spool_file_bytes_max: application.response_file_bytes_max,
        ..Settings::new(name.unwrap_or_else(|| application.command.join(" ")), endpoint)
    })
}

fn code(status: u64) -> u16 {
    u16::try_from(status).unwrap_or(500)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        Config::from_toml(text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_configuration_that_says_nothing_means_the_defaults_of_the_engine() {
        let config = config("[[site]]\nroot = '/'\n");
        assert_eq!(
            format!("{:?}", config.engine_limits()),
            format!("{:?}", baton_site::limits::Limits::default())
        );
        assert_eq!(format!("{:?}", config.tuning()), format!("{:?}", Tuning::default()));
    }

    /// Goal: no number ends up in another one's place. Method: all of them differ.
    #[test]
    fn every_number_finds_its_place() {
        let config = config(include_str!("everything.toml"));
        let limits = config.engine_limits();
        assert_eq!(
            (
                limits.connections_max,
                limits.head.head_bytes_max,
                limits.head.target_bytes_max,
                limits.head.fields_max
            ),
            (11, 12 << 10, 1300, 14)
        );
        assert_eq!((limits.body_bytes_max, limits.requests_per_connection_max), (15, 16));
        assert_eq!((limits.pipelined_max, limits.ranges_max), (17, 18));
        assert_eq!((limits.head_timeout_ms, limits.body_timeout_ms, limits.idle_timeout_ms), (21, 22, 23));
        assert_eq!(
            (limits.send_timeout_ms, limits.send_rate_min_bytes_per_s, limits.linger_timeout_ms),
            (24, 25, 26)
        );
        let tuning = config.tuning();
        assert_eq!((tuning.processes, tuning.threads, tuning.affinity), (Some(3), Some(2), false));
        assert_eq!(tuning.sendfile, SendfileMode::BySize(31 << 10));
        assert_eq!(tuning.way, baton_response::send_way::SendWay::File);
        assert_eq!((tuning.send_quantum_bytes, tuning.helpers_max, tuning.writers), (32 << 10, 33, 34));
        assert_eq!((tuning.accepts_per_wake, tuning.socket_send_buffer_bytes), (35, Some(36 << 10)));
        assert_eq!((tuning.defer_accept_s, tuning.steering), (38, true));
        let cache = tuning.cache;
        assert_eq!((cache.names_max, cache.files_max, cache.revalidate_ms), (41, 42, 45));
        assert_eq!((cache.memory_bytes_max, cache.memory_file_bytes_max), (43 << 20, 44));
        assert_eq!(cache.memory_hot_file_bytes_max, 46);
        assert_eq!(cache.policy, baton_content::Policy::Gds);
    }
}
