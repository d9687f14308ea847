//! Files of nginx after the shapes of public ones, converted: nginx and Baton answer the same, URL by URL.
//!
//! Each file in `nginx_files` says its exit code (`# exit: 0`). With 0, every answer is nginx's. With another code answers
//! may differ, but what nginx refuses is never open. URLs are derived from the locations of the file: the prefix, the
//! prefix with a letter more, its index, another case, a slash more and less, a missing one; `# ask:` adds some. Each is also
//! asked for with each field of `# with:` and each method of `# methods:`.
//! `BATON_NGINX_FILE=rails` tries the files whose names have that part.

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use crate::common::client::Response;
use crate::common::folder::Folder;
use crate::common::matrix;
use crate::common::protocol::Protocol;
use crate::converted::{Pair, Probe, seen};
use crate::fpm::{Aid, Fpm};
use crate::nginx::Nginx;

const HOST: &str = "site.example";
/// Pairs of servers that run at a time: more would hold up the other tests of the suite.
const PAIRS: usize = 1;
/// In `make test`, one file of so many is tried; in `make test-all`, each.
const FILES_APART: usize = 10;

pub(crate) fn furnished() -> Folder {
    let folder = Folder::new();
    for name in [
        "index.html",
        "about.html",
        "admin.html",
        "admin-panel/index.html",
        "admin/index.html",
        "admin/users.txt",
        "api.html",
        "private/index.html",
        "private/notes.txt",
        "folder/index.html",
        "style.css",
        "app.js",
        "assets/app.js",
        "static/app.js",
        "static/style.css",
        "media/a.png",
        "uploads/a.png",
        "uploads/a.txt",
        "docs/index.html",
        "docs/a.html",
        "robots.txt",
        "favicon.ico",
        "404.html",
        "50x.html",
        "maintenance.html",
        ".well-known/acme-challenge/token",
        ".git/config",
        ".htaccess",
        "backup.sql",
        "web/index.html",
        "web/b.css",
        "cached/c.html",
    ] {
        folder.write(name, format!("{name}\n"));
    }
    for name in ["index.php", "admin.php", "admin/index.php", "wp-login.php", "uploads/evil.php"] {
        let shown = "$_SERVER['SCRIPT_NAME'] . ' ' . $_SERVER['REQUEST_URI'] . ' ' . ($_SERVER['HTTPS'] ?? '') . json_encode($_GET) . json_encode($_POST)";
        folder.write(name, format!("<?php header('X-Script: ' . basename(__FILE__)); echo {shown};"));
    }
    folder.write("gone.php", "<?php http_response_code(404); echo 'of the script';");
    // Her password is `lovelace`.
    let users = "ada:$2y$04$Vn0ZbcLMWXmVyLcJpGJxdO9vzN7nkGoMVkaqhqe960XkJvGM441Km\n";
    fs::write(folder.base().join("htpasswd"), users).expect("a file");
    folder
}

/// What is asked for, as the file's locations say.
fn urls(text: &str) -> BTreeSet<String> {
    let usual = [
        "/",
        "/index.html",
        "/none",
        "/style.css",
        "/none.css",
        "/folder",
        "/folder/",
        "/admin.html",
        "/admin-panel/",
        "/admin/",
        "/private/notes.txt",
        "/folder/?a=b",
        "/docs/a.html",
    ];
    let mut urls: BTreeSet<String> = usual.map(str::to_owned).into();
    for line in text.lines().map(str::trim) {
        if let Some(more) = line.strip_prefix("# ask:") {
            urls.extend(more.split_whitespace().map(str::to_owned));
        }
        let Some(location) = line.strip_prefix("location ") else { continue };
        let words: Vec<_> = location.split('{').next().unwrap_or_default().split_whitespace().collect();
        match words[..] {
            [path] | ["=" | "^~", path] if path.starts_with('/') => {
                let bare = path.trim_end_matches('/');
                urls.extend([
                    path.to_owned(),
                    format!("{bare}/"),
                    format!("{path}x"),
                    format!("{bare}.html"),
                ]);
                urls.extend([format!("{bare}-panel/"), format!("{path}index.html"), path.to_uppercase()]);
                urls.extend([format!("{bare}/none"), if bare.is_empty() { "/" } else { bare }.to_owned()]);
            }
            [_, pattern] => {
                for word in pattern
                    .split(|character: char| !character.is_ascii_alphanumeric() && !"-_".contains(character))
                {
                    if !word.is_empty() {
                        urls.extend([
                            format!("/style.{word}"),
                            format!("/none.{word}"),
                            format!("/{word}"),
                            format!("/{word}/a.png"),
                        ]);
                    }
                }
            }
            _ => {}
        }
    }
    urls
}

/// An origin that answers with what it was asked for.
pub(crate) fn told_by_an_origin(folder: &Folder) -> Nginx {
    let told = "$request_method $request_uri $http_host $http_x_forwarded_for $http_x_forwarded_proto $http_x_api_key \
                $http_x_remote_user $http_content_length";
    Nginx::start(
        folder,
        &format!(
            "location / {{ default_type text/plain; return 200 \"{told}\"; }} location /moved {{ return 302 /elsewhere; }} \
             location /refused {{ return 403; }}"
        ),
    )
}

