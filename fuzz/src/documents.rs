//! Pages of any bytes, and messages of any bytes from a server that has the key.

use baton_documents::links::{Page, PageAddress, Use, of_style_sheet};
use baton_documents::{Cooperation, Key, Origin, Question, copy_address};

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

/// Whatever a server with the key says, the machine goes on, and a server without it is not answered.
pub fn words(input: &[u8]) {
    let key = |secret: &[u8]| Key::from_file(secret).expect("a key");
    let (right, wrong) = (key(&[b'k'; 32]), key(&[b'w'; 32]));
    let (a, b) = (origin("http://a.example"), origin("http://b.example"));
    let peers = vec![b.clone()];
    let mut site = Cooperation::new(a, peers, right.clone(), Default::default(), 0, 1);
    let signature = baton_documents::sign_question(&right, input);
    if let Ok(question) = Question::verified(input, signature.as_bytes(), &right) {
        let again = question.signed(&right);
        assert_eq!(Question::verified(&again.body, again.signature.as_bytes(), &right), Ok(question));
    }
    let _ = site.answer(input, signature.as_bytes(), 10, 1_000_000);
    assert!(site.answer(input, signature.as_bytes(), 20, 1_000_000).is_err(), "nothing is heard twice");
    let forged = baton_documents::sign_question(&wrong, input);
    assert!(site.answer(input, forged.as_bytes(), 30, 1_000_000).is_err());
    let _ = site.take_map(1);
}
