//! Several origins behind one route: who gets a request, what one that fails costs, and that it gets nothing for a while.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::agent::{Agent, Body};
use crate::common::folder::Folder;
use crate::common::port::free_address;
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::origin::{Origin, Peer};
use crate::site::logged;

pub(crate) fn well(peer: &mut Peer) {
    while peer.request().is_some() {
        peer.answer("", "well");
    }
}

pub(crate) fn overloaded(peer: &mut Peer) {
    while peer.request().is_some() {
        peer.send("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy");
    }
}

/// Takes requests and never answers.
pub(crate) fn silent(peer: &mut Peer) {
    if peer.request().is_some() {
        peer.wait_for_end();
    }
}

/// Ends each connection instead of an answer.
fn gone(peer: &mut Peer) {
    peer.request();
}

/// One process, so that one count of loads decides. `to` is the array of origins.
fn server(to: &str, more: &str) -> Server {
    server_of("processes = 1\n", to, more)
}

/// The same with these settings of the server.
pub(crate) fn server_of(settings: &str, to: &str, more: &str) -> Server {
    let configuration = format!(
        "{settings}[log]\naccess = '{{base}}/access.log'\nformat = 'json'\nflush_ms = 10\n[[site]]\nname = 'front'\n{{listen}}\n\
         [[site.route]]\npath = '/'\nproxy = {{ to = {to}, {more} }}\n"
    );
    Server::run(Folder::new(), &configuration)
}

pub(crate) fn urls(addresses: &[SocketAddr]) -> String {
    let urls: Vec<_> = addresses.iter().map(|address| format!("'http://{address}'")).collect();
    format!("[{}]", urls.join(", "))
}

fn status(agent: &mut Agent, method: &str, path: &str) -> u16 {
    match method {
        "GET" => agent.get(path).status,
        _ => agent.send(method, path, b"a body").status,
    }
}

#[test]
fn turns_are_given_by_weight() {
    let origins = [(); 3].map(|()| Origin::start(well));
    let [one, two, five] = origins.each_ref().map(Origin::address);
    let to = format!(
        "['http://{one}', {{ to = 'http://{two}', weight = 2 }}, {{ to = 'http://{five}', weight = 5 }}]"
    );
    let server = server(&to, "");
    for (round, protocol) in Protocol::ALL.into_iter().enumerate() {
        let mut agent = server.over(protocol).agent();
        (0..80).for_each(|number| assert_eq!(agent.get(&format!("/{number}")).status, 200));
        let shares = origins.each_ref().map(|origin| origin.seen("/").len());
        assert_eq!(shares, [10, 20, 50].map(|share| share * (round + 1)), "{protocol:?}");
    }
}

#[test]
fn a_path_stays_at_its_origin() {
    let origins = [(); 4].map(|()| Origin::start(well));
    let server = server(&urls(&origins.each_ref().map(Origin::address)), "policy = 'consistent-hash'");
    let mut agent = server.agent();
    for number in (0..20).chain(0..20) {
        assert_eq!(agent.get(&format!("/n{number}")).status, 200);
    }
    for number in 0..20 {
        let line = format!("/n{number} ");
        let mut counts = origins.each_ref().map(|origin| origin.seen(&line).len());
        counts.sort_unstable();
        assert_eq!(counts, [0, 0, 0, 2], "{line}");
    }
    let used = origins.iter().filter(|origin| !origin.seen("/").is_empty()).count();
    assert!(used > 1, "all paths went to one of them");
}

/// Goal: a dead origin costs no client anything, whatever it asks for, is soon not asked, and serves again when it returns.
#[test]
fn one_that_is_dead_and_returns() {
    let (dead, alive) = (free_address(), Origin::start(well));
    let server =
        server(&urls(&[dead, alive.address()]), "eject = { failures = 3, out_ms = 300, out_ms_max = 300 }");
    for protocol in Protocol::ALL {
        let mut agent = server.over(protocol).agent();
        for method in ["GET", "POST"] {
            for number in 0..10 {
                let path = format!("/dead?{protocol:?}-{method}-{number}");
                assert_eq!(status(&mut agent, method, &path), 200, "{path}");
                assert_eq!(logged(&server, &path)["origin"]["name"], format!("http://{}", alive.address()));
            }
        }
    }
    let first = format!("/dead?{:?}-GET-0", Protocol::ALL[0]);
    assert_eq!(logged(&server, &first)["origin"]["tries"], 2);
    server.wait_until_said(&format!(
        "origin http://{dead}: ejected for 300 ms after repeated failures: cannot be connected to"
    ));
    let origin = Origin::start_on(TcpListener::bind(dead).expect("the same port"), well);
    let mut agent = server.agent();
    wait_until("requests for the one that is back", || {
        assert_eq!(agent.get("/back").status, 200);
        !origin.seen("/back").is_empty()
    });
}

