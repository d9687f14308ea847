//! `baton explain` on real folders.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// A folder with a site of two routes and its configuration, `baton.toml`.
fn site() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &[u8]| {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("www/index.html", b"<h1>home</h1>");
    write("www/docs/in-the-way.txt", b"not this one");
    write("www/large.bin", &[0; 200_000]);
    write("manual/a.txt", b"plain");
    write("manual/a.txt.gz", b"packed");
    write("app/index.html", b"<app>");
    write("app/long.html", &[b'x'; 5_000]);
    write(
        "baton.toml",
        br#"
            [[site]]
            name = "main"
            root = "www"
            hosts = ["example.org", "*.example.org"]
            listen = ["127.0.0.1:80", "127.0.0.1:8080"]
            headers = { X-Site = "main" }

            [[site.route]]
            path = "/docs"
            root = "manual"

            [[site.route]]
            path = "/old"
            redirect = { to = "https://example.net$uri", status = 308 }

            [[site.route]]
            path = "/api"
            proxy = "http://127.0.0.1:1/v2/"

            [[site.route]]
            path = "/kept"
            proxy = "http://127.0.0.1:1"
            cache = { drop_parameters = ["utm_*"], negative_s = 7 }

            [[site.route]]
            path = "/chosen"
            when = { cookie = { beta = "1" }, method = "GET" }
            respond = { status = 200, body = "beta" }
            headers = { X-Client = "$client_ip", X-Path = "$path" }

            [[site.route]]
            path = "/chosen"
            deny_when = { user_agent = "GPTBot" }
            respond = { status = 444 }

            [[site.route]]
            path = "/gone"
            respond = { status = 410, body = "Gone.\n" }

            [[site]]
            name = "app"
            root = "app"
            listen = "127.0.0.1:80"
            fallback = "index.html"
            compress = true
        "#,
    );
    dir
}

/// The explanation, with `DIR` for the folder.
#[track_caller]
fn explain(dir: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_baton"))
        .arg("explain")
        .args(arguments)
        .current_dir(dir)
        .env_remove("BATON_CONFIG")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().replace(dir.to_str().unwrap(), "DIR")
}

#[track_caller]
fn explained(url: &str, expected: &[&str]) {
    explained_with(url, &[], expected);
}

#[track_caller]
fn explained_with(url: &str, more: &[&str], expected: &[&str]) {
    let dir = site();
    let told = explain(dir.path(), &[&["-c", "baton.toml", url], more].concat());
    for line in expected {
        assert!(told.lines().any(|told| told == *line), "no line {line:?} in\n{told}");
    }
}

#[test]
fn a_file_of_a_site_with_its_fields() {
    explained(
        "http://www.example.org/",
        &[
            "request   GET / at 127.0.0.1:80",
            "site      main (host *.example.org)",
            "route     / (files of DIR/www)",
            "file      DIR/www/index.html (13 bytes)",
            "contents  in memory (up to 131072 bytes are)",
            "sent      head and body with one send",
            "HTTP/1.1 200 OK",
            "Content-Length: 13",
            "X-Site: main",
        ],
    );
}

/// What the cache would do is told without a request to the origin: the key, and what is kept.
#[test]
fn a_cached_route_tells_its_key() {
    let dir = site();
    let told = |url: &str, fields: &[&str]| {
        let fields = fields.iter().flat_map(|field| ["-H", field]);
        explain(dir.path(), &["-c", "baton.toml", url].into_iter().chain(fields).collect::<Vec<_>>())
    };
    let plain = told("http://WWW.example.org/kept/a?utm_x=1&b", &[]);
    assert!(plain.contains("\ncache     asked for http://www.example.org/kept/a?b\n"), "{plain}");
    assert!(plain.contains("404 and 410 7 s") && plain.contains("; nothing with Set-Cookie; evicted by s3-fifo; video and sound of more than 8388608 bytes by reach\n"), "{plain}");
    let with_user = told("http://www.example.org/kept/a", &["Authorization: Basic YTpi", "Cookie: a=b"]);
    assert!(with_user.contains("; with Authorization only what says public"), "{with_user}");
    assert!(with_user.contains("; with Cookie only what says how long"), "{with_user}");
    let bypass = told("http://www.example.org/kept/a", &["If-Match: \"a\""]);
    assert!(bypass.contains("\ncache     not asked: fwd=bypass; detail=precondition\n"), "{bypass}");
    assert!(!told("http://www.example.org/api", &[]).contains("\ncache "));
}

