//! Links are found as browsers find them, and replaced without another change.

use baton_dcws::links::{CopyTerms, Page, PageAddress, Use};
use baton_dcws::{Origin, copy_address};
use proptest::prelude::*;

fn home() -> Origin {
    "http://a.example:8080".parse().unwrap()
}

fn peer() -> Origin {
    "http://b.example".parse().unwrap()
}

fn read(html: &str) -> Page {
    Page::read(html.as_bytes(), &PageAddress { origin: &home(), path: b"docs/page.html" })
}

/// The links as (what is replaced, document, whether it may move).
fn links(html: &str) -> Vec<(&str, String, bool)> {
    let document = |document: &[u8]| String::from_utf8_lossy(document).into_owned();
    let links = read(html).links;
    links
        .iter()
        .map(|link| (&html[link.place.clone()], document(&link.document), link.used == Use::Moves))
        .collect()
}

/// The page with every link to a document below `away/` replaced.
fn rewritten(html: &str) -> Option<String> {
    let locate =
        |document: &[u8]| document.starts_with(b"away/").then(|| copy_address(&peer(), &home(), document));
    read(html).rewritten(html.as_bytes(), locate, None).map(|bytes| String::from_utf8(bytes).unwrap())
}

const AWAY: &str = "http://b.example/~migrate/a.example/8080/away/";

#[test]
fn links_that_show_or_lead_may_move() {
    for (html, text, document) in [
        ("<a href='../x.pdf'>", "../x.pdf", "x.pdf"),
        ("<IMG SRC=x.png>", "x.png", "docs/x.png"),
        ("<video poster=\"/p.jpg\">", "/p.jpg", "p.jpg"),
        ("<audio src=/a.ogg#t=3>", "/a.ogg", "a.ogg"),
        ("<area href=/a%20b?q=1&amp;r>", "/a%20b", "a b"),
        ("<input type=image src=/b.png>", "/b.png", "b.png"),
        ("<link rel='shortcut icon' href=/i.ico>", "/i.ico", "i.ico"),
        ("<p style='background:url(/t.png)'>", "/t.png", "t.png"),
        ("<style>p{background:url(\"t.png\")}</style>", "t.png", "docs/t.png"),
        ("<a href='http://A.example:8080/z'>", "http://A.example:8080/z", "z"),
        ("<a href=\"\n /z \">", "/z", "z"),
        ("<title><a href=/no></title><a href=/z>", "/z", "z"),
        ("<textarea><img src=/no></textarea><img src=/z>", "/z", "z"),
        ("<script>'<img src=/no>'</script><img src=/z>", "/z", "z"),
        ("<!-- <img src=/no> --><img src=/z>", "/z", "z"),
        ("<base href=/sub/dir><img src=z>", "z", "sub/z"),
        ("é\r\n\r\n<p title='ü>'><img\r\n  src=/z>", "/z", "z"),
    ] {
        assert_eq!(links(html), [(text, document.to_owned(), true)], "{html}");
    }
    let set = "<img srcset='/a.png 1x, /b.png 2x,/c.png, d.png (x,y) 3x ,e.png'>";
    let found: Vec<_> = links(set).into_iter().map(|(text, ..)| text).collect();
    assert_eq!(found, ["/a.png", "/b.png", "/c.png", "d.png", "e.png"]);
}

#[test]
fn links_that_need_their_own_origin_keep_their_documents_at_home() {
    for html in [
        "<script src=/z></script>",
        "<link rel=stylesheet href=/z>",
        "<link rel=preload as=image href=/z>",
        "<iframe src=/z></iframe>",
        "<object data=/z>",
        "<embed src=/z>",
        "<track src=/z>",
        "<svg><use href=/z>",
        "<img crossorigin src=/z>",
        "<img crossorigin srcset=/z>",
        "<a download href=/z>",
        "<style>@font-face{src:url(/z)}</style>",
        "<p style='mask:url(/z)'>",
        "<meta http-equiv='Content-Security-Policy' content=\"img-src 'self'\"><img src=/z>",
    ] {
        assert_eq!(links(html), [("/z", "z".to_owned(), false)], "{html}");
        assert_eq!(rewritten(&html.replace("/z", "/away/z")), None, "{html}");
    }
}

