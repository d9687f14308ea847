//! Which certificate a client gets, and what sites say about TLS.

use super::authority::Authority;
use super::client::{Client, curl, openssl};
use crate::common::folder::Folder;
use crate::common::server::Server;

/// The certificate follows from the name, in the same order as the site does.
#[test]
fn each_name_has_its_certificate() {
    let authority = Authority::new("authority");
    let folder = Folder::new();
    folder.write("index.html", "hello");
    let (exact, wide) = (authority.issue(&["a.w.test"]), authority.issue(&["*.w.test", "x.y.w.test"]));
    exact.install(&folder, "exact");
    wide.install(&folder, "wide");
    let site = |hosts: &str, name: &str| {
        format!(
            "[[site]]\nroot = \"{{root}}\"\nlisten = \"127.0.0.1:0 tls\"\nhosts = [\"{hosts}\"]\n\
             tls = {{ certificate = \"{name}.pem\", key = \"{name}.key\" }}\n"
        )
    };
    let server = Server::run(folder, &(site("*.w.test", "wide") + &site("a.w.test", "exact")));
    let client = Client::new(&authority);
    for (name, issued) in [("a.w.test", &exact), ("b.w.test", &wide), ("x.y.w.test", &wide)] {
        let mut connection = client.connect(server.address(), name).expect("a handshake");
        assert!(connection.has(issued), "{name}");
        assert!(connection.get(name).expect("a response").ends_with("\r\n\r\nhello"));
    }
    // Browsers send the dot of `https://a.w.test./`.
    for (name, common) in [("a.w.test.", "a.w.test"), ("B.w.test.", "*.w.test")] {
        let dotted = openssl(server.address(), &["-servername", name]);
        assert!(dotted.contains(&format!("CN = {common}")), "{name}: {dotted}");
    }
    let refused = client.get(server.address(), "other.example").unwrap_err();
    assert!(refused.contains("UnrecognisedName"), "{refused}");
    let nameless = openssl(server.address(), &["-noservername"]);
    assert!(nameless.contains("CN = *.w.test"), "{nameless}");
}

/// A client that knows only RSA is served beside those that know better.
#[test]
fn two_certificates_of_different_algorithms() {
    let authority = Authority::new("authority");
    let folder = Folder::new();
    folder.write("index.html", "hello");
    authority.issue_rsa(&["rsa.test"]).install(&folder, "rsa");
    authority.issue(&["ecdsa.test"]).install(&folder, "ecdsa");
    let server = Server::run(
        folder,
        "[[site]]\nroot = \"{root}\"\nlisten = \"127.0.0.1:0 tls\"\ntls = [\n\
         { certificate = \"rsa.pem\", key = \"rsa.key\" },\n{ certificate = \"ecdsa.pem\", key = \"ecdsa.key\" }]\n",
    );
    for version in ["-tls1_2", "-tls1_3"] {
        let usual = openssl(server.address(), &[version]);
        assert!(usual.contains("CN = ecdsa.test"), "{usual}");
        let old = openssl(server.address(), &[version, "-sigalgs", "RSA-PSS+SHA256"]);
        assert!(old.contains("CN = rsa.test"), "{old}");
    }
}

/// HTTP/2 where both speak it, unless the configuration says otherwise.
#[test]
fn the_protocol_is_agreed_on() {
    let authority = Authority::new("authority");
    for (settings, offered, agreed) in [
        ("", "h2,http/1.1", "h2"),
        ("", "http/1.1", "http/1.1"),
        ("[tls]\nprotocols = [\"http/1.1\"]\n", "h2,http/1.1", "http/1.1"),
    ] {
        let folder = Folder::new();
        folder.write("index.html", "hello");
        authority.issue(&["a.test"]).install(&folder, "a");
        std::fs::write(folder.base().join("ca.pem"), &authority.pem).expect("a file");
        let server = Server::run(folder, &(settings.to_owned() + &site("", "listen = \"127.0.0.1:0 tls\"")));
        let told = openssl(server.address(), &["-servername", "a.test", "-alpn", offered]);
        assert!(told.contains(&format!("ALPN protocol: {agreed}\n")), "{told}");
        let ca = server.folder().base().join("ca.pem");
        let arguments = [
            "--cacert",
            ca.to_str().expect("a path"),
            if offered == "http/1.1" { "--http1.1" } else { "--http2" },
        ];
        let page = curl(server.address(), "https://a.test/", &arguments);
        let begins = if agreed == "h2" { "HTTP/2 200" } else { "HTTP/1.1 200 OK" };
        assert!(page.starts_with(begins) && page.ends_with("\r\n\r\nhello"), "{page}");
    }
}

#[test]
fn old_versions_and_ciphers_are_refused() {
    let authority = Authority::new("authority");
    let folder = Folder::new();
    authority.issue(&["a.test"]).install(&folder, "a");
    let server = Server::run(folder, &site("", "listen = \"127.0.0.1:0 tls\""));
    for arguments in [
        ["-tls1", "-cipher", "ALL:@SECLEVEL=0"],
        ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"],
        ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA256"],
    ] {
        let refused = openssl(server.address(), &arguments);
        assert!(
            refused.contains("Cipher is (NONE)") && refused.contains("alert"),
            "{arguments:?}: {refused}"
        );
    }
    let accepted = openssl(server.address(), &["-tls1_2"]);
    assert!(accepted.contains("Cipher is ECDHE-ECDSA-"), "{accepted}");
}

/// One line sends clients to TLS, whatever they ask, and only TLS has the field for browsers.
#[test]
fn clear_text_is_redirected_and_browsers_remember_it() {
    let authority = Authority::new("authority");
    let folder = Folder::new();
    folder.write("index.html", "hello");
    authority.issue(&["a.test"]).install(&folder, "a");
    std::fs::write(folder.base().join("ca.pem"), &authority.pem).expect("a file");
    let server = Server::run(
        folder,
        &site(
            "redirect_https = 8443\nhsts = true\n[[site.route]]\npath = \"/fixed\"\n\
             respond = { status = 200, body = \"fixed\" }\nheaders = { X-Own = \"1\" }",
            "listen = [\"127.0.0.1:0\", \"127.0.0.2:0 tls\"]",
        ),
    );
    let [clear, tls] = server.addresses() else { panic!("two addresses: {:?}", server.addresses()) };
    for arguments in [&[][..], &["-d", "body"], &["-X", "DELETE"]] {
        let moved = curl(*clear, "http://a.test/x?y=1", arguments);
        assert!(moved.starts_with("HTTP/1.1 308 "), "{moved}");
        assert!(moved.contains("\r\nLocation: https://a.test:8443/x?y=1\r\n"), "{moved}");
        assert!(!moved.contains("Strict-Transport-Security"), "{moved}");
    }
    let ca = server.folder().base().join("ca.pem");
    let ca = ca.to_str().expect("a path");
    for (path, status) in [("/", "200"), ("/fixed", "200"), ("/missing", "404")] {
        let page = curl(*tls, &format!("https://a.test{path}"), &["--http1.1", "--cacert", ca]);
        assert!(page.starts_with(&format!("HTTP/1.1 {status} ")), "{page}");
        assert!(page.contains("\r\nStrict-Transport-Security: max-age=63072000\r\n"), "{path}: {page}");
    }
}

/// A site for `a.test`, with its certificate.
fn site(rest: &str, listen: &str) -> String {
    format!(
        "[[site]]\nroot = \"{{root}}\"\nhosts = [\"a.test\"]\n{listen}\n\
         tls = {{ certificate = \"a.pem\", key = \"a.key\" }}\n{rest}\n"
    )
}
