//! Pages of any bytes, and messages of any bytes from a server that has the key.

use baton_dcws::links::{Page, PageAddress, Use, of_style_sheet};
use baton_dcws::{Cooperation, Key, Origin, copy_address};

fn origin(text: &str) -> Origin {
    text.parse().expect("an origin")
}

/// Links are in order, do not overlap, and are replaced once, without another change.
pub fn page(input: &[u8]) {
    let (home, peer) = (origin("http://a.example:8080"), origin("http://b.example"));
    let address = PageAddress { origin: &home, path: b"docs/page.html" };
    let page = Page::read(input, &address);
    let mut end = 0;
    for link in &page.links {
        assert!(
            end <= link.place.start && link.place.start < link.place.end && link.place.end <= input.len()
        );
        end = link.place.end;
    }
    for link in of_style_sheet(input, &address) {
        assert!(link.place.end <= input.len());
    }
    let locate = |document: &[u8]| Some(copy_address(&peer, &home, document));
    let Some(once) = page.rewritten(input, locate, None) else {
        assert!(page.links.iter().all(|link| link.used == Use::Pins));
        return;
    };
    let (mut at, mut rest) = (0, &once[..]);
    for link in page.links.iter().filter(|link| link.used == Use::Moves) {
        let before = &input[at..link.place.start];
        let address = copy_address(&peer, &home, &link.document);
        rest = rest
            .strip_prefix(before)
            .and_then(|rest| rest.strip_prefix(address.as_bytes()))
            .expect("one link");
        at = link.place.end;
    }
    assert_eq!(rest, &input[at..], "nothing else has changed");
    assert_eq!(Page::read(&once, &address).rewritten(&once, locate, None), None, "nothing is replaced twice");
}

/// Whatever a server with the key says, the machine goes on, and a server without it is not answered. The first line is the
/// head of a question, the rest its body.
pub fn words(input: &[u8]) {
    let key = |secret: &[u8]| Key::from_file(secret).expect("a key");
    let (right, wrong) = (key(&[b'k'; 32]), key(&[b'w'; 32]));
    let (a, b) = (origin("http://a.example"), origin("http://b.example"));
    let peers = vec![b.clone()];
    let mut site = Cooperation::new(a, peers, right.clone(), Default::default(), 0, 1);
    let line = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (head, body) = (String::from_utf8_lossy(&input[..line]), input.get(line + 1..).unwrap_or_default());
    let forged = baton_dcws::sign_question(&wrong, &head, body);
    assert!(site.admit(&forged, 1_000_000).is_err());
    let field = baton_dcws::sign_question(&right, &head, body);
    if let Ok(admitted) = site.admit(&field, 1_000_000) {
        assert_eq!(admitted.body_len(), body.len());
        let _ = site.answer(admitted, body, 10);
    }
    assert!(site.admit(&field, 1_000_000).is_err(), "nothing is heard twice");
    let _ = site.take_map(1);
}