#[test]
fn what_is_no_link_to_a_document_is_left_alone() {
    for html in [
        "<form action=/z>",
        "<link rel=canonical href=/z>",
        "<meta property=og:image content=/z>",
        "<q cite=/z>",
        "<a href=#z>",
        "<a href=?z>",
        "<a href='mailto:z@z'>",
        "<a href=//b.example/z>",
        "<a name=/z>",
        "/z",
        "<base href=http://b.example/><img src=/z>",
        "<a href=/a&#47;z>",
        "<a href='\\z'>",
        "<img data-src=/z>",
        "<plaintext><img src=/z>",
        "<noscript><img src=/z></noscript>",
        "<img src=/z",
        "<a href='/z>",
    ] {
        assert_eq!(links(html), [], "{html}");
    }
}

#[test]
fn only_the_address_changes() {
    let html = "<!DOCTYPE html>\r\n<IMG  alt='a > b' SRC = \"/away/x.png?v=1#f\"><a href=/away/y,z>é</a>\0<img src=/here>";
    let expected =
        html.replace("/away/x.png", &format!("{AWAY}x.png")).replace("/away/y,z", &format!("{AWAY}y%2Cz"));
    assert_eq!(rewritten(html), Some(expected));
    assert_eq!(rewritten("<img src=/here>"), None);
}

#[test]
fn a_copy_counts_its_links_from_home() {
    let copy =
        CopyTerms { home: "http://a.example:8080/docs/page.html".into(), copy: format!("{AWAY}page.html") };
    let made = |html: &str| {
        String::from_utf8(read(html).rewritten(html.as_bytes(), |_| None, Some(&copy)).unwrap()).unwrap()
    };
    let base = "<base href=\"http://a.example:8080/docs/page.html\">";
    assert_eq!(made("<!doctype html><p>"), format!("<!doctype html>{base}<p>"));
    assert_eq!(made("<html lang=en>\n<head >\n<p>"), format!("<html lang=en>\n<head >{base}\n<p>"));
    assert_eq!(made("<p><head>"), format!("{base}<p><head>"));
    assert_eq!(made("<a href='#x'>"), format!("{base}<a href='{AWAY}page.html#x'>"));
    let elsewhere = "<head><base href='http://c.example/'><a href='#x'>";
    assert_eq!(read(elsewhere).rewritten(elsewhere.as_bytes(), |_| None, Some(&copy)), None);
    assert_eq!(made("<head><base href='../s/'>"), "<head><base href='http://a.example:8080/s/'>");
}

proptest! {
    /// Of any bytes: replaced links lead elsewhere, so that nothing is replaced twice, and all other bytes stay.
    #[test]
    fn rewriting_is_idempotent_and_changes_nothing_else(
        parts in prop::collection::vec(prop::sample::select(PARTS), 0..24),
    ) {
        let html = parts.concat();
        let page = read(&html);
        let locate = |document: &[u8]| Some(copy_address(&peer(), &home(), document));
        let Some(once) = page.rewritten(html.as_bytes(), locate, None) else { return Ok(()) };
        let again = Page::read(&once, &PageAddress { origin: &home(), path: b"docs/page.html" });
        prop_assert_eq!(again.rewritten(&once, locate, None), None);
        // Cut all links out of both: the rest is equal.
        let moved: Vec<_> = page.links.iter().filter(|link| link.used == Use::Moves).collect();
        let (mut at, mut rest) = (0, &once[..]);
        for link in moved {
            let before = &html.as_bytes()[at..link.place.start];
            prop_assert!(rest.starts_with(before));
            let address = copy_address(&peer(), &home(), &link.document);
            prop_assert!(rest[before.len()..].starts_with(address.as_bytes()));
            rest = &rest[before.len() + address.len()..];
            at = link.place.end;
        }
        prop_assert_eq!(rest, &html.as_bytes()[at..]);
    }
}

const PARTS: &[&str] = &[
    "<a href=",
    "<img src=",
    "<img srcset='",
    "<style>",
    "</style>",
    "<p style=\"",
    "background:url(",
    ")",
    "'",
    "\"",
    ">",
    " ",
    "/x.png",
    "y",
    "../z?a=b",
    "#f",
    ",",
    " 2x",
    "<!--",
    "-->",
    "<script>",
    "</script>",
    "<base href=",
    "&amp;",
    "é",
    "\r\n",
    "\0",
    "http://a.example:8080/q",
    "<",
    "/",
    "=",
    "<title>",
    "</title>",
    "<svg>",
    "<textarea>",
    "\\",
];
