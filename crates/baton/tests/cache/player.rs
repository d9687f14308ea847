//! A real player of a real film: Chromium, and MP4 with its index at the end.

use std::process::{Command, Stdio};

use crate::common::browser::Browser;
use crate::common::folder::Folder;
use crate::common::leave_out;
use crate::common::server::{Server, wait_until};
use crate::films::{FILMS, Film};

/// Goal: a film plays at once and after a seek, and the origin is asked for what is played: the beginning, the index at the
/// end, the place of the seek. Method: a minute of noise, which is long in bytes.
#[test]
fn chromium_plays_and_seeks() {
    let folder = Folder::new();
    let Some(bytes) = film(&folder) else {
        return leave_out("ffmpeg", "it is not installed: scripts/setup-tests does so");
    };
    let index = bytes.windows(4).rposition(|word| word == b"moov").expect("an index") as u64;
    assert!(index > bytes.len() as u64 / 2, "the index is at the end");
    let (length, film) = (bytes.len() as u64, Film::show_file("played", bytes.clone()));
    let page = format!("<!doctype html><video muted src=\"{}\"></video>", film.address());
    folder.write("play.html", page);
    let server = Server::run(folder, &CONFIGURATION.replace("{films}", &FILMS.address().to_string()));
    let mut browser = Browser::start(server.folder());

    browser.open(&format!("http://{}/play.html", server.address()));
    browser.run("document.querySelector('video').play()");
    browser.wait_for("document.querySelector('video').currentTime > 0.2");
    let block_of = |at: u64| at / BLOCK * BLOCK;
    assert_eq!(film.asked()[0], "-", "from the beginning on");
    let starts = || {
        let asked = film.asked();
        let numbers = asked.iter().filter_map(|range| range.strip_prefix("bytes=")?.split_once('-'));
        numbers.map(|(first, _)| first.parse::<u64>().expect("a number")).collect::<Vec<_>>()
    };
    assert!(starts().contains(&block_of(index)), "{index}: {:?}", film.asked());

    browser.run("document.querySelector('video').currentTime = 45");
    browser
        .wait_for("(video => !video.seeking && video.currentTime > 45.2)(document.querySelector('video'))");
    let is_of_the_seek = |start: &u64| (length / 2..block_of(index)).contains(start);
    assert!(starts().iter().any(is_of_the_seek), "{:?}", film.asked());
    assert!(starts().iter().all(|start| start % BLOCK == 0), "{:?}", film.asked());

    // Another client gets it whole: what is here, and the rest.
    assert!(server.get(&film.address()).body == bytes);
    let sent = film.sent();
    assert!(server.get(&film.address()).body == bytes && film.sent() == sent);
}

/// Goal: who begins a film has its index fetched, which a player asks for next. Method: the boxes of a film, with nothing in
/// them.
#[test]
fn the_index_at_the_end_is_fetched_ahead() {
    let server = Server::run(Folder::new(), &CONFIGURATION.replace("{films}", &FILMS.address().to_string()));
    let header = |kind: &str, size: u32| [&size.to_be_bytes()[..], kind.as_bytes()].concat();
    let media = 3_000_000;
    let mut bytes = [header("ftyp", 8), header("mdat", media)].concat();
    bytes.resize(8 + media as usize, 0);
    bytes.extend([header("moov", 1000), vec![7; 992]].concat());
    let film = Film::show_file("index", bytes.clone());
    let mut agent = server.agent();
    let begun = agent.ask("GET", &film.address(), "Range: bytes=0-99\r\n");
    assert!(begun.status == 206 && begun.body == bytes[..100]);
    wait_until("the index, at the origin", || film.asked() == ["bytes=0-262143", "bytes=2883584-"]);
    let index = agent.ask("GET", &film.address(), "Range: bytes=-992\r\n");
    assert!(index.status == 206 && index.body == [7; 992]);
    assert_eq!(film.asked().len(), 2);
}

/// A film of MP4, whose index is at the end. `None`: no program makes one.
fn film(folder: &Folder) -> Option<Vec<u8>> {
    let file = folder.base().join("film.mp4");
    let noise = "testsrc=size=320x180:rate=10:duration=60,noise=alls=100:allf=t";
    let coding = ["-c:v", "libx264", "-preset", "ultrafast", "-qp", "10", "-g", "10", "-pix_fmt", "yuv420p"];
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(["-v", "error", "-f", "lavfi", "-i", noise]).args(coding).arg(&file).stdin(Stdio::null());
    let made = ffmpeg.status().ok()?;
    assert!(made.success(), "{made}");
    Some(std::fs::read(file).expect("a film"))
}

/// The default.
const BLOCK: u64 = 256 << 10;

const CONFIGURATION: &str = r#"
processes = 1
[[site]]
root = "{root}"
{listen}
[[site.route]]
path = "/film"
proxy = "http://{films}/"
cache = true
"#;
