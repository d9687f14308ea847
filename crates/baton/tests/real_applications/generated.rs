//! Files of nginx that no one has written: locations, guards, rewrites, `try_files` and named locations as a seed combines
//! them, converted. Where the conversion says that all was taken over, nginx and Baton answer the same; where it says
//! otherwise, nothing that nginx refuses is open.
//!
//! Each seed is a server with a name of its own, so that many run at a time. `BATON_NGINX_SEED=17` tries that one.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use baton_nginx::{Includes, Weight, convert};
use fastrand::Rng;

use crate::common::folder::Folder;
use crate::common::matrix;
use crate::common::protocol::Protocol;
use crate::converted::{Pair, Probe};
use crate::differential::{difference, furnished, told_by_an_origin};

/// Seeds of `make test`, and of `make test-all`.
const SEEDS: (u64, u64) = (6, 200);
/// Servers of a file: each start of both servers takes longer than all requests to one of them.
const SERVERS: usize = 40;

const PREFIXES: [&str; 14] = [
    "/",
    "/admin",
    "/admin/",
    "/docs",
    "/docs/",
    "/docs/private/",
    "/uploads/",
    "/static",
    "/static/",
    "/private",
    "/folder",
    "/folder/",
    "/api/",
    "/admin-panel/",
];
const EXPRESSIONS: [&str; 9] = [
    r"\.html$",
    r"\.(css|js)$",
    r"\.txt$",
    "^/docs/",
    r"^/docs/.*\.html$",
    "^/(admin|private)",
    "/private/",
    r"^/.*\.png$",
    "panel",
];
const EXACT: [&str; 5] = ["/", "/admin", "/about.html", "/docs/", "/docs/a.html"];

/// Writes the server of a seed.
fn server(seed: u64) -> String {
    let mut rng = Rng::with_seed(seed);
    let rng = &mut rng;
    let mut text =
        format!("server {{\n    listen {{clear}};\n    server_name {};\n    root {{root}};\n", name(seed));
    for line in [
        "if ($http_x_test = 1) { return 410; }",
        "index index.html;",
        "error_page 404 /404.html;",
        "add_header X-Site yes;",
        "deny 192.0.2.1;",
    ] {
        if rng.u8(0..4) == 0 {
            writeln!(text, "    {line}").unwrap();
        }
    }
    if rng.u8(0..5) == 0 {
        text.push_str(
            ["    rewrite ^/old/(.*)$ /docs/$1 last;\n", "    rewrite ^/gone$ /about.html permanent;\n"]
                [rng.usize(0..2)],
        );
    }
    locations(rng, "", 2, &mut text);
    writeln!(text, "    location @app {{ {} }}\n}}", proxied("")).unwrap();
    text
}

fn name(seed: u64) -> String {
    format!("s{seed}.example")
}

/// Writes some locations, of which each begins as what is around it.
fn locations(rng: &mut Rng, outer: &str, depth: u32, text: &mut String) {
    let mut known = BTreeSet::new();
    let indent = " ".repeat(12 - 4 * depth as usize);
    for _ in 0..rng.usize(1..if depth == 2 { 7 } else { 3 }) {
        let (sign, place) = match rng.u8(0..10) {
            0..4 => ("", PREFIXES[rng.usize(0..PREFIXES.len())]),
            4..6 => ("^~ ", PREFIXES[rng.usize(0..PREFIXES.len())]),
            6..9 => (["~ ", "~* "][rng.usize(0..2)], EXPRESSIONS[rng.usize(0..EXPRESSIONS.len())]),
            _ => ("= ", EXACT[rng.usize(0..EXACT.len())]),
        };
        let is_expression = sign.starts_with('~');
        let is_within = is_expression || place.starts_with(outer) && place != outer;
        if !is_within
            || !known.insert((if is_expression { sign } else { sign.trim_start_matches("^~ ") }, place))
        {
            continue;
        }
        writeln!(text, "{indent}location {sign}{place} {{").unwrap();
        for line in content(rng, sign, place) {
            writeln!(text, "{indent}    {line}").unwrap();
        }
        if depth > 0 && !is_expression && sign != "= " && rng.u8(0..3) == 0 {
            locations(rng, place, depth - 1, text);
        }
        writeln!(text, "{indent}}}").unwrap();
    }
}

/// What a location does: at most one thing that answers, and perhaps a guard.
fn content(rng: &mut Rng, sign: &str, place: &str) -> Vec<String> {
    let id = rng.u16(..);
    let guards = [
        "deny all;",
        "allow 127.0.0.1; deny all;",
        "allow 192.0.2.0/24; deny all;",
        "deny 127.0.0.1;",
        "allow all;",
        "limit_except GET { deny all; }",
        "auth_basic closed; auth_basic_user_file {htpasswd};",
        "satisfy any; allow 127.0.0.1; deny all; auth_basic closed; auth_basic_user_file {htpasswd};",
        "satisfy any; allow 192.0.2.0/24; deny all; auth_basic closed; auth_basic_user_file {htpasswd};",
        "if ($http_x_test = 1) { return 403; }",
        "if ($http_x_test) { return 302 /elsewhere; }",
        "if ($http_x_test !~ ^2) { return 405; }",
        "if ($bad) { return 403; }",
    ];
    let mut lines: Vec<String> = Vec::new();
    if rng.u8(0..3) == 0 {
        lines.push(guards[rng.usize(0..guards.len())].into());
    }
    if rng.u8(0..4) == 0 {
        lines.push([format!("add_header X-Place p{id};"), "expires 1h;".into()][rng.usize(0..2)].clone());
    }
    lines.push(match rng.u8(0..12) {
        0 => "return 410;".into(),
        1 => "return 403;".into(),
        2 => "return 404;".into(),
        3 => "return 301 /elsewhere;".into(),
        4 => "try_files $uri $uri/ =404;".into(),
        5 => "try_files $uri @app;".into(),
        6 => "try_files $uri /index.html;".into(),
        7 => proxied(""),
        8 if sign.is_empty() && place.ends_with('/') => proxied("/base/"),
        9 if !sign.starts_with('~') && place.ends_with('/') && sign != "= " => "alias {root}/docs/;".into(),
        10 => "error_page 404 = @app;".into(),
        _ => return lines,
    });
    lines
}

