//! What a configuration means to the machines: which site and which route a request belongs to.
//!
//! A [`Plan`] does not change; a reload makes a new one and swaps it in whole. A request uses the plan that was
//! current when its head was complete.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use baton_cache::CachedRoute;
use baton_compress::Rules;
use baton_content::Tree;
use baton_http::origin::{Forwarding, ResponseRules};
use baton_http::{
    FieldRules, Method, PathRefusal, RequestHead, VariableText, decode_any_path, decode_path, without_root,
};
use baton_shares::Shares;
use baton_telemetry::figures::Row;
use baton_telemetry::log::SiteLog;
use baton_upstream::{Application, Homes, Peers, TemporaryFiles};

use crate::address_range::AddressSet;
use crate::cluster_key::ClusterKey;
use crate::condition::{Condition, RequestView};
use crate::cors::Cors;
use crate::documents::{Copies, Lending};
use crate::guards::{Guards, RealAddress};
use crate::limits::Limits;
use crate::mark::Marking;
use crate::matcher;
use crate::matcher::Matcher;
use crate::proofs::HttpProofs;
use crate::template::Template;

/// Everything that a worker process serves.
#[derive(Clone, Debug)]
pub struct Plan {
    sites: Vec<Site>,
    by_host: HashMap<Box<[u8]>, Vec<usize>>,
    wildcards: Vec<(Box<[u8]>, usize)>,
    defaults: Vec<usize>,
    tls: HashMap<usize, Arc<baton_tls::Server>>,
    balancers: HashMap<usize, AddressSet>,
    /// Proxies in front of the server, whose connections are those of many clients.
    proxies: AddressSet,
    proofs: Option<Arc<HttpProofs>>,
    /// Whether clients in clear count as if they had come over TLS.
    rehearses_tls: bool,
    /// Whether connections of a cluster's front-ends go back for what is not in this node's memory.
    returns_connections: bool,
    /// Where files come from that such connections ask for and that are not in this node's memory.
    fetching: Option<Arc<Fetching>>,
    /// What a client may ask for, and for how long.
    pub limits: Limits,
    /// Whether responses name the server (`Server: baton`).
    pub server_header: bool,
}

/// A virtual host.
#[derive(Clone, Debug)]
pub struct Site {
    /// Name in logs and metrics.
    pub name: String,
    /// The listeners on which it answers, by their ids; empty: on all.
    pub listeners: Vec<usize>,
    /// Names it answers to: `example.org` or `*.example.org`. Empty: it is the default of its listeners.
    pub hosts: Vec<String>,
    /// In the order of [`matcher::sort`].
    pub routes: Vec<Route>,
    /// Fields of the responses for which there is no route.
    pub headers: FieldRules,
    /// Which of these responses are coded on the fly; `None`: none.
    pub compress: Option<Arc<Rules>>,
    /// Which pages of other origins may read them.
    pub cors: Option<Arc<Cors>>,
    /// Rules for requests for which there is no route.
    pub guards: Option<Arc<Guards>>,
    /// Where the addresses of clients behind proxies are found.
    pub real_address: Option<Arc<RealAddress>>,
    /// Bodies in place of the built-in ones, by status.
    pub error_pages: Vec<ErrorPage>,
    /// What it demanded of clients' certificates in the handshake. A request on a connection whose handshake met another
    /// policy is refused (421).
    pub clients: Option<baton_tls::PolicyId>,
    /// Where its requests are counted. `None`: the plan is only inspected.
    pub figures: Option<Row>,
    /// How its requests are marked, if they are.
    pub marking: Option<Arc<Marking>>,
    /// Where its requests are logged.
    pub log: SiteLog,
    /// Which of them are; `None`: all.
    pub log_when: Option<Arc<Condition>>,
}

/// A part of a site.
#[derive(Clone, Debug)]
pub struct Route {
    /// Which paths it has.
    pub matcher: Matcher,
    /// Which requests for them it answers; `None`: all. The next route has the others.
    pub when: Option<Arc<Condition>>,
    /// Rules for the fields of each response.
    pub headers: FieldRules,
    /// Which responses are coded on the fly: all but files, whose tree says that. `None`: none.
    pub compress: Option<Arc<Rules>>,
    /// Which bodies of responses have a digest that is their entity tag.
    pub digest: Option<Digest>,
    /// Which pages of other origins may read its responses.
    pub cors: Option<Arc<Cors>>,
    /// Rules for its requests.
    pub guards: Option<Arc<Guards>>,
    /// Bodies of its errors; `None`: those of the site.
    pub pages: Option<Arc<RoutePages>>,
    /// Requests that the shared cache has nothing to do with.
    pub cache_bypass: Option<Arc<Condition>>,
    /// What is done with its requests.
    pub action: Action,
    /// What is done instead where its folder has nothing for them.
    pub otherwise: Option<Otherwise>,
}

