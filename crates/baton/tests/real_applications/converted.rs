//! Configurations of nginx as people have them, converted: nginx and Baton answer the same requests alike.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use crate::common::agent::{Agent, Body};
use crate::common::certificate;
use crate::common::client::Response;
use crate::common::folder::Folder;
use crate::common::port::free_address;
use crate::common::protocol::Protocol;
use crate::common::server::Server;
use crate::fpm::{Aid, Fpm};
use crate::nginx::Nginx;
use crate::program::is_root;

/// A site of both servers, in clear and over TLS.
pub(crate) struct Pair {
    _nginx: Nginx,
    _baton: Server,
    nginx_at: [SocketAddr; 2],
    baton_at: [SocketAddr; 2],
    /// What the conversion said, and its exit code.
    pub(crate) report: String,
    pub(crate) code: Option<i32>,
}

/// What is asked for over TLS or not, of a host.
type SiteUrl = (Protocol, &'static str, &'static str);

/// A request.
#[derive(Clone, Copy)]
pub(crate) struct Probe<'a> {
    pub(crate) host: &'a str,
    pub(crate) method: &'a str,
    pub(crate) url: &'a str,
    /// Lines of its head.
    pub(crate) fields: &'a str,
}

impl Pair {
    /// Converts a site and has both servers serve it. `{php}` and `{origin}` are the given addresses.
    pub(crate) fn start(folder: Folder, site: &str, php: &str, origin: &str) -> Self {
        let own = folder.base().join("nginx");
        fs::create_dir_all(own.join("sites")).expect("a folder");
        certificate::install(folder.base());
        let (nginx_at, baton_at) = ([free_address(), free_address()], [free_address(), free_address()]);
        let base = folder.base().display().to_string();
        let site = site
            .replace("{clear}", &nginx_at[0].to_string())
            .replace("{tls}", &nginx_at[1].to_string())
            .replace("{root}", &folder.root().display().to_string())
            .replace("{certificate}", &format!("{base}/localhost.pem"))
            .replace("{key}", &format!("{base}/localhost.key"))
            .replace("{htpasswd}", &format!("{base}/htpasswd"))
            .replace("{php}", php)
            .replace("{origin}", origin);
        fs::write(own.join("sites/site.conf"), site).expect("a site");
        fs::copy("/etc/nginx/fastcgi_params", own.join("fastcgi_params")).expect("nginx's own file");
        let user = if is_root() { "user root;" } else { "" };
        let text = format!(
            "daemon off;\npid {own}/pid;\nerror_log {own}/error;\n{user}\nworker_processes 1;\n\
             events {{\n  worker_connections 256;\n}}\n\
             http {{\n  include /etc/nginx/mime.types;\n  default_type application/octet-stream;\n  sendfile on;\n\
             access_log {own}/access;\n  client_body_temp_path {own}/b; proxy_temp_path {own}/p; fastcgi_temp_path {own}/f;\n\
             uwsgi_temp_path {own}/u; scgi_temp_path {own}/s;\n  include sites/*.conf;\n}}\n",
            own = own.display(),
        );
        let nginx = Nginx::run(&folder, &own, &text, nginx_at[0]);

        let output = folder.base().join("converted.toml");
        let converted = Command::new(env!("CARGO_BIN_EXE_baton"))
            .args(["config", "convert"])
            .arg(own.join("nginx.conf"))
            .arg("--output")
            .arg(&output)
            .output()
            .expect("baton");
        let report = String::from_utf8_lossy(&converted.stderr).into_owned();
        let toml = fs::read_to_string(&output).unwrap_or_else(|error| panic!("{error}: {report}"));
        // Both run at a time.
        let mut toml = toml.replace(&format!("{}/access", own.display()), &format!("{base}/baton-access"));
        toml = toml.replace(&format!("{}/error", own.display()), &format!("{base}/baton-error"));
        for (nginx, baton) in nginx_at.iter().zip(baton_at) {
            toml = toml.replace(&nginx.to_string(), &baton.to_string());
        }
        check(&folder.base().join("checked.toml"), &toml);
        // The configuration of a test begins within this section.
        let baton = Server::run(folder, &toml.replacen("[server]\n", "", 1));
        Self { _nginx: nginx, _baton: baton, nginx_at, baton_at, report, code: converted.status.code() }
    }

