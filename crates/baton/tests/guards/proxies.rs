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
