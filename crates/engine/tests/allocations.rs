//! Goal: in the steady state a request for a cached file costs no heap allocation, under every architecture.
//! Method: a whole server runs on a thread whose allocations are counted, once for a few requests and once for a
//! thousand more. The second does not allocate a single time more than the first. Requests to an origin do cost
//! allocations: their number is asserted, so that it grows only on purpose.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use baton_cache::{CachedRoute, PolicyChoice, RouteRules, SharedCache};
use baton_content::{CacheSettings, Tree, TreeConfig};
use baton_engine::heartbeat::Heartbeats;
use baton_engine::{ArchitectureName, ListenAddress, ListenOptions, Listener, Steering, Tuning, Worker};
use baton_http::FieldRules;
use baton_http::origin::{Forwarding, HostRule, PathRule, ResponseRules};
use baton_site::address_range::AddressSet;
use baton_site::limits::Limits;
use baton_site::matcher::Matcher;
use baton_site::plan::{Action, Delegate, Plan, ProxyTerms, Route, Site, Terms, UploadSettings};
use baton_telemetry::figures::{FigureTable, Subject};
use baton_telemetry::log::{LineFormat, LogFormat, LogSettings, SiteLog, SiteLogs};
use baton_telemetry::metrics::Counters;
use baton_upstream::{Address, Application, Endpoint, Protocol, Settings};
use rustix::net::getsockname;
use tempfile::TempDir;

/// What a client asks for again and again on one connection.
struct Question {
    what: &'static str,
    request: &'static str,
    /// Requests that go out with one write.
    at_once: usize,
    status: &'static str,
    body_len: usize,
}

const SMALL: Question = Question {
    what: "a small file, from memory",
    request: "GET /small.txt HTTP/1.1\r\nHost: a\r\nUser-Agent: b\r\nReferer: c\r\n\r\n",
    at_once: 1,
    status: "200",
    body_len: 1000,
};

const EVERYTHING: [Question; 6] = [
    SMALL,
    Question { what: "a batch of small files", at_once: 16, ..SMALL },
    Question {
        what: "a file by sendfile",
        request: "GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n",
        status: "200",
        body_len: LARGE_BYTES,
        at_once: 1,
    },
    Question {
        what: "a range",
        request: "GET /large.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=10-19\r\n\r\n",
        status: "206",
        body_len: 10,
        at_once: 1,
    },
    Question {
        what: "a file that the client has",
        request: "GET /small.txt HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n\r\n",
        status: "304",
        body_len: 0,
        at_once: 1,
    },
    Question {
        what: "a head",
        request: "HEAD /large.bin HTTP/1.1\r\nHost: a\r\n\r\n",
        status: "200",
        body_len: 0,
        at_once: 1,
    },
];

const CONDITIONAL: &str = "GET /small.txt HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"b\"\r\n\r\n";

const RANGE: &str = "GET /small.txt HTTP/1.1\r\nHost: a\r\nRange: bytes=300000-300009\r\n\r\n";

/// Architectures that run the steps on the thread that calls `run`. In `pipeline` and among the further loops of
/// `shared-symped` other threads do; the machines are the same.
const ON_ONE_THREAD: [ArchitectureName; 7] = [
    ArchitectureName::Auto,
    ArchitectureName::Sped,
    ArchitectureName::Amped,
    ArchitectureName::SharedSymped,
    ArchitectureName::Threads,
    ArchitectureName::ThreadsCache,
    ArchitectureName::Mp,
];

#[test]
fn a_cached_file_costs_no_allocation_in_any_form() {
    let folder = folder();
    for asked in &EVERYTHING {
        assert_steady(ArchitectureName::Auto, asked, folder.path());
    }
}

#[test]
fn a_cached_file_costs_no_allocation_under_any_architecture() {
    let folder = folder();
    for architecture in ON_ONE_THREAD {
        assert_steady(architecture, &SMALL, folder.path());
    }
}

/// The method sees what it is meant to see: here each connection is new, and a connection does cost allocations.
#[test]
fn a_connection_is_counted() {
    let folder = folder();
    let once =
        Question { request: "GET /small.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", ..SMALL };
    let few = allocations(ArchitectureName::Sped, &once, files(folder.path()), FEW);
    let many = allocations(ArchitectureName::Sped, &once, files(folder.path()), FEW + 50);
    assert!(many >= few + 50, "{few} allocations, then {many}");
}

/// Goal: a request to an origin on a kept connection costs these allocations, however long the response is: two for the
/// request (its text, and the value that is passed on), two for its exchange (the head that is kept, and what waits for
/// the answer), one for the list of the body's pieces, and one for what the log says of the origin.
#[test]
fn a_request_to_an_origin_costs_few_allocations() {
    for body_len in [1000, 16 << 10] {
        let asked = Question { what: "a response of an origin", body_len, ..SMALL };
        assert_each(OF_A_PROXIED_REQUEST, &asked, delegated(origin(body_len), None));
    }
}

