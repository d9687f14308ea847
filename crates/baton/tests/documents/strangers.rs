//! Attacks on a server that holds documents of another one: by strangers, and by a home that has the key and means no good.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use baton_dcws::{Key, LoadReport, Question, SignedMessage};
use baton_dispatch::migration::LoadMetric;

use crate::common::client::Response;
use crate::common::folder::Folder;
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::servers::{SECRET, configuration, get, run};
use crate::trust::{announce, ask_at, now_us};

/// A home without a server behind it, which answers what its test wants, and its holder.
struct Pair {
    holder: Server,
    home: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Pair {
    /// `settings`: of the holder's site.
    fn start(settings: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let home = listener.local_addr().expect("an address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&asked);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let lines = Arc::clone(&lines);
                std::thread::spawn(move || answer(client, &lines));
            }
        });
        let at = crate::common::port::free_address();
        let text = configuration(&[at, home], Protocol::Http, 0, "", "") + "\n" + settings;
        let pair = Self { holder: run(Folder::new(), &text), home, asked };
        let forged = pair.question(0, &[], b"another secret, as long as the one that counts");
        wait_until("the process of the holder listens", || pair.ask(&forged).status == 403);
        pair
    }

    fn ask(&self, question: &SignedMessage) -> Response {
        ask_at(self.holder.address(), question)
    }

    /// What the home says with a secret: that it lends these documents.
    fn question(&self, later_us: u64, lent: &[&str], secret: &[u8]) -> SignedMessage {
        let lent = lent.iter().map(|&name| (name.to_owned(), 1)).collect();
        let origin = |address| format!("http://{address}").parse().expect("an origin");
        let question = Question {
            from: origin(self.home),
            to: origin(self.holder.address()),
            time_us: now_us() + later_us,
            news: LoadReport { load: 1, metric: LoadMetric::Both, version: 1, lent: Some(lent), obeys: None },
        };
        question.signed(&Key::from_file(secret).expect("a key"))
    }

    /// Lends documents, of which the last one is no redirect, and waits until the worker knows.
    fn lend(&self, documents: &[&str]) {
        let answer = self.ask(&self.question(0, documents, SECRET.as_bytes()));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let last = documents.last().expect("a document");
        wait_until("the worker knows what is lent", || self.copy(last).status != 307);
    }

    fn copy(&self, document: &str) -> Response {
        let (holder, port) = (self.holder.address(), self.home.port());
        get(&format!("http://{holder}/~migrate/127.0.0.1/{port}/{document}"), "")
    }

    fn fetched(&self) -> Vec<String> {
        let asked = self.asked.lock().expect("lines");
        asked.iter().filter(|line| line.starts_with("GET ")).cloned().collect()
    }
}

/// Answers one request of the holder.
fn answer(mut client: TcpStream, lines: &Mutex<Vec<String>>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte).is_ok_and(|count| count == 1) {
        head.push(byte[0]);
    }
    let line = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
    let path = line.split(' ').nth(1).unwrap_or_default();
    let script = "<script>alert(document.cookie)</script>";
    let html = "Content-Type: text/html\r\nCache-Control: max-age=60";
    let (status, fields, body) = match path {
        "/page.png" => ("200 OK", html, script),
        "/script.png" => ("200 OK", "Content-Type: text/javascript; charset=utf-8", "alert(1)"),
        "/bare.png" => ("200 OK", "X-A: b", script),
        "/moved.png" => ("302 Found", "Content-Type: text/html\r\nLocation: http://evil.example/", script),
        "/gone.png" => ("404 Not Found", html, script),
        "/cookie.png" => (
            "200 OK",
            "Content-Type: image/png\r\nCache-Control: max-age=60\r\nSet-Cookie: a=b\r\nClear-Site-Data: \"*\"\r\n\
             X-Content-Type-Options: none",
            "an image",
        ),
        _ => ("404 Not Found", "X-A: b", ""),
    };
    lines.lock().expect("lines").push(line.clone());
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status}\r\n{fields}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    let _ = client.write_all(text.as_bytes());
}

/// The home has never said what it lends, and then lends something else.
#[test]
fn what_is_not_lent_is_not_fetched() {
    let pair = Pair::start("");
    let home = pair.home;
    for lent in [None, Some("other.png")] {
        lent.inspect(|lent| pair.lend(&[lent]));
        for document in ["page.png", "cookie.png", "other.png/../page.png"] {
            let answer = pair.copy(document);
            assert_eq!(answer.status, 307, "{document}");
            let name = document.trim_start_matches("other.png/../");
            assert_eq!(answer.field("location"), Some(&*format!("http://{home}/{name}")));
        }
    }
    assert!(pair.fetched().iter().all(|line| line.starts_with("GET /other.png ")), "{:?}", pair.fetched());
}

