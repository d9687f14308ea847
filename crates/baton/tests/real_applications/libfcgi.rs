//! Programs that are linked with libfcgi, unmodified, and find either the distribution's or the drop-in: Perl's FCGI
//! module and fcgiwrap.

use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use crate::built;
use crate::common::client::Client;
use crate::common::folder::{Folder, install_program, pattern};
use crate::common::server::Server;
use crate::holdings::{AnswerTransport, way};
use crate::nginx::Nginx;
use crate::program::{Program, installed};
use crate::seen::Seen;

/// A program under both libraries, and where its pages are.
struct Pair {
    folder: Folder,
    prefix: &'static str,
    _programs: [Program; 2],
}

/// Which library the program finds, by the name of its socket.
const LIBRARIES: [&str; 2] = ["original", "dropin"];

/// The requests: method, path, fields and size of the body.
const REQUESTS: [(&str, &str, &str, usize); 17] = [
    ("GET", "/variables?a=%20b&c", "Cookie: c=1\r\nX-Two: 1\r\n", 0),
    ("POST", "/variables", "Content-Type: text/x-own\r\n", 3),
    ("POST", "/echo", "", 0),
    ("POST", "/echo", "", 1),
    ("PUT", "/echo", "", 70_000),
    ("POST", "/echo", "", 1_000_000),
    ("GET", "/bytes?64", "", 0),
    ("GET", "/bytes?8192", "", 0),
    ("GET", "/bytes?200000", "", 0),
    ("GET", "/bytes?4000000", "", 0),
    ("HEAD", "/once?500", "", 0),
    ("GET", "/once?500", "", 0),
    ("GET", "/once?500000", "", 0),
    ("GET", "/cookies", "", 0),
    ("GET", "/elsewhere", "", 0),
    ("GET", "/nothing", "", 0),
    ("GET", "/unknown", "", 0),
];

/// Goal: clients cannot distinguish the program's libraries and servers. Method: the same requests to both, by each
/// transport, and to nginx.
#[test]
fn perl_answers_the_same_by_every_way() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real_applications/responder.pl");
    let pair = Pair::start("", || {
        let mut perl = Command::new("perl");
        perl.arg(&script);
        perl
    });
    pair.compare("location / { {parameters} fastcgi_pass unix:{base}/original.sock; }", "");
}

#[test]
fn cgi_scripts_answer_the_same_by_every_way() {
    let fcgiwrap = installed("fcgiwrap", &["/usr/sbin/fcgiwrap", "/usr/bin/fcgiwrap"]);
    let pair = Pair::start("/script.cgi", || {
        let mut command = Command::new(&fcgiwrap);
        command.arg("-f");
        command
    });
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real_applications/script.cgi");
    install_program(&pair.folder.path("script.cgi"), fs::read(script).expect("the script"));
    pair.compare(
        "location / {
             fastcgi_split_path_info ^(.+?\\.cgi)(/.*)$;
             {parameters}
             fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
             fastcgi_param PATH_INFO $fastcgi_path_info;
             fastcgi_pass unix:{base}/original.sock;
         }",
        "scripts = [\".cgi\"]",
    );
}

/// Perl's responder with the drop-in, at a socket in the folder.
pub(crate) fn start_perl(folder: &Folder, socket: &str) -> Program {
    let mut perl = Command::new("perl");
    perl.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real_applications/responder.pl"));
    start(perl, folder, &folder.base().join(socket), true)
}

/// Starts a program that listens at a socket as its standard input.
pub(crate) fn start(mut command: Command, folder: &Folder, socket: &Path, has_dropin: bool) -> Program {
    let listener = UnixListener::bind(socket).expect("a socket");
    fs::set_permissions(socket, Permissions::from_mode(0o666)).expect("permissions");
    // Not cargo's: CGI scripts inherit the environment.
    command.env_clear().env("PATH", "/usr/bin:/bin");
    if has_dropin {
        command.env("LD_LIBRARY_PATH", built::dropin());
    }
    command.stdin(OwnedFd::from(listener));
    Program::start(&mut command, folder, &socket.with_extension("log"))
}