/// What asks the origin, and tells it what Baton does in any case.
fn proxied(path: &str) -> String {
    format!(
        "proxy_pass http://{{origin}}{path}; proxy_set_header Host $host; proxy_redirect off; \
         proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Forwarded-Proto $scheme;"
    )
}

struct NoFiles;

impl Includes for NoFiles {
    fn read(&mut self, _pattern: &str) -> Option<Vec<(String, String)>> {
        None
    }

    fn exists(&mut self, _path: &str) -> bool {
        false
    }

    fn folder(&self) -> &'static str {
        "/etc/nginx"
    }
}

/// Whether the conversion of a server says that it is the same.
fn is_said_to_be_equal(server: &str) -> bool {
    let values = [
        ("{clear}", "127.0.0.1:80"),
        ("{root}", "/srv"),
        ("{origin}", "127.0.0.1:1"),
        ("{htpasswd}", "/etc/htpasswd"),
    ];
    let text = values.iter().fold(server.to_owned(), |text, (mark, value)| text.replace(mark, value));
    let map = "map $http_x_test $bad { default 0; 1 1; ~^3 1; }";
    let converted = convert("t", &format!("{map}{text}"), &mut NoFiles).expect("a configuration");
    let has_page = server.contains("error_page 404 /404.html;");
    let is_page = |text: &str| has_page && text.starts_with("there is no file for");
    converted.notes.iter().all(|note| note.weight == Weight::Remark || is_page(&note.text))
}

/// Whether nginx asks its locations for the index of this path, which Baton does for some alone (docs/from-nginx.md).
fn is_folder(url: &str) -> bool {
    url.split('?').next().is_some_and(|path| path.ends_with('/'))
}

/// Paths at the borders of all locations.
fn urls() -> Vec<String> {
    let ends = ["", "/", "x", ".html", "a.html", "private/notes.txt", "style.css"];
    let of_prefixes =
        PREFIXES.iter().flat_map(|prefix| ends.map(|end| format!("{prefix}{end}").replace("//", "/")));
    let others =
        ["/old/a.html", "/gone", "/about.html", "/media/a.png", "/folder/?a=b", "/docs/A.HTML", "/api/x?y=z"];
    let all: BTreeSet<_> = of_prefixes.chain(others.map(str::to_owned)).collect();
    all.into_iter().collect()
}

/// Goal: what a conversion calls equal is equal, for any combination. Method: both servers are asked for the same URLs of
/// servers that seeds have written.
#[test]
fn generated_files_answer_as_nginx_does() {
    let seeds: Vec<u64> = match std::env::var("BATON_NGINX_SEED") {
        Ok(seed) => vec![seed.parse().expect("a number")],
        Err(_) => (0..matrix::size(SEEDS.0, SEEDS.1)).collect(),
    };
    let backend = Folder::new();
    let origin = told_by_an_origin(&backend);
    let mut found = String::new();
    for some in seeds.chunks(SERVERS) {
        let servers: Vec<_> = some.iter().map(|seed| server(*seed)).collect();
        let folder = furnished();
        // A folder without one is refused by nginx, and is not there for Baton.
        for name in ["static", "uploads", "media", "assets", "cached"] {
            folder.write(&format!("{name}/index.html"), format!("{name}\n"));
        }
        let http = "map $http_x_test $bad { default 0; 1 1; ~^3 1; }\n";
        let pair =
            Pair::start(folder, &format!("{http}{}", servers.concat()), "", &origin.address().to_string());
        for (seed, server) in some.iter().zip(&servers) {
            let is_equal = is_said_to_be_equal(server);
            let differences = urls().into_iter().filter_map(|url| {
                let asked = Probe { host: &name(*seed), method: "GET", url: &url, fields: "" };
                let is_equal = is_equal && !is_folder(&url);
                let with_field = Probe { fields: "X-Test: 1\r\n", ..asked };
                difference(&pair, Protocol::Http, asked, is_equal)
                    .or_else(|| difference(&pair, Protocol::Http, with_field, is_equal))
            });
            let differences: Vec<_> = differences.collect();
            if !differences.is_empty() {
                writeln!(found, "BATON_NGINX_SEED={seed}:\n{}\n{server}", differences.join("\n")).unwrap();
            }
        }
    }
    assert!(found.is_empty(), "{found}");
}
