//! Servers without the key are not heard, and a server fetches and serves only what it is lent.

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use baton_dcws::{Key, LoadReport, Question, SIGNATURE_FIELD, SignedMessage};
use baton_dispatch::migration::LoadMetric;

use crate::common::agent::Body;
use crate::common::client::{Client, Response};
use crate::common::server::wait_until;
use crate::servers::{SECRET, Servers, Settings, get, status};

fn ask(servers: &Servers, question: &SignedMessage) -> Response {
    ask_at(servers.addresses[1], question)
}

/// Asks a server, as its peers do.
pub(crate) fn ask_at(address: SocketAddr, question: &SignedMessage) -> Response {
    let mut client = announce(address, question);
    client.send_body(&question.body);
    client.finish_body();
    client.response()
}

/// Sends the head of a question alone.
pub(crate) fn announce(address: SocketAddr, question: &SignedMessage) -> Client {
    let mut client = Client::connect(address);
    let fields = format!("{SIGNATURE_FIELD}: {}\r\n", question.signature);
    client.begin("POST", &address.to_string(), "/~migrate/", &fields, Body::Length(question.body.len()));
    client
}

fn question(servers: &Servers, time_us: u64) -> Question {
    Question {
        from: servers.url(0).parse().expect("an origin"),
        to: servers.url(1).parse().expect("an origin"),
        time_us,
        news: LoadReport {
            load: 1,
            metric: LoadMetric::Both,
            version: u64::MAX,
            lent: Some(vec![("evil.png".into(), 1)]),
            obeys: None,
        },
    }
}

pub(crate) fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_micros() as u64
}

#[test]
fn forged_replayed_and_skewed_questions_are_refused() {
    let servers = Servers::start(1, Settings::default());
    let right = Key::from_file(SECRET.as_bytes()).expect("a key");
    let wrong = Key::from_file(b"another secret, as long as the one that counts").expect("a key");
    let is_refused = |question: &SignedMessage, why: &str| {
        let answer = ask(&servers, question);
        assert_eq!((answer.status, answer.text()), (403, &*format!("refused: {why}\n")));
    };
    let fresh = question(&servers, now_us());
    wait_until("the process of the peer listens", || ask(&servers, &fresh.signed(&wrong)).status != 502);
    is_refused(&fresh.signed(&wrong), "signature");
    is_refused(&question(&servers, now_us() - 3_600_000_000).signed(&right), "clock");
    is_refused(&question(&servers, now_us() + 3_600_000_000).signed(&right), "clock");
    let stranger = Question { from: "http://stranger.example".parse().expect("an origin"), ..fresh.clone() };
    is_refused(&stranger.signed(&right), "stranger");
    let other = Question { to: "http://other.example".parse().expect("an origin"), ..fresh };
    is_refused(&other.signed(&right), "stranger");
    // What the home server itself could have said, once.
    let said = question(&servers, now_us() + 1_000_000).signed(&right);
    let answer = ask(&servers, &said);
    assert_eq!(answer.status, 200, "{}", answer.text());
    is_refused(&said, "replayed");
    // The process reports once a second.
    let peer = servers.peers[0].as_ref().expect("a peer");
    wait_until("the refusals are reported", || peer.ctl(&["documents"]).contains("refused"));
}

#[test]
fn a_server_serves_only_what_it_is_lent() {
    let servers = Servers::start(1, Settings::default());
    servers.busy_until("a document is away", |servers| !servers.announced().is_empty());
    let (home, peer) = (servers.url(0), servers.url(1));
    let prefix = format!("{peer}/~migrate/127.0.0.1/{}", servers.addresses[0].port());
    // What is not lent is at its home, and is not fetched.
    for path in ["index.html", "s.js", "none.png", "sub/../s.js"] {
        let answer = get(&format!("{prefix}/{path}?x"), "");
        assert_eq!(answer.status, 307, "{path}");
        let name = if path == "sub/../s.js" { "s.js" } else { path };
        assert_eq!(answer.field("location"), Some(&*format!("{home}/{name}?x")), "{path}");
    }
    // No other server is asked.
    for path in ["/~migrate/127.0.0.1/1/x.png", "/~migrate/example.org/80/x.png", "/~migrate/", "/~migrate"] {
        let answer = get(&format!("{peer}{path}"), "");
        assert_eq!(answer.status, 404, "{path}");
    }
    let lent = &servers.announced()[0];
    let (authority, path) = crate::servers::split(lent);
    let mut client = Client::connect(authority.parse().expect("an address"));
    assert_eq!(client.ask_host(authority, "POST", path, "Content-Length: 0\r\n").status, 405);
    // A client that claims to copy gets what others get.
    let old = lent.rsplit_once('/').expect("a path").1;
    let fields = format!("{SIGNATURE_FIELD}: {}\r\n", "0".repeat(64));
    assert_eq!(get(&format!("{home}/img/{old}"), &fields).status, 307);
    assert!(status(&servers.home)["refused"].as_object().is_some_and(serde_json::Map::is_empty));
}

#[test]
fn hostile_pages_change_nothing_but_links() {
    let servers = Servers::start(1, Settings::default());
    let hostile = "<img src='/img/0.png'\"><script>'<img src=/img/0.png>'</script><a href=/img/0.png onclick=\"x('/img/0.png')\">\
                   <img src=/img/0.png\"onerror=alert(1)><!-- <img src=/img/0.png> --><style>/* url(/img/0.png) */</style>";
    for number in 0..8 {
        servers
            .home
            .folder()
            .write(&format!("hostile/{number}.html"), format!("{hostile}{}", "<p>".repeat(number * 1_000)));
    }
    servers.busy_until("the first image is away", |servers| {
        servers.announced().iter().any(|address| address.ends_with("/img/0.png"))
    });
    let address =
        servers.announced().into_iter().find(|address| address.ends_with("/img/0.png")).expect("it");
    let expected = hostile.replacen("src='/img/0.png'", &format!("src='{address}'"), 1).replacen(
        "href=/img/0.png",
        &format!("href={address}"),
        1,
    );
    servers.busy_until("pages show it from there", |servers| {
        let page = get(&format!("{}/hostile/3.html", servers.url(0)), "");
        page.text().starts_with(&expected)
    });
}