    /// Both answer alike, as far as clients care.
    #[track_caller]
    fn agree_on(&self, (protocol, host, path): SiteUrl) -> Response {
        let [nginx, baton] = self.answers(protocol, host, path);
        let own = format!("{}://{host}", if protocol == TLS { "https" } else { "http" });
        assert_eq!(seen(&baton, &own), seen(&nginx, &own), "{host}{path}: Baton, nginx\n{}", self.report);
        if nginx.status == 200 {
            assert_eq!(baton.text(), nginx.text(), "{host}{path}");
        }
        baton
    }

    /// What each of them answers.
    fn statuses(&self, host: &str, path: &str) -> [u16; 2] {
        self.answers(CLEAR, host, path).map(|response| response.status)
    }

    /// The responses of nginx and of Baton.
    fn answers(&self, protocol: Protocol, host: &str, path: &str) -> [Response; 2] {
        self.answers_to(protocol, &Probe { host, method: "GET", url: path, fields: "" })
    }

    /// The responses of both to a request; `POST` has the fields of a form as its body.
    pub(crate) fn answers_to(&self, protocol: Protocol, asked: &Probe<'_>) -> [Response; 2] {
        let Probe { host, method, url, fields } = *asked;
        let at = usize::from(protocol == TLS);
        [self.nginx_at, self.baton_at].map(|of_server| {
            let mut agent = Agent::connect(of_server[at], protocol);
            if method != "POST" {
                return agent.ask_host(host, method, url, fields);
            }
            let fields = format!("Content-Type: application/x-www-form-urlencoded\r\n{fields}");
            agent.begin(method, host, url, &fields, Body::Length(FORM.len()));
            agent.send_body(FORM);
            agent.finish_body();
            agent.response()
        })
    }
}

/// The body of a `POST`.
const FORM: &[u8] = b"word=ma%C3%9Fe&n=1";

/// `baton check` accepts it.
fn check(file: &PathBuf, toml: &str) {
    fs::write(file, toml).expect("a configuration");
    let checked =
        Command::new(env!("CARGO_BIN_EXE_baton")).arg("check").arg("-c").arg(file).output().expect("baton");
    assert!(checked.status.success(), "{}\n{toml}", String::from_utf8_lossy(&checked.stderr));
}

/// Status and fields that clients act on, in one form.
pub(crate) fn seen(response: &Response, own: &str) -> (u16, Vec<(String, String)>) {
    let mut fields: Vec<(String, String)> = Vec::new();
    for (name, value) in &response.fields {
        let value = match name.as_str() {
            // Baton says the charset of texts, too.
            "content-type" if response.status == 200 => {
                let kind = value.split(';').next().unwrap_or_default();
                kind.replace("application/javascript", "text/javascript")
                    .replace("vnd.microsoft.icon", "x-icon")
            }
            // nginx names itself, and its port, in the redirections that it makes.
            "location" => {
                let behind = value.strip_prefix(own).and_then(|rest| rest.find('/').map(|at| &rest[at..]));
                behind.unwrap_or(value).to_owned()
            }
            // Of files alone, not of what leads to their folder.
            "cache-control" if response.status == 301 => continue,
            "cache-control" | "strict-transport-security" => value.clone(),
            name if name.starts_with("x-") => value.clone(),
            _ => continue,
        };
        match fields.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => known.push_str(&format!(", {value}")),
            None => fields.push((name.clone(), value)),
        }
    }
    fields.sort();
    (response.status, fields)
}

const CLEAR: Protocol = Protocol::Http;
const TLS: Protocol = Protocol::Https;

fn furnished() -> Folder {
    let folder = Folder::new();
    folder
        .write("index.html", "<title>home</title>")
        .write("folder/index.html", "a folder")
        .write("bare/file.txt", "text")
        .write("style.css", "body {}")
        .write("assets/app.js", "1")
        .write("errors/404.html", "nothing here")
        .write(".htaccess", "secret");
    folder
}

