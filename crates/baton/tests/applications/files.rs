//! Files that applications name instead of sending them, and requests that they send elsewhere within the site.

use crate::common::folder::pattern;
use crate::common::server::{Server, wait_until};
use crate::site::{ALPHABET, BIG_BYTES, SECRET};

crate::protocols::over_every_protocol!(
    a_file_is_sent_for_its_name,
    a_named_file_for_a_status_without_a_body,
    parts_and_conditions_of_a_named_file,
    names_that_lead_out_are_refused,
    files_between_pieces_of_text,
    requests_sent_elsewhere_within_the_site,
    a_location_without_a_status_is_the_clients,
);

fn a_file_is_sent_for_its_name(server: &Server, below: &str) {
    let mut client = server.agent();
    let answer = client.ask("GET", &format!("{below}/sendfile"), "");
    assert_eq!((answer.status, answer.text()), (200, ALPHABET));
    // The application's fields are kept, the file's are added.
    assert_eq!((answer.field("content-type"), answer.field("x-own")), (Some("text/x-own"), Some("yes")));
    assert!(answer.field("etag").is_some() && answer.field("last-modified").is_some());
    assert_eq!((answer.field("x-sendfile"), answer.field("x-route")), (None, Some(&below[1..])));
    let internal = client.ask("GET", &format!("{below}/internal"), "");
    assert_eq!((internal.status, internal.text()), (200, ALPHABET));
    let of_route = client.ask("GET", &format!("{below}/inner"), "");
    assert_eq!((of_route.status, of_route.text()), (200, ALPHABET), "a file of an internal route");
    let guarded = client.ask("GET", &format!("{below}/inner-guarded"), "");
    assert_eq!(
        guarded.status, 502,
        "a file of a route with guards of its own, like any that may not be named"
    );
    assert_eq!(client.ask("GET", "/inner/letters.txt", "").status, 404);
    let head = client.ask("HEAD", &format!("{below}/sendfile"), "");
    assert_eq!(head.field("content-length"), Some("26"));
    assert_eq!(
        client.ask("GET", "/protected/letters.txt", "").status,
        404,
        "only the application may name it"
    );
}

/// A named file is not sent with a status without a body: the next response would begin with it.
fn a_named_file_for_a_status_without_a_body(server: &Server, below: &str) {
    let mut client = server.agent();
    for (status, length) in [(204, None), (205, Some("0")), (304, None)] {
        let answer = client.ask("GET", &format!("{below}/without-body?{status}"), "");
        assert_eq!((answer.status, answer.field("content-length"), answer.text()), (status, length, ""));
    }
    assert_eq!(client.ask("GET", &format!("{below}/sendfile"), "").text(), ALPHABET);
}

fn parts_and_conditions_of_a_named_file(server: &Server, below: &str) {
    let mut client = server.agent();
    let path = format!("{below}/sendfile");
    let part = client.ask("GET", &path, "Range: bytes=3-5\r\n");
    assert_eq!((part.status, part.text()), (206, "def"));
    assert_eq!(part.field("content-range"), Some("bytes 3-5/26"));
    assert_eq!(client.ask("GET", &path, "Range: bytes=26-\r\n").status, 416);
    let head = client.ask("HEAD", &path, "Range: bytes=3-5\r\n");
    assert_eq!((head.status, head.field("content-length")), (200, Some("26")), "a range is for GET only");
    let etag = part.field("etag").expect("a tag").to_owned();
    let same = client.ask("GET", &path, &format!("If-None-Match: {etag}\r\n"));
    assert_eq!((same.status, same.field("x-own")), (304, Some("yes")));
    let other = client.ask("GET", &path, "If-None-Match: \"other\"\r\n");
    assert_eq!((other.status, other.text()), (200, ALPHABET));
}

fn names_that_lead_out_are_refused(server: &Server, below: &str) {
    let mut client = server.agent();
    for (name, status) in [("outside", 404), ("link-out", 404), ("gone", 404), ("mixed-outside", 502)] {
        let answer = client.ask("GET", &format!("{below}/{name}"), "");
        assert_eq!(answer.status, status, "{name}");
        assert!(!String::from_utf8_lossy(&answer.body).contains(SECRET), "{name}");
    }
}

fn files_between_pieces_of_text(server: &Server, below: &str) {
    let mut client = server.agent();
    for _ in 0..2 {
        let answer = client.ask("GET", &format!("{below}/mixed"), "");
        let expected = [b"one", ALPHABET.as_bytes(), b"two ", pattern(BIG_BYTES, 2), b"end"].concat();
        assert_eq!((answer.status, answer.field("x-zerocopy")), (200, None));
        assert_eq!(answer.field("content-length"), Some(&*expected.len().to_string()));
        assert!(answer.body == expected);
    }
}

fn requests_sent_elsewhere_within_the_site(server: &Server, below: &str) {
    let mut client = server.agent();
    let within = client.ask("GET", &format!("{below}/within"), "");
    assert_eq!((within.status, within.text(), within.field("location")), (200, ALPHABET, None));
    assert_eq!(client.ask("GET", &format!("{below}/loop"), "").status, 502);
    let said = format!("GET {below}/loop: it redirects within the server in a loop");
    wait_until(&said, || server.said().contains(&said));
    assert!(!server.said().contains(&format!("GET {below}/loop: it names a file")), "{}", server.said());
    assert_eq!(client.ask("GET", &format!("{below}/bytes?4"), "").body, pattern(4, 1));
}

/// As from nginx, where the route does not say otherwise.
fn a_location_without_a_status_is_the_clients(server: &Server, below: &str) {
    let mut client = server.agent();
    for application in [&format!("{below}-uploads"), "/scgi-uploads"] {
        let answer = client.ask("GET", &format!("{application}/within"), "");
        assert!(answer.says(302, "Found") && answer.field("location") == Some("/alphabet.txt"), "{answer:?}");
        assert_eq!((answer.field("x-own"), answer.text()), (Some("yes"), "there"));
    }
}
