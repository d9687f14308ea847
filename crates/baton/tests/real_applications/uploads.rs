//! What is copied of an upload to php-fpm.

use baton_lab::copies::Watch;

use crate::common::folder::{Folder, pattern};
use crate::common::server::{Server, wait_until};
use crate::fpm::{Aid, Fpm};
use crate::holdings::{AnswerTransport, way};
use crate::site;
use crate::visitor::{HOST, Visitor};

const UPLOAD_BYTES: usize = 5_000_000;

/// Goal: php-fpm with the preload library looks at an upload where the server has it, in its pool or in a file; only what the
/// socket takes before the library has said so comes as bytes, since the connection is a new one. Without it all comes as bytes.
#[test]
fn an_upload_is_not_copied_to_php_that_has_the_library() {
    for bodies in ["streamed_bodies_max = 2", "streamed_bodies_max = 0"] {
        let copied = one_upload(Aid::Preload, bodies);
        assert!(copied < UPLOAD_BYTES as u64 / 4, "{bodies}: {copied}");
        let copied = one_upload(Aid::None, bodies);
        assert!(copied > UPLOAD_BYTES as u64, "{bodies}, without the library: {copied}");
    }
}

/// Goal: `move_uploaded_file` copies nothing if `upload_tmp_dir` is in the file system where uploads go. Method: the file keeps its
/// number.
#[test]
fn an_upload_is_moved_and_not_copied() {
    for aid in [Aid::Preload, Aid::None] {
        let site = Site::start(aid, "streamed_bodies_max = 2");
        let mut visitor = Visitor::new(site.server.address());
        let answer = visitor.upload("/move.php", &[], ("file", "a.bin", pattern(UPLOAD_BYTES, 5)));
        assert_eq!(answer.text(), "the same file");
        let moved = std::fs::read(site.folder.root().join("moved")).expect("the file");
        assert!(moved == pattern(UPLOAD_BYTES, 5), "{} bytes", moved.len());
    }
}

/// Bytes that php-fpm receives from the server for an upload, which is not the first one.
fn one_upload(aid: Aid, bodies: &str) -> u64 {
    let Site { folder, fpm, server } = Site::start(aid, bodies);
    let mut visitor = Visitor::new(server.address());
    if aid != Aid::None {
        let here = "the server has learned what the library can do";
        wait_until(here, || way(visitor.agent(), HOST, "/holds.php?do=holds") == AnswerTransport::PassFd);
    }
    upload(&mut visitor, 300_000);
    let workers: Vec<i32> = server.workers().iter().map(|worker| worker.as_raw_nonzero().get()).collect();
    // Meanwhile the server's connection, idle, ends.
    let watch = Watch::begin(&workers, &fpm.workers(), &folder.base().join("notes"))
        .expect("strace (scripts/setup-tests installs it)");
    upload(&mut visitor, UPLOAD_BYTES);
    watch.end().expect("a ledger").requests_to_application
}

/// php-fpm with one worker, and a server in front of it.
struct Site {
    folder: Folder,
    fpm: Fpm,
    server: Server,
}

impl Site {
    fn start(aid: Aid, bodies: &str) -> Self {
        let folder = Folder::new();
        folder.write("length.php", "<?php echo $_FILES['file']['size'], ' bytes';");
        folder.write("holds.php", include_str!("exchange.php"));
        folder.write(
            "move.php",
            "<?php $from = $_FILES['file']['tmp_name']; $to = __DIR__ . '/moved'; $number = fileinode($from);
             move_uploaded_file($from, $to); echo fileinode($to) === $number ? 'the same file' : 'a copy';",
        );
        let base = folder.base().display().to_string();
        let pool = format!(
            "pm.max_children = 1\nphp_admin_value[upload_max_filesize] = 16M\nphp_admin_value[post_max_size] = 16M\n\
             php_admin_value[upload_tmp_dir] = {base}\n"
        );
        let fpm = Fpm::start(&folder, "php", aid, &pool);
        let fastcgi = format!(
            "to = \"unix:{base}/php.sock\"\nscripts = [\".php\"]\nbody_bytes_max = \"1 GiB\"\nconnections_max = 4\n{bodies}"
        );
        let server = Server::run(Folder::new(), &site::of_one_application(&folder.root(), "", &fastcgi));
        Self { folder, fpm, server }
    }
}

/// Sends a form with a file, and expects that PHP has it.
fn upload(visitor: &mut Visitor, bytes: usize) {
    let answer = visitor.upload("/length.php", &[], ("file", "a.bin", pattern(bytes, 5)));
    assert_eq!(answer.text(), format!("{bytes} bytes"));
}
