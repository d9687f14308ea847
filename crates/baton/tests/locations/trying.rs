//! `try_files`: what may answer a path, and what is done without it.

use crate::common::agent::Body;
use crate::common::server::{Server, wait_until};
use crate::site::SECRET;

crate::everywhere!(
    the_first_candidate_that_is_there_answers,
    a_front_controller_answers_for_the_rest,
    a_request_goes_on_whole,
    absence_is_not_for_ever,
    nothing_hidden_is_a_candidate,
);

fn the_first_candidate_that_is_there_answers(server: &Server) {
    let mut client = server.agent();
    let mut get = |path: &str| client.ask_host("spa.example", "GET", path, "");
    for (path, file) in [
        ("/", "spa/index.html"),
        ("/index.html", "spa/index.html"),
        ("/about", "spa/about.html"),
        ("/about.html", "spa/about.html"),
        ("/docs/", "spa/docs/index.html"),
        ("/users/7?x=1", "spa/index.html"),
        ("/about/", "spa/index.html"),
        ("/empty/", "spa/index.html"),
        ("/users%2F7", "spa/index.html"),
        ("/x/../about", "spa/about.html"),
        ("/index.html/x", "spa/index.html"),
        ("/assets/app.js", "spa/assets/app.js"),
    ] {
        // Twice: what was found is remembered.
        for _ in 0..2 {
            let response = get(path);
            assert_eq!((response.status, response.text()), (200, &*format!("{file}\n")), "{path}");
        }
    }
    let response = get("/docs?x");
    assert_eq!((response.status, response.field("location")), (301, Some("/docs/?x")));
    for (path, status) in [("/assets/none.js", 410), ("/assets/", 410), ("/%00", 400), ("/../x", 400)] {
        assert_eq!(get(path).status, status, "{path}");
    }
    for (method, path, status) in [
        ("HEAD", "/users/7", 200),
        ("POST", "/users/7", 405),
        ("POST", "/about", 405),
        ("OPTIONS", "/x", 204),
    ] {
        assert_eq!(client.ask_host("spa.example", method, path, "").status, status, "{method} {path}");
    }
    assert_eq!(client.ask_host("lost.example", "GET", "/x", "").status, 404, "the last one is missing, too");
}

/// Nothing listens at the address of the application: 502 says that it was asked.
fn a_front_controller_answers_for_the_rest(server: &Server) {
    let mut client = server.agent();
    for (method, path, status) in [
        ("GET", "/style.css", 200),
        ("GET", "/upload/x.jpg", 200),
        ("POST", "/style.css", 405),
        ("GET", "/img", 301),
        ("GET", "/", 502),
        ("GET", "/sub/", 502),
        ("GET", "/run.php", 502),
        ("GET", "/img/", 502),
        ("GET", "/blog/a/b?c=d", 502),
        ("POST", "/wp-json/x", 502),
        ("DELETE", "/wp-json/x", 502),
        ("OPTIONS", "/wp-json/x", 502),
        ("GET", "/a%2Fb", 502),
        ("GET", "/none.php", 502),
        ("GET", "/upload/x.jpg/a.php", 502),
        ("GET", "/a%00", 400),
    ] {
        let response = client.ask_host("front.example", method, path, "");
        assert_eq!(response.status, status, "{method} {path}");
        assert!(!response.text().contains(SECRET), "{method} {path}");
    }
}

fn a_request_goes_on_whole(server: &Server) {
    let mut client = server.agent();
    let response = client.ask_host("origin.example", "GET", "/a%20b/c?d=e&f", "");
    assert_eq!(response.text(), "GET /origin/a%20b/c?d=e&f\n");
    client.begin("POST", "origin.example", "/form", "", Body::Length(8));
    client.send_body(b"the body");
    client.finish_body();
    assert_eq!(client.response().text(), "POST /origin/form\nthe body");
    let response = client.ask_host("origin.example", "GET", "/style.css", "");
    assert_eq!(response.text(), "front/style.css\n");
}

/// Goal: absence is remembered no longer than anything else.
fn absence_is_not_for_ever(server: &Server) {
    let name = format!("later-{:?}.txt", server.protocol());
    let path = format!("/{name}");
    let mut client = server.agent();
    let mut text = || client.ask_host("spa.example", "GET", &path, "").text().to_owned();
    assert_eq!(text(), "spa/index.html\n");
    server.folder().write(&format!("../spa/{name}"), "it is there\n");
    wait_until("the file", || text() == "it is there\n");
    std::fs::remove_file(server.folder().base().join("spa").join(&name)).expect("it was there");
    wait_until("its absence", || text() == "spa/index.html\n");
}

fn nothing_hidden_is_a_candidate(server: &Server) {
    let mut client = server.agent();
    for host in ["spa.example", "front.example", "origin.example"] {
        for path in ["/.env", "/%2eenv", "//.env", "/x/../.env", "/.env/", "/.env%2F", "/../front/.env"] {
            let response = client.ask_host(host, "GET", path, "");
            assert!(!response.text().contains(SECRET), "{host}{path}");
        }
    }
}
