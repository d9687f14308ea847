//! Certificates that clients show.

use std::fs;

use super::authority::Authority;
use super::client::Client;
use crate::common::folder::Folder;
use crate::common::server::Server;

/// One listener has a site for everyone, one that asks and one that demands.
#[test]
fn each_site_has_its_own_demands() {
    let (authority, strangers) = (Authority::new("authority"), Authority::new("strangers"));
    let folder = Folder::new();
    folder.write("index.html", "hello").write("members/index.html", "members");
    authority.issue(&["open.test", "asks.test", "demands.test"]).install(&folder, "all");
    fs::write(folder.base().join("ca.pem"), &authority.pem).expect("a file");
    let site = |name: &str, rest: &str| {
        format!(
            "[[site]]\nroot = \"{{root}}\"\nlisten = \"127.0.0.1:0 tls\"\nhosts = [\"{name}\"]\n\
             tls = {{ certificate = \"all.pem\", key = \"all.key\" }}\n{rest}\n"
        )
    };
    let demand =
        |mode: &str| format!("client_certificates = {{ mode = \"{mode}\", authorities = \"ca.pem\" }}");
    let members = "\n[[site.route]]\npath = \"/members\"\ndeny_when = { client_certificate = false }\n\
                   headers = { X-Verify = \"$ssl_client_verify\" }";
    let server = Server::run(
        folder,
        &(site("open.test", "")
            + &site("asks.test", &(demand("request") + members))
            + &site("demands.test", &demand("require"))),
    );
    let none = Client::new(&authority);
    let known = Client::with(&authority, Some(&authority.issue(&["known"])));
    let stranger = Client::with(&authority, Some(&strangers.issue(&["stranger"])));
    let is_served = |client: &Client, name| {
        client.get(server.address(), name).is_ok_and(|response| response.starts_with("HTTP/1.1 200 "))
    };
    for (name, expected) in [
        ("open.test", [true, true, true]),
        ("asks.test", [true, true, false]),
        ("demands.test", [false, true, false]),
    ] {
        assert_eq!([&none, &known, &stranger].map(|client| is_served(client, name)), expected, "{name}");
    }

    // Where a site only asks, conditions and fields know which clients have shown one.
    let members = |client: &Client| {
        let mut connection = client.connect(server.address(), "asks.test").expect("a handshake");
        connection.request("GET /members/ HTTP/1.1\r\nHost: asks.test\r\n\r\n").expect("a response")
    };
    for (client, status, word) in [(&none, 403, "NONE"), (&known, 200, "SUCCESS")] {
        let response = members(client);
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{response}");
        assert!(
            response.to_lowercase().contains(&format!("\r\nx-verify: {word}\r\n").to_lowercase()),
            "{response}"
        );
    }

    // By way of one site into another: the handshake decides.
    let mut open = none.connect(server.address(), "open.test").expect("a handshake");
    let refused = open.get("demands.test").expect("a response");
    assert!(refused.starts_with("HTTP/1.1 421 "), "{refused}");
}