/// The home gives pages, scripts, cookies and redirects for images. The second time the cache has them.
#[test]
fn a_copy_is_a_document_of_a_type_that_may_move() {
    let pair = Pair::start("");
    pair.lend(&["page.png", "script.png", "bare.png", "moved.png", "gone.png", "cookie.png"]);
    for _ in 0..2 {
        for (document, status) in
            [("page.png", 502), ("script.png", 502), ("bare.png", 502), ("moved.png", 307), ("gone.png", 404)]
        {
            let answer = pair.copy(document);
            assert_eq!(answer.status, status, "{document}");
            assert!(!answer.text().contains("alert"), "{document}: {}", answer.text());
        }
        let moved = pair.copy("moved.png");
        assert_eq!(moved.field("location"), Some(&*format!("http://{}/moved.png", pair.home)));
        let image = pair.copy("cookie.png");
        assert_eq!((image.status, image.text()), (200, "an image"));
        assert_eq!((image.field("set-cookie"), image.field("clear-site-data")), (None, None));
        assert_eq!(image.field("x-content-type-options"), Some("nosniff"));
        let policy = image.field("content-security-policy").expect("a policy");
        assert!(policy.starts_with("sandbox ") && !policy.contains("allow-same-origin"), "{policy}");
    }
    assert_eq!(pair.fetched().iter().filter(|line| line.contains("page.png")).count(), 1, "it is cached");
}

#[test]
fn guards_fields_and_bounds_of_the_site_hold() {
    let pair =
        Pair::start("headers = { X-Site = \"mine\" }\nbody_bytes_max = 1000\nmethods = [\"GET\", \"POST\"]");
    pair.lend(&["cookie.png", "gone.png"]);
    assert_eq!(pair.copy("cookie.png").field("x-site"), Some("mine"));
    assert_eq!(pair.copy("page.png").field("x-site"), Some("mine"));
    let holder = pair.holder.address();
    let long = "x".repeat(2_000);
    let answer = pair.ask(&pair.question(1_000_000, &[&long], SECRET.as_bytes()));
    assert_eq!((answer.status, answer.field("x-site")), (413, Some("mine")));
    let path = format!("/~migrate/127.0.0.1/{}/cookie.png", pair.home.port());
    let mut client = pair.holder.connect();
    assert_eq!(client.ask_host(&holder.to_string(), "DELETE", &path, "").status, 405);
    for (document, length) in [("gone.png", 1), ("page.png", 1_001)] {
        let url = format!("http://{holder}{}", path.replace("cookie.png", document));
        let answer = get(&url, &format!("Content-Length: {length}\r\n"));
        assert_eq!(
            answer.status, 413,
            "{document}: a home gets no bodies, and the site takes no longer ones"
        );
    }

    let pair = Pair::start("rate_limit = { requests = 1, per = \"1h\", burst = 200 }");
    wait_until("the copies are limited", || pair.copy("page.png").status == 429);
    assert_eq!(pair.ask(&pair.question(0, &[], SECRET.as_bytes())).status, 429);
}

/// Each sends the head of a question with a body of 8 MiB, and none of the body.
#[test]
fn bodies_of_strangers_are_not_read() {
    let pair = Pair::start("");
    let holder = pair.holder.address();
    let with_length = |secret: &[u8]| {
        let mut question = pair.question(2_000_000, &["cookie.png"], secret);
        question.body = vec![b' '; 8 << 20];
        let (head, body) =
            (format!("http://{} http://{holder} {}", pair.home, now_us() + 2_000_000), &question.body);
        question.signature = baton_dcws::sign_question(&Key::from_file(secret).expect("a key"), &head, body);
        question
    };
    let forged = with_length(b"another secret, as long as the one that counts");
    let mut strangers: Vec<_> = (0..20).map(|_| announce(holder, &forged)).collect();
    for stranger in &mut strangers {
        let answer = stranger.response();
        assert_eq!((answer.status, answer.text()), (403, "refused: signature\n"));
    }
    // A head that was overheard is of no use: it is admitted once, and for one body.
    let overheard = with_length(SECRET.as_bytes());
    let first = announce(holder, &overheard);
    wait_until("the head is admitted", || {
        announce(holder, &overheard).response().text() == "refused: replayed\n"
    });
    drop(first);
    let mut other = pair.question(4_000_000, &["cookie.png"], SECRET.as_bytes());
    other.body.reverse();
    let answer = pair.ask(&other);
    assert_eq!((answer.status, answer.text()), (403, "refused: signature\n"));
    assert_eq!(pair.copy("cookie.png").status, 307, "nothing was heard");
}
