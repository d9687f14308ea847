//! The recipes of `docs/recipes`, as they stand there, with other folders and addresses.
//!
//! DokuWiki is the distribution's, and Django runs in gunicorn. WordPress, MediaWiki, Nextcloud and Laravel or Symfony need
//! databases: trees with the layout of each stand in for them, whose scripts, in a real php-fpm, tell what was run and how.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::folder::Folder;
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::fpm::{Aid, Fpm};
use crate::program::{Program, installed, wait_for_listener};
use crate::wiki;
use crate::{libfcgi, python};

/// Tells what runs: the file, and what it is told.
const SCRIPT: &str = "<?php header('Content-Type: text/plain');
echo 'ran ', substr(__FILE__, strlen($_SERVER['DOCUMENT_ROOT'])), ' for ', $_SERVER['REQUEST_URI'];
foreach (['PATH_INFO', 'QUERY_STRING'] as $name) if (($_SERVER[$name] ?? '') !== '') echo \" $name=\", $_SERVER[$name];
$body = file_get_contents('php://input'); if ($body !== '') echo ' with ', $body;";

const POOL: &str = "pm.max_children = 2\n";

/// The page of a recipe.
fn page(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipes").join(format!("{name}.md"));
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The first part of a recipe in a language.
fn part(name: &str, language: &str) -> String {
    let text = page(name);
    let (_, rest) = text.split_once(&format!("```{language}\n")).expect("such a part");
    rest.split_once("```").expect("its end").0.to_owned()
}

/// The same in a folder, on a port that the kernel chooses.
fn placed(name: &str, folder: &Folder) -> String {
    let base = folder.base().display().to_string();
    part(name, "toml")
        .replace("listen = [\":80\"]", "listen = [\"127.0.0.1:0\"]")
        .replace("/run/php/php-fpm.sock", &format!("{base}/php.sock"))
        .replace("unix:/run/p", &format!("unix:{base}/p"))
        .replace("/run/gunicorn.sock", &format!("{base}/gunicorn.sock"))
        .replace("127.0.0.1:3000", "127.0.0.1:1")
        .replace("/dev/shm/baton", &base)
        .replace("\"/srv/", &format!("\"{base}/srv/"))
}

/// A tree below `srv` in a new folder: files whose names end in `.php` tell what runs, others their names.
fn tree(names: &[&str]) -> Folder {
    let folder = Folder::new();
    for name in names {
        let content = if name.ends_with(".php") { SCRIPT.to_owned() } else { format!("file {name}") };
        folder.write(&format!("../srv/{name}"), content);
    }
    folder
}

/// What clients get: what ran, a file, a status, or a status with a location. Over HTTP/1 and HTTP/2.
fn expect(server: &Server, host: &str, asked: &[(&str, &str, &str)]) {
    for protocol in [Protocol::Http, Protocol::H2c] {
        let mut client = server.over(protocol).agent();
        for (method, path, expected) in asked {
            let response = client.ask_host(host, method, path, "");
            let got = match (response.status, response.field("location")) {
                (status, Some(location)) => format!("{status} {location}"),
                (200, None) => response.text().to_owned(),
                (status, None) => status.to_string(),
            };
            assert_eq!(got, *expected, "{method} {path} over {protocol:?}");
        }
    }
}

fn run(folder: Folder, name: &str) -> Server {
    let configuration = format!("processes = 1\n{}", placed(name, &folder));
    Server::run(folder, &configuration)
}

/// The recipes, in a folder that has all of their roots.
fn recipes() -> (Folder, Vec<String>) {
    let folder = tree(&[
        "wordpress/x",
        "mediawiki/x",
        "nextcloud/x",
        "dokuwiki/x",
        "app/dist/x",
        "project/public/x",
        "project/static/x",
        "project/media/x",
        "www/x",
    ]);
    let recipes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipes");
    let names = fs::read_dir(recipes).expect("recipes").map(|entry| entry.expect("a recipe").path());
    let names = names.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned());
    (folder, names.filter(|name| name != "README").collect())
}