/// How the servers differ in what they answer a request. `is_equal`: the conversion says that they do not;
/// otherwise, nothing is open that nginx refuses.
pub(crate) fn difference(
    pair: &Pair,
    protocol: Protocol,
    asked: Probe<'_>,
    is_equal: bool,
) -> Option<String> {
    let Probe { host, method, url, fields } = asked;
    let [nginx, baton] = pair.answers_to(protocol, &asked);
    // It says which methods there are.
    let is_told = method == "OPTIONS" && baton.field("allow").is_some();
    let is_folder = url.split('?').next().is_some_and(|path| path.ends_with('/'));
    // Where a folder's index cannot be guarded, the folder has none, and the site's fallback answers: that is said.
    let is_fallback = is_folder && !is_equal && baton.text().starts_with(&format!("{method} {url}"));
    let is_refused = matches!(nginx.status, 401 | 403 | 405);
    let was_opened = is_refused && baton.status < 400 && !is_told && !is_fallback;
    let own = format!("{}://{host}", if protocol == Protocol::Https { "https" } else { "http" });
    // Fields without `always` are on Baton's errors, too; a folder without an index is no secret.
    let is_alike = match nginx.status {
        // What Baton answers itself knows GET and HEAD.
        _ if method == "POST" && baton.status == 405 => true,
        405 if method == "OPTIONS" && baton.status == 204 => true,
        400.. => baton.status == nginx.status || (nginx.status, baton.status) == (403, 404) && is_folder,
        _ => seen(&baton, &own) == seen(&nginx, &own) && (nginx.status != 200 || nginx.body == baton.body),
    };
    let shown = |response: &Response| format!("{:?} {:.200}", seen(response, &own), response.text());
    (was_opened || is_equal && !is_alike)
        .then(|| format!("{method} {own}{url} {fields:?}: nginx {}, Baton {}", shown(&nginx), shown(&baton)))
}

/// Where they differ.
fn differences(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).expect("a file");
    let (folder, backend) = (furnished(), Folder::new());
    let origin = told_by_an_origin(&backend);
    let fpm = text.contains("{php}").then(|| Fpm::start(&folder, "php", Aid::None, "pm.max_children = 2\n"));
    let php = folder.base().join("php.sock").display().to_string();
    let pair = Pair::start(folder, &text, &php, &origin.address().to_string());
    let mut found = Vec::new();
    let expected = text.lines().find_map(|line| line.strip_prefix("# exit: ")?.parse().ok());
    if pair.code != expected {
        found.push(format!("exit code {:?}, expected {expected:?}: {}", pair.code, pair.report));
    }
    let protocols = [("{clear}", Protocol::Http), ("{tls}", Protocol::Https)];
    let is_equal = pair.code == Some(0);
    let said =
        |mark: &str| text.lines().filter_map(|line| line.trim().strip_prefix(mark)).collect::<Vec<_>>();
    let with: Vec<_> = said("# with:").iter().map(|field| format!("{}\r\n", field.trim())).collect();
    let methods: Vec<_> = said("# methods:").iter().flat_map(|line| line.split_whitespace()).collect();
    for (_, protocol) in protocols.into_iter().filter(|(mark, _)| text.contains(mark)) {
        for (index, url) in urls(&text).iter().enumerate() {
            let asked = Probe { host: HOST, method: "GET", url, fields: "" };
            found.extend(difference(&pair, protocol, asked, is_equal));
            for fields in &with {
                found.extend(difference(&pair, protocol, Probe { fields, ..asked }, is_equal));
            }
            for method in &methods {
                found.extend(difference(&pair, protocol, Probe { method, ..asked }, is_equal));
            }
            // Bodies make no other route answer: every fourth URL shows whether they arrive.
            if index % 4 == 0 {
                found.extend(difference(&pair, protocol, Probe { method: "POST", ..asked }, is_equal));
            }
        }
    }
    drop(fpm);
    found
        .into_iter()
        .map(|difference| format!("{}: {difference}\n", file.file_name().unwrap_or_default().display()))
        .collect()
}

/// Goal: what a conversion calls equal is equal. Method: both servers are asked for the same URLs, of each file its own.
#[test]
fn converted_files_answer_as_nginx_does() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real_applications/nginx_files");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("files").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    let files: Vec<_> = match std::env::var("BATON_NGINX_FILE") {
        Ok(only) => files.into_iter().filter(|file| file.to_string_lossy().contains(&only)).collect(),
        Err(_) => files.into_iter().step_by(matrix::size(FILES_APART, 1)).collect(),
    };
    let (left, found) = (Mutex::new(files), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..PAIRS {
            scope.spawn(|| {
                while let Some(file) = left.lock().expect("no panic").pop() {
                    // The other files are tried all the same.
                    let differences = catch_unwind(|| differences(&file));
                    let differences = differences
                        .unwrap_or_else(|_| vec![format!("{}: failed, see above\n", file.display())]);
                    found.lock().expect("no panic").extend(differences);
                }
            });
        }
    });
    let found = found.into_inner().expect("no panic");
    assert!(found.is_empty(), "{}", found.concat());
}
