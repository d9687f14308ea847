//! What a visitor sees of the server's own pages, in a browser: on a screen as wide as a telephone's, light and dark.

use serde_json::Value;

use crate::common::browser::Browser;
use crate::common::folder::Folder;
use crate::common::server::Server;

/// Goal: errors and listings fit a narrow screen, and each of their texts has a contrast of at least 4.5 to 1 in either
/// colour scheme (WCAG 2.2, 1.4.3). Method: the colours that Chromium computes.
#[test]
fn pages_are_readable_on_a_narrow_screen_in_the_light_and_in_the_dark() {
    let (server, mut browser) = start();
    let mut papers = Vec::new();
    for scheme in ["light", "dark"] {
        browser.look(360, scheme);
        for (path, text) in [("/none", "There is nothing at this address."), ("/folder/", LONG)] {
            browser.open(&format!("http://{}{path}", server.address()));
            browser.wait_for_text(text);
            let seen = browser.run(SEEN);
            assert_eq!(seen["width"], seen["screen"], "{path} in the {scheme}: no scrolling aside");
            let texts = seen["texts"].as_array().expect("texts");
            assert!(texts.len() >= 2, "{path}: {texts:?}");
            for text in texts {
                assert!(text["contrast"].as_f64() >= Some(4.5), "{path} in the {scheme}: {text}");
            }
            papers.push(seen["paper"].clone());
        }
    }
    let [light_error, light_listing, dark_error, dark_listing] = &papers[..] else { panic!("{papers:?}") };
    assert!(light_error != dark_error && light_listing != dark_listing, "the dark is dark: {papers:?}");
}

/// Goal: a reader sorts a listing with a click, turns it round with another, and gets out of the folder.
#[test]
fn the_headings_of_a_listing_sort_it() {
    let (server, mut browser) = start();
    browser.open(&format!("http://{}/folder/", server.address()));
    let names =
        "[...document.querySelectorAll('tbody a')].map(link => link.textContent.slice(0, 3)).join(' ')";
    assert_eq!(browser.run(names), Value::from("../ sub <b> mid som"));
    for (sorted, expected) in [("ascending", "../ sub mid som <b>"), ("descending", "../ sub <b> som mid")] {
        browser.run("document.querySelector('th:nth-child(2) a').click()");
        browser.wait_for(&format!(
            "document.readyState == 'complete' && !!document.querySelector('th:nth-child(2)[aria-sort={sorted}]')"
        ));
        assert_eq!(browser.run(names), Value::from(expected), "{sorted}");
    }
    browser.run("document.querySelector('tbody a').click()");
    browser.wait_for("document.readyState == 'complete' && location.pathname == '/'");
    assert_eq!(browser.troubles(), [""; 0]);
}

/// The name of a file.
const LONG: &str = "some-name-without-a-place-to-break-it-that-is-longer-than-any-telephone-is-wide.tar.gz";

fn start() -> (Server, Browser) {
    let folder = Folder::new();
    folder
        .write("folder/<b> & 'bold'.txt", vec![0; 300])
        .write("favicon.ico", "")
        .write("folder/middle.txt", vec![0; 10])
        .write(&format!("folder/{LONG}"), vec![0; 20])
        .write("folder/sub/index.html", "");
    let server = Server::serve(folder, &["--browse"]);
    let browser = Browser::start(server.folder());
    (server, browser)
}

/// Every element with a text of its own, and the contrast to what is behind it.
const SEEN: &str = "(() => {
    const parts = color => color.match(/[\\d.]+/g).map(Number);
    const light = color => {
        const [r, g, b] = parts(color).map(part => part / 255)
            .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = element => {
        for (; element; element = element.parentElement) {
            const color = getComputedStyle(element).backgroundColor;
            if (parts(color)[3] !== 0) return color;
        }
        return null;
    };
    const texts = [];
    for (const element of document.body.querySelectorAll('*')) {
        const own = [...element.childNodes].filter(node => node.nodeType == 3 && node.textContent.trim());
        if (!own.length || !element.getClientRects().length) continue;
        const [ink, paper] = [light(getComputedStyle(element).color), light(behind(element))];
        const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
        texts.push({ text: own[0].textContent, contrast });
    }
    const root = document.documentElement;
    return { texts, width: root.scrollWidth, screen: window.innerWidth, paper: behind(document.body) };
})()";