/// What `baton check` says of a configuration that it accepts.
fn checked(folder: &Folder, name: &str, configuration: &str) -> String {
    let file = folder.base().join("baton.toml");
    fs::write(&file, configuration).expect("a configuration");
    let output = Command::new(env!("CARGO_BIN_EXE_baton")).arg("check").arg("-c").arg(&file).output();
    let output = output.expect("baton runs");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn every_recipe_passes_the_check() {
    let (folder, names) = recipes();
    assert!(names.len() >= 7, "{names:?}");
    for name in names {
        checked(&folder, &name, &placed(&name, &folder));
    }
}

/// Goal: what the section *Faster* of a recipe changes in its configuration has the server offer browsers' sockets. Method: the change
/// as it stands there, and what `check` says before and after. That of the program in C is run.
#[test]
fn faster_lines_of_every_recipe() {
    let (folder, names) = recipes();
    let mut changed = 0;
    for name in names.into_iter().filter(|name| name != "c") {
        let text = page(&name);
        let Some((_, section)) = text.split_once("\n## Faster\n") else { continue };
        let words: Vec<&str> = section.split('`').skip(1).step_by(2).collect();
        let at = words.iter().position(|word| word.contains("passfd_users")).expect("the line that does it");
        let (line, plain) = (words[at], placed(&name, &folder));
        let faster = match line.starts_with("fastcgi = ") {
            true => {
                plain.replace(&format!("proxy = \"unix:{}/gunicorn.sock\"", folder.base().display()), line)
            }
            false => plain.replacen(words[at + 1], &format!("{}, {line}", words[at + 1]), 1),
        };
        let offers = |configuration: &str| {
            checked(&folder, &name, configuration).contains("`passfd` only if root listens at its socket")
        };
        assert!(!offers(&plain) && offers(&faster), "{name}: {faster}");
        changed += 1;
    }
    assert!(changed >= 6, "{changed}");
}

/// Goal: with the lines of *Faster*, a browser's image comes from each application itself. Method: php-fpm, a WSGI application and a
/// program with libfcgi, started as the page says; the log says how the last answer of each has travelled.
#[test]
fn faster() {
    let folder = tree(&[]);
    folder.write(
        "../srv/www/index.php",
        "<?php header('Content-Type: image/png'); echo str_repeat('i', 5000);",
    );
    let _fpm = Fpm::start(&folder, "php", Aid::Preload, POOL);
    let _python = python::start_flask(&folder, "python.sock");
    let _program = libfcgi::start_perl(&folder, "program.sock");
    let text = placed("faster", &folder);
    by_passfd(folder, &text, &["/", "/python/size/5000", "/program/bytes?5000"]);
}

/// The same for the program of its page, as that says.
#[test]
fn c() {
    let folder = tree(&["www/x"]);
    let (source, program) = (folder.base().join("chart.c"), folder.base().join("chart"));
    fs::write(&source, part("c", "c")).expect("a source");
    let cc = Command::new("cc").arg("-o").args([&program, &source]).arg("-lfcgi").output();
    let cc = cc.expect("a compiler");
    assert!(cc.status.success(), "{}", String::from_utf8_lossy(&cc.stderr));
    let _program = libfcgi::start(Command::new(program), &folder, &folder.base().join("program.sock"), true);
    let plain = placed("c", &folder);
    let faster = plain.replace("program.sock\"", "program.sock\", passfd_users = [\"root\"]");
    assert_ne!(plain, faster);
    by_passfd(folder, &faster, &["/chart"]);
}

/// Asks until the last answer for each of these paths has come by `passfd`. The tests' user listens in place of root.
fn by_passfd(folder: Folder, configuration: &str, paths: &[&str]) {
    let configuration = configuration.replace("[\"root\"]", "[\"{user}\"]");
    let log = "[log]\naccess = \"{base}/access.log\"\nformat = \"json\"\nflush_ms = 10\n";
    let server = Server::run(folder, &format!("processes = 1\n{log}{configuration}"));
    for path in paths {
        wait_until(path, || {
            let fields = "Accept-Encoding: gzip\r\n";
            let answer = server.agent().ask_host("www.example.org", "GET", path, fields);
            assert_eq!(answer.status, 200, "{path}");
            let log = fs::read_to_string(server.folder().base().join("access.log")).unwrap_or_default();
            let line =
                log.lines().rfind(|line| line.contains(&format!("GET {path} HTTP/"))).unwrap_or_default();
            line.contains("\"transport\":\"passfd\"")
        });
    }
}

#[test]
fn wordpress() {
    let folder = tree(&[
        "wordpress/index.php",
        "wordpress/wp-login.php",
        "wordpress/wp-config.php",
        "wordpress/xmlrpc.php",
        "wordpress/readme.html",
        "wordpress/.git/config",
        "wordpress/wp-admin/index.php",
        "wordpress/wp-admin/includes/file.php",
        "wordpress/wp-includes/version.php",
        "wordpress/wp-includes/js/a.js",
        "wordpress/wp-content/themes/t/a.jpg",
        "wordpress/wp-content/uploads/a.jpg",
        "wordpress/wp-content/uploads/evil.php",
    ]);
    let _fpm = Fpm::start(&folder, "php", Aid::None, POOL);
    let server = run(folder, "wordpress");
    expect(
        &server,
        "blog.example.org",
        &[
            ("GET", "/", "ran /index.php for /"),
            ("GET", "/2024/hello/?p=1", "ran /index.php for /2024/hello/?p=1 QUERY_STRING=p=1"),
            ("DELETE", "/wp-json/wp/v2/posts/1", "ran /index.php for /wp-json/wp/v2/posts/1"),
            ("GET", "/wp-login.php?a", "ran /wp-login.php for /wp-login.php?a QUERY_STRING=a"),
            ("GET", "/wp-admin", "301 /wp-admin/"),
            ("GET", "/wp-admin/", "ran /wp-admin/index.php for /wp-admin/"),
            ("GET", "/wp-includes/js/a.js", "file wordpress/wp-includes/js/a.js"),
            ("GET", "/wp-content/uploads/a.jpg", "file wordpress/wp-content/uploads/a.jpg"),
            (
                "GET",
                "/wp-content/themes/t/a.jpg/x.php",
                "ran /index.php for /wp-content/themes/t/a.jpg/x.php",
            ),
            ("GET", "/.git/config", "ran /index.php for /.git/config"),
        ],
    );
    let denied = [
        "/wp-config.php",
        "/wp-config.php/x",
        "//wp-config.php",
        "/x/../wp-config.php",
        "/wp-config%2ephp",
        "/wp-content/uploads/evil.php",
        "/wp-content/uploads/evil.php/x",
        "/wp-content/uploads/evil.php/x.jpg",
        "/wp-content/uploads%2Fevil.php",
        "/wp-content//uploads/%65vil.php",
        "/wp-content/themes/../uploads/evil.php",
        "/wp-content/uploads/a.jpg/x.php",
        "/wp-content/uploads/a.jpg%0A.php",
        "/wp-includes/version.php",
        "/wp-admin/includes/file.php",
        "/xmlrpc.php",
        "/xmlrpc.php/x",
        "/%78mlrpc.php",
        "/readme.html",
    ];
    expect(&server, "blog.example.org", &denied.map(|path| ("GET", path, "404")));
    expect(&server, "blog.example.org", &denied.map(|path| ("POST", path, "404")));
}

#[test]
fn mediawiki() {
    let folder = tree(&[
        "mediawiki/w/index.php",
        "mediawiki/w/rest.php",
        "mediawiki/w/load.php",
        "mediawiki/w/LocalSettings.php",
        "mediawiki/w/images/a.png",
        "mediawiki/w/images/evil.php",
        "mediawiki/w/includes/x.php",
        "mediawiki/w/maintenance/run.php",
        "mediawiki/w/resources/a.js",
    ]);
    let _fpm = Fpm::start(&folder, "php", Aid::None, POOL);
    let server = run(folder, "mediawiki");
    expect(
        &server,
        "wiki.example.org",
        &[
            ("GET", "/", "301 /wiki/Main_Page"),
            ("GET", "/wiki/Main_Page", "ran /w/index.php for /wiki/Main_Page"),
            ("GET", "/wiki/AC%2FDC?a=b", "ran /w/index.php for /wiki/AC%2FDC?a=b QUERY_STRING=a=b"),
            ("POST", "/wiki/Caf%C3%A9/Sub", "ran /w/index.php for /wiki/Caf%C3%A9/Sub"),
            ("GET", "/wiki/x.php", "ran /w/index.php for /wiki/x.php"),
            ("GET", "/w/", "ran /w/index.php for /w/"),
            ("GET", "/w/load.php?m", "ran /w/load.php for /w/load.php?m QUERY_STRING=m"),
            ("GET", "/w/rest.php/v1/page", "ran /w/rest.php for /w/rest.php/v1/page PATH_INFO=/v1/page"),
            ("GET", "/w/images/a.png", "file mediawiki/w/images/a.png"),
            ("GET", "/w/resources/a.js", "file mediawiki/w/resources/a.js"),
            ("GET", "/w/resources/a.js/x.php", "404"),
        ],
    );
    let denied = [
        "/w/LocalSettings.php",
        "/w/localsettings.PHP",
        "/w/images/evil.php",
        "/w/images/evil.php/x",
        "/w%2Fimages/evil.php",
        "/wiki/../w/images/evil.php",
        "/w/includes/x.php",
        "/w//includes//x.php",
        "/w/maintenance/run.php",
        "/w/images/a.png/x.php",
    ];
    expect(&server, "wiki.example.org", &denied.map(|path| ("GET", path, "404")));
}

#[test]
fn nextcloud() {
    let folder = tree(&[
        "nextcloud/index.php",
        "nextcloud/remote.php",
        "nextcloud/console.php",
        "nextcloud/ocs/v1.php",
        "nextcloud/apps/files/js/a.js",
        "nextcloud/config/config.php",
        "nextcloud/data/u.txt",
        "nextcloud/occ",
        "nextcloud/.htaccess",
    ]);
    let _fpm = Fpm::start(&folder, "php", Aid::None, POOL);
    let server = run(folder, "nextcloud");
    expect(
        &server,
        "cloud.example.org",
        &[
            ("GET", "/", "ran /index.php for /"),
            ("GET", "/login?x", "ran /index.php for /login?x PATH_INFO=/login QUERY_STRING=x"),
            (
                "GET",
                "/apps/files/?d=/",
                "ran /index.php for /apps/files/?d=/ PATH_INFO=/apps/files/ QUERY_STRING=d=/",
            ),
            ("GET", "/index.php/s/a%20b", "ran /index.php for /index.php/s/a%20b PATH_INFO=/s/a b"),
            (
                "PROPFIND",
                "/remote.php/dav/f/a%2Bb",
                "ran /remote.php for /remote.php/dav/f/a%2Bb PATH_INFO=/dav/f/a+b",
            ),
            ("GET", "/ocs/v1.php/x", "ran /ocs/v1.php for /ocs/v1.php/x PATH_INFO=/x"),
            ("GET", "/apps/files/js/a.js", "file nextcloud/apps/files/js/a.js"),
            ("GET", "/.well-known/carddav", "301 /remote.php/dav/"),
            ("GET", "/.well-known/webfinger?r", "301 /index.php/.well-known/webfinger?r"),
            ("GET", "/remote/x?y", "301 /remote.php/remote/x?y"),
            ("GET", "/.htaccess", "ran /index.php for /.htaccess PATH_INFO=/.htaccess"),
        ],
    );
    let denied = [
        "/config/config.php",
        "/config%2Fconfig.php",
        "/x/../config/config.php",
        "/CONFIG/config.php",
        "/data/u.txt",
        "//data//u.txt",
        "/data",
        "/occ",
        "/console.php",
        "/%63onsole.php/x",
        "/lib/private/x.php",
    ];
    expect(&server, "cloud.example.org", &denied.map(|path| ("GET", path, "404")));
}

#[test]
fn laravel_and_symfony() {
    let folder = tree(&[
        "project/.env",
        "project/public/.env",
        "project/public/index.php",
        "project/public/evil.php",
        "project/public/build/app.js",
    ]);
    let _fpm = Fpm::start(&folder, "php", Aid::None, POOL);
    let server = run(folder, "laravel-symfony");
    expect(
        &server,
        "www.example.org",
        &[
            ("GET", "/", "ran /index.php for /"),
            ("GET", "/users/7?x=1", "ran /index.php for /users/7?x=1 QUERY_STRING=x=1"),
            ("PUT", "/users/7", "ran /index.php for /users/7"),
            ("GET", "/index.php/x", "ran /index.php for /index.php/x PATH_INFO=/x"),
            ("GET", "/evil.php", "ran /index.php for /evil.php"),
            ("GET", "/evil.php/index.php", "ran /index.php for /evil.php/index.php"),
            ("GET", "/index.php/../evil.php", "ran /index.php for /index.php/../evil.php"),
            ("GET", "/build/app.js", "file project/public/build/app.js"),
            ("GET", "/build/app.js/x.php", "ran /index.php for /build/app.js/x.php"),
            ("GET", "/.env", "ran /index.php for /.env"),
            ("GET", "/../.env", "400"),
            ("GET", "/..%2F.env", "400"),
        ],
    );
}

#[test]
fn dokuwiki() {
    let folder = Folder::new();
    wiki::install(&folder);
    let data = wiki::data(&folder, "recipe", false);
    let settings = data.join("conf/local.php");
    let local = fs::read_to_string(&settings).expect("the settings");
    let more = "$conf['userewrite'] = 1;\n$conf['useslash'] = 1;\n$conf['gzip_output'] = 0;\n";
    fs::write(&settings, local + more).expect("settings");
    folder.write("data/pages/secret.txt", "a secret").write("conf/secret.txt", "a secret");
    let _fpm = Fpm::start(&folder, "php", Aid::None, "pm.max_children = 4\n");
    let parameter = format!("scripts = [\".php\"], params = {{ WIKI = \"{}\" }}", data.display());
    let root = folder.root().display().to_string();
    let configuration = placed("dokuwiki", &folder)
        .replace(&format!("{}/srv/dokuwiki", folder.base().display()), &root)
        .replace("scripts = [\".php\"]", &parameter);
    let server = Server::run(folder, &format!("processes = 1\n{configuration}"));
    for protocol in [Protocol::Http, Protocol::H2c] {
        let mut client = server.over(protocol).agent();
        let mut get = |path: &str| client.ask_host("wiki.example.org", "GET", path, "");
        for (path, status, text) in [
            ("/", 200, "This is the <em>first</em> page."),
            ("/start", 200, "This is the <em>first</em> page."),
            ("/start?do=edit", 200, "This is the //first// page."),
            ("/_export/raw/start", 200, "This is the //first// page."),
            ("/none/at/all", 404, "This topic does not exist yet"),
            ("/lib/exe/css.php", 200, "{"),
            ("/lib/tpl/dokuwiki/images/favicon.ico", 200, ""),
            ("/_media/none.png", 404, ""),
        ] {
            let response = get(path);
            let shown = String::from_utf8_lossy(&response.body);
            assert_eq!(response.status, status, "{path}: {shown}");
            assert!(shown.contains(text), "{path}: {shown}");
        }
        assert!(
            get("/start").text().contains("href=\"/start?do=edit"),
            "links have the form that is understood"
        );
        for (path, start) in [("/ns/", "/ns/start"), ("/ns/?x=1", "/ns/start?x=1")] {
            let location = get(path).field("location").map(str::to_owned);
            let target = location.as_deref().and_then(|url| url.strip_prefix("http://wiki.example.org"));
            assert_eq!(target.or(location.as_deref()), Some(start), "{path}");
        }
        for path in [
            "/data/pages/secret.txt",
            "/data%2Fpages/secret.txt",
            "//data/pages/secret.txt",
            "/lib/../data/pages/secret.txt",
            "/%64ata/pages/secret.txt",
            "/conf/secret.txt",
            "/Conf/secret.txt",
            "/inc/init.php",
            "/vendor/autoload.php",
        ] {
            let response = get(path);
            assert_eq!(response.status, 404, "{path}");
            assert!(!String::from_utf8_lossy(&response.body).contains("a secret"), "{path}");
        }
    }
}

/// A project in one file, which tells what it is asked.
const PROJECT: &str = "import django.conf
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import re_path

django.conf.settings.configure(SECRET_KEY='x', ROOT_URLCONF=__name__, ALLOWED_HOSTS=['www.example.org'])

def show(request, path):
    return HttpResponse('%s %s %s' % (request.method, request.get_full_path(), request.META['HTTP_X_FORWARDED_PROTO']))

urlpatterns = [re_path(r'^(?P<path>.*)$', show)]
application = get_wsgi_application()
";

#[test]
fn django() {
    let folder = tree(&[
        "project/static/app.css",
        "project/static/favicon.ico",
        "project/media/a.html",
        "project/settings.txt",
    ]);
    folder.write("../project.py", PROJECT);
    let gunicorn = installed("gunicorn and python3-django", &["/usr/bin/gunicorn"]);
    let socket = folder.base().join("gunicorn.sock");
    let mut command = Command::new(gunicorn);
    command.arg("--bind").arg(format!("unix:{}", socket.display())).arg("project:application");
    command.current_dir(folder.base());
    let _gunicorn = Program::start(&mut command, &folder, &folder.base().join("gunicorn.log"));
    wait_for_listener(&socket);
    let server = run(folder, "django");
    expect(
        &server,
        "www.example.org",
        &[
            ("GET", "/", "GET / http"),
            ("GET", "/admin/login/?next=/a%26b", "GET /admin/login/?next=/a%26b http"),
            ("POST", "/form/", "POST /form/ http"),
            ("GET", "/static/app.css", "file project/static/app.css"),
            ("GET", "/favicon.ico", "file project/static/favicon.ico"),
            ("GET", "/media/a.html", "file project/media/a.html"),
            ("GET", "/static/none.css", "404"),
            ("GET", "/static/../settings.txt", "GET /settings.txt http"),
            ("GET", "/static/..%2Fsettings.txt", "400"),
            ("POST", "/static/app.css", "405"),
        ],
    );
}

#[test]
fn single_page_application() {
    let folder = tree(&["app/dist/index.html", "app/dist/assets/a.js", "app/.env"]);
    let server = run(folder, "single-page-application");
    expect(
        &server,
        "app.example.org",
        &[
            ("GET", "/", "file app/dist/index.html"),
            ("GET", "/users/7?x", "file app/dist/index.html"),
            ("GET", "/assets/a.js", "file app/dist/assets/a.js"),
            ("GET", "/assets/old.js", "404"),
            ("GET", "/api/x", "502"),
            ("GET", "/../.env", "400"),
            ("GET", "/..%2F.env", "400"),
            ("POST", "/users/7", "405"),
        ],
    );
    let fields = |path: &str| {
        let response = server.agent().ask_host("app.example.org", "GET", path, "");
        response.field("cache-control").map(str::to_owned)
    };
    assert_eq!(fields("/users/7").as_deref(), Some("no-cache"));
    assert!(fields("/assets/a.js").is_some_and(|value| value.contains("immutable")));
}