/// Each condition at the path is told, and what fails; fields have what their variables stand for.
#[test]
fn conditions_say_whether_they_hold() {
    let conditions = "/chosen when method = \"GET\", cookie beta = \"1\"";
    explained_with(
        "http://www.example.org/chosen",
        &["-H", "Cookie: beta=1"],
        &[
            &format!("when      {conditions}: holds"),
            "route     /chosen (a fixed answer, 200)",
            "X-Client: 127.0.0.1",
            "X-Path: /chosen",
        ],
    );
    explained(
        "http://www.example.org/chosen",
        &[
            &format!("when      {conditions}: does not hold: cookie beta = \"1\""),
            "route     /chosen (closed without an answer)",
            "denied    no: user_agent = \"GPTBot\"",
            "response  none: the connection is closed",
        ],
    );
    explained_with(
        "http://www.example.org/chosen",
        &["-H", "User-Agent: x GPTBot"],
        &["denied    yes: user_agent = \"GPTBot\"", "HTTP/1.1 403 Forbidden"],
    );
}

#[test]
fn a_file_too_large_for_memory() {
    explained(
        "http://example.org/large.bin",
        &[
            "contents  in the kernel's page cache, the file kept open; copied to memory once it is requested often",
            "Content-Length: 200000",
        ],
    );
}

#[test]
fn the_prefix_of_a_route_with_its_own_root_is_removed() {
    explained(
        "http://example.org:8080/docs/a.txt",
        &[
            "request   GET /docs/a.txt at 127.0.0.1:8080",
            "route     /docs (files of DIR/manual, without this prefix)",
            "file      DIR/manual/a.txt (5 bytes)",
            "HTTP/1.1 200 OK",
        ],
    );
    explained(
        "http://example.org/docs/in-the-way.txt",
        &["file      none: there is no DIR/manual/in-the-way.txt", "HTTP/1.1 404 Not Found"],
    );
}

#[test]
fn the_representation_that_a_client_prefers() {
    let dir = site();
    let told = explain(
        dir.path(),
        &["-c", "baton.toml", "-H", "Accept-Encoding: gzip", "http://example.org/docs/a.txt"],
    );
    assert!(told.contains("file      DIR/manual/a.txt.gz (6 bytes)\n"), "{told}");
    assert!(told.contains("\nContent-Encoding: gzip\n"), "{told}");
}

#[test]
fn what_an_origin_is_asked_for() {
    explained_with(
        "http://example.org/api/a%20b?c",
        &["-H", "Accept-Encoding: br"],
        &[
            "route     /api (the origin http://127.0.0.1:1/v2/)",
            "asked for /v2/a%20b?c, with Host: the client's",
            "origins   http://127.0.0.1:1/v2/: is asked",
            "response  the origin's, which is not asked here",
            "GET /v2/a%20b?c HTTP/1.1",
            "Host: example.org",
            "Accept-Encoding: br",
        ],
    );
}

#[test]
fn whether_a_response_is_compressed() {
    let explained_for = |path: &str, accept: &str, coding: &str| {
        let url = format!("http://127.0.0.1{path}");
        explained_with(&url, &["-H", accept], &[&format!("coding    {coding}")]);
    };
    explained_for(
        "/long.html",
        "Accept-Encoding: gzip, zstd",
        "zstd, made for the first client that takes it, and kept in memory",
    );
    explained_for(
        "/long.html",
        "Accept-Encoding: deflate",
        "not for this request, which prefers none of zstd, br, gzip",
    );
    explained_for("/index.html", "Accept-Encoding: gzip", "no: files below 1024 bytes are not");
}

#[test]
fn routes_that_serve_no_files() {
    explained(
        "http://example.org/old/page?x=1",
        &["HTTP/1.1 308 Permanent Redirect", "Location: https://example.net/old/page?x=1"],
    );
    explained("http://example.org/gone", &["HTTP/1.1 410 Gone", "X-Site: main", "Content-Length: 6"]);
}

#[test]
fn the_default_site_and_its_fallback() {
    explained(
        "http://127.0.0.1/no/such/page",
        &[
            "site      app (the default of 127.0.0.1:80)",
            "file      DIR/app/index.html (5 bytes)",
            "HTTP/1.1 200 OK",
        ],
    );
}

#[test]
fn a_folder_without_a_configuration() {
    let dir = site();
    let told = explain(dir.path(), &["--dir", "www", "/docs"]);
    assert!(
        told.contains("\nHTTP/1.1 301 Moved Permanently\n") && told.contains("\nLocation: /docs/\n"),
        "{told}"
    );
}