/// What has been sent goes to another origin once, if that does no harm.
#[test]
fn one_that_takes_requests_and_does_not_answer() {
    for (serve, failure, refusal) in
        [(silent as fn(&mut Peer), "head-timed-out", 504), (gone, "ended-early", 502)]
    {
        let (bad, good) = (Origin::start(serve), Origin::start(well));
        let server = server(&urls(&[bad.address(), good.address()]), "head_ms = 300, eject = 'off'");
        let mut agent = server.agent();
        // They take turns, and the bad one begins.
        assert_eq!(status(&mut agent, "GET", "/first"), 200);
        assert_eq!((bad.seen("/first").len(), good.seen("/first").len()), (1, 1), "{failure}");
        assert_eq!(logged(&server, "/first")["origin"]["tries"], 2);
        assert_eq!(status(&mut agent, "GET", "/second"), 200);
        assert_eq!(status(&mut agent, "POST", "/third"), refusal);
        assert_eq!((bad.seen("/third").len(), good.seen("/third").len()), (1, 0), "{failure}");
        let line = logged(&server, "/third");
        assert_eq!(line["origin"]["failure"], failure);
        assert_eq!(line["origin"]["name"], format!("http://{}", bad.address()));
        server.wait_until_said(&format!("origin http://{}: POST /third: ", bad.address()));
    }
}

/// Settings under which two failures of listed statuses eject an origin, and who asks is what a client says.
pub(crate) const TWO_BUSY: &str = "trusted = ['127.0.0.0/8'], eject = { failures = 2, statuses = [503], window_ms = 600000, \
                                   out_ms = 600000, out_ms_max = 600000 }";

/// Asks for a path of its own as a client of its own. Returns the status.
pub(crate) fn ask_as(agent: &mut Agent, number: usize) -> u16 {
    agent.ask("GET", &format!("/as-{number}"), &format!("X-Forwarded-For: 192.0.2.{number}\r\n")).status
}

/// Bug: a request whose kept connection had ended was sent again to the same origin, which was dying. The end of the new
/// connection was the client's error, although another origin was well.
#[test]
fn one_that_ends_its_kept_and_its_new_connections() {
    fn dies(peer: &mut Peer) {
        if peer.number() == 0 && peer.request().is_some() {
            peer.answer("", "the last answer");
        }
        peer.request();
    }
    for (method, status_of_third, sent) in [("GET", 200, (2, 1)), ("POST", 502, (1, 0))] {
        let (dying, good) = (Origin::start(dies), Origin::start(well));
        let server = server(&urls(&[dying.address(), good.address()]), "eject = 'off'");
        let mut agent = server.agent();
        // They take turns.
        assert_eq!(agent.get("/first").text(), "the last answer");
        assert_eq!(agent.get("/second").text(), "well");
        assert_eq!(status(&mut agent, method, "/third"), status_of_third);
        assert_eq!((dying.seen("/third").len(), good.seen("/third").len()), sent);
        assert_eq!(logged(&server, "/third")["origin"]["tries"], sent.0 + sent.1);
    }
}

#[test]
fn one_that_says_that_it_cannot_is_ejected() {
    let (busy, good) = (Origin::start(overloaded), Origin::start(well));
    let server = server(&urls(&[busy.address(), good.address()]), TWO_BUSY);
    let mut agent = server.agent();
    let refused = (0..40).filter(|number| ask_as(&mut agent, *number) == 503).count();
    assert_eq!((refused, busy.seen("/").len(), good.seen("/").len()), (2, 2, 38));
    wait_until("the status", || {
        let page = server.status_text();
        page.contains("\"state\":\"ejected\"") && page.contains("\"state\":\"up\"")
    });
}

