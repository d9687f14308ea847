//! Every server of `lab/servers` does what its file claims, and what goes wrong is said with its remedy.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use baton_lab::Certificate;
use baton_lab::servers::{Ability, RunningServer, ServerKind, ServerPlace, ServerSettings, names};

/// An origin that answers each request with its name, and counts them.
struct Origin {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl Origin {
    fn start(ip: &str, name: &'static str) -> Self {
        let listener = TcpListener::bind((ip, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let count = Arc::clone(&count);
                thread::spawn(move || answer(stream, name, &count));
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn answer(stream: TcpStream, name: &str, asked: &AtomicUsize) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut stream = stream;
    loop {
        let head: Vec<String> =
            lines.by_ref().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
        let Some(request) = head.first() else { break };
        asked.fetch_add(1, Ordering::SeqCst);
        let body = if request.contains("/large") { name.repeat(LARGE / name.len()) } else { name.to_owned() };
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nCache-Control: max-age=60\r\n";
        let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len());
    }
}

/// Bytes of a response for `/large`: as large as measured ones are.
const LARGE: usize = 1 << 20;

/// What curl gets: the version of HTTP, the fields of the head, the body.
struct Got {
    version: String,
    head: String,
    body: Vec<u8>,
}

fn curl(url: &str, more: &[&str]) -> Got {
    let arguments =
        ["--silent", "--show-error", "--max-time", "20", "--include", "--write-out", "%{http_version}"];
    let output =
        Command::new("curl").args(arguments).args(more).arg(url).output().expect("curl is installed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{url}: {said}");
    let mut text = output.stdout;
    let at = text.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head") + 4;
    let mut body = text.split_off(at);
    // An upgrade to HTTP/2 has a head of its own.
    if text.starts_with(b"HTTP/1.1 101") {
        let at = body.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a second head") + 4;
        text = body;
        body = text.split_off(at);
    }
    let digits = body.iter().rev().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    let version = String::from_utf8(body.split_off(body.len() - digits)).unwrap();
    Got { version, head: String::from_utf8(text).unwrap().to_lowercase(), body }
}

/// What stands around the servers of these tests.
struct Scene {
    folder: tempfile::TempDir,
    certificate: Certificate,
    origins: [Origin; 2],
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Workers may have another user's rights.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.path(), open).unwrap();
        let root = folder.path().join("root");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("page.html"), "A lighthouse.\n".repeat(1000)).unwrap();
        fs::write(root.join("answer.php"), "<?php echo 6 * 7, ' by php';").unwrap();
        let certificate = Certificate::make(folder.path()).unwrap();
        // lighttpd tells nodes from each other by their IP address alone.
        let origins = [Origin::start("127.0.0.1", "first"), Origin::start("127.0.0.2", "second")];
        Self { folder, certificate, origins }
    }

    fn place(&self, name: &str) -> ServerPlace<'_> {
        let folder = self.folder.path();
        ServerPlace {
            certificate: Some(&self.certificate),
            origins: self.origins.iter().map(|origin| origin.address).collect(),
            ..ServerPlace::new(&folder.join(name), &folder.join("root"))
        }
    }

    fn page(&self) -> Vec<u8> {
        fs::read(self.folder.path().join("root/page.html")).unwrap()
    }
}

/// The kind if it is installed; a line says that it is left out.
fn present(name: &str) -> Option<ServerKind> {
    let kind = ServerKind::load(name).unwrap();
    if let Err(error) = kind.installed().and(kind.version()) {
        let _ = writeln!(std::io::stderr(), "LEFT OUT: {name}: {error:#}");
        return None;
    }
    Some(kind)
}

fn start(kind: &ServerKind, needs: &[Ability], place: &ServerPlace<'_>) -> RunningServer {
    let settings = ServerSettings::needing(needs.iter().copied());
    kind.start(&settings, place).unwrap_or_else(|error| panic!("{}: {error:#}", kind.name))
}

