//! Error pages of a route, and in the place of an origin's.

use crate::common::server::Server;

crate::everywhere!(a_route_has_pages_of_its_own, pages_take_the_place_of_an_origin_s_errors);

fn a_route_has_pages_of_its_own(server: &Server) {
    let mut client = server.agent();
    for (path, text) in [("/none", "the site's 404"), ("/own/none", "the route's 404")] {
        let response = client.get(path);
        assert_eq!((response.status, response.text()), (404, text), "{path}");
        assert_eq!(response.field("content-type"), Some("text/html; charset=utf-8"), "{path}");
    }
}

/// Statuses with a page, and listed ones; others pass. A second request finds the origin's own answer in the cache. A body that is
/// not wanted is not waited for.
fn pages_take_the_place_of_an_origin_s_errors(server: &Server) {
    let mut client = server.agent();
    for (path, status, text) in [
        ("/instead/503", 503, "the route's 503"),
        ("/instead/endless/503", 503, "the route's 503"),
        ("/instead/404", 404, "the site's 404"),
        ("/instead/500", 500, "of the origin"),
        ("/instead/200", 200, "of the origin"),
        ("/raw/404", 404, "of the origin"),
        ("/listed/404", 404, "the site's 404"),
        ("/listed/404", 404, "the site's 404"),
        ("/listed/endless/404", 404, "the site's 404"),
        ("/listed/503", 503, "of the origin"),
    ] {
        let response = client.get(path);
        assert_eq!(response.status, status, "{path}");
        assert!(response.text().starts_with(text), "{path}: {}", response.text());
    }
    let built_in = client.get("/listed/500");
    assert_eq!(built_in.status, 500);
    assert!(!built_in.text().contains("of the origin"), "{}", built_in.text());
    assert_eq!(client.get("/instead/503").field("x-cached"), None, "none of the origin's fields is left");
}
