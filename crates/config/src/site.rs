//! `[[site]]`: a virtual host, where it listens and what it serves.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::path::{Path, PathBuf};

use baton_content::is_named_like_a_script;
use baton_engine::listen::ListenAddress;

use super::address::{Listen, SiteAddresses};
use super::condition::{When, WhenKind};
use super::cors::check_headers;
use super::documents::{Documents, DocumentsKind};
use super::error::Complaint;
use super::error_pages::{self, ErrorPages, Intercept};
use super::files::Files;
use super::guards::Guards;
use super::kind::{Flag, ListOf, Or, Reading};
use super::known_variables::{Vocabulary, check_variables};
use super::marking::{RequestId, RequestIdKind};
use super::real_ip::{ProxyProtocol, RealIp};
use super::route::Route;
use super::setting::{Inline, Section, Table, settings};
use super::site_log::{AccessLog, AccessLogKind};
use super::text::{Text, TextOf, Wrong};
use super::tls::{
    Certificates, ClientAuthentication, Hsts, RedirectHttps, RedirectHttpsKind, SiteCertificates,
};

/// A virtual host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// How it is found and logged.
    pub settings: SiteSettings,
    /// What guards it where no route says otherwise.
    pub guards: Guards,
    /// How its files are served where no route says otherwise.
    pub files: Files,
    /// Settings below certain paths.
    pub routes: Vec<Route>,
}

settings! {
    /// A site: where it listens, which hosts it answers to, and the keys that say how its files are served. There may
    /// be any number of them.
    SiteSettings in "site" {
        /// Name in logs and metrics. `auto`: the first host, or else the first address.
        name: Option<String> = None, Or("auto", Text);
        /// Addresses on which the site answers; several sites may share one. An address that ends in ` tls` speaks TLS:
        /// `[":80", ":443 tls"]`.
        listen: Vec<Listen> = default_listen(), SiteAddresses;
        /// Names that it answers to: `["example.org", "*.example.org"]`. None: it is the default of its addresses.
        hosts: Vec<String> = Vec::new(), ListOf(HOST_NAME);
        /// Certificate of the site on its TLS addresses: `{ certificate = "chain.pem", key = "key.pem" }`. An array has
        /// several, such as one with an ECDSA key and one with an RSA key: a client gets the first algorithm that it
        /// knows, ECDSA before RSA. Which site's certificate a client gets follows from the name that it asks for
        /// (SNI), as `hosts` say. A name of no site is refused unless a site of the address has no `hosts`. `acme`: the
        /// server obtains a certificate for the hosts, see `[acme]`.
        tls: SiteCertificates = SiteCertificates::Files(Vec::new()), Certificates;
        /// Certificates that clients show on the TLS addresses: `{ authorities = "ca.pem" }`.
        client_certificates: Option<ClientAuthentication> = None, Or("off", Inline::<ClientAuthentication>::new());
        /// Whether requests on addresses without TLS are sent to `https://` (308), to the port of the site's first TLS
        /// address or to the given one.
        redirect_https: RedirectHttps = RedirectHttps::Off, RedirectHttpsKind;
        /// Whether browsers are told to use TLS only (`Strict-Transport-Security`). `true`: for two years.
        hsts: Option<String> = None, Hsts;
        /// Servers that share the load of their sites by serving documents for each other: `{ at = "http://a.example.org",
        /// peers = ["http://b.example.org"], key = "/etc/baton/documents.key" }`.
        documents: Option<Documents> = None, Or("off", DocumentsKind);
        /// Proxies in front of the site that say whose requests they pass on: `{ from = ["10.0.0.0/8"] }`. Guards, logs and
        /// applications then see that address.
        real_ip: Option<RealIp> = None, Or("off", Inline::<RealIp>::new());
        /// Load balancers in front of the site's addresses that say whose connections they pass on, by the PROXY protocol:
        /// `{ from = ["10.0.0.0/8"] }`. All sites of an address need the same.
        proxy_protocol: Option<ProxyProtocol> = None, Or("off", Inline::<ProxyProtocol>::new());
        /// Whether its requests are written to the access log, or the file of a log of its own: `"/var/log/a.log"`,
        /// `{ file = "/var/log/a.log", format = "json", fields = ["time", "request", "duration_us"] }`.
        access_log: AccessLog = AccessLog::Server, AccessLogKind;
        /// Which of its requests are written there: `{ user_agent = "!health-check" }`.
        access_log_when: Option<When> = None, Or("always", WhenKind);
        /// Whether each request has an id: in the log (`request_id`), in the request that an application or an origin gets,
        /// and in the response. A table says more: `{ header = "X-Request-Id", trust = ["10.0.0.0/8"] }`.
        request_id: Option<RequestId> = None, RequestIdKind;
        /// Whether a request without a `traceparent` (W3C Trace Context) gets one, for applications and origins. One that
        /// a client sends is passed on in any case.
        traceparent: bool = false, Flag;
        /// Files, relative to the root, that are the bodies of errors: `{ 404 = "404.html" }`. They are read when the
        /// configuration is loaded.
        error_pages: BTreeMap<u16, PathBuf> = BTreeMap::new(), ErrorPages;
    }
}