/// Goal: each server does all that its file claims in clear. Method: it is started with all of it, before a back-end of
/// each kind, and asked for one path of each ability.
#[test]
fn every_present_server_does_what_its_file_claims() {
    let scene = Scene::new();
    let application = application("ad-rotation", &scene);
    let php = application_if_present("php-fpm", &scene);
    for name in names().unwrap() {
        let Some(kind) = present(&name) else { continue };
        let mut place = scene.place(&name);
        place.fastcgi = Some(application.socket.clone());
        place.php = php.as_ref().map(|php| php.socket.clone());
        let in_clear = [
            Ability::Files,
            Ability::Log,
            Ability::Fastcgi,
            Ability::Php,
            Ability::Proxy,
            Ability::Cache,
            Ability::Compression,
            Ability::Generated,
            Ability::Prompts,
        ];
        let needs = in_clear.into_iter().filter(|ability| kind.can(*ability));
        let needs: Vec<_> = needs.filter(|ability| *ability != Ability::Php || php.is_some()).collect();
        if needs.is_empty() {
            continue;
        }
        let server = start(&kind, &needs, &place);
        for ability in needs {
            ask(&server, ability, &scene);
        }
        assert!(!server.processes().is_empty());
    }
}

/// Goal: each way of sending a generated page sends the page. Method: two pages in a row on one connection, of a size that
/// takes several calls.
#[test]
fn generated_pages_are_whole_by_each_way() {
    let scene = Scene::new();
    let Some(kind) = present("generated-page") else { return };
    for way in ["copy", "recycled", "fresh", "splice", "zerocopy", "ring"] {
        let mut settings = ServerSettings::needing([Ability::Generated]);
        settings.set.insert("way".into(), way.into());
        let place = scene.place(way);
        let server = kind.start(&settings, &place).unwrap_or_else(|error| panic!("{way}: {error:#}"));
        let url = format!("http://{}/generated/3000000", server.address);
        let output =
            Command::new("curl").args(["--silent", "--show-error", "--max-time", "20", &url, &url]).output();
        let expected = [b'a', b'b'].map(|letter| vec![letter; 3_000_000]).concat();
        assert!(output.unwrap().stdout == expected, "{way}: another page");
    }
}

fn ask(server: &RunningServer, ability: Ability, scene: &Scene) {
    let url = |path: &str| format!("http://{}{path}", server.address);
    let origin = &scene.origins[0];
    let name = &server.name;
    match ability {
        Ability::Files => assert_eq!(curl(&url("/page.html"), &[]).body, scene.page(), "{name}"),
        Ability::Log => {
            curl(&url("/page.html?logged"), &[]);
            let log = server.folder.join("access.log");
            let limit = Instant::now() + Duration::from_secs(10);
            while !fs::read_to_string(&log).is_ok_and(|text| text.contains("?logged")) {
                assert!(Instant::now() < limit, "{name}: nothing in {}", log.display());
                thread::sleep(Duration::from_millis(50));
            }
        }
        Ability::Fastcgi => {
            let got = curl(&url("/app/ad?bytes=70000"), &[]);
            assert_eq!(got.body.len(), 70_000, "{name}: {}", got.head);
        }
        Ability::Php => assert_eq!(curl(&url("/answer.php"), &[]).body, b"42 by php", "{name}"),
        Ability::Proxy => {
            let before = origin.asked();
            for _ in 0..2 {
                assert_eq!(curl(&url("/pass/a"), &[]).body, b"first", "{name}");
            }
            assert_eq!(origin.asked() - before, 2, "{name} asks its origin each time");
        }
        Ability::Cache => {
            let before = origin.asked();
            for _ in 0..3 {
                assert_eq!(curl(&url("/hit/b"), &[]).body, b"first", "{name}");
            }
            for _ in 0..3 {
                assert!(curl(&url("/hit/large"), &[]).body.len() > LARGE - 8, "{name}");
            }
            assert_eq!(origin.asked() - before, 2, "{name} asks its origin once for each");
        }
        Ability::Compression => {
            let path =
                if ServerKind::load(name).unwrap().can(Ability::Files) { "/page.html" } else { "/pass/c" };
            let got = curl(&url(path), &["--header", "Accept-Encoding: gzip"]);
            assert!(got.head.contains("content-encoding: gzip"), "{name}: {}", got.head);
        }
        Ability::Prompts => {
            let prompt = r#"{"messages":[{"content":"Be brief."}]}"#;
            assert_eq!(curl(&url("/v1/chat"), &["--data", prompt]).body, b"token", "{name}");
        }
        Ability::Generated => {
            assert_eq!(curl(&url("/generated/70000"), &[]).body, vec![b'a'; 70_000], "{name}");
        }
        _ => unreachable!("asked elsewhere"),
    }
}