#[test]
fn a_script_that_no_application_runs() {
    let dir = site();
    fs::write(dir.path().join("www/b.php"), "<?php").unwrap();
    let told = explain(dir.path(), &["-c", "baton.toml", "http://example.org/b.php"]);
    assert!(told.contains("\nHTTP/1.1 404 Not Found\n"), "{told}");
    let line = "file      not sent: DIR/www/b.php is a script that no application runs here; `script_sources = true` \
                sends it as it is\n";
    assert!(told.contains(line), "{told}");
}

/// Like the absolute links of Debian's packages; also with an application's fallback.
#[test]
fn a_link_that_is_not_followed() {
    let dir = site();
    let target = dir.path().join("manual");
    std::os::unix::fs::symlink(&target, dir.path().join("www/shared")).unwrap();
    std::os::unix::fs::symlink(&target, dir.path().join("app/shared")).unwrap();
    for (url, root) in [("http://example.org/shared/a.txt", "www"), ("http://127.0.0.1/shared/a.txt", "app")]
    {
        let told = explain(dir.path(), &["-c", "baton.toml", url]);
        let line = format!(
            "link      shared/a.txt is not found: the link shared -> DIR/manual in DIR/{root} is absolute or leads out of it, and \
             `symlinks` is \"beneath\": \"anywhere\" follows it\n"
        );
        assert!(told.contains(&line), "{told}");
    }
}

/// Each reason why a path has no file, told by its first obstacle.
#[test]
fn why_a_path_is_not_served() {
    let dir = site();
    let www = dir.path().join("www");
    fs::create_dir_all(www.join("empty/.git")).unwrap();
    fs::write(www.join(".env"), "SECRET").unwrap();
    fs::write(www.join("empty/.git/config"), "").unwrap();
    std::os::unix::fs::symlink("nowhere", www.join("dangling")).unwrap();
    std::os::unix::fs::symlink("../manual", www.join("up")).unwrap();
    std::os::unix::net::UnixListener::bind(www.join("socket")).unwrap();
    for (path, expected, status) in [
        ("/none.html", "none: there is no DIR/www/none.html", 404),
        ("/a/b/c", "none: there is no DIR/www/a", 404),
        ("/index.html/more", "none: DIR/www/index.html is a file, and the path goes on behind it", 404),
        ("/index.html/", "none: DIR/www/index.html is a file, and the path ends in `/`", 404),
        (
            "/empty/",
            "none: DIR/www/empty is a folder; it has no index.html, and `browse = true` would list it",
            404,
        ),
        ("/empty", "none: a folder, whose path ends in `/`", 301),
        ("/.env", "not sent: .env begins with a dot, and `hidden = true` alone serves such names", 404),
        ("/%2eenv", "not sent: .env begins with a dot, and `hidden = true` alone serves such names", 404),
        (
            "/empty/.git/config",
            "not sent: .git begins with a dot, and `hidden = true` alone serves such names",
            404,
        ),
        ("/dangling", "none: DIR/www/dangling is a link that leads nowhere", 404),
        ("/up/a.txt", "not sent: it lies behind a link that is not followed", 404),
        ("/socket", "not sent: DIR/www/socket is a socket", 403),
    ] {
        let told = explain(dir.path(), &["-c", "baton.toml", &format!("http://example.org:8080{path}")]);
        assert!(told.lines().any(|line| line == format!("file      {expected}")), "{path}: {told}");
        assert!(told.contains(&format!("\nHTTP/1.1 {status} ")), "{path}: {told}");
    }
    // A site without routes looks at the path as a file's alone.
    for (path, expected) in [
        ("/%zz", "none: the path has a % that two hexadecimal digits do not follow"),
        ("/a%2Fb", "none: the path has an encoded slash or a backslash"),
        ("/../x", "none: the path leads above the root"),
    ] {
        let told = explain(dir.path(), &["-d", "www", path]);
        assert!(told.contains(expected) && told.contains("\nHTTP/1.1 400 "), "{path}: {told}");
    }
    explained("http://example.org/gone", &["route     /gone (denied: a fixed answer, 410)"]);
}

