//! What lines of the access log say, and the logs that sites have for themselves.

use std::fs;
use std::io::Write as _;

use rustix::process::Signal;
use serde_json::Value;

use crate::common::folder::Folder;
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::origin;

const SITES: &str = "\
processes = 2
[log]
access = \"{base}/main.log\"
format = \"json\"
flush_ms = 10
[[site]]
listen = \"127.0.0.1:0\"
root = \"{root}\"
[[site]]
hosts = [\"own.example\"]
listen = \"127.0.0.1:0\"
root = \"{root}\"
access_log = { file = \"{base}/own.log\", format = \"combined\", fields = [\"duration_us\", \"upstream_us\", \"host\"] }
";

fn start(configuration: &str) -> Server {
    let folder = Folder::new();
    folder.write("small.txt", "small");
    folder.write("large.bin", vec![b'x'; 8 << 20]);
    Server::run(folder, configuration)
}

fn read(server: &Server, name: &str) -> String {
    fs::read_to_string(server.folder().base().join(name)).unwrap_or_default()
}

/// The lines of a JSON log, once there are so many.
fn lines(server: &Server, name: &str, count: usize) -> Vec<Value> {
    wait_until("the lines are there", || read(server, name).lines().count() >= count);
    read(server, name).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Goal: a duration is no multiple of the ticks of a coarse clock, and the first byte leaves before the last. Method: a
/// client takes a long file only after the server has logged another request.
#[test]
fn times_are_exact() {
    let server = start(SITES);
    let mut slow = server.agent();
    slow.begin("GET", "localhost", "/large.bin", "", crate::common::agent::Body::None);
    assert_eq!(slow.head().status, 200);
    for _ in 0..32 {
        server.get("/small.txt");
    }
    lines(&server, "main.log", 32);
    assert_eq!(slow.body().expect("all of it").len(), 8 << 20);
    let lines = lines(&server, "main.log", 33);
    let us = |line: &Value, name: &str| line[name].as_u64().expect("a number");
    for line in &lines {
        assert!(us(line, "first_byte_us") <= us(line, "duration_us"), "{line}");
        assert!(line.get("upstream_us").is_none() && line.get("duration_ms").is_none(), "{line}");
    }
    let large = lines.iter().find(|line| line["body_bytes"] == 8 << 20).expect("its line");
    assert!(us(large, "first_byte_us") < us(large, "duration_us"), "{large}");
    assert!(lines.iter().any(|line| us(line, "duration_us") % 1000 != 0), "{lines:?}");
}

/// An origin's time is part of the request's.
#[test]
fn the_time_of_an_origin_is_logged() {
    let origin = origin::Origin::start(|client| {
        while client.request().is_some() {
            client.answer("", "ok");
        }
    });
    let site = format!("[[site.route]]\npath = \"/\"\nproxy = \"http://{}\"\n", origin.address());
    let server = start(&SITES.replacen("[[site]]\nhosts", &format!("{site}[[site]]\nhosts"), 1));
    assert_eq!(server.get("/").text(), "ok");
    let line = lines(&server, "main.log", 1).remove(0);
    let upstream = line["upstream_us"].as_u64().expect("a number");
    assert!(upstream <= line["duration_us"].as_u64().expect("a number"), "{line}");
}

/// Goal: a site's requests are in its log and nowhere else, in its format, over both versions; USR1 and a reload open it
/// again. Method: its file is renamed, and another site gets a log by a reload.
#[test]
fn a_site_has_a_log_of_its_own() {
    let server = start(SITES);
    let ask = |path: &str| {
        for protocol in [Protocol::Http, Protocol::H2c] {
            let response = server.over(protocol).agent().ask_host("own.example", "GET", path, "");
            assert_eq!(response.status, 404, "{path}");
        }
    };
    let has = |name: &str, path: &str| read(&server, name).matches(path).count() == 2;
    ask("/first");
    wait_until("the site's log has its requests", || has("own.log", "/first"));
    let line = read(&server, "own.log").lines().next().expect("a line").to_owned();
    assert!(line.contains(" \"-\" \"-\" duration_us="), "{line}");
    assert!(line.ends_with(" upstream_us=- host=\"own.example\""), "{line}");

    let path = |name: &str| server.folder().base().join(name);
    fs::rename(path("own.log"), path("own.log.1")).expect("renamed");
    server.signal(Signal::USR1);
    wait_until("the new file exists", || path("own.log").exists());
    wait_until("new requests are in the new file", || {
        ask("/second");
        read(&server, "own.log").contains("/second")
    });
    assert!(has("own.log.1", "/first") && !read(&server, "main.log").contains("/first"));

    let mut file = fs::File::options().append(true).open(path("baton.toml")).expect("the file");
    let more =
        "[[site]]\nhosts = [\"more.example\"]\nlisten = \"127.0.0.1:0\"\nroot = \"/usr\"\naccess_log = ";
    writeln!(file, "{more}\"{}\"", path("more.log").display()).expect("written");
    server.ctl(&["reload"]);
    server.agent().ask_host("more.example", "GET", "/third", "");
    let line = lines(&server, "more.log", 1).remove(0);
    assert_eq!((&line["site"], &line["request"]), (&"more.example".into(), &"GET /third HTTP/1.1".into()));
    ask("/fourth");
    wait_until("the old log goes on", || has("own.log", "/fourth"));
}

/// Goal: the full disk of one site costs that site's lines, which are counted, and no others. Method: its log is `/dev/full`.
#[test]
fn a_full_disk_costs_one_site_its_lines() {
    let configuration = SITES.replace("{base}/own.log", "/dev/full") + "[admin]\nlisten = \"127.0.0.1:0\"\n";
    let server = start(&configuration);
    for _ in 0..5 {
        let response = server.agent().ask_host("own.example", "GET", "/small.txt", "");
        assert_eq!(response.text(), "small");
        server.get("/small.txt");
    }
    let admin = *server.addresses().last().expect("the admin listener");
    let metrics = || crate::common::client::Client::connect(admin).get("/metrics").text().to_owned();
    wait_until("lost lines are counted", || metrics().contains("\nbaton_log_lines_lost_total 5\n"));
    assert_eq!(lines(&server, "main.log", 5).len(), 5);
}

/// Goal: lines say fields of requests, and no client breaks out of them. Method: quotes, bytes above ASCII and lists, over
/// HTTP/1 and HTTP/2, in both formats.
#[test]
fn lines_say_fields_of_requests() {
    let server = start(
        "[log]\naccess = '{base}/main.log'\nformat = 'json'\nflush_ms = 10\nfields = ['target', 'request_header.X-Key', \
         'request_header.Accept-Language']\n[[site]]\n{listen}\nroot = '{root}'\n[[site]]\nhosts = ['own.example']\n\
         listen = '127.0.0.1:0'\nroot = '{root}'\naccess_log = { file = '{base}/own.log', format = 'combined', fields = \
         ['request_header.x-key'] }\n",
    );
    for (at, protocol) in [Protocol::Http, Protocol::H2].into_iter().enumerate() {
        let mut client = server.over(protocol).agent();
        client.ask("GET", "/small.txt?a", "x-key: a \"b\" \\\r\nX-Key: \u{e4}\r\n");
        client.ask("GET", "/small.txt?b", "Accept-Language: de\r\nX-Keys: other\r\n");
        let lines = lines(&server, "main.log", 2 * at + 2);
        let a = serde_json::json!({ "target": "/small.txt?a", "request_header.X-Key": "a \"b\" \\, \u{c3}\u{a4}" });
        let b = serde_json::json!({ "target": "/small.txt?b", "request_header.Accept-Language": "de" });
        assert_eq!(lines[2 * at..], [a, b]);
    }
    server.agent().ask_host("own.example", "GET", "/small.txt", "X-Key: a\"\r\n");
    wait_until("the line is there", || {
        read(&server, "own.log").ends_with(" request_header.x-key=\"a\\x22\"\n")
    });
}

/// Goal: lines have a time that people and programs can read, what the operator's own format says, and fields of the response
/// as the client got it. Method: a file from the cache, a page of the server and an origin's answer, over three protocols.
#[test]
fn an_own_format_says_what_the_response_had() {
    let origin = origin::Origin::start(|client| {
        while client.request().is_some() {
            client.answer("X-Answer: of \"origin\"\r\nX-Answer: two\r\n", "ok");
        }
    });
    let server = start(&format!(
        "[log]\naccess = '{{base}}/main.log'\nflush_ms = 10\n\
         format = '$time|$client_ip|$status|$target|${{response_header.X-Answer}}|${{response_header.Content-Type}}|$$'\n\
         [[site]]\n{{listen}}\nroot = '{{root}}'\nheaders = {{ X-Answer = 'of the site' }}\n\
         [[site.route]]\npath = '/origin'\nproxy = 'http://{}'\n",
        origin.address()
    ));
    let ended = std::time::SystemTime::now();
    for (at, protocol) in [Protocol::Http, Protocol::H2, Protocol::Https].into_iter().enumerate() {
        let mut client = server.over(protocol).agent();
        for path in ["/small.txt", "/origin", "/none"] {
            client.ask("GET", path, "");
        }
        wait_until("the lines are there", || read(&server, "main.log").lines().count() == 3 * (at + 1));
    }
    let expected = [
        r"127.0.0.1|200|/small.txt|of the site|text/plain; charset=utf-8|$",
        r"127.0.0.1|200|/origin|of \x22origin\x22, two|-|$",
        r"127.0.0.1|404|/none|of the site|text/html; charset=utf-8|$",
    ];
    let log = read(&server, "main.log");
    for (line, expected) in log.lines().zip(expected.iter().cycle()) {
        let (time, rest) = line.split_once('|').expect("a time");
        assert_eq!(rest, *expected);
        // Times of this form are in the order of their texts.
        let is_now =
            time >= &*baton_report::utc(ended) && time <= &*baton_report::utc(std::time::SystemTime::now());
        assert!(is_now && time.len() == "2026-11-27T16:00:00.000Z".len(), "{time}");
    }
}

/// Goal: a syslog daemon gets lines from the workers' user, in spite of what confines it, and lines that it does not take are
/// counted. Method: a socket of the test in place of `/dev/log`, which is removed and comes back.
#[test]
fn a_syslog_daemon_gets_lines() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::UnixDatagram;
    let folder = Folder::new();
    folder.write("small.txt", "small");
    let path = folder.base().join("syslog");
    let listen = || {
        let daemon = UnixDatagram::bind(&path).expect("a socket");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("permissions");
        daemon.set_read_timeout(Some(std::time::Duration::from_secs(20))).expect("a timeout");
        daemon
    };
    let daemon = listen();
    let server = Server::run(
        folder,
        "processes = 1\n[admin]\nlisten = '127.0.0.1:0'\n[log]\naccess = 'syslog:{base}/syslog'\nformat = '$status $target'\n\
         flush_ms = 1\n[[site]]\n{listen}\nroot = '{root}'\n",
    );
    let line = |daemon: &UnixDatagram| {
        let mut bytes = [0; 1024];
        let length = daemon.recv(&mut bytes).expect("a line");
        String::from_utf8(bytes[..length].to_vec()).expect("text")
    };
    server.get("/small.txt");
    let first = line(&daemon);
    assert!(first.starts_with("<190>baton[") && first.ends_with("]: 200 /small.txt"), "{first}");
    drop(daemon);
    fs::remove_file(&path).expect("removed");
    server.get("/lost");
    let admin = *server.addresses().last().expect("the admin listener");
    let metrics = || crate::common::client::Client::connect(admin).get("/metrics").text().to_owned();
    wait_until("the lost line is counted", || metrics().contains("\nbaton_log_lines_lost_total 1\n"));
    let daemon = listen();
    server.get("/found");
    assert!(line(&daemon).ends_with("]: 404 /found"));
}

/// Goal: sites have logs at daemons, each in its format; a reload does not need the daemon, and adds one. Method: a socket on
/// this host, which is gone during the reload, and one for UDP.
#[test]
fn sites_log_to_syslog_daemons() {
    use std::net::UdpSocket;
    use std::os::unix::net::UnixDatagram;
    let patience = Some(std::time::Duration::from_secs(20));
    let folder = Folder::new();
    folder.write("small.txt", "small");
    let path = folder.base().join("syslog");
    let remote = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    remote.set_read_timeout(patience).expect("a timeout");
    let listen = || {
        let daemon = UnixDatagram::bind(&path).expect("a socket");
        let everyone = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        fs::set_permissions(&path, everyone).expect("permissions");
        daemon.set_read_timeout(patience).expect("a timeout");
        daemon
    };
    let site = |host: &str, log: &str| {
        format!("[[site]]\nhosts = ['{host}']\n{{listen}}\nroot = '{{root}}'\naccess_log = {log}\n")
    };
    let daemon = listen();
    let server = Server::run(
        folder,
        &(String::from("[log]\nflush_ms = 1\n[[site]]\n{listen}\nroot = '{root}'\n")
            + &site("one.example", "{ file = 'syslog:{base}/syslog', format = 'one $target' }")),
    );
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    let local = |daemon: &UnixDatagram| {
        let mut bytes = [0; 1024];
        let length = daemon.recv(&mut bytes).expect("a line");
        text(&bytes[..length])
    };
    let ask = |host: &str| assert_eq!(server.agent().ask_host(host, "GET", "/small.txt", "").status, 200);
    ask("one.example");
    let line = local(&daemon);
    assert!(line.starts_with("<190>baton[") && line.ends_with("]: one /small.txt"), "{line}");

    drop(daemon);
    fs::remove_file(&path).expect("removed");
    let file = server.folder().base().join("baton.toml");
    let address = remote.local_addr().expect("an address");
    let more = site("two.example", &format!("{{ file = 'syslog://{address}', format = 'two $target' }}"));
    let more = more.replace("{listen}", "listen = '127.0.0.1:0'").replace("{root}", "/usr/share");
    let mut file = fs::File::options().append(true).open(file).expect("the file");
    writeln!(file, "{more}").expect("written");
    server.ctl(&["reload"]);
    assert_eq!(server.agent().ask_host("two.example", "GET", "/", "").status, 404);
    let mut bytes = [0; 1024];
    let length = remote.recv(&mut bytes).expect("a line");
    assert!(text(&bytes[..length]).ends_with(" access - two /"), "{}", text(&bytes[..length]));
    let daemon = listen();
    ask("one.example");
    assert!(local(&daemon).ends_with("]: one /small.txt"));
}
