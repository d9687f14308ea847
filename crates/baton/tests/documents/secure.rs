//! The same over TLS: pages that browsers load over `https` show documents that are `https`, too.

use crate::common::folder::pattern;
use crate::servers::{Servers, Settings, get};

#[test]
fn documents_move_between_servers_with_tls() {
    let trusts = ", authorities = '{base}/localhost.pem'";
    let servers =
        Servers::start(1, Settings { home: trusts, peer: trusts, is_secure: true, ..Settings::default() });
    let home = servers.url(0);
    servers.busy_until("two documents are away", |servers| servers.announced().len() >= 2);
    let page = get(&format!("{home}/"), "");
    assert_eq!(page.status, 200);
    for address in servers.announced() {
        assert!(address.starts_with(&format!("{}/~migrate/localhost/", servers.url(1))), "{address}");
        let (_, image) = address.rsplit_once('/').expect("a path");
        let number: usize = image.trim_end_matches(".png").parse().expect("an image");
        assert!(page.text().contains(&format!("<img src=\"{address}\">")), "{}", page.text());
        let old = get(&format!("{home}/img/{image}"), "");
        assert_eq!((old.status, old.field("location")), (307, Some(&*address)));
        let copy = get(&address, "");
        assert_eq!((copy.status, &*copy.body), (200, pattern(2_000 + number, number as u64)), "{address}");
    }
}

/// Whose certificate does not prove who it is gets no document, whatever it knows.
#[test]
fn a_peer_that_cannot_prove_its_name_gets_nothing() {
    let servers = Servers::start(1, Settings { is_secure: true, ..Settings::default() });
    servers.busy_until("the peer is given up", |servers| servers.home.said().contains("no word from"));
    assert!(servers.announced().is_empty(), "{}", servers.status());
    assert_eq!(get(&format!("{}/img/0.png", servers.url(0)), "").status, 200);
}
