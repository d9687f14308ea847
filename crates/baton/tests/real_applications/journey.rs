//! A visitor's actions in the wiki: views pages, logs in, writes, uploads, downloads, logs out.

use std::fs::{self, File, FileTimes};
use std::io::{Seek as _, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::common::client::Response;
use crate::common::folder::pattern;
use crate::seen::Seen;
use crate::visitor::{Visitor, hidden};
use crate::wiki::{PASSWORD, USER};

/// The uploaded image: this one with bytes after its end, which PNG readers ignore.
const IMAGE: &str = "/usr/share/dokuwiki/lib/images/error.png";
const LONGER: usize = 700_000;
const FETCH: &str = "/lib/exe/fetch.php/ship.png";

/// A visitor, the answers so far, and the wiki's data folder.
struct Journey<'a> {
    visitor: Visitor,
    seen: Vec<(String, Seen)>,
    data: &'a Path,
}

/// All answers, each with the name of its step.
pub(crate) fn journey(address: SocketAddr, wiki: &Path) -> Vec<(String, Seen)> {
    let data = wiki.join("data");
    let mut journey = Journey { visitor: Visitor::new(address), seen: Vec::new(), data: &data };
    journey.look_around();
    journey.log_in();
    journey.write();
    journey.upload();
    journey.download();
    journey.log_out();
    journey.seen
}

