//! `baton serve --php`: scripts, files and the front controller, and a php-fpm that comes and goes with the server.

use rustix::process::Signal;

use crate::common::folder::Folder;
use crate::common::leave_out;
use crate::common::server::{Server, wait_until};
use crate::processes::{everybody, lives, told};

fn shop() -> Folder {
    let folder = Folder::new();
    folder.write("index.php", "<?php echo 'pid=', getmypid(), ' front=', $_SERVER['REQUEST_URI'];");
    folder.write("page.php", "<?php echo 'page=', $_GET['q'], ' method=', $_SERVER['REQUEST_METHOD'];");
    folder.write("style.css", "body {}");
    folder
}

#[test]
fn scripts_are_run_files_are_sent_and_the_rest_is_for_the_front_controller() {
    let server = Server::serve(shop(), &["--php"]);
    assert_eq!(told(&server.get("/page.php?q=7"), "page"), "7");
    assert_eq!(server.get("/style.css").body, b"body {}");
    assert_eq!(told(&server.get("/"), "front"), "/");
    assert_eq!(told(&server.get("/no/such/page"), "front"), "/no/such/page");
    assert_eq!(
        told(&server.connect().ask("POST", "/page.php?q=1", "Content-Length: 0\r\n"), "method"),
        "POST"
    );
}

/// Goal: the front controller gets the requested path in PHP's variables, unchanged. Method: paths without files,
/// also with an encoded slash, which no file has.
#[test]
fn the_front_controller_is_told_the_path() {
    let folder = shop();
    folder.write("index.php", SEEN).write("shop/index.php", SEEN);
    let server = Server::serve(folder, &["--php"]);
    let ask = |path: &str| server.get(path).text().to_owned();
    for (path, path_info) in [
        ("/no/such/page?q", "/no/such/page"),
        ("/page/Main%2FSub", "/page/Main/Sub"),
        ("/style.css%2Fx", "/style.css/x"),
        ("/page%2Fx.php/y", "/page/x.php/y"),
        ("/a%20b%0A", "/a b\n"),
        ("/ä", "/ä"),
    ] {
        let uri = path.replace('ä', "%C3%A4");
        assert_eq!(ask(path), format!("{uri}|/index.php|{path_info}|/index.php{path_info}"), "{path}");
    }
    assert_eq!(ask("/index.php/a%2Fb"), "/index.php/a%2Fb|/index.php|/a/b|/index.php/a/b");
    assert_eq!(ask("/index.php"), "/index.php|/index.php||/index.php");
    assert_eq!(ask("/shop/"), "/shop/|/shop/index.php||/shop/index.php");
    assert_eq!(ask("/shop/index.php/x"), "/shop/index.php/x|/shop/index.php|/x|/shop/index.php/x");
    assert_eq!(server.get("/style.css").body, b"body {}");
    assert_eq!(server.get("/a%2F..%2Fpage.php").status, 400);
}

const SEEN: &str = "<?php echo implode('|', [$_SERVER['REQUEST_URI'], $_SERVER['SCRIPT_NAME'], \
                    $_SERVER['PATH_INFO'] ?? '', $_SERVER['PHP_SELF']]);";

#[test]
fn php_fpm_is_replaced_when_it_dies_and_ends_with_the_server() {
    let mut server = Server::serve(shop(), &["--php"]);
    let answered = |server: &Server| told(&server.get("/"), "pid").parse::<i32>().expect("a process");
    let child = answered(&server);
    if everybody(&server).is_empty() {
        return leave_out("the end of php-fpm", "one runs on this system, and is used");
    }
    wait_until("manager and php-fpm run", || everybody(&server).len() == 2);
    let first = everybody(&server);
    rustix::process::kill_process(rustix::process::Pid::from_raw(first[1]).expect("not 0"), Signal::KILL)
        .expect("a signal");
    wait_until("its children are gone", || !lives(child));
    let second = answered(&server);
    assert_ne!(second, child);
    let all = everybody(&server);
    server.signal(Signal::TERM);
    assert!(server.ended().success());
    wait_until("nobody is left", || !all.iter().chain([&second]).any(|&pid| lives(pid)));
    assert!(!server.said().contains("did not end in time"), "{}", server.said());
}
