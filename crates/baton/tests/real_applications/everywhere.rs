//! php-fpm by every transport under every architecture and over every protocol: a page, a stream, a form, an upload, a
//! download.

use crate::common::folder::{Folder, pattern};
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::common::{kernel_tls, matrix};
use crate::fpm::{Aid, Fpm};
use crate::holdings::{AnswerTransport, way};
use crate::nginx::Nginx;
use crate::seen::Seen;
use crate::visitor::{HOST, Visitor};

/// The transports, which are also the folders of the script.
const TRANSPORTS: [(&str, AnswerTransport); 3] =
    [("unix", AnswerTransport::Plain), ("shm", AnswerTransport::Shm), ("passfd", AnswerTransport::PassFd)];

const DOWNLOAD_BYTES: usize = 3_000_000;
const UPLOAD_BYTES: usize = 1_500_000;

/// Goal: clients of PHP get the same by every transport and architecture. Method: the same requests by all of them,
/// and by nginx. One php-fpm without the preload library and one with it are enough.
#[test]
fn php_fpm_answers_the_same_by_every_transport_under_every_architecture() {
    let (folder, _fpms) = php();
    let location = format!(
        "root {root}; location / {{ {{parameters}} fastcgi_pass unix:{base}/plain.sock;
         fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; }}",
        root = folder.root().display(),
        base = folder.base().display(),
    );
    let nginx = Nginx::start(&folder, &location);
    let expected = visit(&mut Visitor::new(nginx.address()), "unix");

    for architecture in matrix::architectures("php-fpm by every transport", &matrix::DEFAULT) {
        let server = start(&folder, architecture);
        for protocol in protocols(architecture) {
            assert_same(&server.over(protocol), &expected, architecture);
        }
    }
}

/// Goal: PHP answers on the client's own socket though the connection is encrypted. Method: the kernel seals what php-fpm
/// writes; clients see the same as in clear, by another transport.
#[test]
fn php_fpm_answers_on_encrypted_connections() {
    let Some(_alone) = kernel_tls::alone() else { return };
    let (folder, _fpms) = php();
    let server = start(&folder, "auto");
    let expected = visit(&mut Visitor::new(server.address()), "unix");
    assert_same(&server.over(Protocol::Https), &expected, "auto");
}

/// A folder with the script for each transport, and php-fpm without the preload library and with it.
fn php() -> (Folder, [Fpm; 2]) {
    let folder = Folder::new();
    for (transport, _) in TRANSPORTS {
        folder.write(&format!("{transport}/exchange.php"), include_str!("exchange.php"));
        folder.write(&format!("{transport}/download.bin"), pattern(DOWNLOAD_BYTES, 5));
    }
    // Each loop of a server may keep a connection by each transport.
    let loops = std::thread::available_parallelism().map_or(2, usize::from);
    let pool = format!("pm.max_children = {}\n", 2 * loops);
    let fpms =
        [Fpm::start(&folder, "plain", Aid::None, &pool), Fpm::start(&folder, "preload", Aid::Preload, &pool)];
    (folder, fpms)
}

/// Those that architectures treat in different ways are of the two that differ most: see `common::protocols`.
fn protocols(architecture: &str) -> Vec<Protocol> {
    match architecture {
        "auto" | "pipeline" => Protocol::ALL.to_vec(),
        _ => vec![Protocol::Http],
    }
}

/// Visits the script by each transport, which must be used as far as the protocol lets it.
fn assert_same(server: &Server, expected: &[(&'static str, Seen)], architecture: &str) {
    let protocol = server.protocol();
    for (transport, way_in_clear) in TRANSPORTS {
        let expected_way = match (way_in_clear, protocol) {
            // Frames, and records that the kernel does not seal, are the server's affair: memory is the next best.
            (AnswerTransport::PassFd, Protocol::H2c | Protocol::H2) => AnswerTransport::Shm,
            (AnswerTransport::PassFd, Protocol::Https) if !kernel_tls::is_there() => AnswerTransport::Shm,
            (way, _) => way,
        };
        let holds = format!("/{transport}/exchange.php?do=holds");
        let here = format!("{transport}, {architecture}, {protocol:?}");
        let visitor = || Visitor::over(server.address(), protocol);
        // First, let the server learn the application's transports.
        wait_until(&here, || way(visitor().agent(), HOST, &holds) == expected_way);
        for ((what, expected), (_, seen)) in expected.iter().zip(visit(&mut visitor(), transport)) {
            seen.expect(expected, &format!("{here}: {what}"));
        }
    }
}

/// A server of an architecture, before both.
fn start(folder: &Folder, architecture: &str) -> Server {
    let base = folder.base().display();
    let route = |(transport, way): &(&str, AnswerTransport)| {
        let socket = if *way == AnswerTransport::Plain { "plain" } else { "preload" };
        format!(
            "[[site.route]]\npath = \"/{transport}\"\n[site.route.fastcgi]\nto = \"unix:{base}/{socket}.sock\"\n\
             transport = \"{transport}\"\nconnections_max = 1\nscripts = [\".php\"]\n"
        )
    };
    let routes: String = TRANSPORTS.iter().map(route).collect();
    let root = folder.root();
    Server::run(
        Folder::new(),
        &format!(
            "architecture = \"{architecture}\"\nprocesses = 1\n[[site]]\nname = \"{HOST}\"\n\
             {{listen}}\nroot = \"{}\"\n{routes}",
            root.display()
        ),
    )
}

/// All that a visitor sees of the script in a folder.
fn visit(visitor: &mut Visitor, folder: &str) -> Vec<(&'static str, Seen)> {
    let path = |what: &str| format!("/{folder}/exchange.php?do={what}");
    let mut answers = vec![
        ("page", visitor.get(&path("page&word=a%20%3Cword%3E"))),
        ("head", visitor.ask("HEAD", &path("page&word=x"), "")),
        ("stream", visitor.get(&path("stream"))),
        ("form", visitor.post(&path("form"), &[("name", "\u{fc}ml\u{e4}ut & co"), ("empty", "")])),
        ("long form", visitor.post(&path("form"), &[("text", &"all work and no play ".repeat(9_000))])),
        ("elsewhere", visitor.get(&path("elsewhere"))),
    ];
    let content = pattern(UPLOAD_BYTES, 6);
    let upload = visitor.upload(&path("upload"), &[("title", "a title")], ("file", "own.bin", content));
    assert!(upload.text().contains(&format!("\"own.bin\",0,{UPLOAD_BYTES},")), "{}", upload.text());
    let download = visitor.get(&path("download"));
    assert!(download.body == pattern(DOWNLOAD_BYTES, 5), "{} other bytes", download.body.len());
    answers.extend([("upload", upload), ("download", download)]);
    answers.iter().map(|(what, answer)| (*what, Seen::of(answer, visitor.secrets()))).collect()
}