/// Goal: TLS and HTTP/2 are what the files claim. Method: curl trusts the one certificate and says which version it got.
#[test]
fn every_present_server_speaks_the_protocols_that_its_file_claims() {
    let scene = Scene::new();
    let chain = scene.certificate.chain.display().to_string();
    for name in names().unwrap() {
        let Some(kind) = present(&name) else { continue };
        let content = if kind.can(Ability::Files) { Ability::Files } else { Ability::Proxy };
        let path = if content == Ability::Files { "/page.html" } else { "/pass/d" };
        let protocols = [
            (Ability::Tls, "https", "--http1.1", "1.1"),
            (Ability::H2, "https", "--http2", "2"),
            (Ability::H2c, "http", "--http2-prior-knowledge", "2"),
        ];
        for (ability, scheme, option, version) in protocols {
            if !kind.can(ability) {
                continue;
            }
            let server = start(&kind, &[content, ability], &scene.place(&name));
            let url = format!("{scheme}://{}{path}", server.address);
            let got = curl(&url, &["--cacert", &chain, option]);
            assert!(got.head.contains(" 200"), "{name}: {}", got.head);
            assert_eq!(got.version, version, "{name}");
        }
    }
}

/// Goal: a server before several origins sends each URL to one of them, and uses all. Method: forty URLs, twice. A bound of
/// loads may turn one away while the response before it still counts.
#[test]
fn every_present_server_chooses_among_nodes_as_its_file_claims() {
    let scene = Scene::new();
    for name in names().unwrap() {
        let Some(kind) = present(&name).filter(|kind| kind.can(Ability::Nodes)) else { continue };
        let server = start(&kind, &[Ability::Nodes], &scene.place(&name));
        let all = || -> Vec<_> {
            (0..40).map(|page| curl(&format!("http://{}/{page}", server.address), &[]).body).collect()
        };
        let (once, again) = (all(), all());
        let same = once.iter().zip(&again).filter(|(one, other)| one == other).count();
        assert!(same > 35, "{name}: {same} of 40 at the same origin");
        assert!(
            [b"first".as_slice(), b"second"].iter().all(|origin| once.iter().any(|body| body == origin)),
            "{name}"
        );
    }
}

fn application(name: &str, scene: &Scene) -> RunningServer {
    let kind = ServerKind::load(name).unwrap();
    start(&kind, &[Ability::Application], &scene.place(name))
}

fn application_if_present(name: &str, scene: &Scene) -> Option<RunningServer> {
    present(name).map(|_| application(name, scene))
}