/// Goal: what an application gets is seen without asking it. Method: routes of FastCGI, SCGI and scripts whose sockets
/// do not exist.
#[test]
fn what_an_application_is_told() {
    let dir = site();
    fs::create_dir_all(dir.path().join("www/wiki")).unwrap();
    fs::write(dir.path().join("www/wiki/index.php"), "<?php").unwrap();
    fs::write(
        dir.path().join("apps.toml"),
        r#"
            [[site]]
            root = "www"

            [[site.route]]
            path = "/wiki"
            fallback = "wiki/index.php"
            fastcgi = { to = "unix:/none/php.sock", scripts = [".php"], params = { APP = "wiki" } }

            [[site.route]]
            path = "/api"
            fastcgi = { to = "unix:/none/api.sock" }

            [[site.route]]
            path = "/old"
            scgi = { to = "127.0.0.1:1" }
        "#,
    )
    .unwrap();
    let told = |url: &str| explain(dir.path(), &["-c", "apps.toml", "-H", "X-One: two", url]);
    let script = told("http://example.org:8080/wiki/index.php/Main?a=b");
    for line in [
        "file      a script, which is run",
        "response  the application's, which is not asked here",
        "script    DIR/www/wiki/index.php (SCRIPT_FILENAME)",
        "SCRIPT_FILENAME=DIR/www/wiki/index.php",
        "PATH_INFO=/Main",
        "QUERY_STRING=a=b",
        "DOCUMENT_ROOT=DIR/www",
        "HTTP_HOST=example.org:8080",
        "HTTP_X_ONE=two",
        "REMOTE_ADDR=127.0.0.1",
        "APP=wiki",
    ] {
        assert!(script.lines().any(|told| told == line), "no {line:?} in\n{script}");
    }
    assert!(!script.contains("REMOTE_PORT"), "{script}");
    let api = told("/api/v1/x");
    assert!(api.contains("\nSCRIPT_NAME=/api\n") && api.contains("\nPATH_INFO=/v1/x\n"), "{api}");
    assert!(api.contains(", which is no file here)\n"), "{api}");
    let old = told("/old/x");
    assert!(old.contains("\nSCGI=1\n") && old.contains("\nPATH_INFO=/x\n"), "{old}");
}

#[test]
fn a_port_that_nobody_listens_on() {
    let dir = site();
    let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
    let output = command.args(["explain", "-d", "www", "http://h:99/"]).current_dir(&dir).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(told, "error: nothing listens on port 99\n  listening: 127.0.0.1:8080\n");
}

/// Each route that a request passes, by what it matched, and what the groups of its pattern are.
#[test]
fn the_way_of_a_rewritten_request() {
    let dir = site();
    fs::write(
        dir.path().join("baton.toml"),
        r#"
            [[site]]
            root = "www"
            listen = "127.0.0.1:80"
            try_files = ["$path", "/index.html"]

            [[site.route]]
            regex = '^/(?<year>\d{4})/([^/]*)(/.*)?$'
            rewrite = { to = "/docs/$2?year=$year" }

            [[site.route]]
            path = "/docs"
            try_files = ["$path.txt", "=410"]

            [[site.route]]
            exact = "/one"
            respond = { status = 403 }
        "#,
    )
    .unwrap();
    for (path, expected) in [
        (
            "/2024/in-the-way",
            &[
                "route     regex ^/(?<year>\\d{4})/([^/]*)(/.*)?$ (rewritten to /docs/$2?year=$year)",
                "matched   by its regex, $year = \"2024\", $2 = \"in-the-way\", $3 = nothing",
                "rewritten on to /docs/in-the-way?year=2024",
                "route     /docs (files of DIR/www)",
                "matched   by its longest prefix",
                "file      DIR/www/docs/in-the-way.txt (12 bytes)",
                "HTTP/1.1 200 OK",
            ][..],
        ),
        (
            "/2024/a%26b",
            &["rewritten on to /docs/a&b?year=2024", "not there answered with 410", "HTTP/1.1 410 Gone"],
        ),
        (
            "/users/7?x",
            &[
                "route     / (files of DIR/www)",
                "not there on to /index.html?x",
                "file      DIR/www/index.html (13 bytes)",
                "HTTP/1.1 200 OK",
            ],
        ),
        (
            "//x/../%6Fne",
            &["route     exact /one (denied: a fixed answer, 403)", "matched   by its exact path"],
        ),
    ] {
        let told = explain(dir.path(), &["-c", "baton.toml", path]);
        for line in expected {
            assert!(told.lines().any(|told| told == *line), "no line {line:?} in\n{told}");
        }
    }
}