#[test]
fn the_default_site_of_debian() {
    let pair = Pair::start(furnished(), include_str!("sites/debian_default.conf"), "", "");
    for path in
        ["/", "/folder/", "/folder", "/folder?a=b", "/style.css", "/none", "/bare/file.txt", "/../etc/passwd"]
    {
        pair.agree_on((CLEAR, "any.example", path));
    }
    // nginx has a listing to refuse, Baton nothing to show.
    assert_eq!(pair.statuses("any.example", "/bare/"), [403, 404]);
    assert_eq!(pair.code, Some(0), "{}", pair.report);
}

#[test]
fn a_wordpress() {
    let folder = Folder::new();
    let script = "<?php header('X-Script: ' . basename(__FILE__));\n\
                  echo json_encode([$_SERVER['REQUEST_URI'], $_GET, $_SERVER['DOCUMENT_ROOT'], $_POST]);";
    for name in ["index.php", "wp-login.php", "wp-admin/index.php"] {
        folder.write(name, script);
    }
    folder.write("style.css", "body {}").write("robots.txt", "Disallow:").write(".htaccess", "secret");
    let fpm = Fpm::start(&folder, "blog", Aid::None, "pm.max_children = 2\n");
    let socket = folder.base().join("blog.sock").display().to_string();
    let pair = Pair::start(folder, include_str!("sites/wordpress.conf"), &socket, "");
    for path in [
        "/",
        "/?p=1",
        "/2026/11/a-post/?utm=x&y[]=1",
        "/wp-login.php?action=lostpassword",
        "/wp-admin/",
        "/wp-admin",
        "/style.css",
        "/robots.txt",
        "/favicon.ico",
        "/.htaccess",
    ] {
        let response = pair.agree_on((CLEAR, "blog.example", path));
        assert_eq!(
            response.field("x-script").is_some(),
            response.status == 200 && !path.ends_with(".css") && !path.ends_with(".txt"),
            "{path}"
        );
    }
    assert!(!pair.report.contains("GUARD"), "{}", pair.report);
    drop(fpm);
}

#[test]
fn a_proxy_with_two_applications() {
    let backend = Folder::new();
    let told = "$request_method $request_uri $http_host $http_x_forwarded_for $http_x_forwarded_proto $http_x_api_key";
    let origin =
        Nginx::start(&backend, &format!("location / {{ default_type text/plain; return 200 \"{told}\"; }}"));
    let pair = Pair::start(furnished(), include_str!("sites/proxy.conf"), "", &origin.address().to_string());
    for (host, path) in [
        ("app.example", "/"),
        ("app.example", "/a%20b/c?d=e"),
        ("www.app.example", "/x"),
        ("app.example", "/static/app.js"),
        ("app.example", "/static/none"),
        ("app.example", "/healthz"),
        ("app.example", "/admin/"),
        ("app.example", "/admin/x?y"),
    ] {
        pair.agree_on((CLEAR, host, path));
    }
    // There nginx tells the origin nothing of the client.
    let mut client = Agent::connect(pair.baton_at[0], CLEAR);
    let moved = client.ask_host("app.example", "GET", "/v1/users?id=1", "");
    assert!(moved.text().starts_with("GET /api/v1/users?id=1 backend.example"), "{}", moved.text());
    assert_eq!(pair.code, Some(0), "{}", pair.report);
}

#[test]
fn a_static_site_with_tls() {
    let pair = Pair::start(furnished(), include_str!("sites/static_tls.conf"), "", "");
    for asked in [
        (CLEAR, "example.test", "/"),
        (CLEAR, "example.test", "/folder/?a=b"),
        (TLS, "example.test", "/"),
        (TLS, "example.test", "/folder/"),
        (TLS, "example.test", "/assets/app.js"),
        (TLS, "example.test", "/old-name/x"),
        (TLS, "example.test", "/blog/x/y?z"),
        (TLS, "example.test", "/none"),
        (TLS, "www.example.test", "/folder/?a=b"),
    ] {
        pair.agree_on(asked);
    }
    let none = Agent::connect(pair.baton_at[1], TLS).ask_host("example.test", "GET", "/none", "");
    assert_eq!((none.status, none.text()), (404, "nothing here"), "the site's own page");
}