/// Bodies whose digests are entity tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digest {
    /// Those of an application or an origin, which are sent once.
    Passing,
    /// Those that the shared cache keeps, and has ranges of, too.
    Kept,
}

impl Digest {
    /// The longest body that is digested, in bytes: it is held back until its end, and takes less than a millisecond.
    pub const BYTES_MAX: u64 = 256 << 10;
}

/// Bodies of the errors of a route.
#[derive(Debug)]
pub struct RoutePages {
    /// Bodies in place of the built-in ones, by status: its own, then those of the site.
    pub pages: Vec<ErrorPage>,
    /// Statuses of an application or an origin in whose responses' place they are sent.
    pub intercepted: Vec<u16>,
}

/// What is done with a request for which a folder has nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Otherwise {
    /// It is answered as one for this target, by the route of that.
    Rewrite(Template),
    /// The page of this status answers.
    Status(u16),
}

/// What is done with a request.
#[derive(Clone, Debug)]
pub enum Action {
    /// A file is sent.
    Files(Arc<Tree>),
    /// A file is sent, or the client is sent to the server that has it for now.
    Lent(Arc<Tree>, Arc<Lending>),
    /// A document of another server is sent, which lends it to this one: see [`ProxyTerms::copies`].
    Copies(Arc<Copies>, Arc<Delegate>),
    /// A file is sent, or run if it is a script.
    Scripts(Arc<Tree>, Arc<Delegate>),
    /// An application answers, or an origin.
    Delegated(Arc<Delegate>),
    /// The client is sent elsewhere.
    Redirect {
        /// 301, 302, 303, 307 or 308.
        status: u16,
        /// Value of the `Location` field.
        location: Template,
    },
    /// The request is answered as one for this target, by the route of that.
    Rewrite(Template),
    /// The client is sent to the same target over TLS (308).
    Https {
        /// The host for a client that names none.
        host: Option<String>,
        /// The port.
        port: u16,
    },
    /// A fixed answer.
    Respond {
        /// Status code; [`UNANSWERED`]: none.
        status: u16,
        /// Value of the `Content-Type` field.
        media_type: String,
        /// The body.
        body: VariableText,
    },
}

/// The status, in the log, of a request that is not answered: its connection or stream ends. nginx has made it common.
pub const UNANSWERED: u16 = 444;

/// What answers the requests of a route elsewhere, and what it is told.
#[derive(Debug)]
pub struct Delegate {
    /// The application, or the origin.
    pub application: Arc<Application>,
    /// How the bodies of requests are kept.
    pub upload: UploadSettings,
    /// What requests say.
    pub terms: Terms,
    /// How responses are kept in the shared cache, if they are.
    pub cache: Option<Arc<CachedRoute>>,
}

/// Where and how the body of a request is kept.
#[derive(Clone, Debug)]
pub struct UploadSettings {
    /// Bytes of a body; beyond it 413.
    pub bytes_max: u64,
    /// Milliseconds between two reads of it; `None`: as the limits say.
    pub timeout_ms: Option<u64>,
    /// Bytes of it that are kept in memory; a longer one is streamed to the application, or goes to a file.
    pub memory_bytes_max: usize,
    /// Bytes of it that have arrived before an origin gets the request: who sends none holds no connection to it.
    pub first_bytes: u64,
    /// Where such files are.
    pub temporary: TemporaryFiles,
}

/// What requests say, by the kind of what answers.
#[derive(Debug)]
pub enum Terms {
    /// An application, by FastCGI or SCGI.
    Cgi(CgiTerms),
    /// An origin, by HTTP.
    Proxy(Box<ProxyTerms>),
}