/// Where a site listens if it does not say so: this host only.
fn default_listen() -> Vec<Listen> {
    let address = ListenAddress::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)));
    vec![Listen { address, tls: false }]
}

impl Site {
    /// Reads a site. `span` is where it begins.
    pub fn read(mut table: Table<'_>, span: Range<usize>, reading: &mut Reading<'_>) -> Self {
        let mut settings = SiteSettings::read(&mut table, SiteSettings::default(), reading);
        let guards = Guards::read_checked(&mut table, Guards::default(), reading);
        let files = Files::read_with_root(&mut table, Files::default(), reading);
        check_headers(guards.cors.as_ref(), &files, &table, reading);
        let place = table.span_of("headers");
        check_variables(files.headers.variables(), Vocabulary::Response, None, place, reading);
        let root_is_known = !table.has_refused("root", reading);
        let has_routes = table.has_elements("route");
        let (mut routes, mut places) = (Vec::new(), Vec::new());
        for (table, span) in table.tables("route", reading) {
            places.push((table.span_of("error_pages"), table.span_of("intercept")));
            routes.push(Route::read(table, span, (&guards, &files), reading));
        }
        let endings = script_endings(&routes);
        let is_script = |page: &Path| {
            !files.script_sources && is_named_like_a_script(page.as_os_str().as_encoded_bytes(), &endings)
        };
        let base = files.root.as_deref().unwrap_or(reading.base_at(&span));
        let place = table.span_of("error_pages").unwrap_or_else(|| span.clone());
        let known_base = root_is_known.then_some(base);
        error_pages::complete(&mut settings.error_pages, known_base, is_script, &place, reading);
        for (route, (pages, intercept)) in routes.iter_mut().zip(&places) {
            let base = route.files.root.clone();
            let base = base.as_deref().filter(|_| root_is_known).or(known_base);
            let place = pages.clone().unwrap_or_default();
            error_pages::complete(&mut route.settings.error_pages, base, is_script, &place, reading);
            let has_pages = !settings.error_pages.is_empty() || !route.settings.error_pages.is_empty();
            if let Some(at) = intercept.clone().filter(|_| !has_pages)
                && route.settings.intercept == Intercept::WithPage
            {
                let complaint = Complaint::new("no error page could take the place of a response");
                let complaint = complaint.at(at, "neither the route nor its site has `error_pages`");
                reading
                    .complain(complaint.help("add `error_pages`, or name statuses for the built-in pages"));
            }
        }
        if settings.documents.is_some() && settings.client_certificates.is_some() {
            let complaint =
                Complaint::new("documents that clients need a certificate for stay where they are");
            let at = table.span_of("documents").unwrap_or_else(|| span.clone());
            reading.complain(complaint.at(at, "remove `documents` or `client_certificates`"));
        }
        if settings.documents.is_some() && guards.keeps_out() {
            let complaint = Complaint::new("documents that some clients must not have stay where they are");
            let at = table.span_of("documents").unwrap_or_else(|| span.clone());
            let complaint = complaint.at(at, "other servers would give them to every client");
            reading.complain(complaint.help("remove `documents`, or guard routes instead"));
        }
        let takes_questions =
            guards.methods.as_ref().is_none_or(|methods| methods.iter().any(|one| one == "POST"));
        if settings.documents.is_some() && !takes_questions {
            let complaint = Complaint::new("other servers could not speak with this one");
            let at = table.span_of("methods").unwrap_or_else(|| span.clone());
            let complaint = complaint.at(at, "they ask by `POST`");
            reading.complain(complaint.help("add `POST` here, and limit the methods of routes instead"));
        }
        if !table.has("root") && !has_routes && settings.documents.is_none() {
            let complaint =
                Complaint::new("a site that serves nothing").at(span, "has neither `root` nor a route");
            reading.complain(complaint.help("add `root = \"FOLDER\"` or a [[site.route]]"));
        }
        table.finish(reading);
        Self { settings, guards, files, routes }
    }

