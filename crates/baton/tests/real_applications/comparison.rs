//! Compares the wiki by all paths.

use std::net::SocketAddr;
use std::path::Path;

use crate::common::folder::Folder;
use crate::common::matrix;
use crate::common::server::{Server, wait_until};
use crate::fpm::{Aid, Fpm};
use crate::holdings::{AnswerTransport, way};
use crate::journey::{journey, several_ranges};
use crate::nginx::Nginx;
use crate::seen::Seen;
use crate::site;
use crate::visitor::{HOST, Visitor};
use crate::wiki;

/// A path to the wiki: server and transport.
pub(crate) struct Front {
    pub(crate) name: &'static str,
    transport: &'static str,
    pub(crate) aid: Aid,
    sends_files: bool,
}

pub(crate) const FRONTS: [Front; 5] = [
    Front { name: "unix", transport: "unix", aid: Aid::None, sends_files: false },
    Front { name: "passfd", transport: "passfd", aid: Aid::Preload, sends_files: false },
    Front { name: "shm", transport: "shm", aid: Aid::Preload, sends_files: false },
    Front { name: "zerocopy", transport: "auto", aid: Aid::Extension, sends_files: false },
    Front { name: "sendfile", transport: "auto", aid: Aid::Preload, sends_files: true },
];

/// The paths that differ most: by the client's own socket with files by their names, and by shared memory. Other tests take
/// smaller applications by every path.
const FEW: [&str; 2] = ["zerocopy", "shm"];

/// Goal: visitors of a wiki get the same by every path and server. Method: each path has its own data and a visitor
/// with the same actions; then all their answers are compared.
#[test]
fn a_wiki_is_the_same_by_every_way() {
    let folder = Folder::new();
    wiki::install(&folder);
    std::fs::create_dir(folder.base().join("snapshots")).expect("a folder");
    let pool = "pm.max_children = 2\n";
    let fpms = [
        Fpm::start(&folder, "plain", Aid::None, pool),
        Fpm::start(&folder, "preload", Aid::Preload, pool),
        Fpm::start(&folder, "extension", Aid::Extension, pool),
    ];
    let reference = wiki::data(&folder, "nginx", false);
    let nginx = Nginx::start(&folder, &nginx_directives(&folder, &reference));
    let expected = journey(nginx.address(), &reference);
    let expected_ranges = several_ranges(nginx.address());

    for front in FRONTS.iter().filter(|front| matrix::all() || FEW.contains(&front.name)) {
        let wiki = wiki::data(&folder, front.name, front.sends_files);
        let server = Server::run(Folder::new(), &site(&folder, front, &wiki));
        let address = server.address();
        // First, let the server learn the application's transports.
        wait_until(front.name, || {
            let way = way(Visitor::new(address).agent(), HOST, "/holds.php");
            assert!(way == front.way() || front.transport == "auto", "{}: {way:?}", front.name);
            way == front.way()
        });
        let seen = journey(address, &wiki);
        assert_eq!(expected.len(), seen.len());
        for ((station, expected), (_, mut seen)) in expected.iter().zip(seen) {
            if front.sends_files {
                // Of a file that the server sends it can send parts, even if the application could not.
                seen.forget_fields_beyond(expected, "accept-ranges");
            }
            seen.expect(expected, &format!("{}: {station}", front.name));
        }
        if front.aid == Aid::Extension {
            style_sheet_by_its_name(address, &expected);
        }
        if !front.sends_files {
            assert_eq!(several_ranges(address), expected_ranges, "{}", front.name);
        }
    }
    for fpm in fpms {
        assert!(!fpm.log().contains("WARNING"), "{}", fpm.log());
    }
}

/// The extension names a file once its last change is more than a second ago, and counts it.
fn style_sheet_by_its_name(address: SocketAddr, expected: &[(String, Seen)]) {
    let expected = expected.iter().find(|(station, _)| station == "style sheet, second").expect("a station");
    let mut visitor = Visitor::new(address);
    wait_until("the style sheet is sent by its name", || {
        let answer = visitor.get("/lib/exe/css.php?t=dokuwiki");
        assert!(answer.body == expected.1.body, "{} other bytes", answer.body.len());
        let told = visitor.get("/holds.php");
        let named = told.text().split_once("\"named\":").expect("the extension's counters").1;
        !named.starts_with('0')
    });
}

impl Front {
    fn way(&self) -> AnswerTransport {
        match self.transport {
            "unix" => AnswerTransport::Plain,
            "shm" => AnswerTransport::Shm,
            _ => AnswerTransport::PassFd,
        }
    }
}

/// nginx as its manual has it for PHP.
fn nginx_directives(folder: &Folder, wiki: &Path) -> String {
    format!(
        "root {root}; index index.php;
         location / {{ try_files $uri $uri/ =404; }}
         location ~ [^/]\\.php(/|$) {{
             fastcgi_split_path_info ^(.+?\\.php)(/.*)$;
             if (!-f $document_root$fastcgi_script_name) {{ return 404; }}
             {{parameters}}
             fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
             fastcgi_param PATH_INFO $fastcgi_path_info;
             fastcgi_param WIKI {wiki};
             fastcgi_pass unix:{base}/plain.sock;
         }}",
        root = folder.root().display(),
        base = folder.base().display(),
        wiki = wiki.display(),
    )
}

/// The wiki with these data by a path.
pub(crate) fn site(folder: &Folder, front: &Front, wiki: &Path) -> String {
    let socket = match front.aid {
        Aid::None => "plain",
        Aid::Preload => "preload",
        Aid::Extension => "extension",
    };
    let fastcgi = format!(
        r#"
to = "unix:{base}/{socket}.sock"
scripts = [".php"]
transport = "{transport}"
connections_max = 2
params = {{ WIKI = "{wiki}" }}
named_files = ["{wiki}/data/media", "{wiki}/data/cache", "{base}/snapshots"]"#,
        base = folder.base().display(),
        transport = front.transport,
        wiki = wiki.display(),
    );
    site::of_one_application(&folder.root(), "index = [\"index.php\"]", &fastcgi)
}