/// What an application is told, and what it may do.
#[derive(Debug)]
pub struct CgiTerms {
    /// The route's path: `SCRIPT_NAME`, where the application has all paths below.
    pub path: String,
    /// Whether it may be given the client's socket.
    pub passes_socket: bool,
    /// Whether it gets paths that no file can have: with encoded slashes, backslashes or control characters.
    pub encoded_slashes: bool,
    /// Whether a connection goes on after its socket was passed to the application.
    pub keep_passed: bool,
    /// `DOCUMENT_ROOT`, below which scripts are.
    pub document_root: Option<PathBuf>,
    /// Whether a `Location` that is a path, without a `Status`, restarts the request within the server.
    pub local_redirects: bool,
    /// Parameters from the configuration. Each replaces what the server or the client would say by that name.
    pub params: Vec<(String, String)>,
    /// Proxies in front of this server, whose own words about their clients are believed.
    pub trusted: AddressSet,
    /// Folders whose files it may name by their paths.
    pub named: Vec<Arc<Tree>>,
    /// Folders whose files it may name by paths within the site that begin so.
    pub internal: Vec<(String, Arc<Tree>)>,
}

/// How the requests of a route go on to an origin, and its responses to the client.
#[derive(Debug)]
pub struct ProxyTerms {
    /// The origins, if there are several. [`Delegate::application`] is the first one, whose settings all share.
    pub peers: Option<Arc<Peers>>,
    /// If they are the nodes of the cluster: by what one of them is chosen, and how requests get there.
    pub cluster: Option<ClusterTerms>,
    /// How the heads of requests are written.
    pub forwarding: Forwarding,
    /// How the heads of responses are changed.
    pub responses: ResponseRules,
    /// Proxies in front of this server, whose own words about their clients are believed.
    pub trusted: AddressSet,
    /// If it is the home of documents that this server is lent: which of its responses are passed on.
    pub copies: Option<Arc<Copies>>,
}

/// What a route says of the cluster.
#[derive(Clone, Debug)]
pub struct ClusterTerms {
    /// How requests get to its nodes.
    pub way: ClusterWay,
    /// By what a node is chosen.
    pub key: ClusterKey,
}

/// Where a node of a cluster gets files that are not in its memory, for further requests on connections that were handed over.
#[derive(Debug)]
pub struct Fetching {
    /// How their homes are asked.
    pub delegate: Arc<Delegate>,
    /// Which node is the home of a file.
    pub homes: Homes,
    /// The listener at which a node is asked, by its id. Only the site that answers there is the one that answers at the home.
    pub door: usize,
    /// Requests that are under way at homes, by their clients.
    pub under_way: Shares,
}

/// How requests get to the nodes of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterWay {
    /// By the best way that the client and the node allow.
    Auto,
    /// The connection is handed over, if it can be and the node takes it; else through this server.
    HandOff,
    /// Through this server.
    Relay,
    /// The client is sent to the node's own URL, if the request is harmless and the node has one; else through this server.
    Redirect,
}

impl Fetching {
    /// Where those stand that have passed a request on (RFC 8586).
    pub const LOOPS: &'static str = "CDN-Loop";

    /// What a node adds there when it fetches. A client that says so has its files read here, no more.
    pub const MARK: &'static str = "baton-fetch";

    /// What a home says of a file that it has in memory (RFC 9211), and a node that fetches looks at.
    pub const HIT: (&'static str, &'static str) = ("Cache-Status", "baton; hit");

    /// Of these nodes.
    pub fn new(delegate: Arc<Delegate>, homes: Homes, door: usize) -> Self {
        Self { delegate, homes, door, under_way: Shares::default() }
    }
}

impl AsRef<Matcher> for Route {
    fn as_ref(&self) -> &Matcher {
        &self.matcher
    }
}

impl Delegate {
    /// What it is told as an application; `None`: it is an origin.
    pub fn cgi(&self) -> Option<&CgiTerms> {
        match &self.terms {
            Terms::Cgi(terms) => Some(terms),
            Terms::Proxy(_) => None,
        }
    }

    /// How requests go on to it as an origin; `None`: it is an application.
    pub fn proxy(&self) -> Option<&ProxyTerms> {
        match &self.terms {
            Terms::Proxy(terms) => Some(terms),
            Terms::Cgi(_) => None,
        }
    }

    /// What a route to the cluster says; `None`: it leads elsewhere.
    pub fn cluster(&self) -> Option<&ClusterTerms> {
        self.proxy()?.cluster.as_ref()
    }