    /// Endings of the names that are scripts anywhere in the site.
    pub fn script_endings(&self) -> Vec<String> {
        script_endings(&self.routes)
    }

    /// Its addresses.
    pub fn addresses(&self) -> impl Iterator<Item = &ListenAddress> + Clone {
        self.settings.listen.iter().map(|listen| &listen.address)
    }

    /// Whether it has a certificate, or gets one.
    pub fn has_certificate(&self) -> bool {
        self.settings.tls != SiteCertificates::Files(Vec::new())
    }

    /// Whether it answers on this address, with TLS.
    pub fn has_tls(&self, address: &ListenAddress) -> bool {
        self.settings.listen.iter().any(|listen| listen.tls && listen.address == *address)
    }

    /// Whether it answers on addresses without TLS otherwise than by sending clients to those with TLS.
    pub fn serves_in_clear(&self) -> bool {
        let SiteSettings { listen, redirect_https, .. } = &self.settings;
        *redirect_https == RedirectHttps::Off && listen.iter().any(|listen| !listen.tls)
    }

    /// Its name: the given one, or else its first host or address.
    pub fn name(&self) -> String {
        let SiteSettings { name, hosts, .. } = &self.settings;
        let address = || self.addresses().next().map(ToString::to_string);
        name.clone().or_else(|| hosts.first().cloned()).or_else(address).unwrap_or_default()
    }
}

fn script_endings(routes: &[Route]) -> Vec<String> {
    let applications = routes.iter().filter_map(|route| route.settings.application());
    let configured = applications.flat_map(|(_, application)| application.scripts.iter().map(String::as_str));
    let mut endings: Vec<_> = ALWAYS_SCRIPTS.into_iter().chain(configured).map(str::to_owned).collect();
    endings.sort();
    endings.dedup();
    endings
}

/// PHP is written for a server that runs it: its source often has passwords in it.
const ALWAYS_SCRIPTS: [&str; 2] = [".php", ".phtml"];

/// A host name, or `*.` and one; in lower case.
const HOST_NAME: TextOf = TextOf {
    accepted: "a host such as \"example.org\" or \"*.example.org\", without a port",
    check: |host| {
        let host = host.to_ascii_lowercase();
        let name = host.strip_prefix("*.").unwrap_or(&host);
        let label_is_fine = |label: &str| {
            !label.is_empty()
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        // An IPv6 literal stands in brackets, as in a URL.
        let fine = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
            Some(literal) => literal.parse::<Ipv6Addr>().is_ok(),
            None => name.split('.').all(label_is_fine),
        };
        let expected = "expected a host such as \"example.org\" or \"*.example.org\", without a port";
        if fine { Ok(host) } else { Err(Wrong::new("has a bad host name", expected)) }
    },
};
