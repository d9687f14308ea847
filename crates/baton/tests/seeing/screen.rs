//! The page for humans on the admin listener, in a real browser.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicBool, Ordering};

use baton_responder::Responder;

use crate::common::browser::Browser;
use crate::common::client::Client;
use crate::common::folder::Folder;
use crate::common::matrix;
use crate::common::server::Server;

const CONFIGURATION: &str = "\
[admin]
listen = \"127.0.0.1:0\"
[[site]]
name = \"museum.example.org\"
listen = \"127.0.0.1:0\"
root = \"{root}\"
[[site.route]]
path = \"/origin\"
proxy = { to = [\"http://127.0.0.1:1/a-long-path-that-has-no-place-to-break/and-goes-on\", \"http://127.0.0.1:2/a-long-path-that-has-no-place-to-break/and-goes-on\"] }
cache = true
[[site.route]]
path = \"/application\"
fastcgi = { to = \"unix:{base}/application.sock\", transport = \"shm\" }
";

/// Goal: the page fits narrow and wide windows in both schemes of colours, is readable, asks nothing of other servers, and
/// its numbers change under load. Method: Chromium, and contrasts computed from what it shows.
#[test]
fn the_page_shows_a_running_server() {
    let folder = Folder::new();
    folder.write("small.txt", "small");
    answer_all(&folder);
    let server = Server::run(folder, CONFIGURATION);
    let admin = *server.addresses().last().expect("the admin listener");
    let home = Folder::new();
    let mut browser = Browser::start(&home);
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut agent = server.agent();
            while !ends.load(Ordering::Relaxed) {
                agent.get("/small.txt");
                agent.get("/none");
                agent.get("/origin/x");
                agent.get("/application");
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        });
        // Each width and each scheme once, or all with all.
        let [narrow, wide] = [(360, 740), (1280, 900)];
        let (light, dark) = ("light", "dark");
        let all = [(narrow, light), (wide, dark), (narrow, dark), (wide, light)];
        for ((width, height), scheme) in all.into_iter().take(matrix::size(2, 4)) {
            browser.resize(width, height);
            browser.prefer_colours(scheme);
            browser.open(&format!("http://{admin}/"));
            browser.wait_for(&format!("matchMedia('(prefers-color-scheme: {scheme})').matches"));
            // Rates need two looks, and counters are published now and then.
            browser.wait_for("Number(document.body.dataset.looks) >= 3");
            browser.wait_for(&format!("parseFloat({}) > 0", tile("requests/s")));
            browser.wait_for(&format!("{} !== '–'", tile("p99")));
            browser.wait_for("document.getElementById('state').textContent === 'serving'");
            browser.wait_for("document.getElementById('sites').innerText.includes('museum.example.org')");
            browser.wait_for("/shm\\s+\\d+\\s+100.0 %/.test(document.getElementById('answers').innerText)");
            let before = browser.run(&tile("requests"));
            browser.wait_for(&format!("{} !== {before}", tile("requests")));
            let overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
            assert_eq!(browser.run(overflow), 0, "{width} {scheme}");
            let inner = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth).map(e => e.innerText)";
            assert_eq!(browser.run(inner), serde_json::json!([]), "{width} {scheme}");
            assert_eq!(browser.run(CONTRASTS), serde_json::json!([]), "{width} {scheme}");
            let shot = browser.screenshot();
            if let Some(folder) = std::env::var_os("SCREENSHOTS") {
                let path = std::path::Path::new(&folder).join(format!("{width}-{scheme}.png.base64"));
                fs::write(path, shot).expect("a file");
            }
        }
        ends.store(true, Ordering::Relaxed);
    });
    assert_eq!(browser.troubles(), [""; 0]);
    let elsewhere: Vec<_> = browser.asked().iter().filter(|url| !is_own(url, admin)).cloned().collect();
    assert_eq!(elsewhere, [""; 0]);
}

/// An application that answers through shared memory.
fn answer_all(folder: &Folder) {
    let socket = folder.base().join("application.sock");
    let mut responder = Responder::bind(&socket).expect("a socket");
    // The server's workers may be another user's.
    fs::set_permissions(&socket, Permissions::from_mode(0o777)).expect("permissions");
    std::thread::spawn(move || {
        while let Ok(mut request) = responder.next_request() {
            // A client that is gone is no failure of the application.
            let _ = request.write_all(b"Content-Type: text/plain\r\n\r\nanswer");
        }
    });
}

/// What a tile says.
fn tile(name: &str) -> String {
    format!(
        "[...document.querySelectorAll('.tile')].find(e => e.firstChild.textContent === '{name}').lastChild.textContent"
    )
}

fn is_own(url: &str, admin: std::net::SocketAddr) -> bool {
    url == format!("http://{admin}/") || url == format!("http://{admin}/status") || url.starts_with("data:")
}

/// Texts with less contrast than WCAG's AA asks for.
const CONTRASTS: &str = "
[...document.querySelectorAll('h1, h2, p, dt, dd, th, td, #state')].filter(e => e.textContent.trim() && e.offsetParent).filter(e => {
  const rgb = (text) => text.match(/[0-9.]+/g).slice(0, 3).map(Number);
  const light = (colour) => { const [r, g, b] = colour.map(v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  let under = e;
  while (getComputedStyle(under).backgroundColor === 'rgba(0, 0, 0, 0)') under = under.parentElement;
  const [a, b] = [light(rgb(getComputedStyle(e).color)), light(rgb(getComputedStyle(under).backgroundColor))];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5;
}).map(e => e.outerHTML)";

/// The page has a policy that lets nothing else in, and no other page has a style or a script.
#[test]
fn the_page_has_a_strict_policy() {
    let folder = Folder::new();
    folder.write("small.txt", "small");
    let server = Server::run(folder, CONFIGURATION);
    let admin = *server.addresses().last().expect("the admin listener");
    let answer = Client::connect(admin).get("/");
    assert_eq!((answer.status, answer.field("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = answer.field("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none'; style-src 'nonce-"), "{policy}");
    for rule in ["connect-src 'self'", "frame-ancestors 'none'", "form-action 'none'", "base-uri 'none'"] {
        assert!(policy.contains(rule), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(answer.field("x-content-type-options"), Some("nosniff"));
    let mut client = Client::connect(admin);
    client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(client.response().status, 405);
}