impl Pair {
    fn start(prefix: &'static str, command: impl Fn() -> Command) -> Self {
        let folder = Folder::new();
        let programs = LIBRARIES.map(|library| {
            let socket = folder.base().join(format!("{library}.sock"));
            start(command(), &folder, &socket, library == "dropin")
        });
        Self { folder, prefix, _programs: programs }
    }

    /// `location`: of nginx, `settings`: of the route.
    fn compare(&self, location: &str, settings: &str) {
        let base = self.folder.base().display().to_string();
        let root = self.folder.root().display().to_string();
        let location = location.replace("{base}", &base);
        let nginx = Nginx::start(&self.folder, &format!("server_name stage; root {root}; {location}"));
        let expected = self.ask_all(nginx.address());
        let ways = [
            ("original", "auto", AnswerTransport::Plain),
            ("dropin", "unix", AnswerTransport::Plain),
            ("dropin", "passfd", AnswerTransport::PassFd),
            ("dropin", "shm", AnswerTransport::Shm),
        ];
        for (library, transport, expected_way) in ways {
            let server = Server::run(
                Folder::new(),
                &format!(
                    "processes = 1\n[[site]]\nname = \"stage\"\nlisten = [\"127.0.0.1:0\"]\nroot = \"{root}\"\n\
                     [[site.route]]\npath = \"/\"\n[site.route.fastcgi]\nto = \"unix:{base}/{library}.sock\"\n\
                     connections_max = 1\ntransport = \"{transport}\"\n{settings}\n"
                ),
            );
            let mut agent = server.agent();
            let way = way(&mut agent, "stage", &format!("{}/holds", self.prefix));
            assert_eq!(way, expected_way, "{library}, {transport}");
            for ((request, expected), (_, seen)) in expected.iter().zip(self.ask_all(server.address())) {
                seen.expect(expected, &format!("{library}, {transport}: {request}"));
            }
        }
    }

    fn ask_all(&self, address: SocketAddr) -> Vec<(String, Seen)> {
        let mut client = Client::connect(address);
        let mut ask = |&(method, path, fields, size): &(&str, &str, &str, usize)| {
            let path = format!("{}{path}", self.prefix);
            let length = match method {
                "POST" | "PUT" => format!("Content-Length: {size}\r\n"),
                _ => String::new(),
            };
            client.send(format!("{method} {path} HTTP/1.1\r\nHost: stage\r\n{fields}{length}\r\n"));
            client.send(pattern(size, 5));
            let mut answer = client.answer_to(method);
            if path.contains("/variables") {
                answer.body = self.comparable(answer.text()).into_bytes();
            }
            (format!("{method} {path}"), Seen::of(&answer, &[]))
        };
        REQUESTS.iter().map(&mut ask).collect()
    }

    /// Variables that do not depend on the server, on ports, and on its documented split between script and path.
    /// nginx passes fields with CGI variables of their own twice, and empty ones, too.
    fn comparable(&self, variables: &str) -> String {
        let left_out = |name: &str| match name {
            "SERVER_SOFTWARE" | "SERVER_PORT" | "REMOTE_PORT" => true,
            "HTTP_CONTENT_TYPE" | "HTTP_CONTENT_LENGTH" | "PATH_TRANSLATED" => true,
            "LD_LIBRARY_PATH" => true,
            // Hidden by a library.
            "BATON_OFFER" => true,
            "SCRIPT_NAME" | "SCRIPT_FILENAME" | "PATH_INFO" => self.prefix.is_empty(),
            _ => false,
        };
        let kept = |line: &&str| {
            line.split_once('=').is_some_and(|(name, value)| !value.is_empty() && !left_out(name))
        };
        variables.lines().filter(kept).map(|line| format!("{line}\n")).collect()
    }
}