/// Goal: mistakes are said with their remedy. Method: each is made.
#[test]
fn mistakes_name_their_remedy() {
    let scene = Scene::new();
    let said = |error: anyhow::Error| format!("{error:#}");

    let unknown = said(ServerKind::load("ngnix").unwrap_err());
    assert!(unknown.contains("no server \"ngnix\"") && unknown.contains("nginx"), "{unknown}");

    let file = scene.folder.path().join("mine.toml");
    fs::write(&file, "title = \"mine\"\nprogram = \"no-such-program\"\ninstal = \"x\"\n").unwrap();
    let wrong = said(ServerKind::load(file.to_str().unwrap()).unwrap_err());
    assert!(wrong.contains("mine.toml") && wrong.contains("line 3") && wrong.contains("instal"), "{wrong}");

    let text = "title = \"mine\"\nprogram = \"no-such-program\"\ninstall = \"apt-get install mine\"\n\
        can = [\"files\"]\narguments = \"\"\"\n{{ root }}\n{{ rot }}\"\"\"\n[settings]\nworkers = 1\n";
    fs::write(&file, text).unwrap();
    let mine = ServerKind::load(file.to_str().unwrap()).unwrap();
    let place = scene.place("mine");
    let start =
        |kind: &ServerKind, settings: &ServerSettings| said(kind.start(settings, &place).unwrap_err());
    let absent = start(&mine, &ServerSettings::default());
    assert!(absent.contains("no-such-program is not installed: apt-get install mine"), "{absent}");
    let settings = ServerSettings::needing([Ability::Cache]);
    assert_eq!(mine.cannot(&settings), Some(Ability::Cache));
    assert!(start(&mine, &settings).contains("cannot do cache"));
    let mistyped = start(&mine, &ServerSettings::default().set("worker", 2));
    assert!(mistyped.contains("no setting \"worker\"; it has workers"), "{mistyped}");

    let there = ServerKind::load(&format!("{}@/bin/sh", file.display())).unwrap();
    let misnamed = start(&there, &ServerSettings::default());
    assert!(misnamed.contains("arguments:2"), "{misnamed}");

    fs::write(&file, text.replace("{{ root }}\n{{ rot }}", "-c\necho wrong in line 7; exit 3")).unwrap();
    let there = ServerKind::load(&format!("{}@/bin/sh", file.display())).unwrap();
    let ended = start(&there, &ServerSettings::default());
    assert!(ended.contains("wrong in line 7") && ended.contains("exit status: 3"), "{ended}");

    let mut place = scene.place("mine");
    place.certificate = None;
    let nginx = ServerKind::load("nginx@/bin/sh").unwrap();
    let lacks = said(nginx.start(&ServerSettings::needing([Ability::Tls]), &place).unwrap_err());
    assert!(lacks.contains("tls needs a certificate"), "{lacks}");
}

/// Goal: nothing is left of a server, of its children neither, when its value is dropped.
#[test]
fn a_dropped_server_leaves_no_process() {
    let scene = Scene::new();
    let Some(kind) = present("nginx") else { return };
    let server = start(&kind, &[Ability::Files], &scene.place("nginx"));
    // A worker besides the master, which listens first.
    let processes = (0..1000).find_map(|_| {
        thread::sleep(Duration::from_millis(10));
        Some(server.processes()).filter(|processes| processes.len() > 1)
    });
    let processes = processes.expect("a worker");
    drop(server);
    let left = processes.iter().filter(|pid| Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!(left.count(), 0);
}

/// Goal: a second executable and settings reach the server. Method: one that prints its arguments and ends.
#[test]
fn settings_of_baton_become_arguments() {
    let scene = Scene::new();
    let program = scene.folder.path().join("prints");
    fs::write(&program, "#!/bin/sh\nprintf '%s\\n' \"$@\"\n").unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let kind = ServerKind::load(&format!("baton@{}", program.display())).unwrap();
    let settings = ServerSettings::needing([Ability::Proxy])
        .set("server.architecture", "symped")
        .set("cache.files_max", 7);
    let place = scene.place("baton");
    kind.start(&settings, &place).unwrap_err();
    let mut said = String::new();
    fs::File::open(place.folder.join("output")).unwrap().read_to_string(&mut said).unwrap();
    assert!(
        said.contains("\n--set=server.architecture=\"symped\"\n--set=cache.files_max=7\n")
            || said.contains("\n--set=cache.files_max=7\n--set=server.architecture=\"symped\"\n"),
        "{said}"
    );
    assert!(said.contains("--set=site.route=[{path = \"/pass\", proxy = \"http://127.0.0.1:"), "{said}");
}