    /// Whether a node is chosen by what a request's body has.
    pub fn chooses_by_body(&self) -> bool {
        self.cluster().is_some_and(|cluster| cluster.key.body_bytes() > 0)
    }

    /// If it is the home of documents that this server is lent: which of its responses are passed on.
    pub fn copies(&self) -> Option<&Copies> {
        self.proxy()?.copies.as_deref()
    }
}

impl CgiTerms {
    /// Decodes the path of a request as the application is told it. Returns how much of it could be the name of a file.
    ///
    /// # Errors
    /// If the path is not for this application.
    pub fn decode(&self, path: &[u8], decoded: &mut Vec<u8>) -> Result<usize, PathRefusal> {
        if self.encoded_slashes {
            return decode_any_path(path, decoded);
        }
        decode_path(path, decoded)?;
        Ok(decoded.len())
    }
}

/// A configured body for a status.
#[derive(Clone, Debug)]
pub struct ErrorPage {
    /// The status that it belongs to.
    pub status: u16,
    /// Value of the `Content-Type` field.
    pub media_type: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Plan {
    /// Puts sites in an order in which a request finds its own quickly. Of two sites with the same host and
    /// listener the first wins; so does the first site of all where none is the default.
    pub fn new(mut sites: Vec<Site>, limits: Limits, server_header: bool) -> Self {
        let mut by_host: HashMap<Box<[u8]>, Vec<usize>> = HashMap::new();
        let mut wildcards: Vec<(Box<[u8]>, usize)> = Vec::new();
        let mut defaults = Vec::new();
        for (index, site) in sites.iter_mut().enumerate() {
            matcher::sort(&mut site.routes);
            if site.hosts.is_empty() {
                defaults.push(index);
            }
            for host in &site.hosts {
                let host = without_root(host).to_ascii_lowercase();
                match host.strip_prefix('*') {
                    Some(suffix) => wildcards.push((suffix.as_bytes().into(), index)),
                    None => by_host.entry(host.as_bytes().into()).or_default().push(index),
                }
            }
        }
        wildcards.sort_by_key(|(suffix, _)| std::cmp::Reverse(suffix.len()));
        defaults.extend(0..sites.len());
        Self {
            sites,
            by_host,
            wildcards,
            defaults,
            tls: HashMap::new(),
            balancers: HashMap::new(),
            proxies: AddressSet::default(),
            proofs: None,
            rehearses_tls: false,
            returns_connections: false,
            fetching: None,
            limits,
            server_header,
        }
    }

    /// The plan with TLS on the listeners with these ids.
    pub fn with_tls(self, tls: HashMap<usize, Arc<baton_tls::Server>>) -> Self {
        Self { tls, ..self }
    }

    /// The TLS of a listener, by its id; `None`: its connections are in clear text.
    pub fn tls(&self, listener: usize) -> Option<&Arc<baton_tls::Server>> {
        self.tls.get(&listener)
    }

    /// The plan where clients in clear count as if they had come over TLS.
    /// It is for an explanation, which needs no certificate.
    pub fn rehearsing_tls(self) -> Self {
        Self { rehearses_tls: true, ..self }
    }

    /// Whether clients in clear count as if they had come over TLS.
    pub const fn rehearses_tls(&self) -> bool {
        self.rehearses_tls
    }

    /// The plan with load balancers, which speak the PROXY protocol, in front of the listeners with these ids.
    pub fn with_balancers(self, balancers: HashMap<usize, AddressSet>) -> Self {
        Self { balancers, ..self }
    }

    /// The load balancers in front of a listener, by its id.
    pub fn balancers(&self, listener: usize) -> Option<&AddressSet> {
        self.balancers.get(&listener)
    }

    /// The plan with proxies in front of the server, whose connections are not counted by address.
    pub fn with_proxies(self, proxies: AddressSet) -> Self {
        Self { proxies, ..self }
    }

    /// How many connections a client with this address may have; `None`: any number.
    pub fn connections_max_of(&self, address: IpAddr) -> Option<u64> {
        self.limits.connections_per_address_max.filter(|_| !self.is_proxy(address))
    }

    /// Whether a proxy has this address, behind which there are many clients.
    pub fn is_proxy(&self, address: IpAddr) -> bool {
        self.proxies.contains(Some(address))
    }

    /// The plan with proofs for certificate authorities, on all sites.
    pub fn with_proofs(self, proofs: Arc<HttpProofs>) -> Self {
        Self { proofs: Some(proofs), ..self }
    }

    /// The plan where connections go back to the front-ends of a cluster that have handed them over.
    /// They go back for requests that are not answered from memory.
    pub fn returning_connections(self, returns_connections: bool) -> Self {
        Self { returns_connections, ..self }
    }

    /// Whether connections go back to the front-ends of a cluster that have handed them over.
    pub fn returns_connections(&self) -> bool {
        self.returns_connections
    }

    /// The plan where files of further requests on such connections are fetched from their homes.
    pub fn fetching_files(self, fetching: Option<Fetching>) -> Self {
        Self { fetching: fetching.map(Arc::new), ..self }
    }

    /// How such files are fetched; `None`: they are not.
    pub fn fetching(&self) -> Option<&Arc<Fetching>> {
        self.fetching.as_ref()
    }

    /// What a certificate authority that asks so gets.
    pub fn proof(&self, head: &RequestHead<'_>) -> Option<Arc<str>> {
        let proofs = self.proofs.as_ref().filter(|_| matches!(head.method, Method::Get | Method::Head))?;
        proofs.answer(head.path)
    }

    /// All sites.
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// Whether any route leads to an origin.
    pub fn has_proxies(&self) -> bool {
        self.proxies().next().is_some()
    }

    /// The origins of each route that has several.
    pub fn peers(&self) -> impl Iterator<Item = &Arc<Peers>> {
        let homes = self.fetching.iter().map(|fetching| fetching.homes.peers());
        self.proxies().filter_map(|proxy| proxy.peers.as_ref()).chain(homes)
    }

    /// The nodes of the cluster, if a route leads there.
    pub fn cluster(&self) -> Option<&Arc<Peers>> {
        self.proxies().filter(|proxy| proxy.cluster.is_some()).find_map(|proxy| proxy.peers.as_ref())
    }

    /// The origin of this name.
    pub fn origin(&self, name: &str) -> Option<&Arc<Application>> {
        self.delegates().find_map(|delegate| match &delegate.proxy()?.peers {
            Some(peers) => peers.named(name),
            None => Some(&delegate.application).filter(|application| application.name() == name),
        })
    }

    fn proxies(&self) -> impl Iterator<Item = &ProxyTerms> {
        self.delegates().filter_map(Delegate::proxy)
    }

    fn delegates(&self) -> impl Iterator<Item = &Delegate> {
        let routes = self.sites.iter().flat_map(|site| &site.routes);
        routes.filter_map(|route| match &route.action {
            Action::Delegated(delegate) | Action::Copies(_, delegate) => Some(&**delegate),
            _ => None,
        })
    }

    /// The site, by its index, for a request that arrived at a listener: by exact name, else by the longest
    /// wildcard, else the default. `None` only if no site belongs to the listener.
    pub fn site(&self, listener: usize, host: Option<&str>) -> Option<usize> {
        let here = |index: &usize| {
            let site = &self.sites[*index];
            site.listeners.is_empty() || site.listeners.contains(&listener)
        };
        let named =
            host.filter(|_| !self.by_host.is_empty() || !self.wildcards.is_empty()).and_then(|host| {
                let host = without_root(host);
                let mut lower = [0; HOST_BYTES_MAX];
                let name = lower.get_mut(..host.len())?;
                name.copy_from_slice(host.as_bytes());
                name.make_ascii_lowercase();
                let name = &*name;
                let exact = self.by_host.get(name).and_then(|sites| sites.iter().find(|index| here(index)));
                exact.or_else(|| {
                    let matches = |suffix: &[u8]| name.len() > suffix.len() && name.ends_with(suffix);
                    self.wildcards
                        .iter()
                        .find(|(suffix, index)| matches(suffix) && here(index))
                        .map(|(_, index)| index)
                })
            });
        named.or_else(|| self.defaults.iter().find(|index| here(index))).copied()
    }
}

impl Site {
    /// The index of a request's route: the first one that has its path and whose condition holds. The path is decoded before it is
    /// compared, encoded slashes too, so that no spelling of it gets around its route. `decoded` is memory to do so.
    ///
    /// # Errors
    /// If the path is invalid, or ambiguous.
    pub fn route(&self, view: &RequestView<'_>, decoded: &mut Vec<u8>) -> Result<Option<usize>, PathRefusal> {
        if let [only] = &self.routes[..]
            && only.matcher.is_whole()
            && only.when.is_none()
        {
            return Ok(Some(0));
        }
        decode_any_path(view.head.path, decoded)?;
        let admits = |route: &Route| route.when.as_ref().is_none_or(|when| when.holds(view));
        Ok(matcher::position(&self.routes, decoded, admits))
    }
}

/// Longest name that DNS knows, and a port's worth of room.
const HOST_BYTES_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use baton_http::HeadLimits;