/// What goes on behind a rewrite to a cached route: what the rewrite makes of the key's target.
#[test]
fn what_a_cached_route_asks_for_behind_a_rewrite() {
    let dir = site();
    fs::write(dir.path().join("www/run.php"), "").unwrap();
    fs::write(
        dir.path().join("baton.toml"),
        r#"
            [[site]]
            root = "www"
            listen = "127.0.0.1:80"

            [[site.route]]
            path = "/"
            try_files = ["$path", "/run.php?id=$path&$query"]
            fastcgi = { to = "unix:/none/php.sock", scripts = [".php"] }
            cache = { drop_parameters = ["utm_*"] }

            [[site.route]]
            regex = '^/film/(?<name>.*)$'
            rewrite = { to = "/origin/play?name=$name&$query" }

            [[site.route]]
            path = "/origin"
            proxy = "http://127.0.0.1:1/"
            cache = { drop_parameters = ["utm_*"] }
        "#,
    )
    .unwrap();
    for (path, expected) in [
        ("/a/b?x=1&utm_a=b", &["QUERY_STRING=id=/a/b&x=1", "REQUEST_URI=/a/b?x=1"][..]),
        (
            "/film/a?x=1&utm_a=b",
            &["asked for /play?name=a&x=1, with Host: the client's", "GET /play?name=a&x=1 HTTP/1.1"],
        ),
        ("/origin/a?x=1&utm_a=b", &["asked for /a?x=1, with Host: the client's", "GET /a?x=1 HTTP/1.1"]),
    ] {
        let told = explain(dir.path(), &["-c", "baton.toml", path]);
        for line in expected {
            assert!(told.lines().any(|told| told == *line), "no line {line:?} in\n{told}");
        }
    }
}

/// Goal: an origin and an application are told of the client that the guards judge. Method: a client that is named, one that is
/// not, of IPv4 and IPv6.
#[test]
fn what_is_forwarded_names_the_client() {
    let dir = site();
    fs::write(
        dir.path().join("baton.toml"),
        r#"
            [[site]]
            listen = ["127.0.0.1:80", "[::1]:81"]
            deny = ["10.0.0.0/8"]
            [[site.route]]
            path = "/origin"
            proxy = "http://127.0.0.1:1"
            [[site.route]]
            path = "/application"
            fastcgi = { to = "unix:/none" }
        "#,
    )
    .unwrap();
    let explained = |arguments: &[&str]| explain(dir.path(), &[&["-c", "baton.toml"], arguments].concat());
    for (arguments, address, forwarded) in [
        (&["http://h"][..], "127.0.0.1", "127.0.0.1"),
        (&["http://h:81"], "::1", "\"[::1]\""),
        (&["http://h", "--from", "192.0.2.7"], "192.0.2.7", "192.0.2.7"),
        (&["http://h", "--from", "2001:db8::1"], "2001:db8::1", "\"[2001:db8::1]\""),
    ] {
        let origin = format!("{}/origin", arguments[0]);
        let told = explained(&[&[&*origin], &arguments[1..]].concat());
        assert!(told.contains(&format!("\nX-Forwarded-For: {address}\n")), "{told}");
        assert!(told.contains(&format!("\nForwarded: for={forwarded};")), "{told}");
        assert!(told.contains(&format!("access    {address} is let in")), "{told}");
        assert!(told.contains(&format!("would get it from {address}")), "{told}");
        let application = format!("{}/application", arguments[0]);
        let told = explained(&[&[&*application], &arguments[1..]].concat());
        assert!(told.contains(&format!("\nREMOTE_ADDR={address}\n")), "{told}");
    }
}

