//! Routes that answer some of the requests for their paths.

use crate::common::server::Server;

crate::everywhere!(the_first_route_whose_condition_holds_answers, what_a_condition_leaves_is_not_logged);

fn the_first_route_whose_condition_holds_answers(server: &Server) {
    let mut client = server.agent();
    for (path, fields, text) in [
        ("/choose", "", "plain"),
        ("/choose", "Cookie: a=1; beta=1\r\n", "beta"),
        ("/choose", "Cookie: beta=11\r\n", "plain"),
        ("/choose", "X-Beta: 1\r\n", "field"),
        ("/choose", "X-Beta: yes\r\n", "field"),
        ("/choose", "X-Beta: yesterday\r\n", "plain"),
        ("/choose?debug", "", "debug"),
        ("/choose?de%62ug=0", "", "debug"),
        ("/choose/x?other", "", "plain"),
        ("/x.beta", "User-Agent: A tester/1.0\r\n", "tester"),
    ] {
        let response = client.ask("GET", path, fields);
        assert_eq!((response.status, response.text()), (200, text), "{path} {fields}");
    }
    assert_eq!(client.get("/x.beta").status, 404, "no route is left but the site's folder");
    let head = client.ask("HEAD", "/choose", "X-Beta: 1\r\n");
    assert_eq!(head.field("content-length"), Some("5"), "HEAD goes with GET");
}

/// Goal: `access_log_when` chooses lines. Method: a request that is logged comes last; by then the others would stand there.
fn what_a_condition_leaves_is_not_logged(server: &Server) {
    let mark = format!("{:?}", server.protocol());
    let mut client = server.agent();
    client.get(&format!("/a.txt?quiet=1&{mark}"));
    client.get(&format!("/a.txt?loud&{mark}"));
    let log = || std::fs::read_to_string(server.folder().base().join("access.log")).unwrap_or_default();
    crate::common::server::wait_until("the line", || log().contains(&format!("/a.txt?loud&{mark}")));
    assert!(!log().contains(&format!("quiet=1&{mark}")), "{}", log());
}
