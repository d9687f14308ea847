//! How long bodies may be, and how slow: by site and by route.

use crate::common::agent::Body;
use crate::common::server::Server;
use crate::site::run;

crate::protocols::over_every_protocol!(
    a_route_bounds_the_bodies_of_its_requests,
    the_nearest_bound_counts,
    a_route_says_how_slow_a_body_may_be,
);

fn status(server: &Server, path: &str, size: usize) -> u16 {
    server.agent().send("POST", path, &vec![b'x'; size]).status
}

fn a_route_bounds_the_bodies_of_its_requests(server: &Server) {
    // Files take no bodies, but say so only of those that are not too long.
    for (path, fine) in
        [("/bounded/secret.txt", 405), ("/bounded/run.cgi", 200), ("/bounded-origin/small.txt", 405)]
    {
        assert_eq!(status(server, path, 10), fine, "{path}");
        assert_eq!(status(server, path, 11), 413, "{path}");
    }
    // The length is not said in front.
    let mut client = server.agent();
    client.begin("POST", "localhost", "/bounded/run.cgi", "", Body::Open);
    client.send_body(b"xxxxxxxxxxx");
    client.finish_body();
    assert_eq!(client.response().status, 413);
    // Without a bound of its own, 1 MiB for files and more for programs.
    assert_eq!(status(server, "/open/secret.txt", 11), 405);
    assert_eq!(status(server, "/open/run.cgi", 11), 200);
}

fn the_nearest_bound_counts(server: &Server) {
    assert_eq!(status(server, "/bounded-nearer/run.cgi", 20), 200);
    assert_eq!(status(server, "/bounded-nearer/run.cgi", 21), 413);
}

fn a_route_says_how_slow_a_body_may_be(server: &Server) {
    for path in ["/hasty/run.cgi", "/hasty-origin/run.cgi"] {
        let mut client = server.agent();
        client.begin("POST", "localhost", path, "", Body::Length(10));
        client.send_body(b"xx");
        // Before the usual 30 s are over, and without another byte.
        assert_eq!(client.response().status, 408, "{path}");
    }
}

/// Routes have the bound of their site, in both directions from the usual one.
#[test]
fn a_bound_of_the_site_holds_for_its_routes() {
    let server = run(
        "[limits]\nbody_bytes_max = 5\n[[site]]\nlisten = '127.0.0.1:0'\nroot = '{root}'\nbody_bytes_max = 10\n\
         [[site.route]]\npath = '/open'\ncgi = { scripts = ['.cgi'] }\n[[site.route]]\npath = '/users'\nbody_bytes_max = 'auto'\n",
    );
    for (path, size, expected) in [
        ("/open/run.cgi", 10, 200),
        ("/open/run.cgi", 11, 413),
        ("/allowed/secret.txt", 10, 405),
        ("/allowed/secret.txt", 11, 413),
        ("/users/secret.txt", 5, 405),
        ("/users/secret.txt", 6, 413),
    ] {
        assert_eq!(status(&server, path, size), expected, "{path} {size}");
    }
}