/// An explanation needs no handshake, but is one of a client that comes over TLS: to this server, or to a trusted proxy.
#[test]
fn the_scheme_is_that_of_the_client() {
    let dir = site();
    let made = rcgen::generate_simple_self_signed(["h".to_owned()]).unwrap();
    fs::write(dir.path().join("c.pem"), made.cert.pem()).unwrap();
    fs::write(dir.path().join("k.pem"), made.signing_key.serialize_pem()).unwrap();
    fs::set_permissions(dir.path().join("k.pem"), Permissions::from_mode(0o600)).unwrap();
    fs::write(
        dir.path().join("baton.toml"),
        r#"
            [[site]]
            hosts = ["h"]
            listen = ["127.0.0.1:80", "127.0.0.1:443 tls"]
            tls = { certificate = "c.pem", key = "k.pem" }
            [[site.route]]
            path = "/origin"
            proxy = "http://127.0.0.1:1"
            [[site.route]]
            path = "/kept"
            proxy = { to = "http://127.0.0.1:1", trusted = ["127.0.0.1"] }
            cache = true
            [[site.route]]
            path = "/application"
            fastcgi = { to = "unix:/none" }
        "#,
    )
    .unwrap();
    let explained = |arguments: &[&str]| explain(dir.path(), &[&["-c", "baton.toml"], arguments].concat());
    for scheme in ["http", "https"] {
        let told = explained(&[&format!("{scheme}://h/origin")]);
        assert!(told.contains(&format!(";proto={scheme};")), "{told}");
        assert!(told.contains(&format!("\nX-Forwarded-Proto: {scheme}\n")), "{told}");
        let told = explained(&[&format!("{scheme}://h/application")]);
        assert!(told.contains(&format!("\nREQUEST_SCHEME={scheme}\n")), "{told}");
        assert_eq!(told.contains("\nHTTPS=on\n"), scheme == "https", "{told}");
        let told = explained(&[&format!("{scheme}://h/kept")]);
        assert!(told.contains(&format!("asked for {scheme}://h/kept\n")), "{told}");
    }
    let behind = ["http://h/kept", "-H", "X-Forwarded-Proto: https", "-H", "RSC: 1"];
    let told = explained(&behind);
    assert!(told.contains("asked for https://h/kept with rsc: 1\n"), "{told}");
    let told = explained(&[&behind[..], &["--from", "192.0.2.7"]].concat());
    assert!(told.contains("asked for http://h/kept with rsc: 1\n"), "{told}");
}

/// The verdict on a client is that of the server, which is told of the client as by a load balancer.
#[test]
fn guards_and_what_they_say_of_a_client() {
    let dir = site();
    let text = fs::read_to_string(dir.path().join("baton.toml")).unwrap();
    let guarded = r#"
            [[site.route]]
            path = "/inner"
            root = "www"
            allow = ["10.0.0.0/8"]
            deny = ["10.9.0.0/16"]
            methods = ["GET"]
            rate_limit = { requests = 2, per = "1s", burst = 9 }

            [[site.route]]
            path = "/staff"
            root = "www"
            basic_auth = { users = { ada = "$2y$04$M8GN1LhxmWzK34qTmzdeB.JoTi2x7t9.WZghfLTSiQkvuJujEDW9." } }

            [[site]]
            name = "behind"
            root = "app"
            listen = "127.0.0.1:81"
            real_ip = { from = ["10.0.0.1"] }
            deny = ["192.0.2.0/24"]

            [[site]]
            name = "app"
    "#;
    let text = text.replacen("[[site]]\n            name = \"app\"\n", guarded.trim_start(), 1);
    fs::write(dir.path().join("baton.toml"), text).unwrap();
    let explained = |arguments: &[&str]| explain(dir.path(), &[&["-c", "baton.toml"], arguments].concat());
    let inner = "http://example.org/inner/index.html";
    let out = explained(&[inner, "--from", "10.1.2.3"]);
    assert!(out.contains("10.1.2.3 is let in: `allow` has 10.0.0.0/8") && out.contains("200 OK"), "{out}");
    assert!(out.contains("GET, HEAD; others are answered with 405"), "{out}");
    let out = explained(&[inner, "--from", "10.9.2.3"]);
    assert!(
        out.contains("10.9.2.3 is denied: `deny` has 10.9.0.0/16") && out.contains("403 Forbidden"),
        "{out}"
    );
    let out = explained(&[inner]);
    assert!(out.contains("127.0.0.1 is denied: `allow` does not have it") && out.contains("403"), "{out}");
    assert!(explained(&[inner]).contains("9 requests at once, then one in 500 ms, by address"));
    let staff = "http://example.org/staff/index.html";
    let out = explained(&[staff]);
    assert!(out.contains("401 Unauthorized") && out.contains("asked for: -H"), "{out}");
    let out = explained(&[staff, "-H", "Authorization: Basic YWRhOnNlY3JldA=="]);
    assert!(out.contains("200 OK") && out.contains("www/index.html"), "{out}");
    let behind = "http://localhost:81/";
    let field = "X-Forwarded-For: 192.0.2.7";
    let out = explained(&[behind, "--from", "10.0.0.1", "-H", field]);
    assert!(out.contains("192.0.2.7, whose request the proxy 10.0.0.1 passes on"), "{out}");
    assert!(out.contains("403"), "{out}");
    let out = explained(&[behind, "--from", "198.51.100.1", "-H", field]);
    assert!(out.contains("198.51.100.1, which is no proxy") && out.contains("200 OK"), "{out}");
}