    use super::*;

    fn site(name: &str, hosts: &[&str], listeners: &[usize]) -> Site {
        Site {
            name: name.into(),
            listeners: listeners.into(),
            hosts: hosts.iter().map(|&host| host.into()).collect(),
            routes: Vec::new(),
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
        }
    }

    fn name(plan: &Plan, listener: usize, host: &str) -> String {
        plan.site(listener, Some(host)).map_or("none".into(), |site| plan.sites()[site].name.clone())
    }

    #[test]
    fn exact_host_before_wildcard_before_default() {
        let sites = vec![
            site("any", &["*.example.org"], &[]),
            site("deep", &["*.b.example.org"], &[]),
            site("exact", &["a.example.org"], &[]),
            site("default", &[], &[]),
        ];
        let plan = Plan::new(sites, Limits::default(), true);
        assert_eq!(name(&plan, 0, "A.Example.ORG"), "exact");
        assert_eq!(name(&plan, 0, "a.example.org."), "exact");
        assert_eq!(name(&plan, 0, "x.example.org"), "any");
        assert_eq!(name(&plan, 0, "x.b.example.org"), "deep");
        assert_eq!(name(&plan, 0, "example.org"), "default");
        assert_eq!(plan.site(0, None), Some(3));
    }

    #[test]
    fn a_site_answers_on_its_listeners_only() {
        let sites = vec![site("one", &["h"], &[1]), site("two", &["h"], &[2]), site("rest", &[], &[2])];
        let plan = Plan::new(sites, Limits::default(), true);
        assert_eq!(name(&plan, 1, "h"), "one");
        assert_eq!(name(&plan, 2, "h"), "two");
        assert_eq!(name(&plan, 2, "other"), "rest");
        assert_eq!(name(&plan, 1, "other"), "one", "the first site of a listener is its default");
        assert_eq!(name(&plan, 3, "h"), "none");
    }