/// Goal: when no origin can be reached, all are asked, and one that is back serves at once.
#[test]
fn all_are_asked_if_all_are_ejected() {
    let dead = [(); 2].map(|()| free_address());
    let server = server(&urls(&dead), "eject = { failures = 1, out_ms = 600000, out_ms_max = 600000 }");
    let mut agent = server.agent();
    (0..4).for_each(|_| assert_eq!(agent.get("/").status, 502));
    assert_eq!(server.status_text().matches("\"state\":\"ejected\"").count(), 2);
    let back = Origin::start_on(TcpListener::bind(dead[1]).expect("the same port"), well);
    (0..4).for_each(|_| assert_eq!(agent.get("/").status, 200));
    assert_eq!(back.seen("/").len(), 4);
}

#[test]
fn a_backup_is_asked_when_the_others_are_ejected() {
    let (busy, backup) = (Origin::start(overloaded), Origin::start(well));
    let to =
        format!("['http://{}', {{ to = 'http://{}', backup = true }}]", busy.address(), backup.address());
    let server = server(&to, TWO_BUSY);
    let mut agent = server.agent();
    let answers: Vec<_> = (0..6).map(|number| ask_as(&mut agent, number)).collect();
    assert_eq!(answers, [503, 503, 200, 200, 200, 200]);
}

/// Goal: an origin that fails its checks gets no requests of clients, and gets them again when it passes. Method: it
/// answers clients well all the time, so that only its checks speak against it.
#[test]
fn one_that_fails_its_checks_is_left_out() {
    fn well_but_for_checks(peer: &mut Peer) {
        while let Some(seen) = peer.request() {
            if seen.path() == "/health" && !IS_WELL.load(Ordering::Relaxed) {
                peer.send("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
            } else {
                peer.answer("", "well");
            }
        }
    }
    static IS_WELL: AtomicBool = AtomicBool::new(false);
    let (sick, good) = (Origin::start(well_but_for_checks), Origin::start(well));
    let to = urls(&[sick.address(), good.address()]);
    let server = server(
        &to,
        "health = { path = '/health', interval_ms = 50, timeout_ms = 20000, rise = 2, fall = 2 }",
    );
    assert_eq!(server.get("/first").status, 200);
    server.wait_until_said(&format!("origin http://{}: its health checks fail", sick.address()));
    let mut agent = server.agent();
    (0..20).for_each(|_| assert_eq!(agent.get("/while-sick").status, 200));
    assert_eq!((sick.seen("/while-sick").len(), good.seen("/while-sick").len()), (0, 20));
    IS_WELL.store(true, Ordering::Relaxed);
    server.wait_until_said(&format!("origin http://{}: its health checks succeed", sick.address()));
    (0..20).for_each(|_| assert_eq!(agent.get("/when-well").status, 200));
    assert_eq!((sick.seen("/when-well").len(), good.seen("/when-well").len()), (10, 10));
    assert_eq!(sick.seen("/health")[0].field("host"), Some(&*sick.address().to_string()));
}

/// Goal: bounds of one origin lead to another, those of all to a refusal at once, and none of them to an ejection.
#[test]
fn bounds_are_no_fault_of_an_origin() {
    let origins = [(); 2].map(|()| Origin::start(silent));
    let to = urls(&origins.each_ref().map(Origin::address));
    let server = server(&to, "connections_max = 1, queue_max = 0, eject = { failures = 1 }");
    let agents: Vec<_> = (0..2)
        .map(|number| {
            let mut agent = server.agent();
            agent.begin("GET", "localhost", "/held", "", Body::None);
            wait_until("the request", || {
                origins.iter().map(|one| one.seen("/held").len()).sum::<usize>() > number
            });
            agent
        })
        .collect();
    assert_eq!(origins.each_ref().map(|origin| origin.seen("/held").len()), [1, 1]);
    assert_eq!(server.get("/refused").status, 503);
    let line = logged(&server, "/refused");
    assert_eq!(line["origin"]["failure"], "queue-full");
    assert!(!server.status_text().contains("\"state\":\"ejected\""));
    drop(agents);
}