/// Goal: a hit of the shared cache costs these allocations, however long the response is: one for the key of the request, one
/// for the fields of the response, and one for the list of the body's pieces. A part needs another such list, for what is cut
/// off from its last block; a response without a body needs none.
#[test]
fn a_hit_of_the_shared_cache_costs_few_allocations() {
    for body_len in [1000, 16 << 10, 1_000_000] {
        let asked = Question { what: "a hit of the shared cache", body_len, ..SMALL };
        assert_each(OF_A_HIT, &asked, delegated(origin(body_len), Some(cached_route())));
    }
    let asked = Question {
        what: "a part of a cached response",
        request: RANGE,
        status: "206",
        body_len: 10,
        ..SMALL
    };
    assert_each(OF_A_HIT + 1, &asked, delegated(origin(1_000_000), Some(cached_route())));
    let asked = Question { what: "a cached 304", request: CONDITIONAL, status: "304", body_len: 0, ..SMALL };
    assert_each(OF_A_HIT - 1, &asked, delegated(origin(1000), Some(cached_route())));
}

/// Each request costs so many allocations.
fn assert_each(expected: u64, asked: &Question, action: Action) {
    let mut seen = Vec::new();
    while !seen.contains(&expected) {
        assert!(seen.len() < RUNS_MAX, "{}, {} bytes: {seen:?} allocations", asked.what, asked.body_len);
        let few = allocations(ArchitectureName::Auto, asked, action.clone(), FEW);
        let many = allocations(ArchitectureName::Auto, asked, action.clone(), FEW + 1000);
        // What a loop allocates once a second is less than a half for each request.
        seen.push((many.saturating_sub(few) + 500) / 1000);
    }
}

fn assert_steady(architecture: ArchitectureName, asked: &Question, root: &Path) {
    // Once a second a loop reports what it is doing, and that allocates; so does the beginning, more or less, as the
    // threads happen to meet. A run takes a fraction of a second, so that most pairs of runs see the same number of
    // reports; one pair in which the thousand cost nothing shows that requests cost nothing.
    let mut seen = Vec::new();
    for _ in 0..RUNS_MAX {
        let few = allocations(architecture, asked, files(root), FEW);
        let many = allocations(architecture, asked, files(root), FEW + 1000 / asked.at_once);
        if many <= few {
            return;
        }
        seen.push((few, many));
    }
    panic!("{architecture}, {}: allocations with few and with many requests: {seen:?}", asked.what);
}

/// Allocations in the whole life of a server that answers `rounds` times.
fn allocations(architecture: ArchitectureName, asked: &Question, action: Action, rounds: usize) -> u64 {
    let steering = Arc::new(Steering::new());
    let (worker, address) = worker(architecture, action, &steering);
    let server = std::thread::spawn(move || {
        let mut result = Ok(());
        let counted = allocation_counter::measure(|| result = baton_engine::run(worker));
        result.map(|()| counted.count_total)
    });
    let mut client = Client::connect(address);
    for _ in 0..rounds {
        client.exchange(asked);
        if asked.request.contains("close") {
            client = Client::connect(address);
        }
    }
    steering.stop();
    server.join().unwrap().unwrap()
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.txt"), [b's'; 1000]).unwrap();
    std::fs::write(folder.path().join("large.bin"), vec![b'l'; LARGE_BYTES]).unwrap();
    folder
}

fn files(root: &Path) -> Action {
    Action::Files(Arc::new(
        Tree::open(TreeConfig { root: root.to_owned(), ..TreeConfig::default() }).unwrap(),
    ))
}

/// Everything is asked of this origin, or found in the cache.
fn delegated(origin: SocketAddr, cache: Option<Arc<CachedRoute>>) -> Action {
    let endpoint = Endpoint::Shared(Address::Inet(origin));
    let settings = Settings { protocol: Protocol::Http1, ..Settings::new("origin", endpoint) };
    let upload = UploadSettings {
        bytes_max: 0,
        timeout_ms: None,
        memory_bytes_max: 0,
        first_bytes: 0,
        temporary: settings.temporary.clone(),
    };
    let forwarding = Forwarding {
        host: HostRule::Client,
        authority: origin.to_string(),
        path: PathRule::default(),
        pseudonym: "baton".into(),
        rules: FieldRules::default(),
    };
    let terms = ProxyTerms {
        peers: None,
        cluster: None,
        forwarding,
        responses: ResponseRules { pseudonym: Some("baton".into()), ..ResponseRules::default() },
        trusted: AddressSet::default(),
        copies: None,
    };
    Action::Delegated(Arc::new(Delegate {
        application: Application::new(settings).unwrap(),
        upload,
        terms: Terms::Proxy(Box::new(terms)),
        cache,
    }))
}