impl Journey<'_> {
    /// Notes an answer, which must have the status that DokuWiki gives.
    #[track_caller]
    fn note(&mut self, station: &str, status: u16, answer: &Response) {
        assert_eq!(answer.status, status, "{station}: {:?} {}", answer.fields, start_of(answer));
        self.seen.push((station.to_owned(), Seen::of(answer, self.visitor.secrets())));
    }

    #[track_caller]
    fn get(&mut self, station: &str, status: u16, path: &str) -> Response {
        let answer = self.visitor.get(path);
        self.note(station, status, &answer);
        answer
    }

    fn look_around(&mut self) {
        self.get("the entrance", 302, "/");
        let page = self.get("a page", 200, "/doku.php/start");
        assert!(page.text().contains("This is the <em>first</em> page."));
        self.get("a page that is none", 404, "/doku.php/nothing/here");
        self.get("a page by its query", 200, "/doku.php?id=start");
        for file in [
            "/lib/images/error.png",
            "/lib/images/blank.gif",
            "/lib/images/email.svg",
            "/none.php",
            "/none.gif",
        ] {
            let answer = self.visitor.get(file);
            self.seen.push((file.to_owned(), Seen::of_server(&answer)));
        }
        // Generated at the first request, read from a file afterwards.
        for time in ["first", "second"] {
            self.get(&format!("style sheet, {time}"), 200, "/lib/exe/css.php?t=dokuwiki");
            self.get(&format!("script, {time}"), 200, "/lib/exe/js.php?t=dokuwiki");
        }
        let mut answer = self.visitor.ask("GET", "/lib/exe/js.php?t=dokuwiki", "Accept-Encoding: gzip\r\n");
        assert_eq!(answer.field("content-encoding"), Some("gzip"));
        // Whether it is packed more or less thoroughly depends on when it was.
        answer.body = unpacked(&answer.body);
        self.note("the script, packed", 200, &answer);
        let answer = self.visitor.ask("HEAD", "/doku.php/start", "");
        self.note("the head of a page", 200, &answer);
        let answer = self.visitor.ask("OPTIONS", "/doku.php/start", "");
        self.note("another method", 200, &answer);
    }

    fn log_in(&mut self) {
        let form = [("do", "login"), ("id", "start"), ("u", USER), ("p", "wrong")];
        let answer = self.visitor.post("/doku.php", &form);
        assert!(answer.text().contains("username or password was wrong"), "{}", start_of(&answer));
        self.note("a wrong password", 403, &answer);
        let answer = self.visitor.post("/doku.php", &[&form[..3], &[("p", PASSWORD)]].concat());
        self.note("the right one", 302, &answer);
        let page = self.get("logged in", 200, "/doku.php/start");
        assert!(page.text().contains("The Admin"), "{}", start_of(&page));
    }

    /// A page too long for the memory bound of request bodies.
    fn write(&mut self) {
        let form = self.get("the form", 200, "/doku.php/start?do=edit");
        let form = form.text();
        let (token, date) = (hidden(form, "sectok").to_owned(), hidden(form, "date").to_owned());
        let text: String = (0..3000).map(|line| format!("Line {line} with ümlauts & <signs>.\n\n")).collect();
        let fields = [
            ("id", "start"),
            ("rev", "0"),
            ("date", &date),
            ("prefix", "."),
            ("suffix", ""),
            ("wikitext", &text),
            ("summary", "longer"),
        ];
        let answer = self
            .visitor
            .post("/doku.php", &[&fields[..], &[("sectok", "wrong"), ("do[save]", "Save")]].concat());
        self.note("saved with a wrong token", 200, &answer);
        let answer = self
            .visitor
            .post("/doku.php", &[&fields[..], &[("sectok", &token), ("do[save]", "Save")]].concat());
        self.note("saved", 302, &answer);
        let written = fs::read_to_string(self.data.join("pages/start.txt")).expect("the page");
        assert!(written.contains("Line 2999 with ümlauts & <signs>."), "{} bytes", written.len());
        let page = self.get("the written text", 200, "/doku.php/start");
        assert!(page.text().contains("Line 2999 with ümlauts &amp; &lt;signs&gt;."));
        let source = self.get("its source", 200, "/doku.php/start?do=export_raw");
        assert_eq!(source.text(), written);
        // Answers with a picture at once and continues to work.
        self.get("the indexer", 200, "/lib/exe/taskrunner.php?id=start");
        self.get("a search", 200, "/doku.php?do=search&q=umlauts&id=start");
        let answer = self.visitor.post("/lib/exe/ajax.php", &[("call", "linkwiz"), ("q", "sta")]);
        self.note("an asynchronous call", 200, &answer);
    }

    fn upload(&mut self) {
        let page = self.get("the media manager", 200, "/lib/exe/mediamanager.php?ns=");
        let token = hidden(page.text(), "sectok").to_owned();
        let image = image();
        for token in ["wrong", &token] {
            let form = [("sectok", token), ("ns", ""), ("mediaid", "ship.png"), ("ow", "1")];
            let answer = self.visitor.upload(
                "/lib/exe/mediamanager.php",
                &form,
                ("upload", "a \u{fc}nique ship.png", &image),
            );
            self.note("an upload", 200, &answer);
            assert_eq!(self.data.join("media/ship.png").exists(), token != "wrong", "{}", start_of(&answer));
        }
        let stored = self.data.join("media/ship.png");
        assert!(fs::read(&stored).expect("the image") == image, "other bytes are stored");
        // Times of storage must be equal for all visitors.
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
        let file = File::options().write(true).open(stored).expect("the image");
        file.set_times(FileTimes::new().set_modified(time)).expect("a time");
    }

    fn download(&mut self) {
        let whole = self.get("the image", 200, FETCH);
        assert!(whole.body == image(), "{} other bytes", whole.body.len());
        let tag = whole.field("etag").expect("a tag").to_owned();
        let date = whole.field("last-modified").expect("a date").to_owned();
        let fields = [
            (206, "Range: bytes=0-99\r\n".to_owned()),
            (206, "Range: bytes=600000-\r\n".to_owned()),
            (304, format!("If-None-Match: {tag}\r\n")),
            (304, format!("If-Modified-Since: {date}\r\n")),
            (200, "If-None-Match: \"other\"\r\n".to_owned()),
        ];
        for (status, fields) in fields {
            let answer = self.visitor.ask("GET", FETCH, &fields);
            self.note(&format!("the image, {}", fields.trim_end()), status, &answer);
        }
        let answer = self.visitor.ask("HEAD", FETCH, "");
        self.note("the head of the image", 200, &answer);
        self.get("an image that is none", 404, "/lib/exe/fetch.php/none.png");
        self.get("the properties of the image", 200, "/lib/exe/detail.php/ship.png");
    }

    fn log_out(&mut self) {
        let page = self.get("before the end", 200, "/doku.php/start");
        let page = page.text();
        let rest = page.split_once("do=logout&amp;sectok=").expect("a link to log out").1;
        let token = rest.split('"').next().unwrap_or_default();
        self.get("logging out", 302, &format!("/doku.php/start?do=logout&sectok={token}"));
        let page = self.get("a stranger again", 200, "/doku.php/start");
        assert!(!page.text().contains("The Admin"));
        self.get("no link to edit", 200, "/doku.php/start?do=admin");
    }
}

/// A named file's server and DokuWiki differ here.
pub(crate) fn several_ranges(address: SocketAddr) -> Seen {
    let mut visitor = Visitor::new(address);
    let answer = visitor.ask("GET", FETCH, "Range: bytes=0-9,100000-100009\r\n");
    assert_eq!(answer.status, 206, "{answer:?}");
    Seen::of(&answer, visitor.secrets())
}

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).and_then(|()| file.rewind()).expect("written");
    let output = Command::new("gzip").arg("-dc").stdin(file).output().expect("gzip");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The image.
pub(crate) fn image() -> Vec<u8> {
    let mut image = fs::read(IMAGE).expect("an image of DokuWiki");
    image.extend(pattern(LONGER, 9));
    image
}

fn start_of(answer: &Response) -> String {
    String::from_utf8_lossy(&answer.body[..answer.body.len().min(3000)]).into_owned()
}