    #[test]
    fn longest_route_on_a_segment_border() {
        let mut site = site("s", &[], &[]);
        for path in ["/", "/docs", "/docs/api/"] {
            let action = Action::Redirect { status: 302, location: Template::default() };
            site.routes.push(Route {
                matcher: Matcher::prefix(path),
                when: None,
                pages: None,
                cache_bypass: None,
                headers: FieldRules::default(),
                compress: None,
                digest: None,
                cors: None,
                guards: None,
                action,
                otherwise: None,
            });
        }
        let plan = Plan::new(vec![site], Limits::default(), true);
        let routed = |path: &str| {
            let text = format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
            let head = RequestHead::parse(text.as_bytes(), &HeadLimits::default()).unwrap();
            let site = &plan.sites()[0];
            let route = site
                .route(&RequestView { head: &head, address: None, has_certificate: false }, &mut Vec::new());
            route.map(|index| site.routes[index.unwrap()].matcher.path().to_owned())
        };
        let path_of = |path: &str| routed(path).unwrap();
        assert_eq!(path_of("/docs"), "/docs");
        assert_eq!(path_of("/docs/x"), "/docs");
        assert_eq!(path_of("/docset"), "/");
        assert_eq!(path_of("/docs/api"), "/docs/api/");
        assert_eq!(path_of("/docs/api/x"), "/docs/api/");
        assert_eq!(path_of("/%64ocs/x"), "/docs", "however it is spelled");
        assert_eq!(path_of("/x/..//docs/./api/y"), "/docs/api/");
        assert_eq!(path_of("/docs/../x"), "/");
        assert_eq!(path_of("/docs%2Fapi%2fx"), "/docs/api/");
        assert_eq!(path_of("/%2Fdocs/%2F/api"), "/docs/api/", "slashes that are not joined do not hide it");
        assert_eq!(path_of("/docs%5Cx"), "/", "a backslash is a character");
        assert!(routed("/x%2F..%2Fdocs/").is_err());
        assert!(routed("/../x").is_err());
    }
}
