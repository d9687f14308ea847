//! Clients behind trusted proxies: guards, logs, applications and origins see the same address.

use std::fs;

use crate::common::protocol::Protocol;
use crate::common::server::wait_until;
use crate::site::{SECRET, run};

const SITE: &str = "[log]\naccess = '{base}/access.log'\nflush_ms = 10\n[[site]]\n{listen}\nroot = '{root}'\nreal_ip = \
                    { from = ['127.0.0.0/8', '10.0.0.0/8'] }\nallow = ['192.0.2.0/24']\n[[site.route]]\npath = \
                    '/open'\ncgi = { scripts = ['.cgi'] }\n";

#[test]
fn what_the_nearest_proxy_says_counts() {
    for (architecture, protocol) in
        [("auto", Protocol::Http), ("pipeline", Protocol::H2), ("threads", Protocol::H2c)]
    {
        let server = run(&format!("architecture = '{architecture}'\n{SITE}")).over(protocol);
        let mut client = server.agent();
        let mut ask = |path: &str, said: &str| client.ask("GET", path, said);
        let behind = |list: &str| format!("X-Forwarded-For: {list}\r\n");
        assert_eq!(ask("/open/secret.txt", &behind("192.0.2.7")).text(), SECRET);
        assert_eq!(ask("/open/secret.txt", &behind("1.1.1.1, 192.0.2.7, 10.1.1.1")).text(), SECRET);
        // Forged in front of what the proxy says, or not there at all.
        for said in [
            behind("192.0.2.7, 198.51.100.9"),
            behind("192.0.2.7, 198.51.100.9, 10.1.1.1"),
            behind("192.0.2.7").replace("X-", "Y-"),
            [behind("192.0.2.7"), behind("198.51.100.9")].concat(),
            behind("192.0.2.7, rubbish"),
            String::new(),
        ] {
            assert_eq!(ask("/open/secret.txt", &said).status, 403, "{said}");
        }
        let told = ask("/open/run.cgi", &behind("192.0.2.8:4711, 10.1.1.1")).text().to_owned();
        assert!(told.contains("REMOTE_ADDR=192.0.2.8\n") && told.contains("REMOTE_PORT=4711\n"), "{told}");
        let log = || fs::read_to_string(server.folder().base().join("access.log")).unwrap_or_default();
        wait_until("the client is in the log", || {
            log().lines().any(|line| line.contains("192.0.2.8") && line.contains("/open/run.cgi"))
                && log().lines().any(|line| line.contains("198.51.100.9") && line.contains("403"))
        });
        assert!(
            !log().lines().any(|line| line.contains("run.cgi") && line.contains("127.0.0.1")),
            "{}",
            log()
        );
    }
}

/// Goal: an application learns of the client what an origin learns: nothing that a stranger says, and of a trusted proxy the same
/// in each of its words.
#[test]
fn applications_hear_trusted_proxies_alone() {
    const SITE: &str = "[[site]]\n{listen}\nroot = '{root}'\n[[site.route]]\npath = '/open'\ncgi = { scripts = ['.cgi'] }\n\
                        [[site.route]]\npath = '/users'\ncgi = { scripts = ['.cgi'], trusted = ['127.0.0.0/8'] }\n";
    for (architecture, protocol) in
        [("auto", Protocol::Http), ("pipeline", Protocol::H2), ("threads", Protocol::H2c)]
    {
        let server = run(&format!("architecture = '{architecture}'\n{SITE}")).over(protocol);
        let mut client = server.agent();
        let own = protocol.scheme();
        let other = if own == "http" { "https" } else { "http" };
        let said = format!(
            "X-Forwarded-For: 203.0.113.1\r\nX-Forwarded-Proto: {other}\r\nX-Forwarded-Host: www.test\r\nX-Real-IP: \
             203.0.113.1\r\nX-Forwarded-Port: 8443\r\nForwarded: for=203.0.113.9;proto={own}\r\n"
        );
        let told = client.ask("GET", "/open/run.cgi", &said).text().to_owned();
        assert!(
            !told.contains("203.0.113") && !told.contains("8443") && !told.contains("www.test"),
            "{told}"
        );
        assert!(told.contains(&format!("REQUEST_SCHEME={own}\n")), "{told}");
        assert_eq!(told.contains("HTTPS=on\n"), own == "https", "{told}");
        let told = client.ask("GET", "/users/run.cgi", &said).text().to_owned();
        for line in [
            &*format!("REQUEST_SCHEME={other}"),
            "HTTP_X_FORWARDED_FOR=203.0.113.1",
            &format!("HTTP_X_FORWARDED_PROTO={other}"),
            "HTTP_X_FORWARDED_HOST=www.test",
            "HTTP_X_FORWARDED_PORT=8443",
            "HTTP_X_REAL_IP=203.0.113.1",
            &format!("HTTP_FORWARDED=for=203.0.113.1;proto={other};host=www.test"),
        ] {
            assert!(told.lines().any(|own| own == line), "{line}: {told}");
        }
        assert_eq!(told.contains("HTTPS=on\n"), other == "https", "{told}");
        let newer = format!("Forwarded: for=203.0.113.1;proto={other}\r\n");
        let told = client.ask("GET", "/users/run.cgi", &newer).text().to_owned();
        assert!(told.contains(&format!("HTTP_X_FORWARDED_PROTO={other}\n")), "{told}");
        assert_eq!(told.contains("HTTPS=on\n"), other == "https", "{told}");
    }
}