fn cached_route() -> Arc<CachedRoute> {
    Arc::new(CachedRoute {
        partition: "site".into(),
        policy: PolicyChoice::default(),
        rules: RouteRules::default(),
        prefetch: 0,
    })
}

/// An origin that answers every request on a kept connection with so many bytes.
fn origin(body_len: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {body_len}\r\nServer: a\r\nETag: \"b\"\r\nCache-Control: max-age=60\r\n\r\n"
    );
    let response = [head.into_bytes(), vec![b'o'; body_len]].concat();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let mut lines = BufReader::new(stream);
            let mut line = String::new();
            while lines.read_line(&mut line).is_ok_and(|count| count > 0) {
                if line == "\r\n" {
                    lines.get_mut().write_all(&response).unwrap();
                }
                line.clear();
            }
        }
    });
    address
}

/// Where requests are counted.
static FIGURES: LazyLock<FigureTable> = LazyLock::new(|| FigureTable::allocate(1).unwrap());

fn worker(architecture: ArchitectureName, action: Action, steering: &Arc<Steering>) -> (Worker, SocketAddr) {
    let site = Site {
        name: "site".into(),
        listeners: Vec::new(),
        hosts: Vec::new(),
        routes: vec![Route {
            matcher: Matcher::prefix("/"),
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
        }],
        headers: FieldRules::default(),
        compress: None,
        cors: None,
        guards: None,
        real_address: None,
        error_pages: Vec::new(),
        clients: None,
        figures: Some(FIGURES.row(Subject::Site("site"))),
        marking: None,
        log: SiteLog::Main,
        log_when: None,
    };
    // That an entry is looked at again once a second is no matter of requests.
    let cache = CacheSettings { revalidate_ms: 3_600_000, ..CacheSettings::default() };
    let tuning = Tuning { architecture, threads: Some(1), cache, ..Tuning::default() };
    let options =
        ListenOptions { backlog: 16, reuse_port: false, defer_accept_s: 0, send_buffer_bytes: None };
    let address = ListenAddress::Tcp("127.0.0.1:0".parse().unwrap());
    let socket = baton_engine::bind(&address, &options).unwrap();
    let bound = SocketAddr::try_from(getsockname(&socket).unwrap()).unwrap();
    let heartbeats = Heartbeats::allocate(1, &tuning).unwrap().remove(0);
    let counters = Counters::allocate(1).unwrap().remove(0);
    let worker = Worker {
        shared_cache: SharedCache::open(&tuning.shared_cache, counters.of_cache(), None).unwrap(),
        tuning,
        plan: Arc::new(Plan::new(vec![site], Limits::default(), true)),
        listeners: vec![Arc::new(Listener { id: 0, address, socket })],
        counters,
        figures: Some((*FIGURES, 0)),
        heartbeats,
        log: Some(LogSettings {
            file: std::fs::File::options().append(true).open("/dev/null").unwrap().into(),
            syslog: None,
            lines: LineFormat { format: LogFormat::Json, fields: None },
            // Never full: handing buffers over is a matter of time, not of requests.
            buffer_bytes: 4 << 20,
            flush_ms: 3_600_000,
        }),
        site_logs: Arc::new(SiteLogs::new(counters, 4096, 1000)),
        steering: Arc::clone(steering),
        arrivals: Vec::new(),
        to_agent: None,
        addresses: None,
        warnings: |_| {},
    };
    (worker, bound)
}

struct Client(BufReader<TcpStream>);

impl Client {
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self(BufReader::new(stream))
    }

    fn exchange(&mut self, asked: &Question) {
        self.0.get_mut().write_all(asked.request.repeat(asked.at_once).as_bytes()).unwrap();
        for _ in 0..asked.at_once {
            let mut line = String::new();
            self.0.read_line(&mut line).unwrap();
            assert_eq!(line.split(' ').nth(1), Some(asked.status), "{}", asked.what);
            while line != "\r\n" {
                line.clear();
                self.0.read_line(&mut line).unwrap();
            }
            let body = &mut self.0.by_ref().take(asked.body_len as u64);
            let read = std::io::copy(body, &mut std::io::sink()).unwrap();
            assert_eq!(read, asked.body_len as u64, "{}", asked.what);
        }
    }
}

/// Allocations of a request that an origin answers.
const OF_A_PROXIED_REQUEST: u64 = 6;

/// Allocations of a request that the shared cache answers.
const OF_A_HIT: u64 = 3;

/// Rounds after which everything that grows once has grown.
const FEW: usize = 20;

/// Above what is kept in memory by default.
const LARGE_BYTES: usize = 200_000;

/// Pairs of runs of which one has to show it.
const RUNS_MAX: usize = 10;
