//! A browser in the wiki, with php-fpm that answers on the browser's own sockets.

use std::fs;

use crate::common::browser::Browser;
use crate::common::folder::Folder;
use crate::common::server::{Server, wait_until};
use crate::comparison::{FRONTS, site};
use crate::fpm::Fpm;
use crate::holdings::{AnswerTransport, way};
use crate::journey::image;
use crate::visitor::{HOST, Visitor};
use crate::wiki::{self, PASSWORD, USER};

/// Goal: the wiki works in a browser, which sends concurrent requests, runs scripts and notices faulty answers.
/// Method: log in, edit a page, upload an image, view and download it, all by `passfd`, without an error of the
/// browser.
#[test]
fn a_browser_works_in_the_wiki() {
    let front = FRONTS.iter().find(|front| front.name == "passfd").expect("a way");
    let folder = Folder::new();
    wiki::install(&folder);
    fs::create_dir(folder.base().join("snapshots")).expect("a folder");
    let wiki = wiki::data(&folder, front.name, false);
    let _fpm = Fpm::start(&folder, "preload", front.aid, "pm.max_children = 2\n");
    let server = Server::run(Folder::new(), &site(&folder, front, &wiki));
    let address = server.address();
    wait_until("sockets are handed over", || {
        way(Visitor::new(address).agent(), HOST, "/holds.php") == AnswerTransport::PassFd
    });
    let at = |path: &str| format!("http://{address}{path}");
    let mut browser = Browser::start(&folder);

    browser.open(&at("/doku.php/start"));
    browser.wait_for_text("This is the first page.");
    browser.open(&at("/doku.php/start?do=login"));
    browser.run(&format!(
        "const form = document.querySelector('#dw__login');
         form.querySelector('[name=u]').value = '{USER}';
         form.querySelector('[name=p]').value = '{PASSWORD}';
         form.querySelector('[type=submit]').click()"
    ));
    browser.wait_for_text("The Admin");

    browser.open(&at("/doku.php/start?do=edit"));
    browser.run(
        "document.querySelector('#wiki__text').value += '\\n\\nWritten by a browser, with ümlauts.\\n';
         document.querySelector('#edbtn__save').click()",
    );
    browser.wait_for("!document.querySelector('#wiki__text')");
    browser.wait_for_text("Written by a browser, with ümlauts.");
    let page = fs::read_to_string(wiki.join("data/pages/start.txt")).expect("the page");
    assert!(page.contains("first") && page.contains("Written by a browser, with ümlauts."), "{page}");

    let ship = folder.base().join("ship.png");
    fs::write(&ship, image()).expect("an image");
    browser.open(&at("/doku.php/start?do=media&ns=&tab_files=upload"));
    browser.wait_for("!!document.querySelector('#mediamanager__uploader input[type=file]')");
    browser.choose_file("#mediamanager__uploader input[type=file]", &ship);
    browser.run("document.querySelector('#mediamanager__upload_button').click()");
    browser.wait_for("!!document.querySelector('#mediamanager__uploader .qq-upload-success')");
    assert!(
        fs::read(wiki.join("data/media/ship.png")).expect("the image") == image(),
        "other bytes are stored"
    );

    browser.open(&at("/lib/exe/detail.php/ship.png"));
    browser.wait_for("[...document.images].every(image => image.complete && image.naturalWidth > 0)");
    let downloads = folder.base().join("downloads");
    browser.download_to(&downloads);
    browser.run(
        "const link = document.createElement('a');
         link.href = '/lib/exe/fetch.php/ship.png';
         link.download = '';
         document.body.append(link);
         link.click()",
    );
    browser.wait_for_download(&downloads.join("ship.png"));
    assert!(fs::read(downloads.join("ship.png")).expect("the download") == image(), "other bytes came");

    browser.open(&at("/doku.php/start"));
    browser.run("document.querySelector('a.logout, .action.logout a').click()");
    browser.wait_for_text("Log In");
    assert_eq!(browser.troubles(), [""; 0]);
}
